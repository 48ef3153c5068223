//! The two-dimensional Fourier transform by rows and transposes.
//!
//! Each cell has a block of rows. It transforms them, all cells transpose the matrix together, each
//! transforms its new rows, which were columns, and they transpose back. A transpose is an
//! all-to-all exchange: each cell sends to each other cell the block where its rows meet the
//! columns of the other, with two words for each complex number.
//!
//! There is no plan and no layout: the set is made by hand (`transpose_set`), and the buffers of
//! [`Cell::exchange_by`] are the blocks, by phases or by messages.

use std::ops::Range;
use std::sync::Arc;

use conset::ir::{CellId, Connection, ConnectionSet, Machine};
use conset_runtime::{By, Cell, CellError};
pub use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlanner};

use crate::report::{Agreement, Report};
use crate::team::{Account, Meter, Team, TeamArgs};
use crate::{Failure, noise};

/// The spectrum.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// Rows, and columns.
    pub size: usize,
    /// Row behind row.
    pub values: Vec<Complex64>,
    /// The sum of squares of the values and of what was transformed: they differ by the factor
    /// size^2 (Parseval).
    pub powers: [f64; 2],
    /// Against the sequential run.
    pub agreement: Agreement,
    /// What the run took.
    pub account: Account,
}

/// Transforms a matrix of noise, on cells and alone.
///
/// # Errors
/// A machine that is none or cannot do the transpose; a run that failed.
pub fn solve(args: &TeamArgs, size: usize, by: By) -> Result<Spectrum, Failure> {
    let input = matrix(size, args.seed);
    let machine = args.machine()?;
    let cells = machine.endpoints().count();
    let team = Team::gather(args, &machine, vec![transpose_set(&machine, size)?])?;
    let transform = FftPlanner::new().plan_fft_forward(size.max(1));
    // Cells that are dead or have no agent do not count.
    let ranks: Vec<usize> = rank_by_cell(&machine);

    let (blocks, mut account) = team.run(|cell, meter| {
        let rank = ranks[cell.id().index()];
        let grid = Grid { size, cells, rank };
        let own = grid.rows(rank);
        let rows = input[own.start * size..own.end * size].to_vec();
        on_cell(cell, meter, (&grid, by), &transform, rows)
    })?;
    let buffers = |cell: CellId| {
        let grid = Grid { size, cells, rank: ranks[cell.index()] };
        (grid.buffers(), grid.buffers())
    };
    account.alone = Some(
        team.time(buffers, |cell, (outgoing, incoming)| exchange(cell, by, outgoing, incoming))?,
    );

    let alone = alone(&transform, size, input.clone());
    // Over MPI a process has some of the rows, and checks those.
    let mut values = alone.clone();
    for (cell, block) in team.own_cells().into_iter().zip(&blocks) {
        let grid = Grid { size, cells, rank: ranks[cell.index()] };
        values[grid.rows(grid.rank).start * size..][..block.len()].copy_from_slice(block);
    }
    let power = |values: &[Complex64]| values.iter().map(|x| x.norm_sqr()).sum();
    Ok(Spectrum {
        size,
        powers: [power(&values), power(&input)],
        agreement: Agreement::of(&flat(&values), &flat(&alone), 1e-13),
        values,
        account,
    })
}

/// A matrix of complex noise, row behind row.
pub fn matrix(size: usize, seed: u64) -> Vec<Complex64> {
    let entry = |at: u64| Complex64::new(noise(seed, 2 * at), noise(seed, 2 * at + 1));
    (0..(size * size) as u64).map(entry).collect()
}

/// The exchange of a transpose: from each cell to each other, by source, then target. Cells
/// without rows neither send nor receive.
fn transpose_set(machine: &Machine, size: usize) -> Result<ConnectionSet, Failure> {
    let cells: Vec<_> = machine.endpoints().collect();
    let rows = |rank| Grid { size, cells: cells.len(), rank }.rows(rank).len();
    let mut connections = Vec::new();
    for (from, &source) in cells.iter().enumerate() {
        for (to, &target) in cells.iter().enumerate() {
            let words = u32::try_from(2 * rows(from) * rows(to))?;
            if from != to && words > 0 {
                connections.push(Connection::new(source, target, words));
            }
        }
    }
    Ok(ConnectionSet::new("transpose", connections)?)
}

fn rank_by_cell(machine: &Machine) -> Vec<usize> {
    let mut ranks = vec![0; machine.cell_count()];
    for (rank, cell) in machine.endpoints().enumerate() {
        ranks[cell.index()] = rank;
    }
    ranks
}

/// How the rows are dealt, seen from one cell.
struct Grid {
    size: usize,
    cells: usize,
    rank: usize,
}

impl Grid {
    /// The rows of a rank: as even as can be.
    fn rows(&self, rank: usize) -> Range<usize> {
        rank * self.size / self.cells..(rank + 1) * self.size / self.cells
    }

    /// The other ranks that have rows, in the order of the set's connections.
    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        let some = !self.rows(self.rank).is_empty();
        (0..self.cells).filter(move |&r| some && r != self.rank && !self.rows(r).is_empty())
    }

    /// Room for the block of each of the others.
    fn buffers(&self) -> Vec<Vec<f64>> {
        let words = |rank| 2 * self.rows(self.rank).len() * self.rows(rank).len();
        self.others().map(|rank| vec![0.0; words(rank)]).collect()
    }
}

/// Each cell's blocks to all others.
fn exchange(
    cell: &mut Cell<'_>,
    by: By,
    outgoing: &[Vec<f64>],
    incoming: &mut [Vec<f64>],
) -> Result<(), CellError> {
    cell.exchange_by(by, "transpose", outgoing, incoming)
}

/// The part of one cell: `block` are its rows.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    (grid, by): (&Grid, By),
    transform: &Arc<dyn Fft<f64>>,
    mut block: Vec<Complex64>,
) -> Result<Vec<Complex64>, CellError> {
    // The customary count: 5 n log2(n) for a row.
    let of_row = (5.0 * grid.size as f64 * (grid.size.max(1) as f64).log2()) as usize;
    let flops = grid.rows(grid.rank).len() * of_row;
    for _ in 0..2 {
        transform.process(&mut block);
        meter.compute(cell, flops)?;
        block = transposed(cell, meter, (grid, by), &block)?;
    }
    Ok(block)
}

/// Rows in, the same rows of the transposed matrix out.
fn transposed(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    (grid, by): (&Grid, By),
    block: &[Complex64],
) -> Result<Vec<Complex64>, CellError> {
    let own = grid.rows(grid.rank);
    let at = |row: usize, column: usize| block[row * grid.size + column];
    // What a rank gets of this cell's rows: its columns, which become rows.
    let columns = |rank: usize| {
        let pairs = grid.rows(rank).flat_map(|column| (0..own.len()).map(move |row| (row, column)));
        pairs.map(|(row, column)| at(row, column)).collect::<Vec<_>>()
    };
    let outgoing: Vec<Vec<f64>> = grid.others().map(|rank| flat(&columns(rank))).collect();
    let mut incoming = grid.buffers();
    meter.exchange(cell, |cell| exchange(cell, by, &outgoing, &mut incoming))?;

    let mut result = vec![Complex64::default(); block.len()];
    let mut put = |rank: usize, piece: &[Complex64]| {
        let width = grid.rows(rank).len();
        for row in 0..own.len() {
            let from = row * grid.size + grid.rows(rank).start;
            result[from..from + width].copy_from_slice(&piece[row * width..(row + 1) * width]);
        }
    };
    put(grid.rank, &columns(grid.rank));
    for (rank, words) in grid.others().zip(&incoming) {
        let pairs = words.chunks_exact(2).map(|pair| Complex64::new(pair[0], pair[1]));
        put(rank, &pairs.collect::<Vec<_>>());
    }
    Ok(result)
}

/// The whole matrix on one processor.
fn alone(transform: &Arc<dyn Fft<f64>>, size: usize, mut values: Vec<Complex64>) -> Vec<Complex64> {
    for _ in 0..2 {
        transform.process(&mut values);
        let entry = |at: usize| values[at % size * size + at / size];
        values = (0..values.len()).map(entry).collect();
    }
    values
}

/// Real and imaginary parts, one behind the other.
fn flat(values: &[Complex64]) -> Vec<f64> {
    values.iter().flat_map(|value| [value.re, value.im]).collect()
}

impl Report for Spectrum {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "2-D FFT of {0} x {0} complex numbers", self.size)?;
        let [after, before] = self.powers;
        let factor = (self.size * self.size) as f64;
        writeln!(f, "power {after:.6e}, {before:.6e} before: Parseval holds to {:.1e}", {
            (after / factor / before - 1.0).abs()
        })?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}
