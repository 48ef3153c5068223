//! Sums of arrays over all ranks: over the binomial tree by hand, by conset, and by
//! `MPI_Allreduce`.
//!
//! By hand is the same tree with `MPI_Send` and `MPI_Recv`, and gives the same bits as conset;
//! `MPI_Allreduce` adds in whatever order the library prefers.

use std::time::Instant;

use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::Baseline;
use conset_runtime::{Cell, CellError, Collectives, Op, Transport, World, tree_sets};

use super::{BLOCKS, build, median};

/// Lengths of the arrays, in words of 8 bytes, and how many sums there are between two looks at the
/// clock.
const LENGTHS: [(usize, usize); 5] = [(1, 100), (3, 100), (128, 100), (1000, 50), (50_000, 4)];
/// How often each way has its turn.
const TURNS: usize = 20;

pub(crate) fn table(comm: &Comm) {
    let machine = build::machine(&format!("ring:{}", comm.size()), |_| ());
    // As narrow as trees can be: over MPI arrays travel whole all the same.
    let image = build::build_all(&machine, tree_sets(&machine, 1).expect("one word fits"));
    let trees = Collectives::new(&image).expect("they are trees");
    let world = World::new(image).on(Transport::Mpi(comm.clone()));
    if comm.rank() == 0 {
        println!("{} ranks, sums of arrays over all ranks", comm.size());
        println!(
            "{:<10}{:>13}{:>13}{:>17}{:>18}{:>21}",
            "words",
            "by hand us",
            "conset us",
            "MPI_Allreduce us",
            "conset / by hand",
            "conset / Allreduce"
        );
    }
    for (words, rounds) in LENGTHS {
        let mut ways: [Vec<f64>; 3] = Default::default();
        for _ in 0..BLOCKS {
            let (times, _) =
                world.try_run(|cell| sums(cell, &trees, words, rounds)).expect("sums work");
            for (way, times) in ways.iter_mut().zip(&times[0]) {
                way.extend(times);
            }
        }
        if comm.rank() == 0 {
            let [by_hand, ours, library] = ways.each_ref().map(|way| median(way.iter().copied()));
            let of = |other: &[f64]| median(ways[1].iter().zip(other).map(|(a, b)| a / b));
            let (of_hand, of_library) = (of(&ways[0]), of(&ways[2]));
            println!(
                "{words:<10}{by_hand:>13.1}{ours:>13.1}{library:>17.1}{of_hand:>18.3}{of_library:>21.3}"
            );
        }
    }
}

/// Microseconds for a sum at each turn: by hand, by conset, by the library.
fn sums(
    cell: &mut Cell<'_>,
    trees: &Collectives,
    words: usize,
    rounds: usize,
) -> Result<[Vec<f64>; 3], CellError> {
    thread_local! {
        static BY_HAND: Baseline = Baseline::new(&[], &[], &[]);
    }
    let begin = |i: usize| 1.0 / (i as f64 + 3.0 * f64::from(cell.id().0) + 1.0);
    let from: Vec<f64> = (0..words).map(begin).collect();
    let (mut scratch, mut out) = (from.clone(), [from.clone(), from.clone(), from.clone()]);
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS + 1 {
        for (way, times) in times.iter_mut().enumerate() {
            BY_HAND.with(Baseline::barrier);
            let start = Instant::now();
            match way {
                0 => BY_HAND.with(|b| b.tree_sum(&from, &mut out[0], &mut scratch, rounds)),
                1 => {
                    for _ in 0..rounds {
                        out[1].copy_from_slice(&from);
                        cell.allreduce(trees, Op::Add, &mut out[1])?;
                    }
                }
                _ => BY_HAND.with(|b| b.allreduce(&from, &mut out[2], rounds)),
            }
            BY_HAND.with(Baseline::barrier);
            // The first turn is for warming up.
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
            }
        }
    }
    let same = out[0].iter().zip(&out[1]).all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "by hand and by conset the sums have the same bits");
    Ok(times)
}
