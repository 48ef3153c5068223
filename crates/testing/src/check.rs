//! What must hold for every program: it is compiled, or refused because a connection has no way,
//! no channel or no phase left; no plan is refused on the way; the checker accepts the result; no
//! run and no prediction beats a bound; every word arrives, on the fabric and on threads.

use conset::ir::{ConnectionId, ConnectionSet, Program};
use conset::{CompileError, Compiler, run};
use conset_runtime::{ThreadOptions, Transport, World};

use crate::case::Case;

/// Words of a program up to which it is run: data are held word by word, however quickly the
/// fabric skips over them.
const RUN: u64 = 1 << 17;

/// Words of a program up to which it is run once more by programs that look at every word.
const LOOKED_AT: u64 = 1 << 13;

/// Compiles, checks and runs.
///
/// # Panics
/// Where anything is not as it must be.
pub fn check(case: &Case) {
    let Case { machine, program, options } = case;
    let compiled = match Compiler::new(machine).options(options.clone()).compile(program) {
        Ok(compiled) => compiled,
        Err(CompileError::Infeasible(refused)) => {
            assert!(!refused.connections.is_empty(), "refused without saying what: {refused}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(compiled.candidates_refused(), 0, "plans were refused");
    conset::verify::check_schedule(compiled.schedule()).expect("the schedule is accepted");
    // The image alone has to pass as well.
    conset::verify::check_image(compiled.image()).expect("the image is accepted");
    for schedule in compiled.schedule().sets() {
        let phases = schedule.timetable.phases().len();
        assert!(phases >= schedule.bounds.phases as usize, "{:?}", schedule.bounds);
    }
    let words: u64 = program.sets().iter().map(|set| set.words()).sum();
    if words > RUN {
        return;
    }
    let runs = run::run(&compiled, options.seed, false, &mut |_| ());
    for (run, set) in runs.expect("the fabric has no fault").iter().zip(program.sets()) {
        assert!(run.summary.payload_ok, "{:?}", run.checked);
        assert_eq!(run.summary.words, set.words());
        assert!(run.summary.clocks >= run.summary.bound_clocks, "{:?}", run.summary);
        assert!(run.summary.phases >= run.summary.bound_phases as usize, "{:?}", run.summary);
    }
    if words > LOOKED_AT {
        return;
    }
    for transport in [Transport::Fabric, Transport::Threads(ThreadOptions::workers(2))] {
        every_word(&World::new(compiled.image().clone()).on(transport), program);
    }
}

/// Every cell sends words that say which they are, and looks at all that come.
fn every_word(world: &World, program: &Program) {
    let word =
        |connection: ConnectionId, index: usize| (u64::from(connection.0) << 32) + index as u64;
    let row = |set: &ConnectionSet, connection: ConnectionId| -> Vec<u64> {
        let words = set.get(connection).words as usize;
        (0..words).map(|index| word(connection, index)).collect()
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
