//! `conset run`: compiling if necessary, executing on the emulated fabric, checking every word.

use std::io::{self, Write};
use std::path::Path;

use conset::choice::Alternative;
use conset::fabric::messages::MessageOptions;
use conset::fabric::trace::routes::TracedRoutes;
use conset::fabric::{Fault, FaultKind, TraceSource, write_perfetto};
use conset::input::Input;
use conset::report::{MessagesSummary, RunSummary, Summary};
use conset::run::{self, ExecutionError, SetMeasurement, StepComparisonError};
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{At, InputError};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::args::{Compare, RunArgs};
use crate::commands::batches;
use crate::commands::compile::{write_refused, write_summary};
use crate::commands::faults::{self, FaultReport};
use crate::commands::info::{mesh_note, write_note};
use crate::commands::profile::{self, ProfileFilter, ProfileReport};
use crate::commands::steps::{self, write_choice};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load::{self, Either, PartitionGoal};
use crate::partition_file::PartitionFile;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

/// The summary of each set, and the sums over all.
#[derive(Serialize)]
pub(crate) struct ExecutionReport<'a> {
    by: &'static str,
    sets: Vec<&'a RunSummary>,
    total: SumOfSets,
    /// What it was compared with (`--by best`).
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Alternative>,
    /// Where every clock went (`--profile`).
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileReport>,
    /// The same program on a machine with faults (`--faults`).
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultReport>,
    /// The same sets by messages on a machine with faults (`--compare messages`).
    #[serde(skip_serializing_if = "Option::is_none")]
    message_faults: Option<FaultReport>,
}

/// Sums over several sets.
#[derive(Serialize)]
struct SumOfSets {
    phases: usize,
    bound_phases: u32,
    measured_clocks: u64,
    predicted_clocks: u64,
    bound_clocks: u64,
    clocks_over_bound: f64,
    connections: usize,
    words: u64,
    word_hops: u64,
    payload_ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<MessagesSummary>,
}

pub(crate) fn run(args: &RunArgs, terminal: &Terminal) -> Result<(), CliError> {
    if let Some(count) = args.batches {
        return batches::run(args, count, terminal);
    }
    if let (Some(Compare::Steps), false) = (args.compare, args.message_order.is_default()) {
        let message = "steps have orders of their own; --message-order is for --compare messages";
        return Err(InputError::new("--message-order", At::Whole, message).into());
    }
    if let Some(path) = &args.trace {
        OutputTarget::new(path).check(&load::input_files(&args.input))?;
    }
    if let Some(option) = args.profile_options.given().filter(|_| !args.profile) {
        let error = InputError::new(option, At::Whole, format!("{option} is for profiles"));
        return Err(error.help("add --profile").into());
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
    let compared = choice.other;
    let compiled = match choice.chosen {
        Either::Phases(compiled) => *compiled,
        Either::Steps(compiled) => {
            if let Some((contents, file)) = &partition {
                file.write(contents)?;
            }
            let compiled_here = matches!(job.input, Input::Program(_));
            return run_steps(args, &compiled, compared, compiled_here, (bar, terminal));
        }
    };
    let traced = args.trace.is_some() || args.profile;
    let mut runs = run::run(&compiled, args.input.seed(), traced, &mut |p| bar.observe(p))
        .map_err(|error| run_failure(&error, matches!(job.input, Input::Program(_))))?;
    if let Some(Compare::Messages) = args.compare {
        let orders = args.message_order.orders();
        let options = MessageOptions::default().seed(args.input.seed()).trace(traced);
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
    let profiled =
        args.profile.then(|| profile::of_runs(&compiled, &runs, args.profile_options, &mut bar));
    let profiled = profiled.transpose()?;
    drop(bar);
    if let Some(path) = &args.trace {
        let image = compiled.image();
        let sources = runs.iter().flat_map(|run| {
            let phases = run.checked.trace.as_ref().map(|trace| {
                let routes = TracedRoutes::of_image(image);
                TraceSource { trace, routes, label: "" }
            });
            let messages = run.messages.as_ref().and_then(|report| report.trace.as_ref());
            let messages = messages.map(|trace| {
                let routes = TracedRoutes::of_messages(image.machine());
                TraceSource { trace, routes, label: " by messages" }
            });
            phases.into_iter().chain(messages)
        });
        write_trace(path, &mut sources.collect::<Vec<_>>())?;
    }
    if let Some((contents, file)) = &partition {
        file.write(contents)?;
    }
    let halo = match &job.input {
        Input::Program(loaded) => loaded.halo.as_ref(),
        _ => None,
    };
    let summary = Summary::new(&compiled, halo);
    let mut report =
        report(runs.iter().map(|run| &run.summary), compiled.schedule().machine().parameters());
    report.compared = compared;
    report.profile = profiled;
    report.faults = faults::run(args, &compiled)?;
    if let Some(Compare::Messages) = args.compare {
        report.message_faults = faults::run_messages(args, &compiled)?;
    }
    terminal.print(&report, |out| {
        write_note(out, mesh_note(&job.input).as_deref())?;
        write_summary(out, &summary)?;
        write_choice(out, "phases", compiled.predicted_clocks(), report.compared.as_ref())?;
        let parameters = compiled.schedule().machine().parameters();
        for run in &runs {
            write_run(out, run, parameters)?;
        }
        if let Some(profiled) = &report.profile {
            let cells = args.profile_options.cells;
            profile::write(out, profiled, ProfileFilter { cells, ..ProfileFilter::default() })?;
        }
        if let Some(faults) = &report.faults {
            faults.write(out)?;
        }
        if let Some(faults) = &report.message_faults {
            writeln!(out, "by messages on a machine with faults:")?;
            faults.write(out)?;
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
        None => [&report.faults, &report.message_faults]
            .into_iter()
            .flatten()
            .try_for_each(FaultReport::check),
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
    compared: Option<Alternative>,
    compiled_here: bool,
    (mut bar, terminal): (ProgressDisplay, &Terminal),
) -> Result<(), CliError> {
    if args.compare.is_some() {
        let message = "steps are messages already; --compare is for phases";
        let error = InputError::new("--compare", At::Whole, message);
        return Err(error.help("compare with other orders by --algorithm").into());
    }
    let runs = compiled
        .run(args.input.seed(), args.trace.is_some() || args.profile)
        .map_err(|error| steps::run_failure(&error, compiled_here))?;
    if let Some(path) = &args.trace {
        let sources = runs.iter().filter_map(|run| {
            let routes = TracedRoutes::of_image(compiled.image());
            run.report.trace.as_ref().map(|trace| TraceSource { trace, routes, label: "" })
        });
        write_trace(path, &mut sources.collect::<Vec<_>>())?;
    }
    let profiled =
        args.profile.then(|| profile::of_steps(compiled, &runs, args.profile_options, &mut bar));
    let profiled = profiled.transpose()?;
    drop(bar);
    let shown = steps::RunOutput {
        faults: faults::run_steps(args, compiled)?,
        compared,
        profile: profiled,
        cells: args.profile_options.cells,
        trace: args.trace.as_deref(),
    };
    steps::write_runs(compiled, shown, &runs, terminal)
}

/// A false bound is a bug in conset if the program was compiled here, and otherwise a wrong claim of
/// the file.
pub(crate) fn run_failure(error: &ExecutionError, compiled_here: bool) -> CliError {
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

/// The report of some sets.
pub(crate) fn report<'a>(
    sets: impl Iterator<Item = &'a RunSummary>,
    parameters: &conset_ir::Parameters,
) -> ExecutionReport<'a> {
    let all: Vec<&RunSummary> = sets.collect();
    let clocks = all.iter().map(|s| s.measured_clocks).sum();
    let messages: Option<Vec<_>> = all.iter().map(|s| s.messages.as_ref()).collect();
    let bound_clocks = all.iter().map(|s| s.bound_clocks).sum();
    let total = SumOfSets {
        phases: all.iter().map(|s| s.phases).sum(),
        bound_phases: all.iter().map(|s| s.bound_phases).sum(),
        measured_clocks: clocks,
        predicted_clocks: all.iter().map(|s| s.predicted_clocks).sum(),
        bound_clocks,
        clocks_over_bound: conset::bound_ratio(clocks, bound_clocks),
        connections: all.iter().map(|s| s.connections).sum(),
        words: all.iter().map(|s| s.words).sum(),
        word_hops: all.iter().map(|s| s.word_hops).sum(),
        payload_ok: all.iter().all(|s| s.payload_ok),
        messages: messages
            .filter(|messages| !messages.is_empty())
            .map(|messages| MessagesSummary::sum(&messages, clocks, parameters)),
    };
    ExecutionReport {
        by: "phases",
        sets: all,
        total,
        compared: None,
        profile: None,
        faults: None,
        message_faults: None,
    }
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
        text::number(s.measured_clocks),
        s.clocks_over_bound,
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
            text::number(steps.measured_clocks),
            steps.planner,
            steps.clocks_over_phases,
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
        text::number(m.measured_clocks),
        m.order,
        m.clocks_over_phases,
        text::number(m.predicted_clocks),
        text::number(parameters.c_send.into()),
        text::number(parameters.c_receive.into()),
        m.megabytes_per_second,
        text::count(m.words, "word"),
        if m.payload_ok { "delivered, each once, in order, at the right cell" } else { "WRONG" },
    )
}

/// Writes the traces of all sets into one file, compressed if its name says so.
fn write_trace(path: &Path, sources: &mut [TraceSource<'_>]) -> Result<(), InputError> {
    OutputTarget::new(path).write(|out| {
        if path.extension().is_none_or(|extension| extension != "gz") {
            return write_perfetto(out, sources);
        }
        let mut compressed = GzEncoder::new(out, Compression::default());
        let mut buffer = io::BufWriter::new(&mut compressed);
        write_perfetto(&mut buffer, sources)?;
        buffer.flush()?;
        drop(buffer);
        compressed.finish().map(drop)
    })
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
