//! A histogram of a distributed table: cells add at random places, most of them of other cells.
//!
//! This is the `histo` of the bale suite. Each cell owns `table` counters and makes `updates`
//! updates of counters chosen at random from those of all cells. No cell knows who updates its
//! counters. The updates go in an epoch, `batch` of them between two rounds: what a cell sends to
//! another one in a round is one list, so a batch is the buffer of other libraries, and memory is in
//! proportion to it.
//!
//! The counters are compared with those of a sequential run.

use std::time::{Duration, Instant};

use conset_runtime::{Cell, CellError};

use crate::Failure;
use crate::report::{Agreement, Report};
use crate::team::{Account, Meter, Team, TeamArgs};

/// How much there is to do for each cell.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Size {
    /// Counters of a cell.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub table: u32,
    /// Updates that a cell makes.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub updates: u64,
    /// Updates of a cell between two rounds.
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: u64,
}

/// A table that was updated.
#[derive(Clone, Debug)]
pub struct Updated {
    cells: usize,
    size: Size,
    /// The counters of each cell of this process.
    pub tables: Vec<Vec<u64>>,
    /// How long the cell took that took longest, without the time to choose the updates.
    pub wall: Duration,
    agreement: Agreement,
    account: Account,
}

/// A counter of the whole table, for each update of a cell.
fn place(seed: u64, cell: usize, update: u64, counters: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood, 2014); the product maps it to the counters
    // (Lemire, 2019).
    let mut x = (seed ^ (cell as u64) << 40 ^ update).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    ((u128::from(x) * u128::from(counters)) >> 64) as u64
}

/// Updates the table, on cells and alone.
///
/// # Errors
/// A machine that is none; a run that failed.
pub fn update(args: &TeamArgs, size: Size) -> Result<Updated, Failure> {
    let machine = args.machine()?;
    let team = Team::gather(args, &machine, Vec::new())?;
    let cells: Vec<_> = machine.endpoints().collect();
    let counters = u64::from(size.table) * cells.len() as u64;
    let of_cell = |rank: usize| -> Vec<u64> {
        (0..size.updates).map(|update| place(args.seed, rank, update, counters)).collect()
    };
    let (results, account) = team.run(|cell, meter| {
        let rank = cells.binary_search(&cell.id()).expect("a cell that runs is live");
        let updates: Vec<_> = of_cell(rank)
            .into_iter()
            .map(|at| {
                let table = u64::from(size.table);
                (cells[(at / table) as usize], (at % table) as u32)
            })
            .collect();
        on_cell(cell, meter, &updates, size)
    })?;
    let (tables, walls): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let mut alone = vec![0u64; counters as usize];
    for rank in 0..cells.len() {
        of_cell(rank).into_iter().for_each(|at| alone[at as usize] += 1);
    }
    // Over MPI a process has some of the tables, and checks those.
    let numbers = |table: &[u64]| table.iter().map(|&count| count as f64).collect::<Vec<_>>();
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for (cell, table) in team.own_cells().into_iter().zip(&tables) {
        let rank = cells.binary_search(&cell).expect("a cell that runs is live");
        found.extend(numbers(table));
        expected.extend(numbers(&alone[rank * size.table as usize..][..size.table as usize]));
    }
    Ok(Updated {
        cells: cells.len(),
        size,
        tables,
        wall: walls.into_iter().max().unwrap_or_default(),
        agreement: Agreement::of(&found, &expected, 0.0),
        account,
    })
}

/// Sends the updates of a cell, and makes those of its own counters; how long that took.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    updates: &[(conset::ir::CellId, u32)],
    size: Size,
) -> Result<(Vec<u64>, Duration), CellError> {
    let mut table = vec![0u64; size.table as usize];
    // All cells begin at the same time.
    cell.exchange_any::<u32>(&[])?;
    let begin = Instant::now();
    let mut batches = updates.chunks(size.batch as usize);
    for _ in 0..size.updates.div_ceil(size.batch) {
        meter.exchange(cell, |cell| {
            let mut epoch = cell.open::<[u32; 1]>();
            for &(owner, counter) in batches.next().unwrap_or_default() {
                epoch.send(owner, [counter])?;
            }
            epoch.settle(|_, [counter], _| table[counter as usize] += 1)
        })?;
    }
    Ok((table, begin.elapsed()))
}

impl Report for Updated {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Updated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Size { table, updates, batch } = self.size;
        let all = updates * self.cells as u64;
        writeln!(
            f,
            "{all} updates of {} counters, {batch} in a batch",
            self.cells as u64 * u64::from(table)
        )?;
        let rate = all as f64 / self.wall.as_secs_f64().max(1e-9) / 1e6;
        writeln!(
            f,
            "{:.3} ms, {rate:.1} million updates in a second",
            self.wall.as_secs_f64() * 1e3
        )?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}
