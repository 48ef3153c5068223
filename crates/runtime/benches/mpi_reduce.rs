//! Reductions of arrays to rank 0 over 8 ranks: by `MPI_Reduce`, by conset over a tree, by swap, and by the plan
//! that is the cheapest for a node of 8 cores ([`ReducePlan::cheapest`] for `cluster:1x8`).
//!
//! ```text
//! cargo build --release -p conset-runtime --features mpi-baseline --bench mpi_reduce
//! mpirun -n 8 target/release/deps/mpi_reduce-<hash>       (cargo bench ... starts that itself)
//! ```
//!
//! All ways take turns within one run, so that the ratios mean something on a noisy machine. `MPI_Reduce`
//! adds doubles of an array into another one; conset adds them in place by an operator of the program.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod launch;

use std::process::ExitCode;
use std::time::Instant;

use conset_runtime::ir::{CellId, Image, Machine};
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::Baseline;
use conset_runtime::{Cell, CellError, ReducePlan, Transport, World};

const RANKS: usize = 8;
/// Words of 8 bytes, and reductions between two looks at the clock.
const LENGTHS: [(usize, usize); 8] = [
    (1, 100),
    (16, 100),
    (128, 100),
    (1024, 50),
    (8192, 10),
    (65_536, 4),
    (262_144, 2),
    (1 << 20, 2),
];
/// How often each way has its turn.
const TURNS: usize = 30;

fn main() -> ExitCode {
    match launch::ranks(RANKS as u32) {
        Ok(comm) => table(&comm),
        Err(code) => return code,
    }
    ExitCode::SUCCESS
}

fn table(comm: &Comm) {
    let machine = Machine::from_spec("cluster:1x8").expect("it is a preset");
    let parameters = machine.parameters().clone();
    let image = Image::new(machine.into(), Vec::new()).expect("no sets fit any machine");
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    if comm.rank() == 0 {
        println!(
            "{:<10}{:>15}{:>12}{:>12}{:>12}   cheapest plan",
            "words", "MPI_Reduce us", "tree / it", "swap / it", "plan / it"
        );
    }
    for (words, rounds) in LENGTHS {
        let plan = ReducePlan::cheapest(&parameters, RANKS, words);
        let plans = [ReducePlan::Tree, ReducePlan::Swap { radices: vec![2; 3] }, plan.clone()];
        let run = world.try_run(|cell| sums(cell, &plans, words, rounds));
        let (times, _) = run.expect("sums work");
        if comm.rank() == 0 {
            let [library, ways @ ..] = &times[0];
            let us = median(library.iter().copied());
            let of = |way: &[f64]| median(way.iter().zip(library).map(|(a, b)| a / b));
            let [tree, swap, auto] = ways.each_ref().map(|way| of(way));
            println!("{words:<10}{us:>15.1}{tree:>12.3}{swap:>12.3}{auto:>12.3}   {plan:?}");
        }
    }
}

/// Microseconds of a reduction at each turn: by the library, and by each plan.
fn sums(
    cell: &mut Cell<'_>,
    plans: &[ReducePlan; 3],
    words: usize,
    rounds: usize,
) -> Result<[Vec<f64>; 4], CellError> {
    thread_local! {
        static BY_HAND: Baseline = Baseline::new(&[], &[], &[]);
    }
    let add = |lower: &mut [f64], upper: &[f64]| {
        lower.iter_mut().zip(upper).for_each(|(lower, upper)| *lower += upper);
    };
    // Sums of whole numbers are exact in any order.
    let from: Vec<f64> = (0..words).map(|i| (i % 1000 + cell.id().index()) as f64).collect();
    let mut out = from.clone();
    BY_HAND.with(|b| b.reduce(&from, &mut out, 1));
    for plan in plans {
        let mut x = from.clone();
        cell.reduce_by(plan, CellId(0), 1, &mut x, add)?;
        assert!(cell.id() != CellId(0) || x == out, "all ways give the same sums");
    }
    let mut x = vec![0.0; words];
    let mut times: [Vec<f64>; 4] = Default::default();
    for turn in 0..TURNS + 1 {
        for (way, times) in times.iter_mut().enumerate() {
            BY_HAND.with(Baseline::barrier);
            let start = Instant::now();
            match way.checked_sub(1) {
                None => BY_HAND.with(|b| b.reduce(&from, &mut out, rounds)),
                Some(plan) => {
                    for _ in 0..rounds {
                        cell.reduce_by(&plans[plan], CellId(0), 1, &mut x, add)?;
                    }
                }
            }
            BY_HAND.with(Baseline::barrier);
            // The first turn is for warming up.
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
            }
        }
    }
    Ok(times)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
