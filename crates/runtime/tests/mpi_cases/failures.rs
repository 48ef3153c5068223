//! Runs that fail, cells that are slow, and what the job makes of them.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use conset_runtime::ir::{CellId, ConnectionId, ConnectionSet};
use conset_runtime::mpi::{Comm, MpiError};
use conset_runtime::{Cell, CellError, RunError, Transport, World};

use super::{fails, on, ring, same_as_on_the_fabric, skips, sums_of_exchanges};
use crate::build;

pub(super) fn missing_rank(comm: &Comm) {
    if comm.rank() == 3 {
        std::thread::sleep(Duration::from_secs(50));
        return;
    }
    let _ = on(comm, ring(comm.size(), 3)).try_run(sums_of_exchanges);
}

pub(super) fn missing_cell(comm: &Comm) {
    // One exchange: only the next cell waits, and not others for it.
    let comm = &patient(comm);
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(3) {
            return Ok(());
        }
        cell.exchange("s", &[[1.0; 3]], &mut [[0.0; 3]])
    });
    fails(comm, result);
}

pub(super) fn busy_cell(comm: &Comm) {
    let _ = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(3) {
            std::thread::sleep(Duration::from_secs(50));
        }
        sums_of_exchanges(cell)
    });
}

/// A world with two sets of the same connections, `s` and `t`.
pub(super) fn two_sets(comm: &Comm, pairs: impl Fn(u32) -> Vec<(u32, u32, u32)>) -> World {
    let machine = build::machine(&format!("ring:{}", comm.size()), |_| ());
    let set = |name| {
        let set = build::set(&pairs(comm.size() as u32));
        ConnectionSet::new(name, set.connections().to_vec()).unwrap()
    };
    let image = build::build_all(&machine, [set("s"), set("t")]);
    World::new(image).on(Transport::Mpi(comm.clone()))
}

pub(super) fn exchange_of(cell: &mut Cell<'_>, set: &str) -> Result<(), CellError> {
    let words = cell.image().sets()[0].set.connections()[0].words as usize;
    let out = vec![vec![1.0; words]; cell.connections_out(set)?.len()];
    let mut inn = vec![vec![0.0; words]; cell.connections_in(set)?.len()];
    cell.exchange(set, &out, &mut inn)
}

/// With a time-out so long that the ranks have compared what they wait for before one of them gives
/// up, on a busy computer too.
pub(super) fn patient(comm: &Comm) -> Comm {
    comm.clone().timeout(Duration::from_secs(20))
}

/// Cells exchange two sets in an order of their own, each with the next, in messages that are only
/// sent when they are awaited.
pub(super) fn unlike_sets(comm: &Comm, order: impl Fn(CellId) -> [&'static str; 2] + Sync) {
    let comm = &patient(comm);
    let world = two_sets(comm, |n| (0..n).map(|c| (c, (c + 1) % n, 5000)).collect());
    let result = world.try_run(|cell| {
        exchange_of(cell, "s")?;
        order(cell.id()).iter().try_for_each(|&set| exchange_of(cell, set))
    });
    fails(comm, result);
}

/// One cell switches while another exchanges.
pub(super) fn mixed(comm: &Comm) {
    let comm = &patient(comm);
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(2) { cell.instantiate_phase("s/p0") } else { exchange_of(cell, "s") }
    });
    fails(comm, result);
}

/// Another order that nobody waits for is found when the ranks meet.
pub(super) fn unlike_order(comm: &Comm) {
    let world = two_sets(comm, |_| vec![(0, 1, 3)]);
    let program = |cell: &mut Cell<'_>| {
        let sets = if cell.id() == CellId(2) { ["t", "s"] } else { ["s", "t"] };
        sets.iter().try_for_each(|&set| exchange_of(cell, set))
    };
    let error = world.try_run(program).unwrap_err();
    let expected = "c0 switches to the exchange of s while c2 switches to the exchange of t";
    assert_eq!(error.to_string(), expected);
    // The communicator is as good as before.
    same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
    let own = Comm::alone().unwrap().timeout(Duration::from_millis(400));
    let world = World::new(world.image().clone()).on(Transport::Mpi(own));
    let error = world.try_run(program).unwrap_err();
    assert!(matches!(error, RunError::Disagree { second: CellId(2), .. }), "{error}");
}

/// A cell skips a call or makes one twice, as drawn; no word of another round may come.
pub(super) fn skipped_or_repeated(comm: &Comm, seed: u64) {
    let cells = 2 * comm.size() as u32;
    let (image, plans) = skips::plans(cells);
    let script = skips::drawn(seed, cells, 5);
    let says = [skips::Says::Place, skips::Says::Round][seed as usize % 2];
    let wrong = AtomicUsize::new(0);
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let result = world.try_run(|cell| skips::perform(cell, &plans, &script, says, &wrong));
    fails(comm, result);
}

/// A cell skips the exchange of a set in which it has no part, so that its words of the next come
/// one call too early.
pub(super) fn skipped_between_sets(comm: &Comm) {
    let cells = comm.size() as u32;
    let machine = build::machine(&format!("ring:{cells}"), |_| ());
    let ring: Vec<_> = (0..cells).map(|c| (c, (c + 1) % cells, 1)).collect();
    let apart = [(0, 1, 1), (1, 0, 1)];
    let set = |name, pairs: &[(u32, u32, u32)]| {
        ConnectionSet::new(name, build::set(pairs).connections().to_vec()).unwrap()
    };
    let image = build::build_all(&machine, [set("s", &ring), set("t", &apart)]);
    let comm = &patient(comm);
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    let result = world.try_run(|cell| {
        if cell.id() != CellId(3) {
            exchange_of(cell, "t")?;
        }
        exchange_of(cell, "s")
    });
    fails(comm, result);
}

pub(super) fn missing_word(comm: &Comm) {
    let _ = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        cell.instantiate_phase("s/p0")?;
        let from = cell.connections_in(0)?[0];
        if from == ConnectionId(3) { cell.receive_element::<f64>(from) } else { Ok(0.0) }
    });
}

pub(super) fn killed_rank(comm: &Comm) {
    let _ = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        for round in 0..1000 {
            sums_of_exchanges(cell)?;
            if cell.id() == CellId(1) && round == 3 {
                std::process::abort();
            }
        }
        Ok(())
    });
}

pub(super) fn panic_in_a_program(comm: &Comm) {
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        sums_of_exchanges(cell)?;
        assert_ne!(cell.id(), CellId(3), "the third cell gave up");
        sums_of_exchanges(cell)
    });
    fails(comm, result);
}

/// A panic of a program is an error of the run: that of the rank, and of the others.
pub(super) fn panics_are_errors(comm: &Comm) {
    for last in 0..comm.size() as u32 {
        let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
            sums_of_exchanges(cell)?;
            assert_ne!(cell.id().0, last, "no more");
            sums_of_exchanges(cell)
        });
        match result.unwrap_err() {
            RunError::Panic { cell, message } => {
                assert_eq!((cell.0, comm.rank() as u32), (last, last));
                assert!(message.contains("no more"), "{message}");
            }
            RunError::Mpi(MpiError::Elsewhere { rank, error }) => {
                assert_eq!(rank as u32, last);
                assert!(error.contains("panicked: ") && error.contains("no more"), "{error}");
            }
            error => panic!("{error}"),
        }
        same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
    }
}

/// A panic that the program catches is no failure: neither within a run nor after one.
pub(super) fn caught_panics(comm: &Comm) {
    let caught = || std::panic::catch_unwind(|| panic!("caught by the program")).is_err();
    let (results, _) = on(comm, ring(comm.size(), 3))
        .try_run(|cell| {
            sums_of_exchanges(cell)?;
            assert!(caught());
            sums_of_exchanges(cell)
        })
        .unwrap();
    assert_eq!(results.len(), 1);
    assert!(caught());
    same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
}

/// Cells that exchange a set in words of other sizes do not make the same call.
pub(super) fn unlike_word_sizes(comm: &Comm) {
    let comm = &patient(comm);
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(3) {
            cell.exchange("s", &[[1.0f32; 3]], &mut [[0.0f32; 3]])
        } else {
            cell.exchange("s", &[[1.0f64; 3]], &mut [[0.0f64; 3]])
        }
    });
    let text = result.unwrap_err().to_string();
    assert!(text.contains("words of 4 bytes") && text.contains("words of 8 bytes"), "{text}");
    same_as_on_the_fabric(comm, &Arc::new(ring(comm.size(), 3)), sums_of_exchanges);
}

/// The others wait for a cell that is slow, say so, and go on.
pub(super) fn slow_cell(comm: &Comm) {
    let comm = &comm.clone().report_after(Duration::from_millis(300));
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(3) {
            std::thread::sleep(Duration::from_secs(2));
        }
        sums_of_exchanges(cell)
    });
    assert!(result.is_ok(), "{result:?}");
}

pub(super) fn stack_overflow(comm: &Comm) {
    fn recurse(left: u64) -> u64 {
        let frame = std::hint::black_box([left; 32]);
        if left == 0 { 1 } else { recurse(left - 1) + frame[31].min(1) }
    }
    let _ = on(comm, ring(comm.size(), 3)).stack_size(1 << 16).try_run(|cell| {
        if cell.id() == CellId(2) {
            std::hint::black_box(recurse(u64::MAX));
        }
        sums_of_exchanges(cell)
    });
}

pub(super) fn panic_outside(comm: &Comm) {
    comm.abort_on_panic();
    assert_ne!(comm.rank(), 2, "a rank gave up");
    let _ = on(comm, ring(comm.size(), 3)).try_run(sums_of_exchanges);
}

pub(super) fn error_of_a_cell(comm: &Comm) {
    let result = on(comm, ring(comm.size(), 3)).try_run(|cell| {
        if cell.id() == CellId(2) {
            cell.connections_in("nothing")?
        } else {
            &[]
        };
        sums_of_exchanges(cell)
    });
    fails(comm, result);
}
