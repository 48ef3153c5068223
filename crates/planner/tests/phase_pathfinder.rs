//! Plans by phases keep every rule that their machine has, whatever the set, and need few phases.

mod common;

use std::sync::Arc;

use common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Parameters};
use conset_partition_route::bounds;
use conset_planner::{Plan, phase_pathfinder};
use proptest::prelude::*;

fn planned(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    let config = phase_pathfinder::PhaseConfig {
        last_rounds: 16,
        switches: u64::MAX,
        ..phase_pathfinder::PhaseConfig::default()
    };
    common::planned(machine, set, |problem| {
        phase_pathfinder::plan(problem, &config, phase_pathfinder::budget(problem), seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..90),
        seed in 0..4u64,
    ) {
        let set = Arc::new(common::set(&machine, &sends));
        // These sets are so small that a plan is always found.
        let plan = planned(&machine, &set, seed);
        prop_assert!(plan.is_some());
        check(&machine, &set, plan.as_ref().unwrap());
        prop_assert_eq!(planned(&machine, &set, seed), plan);
    }
}

/// The halo of 4x4x4 parts, each with up to 26 neighbours, one part on a cell.
fn halo(words: impl Fn(i32) -> u32) -> ConnectionSet {
    let part = |x: i32, y: i32, z: i32| CellId((x + 4 * y + 16 * z) as u32);
    let inside = |at: i32| (0..4).contains(&at);
    let mut connections = Vec::new();
    for at in 0..64 {
        let (x, y, z) = (at % 4, at / 4 % 4, at / 16);
        for to in (0..27).filter(|&to| to != 13) {
            let step = (to % 3 - 1, to / 3 % 3 - 1, to / 9 - 1);
            let (u, v, w) = (x + step.0, y + step.1, z + step.2);
            if inside(u) && inside(v) && inside(w) {
                let words = words(step.0.abs() + step.1.abs() + step.2.abs());
                connections.push(Connection::new(part(x, y, z), part(u, v, w), words));
            }
        }
    }
    ConnectionSet::new("halo", connections).unwrap()
}

#[test]
fn a_halo_in_three_dimensions_needs_the_phases_of_its_bound() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:8x8").unwrap());
    let set = Arc::new(halo(|shared| [0, 16, 4, 1][shared as usize]));
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let plan = planned(&machine, &set, 1).unwrap();
    check(&machine, &set, &plan);
    assert_eq!(plan.phases.len(), bounds.phases as usize);
    let over = plan.clocks as f64 / bounds.clocks as f64;
    assert!(over < 1.1, "{} clocks, {over} over {bounds:?}", plan.clocks);
}

#[test]
fn one_cell_a_ring_of_two_and_a_connection_to_itself_are_planned() {
    let link = |a: u32, b: u32| Connection::new(CellId(a), CellId(b), 7);
    for (spec, ends) in [("ring:1", (0, 0)), ("ring:2", (0, 1)), ("torus:2x3", (4, 4))] {
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        for channels in [2, 3] {
            let parameters =
                Parameters { channels_per_cell: channels, ..machine.parameters().clone() };
            let machine = Arc::new(machine.with_parameters(parameters).unwrap());
            let set = ConnectionSet::new("s", vec![link(ends.0, ends.1); 7]).unwrap();
            let set = Arc::new(set);
            let plan = planned(&machine, &set, 0).unwrap();
            check(&machine, &set, &plan);
            assert_eq!(plan.phases.len() as u32, 7u32.div_ceil(channels));
        }
    }
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(true) {
        assert_eq!(planned(&machine, &set, 0), None);
    }
}
