//! Dense phases keep every rule that their machine has, whatever the set.

use crate::{cases, common};
use std::sync::Arc;

use crate::common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_partition_route::bounds;
use conset_planner::{Limits, Plan, Problem, dense_pathfinder};
use proptest::prelude::*;

const BUDGET: u64 = 1 << 17;

/// Plans every set, however many streams its agents have.
fn any_set() -> dense_pathfinder::DenseConfig {
    let default = dense_pathfinder::DenseConfig::default();
    dense_pathfinder::DenseConfig { agent_streams: u32::MAX, ..default }
}

fn planned(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    common::planned(machine, set, |problem| {
        dense_pathfinder::plan(problem, &any_set(), Limits::of_work(BUDGET), seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..60),
        seed in 0..4u64,
    ) {
        let set = Arc::new(cases::set(&machine, &sends));
        let plan = planned(&machine, &set, seed).expect("it plans any set");
        check(&machine, &set, &plan);
        prop_assert_eq!(planned(&machine, &set, seed), Some(plan));
    }
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(true) {
        assert_eq!(planned(&machine, &set, 0), None);
    }
}

/// Connections of different pairs of a machine of a power of two of cells.
fn pairs(cells: u32, count: u32, words: impl Fn(u32) -> u32) -> Arc<ConnectionSet> {
    let connect = |x: u32| {
        let from = x.wrapping_mul(40_503) % cells;
        let by = 1 + (x.wrapping_mul(2_654_435_761) >> 8) % (cells - 1);
        Connection::new(CellId(from), CellId((from + by) % cells), words(x))
    };
    Arc::new(ConnectionSet::new("s", (0..count).map(connect).collect()).unwrap())
}

#[test]
fn phases_are_filled_nearly_to_the_last_channel() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:32x32").unwrap());
    let set = pairs(1024, 8_000, |x| 40 + x % 25);
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let problem = Problem::new(&machine, &set, bounds).unwrap();
    let config = dense_pathfinder::DenseConfig::default();
    let limits = Limits::of_work(dense_pathfinder::budget(&problem));
    let found = dense_pathfinder::plan(&problem, &config, limits, 1).unwrap();
    check(&machine, &set, &found.plan);
    let (phases, least) = (found.plan.phases.len(), bounds.phases);
    assert!(phases * 4 <= least as usize * 5, "{phases} phases, bound {least}");
    // No phases are negotiated that are not expected to be the best.
    let limits = Limits { clocks: bounds.clocks, ..limits };
    assert!(dense_pathfinder::plan(&problem, &config, limits, 1).is_none());
}

#[test]
fn plans_do_not_depend_on_the_number_of_threads() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:16x16").unwrap());
    let set = pairs(256, 16_000, |x| 1 + x % 100);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| planned(&machine, &set, 3))
    };
    let plan = with(1).expect("it plans any set");
    // Several blocks of phases, so that there is something to run in parallel.
    assert!(plan.phases.len() > 64);
    assert!(with(4).as_ref() == Some(&plan));
}

#[test]
fn agents_of_many_short_routes_are_left_to_other_planners() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:8x8").unwrap());
    let next = |x: u32| Connection::new(CellId(x % 64), CellId((x + 1) % 64), 64);
    let set = Arc::new(ConnectionSet::new("s", (0..6_400).map(next).collect()).unwrap());
    let plan = common::planned(&machine, &set, |problem| {
        dense_pathfinder::plan(
            problem,
            &dense_pathfinder::DenseConfig::default(),
            Limits::of_work(BUDGET),
            0,
        )
    });
    assert_eq!(plan, None);
}

#[test]
fn a_few_routes_without_channels_need_no_phase_of_their_own() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:32x32").unwrap());
    let set = pairs(1024, 3_000, |x| 1 + x % 3);
    // With so many passes in which channels are negotiated alone.
    let phases = |channel_passes: u32| {
        let config = dense_pathfinder::DenseConfig { channel_passes, ..any_set() };
        let plan = common::planned(&machine, &set, |problem| {
            let limits = Limits::of_work(dense_pathfinder::budget(problem));
            dense_pathfinder::plan(problem, &config, limits, 1)
        });
        let plan = plan.expect("it plans any set");
        check(&machine, &set, &plan);
        plan.phases.len()
    };
    let (without, with) = (phases(0), phases(40));
    assert!(with < without, "{with} phases, {without} without");
}
