//! Connections in parts: whatever is cut, every word arrives once and in order, and what was
//! promised to a connection stays promised to all of it. The checker has seen every schedule here,
//! since `compile` gives out nothing else.

use std::sync::Arc;

use conset::{Compiled, Compiler, input, run};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine};
use proptest::prelude::*;

fn compiled(machine: &Arc<Machine>, set: ConnectionSet) -> Compiled {
    Compiler::new(machine).compile(&set.into()).unwrap()
}

/// Routes of each connection, of one set.
fn parts(compiled: &Compiled) -> Vec<u32> {
    let routing = compiled.schedule().sets()[0].timetable.routing();
    let mut parts = vec![0; routing.set().len()];
    for route in routing.phases().iter().flat_map(|phase| phase.iter()) {
        parts[route.connection.index()] += 1;
    }
    parts
}

#[test]
fn uneven_sets_are_nearer_to_the_bound_in_parts() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let program = input::pattern("random", &machine, 2048).unwrap().program;
    let compiled = Compiler::new(&machine).compile(&program).unwrap();
    let run = run::run(&compiled, 1, false, &mut |_| ()).unwrap().remove(0).summary;
    assert!(run.payload_ok);
    assert!(parts(&compiled).iter().any(|&parts| parts > 1));
    let gap = run.measured_clocks as f64 / run.bound_clocks as f64;
    assert!(gap < 1.15, "{gap}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_word_of_a_set_in_parts_arrives_once(
        topology in 0usize..5,
        pairs in prop::collection::vec((0u32..64, 0u32..64, 1u32..3000, 0u32..8), 20..80),
        order in prop::collection::vec((0usize..80, 0usize..80), 0..3),
        ordered in any::<bool>(),
    ) {
        let spec = ["torus:4x4", "mesh:3x3", "ring:5", "fat-tree:9", "hypercube:3"][topology];
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        let cells: Vec<CellId> = machine.endpoints().collect();
        let any = |at: u32| cells[at as usize % cells.len()];
        let connect = |&(s, t, words, asks): &(u32, u32, u32, u32)| Connection {
            min_bandwidth: (asks == 0).then_some(1),
            ..Connection::new(any(s), any(t), words)
        };
        let set = ConnectionSet::new("s", pairs.iter().map(connect).collect()).unwrap();
        let id = |x: usize| ConnectionId((x % pairs.len()) as u32);
        let order = order.iter().map(|&(a, b)| (id(a), id(b))).filter(|(a, b)| ordered && a < b);
        let set = set.with_order(order.collect()).unwrap();
        let compiled = compiled(&machine, set.clone());
        let run = run::run(&compiled, 2, false, &mut |_| ()).unwrap().remove(0).summary;
        prop_assert!(run.payload_ok);
        let parts = parts(&compiled);
        for (x, c) in set.iter() {
            // Order is kept between all parts; what asks for bandwidth is not cut.
            let whole = c.min_bandwidth.is_some();
            prop_assert!(parts[x.index()] >= 1 && (!whole || parts[x.index()] == 1));
        }
    }
}
