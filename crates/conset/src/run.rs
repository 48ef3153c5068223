//! Execution on the emulated fabric, every word checked.
//!
//! The fabric gets the image alone; that the words arrive is its finding, not a repetition of
//! what the compiler meant. A run that is faster than the set's lower bound disproves the bound, and
//! is an error: "optimal" would be a lie.

use conset_fabric::messages::{self, MessageOptions};
use conset_fabric::{Checked, Fault, run_checked};
use conset_ir::{Binding, Parameters, SetSchedule};

use crate::compile::{Compiled, bound_ratio};
use crate::report::{MessagesSummary, RunSummary};

/// What came of running one set.
#[derive(Clone, Debug)]
pub struct SetRun {
    /// The fabric's own account.
    pub checked: Checked,
    /// The numbers, beside bound and prediction.
    pub summary: RunSummary,
}

/// Why there are no runs.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The fabric stopped: with a checked image that is a bug of ours.
    #[error("the fabric stopped: {0}")]
    Fault(#[from] Fault),
    /// A set was faster than its lower bound, so what is said of it is not true.
    #[error(
        "set `{set}` took {clocks} clocks, and no schedule was to take fewer than {bound}: \
         its bound by {by} is false"
    )]
    BoundBeaten {
        /// The set.
        set: String,
        /// Clocks measured.
        clocks: u64,
        /// Clocks of the bound.
        bound: u64,
        /// What was to make it so.
        by: Binding,
    },
}

/// Runs every set of a compiled program, in order, each on a quiet machine.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    compiled: &Compiled,
    seed: u64,
    trace: bool,
    observer: &mut crate::Observer<'_>,
) -> Result<Vec<SetRun>, RunError> {
    observer(crate::Progress::Stage("running"));
    let total = compiled.schedule().sets().len() as u64;
    let mut runs = Vec::new();
    for (row, schedule) in compiled.schedule().sets().iter().enumerate() {
        let checked = run_checked(compiled.image().clone(), row, seed, trace)?;
        not_beaten(schedule, checked.report.clocks)?;
        let summary = summary(schedule, &checked);
        runs.push(SetRun { checked, summary });
        observer(crate::Progress::Done { done: row as u64 + 1, total });
    }
    Ok(runs)
}

fn not_beaten(schedule: &SetSchedule, clocks: u64) -> Result<(), RunError> {
    let (bound, by) = (schedule.bounds.clocks, schedule.bounds.clocks_by);
    if clocks >= bound {
        return Ok(());
    }
    let set = schedule.timetable.routing().set().name().to_owned();
    Err(RunError::BoundBeaten { set, clocks, bound, by })
}

fn summary(schedule: &SetSchedule, checked: &Checked) -> RunSummary {
    let routing = schedule.timetable.routing();
    let set = routing.set();
    let report = &checked.report;
    let parameters = routing.machine().parameters();
    let error = schedule.predicted_clocks as f64 - report.clocks as f64;
    let bound_ratio = bound_ratio(report.clocks, schedule.bounds.clocks);
    RunSummary {
        set: set.name().to_owned(),
        phases: report.phases.len(),
        bound_phases: schedule.bounds.phases,
        bound_phases_by: schedule.bounds.phases_by,
        fewest_phases: report.phases.len() == schedule.bounds.phases as usize,
        clocks: report.clocks,
        predicted_clocks: schedule.predicted_clocks,
        bound_clocks: schedule.bounds.clocks,
        bound_clocks_by: schedule.bounds.clocks_by,
        bound_ratio,
        gap: bound_ratio,
        model_error_percent: if report.clocks == 0 {
            0.0
        } else {
            100.0 * error / report.clocks as f64
        },
        connections: set.len(),
        words: report.words,
        word_hops: report.word_hops,
        payload_ok: checked.payload_ok && report.words == set.words(),
        megabytes_per_second: megabytes_per_second(report.words, report.clocks, parameters),
        messages: None,
    }
}

/// Runs every set once more by message passing, on the same machine, and puts the result beside
/// each run's own numbers.
///
/// # Errors
/// A fault of the fabric: two cells that no route joins, a deadlock.
pub fn against_messages(
    compiled: &Compiled,
    runs: &mut [SetRun],
    options: &MessageOptions,
    observer: &mut crate::Observer<'_>,
) -> Result<(), Fault> {
    observer(crate::Progress::Stage("running messages"));
    let total = runs.len() as u64;
    for (row, (schedule, run)) in compiled.schedule().sets().iter().zip(runs).enumerate() {
        let routing = schedule.timetable.routing();
        let (machine, set) = (routing.machine(), routing.set());
        let report = messages::run_checked(machine, set, options)?;
        run.summary.messages = Some(MessagesSummary {
            clocks: report.clocks,
            predicted_clocks: messages::predict(machine, set),
            ratio: bound_ratio(report.clocks, run.summary.clocks),
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
        observer(crate::Progress::Done { done: row as u64 + 1, total });
    }
    Ok(())
}

/// Aggregate bandwidth as in the paper's section 5.1: bytes over time, 1 MB = 10^6 bytes.
pub fn megabytes_per_second(words: u64, clocks: u64, parameters: &Parameters) -> f64 {
    if clocks == 0 {
        return 0.0;
    }
    let bytes = words as f64 * f64::from(parameters.word_bytes);
    bytes / clocks as f64 * f64::from(parameters.clock_hz) / 1e6
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{CellId, Connection, ConnectionSet, Machine, Program};

    use super::*;
    use crate::compile::{Options, compile};

    #[test]
    fn a_run_that_is_faster_than_the_bound_is_no_success() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let row = Connection::new(CellId(0), CellId(1), 5);
        let set = ConnectionSet::new("s", vec![row]).unwrap();
        let program = Program::new(vec![Arc::new(set)]).unwrap();
        let compiled = compile(&machine, &program, &Options::default(), &mut |_| ()).unwrap();
        let schedule = &compiled.schedule().sets()[0];
        let bound = schedule.bounds.clocks;
        assert!(not_beaten(schedule, bound).is_ok());
        let error = not_beaten(schedule, bound - 1).unwrap_err().to_string();
        assert!(error.contains(&format!("{} clocks", bound - 1)), "{error}");
        assert!(error.contains("is false"), "{error}");
    }
}
