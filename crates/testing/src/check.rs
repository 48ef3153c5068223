//! The properties that must hold for every program.
//!
//! The program is compiled, or rejected because a connection has no route, no channel or no phase
//! left. The checker rejects no plan and accepts the result. No run and no prediction is below a
//! bound. Every word arrives, on the fabric and on threads.

use conset::fabric::Trace;
use conset::ir::convert::index;
use conset::ir::{ConnectionSet, Direction, Program};
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{CompileError, Compiled, Compiler, run};
use conset_runtime::{ThreadOptions, Transport};

use crate::case::Case;
use crate::cell_programs::every_word;

/// The largest number of words of a program that is run: buffers hold every word, however fast the
/// fabric skips.
pub(crate) const MAX_RUN_WORDS: u64 = 1 << 17;

/// The largest number of words of a program that is also run by cell programs, which examine every
/// word.
pub(crate) const MAX_EXAMINED_WORDS: u64 = 1 << 13;

/// Compiles, verifies and runs a case.
///
/// # Panics
/// If a property does not hold.
pub fn check(case: &Case) {
    let Some(compiled) = compiles(Compiler::new(&case.machine), case, &case.program) else {
        return;
    };
    let words = words(&case.program);
    if words <= MAX_RUN_WORDS {
        runs(&compiled, case.options.seed);
    }
    if words <= MAX_EXAMINED_WORDS {
        every_word(compiled.image(), &case.program, &transports());
    }
}

/// The transports of this process.
pub(crate) fn transports() -> [Transport; 2] {
    [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))]
}

/// The words of all sets.
pub(crate) fn words(program: &Program) -> u64 {
    program.sets().iter().map(|set| set.words()).sum()
}

/// Compiles a program with the options of a case and checks the result; `None` if it was refused with a
/// reason.
///
/// # Panics
/// If the refusal has no reason, or the result is wrong.
pub(crate) fn compiles(compiler: Compiler<'_>, case: &Case, program: &Program) -> Option<Compiled> {
    let compiled = match compiler.options(case.options.clone()).compile(program) {
        Ok(compiled) => compiled,
        Err(CompileError::Infeasible(refused)) => {
            assert!(!refused.connections.is_empty(), "rejected without a connection: {refused}");
            return None;
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(compiled.candidates_refused(), 0, "plans were refused");
    conset::verify::check_schedule(compiled.schedule()).expect("the schedule is accepted");
    // The checker must accept the image alone too.
    conset::verify::check_image(compiled.image()).expect("the image is accepted");
    for schedule in compiled.schedule().sets() {
        let phases = schedule.timetable.phases().len();
        assert!(phases >= index(schedule.bounds.phases), "{:?}", schedule.bounds);
    }
    Some(compiled)
}

/// Compiles a program to steps; `None` if there is no path at all, or a message has no route or too many words.
///
/// # Panics
/// If there is another error, or the checker refused a plan.
pub(crate) fn compiles_steps(compiler: &StepCompiler, program: &Program) -> Option<CompiledSteps> {
    let steps = match compiler.compile(program, &mut |_| ()) {
        Ok(steps) => steps,
        Err(CompileError::Infeasible(_) | CompileError::Input(_)) => return None,
        Err(other) => panic!("steps: {other}"),
    };
    assert!(steps.searches().iter().all(|search| search.refused == 0), "step plans were refused");
    Some(steps)
}

/// Runs a compiled program on the fabric.
///
/// # Panics
/// If a word does not arrive, the order of a set is not kept, or a run is below a bound.
pub(crate) fn runs(compiled: &Compiled, seed: u64) {
    let runs = run::run(compiled, seed, true, &mut |_| ());
    let sets = compiled.schedule().sets().iter().map(|set| set.timetable.routing().set());
    for (run, set) in runs.expect("the fabric has no fault").iter().zip(sets) {
        assert!(run.summary.payload_ok, "{:?}", run.checked);
        assert_eq!(run.summary.words, set.words());
        assert!(run.summary.measured_clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        assert!(run.summary.phases >= index(run.summary.bound_phases), "{:?}", run.summary);
        keeps_order(set, run.checked.trace.as_ref().expect("it was requested"));
    }
}

/// No connection is sent before those ordered before it were received.
fn keeps_order(set: &ConnectionSet, trace: &Trace) {
    let streams = |connection, direction| {
        let streams = trace.streams.iter();
        streams.filter(move |s| (s.connection, s.direction) == (connection, direction))
    };
    for &(before, after) in set.order() {
        let received = streams(before, Direction::Receive).map(|stream| stream.close).max();
        let sent = streams(after, Direction::Send).map(|stream| stream.open).min();
        assert!(received <= sent, "{after} left at {sent:?}, {before} came in at {received:?}");
    }
}
