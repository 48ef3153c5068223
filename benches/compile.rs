//! How long compiling takes: stage by stage and as a whole, partitioning aside.

use std::hint::black_box;
use std::sync::Arc;

use conset::Compiler;
use conset::input::PartitionUnit;
use conset_benches::{iwarp, machine, pattern, shared_halo};
use conset_ir::{ConnectionSet, Machine, Program};
use conset_partition_route::{apr, bounds, placement};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Inputs of the 8x8 torus, each with its name.
fn inputs(machine: &Machine) -> Vec<(&'static str, Arc<ConnectionSet>)> {
    let mut inputs: Vec<(&str, Arc<ConnectionSet>)> = ["torus", "hypercube", "all-to-all"]
        .into_iter()
        .map(|name| (name, pattern(name, machine, 256)))
        .collect();
    for (name, file, elements) in [
        ("crack-triangles", "walshaw/crack.graph", PartitionUnit::Triangles),
        ("crack-vertices", "walshaw/crack.graph", PartitionUnit::AsRead),
        ("sf10.64", "spark98/sf10.64.pack", PartitionUnit::AsRead),
    ] {
        inputs.extend(shared_halo(file, elements, machine).map(|set| (name, set)));
    }
    inputs
}

fn whole(c: &mut Criterion) {
    let machine = iwarp();
    let mut group = c.benchmark_group("compile");
    group.sample_size(20);
    for (name, set) in inputs(&machine) {
        let program = Program::new(vec![set]).expect("one set");
        group.bench_function(name, |b| {
            b.iter(|| Compiler::new(&machine).compile(black_box(&program)));
        });
    }
    group.finish();
}

fn stages(c: &mut Criterion) {
    let machine = iwarp();
    let mut group = c.benchmark_group("stage");
    group.sample_size(20);
    for (name, set) in inputs(&machine) {
        group.bench_function(BenchmarkId::new("bounds", name), |b| {
            b.iter(|| bounds::bounds(&machine, black_box(&set)));
        });
        group.bench_function(BenchmarkId::new("place", name), |b| {
            b.iter(|| placement::place(&machine, black_box(&set), 64, placement::Method::Best, 1));
        });
        let options = apr::RouterOptions::default();
        group.bench_function(BenchmarkId::new("route", name), |b| {
            b.iter(|| apr::route(&machine, black_box(&set), &options, &mut |_| ()));
        });
        let routing = apr::route(&machine, &set, &options, &mut |_| ()).expect("it fits");
        group.bench_function(BenchmarkId::new("timetable", name), |b| {
            b.iter(|| conset_scheduler::greedy::timetable(black_box(routing.clone())));
        });
        let timetable = conset_scheduler::greedy::timetable(routing).expect("it has a timetable");
        group.bench_function(BenchmarkId::new("predict", name), |b| {
            b.iter(|| conset_scheduler::predict::predict(black_box(&timetable)));
        });
        group.bench_function(BenchmarkId::new("verify", name), |b| {
            b.iter(|| conset::verify::check_timetable(black_box(&timetable)));
        });
    }
    group.finish();
}

/// All-to-all on growing machines: time against the number of connections.
fn sizes(c: &mut Criterion) {
    let mut group = c.benchmark_group("route/all-to-all");
    group.sample_size(10);
    for side in [2, 4, 8, 16] {
        let machine = machine(&format!("torus:{side}x{side}"));
        let set = pattern("all-to-all", &machine, 256);
        group.throughput(criterion::Throughput::Elements(set.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(set.len()), |b| {
            b.iter(|| apr::route(&machine, &set, &apr::RouterOptions::default(), &mut |_| ()));
        });
    }
    group.finish();
}

/// After a change: afresh, and from the compile before it.
fn changes(c: &mut Criterion) {
    for (spec, name, words) in [
        ("torus:16x16", "all-to-all", 2048),
        ("torus:32x32", "stencil", 256),
        ("mesh:8x8", "random:0.1", 2048),
    ] {
        let machine = machine(spec);
        let set = pattern(name, &machine, words);
        let program = Program::new(vec![set.clone()]).expect("one set");
        let old = Compiler::new(&machine).compile(&program).expect("it fits");
        let mut group = c.benchmark_group(format!("change/{spec}/{name}"));
        group.sample_size(10);
        for (change, count) in [("one", 1), ("percent", set.len().div_ceil(100))] {
            let program = changed(&set, count);
            group.bench_function(BenchmarkId::new("fresh", change), |b| {
                b.iter(|| Compiler::new(&machine).compile(black_box(&program)));
            });
            group.bench_function(BenchmarkId::new("from", change), |b| {
                b.iter(|| {
                    Compiler::new(&machine).reuse(old.schedule()).compile(black_box(&program))
                });
            });
        }
        group.finish();
    }
}

/// The set with other words in so many of its connections, evenly spread.
fn changed(set: &ConnectionSet, count: usize) -> Program {
    let mut connections = set.connections().to_vec();
    for change in 0..count {
        let words = &mut connections[(2 * change + 1) * set.len() / (2 * count)].words;
        *words += words.div_ceil(4);
    }
    ConnectionSet::new(set.name(), connections).expect("a set as before").into()
}

criterion_group!(benches, whole, stages, sizes, changes);
criterion_main!(benches);
