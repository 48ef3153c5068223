//! `conset run`: compiling if necessary, executing on the emulated fabric, checking every word.

use std::io::{self, Write};

use conset::fabric::messages::{MessageOptions, MessageOrder};
use conset::fabric::{Fault, FaultKind, Trace};
use conset::input::Input;
use conset::report::{MessagesSummary, RunSummary, Summary};
use conset::run::{self, ExecutionError, SetMeasurement, StepComparisonError};
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{At, InputError};
use serde::Serialize;

use crate::args::{Compare, MessageOrderArg, RunArgs};
use crate::commands::compile::{write_refused, write_summary};
use crate::commands::info::{mesh_note, write_note};
use crate::commands::steps::{self, Compared, write_choice};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load::{self, Either, PartitionGoal};
use crate::partition_file::PartitionFile;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

/// The summary of one set; or the sums over several sets, with the summary of each.
#[derive(Serialize)]
struct ExecutionReport<'a> {
    #[serde(flatten)]
    total: ExecutionTotal,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<Vec<&'a RunSummary>>,
    /// What it was compared with (`--by best`).
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ExecutionTotal {
    One(RunSummary),
    Sum(SumOfSets),
}

/// Sums over several sets.
#[derive(Serialize)]
struct SumOfSets {
    set: String,
    phases: usize,
    bound_phases: u32,
    clocks: u64,
    predicted_clocks: u64,
    bound_clocks: u64,
    bound_ratio: f64,
    /// `bound_ratio` under its former name, for one release.
    gap: f64,
    connections: usize,
    words: u64,
    word_hops: u64,
    payload_ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<MessagesSummary>,
}

pub(crate) fn run(args: &RunArgs, terminal: &Terminal) -> Result<(), CliError> {
    if let (Some(Compare::Steps), false) = (args.compare, args.message_order.is_default()) {
        let message = "steps have orders of their own; --message-order is for --compare messages";
        return Err(InputError::new("--message-order", At::Whole, message).into());
    }
    if let Some(path) = &args.trace {
        OutputTarget::new(path).check(&load::input_files(&args.input))?;
    }
    let partition_file = PartitionFile::new(
        args.write_partition.as_deref(),
        &args.input,
        &args.compiler,
        &[args.trace.as_deref()],
    )?;
    let mut bar = ProgressDisplay::new(terminal.quiet).with_time_limit(args.compiler.time_limit);
    let goal = PartitionGoal::of(&args.compiler);
    let job = load::input_for(&args.input, &goal, partition_file.is_some(), &mut bar)?;
    let partition = partition_file
        .map(|file| file.contents(&job).map(|contents| (contents, file)))
        .transpose()?;
    let choice = load::compiled_by(&job, &args.input, &args.compiler, &mut bar)?;
    let compared = choice.other.map(|(by, clocks)| Compared { by, clocks });
    let compiled = match choice.chosen {
        Either::Phases(compiled) => *compiled,
        Either::Steps(compiled) => {
            drop(bar);
            if let Some((contents, file)) = &partition {
                file.write(contents)?;
            }
            let compiled_here = matches!(job.input, Input::Program(_));
            return run_steps(args, &compiled, compared, compiled_here, terminal);
        }
    };
    let mut runs =
        run::run(&compiled, args.input.seed(), args.trace.is_some(), &mut |p| bar.observe(p))
            .map_err(|error| run_failure(&error, matches!(job.input, Input::Program(_))))?;
    if let Some(Compare::Messages) = args.compare {
        let orders = match args.message_order {
            MessageOrderArg::Best => &MessageOrder::ALL[..],
            MessageOrderArg::Given => &[MessageOrder::Given],
            MessageOrderArg::LongestFirst => &[MessageOrder::LongestFirst],
            MessageOrderArg::Staggered => &[MessageOrder::Staggered],
            MessageOrderArg::Random => &[MessageOrder::Random],
        };
        let options = MessageOptions::default().seed(args.input.seed());
        run::compare_with_messages(&compiled, &mut runs, &options, orders, &mut |p| bar.observe(p))
            .map_err(|fault| message_failure(&fault))?;
    }
    if let Some(Compare::Steps) = args.compare {
        run::compare_with_steps(&compiled, &mut runs, args.input.seed(), &mut |p| bar.observe(p))
            .map_err(|error| match error {
            StepComparisonError::Compile(error) => CliError::from(error),
            StepComparisonError::Execution(error) => steps::run_failure(&error, true),
            error => CliError::Bug(error.to_string()),
        })?;
    }
    drop(bar);
    if let Some(path) = &args.trace {
        let traces = runs.iter().filter_map(|run| run.checked.trace.as_ref());
        OutputTarget::new(path).write(|out| write_trace(out, traces))?;
    }
    if let Some((contents, file)) = &partition {
        file.write(contents)?;
    }
    let halo = match &job.input {
        Input::Program(loaded) => loaded.halo.as_ref(),
        _ => None,
    };
    let summary = Summary::new(&compiled, halo);
    let mut report = report(&runs, compiled.schedule().machine().parameters());
    report.compared = compared;
    terminal.print(&report, |out| {
        write_note(out, mesh_note(&job.input).as_deref())?;
        write_summary(out, &summary)?;
        let clocks = summary.sets.iter().map(|set| set.predicted_clocks).sum();
        write_choice(out, "phases", clocks, report.compared.as_ref())?;
        let parameters = compiled.schedule().machine().parameters();
        for run in &runs {
            write_run(out, run, parameters)?;
        }
        if let Some(path) = &args.trace {
            writeln!(out, "wrote {}", path.display())?;
        }
        if let Some(path) = &args.write_partition {
            writeln!(out, "wrote {}", path.display())?;
        }
        write_refused(out, &summary)
    })?;
    if let Some(run) =
        runs.iter().find(|run| run.summary.messages.as_ref().is_some_and(|m| !m.payload_ok))
    {
        return Err(CliError::Bug(format!(
            "set `{}`: words by messages were not delivered correctly",
            run.summary.set
        )));
    }
    if let Some(run) =
        runs.iter().find(|run| run.summary.steps.as_ref().is_some_and(|s| !s.payload_ok))
    {
        return Err(CliError::Bug(format!(
            "set `{}`: words by steps were not delivered correctly",
            run.summary.set
        )));
    }
    match runs.iter().find(|run| !run.summary.payload_ok) {
        None => Ok(()),
        Some(run) => Err(CliError::Bug(format!(
            "set `{}`: {} wrong, {} missing, {} extra words",
            run.summary.set, run.checked.wrong, run.checked.missing, run.checked.extra
        ))),
    }
}

/// Executes a program of steps.
fn run_steps(
    args: &RunArgs,
    compiled: &CompiledSteps,
    compared: Option<Compared>,
    compiled_here: bool,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if args.compare.is_some() {
        let message = "steps are messages already; --compare is for phases";
        let error = InputError::new("--compare", At::Whole, message);
        return Err(error.help("compare with other orders by --algorithm").into());
    }
    let runs = compiled
        .run(args.input.seed(), args.trace.is_some())
        .map_err(|error| steps::run_failure(&error, compiled_here))?;
    if let Some(path) = &args.trace {
        let traces = runs.iter().filter_map(|run| run.report.trace.as_ref());
        OutputTarget::new(path).write(|out| write_trace(out, traces))?;
    }
    steps::write_runs(compiled, compared, &runs, args.trace.as_deref(), terminal)
}

/// A false bound is a bug in conset if the program was compiled here, and otherwise a wrong claim of
/// the file.
fn run_failure(error: &ExecutionError, compiled_here: bool) -> CliError {
    match error {
        ExecutionError::BoundBeaten { .. } if !compiled_here => {
            CliError::Rejected(format!("the file's claim is false: {error}"))
        }
        ExecutionError::BoundBeaten { .. } => {
            CliError::Bug(format!("{error}\nplease report this with the input"))
        }
        _ => CliError::Bug(error.to_string()),
    }
}

/// Messages use only routes on which they cannot deadlock, so some pairs of cells have none.
fn message_failure(fault: &Fault) -> CliError {
    match &fault.kind {
        FaultKind::Message { .. } => CliError::Rejected(format!(
            "set `{}` cannot be exchanged by messages: {}\n  fix: leave out --compare messages",
            fault.set, fault.kind
        )),
        _ => CliError::Bug(format!("the fabric stopped: {fault}")),
    }
}

fn report<'a>(
    runs: &'a [SetMeasurement],
    parameters: &conset_ir::Parameters,
) -> ExecutionReport<'a> {
    if let [only] = runs {
        let total = ExecutionTotal::One(only.summary.clone());
        return ExecutionReport { total, sets: None, compared: None };
    }
    let all: Vec<&RunSummary> = runs.iter().map(|run| &run.summary).collect();
    let names: Vec<&str> = all.iter().map(|s| s.set.as_str()).collect();
    let clocks = all.iter().map(|s| s.clocks).sum();
    let messages: Option<Vec<_>> = all.iter().map(|s| s.messages.as_ref()).collect();
    let bound_clocks = all.iter().map(|s| s.bound_clocks).sum();
    let bound_ratio = conset::bound_ratio(clocks, bound_clocks);
    let sum = SumOfSets {
        set: names.join("+"),
        phases: all.iter().map(|s| s.phases).sum(),
        bound_phases: all.iter().map(|s| s.bound_phases).sum(),
        clocks,
        predicted_clocks: all.iter().map(|s| s.predicted_clocks).sum(),
        bound_clocks,
        bound_ratio,
        gap: bound_ratio,
        connections: all.iter().map(|s| s.connections).sum(),
        words: all.iter().map(|s| s.words).sum(),
        word_hops: all.iter().map(|s| s.word_hops).sum(),
        payload_ok: all.iter().all(|s| s.payload_ok),
        messages: messages
            .filter(|messages| !messages.is_empty())
            .map(|messages| MessagesSummary::sum(&messages, clocks, parameters)),
    };
    ExecutionReport { total: ExecutionTotal::Sum(sum), sets: Some(all), compared: None }
}

fn write_run(
    out: &mut dyn Write,
    run: &SetMeasurement,
    parameters: &conset_ir::Parameters,
) -> io::Result<()> {
    let s = &run.summary;
    writeln!(
        out,
        "fabric   {}: {} clocks ({:.2} over bound, model error {:+.1} %), {:.1} MB/s",
        s.set,
        text::number(s.clocks),
        s.bound_ratio,
        s.model_error_percent,
        s.megabytes_per_second,
    )?;
    if s.payload_ok {
        writeln!(
            out,
            "payload  {} delivered, each once, in order, at the right cell; {}",
            text::count(s.words, "word"),
            text::count(s.word_hops, "word-hop"),
        )?;
    } else {
        writeln!(
            out,
            "payload  WRONG: {} wrong, {} missing, {} extra of {}",
            run.checked.wrong,
            run.checked.missing,
            run.checked.extra,
            text::count(s.words, "word"),
        )?;
    }
    if let Some(steps) = &s.steps {
        writeln!(
            out,
            "steps    {}: {} clocks by {}, {:.2} x connections (predicted {}); {} in {}, {:.1} MB/s; {}",
            s.set,
            text::number(steps.clocks),
            steps.planner,
            steps.ratio,
            steps.predicted_clocks.map_or_else(|| "-".to_owned(), text::number),
            text::count(to_u64(steps.messages), "message"),
            text::count(to_u64(steps.steps), "step"),
            steps.megabytes_per_second,
            if steps.payload_ok {
                "every word delivered, in order, at the right cell"
            } else {
                "WRONG"
            },
        )?;
    }
    let Some(m) = &s.messages else { return Ok(()) };
    writeln!(
        out,
        "messages {}: {} clocks in order {}, {:.2} x connections (predicted {}; software {} + {} \
         clocks a message), {:.1} MB/s; {} {}",
        s.set,
        text::number(m.clocks),
        m.order,
        m.ratio,
        text::number(m.predicted_clocks),
        text::number(parameters.c_send.into()),
        text::number(parameters.c_receive.into()),
        m.megabytes_per_second,
        text::count(m.words, "word"),
        if m.payload_ok { "delivered, each once, in order, at the right cell" } else { "WRONG" },
    )
}

/// Writes the traces of all sets into one file.
fn write_trace<'a>(out: &mut dyn Write, traces: impl Iterator<Item = &'a Trace>) -> io::Result<()> {
    writeln!(out, "[")?;
    let mut first = true;
    for trace in traces {
        let events = conset::fabric::to_perfetto(trace);
        let inner = events.trim().trim_start_matches('[').trim_end_matches(']').trim();
        if inner.is_empty() {
            continue;
        }
        if !first {
            writeln!(out, ",")?;
        }
        first = false;
        write!(out, "{inner}")?;
    }
    writeln!(out, "\n]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_bound_is_a_bug_only_if_compiled_here() {
        let by = conset_ir::Binding::AgentLoad;
        let beaten =
            ExecutionError::BoundBeaten { set: "s".to_owned(), clocks: 759, bound: 778, by };
        let (here, file) = (run_failure(&beaten, true), run_failure(&beaten, false));
        assert_eq!((here.exit_code(), file.exit_code()), (3, 1));
        let CliError::Rejected(message) = file else { panic!("{file:?}") };
        assert!(message.starts_with("the file's claim is false: set `s` took 759"), "{message}");
    }
}
