//! Exchanges with partners that do not expect them, on 2, 4 and 8 ranks: by hand with counts by
//! `MPI_Alltoall`, by hand with NBX, by [`Cell::exchange_any`] directly and routed, and as a recorded
//! and compiled set.
//!
//! ```text
//! cargo bench -p conset-runtime --features mpi-baseline --bench mpi_unknown
//! ```
//!
//! Each rank sends to 3 others (to 1 of 2), 3 to 20 000 numbers each, which it computes anew before
//! each exchange, as programs do: numbers that stay the same stay in the caches of both cores, and by hand
//! 1000 of them take half the time. All ways take turns within one run, so that the ratios mean
//! something on a noisy machine; the times do not where there are more ranks than cores. What has
//! arrived is compared. `any/best` is the default way of `exchange_any` beside the better way by
//! hand at each turn, `compiled/any` the recorded set beside `exchange_any`.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod launch;
mod median;
mod planned;
mod unknown;

use std::process::ExitCode;
use std::time::Instant;

use conset_runtime::ir::CellId;
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::{Baseline, UnknownBy, exchange_unknown};
use conset_runtime::{Cell, CellError, Routing, Transport, World};
use median::median;
use unknown::{compiled, targets};

/// Exchanges between two looks at the clock, and how often each way has its turn.
const ROUNDS: usize = 50;
const TURNS: usize = 41;

const WAYS: usize = 5;

fn main() -> ExitCode {
    let comm = match launch::jobs(&[2, 4, 8]) {
        Ok(comm) => comm,
        Err(code) => return code,
    };
    if comm.rank() == 0 && comm.size() == 2 {
        println!(
            "{:<7}{:>7}{:>11}{:>9}{:>11}{:>11}{:>13}{:>10}{:>14}",
            "ranks",
            "words",
            "counts us",
            "NBX us",
            "direct us",
            "routed us",
            "compiled us",
            "any/best",
            "compiled/any"
        );
    }
    for words in [3, 32, 1000, 4000, 20_000] {
        row(&comm, words);
    }
    ExitCode::SUCCESS
}

fn row(comm: &Comm, words: usize) {
    let ranks = comm.size();
    let world = World::new(compiled(ranks, words)).on(Transport::Mpi(comm.clone()));
    let (times, _) = world.try_run(|cell| by_turns(cell, words)).expect("the exchange works");
    if comm.rank() > 0 {
        return;
    }
    let [counts, nbx, direct, routed, compiled] = &times[0];
    let best = counts.iter().zip(nbx).map(|(a, b)| a.min(*b));
    println!(
        "{ranks:<7}{words:>7}{:>11.1}{:>9.1}{:>11.1}{:>11.1}{:>13.1}{:>10.3}{:>14.3}",
        median(counts.iter().copied()),
        median(nbx.iter().copied()),
        median(direct.iter().copied()),
        median(routed.iter().copied()),
        median(compiled.iter().copied()),
        median(direct.iter().zip(best).map(|(own, best)| own / best)),
        median(compiled.iter().zip(direct).map(|(a, b)| a / b)),
    );
}

/// Microseconds of an exchange at each turn.
fn by_turns(cell: &mut Cell<'_>, words: usize) -> Result<[Vec<f64>; WAYS], CellError> {
    let (own, ranks) = (cell.id().index(), cell.cell_count());
    let by_hand = Baseline::new(&[], &[], &[]);
    let targets = targets(own, ranks);
    let row = |target: usize| (0..words).map(move |word| (own * 1000 + target * 7 + word) as u64);
    let mut rows: Vec<Vec<u64>> = targets.iter().map(|&target| row(target).collect()).collect();
    let mut out = rows.concat();
    let first = out.clone();
    let mut into = vec![0; ranks * words];
    let mut incoming: Vec<Vec<u64>> = vec![vec![0; words]; cell.connections_in(0)?.len()];
    let mut times: [Vec<f64>; WAYS] = Default::default();
    let (mut received, mut arrived) = (0, Vec::new());
    // Another turn at the end compares what arrives: one exchange of each way, of the same words.
    for turn in 0..=TURNS + 1 {
        let rounds = if turn > TURNS { 1 } else { ROUNDS };
        for (way, times) in times.iter_mut().enumerate() {
            cell.set_routing(if way == 3 { Routing::Routed } else { Routing::Auto });
            if turn > TURNS {
                out.copy_from_slice(&first);
                rows.iter_mut().zip(first.chunks(words)).for_each(|(a, b)| a.copy_from_slice(b));
            }
            by_hand.barrier();
            let start = Instant::now();
            for _ in 0..rounds {
                match way {
                    0 | 1 => {
                        next_words(&mut out);
                        let by = if way == 0 { UnknownBy::Counts } else { UnknownBy::Nbx };
                        received = exchange_unknown(by, &targets, &out, &mut into);
                    }
                    2 | 3 => {
                        rows.iter_mut().for_each(|row| next_words(row));
                        let cells = targets.iter().map(|&target| CellId::from_index(target));
                        let lists: Vec<_> = cells.zip(rows.iter().map(|row| &row[..])).collect();
                        // As in a loop that uses what has arrived.
                        drop(std::mem::take(&mut arrived));
                        arrived = cell.exchange_any(&lists)?;
                    }
                    _ => {
                        rows.iter_mut().for_each(|row| next_words(row));
                        cell.exchange(0, &rows, &mut incoming)?;
                    }
                }
            }
            by_hand.barrier();
            // The first turn is for warming up.
            if (1..=TURNS).contains(&turn) {
                times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
            }
            if turn > TURNS && way > 1 {
                let mut by_hand: Vec<&[u64]> = into[..received].chunks(words).collect();
                let mut found: Vec<&[u64]> = match way {
                    2 | 3 => arrived.iter().map(|(_, words)| &words[..]).collect(),
                    _ => incoming.iter().map(|words| &words[..]).collect(),
                };
                // By hand they come in any order.
                by_hand.sort_unstable();
                found.sort_unstable();
                assert_eq!(by_hand, found, "all ways deliver the same words");
            }
        }
    }
    Ok(times)
}

/// Computes other words.
fn next_words(words: &mut [u64]) {
    words.iter_mut().for_each(|word| *word = word.wrapping_add(1));
}
