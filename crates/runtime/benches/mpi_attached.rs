//! Exchanges of an attached halo between 8 ranks, beside the same exchange written by hand in C.
//!
//! ```text
//! cargo bench -p conset-runtime --features mpi-baseline --bench mpi_attached
//! ```
//!
//! Every rank has five neighbours, and as many words for each of them. The words that are sent are
//! scattered in the vector; ghosts are contiguous, and both ways receive them in place. `overlap` is
//! `start`, as much work as the exchange takes on this rank's share of the cores, and `wait`, beside
//! exchange and work one after the other. All ways take turns within one run, so that the ratios mean
//! something on a noisy machine; `by hand` twice shows how noisy it is. Medians of the slowest rank's
//! turns.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod launch;
mod median;

use std::process::ExitCode;
use std::time::Instant;

use conset_runtime::Op;
use conset_runtime::mpi::baseline::{Baseline, BaselineHalo};
use conset_runtime::mpi::{Attached, Halo, HaloError};
use median::median;

const RANKS: usize = 8;
const TURNS: usize = 21;

fn main() -> ExitCode {
    let comm = match launch::ranks(RANKS as u32) {
        Ok(comm) => comm,
        Err(code) => return code,
    };
    let attached = Attached::new(&comm).expect("all ranks attach");
    if attached.rank() == 0 {
        println!(
            "{:<14}{:>12}{:>10}{:>10}{:>12}{:>12}{:>12}",
            "words", "by hand us", "again", "conset", "of by hand", "set-up ms", "overlap"
        );
    }
    for words in [3, 128, 1000, 3800, 20_000, 100_000] {
        Case::new(&attached, words).row::<f64>(&attached, "f64", |hand, x, n| hand.doubles(x, n));
    }
    Case::new(&attached, 1000).row::<f32>(&attached, "f32", |hand, x, n| hand.floats(x, n));
    collectives(&attached);
    ExitCode::SUCCESS
}

struct Case {
    words: usize,
    owned: usize,
    by_hand: BaselineHalo,
    halo: Halo,
    set_up: Vec<f64>,
}

impl Case {
    fn new(attached: &Attached, words: usize) -> Self {
        let rank = attached.rank();
        let mut neighbours: Vec<usize> = [1, 2, 4, 6, 7].map(|d| (rank + d) % RANKS).to_vec();
        neighbours.sort_unstable();
        let owned = 8 * words;
        let spread = |place: usize| 3 * place * owned / (4 * words) + place % 3;
        let first = |rank: usize| (rank * owned) as u64;
        let ids = neighbours
            .iter()
            .flat_map(|&peer| (0..words).map(move |place| first(peer) + spread(place) as u64));
        let ghosts: Vec<u64> = ids.collect();
        let mut set_up = Vec::new();
        let mut make = || {
            attached.barrier().expect("all ranks come");
            let start = Instant::now();
            let range = first(rank)..first(rank + 1);
            let halo = attached.owned_halo(range, &ghosts).expect("the ids are owned");
            attached.barrier().expect("all ranks come");
            set_up.push(start.elapsed().as_secs_f64() * 1e3);
            halo
        };
        (0..4).for_each(|_| drop(make()));
        let halo = make();
        let positions: Vec<u32> =
            neighbours.iter().flat_map(|_| (0..words).map(|place| spread(place) as u32)).collect();
        let by_hand = BaselineHalo::new(&neighbours, words, &positions, owned);
        Self { words, owned, by_hand, halo, set_up }
    }

    fn row<T>(&mut self, attached: &Attached, name: &str, hand: fn(&BaselineHalo, &mut [T], usize))
    where
        T: conset_runtime::mpi::Pod + From<u8> + PartialEq + std::fmt::Debug,
    {
        let barrier = Baseline::new(&[], &[], &[]);
        let own = |at: usize| T::from(((at * 7 + attached.rank() * 31) % 251) as u8);
        let mut x: Vec<T> = (0..self.owned).map(own).collect();
        x.resize(self.halo.entries(), T::from(0));
        let mut vectors = [x.clone(), x.clone(), x];
        // About as long for each turn, whatever the size.
        let rounds = (400_000 / (self.words + 2000)).max(4);
        let mut times: [Vec<f64>; 5] = Default::default();
        let mut steps = 0;
        for turn in 0..=TURNS {
            for way in 0..5 {
                barrier.barrier();
                let start = Instant::now();
                match way {
                    0 | 1 => hand(&self.by_hand, &mut vectors[way], rounds),
                    2 => (0..rounds).for_each(|_| {
                        self.halo.exchange(&mut vectors[2], 1).expect("exchanged");
                    }),
                    _ => {
                        let x = &mut vectors[2];
                        overlapped(&mut self.halo, x, rounds, steps, way == 4).expect("exchanged");
                    }
                }
                barrier.barrier();
                let time = start.elapsed().as_secs_f64() * 1e6 / rounds as f64;
                if turn > 0 {
                    times[way].push(time);
                } else if way == 2 {
                    steps = work_of(time);
                }
            }
        }
        assert_eq!(vectors[0], vectors[2]);
        if attached.rank() > 0 {
            return;
        }
        let [by_hand, again, conset, in_turn, overlapped] =
            times.each_ref().map(|times| median(times.iter().copied()));
        let ratios: Vec<f64> = times[2].iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        println!(
            "{:<14}{by_hand:>12.1}{again:>10.1}{conset:>10.1}{:>12.2}{:>12.2}{:>12.2}",
            format!("{} {name}", self.words),
            median(ratios.into_iter()),
            median(self.set_up.iter().copied()),
            overlapped / in_turn
        );
    }
}

/// Exchange and work, one after the other or at the same time.
fn overlapped<T: conset_runtime::mpi::Pod>(
    halo: &mut Halo,
    x: &mut [T],
    rounds: usize,
    steps: u32,
    together: bool,
) -> Result<(), HaloError> {
    for _ in 0..rounds {
        let pending = halo.start(x, 1)?;
        if together {
            work(steps);
            halo.wait(pending, x)?;
        } else {
            halo.wait(pending, x)?;
            work(steps);
        }
    }
    Ok(())
}

/// Steps of work for the share of the cores that a rank has in so many microseconds.
fn work_of(microseconds: f64) -> u32 {
    const STEPS: u32 = 100_000;
    let start = Instant::now();
    work(STEPS);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = (cores as f64 / RANKS as f64).min(1.0);
    (microseconds * share / (start.elapsed().as_secs_f64() * 1e6) * f64::from(STEPS)) as u32
}

fn work(steps: u32) {
    let mut value = 1.0f64;
    for _ in 0..steps {
        value = std::hint::black_box(value * 0.999 + 0.5);
    }
}

fn collectives(attached: &Attached) {
    let barrier = Baseline::new(&[], &[], &[]);
    for words in [1, 1000] {
        let mut x = vec![1.0; words];
        let mut times = Vec::new();
        for _ in 0..TURNS {
            barrier.barrier();
            let start = Instant::now();
            for _ in 0..50 {
                attached.allreduce(Op::Max, &mut x).expect("all ranks come");
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / 50.0);
        }
        if attached.rank() == 0 {
            println!("allreduce of {words} f64: {:.1} us", median(times.into_iter()));
        }
    }
}
