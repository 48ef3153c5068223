//! Rounds keep every rule, and come near their bounds where machines are narrow.

use super::*;
use crate::cases;
use crate::problem::{capacities, ports};
use conset_ir::convert::to_u32;
use conset_ir::{CellId, Connection, Duplex, LinkId};
use proptest::prelude::*;

/// Every rule of a round, link by link.
fn check(machine: &Machine, set: &ConnectionSet, network: &Network, found: &RoundPlan) {
    let (ports, link_capacity) = (ports(machine, set), capacities(machine, network));
    let mut busy = std::collections::BTreeSet::new();
    let mut used = std::collections::BTreeMap::new();
    for (x, c) in set.iter() {
        let (round, path) = (found.round_of[x.index()], found.paths.of(x.index()));
        assert!(round < found.rounds);
        assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
        let [a, b] = ports[x.index()];
        assert!(busy.insert((round, a)) && (a == b || busy.insert((round, b))));
        for pair in path.windows(2) {
            assert!(network.outgoing().of(pair[0]).contains(&pair[1]), "over live links");
            *used.entry((round, network.outgoing().edge(pair[0], pair[1]))).or_insert(0) += 1;
        }
    }
    assert!(used.iter().all(|(&(_, edge), &used)| used <= link_capacity[edge]));
    for &(before, after) in set.order() {
        assert!(found.round_of[before.index()] < found.round_of[after.index()]);
    }
}

fn all_to_all(spec: &str) -> (Machine, ConnectionSet) {
    let machine = Machine::from_spec(spec).unwrap();
    let cells: Vec<CellId> = machine.endpoints().collect();
    let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b)));
    let pairs = pairs.filter(|(a, b)| a != b).map(|(a, b)| Connection::new(a, b, 9));
    (machine, ConnectionSet::new("all", pairs.collect()).unwrap())
}

#[test]
fn narrow_machines_come_near_their_bounds() {
    // The middle links of a 4x4 mesh carry 16 connections each, the top of a fat-tree of 16
    // leaves 48.
    for (spec, bound, most) in [("mesh:4x4", 16, 19), ("fat-tree:16", 24, 24)] {
        let (machine, set) = all_to_all(spec);
        let network = Network::new(&machine);
        let found = search(&machine, &set, &network, 18 * bound, 1 << 24, 0).unwrap();
        check(&machine, &set, &network, &found);
        assert!((to_u32(bound)..=most).contains(&found.rounds), "{spec} {}", found.rounds);
    }
}

#[test]
fn odd_sets_are_no_trouble() {
    let (machine, _) = all_to_all("mesh:2x2");
    let network = Network::new(&machine);
    let none = ConnectionSet::new("none", vec![]).unwrap();
    assert!(search(&machine, &none, &network, 0, 1000, 0).is_none());
    let same = ConnectionSet::new("same", vec![Connection::new(CellId(0), CellId(3), 1); 200]);
    let found = search(&machine, &same.unwrap(), &network, 0, 1000, 0).unwrap();
    assert_eq!(found.rounds, 200);
}

#[test]
fn a_round_lasts_as_long_as_its_longest_stream() {
    // With half duplex a connection to itself takes its words and its set-up twice.
    let machine = cases::machine(1, |parameters| {
        *parameters =
            conset_ir::Parameters { stream_setup: 7, ..conset_ir::Parameters::iwarp_fem() };
    });
    let connect = |from, to, words| Connection::new(CellId(from), CellId(to), words);
    // The first two share a round, and so might the last two.
    let rows = vec![connect(0, 1, 50), connect(2, 2, 30), connect(0, 0, 20)];
    let set = ConnectionSet::new("s", rows).unwrap();
    let network = Network::new(&machine);
    let routes = Routes::new(&network, &set).unwrap();
    let mut table = RoundTable::new(&machine, &set, &network).unwrap();
    table.pass(&routes, &PrecedenceGraph::new(&set), &[0, 1, 2]).unwrap();
    assert_eq!(table.round_of, [0, 0, 1]);
    let [first, second] = [cases::duration(&machine, 30, 0, true), 2 * (20 * 10 + 7)];
    assert_eq!((first, table.value().0), (2 * (30 * 10 + 7), first + second));
    table.measure();
    assert_eq!(table.value().0, first + second);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rounds_keep_every_rule(
        topology in 0usize..8,
        pairs in prop::collection::vec((0u32..64, 0u32..64, 1u32..50), 1..60),
        order in prop::collection::vec((0usize..60, 0usize..60), 0..30),
        dead in 0u32..40,
        half in any::<bool>(),
        access in 1u32..5,
        seed in any::<u64>(),
    ) {
        let machine = cases::machine(topology, |parameters| {
            parameters.access_clocks_per_word = access;
            parameters.duplex = if half { Duplex::Half } else { Duplex::Full };
        });
        let dead = Some(LinkId(dead)).filter(|link| link.index() < machine.link_count());
        let dead = dead.map(|link| (machine.link(link).source, machine.link(link).target));
        let (topology, parameters) = (machine.topology().clone(), machine.parameters().clone());
        let dead = dead.into_iter().collect();
        let machine = Machine::new(machine.name(), topology, parameters, vec![], dead).unwrap();
        let set = cases::ordered(cases::set(&machine, &pairs), &order);
        let network = Network::new(&machine);
        let found = search(&machine, &set, &network, 0, 1 << 16, seed);
        // Without the dead link there may be no way.
        if let Some(found) = found {
            check(&machine, &set, &network, &found);
            let again = search(&machine, &set, &network, 0, 1 << 16, seed).unwrap();
            prop_assert_eq!(&found.round_of, &again.round_of);
        }
    }
}
