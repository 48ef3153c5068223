//! Direct messages and the collectives without trees over MPI: the programs of
//! `common/library_cases.rs`, with one cell on a rank, with several and with none, and wrong uses.

use conset_runtime::ir::{CellId, Image};
use conset_runtime::mpi::Comm;
use conset_runtime::{Cell, CellError, World};

use super::library_cases::{asynchronous, direct, moves, plans, reduce};
use super::on;
use crate::build;

fn worlds(comm: &Comm) -> impl Iterator<Item = (u32, World)> {
    let ranks = comm.size() as u32;
    [ranks, 2 * ranks + 1, ranks.div_ceil(2)].into_iter().map(move |cells| {
        let machine = build::machine(&format!("ring:{cells}"), |_| ());
        (cells, on(comm, Image::new(machine, Vec::new()).unwrap()))
    })
}

/// Words of every size arrive, few and many.
pub(crate) fn messages(comm: &Comm) {
    for (_, world) in worlds(comm) {
        for seed in 0..3 {
            let run = world.try_run(|cell| {
                direct::<f64>(cell, seed)?;
                direct::<u8>(cell, seed)?;
                direct::<i16>(cell, seed)?;
                asynchronous(cell, seed)
            });
            run.unwrap();
        }
    }
}

/// Words of one size sent are received as another.
pub(crate) fn other_sizes(comm: &Comm) {
    for (_, world) in worlds(comm) {
        let run = world.try_run(|cell| {
            let last = CellId(cell.cell_count() as u32 - 1);
            for count in [1, 3001] {
                if cell.id() == CellId(0) && last != CellId(0) {
                    cell.send(last, &vec![7u32; count])?;
                } else if cell.id() == last && last != CellId(0) {
                    let mut words = vec![0u8; count];
                    cell.receive(CellId(0), &mut words)?;
                    assert_eq!(words, vec![7; count]);
                }
            }
            Ok(())
        });
        run.unwrap();
    }
}

/// Collectives, with long arrays too.
pub(crate) fn collectives(comm: &Comm) {
    for (cells, world) in worlds(comm) {
        let run = world.try_run(|cell| {
            for (seed, each) in [(0, 1), (1, 3), (2, 0), (3, 2000)] {
                moves(cell, seed, each)?;
            }
            for (seed, blocks) in [(1, 0), (2, 1), (3, 5), (4, 3000)] {
                for plan in plans(cells as usize, 2 * blocks) {
                    reduce(cell, &plan, (seed, blocks))?;
                }
            }
            Ok(())
        });
        run.unwrap();
    }
}

/// A cell fails while others have many words under way or wait for replies; then the communicator
/// serves another run.
pub(crate) fn failures(comm: &Comm) {
    type Program = fn(&mut Cell<'_>) -> Result<(), CellError>;
    let programs: [(Program, &str); 3] = [
        (
            |cell| match cell.id() {
                CellId(0) => cell.send(CellId(1), &vec![1.5; 100_000]),
                CellId(1) => Err(cell.abort("nothing is received")),
                _ => Ok(()),
            },
            "nothing is received",
        ),
        (
            |cell| match cell.id() {
                CellId(0) => cell.send(CellId(1), &vec![1.5; 100_000]),
                CellId(1) => cell.receive(CellId(0), &mut vec![1.5; 100_001]),
                _ => Ok(()),
            },
            "c1: message from c0: expected 100001 words, found 100000",
        ),
        (
            |cell| {
                let cells = cell.cell_count() as u32;
                let own = cell.id().0;
                let (target, source) =
                    (CellId((own + 1) % cells), CellId((own + cells - 1) % cells));
                let (out, mut incoming) = (vec![1u8; 1 << 20], vec![0u8; 1 << 20]);
                for round in 0..50 {
                    cell.send_receive(target, &out, source, &mut incoming)?;
                    if round == 20 && own == 1 {
                        return Err(cell.abort("in the middle"));
                    }
                }
                Ok(())
            },
            "in the middle",
        ),
    ];
    for (program, expected) in programs {
        let machine = build::machine(&format!("ring:{}", comm.size()), |_| ());
        let world = on(comm, Image::new(machine, Vec::new()).unwrap());
        let found = world.try_run(program).expect_err("the run must fail").to_string();
        assert!(found.contains(expected), "{found}");
        let run = world.try_run(|cell| direct::<f64>(cell, 5));
        run.unwrap();
    }
}
