//! Improved plans keep every rule that their machine has, whatever the set and the plan.

use crate::{cases, common};
use std::sync::Arc;

use crate::common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_planner::{Found, Plan, Problem, Stream, ejection_search, slot_pathfinder};
use proptest::prelude::*;

const BUDGET: u64 = 1 << 14;

/// What becomes of a plan; `None` if it stays as it is.
fn improved(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    seed: u64,
    plan: impl FnOnce(&Problem<'_>) -> Option<Plan>,
) -> Option<Plan> {
    common::planned(machine, set, |problem| {
        ejection_search::improve(problem, &plan(problem)?, BUDGET, seed)
    })
}

/// A plan by slots.
fn by_slots(problem: &Problem<'_>) -> Option<Found> {
    slot_pathfinder::plan(problem, &slot_pathfinder::SlotConfig::default(), BUDGET, 0)
}

/// The same, whose streams all start at once, so that many meet.
fn met(problem: &Problem<'_>) -> Option<Plan> {
    let mut plan = Plan { clocks: u64::MAX, ..by_slots(problem)?.plan };
    plan.phases.iter_mut().flatten().for_each(|stream| stream.start = 0);
    Some(plan)
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
        let Some(plan) = common::planned(&machine, &set, by_slots) else { return Ok(()) };
        let better = || improved(&machine, &set, seed, |_| Some(plan.clone()));
        if let Some(first) = better() {
            check(&machine, &set, &first);
            prop_assert!(first.clocks < plan.clocks);
            prop_assert_eq!(better(), Some(first));
        }
        let apart = improved(&machine, &set, seed, met).expect("any plan takes fewer clocks");
        check(&machine, &set, &apart);
    }
}

#[test]
fn gaps_are_closed() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let connect = |from, to| Connection::new(CellId(from), CellId(to), 100);
    let set = Arc::new(ConnectionSet::new("s", vec![connect(0, 1), connect(2, 3)]).unwrap());
    let stream = |connection, start, cells| Stream { connection, words: 100, start, cells };
    let phases = vec![vec![stream(0, 0, vec![0, 1]), stream(1, 5000, vec![2, 3])]];
    let plan = Plan { phases, clocks: 528 + 5204 };
    let better = improved(&machine, &set, 0, |_| Some(plan)).unwrap();
    check(&machine, &set, &better);
    // A switch, 100 words of 2 clocks, and the way of the last.
    assert_eq!(better.clocks, 528 + 200 + 4);
}

#[test]
fn streams_start_as_soon_as_their_agents_can() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let connect = |from, to, words| Connection::new(CellId(from), CellId(to), words);
    let rows = vec![connect(0, 1, 300), connect(2, 3, 100), connect(0, 1, 100)];
    let set = Arc::new(ConnectionSet::new("s", rows).unwrap());
    let stream = |connection, words, start, cells| Stream { connection, words, start, cells };
    // The third stream starts later than its agent could.
    let phases = vec![
        vec![stream(1, 100, 0, vec![2, 3]), stream(2, 100, 250, vec![0, 1])],
        vec![stream(0, 300, 0, vec![0, 1])],
    ];
    let plan = Plan { phases, clocks: 2 * 528 + 454 + 604 };
    let better = improved(&machine, &set, 0, |_| Some(plan)).unwrap();
    check(&machine, &set, &better);
    assert_eq!(better.clocks, 2 * 528 + 204 + 604);
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(true) {
        let plan = Plan { phases: Vec::new(), clocks: u64::MAX };
        assert_eq!(improved(&machine, &set, 0, |_| Some(plan)), None);
    }
}
