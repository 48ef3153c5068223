//! The properties that must hold for every program.
//!
//! The program is compiled, or rejected because a connection has no route, no channel or no phase
//! left. The checker rejects no plan and accepts the result. No run and no prediction is below a
//! bound. Every word arrives, on the fabric and on threads.

use conset::ir::convert::{index, to_u64};
use conset::ir::{ConnectionId, ConnectionSet, Program};
use conset::{CompileError, Compiler, run};
use conset_runtime::{ThreadOptions, Transport, World};

use crate::case::Case;

/// The largest number of words of a program that is run: buffers hold every word, however fast the
/// fabric skips.
const MAX_RUN_WORDS: u64 = 1 << 17;

/// The largest number of words of a program that is also run by cell programs, which examine every
/// word.
const MAX_EXAMINED_WORDS: u64 = 1 << 13;

/// Compiles, verifies and runs a case.
///
/// # Panics
/// If a property does not hold.
pub fn check(case: &Case) {
    let Case { machine, program, options } = case;
    let compiled = match Compiler::new(machine).options(options.clone()).compile(program) {
        Ok(compiled) => compiled,
        Err(CompileError::Infeasible(refused)) => {
            assert!(!refused.connections.is_empty(), "rejected without a connection: {refused}");
            return;
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
    let words: u64 = program.sets().iter().map(|set| set.words()).sum();
    if words > MAX_RUN_WORDS {
        return;
    }
    let runs = run::run(&compiled, options.seed, false, &mut |_| ());
    for (run, set) in runs.expect("the fabric has no fault").iter().zip(program.sets()) {
        assert!(run.summary.payload_ok, "{:?}", run.checked);
        assert_eq!(run.summary.words, set.words());
        assert!(run.summary.measured_clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        assert!(run.summary.phases >= index(run.summary.bound_phases), "{:?}", run.summary);
    }
    if words > MAX_EXAMINED_WORDS {
        return;
    }
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        every_word(&World::new(compiled.image().clone()).on(transport), program);
    }
}

/// Every cell sends words that identify themselves and compares all words that it receives.
fn every_word(world: &World, program: &Program) {
    let word =
        |connection: ConnectionId, number: usize| (u64::from(connection.0) << 32) + to_u64(number);
    let row = |set: &ConnectionSet, connection: ConnectionId| -> Vec<u64> {
        let words = index(set.get(connection).words);
        (0..words).map(|number| word(connection, number)).collect()
    };
    let (_, report) = world
        .try_run(|cell| {
            for set in program.sets() {
                let rows = |ids: &[ConnectionId]| -> Vec<Vec<u64>> {
                    ids.iter().map(|&id| row(set, id)).collect()
                };
                let outgoing = rows(cell.connections_out(set.name())?);
                let expected = rows(cell.connections_in(set.name())?);
                let mut incoming: Vec<Vec<u64>> =
                    expected.iter().map(|words| vec![u64::MAX; words.len()]).collect();
                cell.exchange(set.name(), &outgoing, &mut incoming)?;
                assert_eq!(incoming, expected, "at {}", cell.id());
            }
            Ok(())
        })
        .expect("the run has no error");
    assert_eq!(report.words, program.sets().iter().map(|set| set.words()).sum::<u64>());
}
