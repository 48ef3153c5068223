//! Tests of the module above: closed forms, odd machines, and comparison with brute force.

use conset_ir::{Connection, Parameters, Topology};

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
    assert!(error.to_string().contains("--parts 4"), "{error}");
    assert!(place(&machine, &set([(0, 4)]), 4, Method::Best, 0).is_err());
}
