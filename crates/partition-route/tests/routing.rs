//! The router against an independent recount: patterns of the paper, and random machines and
//! sets.

mod common;

use std::sync::Arc;

use common::{Numbers, all_to_all, check, machine, random_machine, random_set, set};
use conset_ir::{Binding, Connection, ConnectionId, ConnectionSet, Machine, Routing};
use conset_partition_route::apr::{RouterOptions, route};
use conset_partition_route::bounds::bounds;
use conset_partition_route::placement;
use proptest::prelude::*;

fn routed(machine: &Arc<Machine>, set: ConnectionSet, seed: u64) -> Routing {
    let options = RouterOptions { seed, ..RouterOptions::default() };
    let routing = route(machine, &Arc::new(set), &options, &mut |_| ()).unwrap();
    check(&routing);
    routing
}

fn phases(machine: &Arc<Machine>, set: ConnectionSet, seed: u64) -> usize {
    routed(machine, set, seed).phases().len()
}

#[test]
fn the_papers_patterns_need_the_papers_phases_or_fewer() {
    let iwarp = machine("iwarp", 12);
    let neighbours: Vec<(u32, u32, u32)> = iwarp
        .cells()
        .flat_map(|c| iwarp.outgoing(c))
        .map(|&l| (iwarp.link(l).source.0, iwarp.link(l).target.0, 8))
        .collect();
    assert_eq!(phases(&iwarp, set(&neighbours), 0), 1);

    let gray = |i: u32| i ^ (i >> 1);
    let code = |cell: u32| gray(cell % 8) | gray(cell / 8) << 3;
    let pairs = (0..64u32).flat_map(|a| (0..64).map(move |b| (a, b, 8)));
    let hypercube: Vec<_> = pairs.filter(|p| (code(p.0) ^ code(p.1)).count_ones() == 1).collect();
    for seed in 0..3 {
        assert_eq!(phases(&iwarp, set(&hypercube), seed), 2);
    }
    // The design's own count: one phase with 16 channels.
    assert_eq!(phases(&machine("iwarp", 16), set(&hypercube), 0), 1);
}

#[test]
fn all_to_all_comes_close_to_the_bound() {
    for (spec, most) in [
        ("iwarp", 27),
        ("torus:4x4", 4),
        ("torus:4x4x4", 22),
        ("mesh:8x8", 40),
        ("ring:16", 7),
        ("hypercube:6", 22),
        ("fat-tree:16", 9),
        ("torus:3x5", 4),
        ("torus:2x7", 5),
        ("torus:2x2", 1),
        ("torus:1x1", 0),
    ] {
        let machine = machine(spec, 12);
        let found = phases(&machine, all_to_all(&machine), 1);
        assert!(found <= most, "{spec}: {found} phases");
    }
}

#[test]
fn halos_fit_into_a_phase_or_two_after_placement() {
    // A plane triangulation of parts, numbered in a scrambled way.
    let iwarp = machine("iwarp", 12);
    let name = |i: u32, j: u32| (i + 8 * j) * 27 % 64;
    let mut rows = Vec::new();
    for j in 0..8u32 {
        for i in 0..8u32 {
            for (di, dj) in [(1, 0), (0, 1), (1, 1)] {
                if i + di < 8 && j + dj < 8 {
                    let (a, b) = (name(i, j), name(i + di, j + dj));
                    rows.extend([(a, b, 20 + i), (b, a, 20 + j)]);
                }
            }
        }
    }
    let parts = set(&rows);
    let place = placement::place(&iwarp, &parts, 64, placement::Method::Best, 5).unwrap();
    assert!(phases(&iwarp, parts.placed(&place).unwrap(), 5) <= 2);
}

#[test]
fn near_sets_in_three_dimensions_come_within_one_phase_of_the_bound() {
    let iwarp = machine("iwarp", 12);
    let mut numbers = Numbers(3);
    let mut rows = Vec::new();
    for a in 0..64u32 {
        for _ in 0..12 {
            let step = [1, 4, 16, 5, 20, 17, 21][numbers.below(7) as usize];
            rows.push((a, (a + step) % 64, 1 + numbers.below(300)));
        }
    }
    let parts = set(&rows);
    for seed in 0..3 {
        let place = placement::place(&iwarp, &parts, 64, placement::Method::Best, seed).unwrap();
        let placed = parts.clone().placed(&place).unwrap();
        let bound = bounds(&iwarp, &placed).unwrap().summary().phases as usize;
        assert!(phases(&iwarp, placed, seed) <= bound + 1);
    }
}

#[test]
fn an_empty_set_has_no_phase() {
    assert_eq!(phases(&machine("iwarp", 12), set(&[]), 0), 0);
}

#[test]
fn a_cell_alone_talks_to_itself() {
    let rows = vec![(0, 0, 3); 25];
    assert_eq!(phases(&machine("ring:1", 12), set(&rows), 0), 3);
}

#[test]
fn very_many_phases_take_no_time_worth_mentioning() {
    let narrow = machine("ring:2", 1);
    assert_eq!(phases(&narrow, set(&vec![(0, 1, 1); 20_000]), 0), 20_000);
}

#[test]
fn parallel_links_are_shared_evenly() {
    let ring = machine("ring:2", 12);
    let routing = routed(&ring, set(&[(0, 1, 5); 12]), 0);
    let mut load = vec![0; ring.link_count()];
    for route in routing.phases()[0].iter() {
        load[route.links()[0].index()] += 1;
    }
    load.sort_unstable();
    assert_eq!(load, [0, 0, 6, 6]);
}

#[test]
fn a_chain_can_share_a_phase_and_a_full_one_goes_on() {
    let ring = machine("ring:4", 2);
    let chain: Vec<_> = (0..9).map(|i| (ConnectionId(i), ConnectionId(i + 1))).collect();
    // Ten connections over the same two cells, two channels each: five phases, in order.
    let rows = vec![(0, 1, 4); 10];
    let ordered = set(&rows).with_order(chain).unwrap();
    assert_eq!(phases(&ring, ordered, 0), 5);
    let pair =
        set(&[(0, 1, 4), (1, 2, 4)]).with_order(vec![(ConnectionId(1), ConnectionId(0))]).unwrap();
    assert_eq!(phases(&ring, pair, 0), 1);
}

#[test]
fn guaranteed_bandwidth_keeps_links_free() {
    // 2 clocks a word: 500 words per 1000 clocks is a link of one's own.
    let ring = machine("ring:8", 12);
    let asks = |bandwidth, latency| {
        let row = |target| Connection {
            min_bandwidth: bandwidth,
            max_latency: latency,
            ..Connection::new(conset_ir::CellId(0), conset_ir::CellId(target), 10)
        };
        ConnectionSet::new("s", vec![row(1), row(2), row(3), row(3)]).unwrap()
    };
    assert_eq!(phases(&ring, asks(None, None), 0), 1);
    // Two ways out of c0, so two of the four at a time.
    assert_eq!(phases(&ring, asks(Some(500), None), 0), 2);
    assert_eq!(phases(&ring, asks(Some(250), None), 0), 1);
    // Two accesses of 2 clocks and 3 links of 2 clocks, alone; the one over 2 links could share
    // one of them, which is not looked for.
    assert_eq!(phases(&ring, asks(None, Some(10)), 0), 4);

    let refused = |set: ConnectionSet| {
        route(&ring, &Arc::new(set), &RouterOptions::default(), &mut |_| ()).unwrap_err()
    };
    let error = refused(asks(Some(501), None));
    assert!(error.to_string().contains("at most 500 words"), "{error}");
    assert_eq!(error.connections, [ConnectionId(0)]);
    let error = refused(asks(None, Some(9)));
    assert!(error.to_string().contains("latency of 10 clocks"), "{error}");
    assert_eq!(error.connections, [ConnectionId(2)]);
}

#[test]
fn too_few_phases_are_refused_with_fixes_that_work() {
    let iwarp = machine("iwarp", 12);
    let set = Arc::new(all_to_all(&iwarp));
    let options = |most| RouterOptions { max_phases: Some(most), ..RouterOptions::default() };
    let error = route(&iwarp, &set, &options(20), &mut |_| ()).unwrap_err();
    assert!(error.reason.contains("at least 27"), "{error}");
    let mut tried = 0;
    for fix in &error.fixes {
        match fix {
            conset_ir::Fix::Phases(n) => {
                assert!(route(&iwarp, &set, &options(*n), &mut |_| ()).is_ok());
            }
            conset_ir::Fix::ChannelsPerCell(n) => {
                let wider = machine("iwarp", *n);
                assert!(route(&wider, &set, &options(20), &mut |_| ()).is_ok());
                assert!(*n <= 18, "{n} channels");
            }
            conset_ir::Fix::Drop(ids) => {
                let kept = set.iter().filter(|(id, _)| ids.binary_search(id).is_err());
                let kept = kept.map(|(_, c)| c.clone()).collect();
                let kept = Arc::new(ConnectionSet::new("kept", kept).unwrap());
                assert!(route(&iwarp, &kept, &options(20), &mut |_| ()).is_ok());
            }
            other => panic!("{other}"),
        }
        tried += 1;
    }
    assert_eq!(tried, 3);
    let error = route(&iwarp, &set, &options(0), &mut |_| ()).unwrap_err();
    assert!(error.reason.contains("no phase is allowed"), "{error}");
    // An overfull cell is named with its connections.
    let gather: Vec<_> = (1..40).map(|c| (c, 0, 1)).collect();
    let error = route(&iwarp, &Arc::new(common::set(&gather)), &options(2), &mut |_| ());
    let error = error.unwrap_err();
    assert_eq!((error.overfull[0].cell.0, error.overfull[0].needed), (0, 39));
    assert_eq!(error.overfull[0].available(), 24);
}

#[test]
fn ends_that_are_not_there_and_ways_that_are_not_there_are_refused() {
    let tree = machine("fat-tree:5", 12);
    for rows in [[(0, 9, 1)], [(0, 5, 1)]] {
        let refused = route(&tree, &Arc::new(set(&rows)), &RouterOptions::default(), &mut |_| ());
        assert!(refused.is_err(), "{rows:?}");
    }
    let one_way = conset_ir::Topology::Graph { cells: 2, switches: 0, links: vec![(0, 1)] };
    let one_way =
        Machine::new("g", one_way, conset_ir::Parameters::iwarp(), vec![], vec![]).unwrap();
    let one_way = Arc::new(one_way);
    assert_eq!(phases(&one_way, set(&[(0, 1, 1)]), 0), 1);
    let error =
        route(&one_way, &Arc::new(set(&[(1, 0, 1)])), &RouterOptions::default(), &mut |_| ());
    assert!(error.unwrap_err().to_string().contains("c1 to c0"));
}

#[test]
fn progress_ends_with_everything_routed() {
    let iwarp = machine("iwarp", 12);
    let set = Arc::new(all_to_all(&iwarp));
    let mut last = None;
    let mut calls = 0;
    let routing = route(&iwarp, &set, &RouterOptions::default(), &mut |p| {
        last = Some(p);
        calls += 1;
    })
    .unwrap();
    let last = last.unwrap();
    assert_eq!((last.routed, last.total), (4032, 4032));
    assert_eq!(last.phases as usize, routing.phases().len());
    assert!((4..40).contains(&calls));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sets_on_random_machines_are_routed_right(seed: u64) {
        let mut numbers = Numbers(seed);
        let machine = random_machine(&mut numbers);
        let set = random_set(&mut numbers, &machine, 60);
        let lower = bounds(&machine, &set).unwrap();
        let routing = routed(&machine, set.clone(), seed);
        prop_assert!(routing.phases().len() >= lower.summary().phases as usize);
        // Loads of phases know nothing of order.
        let loads = lower.clocks.iter().filter(|bound| bound.binding != Binding::Order);
        prop_assert!(loads.map(|bound| bound.value).max() <= Some(common::least_clocks(&routing)));
        prop_assert_eq!(&routed(&machine, set, seed), &routing);
    }

    #[test]
    fn requirements_are_kept_or_refused(seed: u64) {
        let mut numbers = Numbers(seed);
        let machine = random_machine(&mut numbers);
        let plain = random_set(&mut numbers, &machine, 30);
        let mut connections = plain.connections().to_vec();
        for connection in &mut connections {
            let hops = machine.hops_from(connection.source)[connection.target.index()];
            if numbers.below(3) == 0 {
                connection.min_bandwidth = Some(500 / (1 + numbers.below(5)));
            }
            if numbers.below(3) == 0 {
                connection.max_latency = Some(4 + 2 * hops * (1 + numbers.below(3)) + numbers.below(4));
            }
        }
        let order = plain.order().to_vec();
        let set = ConnectionSet::new("s", connections).unwrap().with_order(order).unwrap();
        routed(&machine, set, seed);
    }

    #[test]
    fn sets_on_broken_machines_are_routed_or_refused(seed: u64) {
        let mut numbers = Numbers(seed);
        let machine = random_machine(&mut numbers);
        let cells = machine.cell_count() as u32;
        let rows: Vec<_> =
            (0..numbers.below(20)).map(|_| (numbers.below(cells), numbers.below(cells), 1)).collect();
        let set = Arc::new(set(&rows));
        let most = numbers.below(4);
        let options = RouterOptions { max_phases: Some(most), seed, ..RouterOptions::default() };
        match route(&machine, &set, &options, &mut |_| ()) {
            Ok(routing) => {
                check(&routing);
                prop_assert!(routing.phases().len() <= most as usize);
            }
            Err(error) => {
                prop_assert!(!error.fixes.is_empty());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
