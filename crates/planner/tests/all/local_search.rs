//! What comes of changes is a plan, whatever the set and the machine.

use std::sync::Arc;

use conset_ir::convert::index;
use conset_ir::{ConnectionSet, Duplex, Machine, PhaseTimes, Routing, Slot, Timetable};
use conset_partition_route::channels;
use conset_partition_route::network::Network;
use conset_planner::{
    Interrupt, Planner, PlannerOptions, Routed, Streamed, Task, Work, local_search, plans,
};
use proptest::prelude::*;

use crate::cases;

/// The agents of each connection, with half duplex the same for both directions.
fn ports(machine: &Machine, set: &ConnectionSet) -> Vec<[u32; 2]> {
    let duplex = machine.parameters().duplex;
    set.connections().iter().map(|c| duplex.ports(c.source, c.target)).collect()
}

/// Slots in the order of connections, one stream of an agent after the other.
fn timetable(routing: Routing) -> Timetable {
    let (machine, set) = (routing.machine().clone(), routing.set().clone());
    let ports = ports(&machine, &set);
    let phases = routing.phases().iter().map(|routes| {
        let mut free = vec![0u64; 2 * machine.cell_count()];
        let mut over = vec![0u64; set.len()];
        let mut slots = Vec::new();
        for route in routes.iter() {
            let x = route.connection;
            let [a, b] = ports[x.index()].map(index);
            let before = set.order().iter().filter(|pair| pair.1 == x);
            let start =
                before.map(|pair| over[pair.0.index()]).fold(free[a].max(free[b]), u64::max);
            let duration = cases::duration(&machine, route.words, route.hops(), a == b);
            (free[a], free[b]) = (start + duration, start + duration);
            over[x.index()] = start + duration;
            slots.push(Slot { start, duration });
        }
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        PhaseTimes { slots, makespan }
    });
    let phases = phases.collect();
    Timetable::new(routing, phases).unwrap()
}

/// A rough model: a stream lasts its words times the most streams of its phase on one of its
/// edges; agents have one at a time.
fn run(set: &ConnectionSet, ports: &[[u32; 2]], streams: &[Streamed<'_>]) -> Vec<f64> {
    let mut users = std::collections::BTreeMap::new();
    streams.iter().flat_map(|s| s.2).for_each(|&edge| *users.entry(edge).or_insert(0) += 1);
    let mut free = std::collections::BTreeMap::new();
    let mut over = vec![0.0; set.len()];
    let mut ends = Vec::new();
    for &(x, words, edges) in streams {
        let share = edges.iter().map(|edge| users[edge]).max().unwrap_or(1);
        let [a, b] = ports[x.index()];
        let idle = |port: u32| free.get(&port).copied().unwrap_or(0.0);
        let before = set.order().iter().filter(|pair| pair.1 == x).map(|pair| over[pair.0.index()]);
        let start = before.fold(f64::max(idle(a), idle(b)), f64::max);
        let end = start + f64::from(2 * words * share);
        free.insert(a, end);
        free.insert(b, end);
        over[x.index()] = f64::max(over[x.index()], end);
        ends.push(end);
    }
    ends
}

/// Every rule of a plan.
fn check(machine: &Machine, set: &ConnectionSet, plan: &Routed) {
    let ports = ports(machine, set);
    let starts = plan.starts.as_ref().expect("starts are planned");
    let mut words = vec![0; set.len()];
    let mut spans: Vec<Vec<(usize, u64, u64)>> = vec![Vec::new(); set.len()];
    for ((phase, routes), starts) in plan.routing.iter().zip(starts) {
        assert_eq!(routes.len(), starts.len());
        assert!(!routes.is_empty());
        let mut taken = vec![0; machine.cell_count()];
        let mut booked = Vec::new();
        for (route, &start) in routes.iter().zip(starts) {
            let x = route.connection;
            let c = set.get(x);
            words[x.index()] += route.words;
            assert_eq!((route.cells[0], route.cells[route.cells.len() - 1]), (c.source, c.target));
            route.cells.iter().for_each(|cell| taken[cell.index()] += 1);
            let [a, b] = ports[x.index()];
            let end = start + cases::duration(machine, route.words, route.hops(), a == b);
            booked.push((a, start, end));
            booked.extend((a != b).then_some((b, start, end)));
            spans[x.index()].push((phase.index(), start, end));
        }
        assert!(taken.into_iter().all(|taken| taken <= machine.parameters().channels_per_cell));
        booked.sort_unstable();
        for pair in booked.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
        }
    }
    let all: Vec<u32> = set.connections().iter().map(|c| c.words).collect();
    assert_eq!(words, all);
    for &(before, after) in set.order() {
        for one in &spans[before.index()] {
            for other in &spans[after.index()] {
                assert!((one.0, one.2) <= (other.0, other.1), "{before} before {after}");
            }
        }
    }
}

fn balanced(machine: &Arc<Machine>, set: &Arc<ConnectionSet>) -> Routing {
    let bounds = conset_partition_route::bounds::bounds(machine, set).unwrap().summary();
    let mut work = Work::unlimited();
    let task = Task::new(machine, set, bounds);
    let plans = plans(&task, Planner::LoadAnnealing, &PlannerOptions::default(), &mut work);
    plans.unwrap().pop().unwrap().routing
}

fn refined(routing: &Routing, seed: u64) -> Option<Routed> {
    let timetable = timetable(routing.clone());
    let (machine, set) = (routing.machine(), routing.set());
    let ports = ports(machine, set);
    let even = seed.is_multiple_of(2);
    let never = Interrupt::default();
    local_search(&timetable, even, 4000, seed, &never, &mut |streams| run(set, &ports, streams))
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changes_keep_every_rule(
        topology in 0usize..8,
        rows in prop::collection::vec((0u32..64, 0u32..64, 1u32..3000), 1..40),
        order in prop::collection::vec((0usize..60, 0usize..60), 0..12),
        is_ordered in any::<bool>(),
        half in any::<bool>(),
        access in 1u32..5,
        channels in 2u32..6,
        seed in any::<u64>(),
    ) {
        let machine = Arc::new(cases::machine(topology, |parameters| {
            parameters.access_clocks_per_word = access;
            parameters.channels_per_cell = channels;
            parameters.stream_setup = access * 7;
            parameters.duplex = if half { Duplex::Half } else { Duplex::Full };
        }));
        let set = cases::set(&machine, &rows);
        let set = Arc::new(if is_ordered { cases::ordered(set, &order) } else { set });
        let routing = balanced(&machine, &set);
        let found = refined(&routing, seed);
        if let Some(plan) = &found {
            check(&machine, &set, plan);
        }
        let again = refined(&routing, seed);
        prop_assert_eq!(format!("{found:?}"), format!("{again:?}"));
    }
}

#[test]
fn streams_take_the_other_way_round() {
    // All of a ring go three links ahead, so that each link has three streams; some of them going
    // five links back leave two on every link.
    let machine = Arc::new(Machine::from_spec("ring:8").unwrap());
    let rows: Vec<(u32, u32, u32)> = (0..8).map(|c| (c, (c + 3) % 8, 1000)).collect();
    let set = Arc::new(cases::set(&machine, &rows));
    let network = Network::new(&machine);
    let ahead: Vec<Vec<u32>> =
        (0..8).map(|c| (0..4).map(|step| (c + step) % 8).collect()).collect();
    let paths = |_| (0..8).map(|x| (x, ahead[index(x)].as_slice()));
    let routing = channels::number(&machine, &set, &network, 1, paths).unwrap();
    let plan = refined(&routing, 0).expect("there is something better");
    check(&machine, &set, &plan);
    let back = |route: conset_ir::RouteRef<'_>| route.hops() == 5;
    assert!(plan.routing.iter().any(|(_, routes)| routes.iter().any(back)));
    // Nothing to be changed, and nothing at all.
    let one = Arc::new(cases::set(&machine, &[(0, 1, 5)]));
    assert!(refined(&balanced(&machine, &one), 1).is_none());
    let none = Arc::new(cases::set(&machine, &[]));
    assert!(refined(&Routing::new(machine, none, vec![]).unwrap(), 0).is_none());
}
