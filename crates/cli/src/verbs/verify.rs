//! `conset verify`: the independent checker on a schedule or an image.

use conset::input::Input;
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::failure::Failure;
use crate::files;
use crate::load;
use crate::progress::Bar;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct Verdict {
    verified: bool,
    kind: &'static str,
    sets: usize,
    connections: usize,
    violations: Vec<String>,
    total_violations: u64,
}

pub(crate) fn run(args: &VerifyArgs, terminal: &Terminal) -> Result<(), Failure> {
    let (name, bytes) = files::read(&args.file)?;
    let mut bar = Bar::new(terminal.quiet);
    let input = load::document(&name, &bytes, &mut bar)?;
    let (kind, sets, connections, outcome) = match &input {
        Input::Schedule(schedule) => (
            "schedule",
            schedule.sets().len(),
            schedule.sets().iter().map(|s| s.timetable.routing().set().len()).sum(),
            conset::verify::check_schedule(schedule).map(drop),
        ),
        Input::Image(image) => (
            "image",
            image.sets().len(),
            image.sets().iter().map(|s| s.set.len()).sum(),
            conset::verify::check_image(image).map(drop),
        ),
        Input::Program(_) | Input::Machine(_) => return Err(load::not_compiled(&name).into()),
    };
    drop(bar);
    let (violations, total_violations) = match &outcome {
        Ok(()) => (Vec::new(), 0),
        Err(r) => (r.violations.iter().map(ToString::to_string).collect(), r.total()),
    };
    let verdict = Verdict {
        verified: outcome.is_ok(),
        kind,
        sets,
        connections,
        violations,
        total_violations,
    };
    if let Err(rejection) = outcome {
        if terminal.json {
            terminal.print(&verdict, |_| Ok(()))?;
        }
        return Err(Failure::Rejected(format!("{name} is rejected\n{rejection}")));
    }
    terminal.print(&verdict, |out| {
        writeln!(
            out,
            "{name}: verified {kind}, {}, {}",
            text::count(verdict.sets as u64, "set"),
            text::count(verdict.connections as u64, "connection"),
        )
    })
}
