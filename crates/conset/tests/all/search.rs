//! What `best` promises: prices near the bound, measured on the fabric, with nothing known of a
//! set but its connections.

use crate::shared_meshes;
use std::sync::Arc;

use conset::{Algorithm, Compiler, Objective, bound_ratio, input, run};
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Parameters, Program};
use conset_mesh::generate;
use conset_mesh::write_msh::{MshFormat, write};

/// Phases, phases over their bound, and measured clocks over theirs.
fn quality(machine: &Arc<Machine>, program: &Program, objective: Objective) -> (usize, f64, f64) {
    let compiled = Compiler::new(machine)
        .algorithm(Algorithm::Auto)
        .objective(objective)
        .compile(program)
        .unwrap();
    let run = run::run(&compiled, 1, false, &mut |_| ()).unwrap().remove(0).summary;
    assert!(run.payload_ok);
    let phases = bound_ratio(run.phases as u64, u64::from(run.bound_phases));
    (run.phases, phases, bound_ratio(run.measured_clocks, run.bound_clocks))
}

fn pattern(spec: &str, words: u32, objective: Objective) -> (usize, f64, f64) {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let program = input::pattern(spec, &machine, words).unwrap().program;
    quality(&machine, &program, objective)
}

#[test]
fn all_to_all_is_near_the_bound_at_every_size() {
    for (words, most) in [(32, 1.35), (2048, 1.10), (16384, 1.05)] {
        let (_, _, clocks) = pattern("all-to-all", words, Objective::Time);
        assert!(clocks <= most, "{words} words: {clocks}");
    }
}

#[test]
fn all_to_all_has_as_few_phases_as_the_bound_if_that_is_wanted() {
    assert_eq!(pattern("all-to-all", 32, Objective::Phases).0, 27);
}

#[test]
fn the_gray_code_hypercube_is_near_the_bound() {
    let (_, _, clocks) = pattern("hypercube", 16384, Objective::Time);
    assert!(clocks <= 1.05, "{clocks}");
}

/// A name and an order of connections mean nothing; two connections in a hundred may be missing.
#[test]
fn a_dense_set_does_as_well_under_any_name_and_in_any_order() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let all = input::pattern("all-to-all", &machine, 2048).unwrap().program;
    let mut connections: Vec<Connection> = all.sets()[0].connections().to_vec();
    connections.sort_by_key(|c| (c.target.0 * 37 + c.source.0 * 11) % 64);
    let mut row = 0;
    connections.retain(|_| {
        row += 1;
        row % 50 != 0
    });
    let set = ConnectionSet::new("mine", connections).unwrap();
    let (_, _, clocks) = quality(&machine, &set.into(), Objective::Time);
    assert!(clocks <= 1.10, "{clocks}");
}

/// Switches take little of the time of long connections, but phases are what is counted.
#[test]
fn long_connections_need_the_phases_of_the_bound_if_that_is_wanted() {
    let machine = Arc::new(Machine::from_spec("mesh:7x9").unwrap());
    let program = input::pattern("random:density=0.3", &machine, 512).unwrap().program;
    let (phases, over, _) = quality(&machine, &program, Objective::Phases);
    assert!(phases > 2 && over <= 1.0, "{phases} phases, {over} over the bound");
}

/// A halo has the phases of its bound, and hardly more clocks.
fn check_halo(name: &str, bytes: &[u8], machine: &Arc<Machine>, options: &input::LoadOptions<'_>) {
    let loaded = input::load(name, bytes, machine, options, &mut |_| ()).unwrap();
    let input::Input::Program(loaded) = loaded else { panic!("{name} is no program") };
    let (_, phases, clocks) = quality(machine, &loaded.program, Objective::Time);
    assert!(phases <= 1.0 && clocks <= 1.10, "{name}: {phases} {clocks}");
}

#[test]
fn halos_reach_the_bound_in_phases_and_nearly_in_time() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    for name in ["walshaw/crack.graph", "spark98/sf10.64.pack", "metis/copter2.graph"] {
        let Some(bytes) = shared_meshes::bytes(name) else { continue };
        check_halo(name, &bytes, &machine, &input::LoadOptions::default());
    }
}

#[test]
fn so_do_halos_of_solids_in_many_parts_on_machines_with_timed_starts() {
    let machine = Machine::from_spec("torus:6x6x6").unwrap();
    let parameters = Parameters { timed_starts: 1, ..machine.parameters().clone() };
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let mesh = generate::by_name("bricks:12x10x11", 1).unwrap();
    let bytes = write(&mesh, MshFormat::V41Binary).unwrap();
    // One partition, because this is about plans.
    check_halo("bricks.msh", &bytes, &machine, &input::LoadOptions::default().max_partitions(1));
}

/// Blocks of 32^3 nodes exchange faces, edges and corners, which wrap around although the machine
/// does not.
#[test]
fn so_do_periodic_halos_of_unequal_words_on_meshes() {
    let machine = Arc::new(Machine::from_spec("mesh:6x6x6").unwrap());
    let coordinates = |cell: u32| [cell % 6, cell / 6 % 6, cell / 36];
    let words = |a: u32, b: u32| {
        let apart = coordinates(a).into_iter().zip(coordinates(b));
        let apart = apart.map(|(a, b)| a.abs_diff(b).min(6 - a.abs_diff(b)));
        let near = apart.clone().all(|apart| apart <= 1);
        near.then(|| 32u32.pow(3 - apart.sum::<u32>()))
    };
    let pairs = (0..216).flat_map(|a| (0..216).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let connections = pairs
        .filter_map(|(a, b)| words(a, b).map(|words| Connection::new(CellId(a), CellId(b), words)));
    let set = ConnectionSet::new("halo", connections.collect()).unwrap();
    let (phases, over, clocks) = quality(&machine, &Program::from(set), Objective::Time);
    assert!(over <= 1.2 && clocks <= 1.1, "{phases} phases, {over} and {clocks} over bound");
}
