//! Collectives over MPI: by one message over each edge, with the bits of the other transports.

use std::sync::Arc;

use conset_runtime::ir::{CellId, Machine};
use conset_runtime::mpi::Comm;
use conset_runtime::{Cell, CellError, Collectives, Op, RunError, Transport, World};

use super::tree_cases::{in_phases, in_steps, with_own_messages, wrong_results};
use crate::build;

/// Longer than one message, and than as many as are under way at a time.
const LONG: usize = 140_000;

fn machines(comm: &Comm) -> Vec<Arc<Machine>> {
    let n = comm.size();
    // One cell to a rank, several, not equally many, and ranks without cells.
    let specs = [format!("ring:{n}"), format!("ring:{}", 2 * n + 1), "ring:3".to_owned()];
    let mut machines: Vec<_> = specs.iter().map(|spec| build::machine(spec, |_| ())).collect();
    let whole = Machine::from_spec("torus:4x4").unwrap();
    let (topology, parameters) = (whole.topology().clone(), whole.parameters().clone());
    let dead = [0, 5, 6].map(CellId).to_vec();
    machines.push(Arc::new(Machine::new("holes", topology, parameters, dead, vec![]).unwrap()));
    machines
}

pub(super) fn as_elsewhere(comm: &Comm) {
    for (row, machine) in machines(comm).iter().enumerate() {
        let image = in_phases(machine, 3);
        let trees = Collectives::new(&image).unwrap();
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let lengths = [1, 2, 40, 3, 0, 1000, 8190, 8191, 20_000, 1, 1, 7];
        let lengths = if row == 1 { &lengths[..] } else { &lengths[..6] };
        let (wrong, _) = world.try_run(|cell| wrong_results(cell, &trees, lengths)).unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0, "{}", machine.name());
    }
}

pub(super) fn long_arrays(comm: &Comm) {
    for cells in [comm.size(), comm.size() + 2] {
        let image = in_phases(&build::machine(&format!("ring:{cells}"), |_| ()), 1);
        let trees = Collectives::new(&image).unwrap();
        // What is expected takes some time, too.
        let world = World::new(image).on(Transport::Mpi(super::failures::patient(comm)));
        let (wrong, _) = world.try_run(|cell| wrong_results(cell, &trees, &[LONG, 2])).unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0);
    }
}

pub(super) fn own_messages(comm: &Comm) {
    for cells in [comm.size(), 2 * comm.size() + 1] {
        let machine = Machine::from_spec(&format!("fat-tree:{cells}")).unwrap();
        let image = in_steps(&Arc::new(machine), 1);
        let trees = Collectives::new(&image).unwrap();
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let (wrong, _) = world.try_run(|cell| with_own_messages(cell, &trees)).unwrap();
        assert_eq!(wrong.iter().sum::<usize>(), 0);
    }
}

/// All cells on one rank combine without MPI, and their errors are values.
pub(super) fn on_one_rank(_: &Comm) {
    let image = in_phases(&build::machine("ring:7", |_| ()), 1);
    let trees = Collectives::new(&image).unwrap();
    let world = World::new(image).on(Transport::Mpi(Comm::alone().unwrap()));
    let (wrong, _) = world.try_run(|cell| wrong_results(cell, &trees, &[LONG, 1, 9])).unwrap();
    assert_eq!(wrong.iter().sum::<usize>(), 0);
    let error = world.try_run(|cell| {
        let mut x = vec![1.0; if cell.id() == CellId(3) { 2 } else { 3 }];
        cell.allreduce(&trees, Op::Add, &mut x)
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Mismatch { .. }), "{error}");
}

/// Runs a program with trees that is to fail.
pub(super) fn fails(
    comm: &Comm,
    program: impl Fn(&mut Cell<'_>, &Collectives) -> Result<(), CellError> + Sync,
) {
    let image = in_phases(&build::machine(&format!("ring:{}", comm.size()), |_| ()), 1);
    let trees = Collectives::new(&image).unwrap();
    let world = World::new(image).on(Transport::Mpi(super::failures::patient(comm)));
    super::fails(comm, world.try_run(|cell| program(cell, &trees)));
}

pub(super) fn other_length(comm: &Comm) {
    fails(comm, |cell, trees| {
        cell.barrier(trees)?;
        let mut x = vec![1.0; if cell.id() == CellId(3) { 5 } else { 3 }];
        cell.allreduce(trees, Op::Add, &mut x)
    });
}

pub(super) fn skipped(comm: &Comm) {
    fails(comm, |cell, trees| {
        cell.barrier(trees)?;
        if cell.id() != CellId(3) {
            cell.allreduce(trees, Op::Add, &mut [1.0])?;
        }
        cell.allreduce(trees, Op::Add, &mut [2.0])
    });
}

/// One cell waits for an exchange of another set.
pub(super) fn other_set(comm: &Comm) {
    fails(comm, |cell, trees| {
        if cell.id() == CellId(3) {
            return cell.instantiate_messages();
        }
        cell.barrier(trees)
    });
}

pub(super) fn ended(comm: &Comm) {
    fails(comm, |cell, trees| match cell.id() == CellId(3) {
        true => Ok(()),
        false => cell.barrier(trees),
    });
}
