//! `conset verify`: running the independent checker on a schedule or an image, and comparing it with
//! an input.

use std::ffi::OsStr;
use std::path::Path;

use conset::Objective;
use conset::input::{Input, PlacedHalo};
use conset::program_diff::first_difference;
use conset::report::ViolationReport;
use conset::with_witnesses;
use conset_ir::convert::to_u64;
use conset_ir::{At, ConnectionSet, InputError, Machine};
use serde::Serialize;

use crate::args::{InputArgs, VerifyArgs};
use crate::error::CliError;
use crate::files;
use crate::load::{self, PartitionGoal};
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct VerifyReport {
    verified: bool,
    kind: &'static str,
    sets: Vec<VerifiedSet>,
    connections: usize,
    /// On machines with timed starts: the phases, those of proved length, and the sum of these lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_phases: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proved_phases: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proved_clocks: Option<u64>,
    violations: Vec<ViolationReport>,
    total_violations: u64,
    /// With `--against`: the first difference to the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

#[derive(Serialize)]
struct VerifiedSet {
    set: String,
    connections: usize,
    words: u64,
}

impl VerifiedSet {
    fn new(set: &ConnectionSet) -> Self {
        Self { set: set.name().to_owned(), connections: set.len(), words: set.words() }
    }
}

pub(crate) fn run(args: &VerifyArgs, terminal: &Terminal) -> Result<(), CliError> {
    if args.file == Path::new("-") && args.against.as_deref().is_some_and(|against| against == "-")
    {
        return Err(load::wrong_kind("<stdin>", "standard input can be read once only")
            .help("give one of them as a file")
            .into());
    }
    if let (None, Some(option)) = (&args.against, args.options.given()) {
        return Err(InputError::new(option, At::Whole, "a compiled file takes no such option")
            .help(format!("leave out {option}, or name the input with --against INPUT"))
            .into());
    }
    let (name, bytes) = files::read(&args.file)?;
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let input = match load::document(&name, &bytes, &mut bar)? {
        Input::Schedule(schedule) => Input::Schedule(with_witnesses(schedule)),
        other => other,
    };
    let (kind, sets, outcome): (_, Vec<VerifiedSet>, _) = match &input {
        Input::Schedule(schedule) => (
            "schedule",
            schedule.sets().iter().map(|s| VerifiedSet::new(s.timetable.routing().set())).collect(),
            conset::verify::check_schedule(schedule),
        ),
        Input::Steps(schedule) => (
            "schedule of steps",
            schedule.sets().iter().map(|s| VerifiedSet::new(s.steps.set())).collect(),
            conset::verify::check_step_schedule(schedule),
        ),
        Input::Image(image) => (
            "image",
            image.sets().iter().map(|s| VerifiedSet::new(&s.set)).collect(),
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
        Err(rejection) => (ViolationReport::of(rejection), rejection.total()),
    };
    let timed = outcome.as_ref().ok().filter(|report| report.timed_phases > 0);
    let report = VerifyReport {
        verified: outcome.is_ok() && difference.is_none(),
        kind,
        connections: sets.iter().map(|set| set.connections).sum(),
        sets,
        timed_phases: timed.map(|report| report.timed_phases),
        proved_phases: timed.map(|report| report.proved_phases),
        proved_clocks: timed.map(|report| report.proved_clocks),
        violations,
        total_violations,
        difference,
    };
    let against = args.against.as_deref().unwrap_or_default().display();
    let refused = match (&outcome, &report.difference) {
        (Err(rejection), _) => Some(format!("{name} is rejected\n{rejection}")),
        (Ok(_), Some(difference)) => {
            Some(format!("{name} was not compiled from {against}: {difference}"))
        }
        (Ok(_), None) => None,
    };
    if let Some(refused) = refused {
        if terminal.json {
            terminal.print(&report, |_| Ok(()))?;
        }
        return Err(CliError::Rejected(refused));
    }
    terminal.print(&report, |out| {
        writeln!(
            out,
            "{name}: verified {kind}, {}, {}",
            text::count(to_u64(report.sets.len()), "set"),
            text::count(to_u64(report.connections), "connection"),
        )?;
        if let (Some(timed), Some(proved), Some(clocks)) =
            (report.timed_phases, report.proved_phases, report.proved_clocks)
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
            writeln!(
                out,
                "{name}: was compiled from {against} (compared connection by connection)"
            )?;
        }
        Ok(())
    })
}

/// The first difference between a compiled file and an input.
fn difference(
    compiled: &Input,
    against: &OsStr,
    args: &VerifyArgs,
    bar: &mut ProgressDisplay,
) -> Result<Option<String>, CliError> {
    let wanted = InputArgs { input: against.to_owned(), options: args.options.clone() };
    let mut first = None;
    // The objective of the compilation determines the partition, and the file does not state it.
    for objective in [Objective::Time, Objective::Phases] {
        let goal = PartitionGoal { objective, ..PartitionGoal::default() };
        let job = load::input_for(&wanted, &goal, false, bar)?;
        let (file, input) = (held(compiled, None), held(&job.input, Some(&job.machine)));
        let (Some((machine, sets)), Some((of, wanted))) = (file, input) else {
            return Err(load::not_a_program(&wanted.name(), "a machine").into());
        };
        let Some(difference) = first_difference((machine, &sets), (of, &wanted)) else {
            return Ok(None);
        };
        first.get_or_insert(difference);
        let is_searched = match &job.input {
            Input::Program(loaded) => loaded.halo.as_ref().is_some_and(PlacedHalo::is_searched),
            _ => false,
        };
        if !is_searched {
            break;
        }
    }
    Ok(first)
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
        Input::Steps(schedule) => {
            let sets = schedule.sets().iter().map(|set| &**set.steps.set());
            Some((schedule.machine(), sets.collect()))
        }
        Input::Image(image) => {
            Some((image.machine(), image.sets().iter().map(|set| &*set.set).collect()))
        }
        Input::Machine(_) => None,
    }
}
