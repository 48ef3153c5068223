//! Counts and shapes in closed form, on machines of every kind and of odd sizes.

use std::collections::BTreeSet;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Machine, Parameters, Topology};
use conset_mesh::patterns::{LIST, generate};
use proptest::prelude::*;

const MACHINES: [&str; 14] = [
    "iwarp",
    "torus:1",
    "torus:2x1",
    "torus:2x2x2",
    "torus:3x5x2",
    "torus:4x1x4",
    "mesh:8x4",
    "mesh:7x3",
    "ring:1",
    "ring:7",
    "hypercube:0",
    "hypercube:5",
    "fat-tree:17",
    "fat-tree:64",
];

fn machine(spec: &str) -> Machine {
    Machine::from_spec(spec).unwrap()
}

fn holed(topology: Topology, dead: &[u32]) -> Machine {
    let dead = dead.iter().copied().map(CellId).collect();
    Machine::new("holed", topology, Parameters::iwarp(), dead, vec![]).unwrap()
}

fn made(spec: &str, on: &str) -> ConnectionSet {
    generate(spec, &machine(on), 5).unwrap_or_else(|e| panic!("{spec} on {on}: {e}"))
}

fn pairs(set: &ConnectionSet) -> Vec<(u32, u32)> {
    set.connections().iter().map(|c| (c.source.0, c.target.0)).collect()
}

fn is_symmetric(set: &ConnectionSet) -> bool {
    let mut forward = pairs(set);
    let mut backward: Vec<(u32, u32)> = forward.iter().map(|&(a, b)| (b, a)).collect();
    forward.sort_unstable();
    backward.sort_unstable();
    forward == backward
}

fn sends_per_cell(set: &ConnectionSet, cells: usize) -> Vec<usize> {
    let mut sends = vec![0; cells];
    for connection in set.connections() {
        sends[connection.source.index()] += 1;
    }
    sends
}

/// Sum over the connections of hops + 1: the channels that shortest routes take.
fn channels(set: &ConnectionSet, machine: &Machine) -> usize {
    let hops: Vec<Vec<u32>> = machine.cells().map(|cell| machine.hops_from(cell)).collect();
    set.connections().iter().map(|c| index(hops[c.source.index()][c.target.index()]) + 1).sum()
}

/// Checks that no cell receives or sends twice.
fn assert_partial_permutation(set: &ConnectionSet) {
    let sources: BTreeSet<u32> = set.connections().iter().map(|c| c.source.0).collect();
    let targets: BTreeSet<u32> = set.connections().iter().map(|c| c.target.0).collect();
    assert_eq!((sources.len(), targets.len()), (set.len(), set.len()), "{}", set.name());
}

#[test]
fn every_pattern_on_every_machine_fits_it_or_says_why_not() {
    for on in MACHINES {
        let machine = machine(on);
        for pattern in LIST {
            match generate(pattern.name, &machine, 5) {
                Ok(set) => {
                    set.check_machine(&machine).unwrap();
                    assert_eq!(set.name(), pattern.name);
                    assert!(set.connections().iter().all(|c| c.source != c.target));
                    assert!(set.connections().iter().all(|c| (1..=5).contains(&c.words)));
                    let again = generate(pattern.name, &machine, 5).unwrap();
                    assert_eq!(set, again, "{} on {on}", pattern.name);
                }
                Err(error) => assert!(
                    error.message.contains("power of two") || error.message.contains("switches"),
                    "{} on {on}: {error}",
                    pattern.name
                ),
            }
        }
    }
}

#[test]
fn torus_sends_both_ways_in_each_dimension() {
    let set = made("torus", "iwarp");
    assert_eq!(sends_per_cell(&set, 64), [4; 64]);
    assert_eq!(&pairs(&set)[..4], &[(0, 1), (0, 7), (0, 8), (0, 56)]);
    assert_eq!(channels(&set, &machine("iwarp")), 256 * 2);
    // Dimensions of 3 and 5 give two neighbours; one of 2 gives one neighbour twice.
    for (on, sends) in [("torus:3x5x2", 6), ("torus:4x1x4", 4), ("torus:2x1", 2), ("torus:1", 0)] {
        let set = made("torus", on);
        assert!(sends_per_cell(&set, machine(on).agent_count()).iter().all(|&n| n == sends));
        assert!(is_symmetric(&set));
    }
    assert_eq!(pairs(&made("torus", "torus:2x1")), [(0, 1), (0, 1), (1, 0), (1, 0)]);
    // The pattern is the links of the machine of that name, in their order.
    let machine = machine("torus:3x5x2");
    let links: Vec<(u32, u32)> = (0..to_u32(machine.link_count()))
        .map(|l| machine.link(conset_ir::LinkId(l)))
        .map(|link| (link.source.0, link.target.0))
        .collect();
    assert_eq!(pairs(&made("torus", "torus:3x5x2")), links);
    assert_eq!(pairs(&made("torus:3x5x2", "ring:30")), links, "a logical grid over the ranks");
    assert_eq!(pairs(&made("torus", "fat-tree:64")), pairs(&made("torus", "iwarp")));
}

#[test]
fn stencils_have_no_backloops() {
    for (on, pairs) in [
        ("mesh:8x4", 22 * 10 - 32),
        ("torus:3x5x2", 7 * 13 * 4 - 30),
        ("hypercube:5", 32 * 31),
        ("torus:1", 0),
        ("fat-tree:17", 2 * 16),
    ] {
        let set = made("stencil", on);
        assert_eq!(set.len(), pairs, "{on}");
        assert!(is_symmetric(&set));
    }
    assert_eq!(&pairs(&made("stencil", "mesh:3x3"))[..3], &[(0, 1), (0, 3), (0, 4)]);
    let error = generate("stencil", &machine("hypercube:13"), 1).unwrap_err();
    assert!(error.message.contains("connections"), "{error}");
}

#[test]
fn nearest_follows_the_links() {
    assert_eq!(pairs(&made("nearest", "torus:2x1")), [(0, 1), (1, 0)]);
    assert_eq!(made("nearest", "hypercube:5").len(), 32 * 5);
    assert_eq!(made("nearest", "mesh:7x3").len(), 2 * (6 * 3 + 7 * 2));
    assert!(generate("nearest", &machine("fat-tree:64"), 1).is_err());
    let one_way = Topology::Graph { cells: 3, switches: 1, links: vec![(0, 1), (1, 3), (3, 2)] };
    assert_eq!(pairs(&generate("nearest", &holed(one_way, &[]), 1).unwrap()), [(0, 1)]);
}

#[test]
fn shifts_are_permutations() {
    assert_eq!(pairs(&made("ring-shift:3", "ring:7"))[5], (5, 1));
    assert_eq!(pairs(&made("ring-shift:-1", "ring:7"))[0], (0, 6));
    assert_eq!(pairs(&made("ring-shift:k=-8", "ring:7"))[0], (0, 6));
    assert!(made("ring-shift:7", "ring:7").is_empty(), "every cell would send to itself");
    assert!(made("ring-shift", "ring:1").is_empty());
    assert_eq!(pairs(&made("shift:1,-1", "iwarp"))[0], (0, 57));
    assert_eq!(pairs(&made("shift", "iwarp"))[7], (7, 0));
    assert!(made("shift:8,-16", "iwarp").is_empty());
    for (spec, on) in [("ring-shift:5", "fat-tree:17"), ("shift:2,1,1", "torus:3x5x2")] {
        let set = made(spec, on);
        assert_partial_permutation(&set);
        assert_eq!(set.len(), machine(on).agent_count());
    }
    assert!(generate("shift:1", &machine("iwarp"), 1).is_err());
    assert!(generate("shift:1,2,3", &machine("iwarp"), 1).is_err());
}

#[test]
fn gray_code_hypercube_takes_sixteen_channels_per_cell() {
    let set = made("hypercube", "iwarp");
    assert_eq!(sends_per_cell(&set, 64), [6; 64]);
    assert!(is_symmetric(&set));
    assert_eq!(channels(&set, &machine("iwarp")), 16 * 64);
    // On the hypercube itself it is the links.
    let set = made("hypercube", "hypercube:5");
    assert_eq!(channels(&set, &machine("hypercube:5")), 2 * 5 * 32);
    assert_eq!(pairs(&made("hypercube", "torus:2x1")), [(0, 1), (1, 0)]);
    assert_eq!(made("hypercube", "torus:4x1x4").len(), 64);
    assert!(made("hypercube", "ring:1").is_empty());
    // Dimension by dimension, the lowest first.
    let listed = pairs(&made("hypercube", "fat-tree:64"));
    assert_eq!((listed[0], listed[1], listed[2 * 64]), ((0, 1), (1, 0), (0, 4)));
    for on in ["ring:7", "mesh:7x3", "fat-tree:17", "torus:6x6"] {
        let error = generate("hypercube", &machine(on), 1).unwrap_err();
        assert!(error.message.contains("power of two"), "{error}");
    }
}

#[test]
fn butterflies_exchange_stage_after_stage() {
    let set = made("butterfly", "torus:2x2x2");
    assert_eq!(set.len(), 8 * 3);
    assert_eq!(set.order().len(), 8 * 2);
    for &(before, after) in set.order() {
        let (before, after) = (set.get(before), set.get(after));
        assert_eq!(before.target, after.source);
    }
    let stage = made("butterfly:4", "hypercube:5");
    assert!(stage.order().is_empty());
    assert!(is_symmetric(&stage));
    assert!(stage.connections().iter().all(|c| c.source.0 ^ c.target.0 == 16));
    assert!(generate("butterfly:5", &machine("hypercube:5"), 1).is_err());
    assert!(generate("butterfly:0", &machine("ring:1"), 1).is_err());
    assert!(made("butterfly", "ring:1").is_empty());
}

#[test]
fn bit_reversal_and_transpose_are_permutations_without_their_fixed_points() {
    // Of 2^b numbers, 2^ceil(b/2) are palindromes.
    for (on, palindromes) in [("iwarp", 8), ("hypercube:5", 8), ("torus:2x1", 2), ("ring:1", 1)] {
        let set = made("bit-reversal", on);
        assert_eq!(set.len(), machine(on).agent_count() - palindromes);
        assert_partial_permutation(&set);
        assert!(is_symmetric(&set));
    }
    assert_eq!(pairs(&made("bit-reversal", "iwarp"))[0], (1, 32));
    let set = made("transpose", "iwarp");
    assert_eq!(set.len(), 64 - 8);
    assert!(is_symmetric(&set));
    assert_eq!(pairs(&set)[0], (1, 8));
    // 8 x 4: (x, y) is row y of 4 rows; the transposed matrix has rows of 4.
    let set = made("transpose", "mesh:8x4");
    assert_partial_permutation(&set);
    assert_eq!(pairs(&set)[0], (1, 4));
    // i -> 4 i mod 31 fixes 0 and 31 alone, as 3 and 31 have no common factor.
    assert_eq!(set.len(), 32 - 2);
    assert!(made("transpose", "ring:7").is_empty());
    assert_eq!(made("transpose:columns=2", "fat-tree:64").len(), 64 - 2);
    assert!(generate("transpose:5", &machine("iwarp"), 1).is_err());
    assert!(generate("transpose:0", &machine("iwarp"), 1).is_err());
}

#[test]
fn collectives_have_their_counts() {
    for on in MACHINES {
        let p = machine(on).agent_count();
        let all = made("all-to-all", on);
        assert_eq!(all.len(), p * (p - 1));
        assert!(is_symmetric(&all));
        for name in ["one-to-all", "all-to-one", "broadcast-tree", "reduction-tree"] {
            assert_eq!(made(name, on).len(), p - 1, "{name} on {on}");
        }
    }
    assert_eq!(pairs(&made("one-to-all:c2", "ring:4")), [(2, 0), (2, 1), (2, 3)]);
    assert_eq!(pairs(&made("all-to-one:root=2", "ring:4")), [(0, 2), (1, 2), (3, 2)]);
    for bad in ["one-to-all:4", "one-to-all:x2", "one-to-all:-1", "all-to-one:root=99999999999"] {
        assert!(generate(bad, &machine("ring:4"), 1).is_err(), "{bad}");
    }
}

/// Every cell but the root is entered once; every send of another cell waits for its receive.
fn assert_broadcast(set: &ConnectionSet, root: u32, cells: usize) {
    let mut entered: Vec<Option<ConnectionId>> = vec![None; cells];
    for (id, connection) in set.iter() {
        assert!(entered[connection.target.index()].replace(id).is_none());
    }
    for (cell, receive) in entered.iter().enumerate() {
        assert_eq!(receive.is_none(), cell == index(root));
    }
    let mut expected: Vec<(ConnectionId, ConnectionId)> = set
        .iter()
        .filter_map(|(id, c)| entered[c.source.index()].map(|before| (before, id)))
        .collect();
    expected.sort_unstable();
    assert_eq!(set.order(), expected);
}

#[test]
fn trees_reach_every_cell_once_and_in_order() {
    for on in MACHINES {
        let p = machine(on).agent_count();
        for root in [0, p / 3, p - 1] {
            let down = made(&format!("broadcast-tree:{root}"), on);
            assert_broadcast(&down, to_u32(root), p);
            let up = made(&format!("reduction-tree:{root}"), on);
            let mut down: Vec<(u32, u32)> = pairs(&down).iter().map(|&(a, b)| (b, a)).collect();
            down.reverse();
            assert_eq!(pairs(&up), down, "the reduction is the broadcast backwards");
            // A send waits for all receives of its source, so each pair is one receive of one
            // cell that is not the root.
            let receives = up.connections().iter().filter(|c| c.target.index() != root).count();
            assert_eq!(up.order().len(), receives);
            for &(before, after) in up.order() {
                assert_eq!(up.get(before).target, up.get(after).source);
            }
        }
    }
    assert_eq!(pairs(&made("broadcast-tree", "ring:4")), [(0, 2), (0, 1), (2, 3)]);
}

#[test]
fn random_has_its_density_and_its_seed() {
    let on = machine("iwarp");
    let set = generate("random:density=0.2,seed=7", &on, 1000).unwrap();
    assert_eq!(set.len(), 806);
    assert!(pairs(&set).is_sorted_by(|a, b| a < b), "no pair twice");
    let words: BTreeSet<u32> = set.connections().iter().map(|c| c.words).collect();
    assert!(words.len() > 300 && *words.last().unwrap() <= 1000, "irregular");
    let respelt = generate("random:seed=7,density=0.2", &on, 1000).unwrap();
    assert_eq!(set.connections(), respelt.connections());
    assert_ne!(pairs(&set), pairs(&generate("random:0.2,8", &on, 1000).unwrap()));
    assert_eq!(set.name(), "random-density-0.2-seed-7");
    let equal = generate("random:density=0.2,seed=7,equal=1", &on, 1000).unwrap();
    assert_eq!(pairs(&equal).len(), pairs(&set).len());
    assert!(equal.connections().iter().all(|connection| connection.words == 1000));
    assert!(generate("random:0", &on, 1).unwrap().is_empty());
    assert_eq!(pairs(&generate("random:1", &on, 1).unwrap()), pairs(&made("all-to-all", "iwarp")));
    assert_eq!(generate("random:0.9", &on, 1).unwrap().len(), 3629);
    for bad in ["random:1.5", "random:-0.1", "random:NaN", "random:0.1,seed=-3", "random:inf"] {
        assert!(generate(bad, &on, 1).is_err(), "{bad}");
    }
}

#[test]
fn dead_cells_are_left_out() {
    let torus = || Topology::Torus { dims: vec![4, 4] };
    let machine = holed(torus(), &[5, 15]);
    for pattern in LIST {
        let set = generate(pattern.name, &machine, 5).unwrap();
        set.check_machine(&machine).unwrap();
        assert!(!set.is_empty(), "{}", pattern.name);
    }
    // Patterns with a geometry keep it; patterns of ranks close over the gap.
    assert_eq!(generate("torus", &machine, 5).unwrap().len(), 64 - 2 * 8);
    assert_eq!(generate("hypercube", &machine, 5).unwrap().len(), 64 - 2 * 8);
    assert_eq!(generate("all-to-all", &machine, 5).unwrap().len(), 14 * 13);
    assert_eq!(pairs(&generate("ring-shift", &machine, 5).unwrap())[4], (4, 6));
    assert_eq!(generate("broadcast-tree", &machine, 5).unwrap().len(), 13);
    assert!(generate("one-to-all:5", &machine, 5).is_err(), "dead root");
    let first_dead = holed(torus(), &[0]);
    assert_eq!(pairs(&generate("one-to-all", &first_dead, 5).unwrap())[0], (1, 2));
    let all: Vec<u32> = (0..16).collect();
    for pattern in LIST {
        assert!(generate(pattern.name, &holed(torus(), &all), 5).is_err());
    }
}

#[test]
fn bad_requests_are_refused() {
    let on = machine("iwarp");
    let error = generate("all2all", &on, 5).unwrap_err();
    assert!(error.help.unwrap().contains("did you mean all-to-all?"));
    let error = generate("", &on, 5).unwrap_err();
    assert!(error.help.unwrap().contains("ring-shift"));
    assert!(generate("torus", &on, 0).is_err());
    assert!(generate("torus", &on, u32::MAX).is_err());
    for bad in [
        "torus:8x9",
        "torus:0x8",
        "torus:8x8,1",
        "torus:dims=8x8,dims=8x8",
        "all-to-all:3",
        "ring-shift:99999999999",
        "ring-shift:x",
        "stencil:4294967295x4294967295x4294967295",
    ] {
        assert!(generate(bad, &on, 5).is_err(), "{bad}");
    }
    assert!(generate("all-to-all", &machine("ring:5000"), 5).is_err(), "25 million");
    assert!(generate("random:1", &machine("ring:1000000"), 5).is_err(), "10^12");
}

#[test]
fn a_million_connections() {
    assert_eq!(made("all-to-all", "torus:32x32").len(), 1024 * 1023);
    assert_eq!(made("random:0.95", "torus:32x32").len(), 995_174);
    assert_eq!(made("torus", "torus:512x512").len(), 4 << 18);
    assert_eq!(made("butterfly", "hypercube:16").len(), 16 << 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_gives_a_set_or_an_error(
        name in proptest::sample::select(LIST.iter().map(|p| p.name).collect::<Vec<_>>()),
        rest in "[-:=,.x0-9a-z]{0,12}",
        on in proptest::sample::select(MACHINES.to_vec()),
        words in 0u32..9,
    ) {
        let machine = machine(on);
        if let Ok(set) = generate(&format!("{name}{rest}"), &machine, words) {
            set.check_machine(&machine).unwrap();
        }
    }

    #[test]
    fn torus_and_stencil_are_symmetric(dims in proptest::collection::vec(1u32..6, 1..4)) {
        let machine = holed(Topology::Mesh { dims: dims.clone() }, &[]);
        for name in ["torus", "stencil", "nearest"] {
            prop_assert!(is_symmetric(&generate(name, &machine, 1).unwrap()));
        }
        let wide = dims.iter().filter(|&&d| d > 1).count();
        let torus = generate("torus", &machine, 1).unwrap();
        prop_assert_eq!(torus.len(), machine.agent_count() * 2 * wide);
    }

    #[test]
    fn butterflies_of_any_size_compute_a_global_sum(bits in 0u32..7) {
        let machine = holed(Topology::Hypercube { dimension: bits }, &[]);
        let set = generate("butterfly", &machine, 1).unwrap();
        // Stage by stage, each cell adds what its partner had before the stage.
        let mut sums: Vec<u64> = (0..to_u64(machine.agent_count())).collect();
        for stage in set.connections().chunks(machine.agent_count()) {
            let before = sums.clone();
            for c in stage {
                sums[c.target.index()] += before[c.source.index()];
            }
        }
        let total: u64 = (0..to_u64(machine.agent_count())).sum();
        prop_assert!(sums.iter().all(|&sum| sum == total));
    }
}
