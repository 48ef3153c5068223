//! How fast the fabric moves words: word-hops per second, reported as elements.

use std::hint::black_box;
use std::sync::Arc;

use conset::{Options, compile};
use conset_benches::{iwarp, machine, pattern};
use conset_fabric::run_checked;
use conset_ir::{Image, Machine, Program};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn image(spec: &str, machine: &Arc<Machine>, words: u32) -> Arc<Image> {
    let program = Program::new(vec![pattern(spec, machine, words)]).expect("one set");
    let compiled = compile(machine, &program, &Options::default(), &mut |_| ());
    compiled.expect("the patterns fit").image().clone()
}

fn patterns(c: &mut Criterion) {
    let mut group = c.benchmark_group("fabric");
    group.sample_size(10);
    let cases = [
        ("torus", "iwarp", 2048),
        ("hypercube", "iwarp", 2048),
        ("all-to-all", "iwarp", 32),
        ("all-to-all", "iwarp", 256),
        ("all-to-all", "iwarp:4x4", 256),
    ];
    for (spec, on, words) in cases {
        let machine = if on == "iwarp" { iwarp() } else { machine(on) };
        let image = image(spec, &machine, words);
        let hops = run_checked(image.clone(), 0, 1, false).expect("it runs").report.word_hops;
        group.throughput(Throughput::Elements(hops));
        group.bench_function(BenchmarkId::new(format!("{spec}/{on}"), words), |b| {
            b.iter(|| run_checked(black_box(image.clone()), 0, 1, false));
        });
    }
    group.finish();
}

criterion_group!(benches, patterns);
criterion_main!(benches);
