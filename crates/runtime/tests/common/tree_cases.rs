//! Images with trees, the results of collectives done directly, and programs that several tests run.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_runtime::ir::{CellId, Image, LinkId, Machine, SetImage};
use conset_runtime::{Cell, CellError, Collectives, Number, Op, tree_sets};
use conset_scheduler::steps::{Levels, StepOrder};

use crate::build;

/// The three trees of a machine, compiled to phases.
pub(crate) fn in_phases(machine: &Arc<Machine>, words: u32) -> Arc<Image> {
    build::build_all(machine, tree_sets(machine, words).unwrap())
}

/// The same compiled to steps.
pub(crate) fn in_steps(machine: &Arc<Machine>, words: u32) -> Arc<Image> {
    let planner = Levels::direct(machine, StepOrder::ALL[0]);
    let protocol = machine.parameters().protocol;
    let mut routes = MessageRoutes::new(machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let sets = tree_sets(machine, words).unwrap().map(|set| {
        SetImage::of_steps(planner.plan(machine, &Arc::new(set), protocol, &mut route).unwrap())
    });
    Arc::new(Image::new(machine.clone(), sets.to_vec()).unwrap())
}

/// The own value, then the branches of the children: cell numbers among the live cells.
pub(crate) fn branch<W: Number>(values: &[Vec<W>], op: Op, node: usize) -> Vec<W> {
    let mut result = values[node].clone();
    let mut bit = 1;
    while (node == 0 || node & bit == 0) && node + bit < values.len() {
        let child = branch(values, op, node + bit);
        result.iter_mut().zip(child).for_each(|(own, child)| *own = op.apply(*own, child));
        bit <<= 1;
    }
    result
}

/// Values whose sum depends on the order of the summands.
pub(crate) fn value(cell: usize, place: usize) -> f64 {
    1.0 / (1.0 + cell as f64) * 1e3f64.powi(((cell * 5 + place) % 9) as i32 - 4)
}

/// Makes collectives of all kinds with arrays of these lengths, and counts the cells' results that
/// are wrong. Lengths may exceed what the trees carry at a time.
pub(crate) fn wrong_results(
    cell: &mut Cell<'_>,
    trees: &Collectives,
    lengths: &[usize],
) -> Result<usize, CellError> {
    let cells: Vec<CellId> = cell.image().machine().endpoints().collect();
    let node = cells.binary_search(&cell.id()).unwrap();
    let mut wrong = 0;
    for (round, &length) in lengths.iter().enumerate() {
        let values: Vec<Vec<f64>> =
            (0..cells.len()).map(|c| (0..length).map(|i| value(c, i + round)).collect()).collect();
        let from = (7 * round + 3) % cells.len();
        for op in [Op::Add, Op::Max] {
            let sums = branch(&values, op, 0);
            let mut x = values[node].clone();
            cell.allreduce(trees, op, &mut x)?;
            wrong += usize::from(bits(&x) != bits(&sums));
            // Nobody waits for the others here.
            let mut x = values[node].clone();
            cell.reduce(trees, op, &mut x)?;
            wrong += usize::from(bits(&x) != bits(&branch(&values, op, node)));
        }
        for from in [from, 0] {
            let mut x: Vec<f32> = values[node].iter().map(|&x| x as f32).collect();
            cell.broadcast(trees, cells[from], &mut x)?;
            let expected: Vec<f32> = values[from].iter().map(|&x| x as f32).collect();
            wrong += usize::from(bits(&x) != bits(&expected));
        }
        let greatest = cell.allreduce_max_at(trees, (node % 3) as i64, node as u64)?;
        let most = (cells.len() - 1).min(2);
        wrong += usize::from(greatest != (most as i64, most as u64));
        cell.barrier(trees)?;
    }
    Ok(wrong)
}

fn bits<W: Number>(x: &[W]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Every cell but the first sends its parent in the tree a message of the program's own, which the
/// parent reads only after a collective; and the other way round.
pub(crate) fn with_own_messages(
    cell: &mut Cell<'_>,
    trees: &Collectives,
) -> Result<usize, CellError> {
    let (id, cells) = (cell.id().0, cell.cell_count() as u32);
    let parent = CellId(id & id.saturating_sub(1));
    let children: Vec<CellId> = (0..32)
        .map(|bit| 1 << bit)
        .take_while(|bit| id & bit == 0 && id + bit < cells)
        .map(|bit| CellId(id + bit))
        .collect();
    let mut wrong = 0;
    for round in 0..3 {
        let own = 1000.0 * f64::from(round);
        if id > 0 {
            cell.msg_send(parent, &[own + f64::from(id)])?;
        }
        let mut sum = [f64::from(id + round)];
        cell.allreduce(trees, Op::Add, &mut sum)?;
        wrong += usize::from(sum != [f64::from(cells * (cells - 1) / 2 + cells * round)]);
        for &child in &children {
            cell.msg_send(child, &[own - f64::from(child.0)])?;
        }
        let mut last = [f64::from(id)];
        cell.broadcast(trees, CellId(cells - 1), &mut last)?;
        wrong += usize::from(last != [f64::from(cells - 1)]);
        let mut word = [0.0];
        for &child in &children {
            cell.msg_receive(child, &mut word)?;
            wrong += usize::from(word != [own + f64::from(child.0)]);
        }
        if id > 0 {
            cell.msg_receive(parent, &mut word)?;
            wrong += usize::from(word != [own - f64::from(id)]);
        }
    }
    Ok(wrong)
}

/// Starts reductions of these lengths, completes them in an order that differs from cell to cell, and
/// counts the results that are wrong. In between are nothing, other collectives, or tests.
pub(crate) fn wrong_started(
    cell: &mut Cell<'_>,
    trees: &Collectives,
    lengths: &[usize],
) -> Result<usize, CellError> {
    let cells: Vec<CellId> = cell.image().machine().endpoints().collect();
    let node = cells.binary_search(&cell.id()).unwrap();
    let mut wrong = 0;
    for round in 0..3 {
        let mut pending = Vec::new();
        for (row, &length) in lengths.iter().enumerate() {
            let of = |c| (0..length).map(|i| value(c, i + row + round)).collect();
            let values: Vec<Vec<f64>> = (0..cells.len()).map(of).collect();
            let mut x = values[node].clone();
            let token = cell.start_allreduce(trees, Op::Add, &x)?;
            x.fill(f64::NAN);
            pending.push((token, branch(&values, Op::Add, 0)));
        }
        if round == 1 {
            let mut most = [node as u32];
            cell.allreduce(trees, Op::Max, &mut most)?;
            wrong += usize::from(most != [cells.len() as u32 - 1]);
        }
        pending.rotate_left((node + round) % lengths.len());
        for (token, expected) in pending {
            while round == 2 && !cell.test(&token)? {}
            let mut x = vec![f64::NAN; expected.len()];
            cell.wait_allreduce(token, &mut x)?;
            wrong += usize::from(bits(&x) != bits(&expected));
        }
    }
    Ok(wrong)
}
