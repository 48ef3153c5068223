//! Packed phases keep every rule that their machine has, whatever the set.

use crate::{cases, common};
use std::sync::Arc;

use crate::common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_partition_route::bounds;
use conset_planner::{Plan, Problem, windowed_pathfinder};
use proptest::prelude::*;

const BUDGET: u64 = 1 << 17;

fn packed(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, last: u32, seed: u64) -> Option<Plan> {
    let config = windowed_pathfinder::WindowedConfig {
        window: [1, 2],
        last: [1, last, last],
        ..windowed_pathfinder::WindowedConfig::default()
    };
    common::planned(machine, set, |problem| {
        windowed_pathfinder::plan(problem, &config, BUDGET, seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..60),
        last in 0..3u32,
        seed in 0..4u64,
    ) {
        let set = Arc::new(cases::set(&machine, &sends));
        let plan = packed(&machine, &set, last, seed).expect("packing plans any set");
        check(&machine, &set, &plan);
        prop_assert_eq!(packed(&machine, &set, last, seed), Some(plan));
    }
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(true) {
        assert_eq!(packed(&machine, &set, 1, 0), None);
    }
}

#[test]
fn phases_are_packed_nearly_to_the_last_channel() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:16x16").unwrap());
    // Some thousand different pairs, far and near.
    let connect = |x: u32| {
        let (from, by) = (x.wrapping_mul(40_503) % 256, 1 + x.wrapping_mul(2_654_435_761) % 255);
        Connection::new(CellId(from), CellId((from + by) % 256), 512)
    };
    let set = Arc::new(ConnectionSet::new("s", (0..6_000).map(connect).collect()).unwrap());
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let problem = Problem::new(&machine, &set, bounds).unwrap();
    let config = windowed_pathfinder::WindowedConfig::default();
    let found =
        windowed_pathfinder::plan(&problem, &config, windowed_pathfinder::budget(&problem), 1)
            .unwrap();
    check(&machine, &set, &found.plan);
    let over_bound = found.plan.clocks as f64 / bounds.clocks as f64;
    assert!(over_bound < 1.5, "{over_bound:.3} in {} phases", found.plan.phases.len());
}
