//! How fast the fabric moves words: word-hops per second, reported as elements.
//!
//! | group | what is measured |
//! |---|---|
//! | `ticking` | every clock gone through: no period is skipped |
//! | `fabric` | as everybody runs it, with skipping; patterns of 32 to 2048 words |
//! | `streams` | 16384 words a connection: what skipping is for |
//! | `messages` | the same patterns by message passing, ticking and skipping |
//!
//! A word-hop is a word carried over a link. What agents do for it, which is a good third of the
//! work of all-to-all and most of the torus pattern's (one hop a word), is in the time.

use std::hint::black_box;
use std::sync::Arc;

use conset::{Options, compile};
use conset_benches::{iwarp, machine, pattern};
use conset_fabric::messages::{self, MessageOptions, MessageOrder};
use conset_fabric::{FabricOptions as Run, run_with};
use conset_ir::{Image, Machine, Program};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};

/// Pattern, machine, words of each connection.
type Case = (&'static str, &'static str, u32);

const PATTERNS: [Case; 5] = [
    ("torus", "iwarp", 2048),
    ("hypercube", "iwarp", 2048),
    ("all-to-all", "iwarp", 32),
    ("all-to-all", "iwarp", 256),
    ("all-to-all", "iwarp:4x4", 256),
];

const STREAMS: [Case; 3] =
    [("torus", "iwarp", 16384), ("hypercube", "iwarp", 16384), ("all-to-all", "iwarp", 16384)];

fn machine_of(spec: &str) -> Arc<Machine> {
    if spec == "iwarp" { iwarp() } else { machine(spec) }
}

fn image(spec: &str, machine: &Arc<Machine>, words: u32) -> Arc<Image> {
    let program = Program::new(vec![pattern(spec, machine, words)]).expect("one set");
    let compiled = compile(machine, &program, &Options::default(), &mut |_| ());
    compiled.expect("the patterns fit").image().clone()
}

/// Runs a compiled pattern.
fn connections(group: &mut BenchmarkGroup<'_, WallTime>, (spec, on, words): Case, skip: bool) {
    let image = image(spec, &machine_of(on), words);
    let options = Run::default().with_skip(skip);
    let run = || run_with(black_box(image.clone()), 0, 1, options).expect("it runs");
    group.throughput(Throughput::Elements(run().report.word_hops));
    group.bench_function(BenchmarkId::new(format!("{spec}/{on}"), words), |b| b.iter(run));
}

/// Runs a pattern by messages.
fn message_passing(
    group: &mut BenchmarkGroup<'_, WallTime>,
    (spec, on, words): Case,
    name: &str,
    skip: bool,
) {
    let machine = machine_of(on);
    let set = pattern(spec, &machine, words);
    let order = MessageOrder::Random;
    let options = MessageOptions::default().with_skip(skip).with_order(order);
    let run = || messages::run_checked(black_box(&machine), &set, &options).expect("it runs");
    group.throughput(Throughput::Elements(run().word_hops));
    group.bench_function(BenchmarkId::new(format!("{spec}/{on}/{name}"), words), |b| b.iter(run));
}

fn ticking(c: &mut Criterion) {
    let mut group = c.benchmark_group("ticking");
    group.sample_size(10);
    for case in PATTERNS {
        connections(&mut group, case, false);
    }
    group.finish();
}

fn patterns(c: &mut Criterion) {
    let mut group = c.benchmark_group("fabric");
    group.sample_size(10);
    for case in PATTERNS {
        connections(&mut group, case, true);
    }
    group.finish();
}

fn streams(c: &mut Criterion) {
    let mut group = c.benchmark_group("streams");
    group.sample_size(10);
    for case in STREAMS {
        connections(&mut group, case, true);
    }
    group.finish();
}

fn by_messages(c: &mut Criterion) {
    let mut group = c.benchmark_group("messages");
    group.sample_size(10);
    let small = ("all-to-all", "iwarp", 256);
    message_passing(&mut group, small, "ticking", false);
    message_passing(&mut group, small, "skipping", true);
    for case in STREAMS {
        message_passing(&mut group, case, "skipping", true);
    }
    group.finish();
}

criterion_group!(benches, ticking, patterns, streams, by_messages);
criterion_main!(benches);
