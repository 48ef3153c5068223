//! Epochs and exchanges with unknown partners over MPI: the random programs of `common/epoch_cases.rs`, and a wrong use.

use std::time::Duration;

use conset_runtime::ir::{CellId, Image};
use conset_runtime::mpi::Comm;
use conset_runtime::{Cell, Routing};

use super::{epoch_cases, on};
use crate::build;

/// The same items in the same order as a sequential execution, with several cells on a rank too.
pub(crate) fn as_sequential(comm: &Comm) {
    let n = comm.size() as u32;
    // The last are so many that rounds are routed unless that is set.
    for cells in [n, 2 * n + 1, 40] {
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        let world = on(comm, Image::new(machine, Vec::new()).unwrap());
        for seed in 0..12 {
            let (logs, rounds) = epoch_cases::expected(seed, cells);
            let run = world.try_run(|cell| {
                let ways = [Routing::Auto, Routing::Direct, Routing::Routed];
                cell.set_routing(ways[(seed % 3) as usize]);
                let (log, found) = epoch_cases::settle(cell, seed)?;
                assert_eq!((&log, found), (&logs[cell.id().index()], rounds), "{seed} {cell:?}");
                epoch_cases::exchange(cell, seed)?;
                Ok(())
            });
            run.unwrap();
        }
    }
}

/// Connections of known sets with sizes that only their sources know.
pub(crate) fn sized(comm: &Comm) {
    let n = comm.size() as u32;
    for cells in [n, 2 * n + 1] {
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        for seed in 0..6 {
            let set = epoch_cases::sized_set(seed, cells);
            let world = on(comm, build::build(&machine, set));
            let run = world.try_run(|cell| {
                epoch_cases::exchange_sized(cell, seed)?;
                epoch_cases::exchange(cell, seed)?;
                epoch_cases::exchange_sized(cell, seed + 1)
            });
            run.unwrap();
        }
    }
}

/// A cell exchanges words of another size, which ends the run and not the job.
pub(crate) fn sized_otherwise(comm: &Comm) {
    let machine = build::machine("ring:4", |_| ());
    let ring = build::set(&[(0, 1, 3), (1, 2, 3), (2, 3, 3), (3, 0, 3)]);
    let run = on(comm, build::build(&machine, ring)).try_run(|cell| match cell.id() {
        CellId(2) => cell.exchange_sized("s", &[[1u16; 2]]).map(|_| ()),
        _ => cell.exchange_sized("s", &[[1u8; 2]]).map(|_| ()),
    });
    println!("failed: {}", run.expect_err("the run must fail"));
}

/// A cell opens with other items, which ends the run and not the job.
pub(crate) fn other_items(comm: &Comm) {
    let machine = build::machine("ring:4", |_| ());
    let world = on(comm, Image::new(machine, Vec::new()).unwrap());
    let run = world.try_run(|cell| match cell.id() {
        CellId(2) => cell.open::<[u8; 2]>().settle(|_, _, _| ()),
        _ => cell.open::<[u32; 1]>().settle(|_, _, _| ()),
    });
    println!("failed: {}", run.expect_err("the run must fail"));
}

/// Runs fail while long lists are under way in the memory of programs: each ends with an error on all
/// ranks, and the next one delivers. One cell panics before it exchanges, at once or late, exchanges other
/// words, or panics after it has exchanged.
pub(crate) fn long_lists_of_failed_runs(comm: &Comm) {
    let n = comm.size() as u32;
    for cells in [n, 2 * n + 1] {
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        let world = on(comm, Image::new(machine, Vec::new()).unwrap());
        let list = |from: u32, to: u32| -> Vec<u64> {
            (0..20_000).map(|word| u64::from(from << 24 | to << 16) + word).collect()
        };
        let exchange = |cell: &mut Cell<'_>| {
            let id = cell.id().0;
            let lists: Vec<(CellId, Vec<u64>)> = [1, 2, n]
                .map(|step| (id + step) % cells)
                .into_iter()
                .map(|to| (CellId(to), list(id, to)))
                .collect();
            let lists: Vec<(CellId, &[u64])> = lists.iter().map(|(to, l)| (*to, &l[..])).collect();
            cell.exchange_any(&lists)
        };
        for way in 0..4 {
            let failed = world.try_run(|cell| match (cell.id(), way) {
                (CellId(1), 0) => panic!("it has not come"),
                (CellId(1), 1) => {
                    std::thread::sleep(Duration::from_millis(1500));
                    panic!("it comes late")
                }
                (CellId(1), 2) => cell.exchange_any(&[(CellId(0), &[1u16; 9000])]).map(drop),
                (CellId(1), _) => {
                    exchange(cell)?;
                    panic!("it goes away")
                }
                // Those that do not fail go on to where they wait for the one that does.
                _ => exchange(cell).and_then(|_| exchange(cell)).map(drop),
            });
            failed.expect_err("the run must fail");
            let run = world.try_run(|cell| {
                let id = cell.id().0;
                let found = exchange(cell)?;
                let mut sources = [1, 2, n].map(|step| (id + cells - step % cells) % cells);
                sources.sort_unstable();
                let expected = sources.map(|from| (CellId(from), list(from, id)));
                // Not `assert_eq`, which would print all words.
                assert!(found == expected, "{way} {cell:?}");
                Ok(())
            });
            run.unwrap();
        }
    }
}
