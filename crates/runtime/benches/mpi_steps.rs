//! Irregular exchanges between 8 ranks: by `MPI_Alltoallv`, and by conset with a step plan.
//!
//! ```text
//! cargo bench -p conset-runtime --features mpi-baseline --bench mpi_steps
//! ```
//!
//! Random sets in which each pair of ranks exchanges with the stated probability: all pairs as much, or
//! skewed, with words from 8 to 4096. All ways take turns within one run, so that the ratios mean
//! something on a noisy machine; the times do not where there are more ranks than cores. What has
//! arrived is compared.
//!
//! `MPI_Alltoallv` needs all words of a rank in one buffer; conset takes a row for each connection and
//! copies it. The column `packed` is `MPI_Alltoallv` with these copies.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod launch;
mod median;
mod planned;

use std::process::ExitCode;
use std::time::Instant;

use conset_runtime::ir::{CellId, Connection, ConnectionSet};
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::Baseline;
use conset_runtime::{Cell, CellError, Transport, World};
use median::median;
use planned::planned;

const RANKS: u32 = 8;
/// Exchanges between two looks at the clock, and how often each way has its turn.
const ROUNDS: usize = 50;
const TURNS: usize = 41;

fn main() -> ExitCode {
    let comm = match launch::ranks(RANKS) {
        Ok(comm) => comm,
        Err(code) => return code,
    };
    if comm.rank() == 0 {
        println!(
            "{:<10}{:<12}{:>7}{:>8}{:>14}{:>12}{:>12}{:>14}{:>12}",
            "density",
            "words",
            "pairs",
            "KB",
            "Alltoallv us",
            "packed us",
            "loaded us",
            "of Alltoallv",
            "of packed"
        );
    }
    for percent in [10, 25, 50, 75, 100] {
        for (name, words) in
            [("64", Words::Equal(64)), ("1024", Words::Equal(1024)), ("8 to 4096", Words::Skewed)]
        {
            row(&comm, percent, name, words);
        }
    }
    ExitCode::SUCCESS
}

#[derive(Clone, Copy)]
enum Words {
    Equal(u32),
    Skewed,
}

/// A random set, the same on all ranks.
fn set(percent: u64, words: Words) -> ConnectionSet {
    let mut state = percent;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut connections = Vec::new();
    for source in 0..RANKS {
        for target in (0..RANKS).filter(|&target| target != source) {
            let (chosen, size) = (random() % 100 < percent, random() % 4096);
            let words = match words {
                Words::Equal(words) => words,
                // Uniform in the logarithm.
                Words::Skewed => (8.0 * 512f64.powf(size as f64 / 4096.0)) as u32,
            };
            if chosen {
                connections.push(Connection::new(CellId(source), CellId(target), words));
            }
        }
    }
    ConnectionSet::new("random", connections).expect("a set")
}

fn row(comm: &Comm, percent: u64, name: &str, words: Words) {
    let set = set(percent, words);
    let world = World::new(planned(set.clone(), RANKS as usize)).on(Transport::Mpi(comm.clone()));
    let (times, _) = world.try_run(by_turns).expect("the exchange works");
    if comm.rank() > 0 {
        return;
    }
    let [alltoallv, packed, own] = &times[0];
    let of = |other: &[f64]| median(own.iter().zip(other).map(|(a, b)| a / b));
    println!(
        "{:<10}{name:<12}{:>7}{:>8.1}{:>14.1}{:>12.1}{:>12.1}{:>14.3}{:>12.3}",
        format!("{percent} %"),
        set.len(),
        (set.words() * 8) as f64 / 1000.0,
        median(alltoallv.iter().copied()),
        median(packed.iter().copied()),
        median(own.iter().copied()),
        of(alltoallv),
        of(packed),
    );
}

/// Microseconds of an exchange at each turn: by `MPI_Alltoallv`, by the same with copies, and by ours.
fn by_turns(cell: &mut Cell<'_>) -> Result<[Vec<f64>; 3], CellError> {
    let by_hand = Baseline::new(&[], &[], &[]);
    let set = cell.image().sets()[0].set.clone();
    let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
    let mut counts = [[0usize; RANKS as usize]; 2];
    let length = |x| set.get(x).words as usize;
    out.iter().for_each(|&x| counts[0][set.get(x).target.index()] += length(x));
    inn.iter().for_each(|&x| counts[1][set.get(x).source.index()] += length(x));
    let outgoing: Vec<Vec<u64>> = out
        .iter()
        .map(|&x| (0..length(x) as u64).map(|i| i + 7 * u64::from(x.0)).collect())
        .collect();
    let mut incoming: Vec<Vec<u64>> = inn.iter().map(|&x| vec![0; length(x)]).collect();
    // Connections ascend by source, then by target, so the rows are in the order of the ranks.
    let mut sent = outgoing.concat();
    let mut received = vec![0; counts[1].iter().sum()];
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..=TURNS {
        for (way, times) in times.iter_mut().enumerate() {
            by_hand.barrier();
            let start = Instant::now();
            for _ in 0..ROUNDS {
                match way {
                    0 => by_hand.alltoallv((&sent, &counts[0]), (&mut received, &counts[1])),
                    1 => {
                        pack(&outgoing, &mut sent);
                        by_hand.alltoallv((&sent, &counts[0]), (&mut received, &counts[1]));
                        unpack(&received, &mut incoming);
                    }
                    _ => cell.exchange(0, &outgoing, &mut incoming)?,
                }
            }
            by_hand.barrier();
            // The first turn is for warming up.
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
            }
        }
    }
    assert_eq!(incoming.concat(), received, "both ways deliver the same words");
    Ok(times)
}

fn pack(rows: &[Vec<u64>], mut all: &mut [u64]) {
    for row in rows {
        let (own, rest) = all.split_at_mut(row.len());
        own.copy_from_slice(row);
        all = rest;
    }
}

fn unpack(mut all: &[u64], rows: &mut [Vec<u64>]) {
    for row in rows {
        let (own, rest) = all.split_at(row.len());
        row.copy_from_slice(own);
        all = rest;
    }
}
