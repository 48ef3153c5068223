//! Phases that are joined hold everything that they held apart.

use std::sync::Arc;

use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_planner::{
    Planner, PlannerOptions, Task, TriedPairs, Work, merge_phases, mergeable, plans,
};

#[test]
fn joined_phases_hold_everything_and_fit() {
    // The middle ones would start early, on links that the long ones use: a phase of their own.
    let machine = Arc::new(Machine::from_spec("mesh:4").unwrap());
    let ends = [(0, 3), (1, 2), (3, 0), (2, 1)];
    let connect = |(s, t)| Connection::new(CellId(s), CellId(t), 9);
    let set = Arc::new(ConnectionSet::new("s", ends.map(connect).to_vec()).unwrap());
    let bounds = conset_partition_route::bounds::bounds(&machine, &set).unwrap().summary();
    let task = Task::new(&machine, &set, bounds);
    let mut work = Work::unlimited();
    let made = plans(&task, Planner::RoundPathfinder, &PlannerOptions::default(), &mut work);
    let mut plan = made.unwrap().pop().unwrap();
    let before = plan.routing.phases().len();
    let mut tried = TriedPairs::new();
    for _ in 0..10 {
        let pairs = mergeable(&plan, &mut tried);
        let phases = plan.routing.phases().len();
        plan = merge_phases(&plan, &pairs).unwrap();
        assert_eq!(plan.routing.phases().len(), phases - pairs.len());
    }
    assert_eq!((before, plan.routing.phases().len()), (2, 1));
    let mut seen = vec![0; set.len()];
    for (phase, routes) in plan.routing.iter() {
        assert_eq!(plan.rounds.as_ref().unwrap()[phase.index()].len(), routes.len());
        let mut taken = vec![0; machine.cell_count()];
        for route in routes.iter() {
            seen[route.connection.index()] += 1;
            route.cells.iter().for_each(|cell| taken[cell.index()] += 1);
        }
        assert!(taken.into_iter().all(|taken| taken <= 12));
    }
    assert!(seen.into_iter().all(|seen| seen == 1));
}
