//! `conset verify`: the independent checker on a schedule or an image, and whether it is one of a
//! given input.

use conset::against::first_difference;
use conset::compile::with_witnesses;
use conset::input::Input;
use conset_ir::{At, ConnectionSet, InputError, Machine};
use serde::Serialize;

use crate::args::{InputArgs, VerifyArgs};
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
    /// With --against: what is not as in the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

pub(crate) fn run(args: &VerifyArgs, terminal: &Terminal) -> Result<(), Failure> {
    if let (None, Some(option)) = (&args.against, args.options.given()) {
        return Err(InputError::new(option, At::Whole, "what is compiled takes no such option")
            .help(format!("leave out {option}, or name the input with --against INPUT"))
            .into());
    }
    let (name, bytes) = files::read(&args.file)?;
    let mut bar = Bar::new(terminal.quiet);
    let input = match load::document(&name, &bytes, &mut bar)? {
        Input::Schedule(schedule) => Input::Schedule(with_witnesses(schedule)),
        other => other,
    };
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
    let difference = match &args.against {
        Some(against) => difference(&input, against, args, &mut bar)?,
        None => None,
    };
    drop(bar);
    let (violations, total_violations) = match &outcome {
        Ok(_) => (Vec::new(), 0),
        Err(r) => (r.violations().iter().map(ToString::to_string).collect(), r.total()),
    };
    let timed = outcome.as_ref().ok().filter(|report| report.timed_phases > 0);
    let verdict = Verdict {
        verified: outcome.is_ok() && difference.is_none(),
        kind,
        sets,
        connections,
        timed_phases: timed.map(|report| report.timed_phases),
        proved_phases: timed.map(|report| report.proved_phases),
        proved_clocks: timed.map(|report| report.proved_clocks),
        violations,
        total_violations,
        difference,
    };
    let against = args.against.as_deref().unwrap_or_default();
    let refused = match (&outcome, &verdict.difference) {
        (Err(rejection), _) => Some(format!("{name} is rejected\n{rejection}")),
        (Ok(_), Some(difference)) => Some(format!("{name} is not of {against}: {difference}")),
        (Ok(_), None) => None,
    };
    if let Some(refused) = refused {
        if terminal.json {
            terminal.print(&verdict, |_| Ok(()))?;
        }
        return Err(Failure::Rejected(refused));
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
        if args.against.is_some() {
            writeln!(out, "{name}: is of {against}, connection by connection")?;
        }
        Ok(())
    })
}

/// Where what is compiled first is not what an input is.
fn difference(
    compiled: &Input,
    against: &str,
    args: &VerifyArgs,
    bar: &mut Bar,
) -> Result<Option<String>, Failure> {
    let wanted = InputArgs { input: against.to_owned(), options: args.options.clone() };
    let job = load::input(&wanted, bar)?;
    let (file, input) = (held(compiled, None), held(&job.input, Some(&job.machine)));
    let (Some((machine, sets)), Some((of, wanted))) = (file, input) else {
        return Err(load::not_a_program(against, "a machine").into());
    };
    Ok(first_difference((machine, &sets), (of, &wanted)))
}

/// The machine and the sets in a document; `machine` is that of programs that name none.
fn held<'a>(
    document: &'a Input,
    machine: Option<&'a Machine>,
) -> Option<(&'a Machine, Vec<&'a ConnectionSet>)> {
    match document {
        Input::Program(loaded) => {
            let sets = loaded.program.sets().iter().map(AsRef::as_ref);
            Some((machine?, sets.collect()))
        }
        Input::Schedule(schedule) => {
            let sets = schedule.sets().iter().map(|set| &**set.timetable.routing().set());
            Some((schedule.machine(), sets.collect()))
        }
        Input::Image(image) => {
            Some((image.machine(), image.sets().iter().map(|set| &*set.set).collect()))
        }
        Input::Machine(_) => None,
    }
}
