//! Tests of the module above: closed forms, odd machines, and comparison with brute force.

use conset_ir::{Connection, Parameters, Topology};
use proptest::prelude::*;

use super::*;

fn set(pairs: impl IntoIterator<Item = (u32, u32)>) -> ConnectionSet {
    let row = |(s, t)| Connection::new(CellId(s), CellId(t), 10);
    ConnectionSet::new("s", pairs.into_iter().map(row).collect()).unwrap()
}

/// Both ways between neighbours of a grid whose parts are numbered in a scrambled way.
fn scrambled_grid(x: u32, y: u32, times: u32) -> ConnectionSet {
    let n = x * y;
    let name = |i: u32, j: u32| (i + j * x) * times % n;
    let mut pairs = Vec::new();
    for j in 0..y {
        for i in 0..x {
            if i + 1 < x {
                pairs.push((name(i, j), name(i + 1, j)));
                pairs.push((name(i + 1, j), name(i, j)));
            }
            if j + 1 < y {
                pairs.push((name(i, j), name(i, j + 1)));
                pairs.push((name(i, j + 1), name(i, j)));
            }
        }
    }
    set(pairs)
}

fn placed_hops(machine: &Machine, set: &ConnectionSet, place: &[CellId]) -> u128 {
    word_hops(machine, &set.clone().placed(place).unwrap()).unwrap()
}

fn check(machine: &Machine, set: &ConnectionSet, parts: usize) -> u128 {
    let place = super::place(machine, set, parts, Method::Best, 1).unwrap();
    assert_eq!(place, super::place(machine, set, parts, Method::Best, 1).unwrap());
    assert_eq!(place.len(), parts);
    let mut cells = place.clone();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), parts, "two parts on one cell");
    assert!(cells.iter().all(|&c| machine.is_endpoint(c)));
    placed_hops(machine, set, &place)
}

#[test]
fn a_scrambled_grid_is_found_again_nearly() {
    for (spec, x, y) in [("iwarp", 8, 8), ("mesh:16x8", 16, 8), ("mesh:5x7", 5, 7)] {
        let machine = Machine::from_spec(spec).unwrap();
        let set = scrambled_grid(x, y, 29);
        let hops = check(&machine, &set, (x * y) as usize);
        // Each connection is one hop in the best placement; a random one takes about 4.
        assert!(hops <= set.words() as u128 * 3 / 2, "{spec}: {hops} of {}", set.words());
    }
}

#[test]
fn patterns_numbered_like_the_machine_stay_where_they_are() {
    let machine = Machine::from_spec("iwarp").unwrap();
    let set = scrambled_grid(8, 8, 1);
    let place = place(&machine, &set, 64, Method::Best, 3).unwrap();
    assert_eq!(placed_hops(&machine, &set, &place), u128::from(set.words()));
}

#[test]
fn few_parts_stay_together() {
    let set = scrambled_grid(4, 4, 1);
    for (spec, most) in
        [("iwarp:16x16", 1), ("torus:8x8x8", 1), ("hypercube:8", 1), ("fat-tree:64", 4)]
    {
        let machine = Machine::from_spec(spec).unwrap();
        let hops = check(&machine, &set, 16);
        assert!(hops <= u128::from(set.words()) * 3 / 2 * most, "{spec}: {hops}");
    }
}

#[test]
fn dead_cells_and_odd_machines_hold_their_parts() {
    let topology = Topology::Mesh { dims: vec![5, 3] };
    let machine =
        Machine::new("holed", topology, Parameters::iwarp(), vec![CellId(7)], vec![]).unwrap();
    check(&machine, &set((0..13).map(|i| (i, i + 1))), 14);
    for spec in ["ring:1", "torus:2x2", "fat-tree:5", "hypercube:0", "torus:1x1x7"] {
        let machine = Machine::from_spec(spec).unwrap();
        let parts = machine.endpoints().count();
        check(&machine, &set((0..parts as u32).map(|i| (i, i * 3 % parts as u32))), parts);
    }
    assert_eq!(place(&machine, &set([]), 0, Method::Best, 0).unwrap(), []);
    // Two pieces that no link joins.
    let links = vec![(0, 1), (1, 0), (2, 3), (3, 2), (3, 4), (4, 3)];
    let topology = Topology::Graph { cells: 5, switches: 0, links };
    let machine = Machine::new("pieces", topology, Parameters::iwarp(), vec![], vec![]).unwrap();
    for parts in 0..=5u32 {
        let set = set(parts.checked_sub(1).map(|last| (last, last)));
        let place = super::place(&machine, &set, parts as usize, Method::Best, 9).unwrap();
        assert_eq!(place.len(), parts as usize);
    }
}

#[test]
fn too_many_parts_are_refused_with_the_fix() {
    let machine = Machine::from_spec("torus:2x2").unwrap();
    let error = place(&machine, &set([]), 5, Method::Best, 0).unwrap_err();
    assert!(error.to_string().contains("at most 4 parts"), "{error}");
    assert!(place(&machine, &set([(0, 4)]), 4, Method::Best, 0).is_err());
}

const METHODS: [Method; 4] = [Method::Given, Method::Curve, Method::Bisect, Method::Best];

/// Machines of all shapes, some with dead cells.
fn any_machine() -> impl Strategy<Value = Machine> {
    let spec = prop::sample::select(vec![
        "iwarp",
        "mesh:5x4",
        "torus:3x2x4",
        "ring:2",
        "ring:9",
        "hypercube:4",
        "fat-tree:23",
        "torus:2x7",
        "mesh:1x1",
        "graph",
    ]);
    (spec, prop::collection::vec(0..60u32, 0..4)).prop_map(|(spec, dead)| {
        let topology = match spec {
            // A ring one way with a chord and a switch, and a piece apart.
            "graph" => Topology::Graph {
                cells: 9,
                switches: 1,
                links: vec![
                    (0, 1),
                    (1, 2),
                    (2, 3),
                    (3, 4),
                    (4, 0),
                    (0, 9),
                    (9, 3),
                    (6, 7),
                    (7, 6),
                    (0, 1),
                ],
            },
            spec => Machine::from_spec(spec).unwrap().topology().clone(),
        };
        let agents = topology.agents().unwrap() as u32;
        let mut dead: Vec<CellId> =
            dead.into_iter().filter(|&cell| cell + 1 < agents).map(CellId).collect();
        dead.sort_unstable();
        dead.dedup();
        Machine::new("any", topology, Parameters::iwarp(), dead, vec![]).unwrap()
    })
}

/// A machine, a number of parts that fits, and connections between them.
fn any_case() -> impl Strategy<Value = (Machine, usize, ConnectionSet)> {
    let rows = prop::collection::vec((any::<u32>(), any::<u32>(), 1..1u32 << 30), 0..80);
    (any_machine(), any::<u32>(), rows).prop_map(|(machine, parts, rows)| {
        let homes = machine.endpoints().count() as u32;
        let parts = parts % (homes + 1);
        let row = |&(s, t, w): &(u32, u32, u32)| {
            Connection::new(CellId(s % parts.max(1)), CellId(t % parts.max(1)), w)
        };
        let rows = if parts == 0 { vec![] } else { rows.iter().map(row).collect() };
        (machine, parts as usize, ConnectionSet::new("any", rows).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_method_puts_each_part_on_a_live_cell_of_its_own((machine, parts, set) in any_case()) {
        for method in METHODS {
            let place = super::place(&machine, &set, parts, method, 7).unwrap();
            prop_assert_eq!(&place, &super::place(&machine, &set, parts, method, 7).unwrap());
            prop_assert_eq!(place.len(), parts);
            prop_assert!(place.iter().all(|&cell| machine.is_endpoint(cell)));
            let mut cells = place.clone();
            cells.sort_unstable();
            cells.dedup();
            prop_assert_eq!(cells.len(), parts);
            if method == Method::Given {
                prop_assert_eq!(place, machine.endpoints().take(parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_best_costs_no_more_than_the_given_and_the_bisected((machine, parts, set) in any_case()) {
        let clocks = |method| {
            let place = super::place(&machine, &set, parts, method, 3).unwrap();
            super::cost(&machine, &set, &place, 3).unwrap().clocks
        };
        let best = clocks(Method::Best);
        let network = Network::new(&machine);
        for method in [Method::Given, Method::Bisect] {
            // Placements that cannot be routed are not candidates.
            let place = super::place(&machine, &set, parts, method, 3).unwrap();
            let placed = set.clone().placed(&place).unwrap();
            if crate::apr::is_routable(&machine, &network, &placed) {
                prop_assert!(best <= clocks(method));
            }
        }
    }

    #[test]
    fn loads_of_many_swaps_are_those_of_the_placement((machine, parts, set) in any_case()) {
        let network = Network::new(&machine);
        let placer = Placer::new(&machine, &network, &set, parts, 5);
        let expected_load = ExpectedLoad::new(&machine, &network, &placer.metric);
        let mut loads = PlacementLoads::new(&machine, &expected_load, &placer.traffic);
        let mut place: Vec<u32> = machine.endpoints().take(parts).map(|cell| cell.0).collect();
        loads.load(&placer.traffic, &place);
        for turn in 1..parts {
            for flow in &placer.traffic.flows {
                loads.book(flow, &place, false);
            }
            place.swap(turn - 1, turn);
            for flow in &placer.traffic.flows {
                loads.book(flow, &place, true);
            }
        }
        // Connections of a part to itself stay booked where they were; leave such sets out.
        prop_assume!(placer.traffic.own.iter().all(|&own| own == 0));
        loads.recompute_sums();
        let after = loads.cost(None);
        loads.load(&placer.traffic, &place);
        prop_assert_eq!(after, loads.cost(None));
    }
}

#[test]
fn booked_ways_are_as_long_as_the_distance() {
    for spec in ["iwarp", "torus:4x3x2", "mesh:5x4", "ring:7", "hypercube:4", "fat-tree:23"] {
        let machine = Machine::from_spec(spec).unwrap();
        let network = Network::new(&machine);
        let metric = Metric::new(&machine, &network);
        let expected_load = ExpectedLoad::new(&machine, &network, &metric);
        let homes: Vec<u32> = machine.endpoints().map(|cell| cell.0).collect();
        for &from in &homes {
            let hops = machine.hops_from(CellId(from));
            for &to in &homes {
                let (mut cells, mut links, mut ends) = (0, 0, 0);
                expected_load.visit_resources(
                    from,
                    to,
                    |cell, halves| {
                        cells += halves;
                        ends += if cell == from || cell == to { halves } else { 0 };
                    },
                    |_, halves| links += halves,
                );
                assert_eq!(links, 2 * hops[to as usize], "{spec} {from} {to}");
                assert_eq!(cells, links + 2, "{spec} {from} {to}");
                assert_eq!(ends, if from == to { 2 } else { 4 }, "{spec} {from} {to}");
            }
        }
    }
}

#[test]
fn a_fat_trees_groups_are_filled_for_fewer_phases() {
    // Pairs with much traffic, distributed such that in the given order every word passes the top.
    let machine = Machine::from_spec("fat-tree:16").unwrap();
    let pairs = (0..8u32).flat_map(|i| (0..6).flat_map(move |_| [(i, 15 - i), (15 - i, i)]));
    let set = set(pairs);
    let of = |method| {
        let place = super::place(&machine, &set, 16, method, 1).unwrap();
        super::cost(&machine, &set, &place, 1).unwrap()
    };
    let (given, best) = (of(Method::Given), of(Method::Best));
    assert!(given.phases >= 4.0, "{given:?}");
    assert_eq!(best.phases, 2.0, "{best:?}");
}

#[test]
fn a_long_chain_lies_along_the_curve() {
    let machine = Machine::from_spec("mesh:6x5").unwrap();
    let name = |i: u32| i * 11 % 30;
    let set = set((0..29).map(|i| (name(i), name(i + 1))));
    let place = super::place(&machine, &set, 30, Method::Curve, 1).unwrap();
    assert_eq!(placed_hops(&machine, &set, &place), u128::from(set.words()));
}

#[test]
fn what_is_no_placement_has_no_cost() {
    let machine = Machine::from_spec("torus:2x2").unwrap();
    let set = set([(0, 1)]);
    for place in [vec![CellId(0), CellId(0)], vec![CellId(0), CellId(4)], vec![CellId(1)]] {
        assert!(cost(&machine, &set, &place, 0).is_err(), "{place:?}");
    }
}
