//! Reductions that are started and completed later, on the emulated machine and on threads.

use std::sync::Arc;

use conset_runtime::ir::{CellId, Connection, ConnectionSet, Image, Machine};
use conset_runtime::{
    Cell, CellError, Collectives, Op, Pending, PlanUse, RunError, RunReport, ThreadOptions,
    Transport, World, tree_sets,
};

use crate::common::build;
use crate::tree_cases::{in_phases, in_steps, wrong_started};

fn threads(workers: usize) -> Transport {
    Transport::Threads(ThreadOptions::workers(workers))
}

fn run<R: Send>(
    transport: Transport,
    image: &Arc<Image>,
    program: impl Fn(&mut Cell<'_>, &Collectives) -> Result<R, CellError> + Sync,
) -> Result<(Vec<R>, RunReport), RunError> {
    let trees = Collectives::new(image).unwrap();
    World::new(image.clone()).on(transport).try_run(|cell| program(cell, &trees))
}

/// Trees, and a ring in which every cell sends two words to the next one.
fn with_ring(cells: u32) -> Arc<Image> {
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 12);
    let [_, _, allreduce] = tree_sets(&machine, 2).unwrap();
    let next = |c: u32| Connection::new(CellId(c), CellId((c + 1) % cells), 2);
    let ring = ConnectionSet::new("ring", (0..cells).map(next).collect()).unwrap();
    build::build_all(&machine, [ring, allreduce])
}

#[test]
fn bits_are_those_of_blocking_reductions() {
    let machines = ["ring:1", "ring:2", "ring:7", "mesh:5x3", "torus:4x4"];
    for machine in machines.map(|spec| build::machine(spec, |p| p.channels_per_cell = 12)) {
        let [reduce, broadcast, _] = tree_sets(&machine, 3).unwrap();
        let two_trees = build::build_all(&machine, [reduce, broadcast]);
        for image in [in_phases(&machine, 3), two_trees] {
            for transport in [Transport::Fabric, threads(1), threads(3)] {
                let lengths = [1, 0, 3, 40, 1, 2, 9, 1, 1, 5];
                let (wrong, _) =
                    run(transport, &image, |cell, trees| wrong_started(cell, trees, &lengths))
                        .unwrap();
                assert_eq!(wrong.iter().sum::<usize>(), 0, "{}", machine.name());
            }
        }
    }
    let machine = Arc::new(Machine::from_spec("fat-tree:6").unwrap());
    let image = in_steps(&machine, 1);
    for transport in [Transport::Fabric, threads(2)] {
        let (wrong, _) =
            run(transport, &image, |cell, trees| wrong_started(cell, trees, &[1, 4, 2])).unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0);
    }
}

/// On the emulated machine nothing is hidden, and nothing is added.
#[test]
fn started_and_completed_it_takes_the_clocks_of_a_blocking_one() {
    let image = in_phases(&build::machine("torus:4x4", |_| ()), 1);
    let blocking = run(Transport::Fabric, &image, |cell, trees| {
        let mut x = [f64::from(cell.id().0)];
        cell.allreduce(trees, Op::Add, &mut x)?;
        cell.compute(1000)?;
        Ok(x)
    });
    let halves = run(Transport::Fabric, &image, |cell, trees| {
        let mut x = [f64::from(cell.id().0)];
        let token = cell.start_allreduce(trees, Op::Add, &x)?;
        cell.wait_allreduce(token, &mut x)?;
        cell.compute(1000)?;
        Ok(x)
    });
    let (blocking, halves) = (blocking.unwrap(), halves.unwrap());
    assert_eq!((blocking.0, blocking.1.clocks), (halves.0, halves.1.clocks));
}

/// Exchanges and reductions under way together, completed in all orders; and single words in a phase
/// afterwards.
#[test]
fn beside_exchanges() {
    const CELLS: u32 = 5;
    let image = with_ring(CELLS);
    for transport in [Transport::Fabric, threads(1), threads(2), threads(5)] {
        let program = |cell: &mut Cell<'_>, trees: &Collectives| {
            let (id, mut wrong) = (cell.id().0, 0);
            let before = f64::from((id + CELLS - 1) % CELLS);
            for round in 0..40u32 {
                let own = f64::from(id + round);
                let token = cell.start_allreduce(trees, Op::Add, &[own])?;
                let mut sum = [f64::NAN];
                let order = (id + round) % 3;
                if order == 0 {
                    cell.wait_allreduce(token, &mut sum)?;
                }
                let mut incoming = [[0.0; 2]];
                cell.exchange("ring", &[[own, -own]], &mut incoming)?;
                let came = before + f64::from(round);
                wrong += usize::from(incoming != [[came, -came]]);
                if order == 1 {
                    while !cell.test(&token)? {}
                }
                if order > 0 {
                    cell.wait_allreduce(token, &mut sum)?;
                }
                let all = f64::from(CELLS * round + CELLS * (CELLS - 1) / 2);
                wrong += usize::from(sum != [all]);
            }
            Ok(wrong)
        };
        let (wrong, _) = run(transport, &image, program).unwrap();
        assert_eq!(wrong, [0; CELLS as usize]);
    }
}

/// The error that a program of one cell ends with.
fn fails(
    transport: Transport,
    program: impl Fn(&mut Cell<'_>, &Collectives, Pending) -> Result<(), CellError> + Sync,
) -> RunError {
    let image = with_ring(3);
    let found = run(transport, &image, |cell, trees| {
        let token = cell.start_allreduce(trees, Op::Add, &[1.0, 2.0])?;
        if cell.id() == CellId(1) {
            program(cell, trees, token)?;
        }
        cell.wait_allreduce(token, &mut [0.0; 2])
    });
    found.unwrap_err()
}

#[test]
fn wrong_uses_are_errors() {
    for transport in [Transport::Fabric, threads(2)] {
        let of_plan = |error: RunError| match error {
            RunError::Cell { cell: CellId(1), error: CellError::Plan(problem) } => problem,
            other => panic!("{other}"),
        };
        let transport = || transport.clone();
        let twice = fails(transport(), |cell, _, token| {
            cell.wait_allreduce(token, &mut [0.0; 2])?;
            cell.wait_allreduce(token, &mut [0.0; 2])
        });
        assert!(matches!(of_plan(twice), PlanUse::Ended { .. }));
        let length = fails(transport(), |cell, _, token| cell.wait_allreduce(token, &mut [0.0; 3]));
        assert!(matches!(of_plan(length), PlanUse::Length { begun: 2, found: 3, .. }));
        let kind = fails(transport(), |cell, _, token| cell.wait_allreduce(token, &mut [0u64; 2]));
        assert!(matches!(of_plan(kind), PlanUse::Type { begun: "f64", found: "u64", .. }));
        let other = fails(transport(), |cell, _, token| {
            let [_, run, number] = token.to_numbers();
            cell.wait_allreduce(Pending::from_numbers([0, run, number]), &mut [0.0; 2])
        });
        assert!(matches!(of_plan(other), PlanUse::OtherCell { .. }));
        let left = run(transport(), &with_ring(3), |cell, trees| {
            let _ = cell.start_allreduce(trees, Op::Add, &[1.0])?;
            Ok(())
        });
        let RunError::Cell { error: CellError::Plan(problem), .. } = left.unwrap_err() else {
            panic!("the program has left a reduction")
        };
        assert!(matches!(problem, PlanUse::Leaked { count: 1, .. }), "{problem}");
    }
}

#[test]
fn unlike_calls_are_found() {
    for transport in [Transport::Fabric, threads(1), threads(3)] {
        let unlike = run(transport.clone(), &with_ring(3), |cell, trees| {
            let op = if cell.id() == CellId(1) { Op::Max } else { Op::Add };
            let token = cell.start_allreduce(trees, op, &[1.0])?;
            cell.wait_allreduce(token, &mut [0.0])
        });
        assert!(matches!(unlike, Err(RunError::Mismatch { .. })), "{unlike:?}");
        // One cell never comes, and the others test for ever.
        let missing = run(transport, &with_ring(3), |cell, trees| {
            if cell.id() == CellId(1) {
                return Ok(());
            }
            let token = cell.start_allreduce(trees, Op::Add, &[1.0])?;
            while !cell.test(&token)? {}
            cell.wait_allreduce(token, &mut [0.0])
        });
        assert!(missing.is_err());
    }
}
