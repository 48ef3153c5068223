//! Executing a compiled program on the emulated fabric, and checking every word.
//!
//! The fabric gets only the image, so its result is independent of the compiler's own data. A run
//! that is faster than the lower bound of its set disproves the bound, and is an error.

use std::sync::Arc;

use conset_fabric::messages::{self, MessageOptions, MessageOrder, MessagesReport};
use conset_fabric::{Checked, Fault, run_checked};
use conset_ir::convert::{index, to_f64, to_u64};
use conset_ir::{Binding, ConnectionSet, Machine, SetSchedule};

use crate::compiled::Compiled;
use crate::report::{BoundOf, MessagesSummary, RunSummary, StepsComparison, megabytes_per_second};
use crate::steps::{StepCompiler, StepExecutionError};
use crate::{CompileError, bound_ratio};

/// The result of executing one set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetMeasurement {
    /// The report of the fabric.
    pub checked: Checked,
    /// The measured numbers with bound and prediction.
    pub summary: RunSummary,
    /// The report of the same set by message passing, if it was executed so too.
    pub messages: Option<MessagesReport>,
}

/// Why a program could not be executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The fabric stopped. With a verified image this is a bug in conset.
    #[error("the fabric stopped: {0}")]
    Fault(#[from] Fault),
    /// A set was faster than its lower bound, so the bound is false.
    #[error(
        "set `{set}` took {clocks} clocks, fewer than its lower bound of {bound}: \
         the bound by {by} is false"
    )]
    BoundBeaten {
        /// The set.
        set: String,
        /// Clocks measured.
        clocks: u64,
        /// Clocks of the bound.
        bound: u64,
        /// The kind of the bound.
        by: Binding,
    },
}

/// Executes every set of a compiled program in order, each on an idle machine. `seed` determines the
/// words sent; `trace` records streams and context switches.
///
/// # Errors
/// See [`ExecutionError`].
pub fn run(
    compiled: &Compiled,
    seed: u64,
    trace: bool,
    observer: &mut crate::Observer<'_>,
) -> Result<Vec<SetMeasurement>, ExecutionError> {
    observer(crate::Progress::Stage("running"));
    let total = to_u64(compiled.schedule().sets().len());
    let mut runs = Vec::new();
    for (row, schedule) in compiled.schedule().sets().iter().enumerate() {
        let checked = run_checked(compiled.image().clone(), row, seed, trace)?;
        check_bound(schedule, checked.report.clocks)?;
        let summary = summary(schedule, &checked);
        runs.push(SetMeasurement { checked, summary, messages: None });
        observer(crate::Progress::Done { done: to_u64(row) + 1, total });
    }
    Ok(runs)
}

fn check_bound(schedule: &SetSchedule, clocks: u64) -> Result<(), ExecutionError> {
    let (bound, by) = (schedule.bounds.clocks, schedule.bounds.clocks_by);
    if clocks >= bound {
        return Ok(());
    }
    let set = schedule.timetable.routing().set().name().to_owned();
    Err(ExecutionError::BoundBeaten { set, clocks, bound, by })
}

/// Predicted minus measured clocks, in percent of the measured ones.
pub(crate) fn model_error_percent(predicted: u64, measured: u64) -> f64 {
    match measured {
        0 => 0.0,
        _ => 100.0 * (to_f64(predicted) - to_f64(measured)) / to_f64(measured),
    }
}

fn summary(schedule: &SetSchedule, checked: &Checked) -> RunSummary {
    let routing = schedule.timetable.routing();
    let set = routing.set();
    let report = &checked.report;
    let parameters = routing.machine().parameters();
    let clocks_over_bound = bound_ratio(report.clocks, schedule.bounds.clocks);
    RunSummary {
        set: set.name().to_owned(),
        batches: None,
        phases: report.phases.len(),
        bound_phases: schedule.bounds.phases,
        bound_phases_by: schedule.bounds.phases_by,
        fewest_phases: report.phases.len() == index(schedule.bounds.phases),
        measured_clocks: report.clocks,
        predicted_clocks: schedule.predicted_clocks,
        bound_clocks: schedule.bounds.clocks,
        bound_clocks_by: schedule.bounds.clocks_by,
        clocks_over_bound,
        bound_of: BoundOf::of(set),
        model_error_percent: model_error_percent(schedule.predicted_clocks, report.clocks),
        connections: set.len(),
        words: report.words,
        word_hops: report.word_hops,
        payload_ok: checked.payload_ok && report.words == set.words(),
        megabytes_per_second: megabytes_per_second(report.words, report.clocks, parameters),
        messages: None,
        steps: None,
    }
}

/// Executes every set again by message passing on the same machine, in each of these orders of
/// sending, and adds the result of the fastest order to each summary. (All-to-all of 512 words on
/// 8x8 cells takes 1.15 times as long in the order of the set as in a random one.)
///
/// # Errors
/// A fault of the fabric: two cells without a path between them, or a deadlock.
///
/// # Panics
/// Without orders.
pub fn compare_with_messages(
    compiled: &Compiled,
    runs: &mut [SetMeasurement],
    options: &MessageOptions,
    orders: &[MessageOrder],
    observer: &mut crate::Observer<'_>,
) -> Result<(), Fault> {
    observer(crate::Progress::Stage("running messages"));
    let total = to_u64(runs.len());
    for (row, (schedule, run)) in compiled.schedule().sets().iter().zip(runs).enumerate() {
        let routing = schedule.timetable.routing();
        let (machine, set) = (routing.machine(), routing.set());
        let (order, report) = fastest(machine, set, options, orders)?;
        run.summary.messages = Some(MessagesSummary {
            order: order.name(),
            measured_clocks: report.clocks,
            predicted_clocks: messages::predict(machine, set),
            clocks_over_phases: bound_ratio(report.clocks, run.summary.measured_clocks),
            messages: report.messages,
            words: report.words,
            word_hops: report.word_hops,
            payload_ok: report.payload_ok && report.words == set.words(),
            megabytes_per_second: megabytes_per_second(
                report.words,
                report.clocks,
                machine.parameters(),
            ),
        });
        run.messages = Some(report);
        observer(crate::Progress::Done { done: to_u64(row) + 1, total });
    }
    Ok(())
}

/// Compiles the sets of a program to steps, executes them on the fabric, and adds the results to the
/// summaries of `runs`.
///
/// # Errors
/// What [`StepCompiler::compile`] and [`CompiledSteps::run`](crate::steps::CompiledSteps::run) refuse.
pub fn compare_with_steps(
    compiled: &Compiled,
    runs: &mut [SetMeasurement],
    seed: u64,
    observer: &mut crate::Observer<'_>,
) -> Result<(), StepComparisonError> {
    let schedule = compiled.schedule();
    let compiler = StepCompiler::new(schedule.machine()).seed(seed);
    let steps = compiler.compile(&schedule.program(), observer)?;
    observer(crate::Progress::Stage("running steps"));
    let measured = steps.run(seed, false)?;
    for ((run, step_run), search) in runs.iter_mut().zip(measured).zip(steps.searches()) {
        let summary = step_run.summary;
        let planner = search.trials.iter().find(|trial| trial.best);
        run.summary.steps = Some(StepsComparison {
            planner: planner.map(|trial| trial.planner.clone()).unwrap_or_default(),
            measured_clocks: summary.measured_clocks,
            predicted_clocks: summary.predicted_clocks,
            clocks_over_phases: bound_ratio(summary.measured_clocks, run.summary.measured_clocks),
            steps: summary.steps,
            messages: summary.messages,
            payload_ok: summary.payload_ok,
            megabytes_per_second: summary.megabytes_per_second,
        });
    }
    Ok(())
}

/// Why a program could not be compared with step plans.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepComparisonError {
    /// It could not be compiled to steps.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The plan could not be executed.
    #[error(transparent)]
    Execution(#[from] StepExecutionError),
}

/// The run in the fastest of these orders; of equal ones the first. A run that delivers wrong words
/// is returned at once.
fn fastest(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    options: &MessageOptions,
    orders: &[MessageOrder],
) -> Result<(MessageOrder, MessagesReport), Fault> {
    let mut best: Option<(MessageOrder, MessagesReport)> = None;
    for &order in orders {
        let report = messages::run_checked(machine, set, &options.with_order(order))?;
        let wrong = !report.payload_ok;
        if wrong || best.as_ref().is_none_or(|best| report.clocks < best.1.clocks) {
            best = Some((order, report));
        }
        if wrong {
            break;
        }
    }
    Ok(best.expect("there are orders"))
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, Connection, Program};

    use super::*;
    use crate::Compiler;

    #[test]
    fn a_run_that_is_faster_than_the_bound_is_an_error() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let row = Connection::new(CellId(0), CellId(1), 5);
        let set = ConnectionSet::new("s", vec![row]).unwrap();
        let program = Program::new(vec![Arc::new(set)]).unwrap();
        let compiled = Compiler::new(&machine).compile(&program).unwrap();
        let schedule = &compiled.schedule().sets()[0];
        let bound = schedule.bounds.clocks;
        assert!(check_bound(schedule, bound).is_ok());
        let error = check_bound(schedule, bound - 1).unwrap_err().to_string();
        assert!(error.contains(&format!("{} clocks", bound - 1)), "{error}");
        assert!(error.contains("is false"), "{error}");
    }
}
