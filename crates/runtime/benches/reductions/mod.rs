//! Sums of arrays at rank 0: by `MPI_Reduce`, and by conset with an operator of the program, over a tree,
//! by swap, and by the plan that is the cheapest for a node of so many cores
//! ([`ReducePlan::cheapest`]).
//!
//! `MPI_Reduce` adds an array into another one, conset in place. Sums of whole numbers are exact in any
//! order, so all ways have the same result.

use std::time::Instant;

use conset_runtime::ir::{CellId, Image, Machine};
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::Baseline;
use conset_runtime::{Cell, CellError, ReducePlan, Transport, World};

use super::median;

/// Lengths of the arrays, in words of 8 bytes, and how many sums there are between two looks at the
/// clock.
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
/// Ways of conset.
const WAYS: usize = 3;

pub(crate) fn table(comm: &Comm) {
    let ranks = comm.size();
    let machine = Machine::from_spec(&format!("cluster:1x{ranks}")).expect("it is a preset");
    let parameters = machine.parameters().clone();
    let image = Image::new(machine.into(), Vec::new()).expect("no sets fit any machine");
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    if comm.rank() == 0 {
        println!("{ranks} ranks, sums of arrays at rank 0; conset beside MPI_Reduce");
        println!(
            "{:<10}{:>15}{:>9}{:>9}{:>9}   cheapest plan",
            "words", "MPI_Reduce us", "tree", "swap", "plan"
        );
    }
    let swap = ReducePlan::Swap { radices: vec![2; ranks.ilog2() as usize] };
    for (words, rounds) in LENGTHS {
        let plan = ReducePlan::cheapest(&parameters, ranks, words);
        let plans = [ReducePlan::Tree, swap.clone(), plan.clone()];
        let (times, _) =
            world.try_run(|cell| sums(cell, &plans, words, rounds)).expect("sums work");
        if comm.rank() == 0 {
            let [library, ways @ ..] = &times[0];
            let us = median(library.iter().copied());
            let of = |way: &Vec<f64>| median(way.iter().zip(library).map(|(a, b)| a / b));
            let [tree, swap, cheapest] = ways.each_ref().map(of);
            println!("{words:<10}{us:>15.1}{tree:>9.3}{swap:>9.3}{cheapest:>9.3}   {plan:?}");
        }
    }
}

/// Microseconds of a sum at each turn: by the library, and by each plan.
fn sums(
    cell: &mut Cell<'_>,
    plans: &[ReducePlan; WAYS],
    words: usize,
    rounds: usize,
) -> Result<[Vec<f64>; WAYS + 1], CellError> {
    thread_local! {
        static BY_HAND: Baseline = Baseline::new(&[], &[], &[]);
    }
    let add = |lower: &mut [f64], upper: &[f64]| {
        lower.iter_mut().zip(upper).for_each(|(lower, upper)| *lower += upper);
    };
    let root = CellId(0);
    let from: Vec<f64> = (0..words).map(|i| (i % 1000 + cell.id().index()) as f64).collect();
    let mut out = from.clone();
    BY_HAND.with(|b| b.reduce(&from, &mut out, 1));
    for plan in plans {
        let mut x = from.clone();
        cell.reduce_by(plan, root, 1, &mut x, add)?;
        assert!(cell.id() != root || x == out, "all ways give the same sums");
    }
    let mut x = vec![0.0; words];
    let mut times: [Vec<f64>; WAYS + 1] = Default::default();
    for turn in 0..=TURNS {
        for (way, times) in times.iter_mut().enumerate() {
            BY_HAND.with(Baseline::barrier);
            let start = Instant::now();
            match way.checked_sub(1) {
                None => BY_HAND.with(|b| b.reduce(&from, &mut out, rounds)),
                Some(plan) => {
                    for _ in 0..rounds {
                        cell.reduce_by(&plans[plan], root, 1, &mut x, add)?;
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
