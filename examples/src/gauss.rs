//! Gaussian elimination of a dense matrix with partial pivoting and cyclic rows.
//!
//! Row `r` is on the cell of rank `r mod cells`. For each column the cells find the largest entry
//! among the rows not used yet ([`Cell::allreduce_max_at`]; of equal entries the first row wins),
//! the cell of that row broadcasts it, and every cell subtracts it from its rows. No row moves.
//! Back substitution broadcasts one unknown after the other.
//!
//! Each entry undergoes the same operations in the same order as in the sequential run, so the
//! results have the same bits.
//!
//! Trees of two widths are compiled: for an entry and its row, and for a part of a row.

use conset::ir::CellId;
use conset_runtime::{Cell, CellError, Collectives, tree_sets_named};

use crate::report::{Agreement, Report};
use crate::sparse::{dot, max_norm};
use crate::team::{Account, ByArg, Meter, Team, TeamArgs};
use crate::{Failure, failure, noise};

/// Words of a row that travel at a time.
const ROW_WORDS: usize = 64;

/// The solution.
#[derive(Clone, Debug)]
pub struct Eliminated {
    /// The unknowns.
    pub x: Vec<f64>,
    /// The row used for each column.
    pub pivots: Vec<u32>,
    /// The largest entry of `A x - b`, as a fraction of the largest sum of a row's terms.
    pub residual: f64,
    /// Against the sequential run.
    pub agreement: Agreement,
    /// What the run took.
    pub account: Account,
}

/// A dense system: the rows, each with its right-hand side at the end.
#[derive(Clone, Debug)]
pub struct Dense {
    /// Number of unknowns.
    pub size: usize,
    /// `size` rows of `size + 1`.
    pub rows: Vec<Vec<f64>>,
}

impl Dense {
    /// A matrix and right-hand side of noise.
    pub fn noise(size: usize, seed: u64) -> Self {
        let row = |r: usize| {
            let entry = |c: usize| noise(seed, (r * (size + 1) + c) as u64);
            (0..=size).map(entry).collect()
        };
        Self { size, rows: (0..size).map(row).collect() }
    }

    /// The largest entry of `A x - b`, as a fraction of the largest sum of a row's terms.
    pub fn residual(&self, x: &[f64]) -> f64 {
        let of_row = |row: &Vec<f64>| dot(&row[..self.size], x) - row[self.size];
        let terms = |row: &Vec<f64>| row.iter().zip(x).map(|(a, x)| (a * x).abs()).sum();
        let residuals: Vec<f64> = self.rows.iter().map(of_row).collect();
        let sizes: Vec<f64> = self.rows.iter().map(terms).collect();
        max_norm(&residuals) / max_norm(&sizes).max(f64::MIN_POSITIVE)
    }
}

/// Solves a system of noise, on cells and alone.
///
/// # Errors
/// A machine that is none; a run that failed.
pub fn solve(args: &TeamArgs, size: usize) -> Result<Eliminated, Failure> {
    solve_system(args, &Dense::noise(size, args.seed))
}

/// Solves a system, on cells and alone.
///
/// # Errors
/// A machine that is none; a run that failed; a singular matrix.
pub fn solve_system(args: &TeamArgs, system: &Dense) -> Result<Eliminated, Failure> {
    let machine = args.machine()?;
    let width = ROW_WORDS.min(system.size + 1);
    // The root broadcasts one way, other cells both ways; nothing is reduced alone.
    let mut sets = Vec::new();
    for (prefix, words) in [("pivot-", 2), ("row-", width as u32)] {
        let [_, broadcast, allreduce] = tree_sets_named(&machine, words, prefix)?;
        sets.extend([broadcast, allreduce]);
    }
    // Without phases a message goes over each edge of a tree, compiled or not.
    let by = if args.by == ByArg::Messages { ByArg::Steps } else { args.by };
    let team = Team::gather(&TeamArgs { by, ..args.clone() }, &machine, sets)?;
    let shared = Shared {
        words: Collectives::prefixed(team.image(), "pivot-")?,
        rows: Collectives::prefixed(team.image(), "row-")?,
        cells: machine.endpoints().collect(),
        size: system.size,
    };
    let (results, account) = team.run(|cell, meter| {
        let rank = shared.rank(cell.id());
        let rows = system.rows.iter().skip(rank).step_by(shared.cells.len()).cloned().collect();
        on_cell(cell, meter, &shared, rank, rows)
    })?;
    let singular = || failure("the matrix is singular");
    let (alone, alone_pivots) = alone(system).ok_or_else(singular)?;
    // All cells have the same; over MPI a process may have no cell.
    let (x, pivots) = match results.into_iter().next() {
        Some(result) => result.ok_or_else(singular)?,
        None => (alone.clone(), alone_pivots.clone()),
    };
    if pivots != alone_pivots {
        return Err(failure("the cells chose other pivots than the sequential run"));
    }
    Ok(Eliminated {
        residual: system.residual(&x),
        agreement: Agreement::of(&x, &alone, 1e-14),
        x,
        pivots,
        account,
    })
}

/// What all cells know.
struct Shared {
    words: Collectives,
    rows: Collectives,
    /// The cell of each rank.
    cells: Vec<CellId>,
    size: usize,
}

impl Shared {
    fn rank(&self, cell: CellId) -> usize {
        // Cells ascend; every cell that runs is among them.
        self.cells.partition_point(|&other| other < cell)
    }
}

/// The unknowns and the row used for each column; nothing if the matrix is singular.
type Outcome = Option<(Vec<f64>, Vec<u32>)>;

/// The part of one cell.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    shared: &Shared,
    rank: usize,
    mut rows: Vec<Vec<f64>>,
) -> Result<Outcome, CellError> {
    let (size, cells) = (shared.size, shared.cells.len());
    let mut used = vec![false; rows.len()];
    let mut pivots = Vec::with_capacity(size);
    let mut pivot = vec![0.0; size + 1];
    for column in 0..size {
        // The largest of all cells, and the first row that has it.
        let own = largest(&rows, &used, column);
        let number = |local: usize| (local * cells + rank) as u64;
        let (own, row) = own.map_or((-1.0, u64::MAX), |(size, local)| (size, number(local)));
        let (most, row) =
            meter.collective(cell, |cell| cell.allreduce_max_at(&shared.words, own, row))?;
        if most.is_nan() || most <= 0.0 {
            return Ok(None);
        }
        let (owner, local) = (row as usize % cells, row as usize / cells);
        pivots.push(row as u32);

        if owner == rank {
            used[local] = true;
            pivot[column..].copy_from_slice(&rows[local][column..]);
        }
        let from = shared.cells[owner];
        meter.collective(cell, |cell| cell.broadcast(&shared.rows, from, &mut pivot[column..]))?;
        let mut flops = 0;
        for (row, _) in rows.iter_mut().zip(&used).filter(|(_, used)| !**used) {
            subtract(row, &pivot, column);
            flops += 2 * (size + 1 - column);
        }
        meter.compute(cell, flops)?;
    }
    let mut x = vec![0.0; size];
    for column in (0..size).rev() {
        let (owner, local) = (pivots[column] as usize % cells, pivots[column] as usize / cells);
        if owner == rank {
            x[column] = unknown(&rows[local], &x, column);
            meter.compute(cell, 2 * (size - column))?;
        }
        let from = shared.cells[owner];
        meter.collective(cell, |cell| {
            cell.broadcast(&shared.words, from, &mut x[column..=column])
        })?;
    }
    Ok(Some((x, pivots)))
}

/// The whole matrix on one processor; rows are swapped, as in a textbook.
fn alone(system: &Dense) -> Outcome {
    let size = system.size;
    let mut rows: Vec<(u32, Vec<f64>)> = (0..).zip(system.rows.iter().cloned()).collect();
    for column in 0..size {
        let by_size = |a: &&(u32, Vec<f64>), b: &&(u32, Vec<f64>)| {
            a.1[column].abs().total_cmp(&b.1[column].abs()).then(b.0.cmp(&a.0))
        };
        let number = rows[column..].iter().max_by(by_size)?.0;
        let at = rows.iter().position(|row| row.0 == number)?;
        rows.swap(column, at);
        let (done, rest) = rows.split_at_mut(column + 1);
        let pivot = &done[column].1;
        if pivot[column] == 0.0 {
            return None;
        }
        rest.iter_mut().for_each(|(_, row)| subtract(row, pivot, column));
    }
    let mut x = vec![0.0; size];
    for column in (0..size).rev() {
        x[column] = unknown(&rows[column].1, &x, column);
    }
    Some((x, rows.iter().map(|row| row.0).collect()))
}

/// The largest entry, without sign, of a column among the rows not used; of equal ones the first.
fn largest(rows: &[Vec<f64>], used: &[bool], column: usize) -> Option<(f64, usize)> {
    let open = (0..rows.len()).filter(|&row| !used[row]);
    let sizes = open.map(|row| (rows[row][column].abs(), row));
    sizes.reduce(|most, next| if next.0 > most.0 { next } else { most })
}

/// Makes a row's entry in the pivot's column 0.
fn subtract(row: &mut [f64], pivot: &[f64], column: usize) {
    let factor = row[column] / pivot[column];
    for (entry, pivot) in row[column..].iter_mut().zip(&pivot[column..]) {
        *entry -= factor * pivot;
    }
}

/// The unknown of a column, the later ones being known.
fn unknown(row: &[f64], x: &[f64], column: usize) -> f64 {
    let size = x.len();
    (row[size] - dot(&row[column + 1..size], &x[column + 1..])) / row[column]
}

impl Report for Eliminated {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Eliminated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "elimination of {} unknowns", self.x.len())?;
        let moved = self.pivots.iter().zip(0..).filter(|&(&row, column)| row != column).count();
        writeln!(f, "{moved} pivots are off the diagonal; residual {:.1e}", self.residual)?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}
