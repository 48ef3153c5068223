//! Exchanges with partners that do not expect them, on threads: by [`Cell::exchange_any`], and as a recorded
//! and compiled set.
//!
//! ```text
//! cargo bench -p conset-runtime --bench threads_unknown
//! ```
//!
//! The pattern is that of the bench `mpi_unknown`: each cell sends to 3 others (to 1 of 2), 32 or 1000
//! numbers each. Both ways take turns within one run. What has arrived is compared.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod median;
mod planned;
mod unknown;

use std::time::Instant;

use conset_runtime::ir::CellId;
use conset_runtime::{Cell, CellError, ThreadOptions, Transport, World};
use median::median;
use unknown::{compiled, targets};

/// Exchanges between two looks at the clock, and how often each way has its turn.
const ROUNDS: usize = 200;
const TURNS: usize = 41;

fn main() {
    println!(
        "{:<7}{:>9}{:>7}{:>10}{:>13}{:>14}",
        "cells", "workers", "words", "any us", "compiled us", "compiled/any"
    );
    for (cells, workers) in [(2, 2), (4, 2), (8, 2), (64, 2), (8, 1)] {
        for words in [32, 1000] {
            row(cells, workers, words);
        }
    }
}

fn row(cells: usize, workers: usize, words: usize) {
    let transport = Transport::Threads(ThreadOptions::workers(workers));
    let world = World::new(compiled(cells, words)).on(transport);
    let (times, _) = world.try_run(|cell| by_turns(cell, words)).expect("the exchange works");
    let [any, compiled] = &times[0];
    println!(
        "{cells:<7}{workers:>9}{words:>7}{:>10.2}{:>13.2}{:>14.3}",
        median(any.iter().copied()),
        median(compiled.iter().copied()),
        median(compiled.iter().zip(any).map(|(a, b)| a / b)),
    );
}

/// Microseconds of an exchange at each turn: with unknown partners, and compiled.
fn by_turns(cell: &mut Cell<'_>, words: usize) -> Result<[Vec<f64>; 2], CellError> {
    let (own, cells) = (cell.id().index(), cell.cell_count());
    let targets = targets(own, cells);
    let row = |target: usize| (0..words).map(move |word| (own * 1000 + target * 7 + word) as u64);
    let rows: Vec<Vec<u64>> = targets.iter().map(|&target| row(target).collect()).collect();
    let lists: Vec<(CellId, &[u64])> = targets
        .iter()
        .zip(&rows)
        .map(|(&target, row)| (CellId::from_index(target), &row[..]))
        .collect();
    let mut incoming: Vec<Vec<u64>> = vec![vec![0; words]; cell.connections_in(0)?.len()];
    let mut times: [Vec<f64>; 2] = Default::default();
    let mut arrived = Vec::new();
    for turn in 0..=TURNS {
        for (way, times) in times.iter_mut().enumerate() {
            cell.exchange_any::<u64>(&[])?;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                match way {
                    0 => arrived = cell.exchange_any(&lists)?,
                    _ => cell.exchange(0, &rows, &mut incoming)?,
                }
            }
            // The first turn is for warming up.
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
            }
        }
    }
    let found: Vec<Vec<u64>> = arrived.into_iter().map(|(_, words)| words).collect();
    assert_eq!(incoming, found, "both ways deliver the same words");
    Ok(times)
}
