//! Schedules that the checker refuses, as far as they can be looked at.
//!
//! `show` and `view` show the routes and times that such a file states, the violations first, and end
//! with the exit code of a refusal. What is computed from a schedule (forwarding tables, predicted
//! clocks, bounds) needs one that is correct, so there is none of it; and whatever executes or
//! translates a schedule refuses the file.

use std::path::Path;

use conset::input::Input;
use conset::steps::CompiledSteps;
use conset::verify::Rejection;
use conset::{CompileError, Compiled};
use conset_ir::{Schedule, StepSchedule};

use crate::error::CliError;
use crate::files;
use crate::load::{self, Either};
use crate::progress::ProgressDisplay;
use crate::text::Terminal;

/// A compiled file to look at.
pub(crate) enum Readable {
    /// The checker accepts it.
    Checked(Either),
    /// The checker refuses it.
    Refused(Refused),
}

/// A schedule that the checker refuses, and why.
pub(crate) struct Refused {
    pub(crate) name: String,
    pub(crate) schedule: RefusedSchedule,
    pub(crate) rejection: Box<Rejection>,
}

/// A refused schedule of either kind.
pub(crate) enum RefusedSchedule {
    Phases(Schedule),
    Steps(StepSchedule),
}

/// The compiled program of either kind in a file, or a schedule that the checker refuses. A refused
/// image is an error: its tables do not lead to routes that could be shown.
pub(crate) fn readable_file(file: &Path, terminal: &Terminal) -> Result<Readable, CliError> {
    let (name, bytes) = files::read(file)?;
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let phases = |compiled| Either::Phases(Box::new(compiled));
    let steps = |compiled| Either::Steps(Box::new(compiled));
    let input = load::document(&name, &bytes, &mut bar)?;
    // Schedules share their contents with their clones.
    let imported = match &input {
        Input::Schedule(schedule) => {
            Compiled::import(schedule.clone(), &mut |p| bar.observe(p)).map(phases)
        }
        Input::Steps(schedule) => CompiledSteps::import(schedule.clone()).map(steps),
        Input::Image(image) => {
            Compiled::import_image(image.clone(), &mut |p| bar.observe(p)).map(phases)
        }
        Input::Program(_) | Input::Machine(_) => return Err(load::not_compiled(&name).into()),
    };
    match imported {
        Ok(compiled) => Ok(Readable::Checked(compiled)),
        Err(CompileError::Rejected(rejection)) => {
            schedule_of(&name, &input, rejection).map(Readable::Refused)
        }
        Err(error) => Err(CliError::of_compile(error, &bytes)),
    }
}

/// The schedule that was refused, if the input is one.
pub(crate) fn schedule_of(
    name: &str,
    input: &Input,
    rejection: Box<Rejection>,
) -> Result<Refused, CliError> {
    let schedule = match input {
        Input::Schedule(schedule) => RefusedSchedule::Phases(schedule.clone()),
        Input::Steps(schedule) => RefusedSchedule::Steps(schedule.clone()),
        _ => return Err(CliError::Violations { file: None, rejection }),
    };
    Ok(Refused { name: name.to_owned(), schedule, rejection })
}

/// How a subcommand ends that has shown refused schedules: as `verify` ends for them.
pub(crate) fn shown(name: &str) -> CliError {
    CliError::Rejected(format!("{name}: refused by the checker; it is shown, but not executed"))
}
