//! Conjugate gradients in an MPI program, without a callback: the five-point Laplacian of a square,
//! each rank with its own rows.
//!
//! A rank makes its rows with global columns ([`Attached::csr_halo`] gives local ones and the halo),
//! starts the exchange of ghosts, multiplies the rows that need none, completes it and multiplies the
//! others. The recurrence of Chronopoulos and Gear (Journal of Computational and Applied Mathematics
//! 25, 1989) needs both dot products of a step at the same time, by one reduction.

use std::ops::Range;

use conset_runtime::Op;
use conset_runtime::mpi::{Attached, AttachedRows, HaloError};

/// The most iterations.
const STEPS_LIMIT: usize = 10_000;

/// The rows of a rank.
struct Rows {
    pointers: Vec<usize>,
    values: Vec<f64>,
    local: AttachedRows,
    /// Rows that need no ghosts, and the others.
    inner: Vec<usize>,
    outer: Vec<usize>,
}

/// A rank's part of the solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The rows of this rank.
    pub rows: Range<u64>,
    /// Their unknowns.
    pub x: Vec<f64>,
    /// Iterations.
    pub steps: usize,
    /// The last residual, relative to the first one.
    pub residual: f64,
}

impl Rows {
    fn new(attached: &Attached, side: u64, rows: Range<u64>) -> Result<Self, HaloError> {
        let (mut pointers, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows.clone() {
            let (x, y) = (row % side, row / side);
            let mut entry = |inside: bool, column: u64, value: f64| {
                if inside {
                    columns.push(column);
                    values.push(value);
                }
            };
            entry(y > 0, row.wrapping_sub(side), -1.0);
            entry(x > 0, row.wrapping_sub(1), -1.0);
            entry(true, row, 4.0);
            entry(x + 1 < side, row + 1, -1.0);
            entry(y + 1 < side, row + side, -1.0);
            pointers.push(columns.len());
        }
        let owned = pointers.len() - 1;
        let pointers_64: Vec<u64> = pointers.iter().map(|&at| at as u64).collect();
        let local = attached.csr_halo(rows, &pointers_64, &columns)?;
        let needs_ghosts = |&row: &usize| {
            let entries = pointers[row]..pointers[row + 1];
            local.columns[entries].iter().any(|&column| column as usize >= owned)
        };
        let (outer, inner) = (0..owned).partition(needs_ghosts);
        Ok(Self { pointers, values, local, inner, outer })
    }

    fn product(&self, row: usize, x: &[f64]) -> f64 {
        let entries = self.pointers[row]..self.pointers[row + 1];
        let entries = entries.map(|at| self.values[at] * x[self.local.columns[at] as usize]);
        entries.sum()
    }

    /// `y = A x`.
    fn multiply(&mut self, x: &mut [f64], y: &mut [f64]) -> Result<(), HaloError> {
        let pending = self.local.halo.start(x, 1)?;
        self.inner.iter().for_each(|&row| y[row] = self.product(row, x));
        self.local.halo.wait(pending, x)?;
        self.outer.iter().for_each(|&row| y[row] = self.product(row, x));
        Ok(())
    }
}

/// Solves `A x = 1` on a square of `side` points on an edge, together with the other ranks.
///
/// # Errors
/// Those of the exchanges.
pub fn solve(attached: &Attached, side: u64, tolerance: f64) -> Result<Solution, HaloError> {
    let (rank, ranks) = (attached.rank() as u64, attached.size() as u64);
    let n = side * side;
    let rows = n * rank / ranks..n * (rank + 1) / ranks;
    let mut matrix = Rows::new(attached, side, rows.clone())?;
    let owned = matrix.pointers.len() - 1;
    let mut x = vec![0.0; owned];
    let mut r = vec![0.0; matrix.local.halo.entries()];
    r[..owned].fill(1.0);
    // The direction, and its product with the matrix.
    let (mut p, mut s) = (vec![0.0; owned], vec![0.0; owned]);
    let mut w = vec![0.0; owned];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mut first, mut last, mut alpha, mut steps) = (None, f64::INFINITY, f64::INFINITY, 0);
    loop {
        matrix.multiply(&mut r, &mut w)?;
        let mut sums = [dot(&r[..owned], &r[..owned]), dot(&r[..owned], &w)];
        attached.allreduce(Op::Add, &mut sums)?;
        let [rr, rw] = sums;
        let first = *first.get_or_insert(rr);
        if steps == STEPS_LIMIT || rr <= tolerance * tolerance * first {
            return Ok(Solution { rows, x, steps, residual: (rr / first).sqrt() });
        }
        // In the first step, `last` and `alpha` are infinite: beta is 0, alpha is rr / rw.
        let beta = rr / last;
        alpha = rr / (rw - beta * rr / alpha);
        for at in 0..owned {
            p[at] = r[at] + beta * p[at];
            s[at] = w[at] + beta * s[at];
            x[at] += alpha * p[at];
            r[at] -= alpha * s[at];
        }
        last = rr;
        steps += 1;
    }
}
