//! Reports on schedules of steps: what `compile`, `run` and `show` print of them.

use std::io::{self, Write};
use std::path::Path;

use conset::choice::Alternative;
use conset::report::MachineSummary;
use conset::step_views::{EarlierMessage, StepDiff, StepSetDiff, StepWhy};
use conset::steps::{
    CompiledSteps, StepExecutionError, StepMeasurement, StepRunSummary, StepSummary,
};
use conset_ir::convert::{index, to_f64, to_u64};
use conset_ir::{
    At, ConnectionSet, Document, InputError, Machine, SetSteps, StepId, StepMessage, StepSchedule,
};
use serde::Serialize;

use crate::args::view_names;
use crate::commands::compile::OutputFormat;
use crate::commands::diff::{write_comparison, write_identical};
use crate::commands::faults::FaultReport;
use crate::commands::profile::{self, ProfileFilter, ProfileReport};
use crate::commands::show::{ScheduleView, StepSelection, find_connections};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::rows::{self, Field, TableRows};
use crate::text::{self, Terminal};

/// A program that was compiled to steps.
#[derive(Serialize)]
struct StepsReport {
    by: &'static str,
    machine: MachineSummary,
    sets: Vec<StepSummary>,
    /// What it was compared with (`--by best`): its predicted clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Alternative>,
    output: Option<String>,
    /// Time from reading the input to the verified schedule: partition and placement included.
    seconds: f64,
}

/// `by       steps: ...`, which says why one way of exchanging was chosen.
pub(crate) fn write_choice(
    out: &mut dyn Write,
    by: &str,
    clocks: u64,
    compared: Option<&Alternative>,
) -> io::Result<()> {
    let Some(other) = compared else { return Ok(()) };
    let (fewer, clocks) = (text::number(clocks), text::number(other.predicted_clocks));
    writeln!(out, "by       {by}: {fewer} clocks predicted, {clocks} by {}", other.by)
}

/// How a compilation to steps went.
pub(crate) struct StepsOutput<'a> {
    pub(crate) compiled: &'a CompiledSteps,
    pub(crate) compared: Option<Alternative>,
    pub(crate) output: Option<&'a Path>,
    pub(crate) seconds: f64,
    pub(crate) explain_search: bool,
}

/// Writes the file of `compile`, and prints its report.
pub(crate) fn write_compiled(
    done: &StepsOutput<'_>,
    format: Option<OutputFormat>,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if let (Some(path), Some(format)) = (done.output, format) {
        let document = match format {
            OutputFormat::Image => Document::Image((**done.compiled.image()).clone()),
            _ => Document::Steps(done.compiled.schedule().clone()),
        };
        format.write_document(&OutputTarget::new(path), &document)?;
    }
    let machine = done.compiled.schedule().machine();
    let report = StepsReport {
        by: "steps",
        machine: MachineSummary::new(machine),
        sets: done.compiled.summaries(),
        compared: done.compared,
        output: done.output.map(|path| path.display().to_string()),
        seconds: done.seconds,
    };
    terminal.print(&report, |out| {
        write_machine(out, machine)?;
        write_sets(out, &report.sets, done.explain_search)?;
        let clocks = done.compiled.predicted_clocks();
        write_choice(out, "steps", clocks, report.compared.as_ref())?;
        writeln!(out, "compiled and verified in {:.1} ms", report.seconds * 1e3)?;
        match &report.output {
            Some(output) => writeln!(out, "wrote {output}"),
            None => Ok(()),
        }
    })
}

pub(crate) fn write_machine(out: &mut dyn Write, machine: &Machine) -> io::Result<()> {
    let cells = text::count(to_u64(machine.endpoints().count()), "cell");
    let links = text::count(to_u64(machine.link_count()), "link");
    writeln!(out, "machine  {} ({}): {cells}, {links}", machine.name(), machine.topology())
}

/// Prints the summaries of sets.
fn write_sets(out: &mut dyn Write, sets: &[StepSummary], trials: bool) -> io::Result<()> {
    for set in sets {
        let connections = text::count(to_u64(set.connections), "connection");
        writeln!(out, "set      {}: {connections}, {}", set.set, text::count(set.words, "word"))?;
        writeln!(
            out,
            "steps    {}: {} of {}, {}",
            text::number(to_u64(set.steps)),
            text::count(to_u64(set.messages), "message"),
            text::count(set.message_words, "word"),
            if set.direct { "direct" } else { "combined" },
        )?;
        write_clocks(out, set)?;
        let Some(search) = &set.search else { continue };
        let limit = if search.limited { "; the search stopped at a limit" } else { "" };
        let plans = text::count(to_u64(search.trials.len()), "plan");
        writeln!(out, "tried    {plans}{limit}")?;
        write_winner(out, set)?;
        if trials {
            write_trials(out, set)?;
        }
        if search.refused > 0 {
            let plans = text::count(search.refused.into(), "plan");
            writeln!(out, "note     the checker refused {plans}, which is a bug in conset")?;
        }
    }
    Ok(())
}

fn write_clocks(out: &mut dyn Write, set: &StepSummary) -> io::Result<()> {
    let (bound, by) = (text::number(set.bound_clocks), set.bound_clocks_by);
    let Some(predicted) = set.predicted_clocks else {
        return writeln!(out, "clocks   not predicted, bound {bound} by {by}");
    };
    let over = |bound| conset::bound_ratio(predicted, bound);
    write!(out, "clocks   {} predicted, bound {bound} by {by}", text::number(predicted))?;
    write!(out, ", {:.2} over bound", over(set.bound_clocks))?;
    if set.direct && set.direct_bound_clocks > set.bound_clocks {
        let direct = text::number(set.direct_bound_clocks);
        write!(out, "; bound of direct plans {direct}, {:.2} over", over(set.direct_bound_clocks))?;
    }
    let at_bound = predicted == set.bound_clocks;
    writeln!(out, "{}", if at_bound { " (predicted at the bound)" } else { "" })
}

/// Which planner's plan is the result, and by how much.
fn write_winner(out: &mut dyn Write, set: &StepSummary) -> io::Result<()> {
    let trials = set.search.iter().flat_map(|search| &search.trials);
    let Some(winner) = trials.clone().find(|trial| trial.best) else { return Ok(()) };
    write!(out, "planner  {}", winner.planner)?;
    if let Some(other) = trials.filter(|trial| !trial.best).min_by_key(|trial| trial.clocks) {
        let less = 100.0 * (1.0 - to_f64(winner.clocks) / to_f64(other.clocks.max(1)));
        write!(out, ", {less:.1} % fewer clocks than {}", other.planner)?;
    }
    writeln!(out)
}

fn write_trials(out: &mut dyn Write, set: &StepSummary) -> io::Result<()> {
    let Some(search) = &set.search else { return Ok(()) };
    writeln!(out, "search   {}:", set.set)?;
    writeln!(out, "  {:22} {:>7} {:>9} {:>14}", "planner", "steps", "messages", "clocks")?;
    for trial in &search.trials {
        let clocks = text::number(trial.clocks);
        let best = if trial.best { "  best" } else { "" };
        let (planner, steps, messages) = (&trial.planner, trial.steps, trial.messages);
        writeln!(out, "  {planner:22} {steps:>7} {messages:>9} {clocks:>14}{best}")?;
    }
    Ok(())
}

/// What `run` measured of a program of steps.
#[derive(Serialize)]
struct StepsRunReport<'a> {
    by: &'static str,
    sets: Vec<&'a StepRunSummary>,
    total: SumOfStepSets,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Alternative>,
    /// What became of the faults of a plan (`--faults`).
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultReport>,
    /// Where every clock went (`--profile`).
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileReport>,
}

/// What `run` shows of step plans beside its measurements.
pub(crate) struct RunOutput<'a> {
    pub(crate) compared: Option<Alternative>,
    pub(crate) faults: Option<FaultReport>,
    pub(crate) profile: Option<ProfileReport>,
    /// Whether the profile shows the cells.
    pub(crate) cells: bool,
    /// Where the trace was written.
    pub(crate) trace: Option<&'a Path>,
}

/// Sums over the sets.
#[derive(Serialize)]
struct SumOfStepSets {
    measured_clocks: u64,
    /// If all sets have a prediction.
    predicted_clocks: Option<u64>,
    bound_clocks: u64,
    connections: usize,
    words: u64,
    payload_ok: bool,
}

/// Prints the report of `run`.
///
/// # Errors
/// Words that did not arrive: on a machine with faults, or else a bug.
pub(crate) fn write_runs(
    compiled: &CompiledSteps,
    shown: RunOutput<'_>,
    runs: &[StepMeasurement],
    terminal: &Terminal,
) -> Result<(), CliError> {
    let summaries: Vec<&StepRunSummary> = runs.iter().map(|run| &run.summary).collect();
    let report = StepsRunReport {
        by: "steps",
        total: SumOfStepSets {
            measured_clocks: summaries.iter().map(|run| run.measured_clocks).sum(),
            predicted_clocks: summaries.iter().map(|run| run.predicted_clocks).sum(),
            bound_clocks: summaries.iter().map(|run| run.bound_clocks).sum(),
            connections: summaries.iter().map(|run| run.connections).sum(),
            words: summaries.iter().map(|run| run.words).sum(),
            payload_ok: summaries.iter().all(|run| run.payload_ok),
        },
        sets: summaries,
        compared: shown.compared,
        faults: shown.faults,
        profile: shown.profile,
    };
    terminal.print(&report, |out| {
        write_machine(out, compiled.schedule().machine())?;
        write_sets(out, &compiled.summaries(), false)?;
        write_choice(out, "steps", compiled.predicted_clocks(), report.compared.as_ref())?;
        for run in &report.sets {
            write_run(out, run)?;
        }
        if let Some(profiled) = &report.profile {
            let filter = ProfileFilter { cells: shown.cells, ..ProfileFilter::default() };
            profile::write(out, profiled, filter)?;
        }
        if let Some(faults) = &report.faults {
            faults.write(out)?;
        }
        match shown.trace {
            Some(path) => writeln!(out, "wrote {}", path.display()),
            None => Ok(()),
        }
    })?;
    match runs.iter().find(|run| !run.summary.payload_ok) {
        None => report.faults.as_ref().map_or(Ok(()), FaultReport::check),
        Some(run) => Err(CliError::Bug(format!(
            "set `{}`: words of messages were not delivered correctly, {} of them wrong",
            run.summary.set, run.report.wrong
        ))),
    }
}

fn write_run(out: &mut dyn Write, run: &StepRunSummary) -> io::Result<()> {
    let error = run.model_error_percent.map(|e| format!(", model error {e:+.1} %"));
    writeln!(
        out,
        "fabric   {}: {} clocks ({:.2} over bound{}), {:.1} MB/s",
        run.set,
        text::number(run.measured_clocks),
        run.clocks_over_bound,
        error.unwrap_or_default(),
        run.megabytes_per_second,
    )?;
    match run.payload_ok {
        true => writeln!(
            out,
            "payload  {} delivered by {}, each once, in order, at the right cell; {}",
            text::count(run.words, "word"),
            text::count(to_u64(run.messages), "message"),
            text::count(run.word_hops, "word-hop"),
        ),
        false => writeln!(out, "payload  WRONG: not all words arrived at the right cell"),
    }
}

/// The error of a run that did not end: a false claim of a file, or a bug.
pub(crate) fn run_failure(error: &StepExecutionError, compiled_here: bool) -> CliError {
    match error {
        StepExecutionError::BoundBeaten { .. } if !compiled_here => {
            CliError::Rejected(format!("the file's claim is false: {error}"))
        }
        _ => CliError::Bug(format!("{error}\nplease report this with the input")),
    }
}

/// The rows of a view that only schedules of steps have.
pub(crate) fn view(
    schedule: &StepSchedule,
    view: &ScheduleView,
    only: &StepSelection<'_>,
) -> Result<TableRows, InputError> {
    let wrong = |message: &str| InputError::new("show", At::Whole, message);
    let sets = || only.sets(schedule);
    Ok(match view {
        ScheduleView::Steps => messages(sets(), |_, message| only.has(message)),
        ScheduleView::Connection(word) => {
            let known: Vec<&ConnectionSet> = sets().map(|set| &**set.steps.set()).collect();
            let wanted = find_connections(&known, word)?;
            messages(sets(), |set, message| {
                let has = |x| wanted.binary_search(&(set.name().to_owned(), x)).is_ok();
                message.pieces.iter().any(|piece| has(piece.connection))
            })
        }
        ScheduleView::Cell(cell) => {
            let machine = schedule.machine();
            if cell.index() >= machine.agent_count() {
                let last = machine.agent_count() - 1;
                return Err(wrong(&format!("the machine has cells c0 to c{last}, not {cell}")));
            }
            let mut rows =
                TableRows::new(&["set", "step", "what", "cell", "pieces", "message", "words"], 5);
            for set in sets() {
                let steps = &set.steps;
                let mut starts = (0..steps.messages().steps())
                    .map(StepId::from_index)
                    .map(|step| (step, steps.messages().of_step(step).end))
                    .peekable();
                for &row in steps.lists().of(cell.0) {
                    while starts.next_if(|&(_, end)| end <= index(row)).is_some() {}
                    let step = starts.peek().map_or(StepId(0), |&(step, _)| step);
                    let message = steps.messages().get(index(row));
                    let (what, peer) = match message.source == *cell {
                        true => ("send", message.target),
                        false => ("receive", message.source),
                    };
                    rows.rows.push(vec![
                        steps.set().name().into(),
                        step.into(),
                        what.into(),
                        peer.into(),
                        pieces(set, message).into(),
                        row.into(),
                        message.words().into(),
                    ]);
                }
            }
            rows
        }
        _ => {
            return Err(wrong("a schedule of steps has no phases, routes, channels or tables")
                .help(format!("WHAT is {}", view_names(true))));
        }
    })
}

/// The summary of a file as JSON.
#[derive(Serialize)]
struct StepsSummary<'a> {
    by: &'static str,
    machine: MachineSummary,
    sets: &'a [StepSummary],
}

/// Prints the summary of a file.
pub(crate) fn write_summary(
    compiled: &CompiledSteps,
    only: Option<&str>,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let mut sets = compiled.summaries();
    sets.retain(|set| only.is_none_or(|name| name == set.set));
    let machine = MachineSummary::new(compiled.schedule().machine());
    let report = StepsSummary { by: "steps", machine, sets: &sets };
    rows::print(
        terminal,
        &report,
        || summary_rows(&sets),
        |out| {
            write_machine(out, compiled.schedule().machine())?;
            write_sets(out, &sets, false)
        },
    )
}

/// A row for each set.
fn summary_rows(sets: &[StepSummary]) -> TableRows {
    let columns = [
        "set",
        "connections",
        "words",
        "steps",
        "messages",
        "message_words",
        "predicted_clocks",
        "bound_clocks",
        "bound_clocks_by",
        "direct_bound_clocks",
    ];
    let mut rows = TableRows::new(&columns, 1);
    for set in sets {
        rows.rows.push(vec![
            set.set.as_str().into(),
            set.connections.into(),
            set.words.into(),
            set.steps.into(),
            set.messages.into(),
            set.message_words.into(),
            set.predicted_clocks.into(),
            set.bound_clocks.into(),
            set.bound_clocks_by.to_string().into(),
            set.direct_bound_clocks.into(),
        ]);
    }
    rows
}

pub(crate) fn messages<'a>(
    sets: impl Iterator<Item = &'a SetSteps>,
    mut shown: impl FnMut(&ConnectionSet, &StepMessage<'_>) -> bool,
) -> TableRows {
    let mut rows = TableRows::new(&["set", "step", "source", "target", "pieces", "words"], 5);
    for set in sets {
        for (step, messages) in set.steps.iter() {
            for message in messages.filter(|message| shown(set.steps.set(), message)) {
                rows.rows.push(vec![
                    set.steps.set().name().into(),
                    step.into(),
                    message.source.into(),
                    message.target.into(),
                    pieces(set, message).into(),
                    message.words().into(),
                ]);
            }
        }
    }
    rows
}

/// Pieces as in the text form; of a part, its words.
fn pieces(set: &SetSteps, message: StepMessage<'_>) -> String {
    let spelled = message.pieces.iter().map(|piece| match piece.is_whole(set.steps.set()) {
        true => piece.connection.to_string(),
        false => {
            // A piece that the checker refuses may have no words.
            let last = piece.first_word.saturating_add(piece.words).saturating_sub(1);
            format!("{}[{}..{last}]", piece.connection, piece.first_word)
        }
    });
    spelled.collect::<Vec<_>>().join(" ")
}

/// Prints the way of a connection.
pub(crate) fn write_why(why: &StepWhy, terminal: &Terminal) -> Result<(), CliError> {
    terminal.print(why, |out| {
        let StepWhy { set, connection, source, target, .. } = why;
        let words = text::count(why.words.into(), "word");
        writeln!(out, "set      {set}: {connection} from {source} to {target}, {words}")?;
        if why.messages.is_empty() {
            writeln!(out, "message  none: the words are at their target already")?;
        }
        for hop in &why.messages {
            write!(out, "message  {} {} -> {}: ", hop.step, hop.source, hop.target)?;
            let words = text::count(hop.words.into(), "word");
            match hop.pieces {
                1 => write!(out, "{words}")?,
                pieces => write!(
                    out,
                    "{words} of {} in {}",
                    text::number(hop.message_words),
                    text::count(to_u64(pieces), "piece")
                )?,
            }
            writeln!(out, ", received at {}", text::number(hop.received))?;
            if let Some(after) = &hop.after {
                let received = text::number(after.received);
                let EarlierMessage { step, source, target, .. } = after;
                writeln!(out, "after    {step} {source} -> {target}, received at {received}")?;
            }
        }
        Ok(())
    })
}

/// Prints the differences of two schedules.
pub(crate) fn write_diff(diff: &StepDiff, terminal: &Terminal) -> Result<(), CliError> {
    rows::print(
        terminal,
        diff,
        || diff_rows(diff),
        |out| {
            write_comparison(out, diff.identical, &diff.schedule, |out| {
                diff.sets.iter().try_for_each(|set| match set.identical {
                    true => write_identical(out, &set.set),
                    false => write_set_diff(out, set),
                })
            })
        },
    )
}

fn write_set_diff(out: &mut dyn Write, set: &StepSetDiff) -> io::Result<()> {
    let change = |pair: [u64; 2]| match pair {
        [a, b] if a == b => text::number(a),
        [a, b] => format!("{} -> {}", text::number(a), text::number(b)),
    };
    writeln!(
        out,
        "set      {}: {} steps, {} messages, {} words",
        set.set,
        change(set.steps.map(to_u64)),
        change(set.messages.map(to_u64)),
        change(set.message_words),
    )?;
    if let [Some(a), Some(b)] = set.predicted_clocks {
        writeln!(out, "clocks   {} predicted", change([a, b]))?;
    }
    for (what, count, how) in [
        ("removed", set.removed, ""),
        ("added", set.added, ""),
        ("placed", set.rerouted, " over other cells"),
        ("placed", set.moved, " in other steps"),
    ] {
        if count > 0 {
            writeln!(out, "{what:<8} {}{how}", text::count(to_u64(count), "connection"))?;
        }
    }
    Ok(())
}

/// A row for each number of each common set.
fn diff_rows(diff: &StepDiff) -> TableRows {
    let mut rows = TableRows::new(&["set", "what", "a", "b"], 2);
    for set in &diff.sets {
        let [steps, messages] = [set.steps, set.messages].map(|pair| pair.map(Field::from));
        for (what, [a, b]) in [
            ("steps", steps),
            ("messages", messages),
            ("message_words", set.message_words.map(Field::from)),
            ("predicted_clocks", set.predicted_clocks.map(Field::from)),
        ] {
            rows.rows.push(vec![set.set.as_str().into(), what.into(), a, b]);
        }
    }
    rows
}
