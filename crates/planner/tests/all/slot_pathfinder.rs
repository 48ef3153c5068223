//! Plans by slots keep every rule that their machine has, whatever the set.

use crate::{cases, common};
use std::sync::Arc;

use crate::common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine};
use conset_planner::{Plan, slot_pathfinder};
use proptest::prelude::*;

const BUDGET: u64 = 1 << 18;

fn planned(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    common::planned(machine, set, |problem| {
        slot_pathfinder::plan(problem, &slot_pathfinder::SlotConfig::default(), BUDGET, seed)
    })
}

/// No order, or pairs of connections.
fn pairs() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop_oneof![Just(vec![]), prop::collection::vec((any::<u32>(), any::<u32>()), 1..20)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..60),
        pairs in pairs(),
        seed in 0..4u64,
    ) {
        let set = cases::set(&machine, &sends);
        let x = |number: u32| ConnectionId(number % sends.len() as u32);
        let pairs = pairs.iter().map(|&(a, b)| (x(a).min(x(b)), x(a).max(x(b))));
        let set = set.with_order(pairs.filter(|(a, b)| a != b).collect()).unwrap();
        let set = Arc::new(set);
        if let Some(plan) = planned(&machine, &set, seed) {
            check(&machine, &set, &plan);
            prop_assert_eq!(planned(&machine, &set, seed), Some(plan));
        }
    }
}

#[test]
fn a_permutation_of_neighbours_is_at_its_bound() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let next = |cell: u32| cell / 4 * 4 + (cell + 1) % 4;
    let connect = |cell: u32| Connection::new(CellId(cell), CellId(next(cell)), 100);
    let set = Arc::new(ConnectionSet::new("s", (0..16).map(connect).collect()).unwrap());
    let plan = planned(&machine, &set, 0).unwrap();
    check(&machine, &set, &plan);
    // A switch, 100 words of 2 clocks, and the way of the last.
    assert_eq!((plan.phases.len(), plan.clocks), (1, 528 + 200 + 4));
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(false) {
        assert_eq!(planned(&machine, &set, 0), None);
    }
}

#[test]
fn a_chain_of_connections_is_near_its_bound() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    let connect = |cell: u32| Connection::new(CellId(cell), CellId(cell + 1), 100);
    let set = ConnectionSet::new("s", (0..8).map(connect).collect()).unwrap();
    let pairs = (0..7).map(|x| (ConnectionId(x), ConnectionId(x + 1))).collect();
    let set = Arc::new(set.with_order(pairs).unwrap());
    let plan = planned(&machine, &set, 0).unwrap();
    check(&machine, &set, &plan);
    let hops = [1, 1, 1, 2, 1, 1, 1, 2];
    let received: u64 = hops.iter().map(|hops| 200 + 2 + 2 * hops).sum();
    assert_eq!((plan.phases.len(), plan.clocks), (1, 528 + received));
}
