//! The search for a partition: never worse than the seed's own partition, the same on any number of
//! threads, balanced, and never a change of a partition that is given.

use crate::shared_meshes;
use std::sync::Arc;

use conset::input::{self, Input, LoadOptions, LoadedProgram};
use conset::{Compiler, Objective};
use conset_ir::Machine;
use conset_mesh::generate;
use conset_mesh::write_msh::{MshFormat, write};

fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).unwrap())
}

fn mesh(spec: &str) -> Vec<u8> {
    write(&generate::by_name(spec, 1).unwrap(), MshFormat::V41Binary).unwrap()
}

fn load(name: &str, bytes: &[u8], machine: &Machine, options: &LoadOptions<'_>) -> LoadedProgram {
    match input::load(name, bytes, machine, options, &mut |_| ()) {
        Ok(Input::Program(loaded)) => *loaded,
        other => panic!("{name}: {other:?}"),
    }
}

/// Clocks and phases of the compiled program.
fn clocks(machine: &Arc<Machine>, loaded: &LoadedProgram, objective: Objective) -> (u64, usize) {
    let compiled = Compiler::new(machine).objective(objective).compile(&loaded.program).unwrap();
    let set = &compiled.schedule().sets()[0];
    (set.predicted_clocks, set.timetable.phases().len())
}

/// A METIS graph file of a cycle with chords.
fn ring(vertices: usize, chord: usize) -> String {
    let mut text = format!("{vertices} {}\n", 2 * vertices);
    for v in 0..vertices {
        let near = [1, vertices - 1, chord, vertices - chord];
        let others = near.map(|step| ((v + step) % vertices + 1).to_string());
        text.push_str(&others.join(" "));
        text.push('\n');
    }
    text
}

#[test]
fn a_search_is_never_worse_than_the_seed_alone() {
    let plate = mesh("plate:30x20");
    let box_mesh = mesh("tets:8x8x6");
    let cracked = mesh("cracked:1000");
    for (name, bytes) in [("p.msh", &plate), ("b.msh", &box_mesh), ("c.msh", &cracked)] {
        for spec in ["iwarp:2x2", "iwarp:4x4", "torus:3x3", "fat-tree:8"] {
            let machine = machine(spec);
            for seed in [1, 5] {
                let options = LoadOptions::default().seed(seed);
                let alone = load(name, bytes, &machine, &options.clone().max_partitions(1));
                let best = load(name, bytes, &machine, &options);
                let report = best.halo.unwrap().partition.unwrap();
                assert!(report.looked_at > 1);
                let best = load(name, bytes, &machine, &options);
                let (alone, best) = (
                    clocks(&machine, &alone, Objective::Time),
                    clocks(&machine, &best, Objective::Time),
                );
                assert!(best.0 <= alone.0, "{name} on {spec}, seed {seed}: {best:?}, {alone:?}");
            }
        }
    }
}

#[test]
fn an_unlucky_seed_does_not_cost_a_phase() {
    let name = "walshaw/crack.graph";
    let Some(bytes) = shared_meshes::bytes(name) else { return };
    let machine = machine("iwarp:4x4");
    let options = LoadOptions::default().seed(1);
    let alone = load(name, &bytes, &machine, &options.clone().max_partitions(1));
    assert_eq!(clocks(&machine, &alone, Objective::Time).1, 2);
    let best = load(name, &bytes, &machine, &options);
    let (clocks, phases) = clocks(&machine, &best, Objective::Time);
    assert!(phases == 1 && clocks <= 800, "{phases} phases, {clocks} clocks");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let bytes = mesh("cracked:1500");
    let machine = machine("iwarp:4x4");
    let parts = |threads: usize, objective: Objective| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let options = LoadOptions::default().objective(objective).max_partitions(7);
            let placed = load("c.msh", &bytes, &machine, &options).halo.unwrap();
            (placed.halo, placed.place, placed.partition)
        })
    };
    for objective in [Objective::Time, Objective::Phases] {
        let one = parts(1, objective);
        assert_eq!(one, parts(2, objective));
        assert_eq!(one, parts(5, objective));
    }
}

#[test]
fn the_imbalance_stays_within_what_was_asked() {
    let bytes = mesh("random:2000");
    let machine = machine("iwarp:4x4");
    for thousandths in [5, 30, 200] {
        let options = LoadOptions::default().imbalance(thousandths);
        let placed = load("m.msh", &bytes, &machine, &options).halo.unwrap();
        let report = placed.partition.unwrap();
        // A part may have its share, rounded up to a whole element.
        let share = placed.halo.summary.items.max as f64;
        let most = f64::from(thousandths) / 10.0 + 100.0 / share;
        assert!(report.imbalance_percent <= most, "{} for {most}", report.imbalance_percent);
    }
}

#[test]
fn odd_inputs_have_a_partition() {
    let machine = machine("iwarp:2x2");
    let two = "2 1\n2\n1\n";
    let alone = "5 0\n\n\n\n\n\n";
    let pieces = "6 4\n2 3\n1 3\n1 2\n5\n4\n\n";
    let weighted = {
        let mut text = ring(40, 7).replacen('\n', " 010 2\n", 1);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        text = format!("{}\n", lines[0]);
        for (v, line) in lines[1..].iter().enumerate() {
            text.push_str(&format!("{} {} {line}\n", 1 + v % 3, u32::from(v % 4 == 0)));
        }
        text
    };
    let ring = ring(60, 11);
    for (text, parts) in [
        (two, vec![1, 2]),
        (alone, vec![1, 2, 4]),
        (pieces, vec![1, 3, 4]),
        (&weighted, vec![1, 2, 3, 4]),
        (&ring, vec![1, 2, 3, 4]),
    ] {
        for parts in parts {
            for objective in [Objective::Time, Objective::Phases] {
                let options = LoadOptions::default().parts(parts).objective(objective);
                let loaded = load("g.graph", text.as_bytes(), &machine, &options);
                let placed = loaded.halo.as_ref().unwrap();
                assert_eq!(placed.halo.summary.parts, parts);
                assert!(placed.halo.summary.items.min > 0, "{parts} parts of {text}");
                Compiler::new(&machine).compile(&loaded.program).unwrap();
            }
        }
    }
}

#[test]
fn given_partitions_are_not_changed() {
    let machine = machine("iwarp:2x2");
    let graph = ring(12, 5);
    let file: String = (0..12).map(|v| format!("{}\n", v * 7 % 4)).collect();
    let options = LoadOptions::default().partition(("p.part", file.as_bytes()));
    let placed = load("g.graph", graph.as_bytes(), &machine, &options).halo.unwrap();
    for part in 0..4 {
        let own: Vec<u32> = (0..12).filter(|v| v * 7 % 4 == part).collect();
        assert_eq!(placed.halo.parts.items_of(part as usize), own);
    }
    let report = placed.partition.unwrap();
    assert_eq!((report.looked_at, report.method, report.moved), (0, "given", 0));
    // Neighbours are 1 or 5 vertices apart, so none is in the same part: all 24 edges are cut.
    assert_eq!((report.cut, report.imbalance_percent), (24, 0.0));
    let name = "spark98/tiny.8.pack";
    let Some(bytes) = shared_meshes::bytes(name) else { return };
    let machine = Machine::from_spec("iwarp:4x4").unwrap();
    let placed = load(name, &bytes, &machine, &LoadOptions::default()).halo.unwrap();
    assert_eq!(placed.partition.unwrap().method, "given");
    let asked = LoadOptions::default().imbalance(30);
    let error = input::load(name, &bytes, &machine, &asked, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("<imbalance>"), "{error}");
}

#[test]
fn searches_end_when_they_are_stopped_or_find_nothing_better() {
    let bytes = mesh("plate:12x9");
    let machine = machine("iwarp:2x2");
    let at_once = || true;
    let options = LoadOptions::default().stop_when(&at_once);
    let report = load("p.msh", &bytes, &machine, &options).halo.unwrap().partition.unwrap();
    assert_eq!(report.looked_at, 1);
    let never = || false;
    let options = LoadOptions::default().stop_when(&never);
    let report = load("p.msh", &bytes, &machine, &options).halo.unwrap().partition.unwrap();
    assert!(report.looked_at > 16, "{}", report.looked_at);
}
