//! How long an exchange between vectors takes on threads, gather and scatter included, beside one
//! thread that does all of it: the least there is to do, and divided by the cores what could be
//! hoped for.
//!
//! The set is a halo: five neighbours for each cell, 133 to 554 words each. `copy` sends what the
//! cell owns to ghosts that follow it, `add` adds there, `sum` adds entries that both ends share,
//! so that what goes out is written in the same exchange.
//!
//! And the time of an allreduce for each cell, on few and on many cells: where each cell has as much
//! to do, it is the same.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset::Compiler;
use conset_benches::machine;
use conset_fabric::messages::MessageRoutes;
use conset_ir::{CellId, Connection, ConnectionSet, Image, LinkId, Program, SetImage};
use conset_runtime::lists::{CellLists, Positions};
use conset_runtime::{Collectives, Op, ThreadOptions, Transport, World, tree_sets};
use conset_scheduler::steps::{Levels, StepOrder};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Entries that a cell owns.
const OWNED: u32 = 4000;

/// Exchanges that are timed together.
const BATCH: u64 = 50;

/// The time of so many exchanges, by the quickest batch of them.
fn quickest(times: u64, mut batch: impl FnMut() -> Duration) -> Duration {
    let least = (0..times.div_ceil(BATCH)).map(|_| batch()).min().unwrap_or_default();
    least.mul_f64(times as f64 / BATCH as f64)
}

fn words(one: u32, other: u32) -> u32 {
    133 + (one.min(other) * 6007 + one.max(other) * 7907) % 422
}

fn image(spec: &str) -> Arc<Image> {
    let machine = machine(spec);
    let cells = machine.agent_count() as u32;
    let steps = [1, 2, 4, cells - 2, cells - 1];
    let halo = (0..cells).flat_map(|cell| {
        // The step of half a ring of eight is its own way back.
        steps.map(|step| {
            let other = if step == 4 { cell ^ 4 } else { (cell + step) % cells };
            Connection::new(CellId(cell), CellId(other), words(cell, other))
        })
    });
    let set = ConnectionSet::new("halo", halo.collect()).expect("a set");
    let program = Program::new(vec![Arc::new(set)]).expect("one set");
    let compiled = Compiler::new(&machine).compile(&program);
    compiled.expect("a halo fits").image().clone()
}

/// The entries that two cells share: the same at both ends, by their order.
fn shared(cell: u32, other: u32) -> Vec<u32> {
    let begin = (cell.min(other) * 613 + cell.max(other) * 389) % OWNED;
    (0..words(cell, other)).map(|i| (begin + i * 3) % OWNED).collect()
}

/// What a cell sends and receives; `mixed`: in the same entries.
fn lists(set: &ConnectionSet, cell: CellId, mixed: bool) -> CellLists {
    let mut ghosts = OWNED;
    let send = set.iter().filter(|(_, c)| c.source == cell);
    let send = Positions::new(send.map(|(_, c)| shared(cell.0, c.target.0)));
    let receive = set.iter().filter(|(_, c)| c.target == cell);
    let receive = Positions::new(receive.map(|(_, c)| {
        ghosts += c.words;
        if mixed { shared(cell.0, c.source.0) } else { (ghosts - c.words..ghosts).collect() }
    }));
    CellLists::new(send, receive, 1)
}

fn vector(lists: &CellLists) -> Vec<f64> {
    vec![1e-9; lists.words().expect("it is small").max(OWNED as usize)]
}

fn on_threads(world: &World, op: Op, mixed: bool, times: u64) -> Duration {
    let (times, _) = world
        .try_run(|cell| {
            let lists = lists(&cell.image().sets()[0].set, cell.id(), mixed);
            let mut vector = vector(&lists);
            for _ in 0..20 {
                cell.exchange_lists(0, &lists, op, &mut vector)?;
            }
            let mut result = Ok(());
            let time = quickest(times, || {
                let begin = Instant::now();
                for _ in 0..BATCH {
                    if result.is_ok() {
                        result = cell.exchange_lists(0, &lists, op, &mut vector);
                    }
                }
                black_box(&vector);
                begin.elapsed()
            });
            result.map(|()| time)
        })
        .expect("it runs");
    times.into_iter().max().unwrap_or_default()
}

fn alone(image: &Image, mixed: bool, times: u64) -> Duration {
    let set = &image.sets()[0].set;
    let cells = image.machine().endpoints();
    let lists: Vec<CellLists> = cells.map(|cell| lists(set, cell, mixed)).collect();
    let mut vectors: Vec<Vec<f64>> = lists.iter().map(vector).collect();
    let mut places = vec![(0, 0); lists.len()];
    let transfers: Vec<Transfer> = set
        .connections()
        .iter()
        .map(|c| {
            let (source, target) = (c.source.index(), c.target.index());
            places[source].0 += 1;
            places[target].1 += 1;
            (source, places[source].0 - 1, target, places[target].1 - 1)
        })
        .collect();
    quickest(times, || {
        let begin = Instant::now();
        for _ in 0..BATCH {
            copy(&lists, &transfers, &mut vectors);
        }
        begin.elapsed()
    })
}

/// (source, place among its lists, target, place among its lists)
type Transfer = (usize, usize, usize, usize);

fn copy(lists: &[CellLists], transfers: &[Transfer], vectors: &mut [Vec<f64>]) {
    for &(source, from, target, to) in transfers {
        let (from, to) = (lists[source].send().row(from), lists[target].receive().row(to));
        let Ok([source, target]) = vectors.get_disjoint_mut([source, target]) else { continue };
        for (&from, &to) in from.iter().zip(to) {
            target[to as usize] += source[from as usize];
        }
    }
    black_box(vectors);
}

fn exchanges(c: &mut Criterion) {
    for spec in ["torus:4x2", "torus:8x8", "torus:16x16"] {
        let image = image(spec);
        let set = &image.sets()[0].set;
        let name = format!("exchange/{} messages, {} words", set.len(), set.words());
        let mut group = c.benchmark_group(name);
        group.bench_function("one thread/add", |b| b.iter_custom(|n| alone(&image, false, n)));
        group.bench_function("one thread/sum", |b| b.iter_custom(|n| alone(&image, true, n)));
        for workers in [1, 2] {
            let options = ThreadOptions::workers(workers);
            let world = World::new(image.clone()).on(Transport::Threads(options));
            for (name, op, mixed) in
                [("copy", Op::Copy, false), ("add", Op::Add, false), ("sum", Op::Add, true)]
            {
                group.bench_function(BenchmarkId::new(format!("{workers} workers"), name), |b| {
                    b.iter_custom(|times| on_threads(&world, op, mixed, times));
                });
            }
        }
        group.finish();
    }
}

/// The trees of a machine. On threads it does not matter how they are compiled; this is quick.
fn trees(spec: &str) -> Arc<Image> {
    let machine = machine(spec);
    let planner = Levels::direct(&machine, StepOrder::ALL[0]);
    let protocol = machine.parameters().protocol;
    let mut routes = MessageRoutes::new(&machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let [_, _, set] = tree_sets(&machine, 1).expect("one word fits");
    let steps = planner.plan(&machine, &Arc::new(set), protocol, &mut route);
    let set = SetImage::of_steps(steps.expect("a tree can be sent"));
    Arc::new(Image::new(machine, vec![set]).expect("one set"))
}

/// The time of so many sums, divided by the cells.
fn allreduce(world: &World, trees: &Collectives, words: usize, times: u64) -> Duration {
    let run = world.try_run(|cell| {
        let own: Vec<f64> = (0..words).map(|i| 1.0 / (i as f64 + 1.0)).collect();
        let mut x = own.clone();
        cell.allreduce(trees, Op::Add, &mut x)?;
        cell.barrier(trees)?;
        let begin = Instant::now();
        for _ in 0..times {
            x.copy_from_slice(&own);
            cell.allreduce(trees, Op::Add, &mut x)?;
        }
        cell.barrier(trees)?;
        black_box(&x);
        Ok(begin.elapsed())
    });
    let (times, _) = run.expect("it runs");
    times.iter().max().copied().unwrap_or_default() / times.len() as u32
}

fn allreduces(c: &mut Criterion) {
    let mut group = c.benchmark_group("allreduce for each cell");
    for (cells, spec) in [(64, "torus:8x8"), (1024, "torus:32x32"), (10_000, "torus:100x100")] {
        let image = trees(spec);
        let trees = Collectives::new(&image).expect("it is a tree");
        for workers in [1, 2] {
            let options = ThreadOptions::workers(workers);
            let world = World::new(image.clone()).on(Transport::Threads(options));
            for words in [1, 100] {
                let name = format!("{cells} cells, {workers} workers");
                group.bench_function(BenchmarkId::new(name, format!("{words} words")), |b| {
                    b.iter_custom(|times| allreduce(&world, &trees, words, times));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, exchanges, allreduces);
criterion_main!(benches);
