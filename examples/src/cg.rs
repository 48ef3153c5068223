//! Conjugate gradients, sequentially and on cells.
//!
//! The preconditioner is the diagonal. On cells every vector is *consistent*: all copies of a
//! shared node have the same value. A product with the matrix of a part lacks the contributions of
//! elements of other parts; [`Cell::sum_shared`] adds them, once in each iteration. An inner
//! product counts each node once, on its owner, the lowest cell that holds it.
//!
//! [`alone`] is an independent sequential implementation and not a run on one cell, so that
//! comparing the two is meaningful.

use conset_runtime::{Cell, CellError, Op};

use crate::assembled::Assembled;
use crate::sparse::{add_scaled, dot};
use crate::system::System;
use crate::team::Meter;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// The residual, as a fraction of the first one.
    pub tolerance: f64,
    /// The most iterations.
    pub iterations: usize,
}

/// What came of it; on a cell, for its part.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The unknowns.
    pub x: Vec<f64>,
    /// The residual after each iteration, as a fraction of the first one.
    pub residuals: Vec<f64>,
}

/// Operations on floating point numbers for each entry of a vector in one iteration: three inner
/// products, three sums of vectors, and the preconditioner.
const FLOPS_PER_UNKNOWN: usize = 15;

/// Solves a system of which this cell has a part.
///
/// # Errors
/// Only the end of the run.
pub fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    dealt: &Assembled,
    system: &System,
    stop: Stop,
) -> Result<Solution, CellError> {
    let matrix = &system.matrix;
    let size = matrix.rows();

    let trees = &dealt.trees;
    let own = dealt.owned(cell.id());
    let mut diagonal = matrix.diagonal();
    dealt.sum_shared(cell, &mut diagonal)?;

    let mut x = system.start.clone();
    let mut r = residual(system, &x);
    dealt.sum_shared(cell, &mut r)?;
    keep_free(&mut r, system);
    let mut z = divided(&r, &diagonal);
    let mut p = z.clone();
    let mut q = vec![0.0; size];

    let mut sums = [own_dot(&own, &r, &z), own_dot(&own, &r, &r)];
    cell.allreduce(trees, Op::Add, &mut sums)?;
    let [mut rz, first] = sums;

    let mut residuals = Vec::new();
    while residuals.len() < stop.iterations && !done(&residuals, first, stop) {
        matrix.times(&p, &mut q);
        meter.compute(cell, 2 * matrix.nonzeros() + FLOPS_PER_UNKNOWN * size)?;
        // Before the exchange: the parts' own terms add up to p . A p.
        let mut pq = [dot(&p, &q)];
        meter.exchange(cell, |cell| dealt.sum_shared(cell, &mut q))?;
        keep_free(&mut q, system);
        meter.collective(cell, |cell| cell.allreduce(trees, Op::Add, &mut pq))?;

        let alpha = rz / pq[0];
        add_scaled(&mut x, alpha, &p);
        add_scaled(&mut r, -alpha, &q);
        z = divided(&r, &diagonal);
        let mut sums = [own_dot(&own, &r, &z), own_dot(&own, &r, &r)];
        meter.collective(cell, |cell| cell.allreduce(trees, Op::Add, &mut sums))?;
        let beta = sums[0] / rz;
        rz = sums[0];
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        residuals.push((sums[1] / first).sqrt());
    }
    Ok(Solution { x, residuals })
}

/// Solves a whole system on one processor.
pub fn alone(system: &System, stop: Stop) -> Solution {
    let diagonal = system.matrix.diagonal();
    let mut x = system.start.clone();
    let mut r = residual(system, &x);
    keep_free(&mut r, system);
    let mut z = divided(&r, &diagonal);
    let mut p = z.clone();
    let mut q = vec![0.0; x.len()];
    let (mut rz, first) = (dot(&r, &z), dot(&r, &r));
    let mut residuals = Vec::new();
    while residuals.len() < stop.iterations && !done(&residuals, first, stop) {
        system.matrix.times(&p, &mut q);
        keep_free(&mut q, system);
        let alpha = rz / dot(&p, &q);
        add_scaled(&mut x, alpha, &p);
        add_scaled(&mut r, -alpha, &q);
        z = divided(&r, &diagonal);
        let next = dot(&r, &z);
        let beta = next / rz;
        rz = next;
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        residuals.push((dot(&r, &r) / first).sqrt());
    }
    Solution { x, residuals }
}

/// A first residual of 0 is a solution.
fn done(residuals: &[f64], first: f64, stop: Stop) -> bool {
    first == 0.0 || residuals.last().is_some_and(|&residual| residual <= stop.tolerance)
}

fn residual(system: &System, x: &[f64]) -> Vec<f64> {
    let mut r = vec![0.0; x.len()];
    system.matrix.times(x, &mut r);
    r.iter_mut().zip(&system.load).for_each(|(r, load)| *r = load - *r);
    r
}

fn keep_free(x: &mut [f64], system: &System) {
    x.iter_mut().zip(&system.free).filter(|(_, free)| !**free).for_each(|(x, _)| *x = 0.0);
}

/// An unknown that nothing depends on has 0 on the diagonal; it is not free.
fn divided(r: &[f64], diagonal: &[f64]) -> Vec<f64> {
    let entry = |(r, d): (&f64, &f64)| if *d == 0.0 { 0.0 } else { r / d };
    r.iter().zip(diagonal).map(entry).collect()
}

/// The cell's share of an inner product.
fn own_dot(own: &[bool], a: &[f64], b: &[f64]) -> f64 {
    own.iter().zip(a).zip(b).filter(|((own, _), _)| **own).map(|((_, a), b)| a * b).sum()
}
