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
    /// Phases on a machine with timed starts, those of proved length, and these lengths together.
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_phases: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proved_phases: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proved_clocks: Option<u64>,
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
            conset::verify::check_schedule(schedule),
        ),
        Input::Image(image) => (
            "image",
            image.sets().len(),
            image.sets().iter().map(|s| s.set.len()).sum(),
            conset::verify::check_image(image),
        ),
        Input::Program(_) | Input::Machine(_) => return Err(load::not_compiled(&name).into()),
    };
    drop(bar);
    let (violations, total_violations) = match &outcome {
        Ok(_) => (Vec::new(), 0),
        Err(r) => (r.violations.iter().map(ToString::to_string).collect(), r.total()),
    };
    let timed = outcome.as_ref().ok().filter(|report| report.timed_phases > 0);
    let verdict = Verdict {
        verified: outcome.is_ok(),
        kind,
        sets,
        connections,
        timed_phases: timed.map(|report| report.timed_phases),
        proved_phases: timed.map(|report| report.proved_phases),
        proved_clocks: timed.map(|report| report.proved_clocks),
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
        )?;
        if let (Some(timed), Some(proved), Some(clocks)) =
            (verdict.timed_phases, verdict.proved_phases, verdict.proved_clocks)
        {
            writeln!(
                out,
                "phase length proved: {} of {}, {} without the switches",
                text::number(proved),
                text::count(timed, "phase"),
                text::count(clocks, "clock"),
            )?;
        }
        Ok(())
    })
}
