//! Epochs and exchanges with unknown partners over MPI: the random programs of `common/epoch_cases.rs`, and a wrong use.

use conset_runtime::ir::{CellId, Image};
use conset_runtime::mpi::Comm;

use super::{epoch_cases, on};
use crate::build;

/// The same items in the same order as a sequential execution, with several cells on a rank too.
pub(crate) fn as_sequential(comm: &Comm) {
    let n = comm.size() as u32;
    for cells in [n, 2 * n + 1] {
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        let world = on(comm, Image::new(machine, Vec::new()).unwrap());
        for seed in 0..12 {
            let (logs, rounds) = epoch_cases::expected(seed, cells);
            let run = world.try_run(|cell| {
                let (log, found) = epoch_cases::settle(cell, seed)?;
                assert_eq!((&log, found), (&logs[cell.id().index()], rounds), "{seed} {cell:?}");
                epoch_cases::exchange(cell, seed)?;
                Ok(())
            });
            run.unwrap();
        }
    }
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
