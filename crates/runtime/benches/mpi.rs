//! Sums of arrays over 8 ranks and over 4: by hand over MPI, by conset and by `MPI_Allreduce`
//! (module `collectives`). Sums at one rank by conset and by `MPI_Reduce` (module `reductions`). And
//! one exchange of a vector's entries between 8 ranks: by hand over MPI, and by conset.
//!
//! ```text
//! cargo build --release -p conset-runtime --features mpi-baseline --bench mpi
//! target/release/deps/mpi-<hash> [sums | reduce | lengths | exchange | overlap]...
//! ```
//!
//! 40 messages of 133 to 554 numbers, 119 KB in all; gather and scatter-add included. All ways
//! take turns within one run, so that the ratios mean something on a noisy machine; the times do
//! not where there are more ranks than cores.
//!
//! Then messages of one length, short and long, of `f64` and of `f32` (beside `MPI_FLOAT`).
//!
//! Then the same pattern with work in between: an exchange and work about as long, one after the
//! other, and the work between the exchange's begin and its end. Where all cores are busy with the
//! work of the cells, nothing is left to hide: the table also counts the exchanges that had arrived
//! when the work was done, and has the same by hand (`MPI_Irecv`, `MPI_Isend`, work, `MPI_Waitall`).
//! The last rows of each part are without work: what it costs to start and complete an exchange, beside
//! one call. Every cell writes its vector before each exchange, as solvers do: on threads the words of a
//! vector that nobody writes stay in the caches of those who read them, so that only the exchange that
//! reads them in place seems to cost half.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

mod collectives;
mod launch;
mod median;
mod reductions;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use conset_runtime::ir::{ConnectionSet, NodeLists};
use conset_runtime::lists::{CellLists, Positions};
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::baseline::Baseline;
use conset_runtime::{Cell, CellError, Layout, Number, Op, Plan, ThreadOptions, Transport, World};
use median::median;

const RANKS: usize = 8;
/// Exchanges between two looks at the clock, and how often each way has its turn.
const ROUNDS: usize = 50;
const TURNS: usize = 40;
/// Times that MPI and threads have their turns.
const BLOCKS: usize = 5;

fn main() -> ExitCode {
    let comm = match launch::jobs(&[RANKS as u32, 4]) {
        Ok(comm) => comm,
        Err(code) => return code,
    };
    if is_asked_for("sums") {
        collectives::table(&comm);
    }
    if comm.size() != RANKS {
        return ExitCode::SUCCESS;
    }
    if is_asked_for("reduce") {
        reductions::table(&comm);
    }
    if is_asked_for("lengths") {
        length_table(&comm);
    }
    for (name, channels) in [("one phase", 16), ("as compiled for 4 channels", 4)] {
        if is_asked_for("exchange") {
            table(&comm, name, channels);
        }
        if is_asked_for("overlap") {
            overlap_table(&comm, channels);
        }
    }
    ExitCode::SUCCESS
}

/// Whether the arguments name a table, or none.
fn is_asked_for(table: &str) -> bool {
    // Cargo adds options.
    let mut names = std::env::args().skip(1).filter(|name| !name.starts_with("--")).peekable();
    names.peek().is_none() || names.any(|name| name == table)
}

/// The pairs of neighbours, as connections both ways: (source, target, words).
fn pattern() -> Vec<(u32, u32, u32)> {
    let ranks = RANKS as u32;
    let distances = [(1, ranks), (2, ranks), (4, ranks / 2)];
    let pairs = distances.iter().flat_map(|&(d, n)| (0..n).map(move |c| (c, (c + d) % ranks)));
    let pairs: Vec<(u32, u32)> = pairs.collect();
    let most = (pairs.len() - 1) as f64;
    // Spread so that the mean is that of a partitioned mesh's halo.
    let words = |k: usize| 133 + (421.0 * (k as f64 / most).powf(0.75)).round() as u32;
    // Sizes in another order than pairs, so that each rank has small and large ones.
    let sized = pairs.iter().enumerate().map(|(k, &(a, b))| (a, b, words(k * 7 % pairs.len())));
    sized.flat_map(|(a, b, words)| [(a, b, words), (b, a, words)]).collect()
}

fn table(comm: &Comm, name: &str, channels: u32) {
    let machine = build::machine("ring:8", |p| p.channels_per_cell = channels);
    let image = Arc::new(build::build(&machine, build::set(&pattern())));
    let phases = image.sets()[0].phases.len();
    let world = World::new(image.clone()).on(Transport::Mpi(comm.clone()));
    let idle = Baseline::new(&[], &[], &[]);
    let mut ways: [Vec<f64>; 4] = Default::default();
    for _ in 0..BLOCKS {
        let (times, _) = world.try_run(by_message).expect("the exchange works");
        if comm.rank() == 0 {
            let threads = Transport::Threads(ThreadOptions::default());
            let world = World::new(image.clone()).on(threads);
            let (own, _) = world.try_run(by_threads).expect("the exchange works");
            for (way, times) in ways.iter_mut().zip(times[0].iter().chain(own.first())) {
                way.extend(times);
            }
        }
        // The others leave the cores to the threads meanwhile.
        idle.sleep();
    }
    if comm.rank() > 0 {
        return;
    }
    let bytes: u32 = pattern().iter().map(|(_, _, words)| words * 8).sum();
    println!(
        "{RANKS} ranks, {} messages, {bytes} bytes, {phases} phases ({name})",
        pattern().len()
    );
    println!(
        "{:<24}{:>11}{:>11}{:>15}{:>10}",
        "", "median us", "least us", "of persistent", "of naive"
    );
    let names = ["Irecv/Isend/Waitall", "persistent", "conset over MPI", "conset on threads"];
    for (name, own) in names.iter().zip(&ways) {
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        let of = |other: &[f64]| median(own.iter().zip(other).map(|(a, b)| a / b));
        let (persistent, naive) = (of(&ways[1]), of(&ways[0]));
        let us = median(own.iter().copied());
        println!("{name:<24}{us:>11.1}{least:>11.1}{persistent:>15.3}{naive:>10.3}");
    }
}

/// Each with its neighbours at distances 1, 2 and 4, messages of one length.
fn length_table(comm: &Comm) {
    let machine = build::machine("ring:8", |p| p.channels_per_cell = 16);
    if comm.rank() == 0 {
        println!(
            "{:<24}{:>15}{:>15}{:>10}{:>22}",
            "words", "naive us", "conset us", "of naive", "naive of itself"
        );
    }
    for words in [3, 133, 500, 1000, 3800, 20_000, 100_000] {
        let pattern: Vec<_> = pattern().iter().map(|&(a, b, _)| (a, b, words)).collect();
        let image = Arc::new(build::build(&machine, build::set(&pattern)));
        let world = World::new(image).on(Transport::Mpi(comm.clone()));
        let rounds = (50_000 / words as usize).clamp(4, ROUNDS);
        let doubles =
            world.try_run(|cell| one_length(cell, rounds, Baseline::naive, |i| 1.0 / f64::from(i)));
        length_row(comm, &format!("{words} f64"), &doubles.expect("the exchange works").0[0]);
        let floats = world
            .try_run(|cell| one_length(cell, rounds, Baseline::naive_float, |i| 1.0 / i as f32));
        length_row(comm, &format!("{words} f32"), &floats.expect("the exchange works").0[0]);
    }
}

fn length_row(comm: &Comm, name: &str, [naive, conset, again]: &[Vec<f64>; 3]) {
    if comm.rank() > 0 {
        return;
    }
    let of = |own: &[f64]| median(own.iter().zip(naive).map(|(a, b)| a / b));
    let [one, two] = [naive, conset].map(|times| median(times.iter().copied()));
    let quiet = of(again);
    let remark = if (0.9..1.1).contains(&quiet) { "" } else { "  the machine was not quiet" };
    println!("{name:<24}{one:>15.1}{two:>15.1}{:>10.3}{quiet:>22.3}{remark}", of(conset));
}

/// Microseconds for an exchange at each turn: by hand, by conset, and by hand again.
fn one_length<W: Number>(
    cell: &mut Cell<'_>,
    rounds: usize,
    naive: impl Fn(&Baseline, &mut [W], usize),
    begin: impl Fn(u32) -> W,
) -> Result<[Vec<f64>; 3], CellError> {
    let part = Part::new(cell)?;
    let lists = part.lists();
    let by_hand = Baseline::new(&part.neighbours, &part.gather, &part.scatter);
    let vector: Vec<W> = (0..part.vector.len() as u32).map(|i| begin(i + 1)).collect();
    let mut x = [vector.clone(), vector.clone(), vector];
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS / 2 + 1 {
        for (way, times) in times.iter_mut().enumerate() {
            by_hand.barrier();
            let start = Instant::now();
            match way {
                1 => {
                    for _ in 0..rounds {
                        cell.exchange_lists(0, &lists, Op::Add, &mut x[1])?;
                    }
                }
                _ => naive(&by_hand, &mut x[way], rounds),
            }
            by_hand.barrier();
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
            }
        }
    }
    let same = x[0].iter().zip(&x[1]).all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "all ways give the same bits");
    Ok(times)
}

/// The pattern with an id of its own for every word, which both its ends have.
fn numbered() -> (ConnectionSet, Vec<Vec<u64>>) {
    let set = build::set(&pattern());
    let mut ids = vec![Vec::new(); RANKS];
    let mut lists: Vec<Vec<u32>> = Vec::new();
    let mut first = 0;
    for (_, connection) in set.iter() {
        let list = first..first + connection.words;
        for end in [connection.source, connection.target] {
            ids[end.index()].extend(list.clone().map(u64::from));
        }
        first = list.end;
        lists.push(list.collect());
    }
    let nodes = NodeLists::from_lists(lists.iter().map(|list| &list[..]));
    (set.with_nodes(nodes).expect("a list for each connection"), ids)
}

fn overlap_table(comm: &Comm, channels: u32) {
    let machine = build::machine("ring:8", |p| p.channels_per_cell = channels);
    let (set, ids) = numbered();
    let image = Arc::new(build::build(&machine, set));
    let layout = Layout::from_image(&image, 0, 1, &ids).expect("the ids are those of the set");
    let plan = Plan::new(&image, 0, layout, 1).expect("the layout is the set's");
    let world = World::new(image.clone()).on(Transport::Mpi(comm.clone()));
    let idle = Baseline::new(&[], &[], &[]);
    let mut ways: [Vec<f64>; 2 * WAYS] = Default::default();
    let mut arrived = [0.0; 2];
    for _ in 0..BLOCKS {
        let (over_mpi, _) =
            world.try_run(|cell| with_work(cell, &plan, true)).expect("the exchange works");
        if comm.rank() == 0 {
            let threads = Transport::Threads(ThreadOptions::default());
            let world = World::new(image.clone()).on(threads);
            let (on_threads, _) =
                world.try_run(|cell| with_work(cell, &plan, false)).expect("the exchange works");
            let runs = [&over_mpi[0], &on_threads[0]];
            for (way, times) in ways.iter_mut().zip(runs.iter().flat_map(|run| &run.times)) {
                way.extend(times);
            }
            for (arrived, run) in arrived.iter_mut().zip(runs) {
                *arrived += run.arrived / BLOCKS as f64;
            }
        }
        idle.sleep();
    }
    if comm.rank() > 0 {
        return;
    }
    println!("{:<36}{:>11}{:>11}{:>20}", "with work", "median us", "least us", "of one by one");
    let names = ["over MPI", "on threads"];
    for ((name, ways), arrived) in names.iter().zip(ways.chunks(WAYS)).zip(arrived) {
        for (row, (what, own)) in
            NAMES.iter().zip(ways).enumerate().filter(|row| !row.1.1.is_empty())
        {
            let least = own.iter().copied().fold(f64::INFINITY, f64::min);
            let of = median(own.iter().zip(&ways[ONE_BY_ONE[row]]).map(|(a, b)| a / b));
            let us = median(own.iter().copied());
            println!("{:<36}{us:>11.1}{least:>11.1}{of:>20.3}", format!("{what} {name}"));
        }
        println!("    arrived when the work was done: {:.0} of 100 (cell 0)", 100.0 * arrived);
    }
}

/// Ways to exchange with work, and without.
const WAYS: usize = 7;
const NAMES: [&str; WAYS] = [
    "exchange, work",
    "begin, work, end",
    "begin, work, test, end",
    "by hand: exchange, work",
    "by hand: begin, work, end",
    "exchange alone",
    "begin, end alone",
];
/// The way with which each is compared.
const ONE_BY_ONE: [usize; WAYS] = [0, 0, 0, 3, 3, 5, 5];

/// An exchange with work.
struct WithWork {
    /// Microseconds at each turn, by way; nothing by hand on threads.
    times: [Vec<f64>; WAYS],
    /// The share of the tests that found everything there: what is done before the end.
    arrived: f64,
}

fn with_work(cell: &mut Cell<'_>, plan: &Plan, over_mpi: bool) -> Result<WithWork, CellError> {
    let barrier = over_mpi.then(|| Baseline::new(&[], &[], &[]));
    let meet = || barrier.iter().for_each(Baseline::barrier);
    let mut x = vec![1.0; plan.layout().items_of(cell.id())];
    // Work of all cells together for as long as an exchange takes.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = (cores as f64 / RANKS as f64).min(1.0);
    let mut exchange = f64::INFINITY;
    for _ in 0..5 {
        meet();
        let start = Instant::now();
        for _ in 0..ROUNDS {
            write(&mut x);
            cell.exchange_nodes(plan, Op::Copy, &mut x)?;
        }
        exchange = exchange.min(start.elapsed().as_secs_f64() / ROUNDS as f64);
    }
    const STEPS: u32 = 100_000;
    let start = Instant::now();
    let mut value = work(1.0, STEPS);
    let steps = (exchange * share / start.elapsed().as_secs_f64() * f64::from(STEPS)) as u32;
    let part = Part::new(cell)?;
    let by_hand = over_mpi.then(|| Baseline::new(&part.neighbours, &part.gather, &part.scatter));
    let mut own = part.vector;
    let mut times: [Vec<f64>; WAYS] = Default::default();
    let (mut tests, mut arrived) = (0u32, 0u32);
    for turn in 0..TURNS / 4 + 1 {
        for (way, times) in times.iter_mut().enumerate() {
            if by_hand.is_none() && NAMES[way].starts_with("by hand") {
                continue;
            }
            meet();
            let start = Instant::now();
            for _ in 0..ROUNDS {
                write(if matches!(way, 3 | 4) { &mut own } else { &mut x });
                match (way, &by_hand) {
                    (0, _) => {
                        cell.exchange_nodes(plan, Op::Copy, &mut x)?;
                        value = work(value, steps);
                    }
                    (1 | 2, _) => {
                        let token = cell.start(plan, Op::Copy, &x)?;
                        value = work(value, steps);
                        if way == 2 {
                            tests += 1;
                            arrived += u32::from(cell.test(&token)?);
                        }
                        cell.wait(plan, token, &mut x)?;
                    }
                    (3, Some(by_hand)) => {
                        by_hand.naive(&mut own, 1);
                        value = work(value, steps);
                    }
                    (4, Some(by_hand)) => {
                        by_hand.start(&own);
                        value = work(value, steps);
                        by_hand.complete(&mut own);
                    }
                    (5, _) => cell.exchange_nodes(plan, Op::Copy, &mut x)?,
                    _ => {
                        let token = cell.start(plan, Op::Copy, &x)?;
                        cell.wait(plan, token, &mut x)?;
                    }
                }
            }
            meet();
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
            }
        }
    }
    assert!(value.is_finite());
    Ok(WithWork { times, arrived: f64::from(arrived) / f64::from(tests.max(1)) })
}

/// Writes every entry of a vector.
fn write(x: &mut [f64]) {
    x.iter_mut().for_each(|x| *x = *x * 0.999 + 0.5);
}

/// Work that uses the core and no memory.
fn work(mut value: f64, steps: u32) -> f64 {
    for _ in 0..steps {
        value = std::hint::black_box(value * 0.999 + 0.5);
    }
    value
}

/// A cell's part of the pattern: gather and scatter lists, in the order of its neighbours.
struct Part {
    neighbours: Vec<usize>,
    gather: Vec<Vec<u32>>,
    scatter: Vec<Vec<u32>>,
    vector: Vec<f64>,
}

impl Part {
    fn new(cell: &mut Cell<'_>) -> Result<Self, CellError> {
        let (out, inn) = (cell.connections_out(0)?, cell.connections_in(0)?);
        let set = cell.image().sets()[0].set.clone();
        let longest = set.iter().map(|(_, connection)| connection.words).max().unwrap_or(0);
        let length = 4096.max(2 * longest);
        // Positions ascend with gaps, as a boundary's do in a vector; what comes in has its own
        // half.
        let list = |words: u32, from: u32, seed: u32| -> Vec<u32> {
            let gap = length / words;
            (0..words).map(|i| from + i * gap + (i + seed) % gap).collect()
        };
        let gather = out.iter().map(|&x| list(set.get(x).words, 0, x.0)).collect();
        let scatter = inn.iter().map(|&x| list(set.get(x).words, length, x.0)).collect();
        // By hand the neighbours have the order of our connections, so that sums have the same
        // bits. Connections come in pairs, and so are in the same order out and in.
        let neighbours: Vec<usize> = out.iter().map(|&x| set.get(x).target.index()).collect();
        let sources: Vec<usize> = inn.iter().map(|&x| set.get(x).source.index()).collect();
        assert_eq!(neighbours, sources);
        let begin = |i: u32| 1.0 / f64::from(i + cell.id().0 + 1);
        let vector = (0..2 * length).map(begin).collect();
        Ok(Self { neighbours, gather, scatter, vector })
    }

    fn lists(&self) -> CellLists {
        CellLists::new(Positions::new(&self.gather), Positions::new(&self.scatter), 1)
    }
}

/// Microseconds for an exchange at each turn: by hand anew, by hand persistent, and ours.
fn by_message(cell: &mut Cell<'_>) -> Result<[Vec<f64>; 3], CellError> {
    let part = Part::new(cell)?;
    let lists = part.lists();
    let by_hand = Baseline::new(&part.neighbours, &part.gather, &part.scatter);
    let mut x = [part.vector.clone(), part.vector.clone(), part.vector];
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS + 1 {
        for (way, times) in times.iter_mut().enumerate() {
            by_hand.barrier();
            let start = Instant::now();
            match way {
                0 => by_hand.naive(&mut x[0], ROUNDS),
                1 => by_hand.persistent(&mut x[1], ROUNDS),
                _ => {
                    for _ in 0..ROUNDS {
                        cell.exchange_lists(0, &lists, Op::Add, &mut x[2])?;
                    }
                }
            }
            by_hand.barrier();
            // The first turn is for warming up.
            if turn > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
            }
        }
    }
    for other in &x[1..] {
        let same = x[0].iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "all ways give the same bits");
    }
    Ok(times)
}

/// The same on threads of one process.
fn by_threads(cell: &mut Cell<'_>) -> Result<Vec<f64>, CellError> {
    let part = Part::new(cell)?;
    let lists = part.lists();
    let mut x = part.vector;
    let mut times = Vec::new();
    for turn in 0..TURNS + 1 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            cell.exchange_lists(0, &lists, Op::Add, &mut x)?;
        }
        if turn > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
        }
    }
    Ok(times)
}
