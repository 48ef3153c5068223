//! Tests of the module above: closed forms, odd machines, and comparison with brute force.

use conset_ir::{Connection, Parameters, Topology};

use super::*;

fn set(connections: &[(u32, u32, u32)]) -> ConnectionSet {
    let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
    ConnectionSet::new("s", connections.iter().map(row).collect()).unwrap()
}

fn all_to_all(machine: &Machine, words: u32) -> ConnectionSet {
    let cells: Vec<u32> = machine.endpoints().map(|c| c.0).collect();
    let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b, words)));
    set(&pairs.filter(|p| p.0 != p.1).collect::<Vec<_>>())
}

fn summary(spec: &str, connections: &[(u32, u32, u32)]) -> Bounds {
    bounds(&Machine::from_spec(spec).unwrap(), &set(connections)).unwrap().summary()
}

#[test]
fn the_designs_example() {
    let b = summary("iwarp", &[(3, 4, 133)]);
    assert_eq!((b.phases, b.clocks), (1, 794));
    assert_eq!(b.clocks_by, Binding::AgentLoad);
}

#[test]
fn an_empty_set_is_bound_by_nothing() {
    let b = summary("iwarp", &[]);
    assert_eq!((b.phases, b.clocks), (0, 0));
    assert_eq!((b.phases_by, b.clocks_by), (Binding::Nothing, Binding::Nothing));
}

#[test]
fn the_papers_patterns() {
    let machine = Machine::from_spec("iwarp").unwrap();
    let b = bounds(&machine, &all_to_all(&machine, 100)).unwrap().summary();
    // 64 x (256 + 63) channels over 64 x 12.
    assert_eq!((b.phases, b.phases_by), (27, Binding::ChannelTotal));
    // Half the ring sends to the other half: 1024 pairs over 16 links, 2 clocks each.
    assert_eq!(b.clocks, 27 * 528 + 1024 * 100 * 2 / 16);

    // Gray-code hypercube: 384 connections. Coordinates are coded dimension by dimension.
    let gray = |i: u32| i ^ (i >> 1);
    let code = |cell: u32| gray(cell % 8) | gray(cell / 8) << 3;
    let mut pairs = Vec::new();
    for a in 0..64 {
        for b in 0..64u32 {
            if (code(a) ^ code(b)).count_ones() == 1 {
                pairs.push((a, b, 8));
            }
        }
    }
    assert_eq!(pairs.len(), 384);
    // 16 channels a cell in one phase (design, rule 2), so 2 phases of 12.
    assert_eq!(summary("iwarp", &pairs).phases, 2);
}

#[test]
fn a_connection_to_itself_takes_one_channel() {
    let b = summary("ring:1", &[(0, 0, 5); 13]);
    assert_eq!((b.phases, b.clocks), (2, 2 * 528 + 13 * 5 * 2));
}

#[test]
fn half_duplex_and_set_ups_add_up() {
    let machine = Machine::from_spec("iwarp-fem").unwrap();
    let mut parameters = machine.parameters().clone();
    parameters.stream_setup = 50;
    let machine = machine.with_parameters(parameters.clone()).unwrap();
    let pair = set(&[(0, 1, 10), (1, 0, 20)]);
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 300 + 100);
    parameters.duplex = Duplex::Full;
    let machine = machine.with_parameters(parameters.clone()).unwrap();
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 200 + 50);
    // With two streams, set-ups may overlap words.
    parameters.streams = 2;
    let machine = machine.with_parameters(parameters).unwrap();
    assert_eq!(bounds(&machine, &pair).unwrap().summary().clocks, 528 + 200);
}

#[test]
fn a_narrow_cut_binds() {
    // A mesh of 2x4: 8 words each from every cell of the left half to its mirror image.
    let pairs: Vec<_> =
        (0..8).filter(|c| c % 4 < 2).map(|c| (c, c / 4 * 4 + 3 - c % 4, 80)).collect();
    let report = bounds(&Machine::from_spec("mesh:4x2").unwrap(), &set(&pairs)).unwrap();
    let b = report.summary();
    assert_eq!((b.clocks, b.clocks_by), (528 + 2 * 2 * 80, Binding::DimensionCut), "{report:?}");
    // All words of a fat-tree's group leave over its two links.
    let pairs: Vec<_> = (0..4).map(|c| (c, c + 4, 100)).collect();
    let b = summary("fat-tree:16", &pairs);
    assert_eq!((b.clocks, b.clocks_by), (528 + 400 * 2 / 2, Binding::Bisection));
}

#[test]
fn no_way_is_infeasible() {
    let machine = Machine::new(
        "holed",
        Topology::Mesh { dims: vec![3] },
        Parameters::iwarp(),
        vec![CellId(1)],
        vec![],
    )
    .unwrap();
    let error = bounds(&machine, &set(&[(0, 0, 1), (0, 2, 1)])).unwrap_err();
    assert!(error.to_string().contains("c0 to c2"), "{error}");
    assert_eq!(error.connections, [conset_ir::ConnectionId(1)]);
    assert!(bounds(&machine, &set(&[(0, 1, 1)])).is_err());
    assert!(bounds(&machine, &set(&[(0, 7, 1)])).is_err());
}

#[test]
fn words_beyond_64_bits_of_clocks_do_not_overflow() {
    let mut parameters = Parameters::iwarp();
    parameters.access_clocks_per_word = 1_000_000_000;
    parameters.link_clocks_per_word = 1_000_000_000;
    let machine = Machine::from_spec("ring:4").unwrap().with_parameters(parameters).unwrap();
    let big = vec![(0, 2, 1 << 30); 1 << 12];
    assert!(bounds(&machine, &set(&big)).unwrap().summary().clocks > 1 << 60);
}
