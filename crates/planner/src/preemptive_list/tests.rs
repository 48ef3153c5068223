//! Windows keep every rule at every moment, whatever the set.

use super::*;
use crate::cases;
use conset_ir::Duplex;
use conset_ir::convert::index;
use proptest::prelude::*;

/// All words once, and at every moment every rule.
fn check(machine: &Machine, set: &ConnectionSet, network: &Network, phases: &FragmentPhases) {
    let (ports, room) = (ports(machine, set), capacities(machine, network));
    let mut words = vec![0; set.len()];
    for streams in phases {
        assert!(!streams.is_empty());
        let mut taken = vec![0; network.cell_count()];
        for stream in streams {
            let c = &set.connections()[index(stream.connection)];
            words[index(stream.connection)] += stream.words;
            let ends = (stream.path[0], *stream.path.last().unwrap());
            assert_eq!(ends, (c.source.0, c.target.0));
            stream.path.iter().for_each(|&cell| taken[index(cell)] += 1);
            // Who is on the way when this one starts.
            let now = stream.start;
            let end = |s: &Fragment| {
                let [a, b] = ports[index(s.connection)];
                s.start + cases::duration(machine, s.words, s.path.len() - 1, a == b)
            };
            let with = streams.iter().filter(|s| s.start <= now && now < end(s));
            let mut busy = std::collections::BTreeSet::new();
            let mut used = std::collections::BTreeMap::new();
            for other in with {
                let [a, b] = ports[index(other.connection)];
                assert!(busy.insert(a) && (a == b || busy.insert(b)));
                for pair in other.path.windows(2) {
                    *used.entry(network.outgoing().edge(pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            assert!(used.iter().all(|(&edge, &used)| used <= room[edge]));
        }
        assert!(taken.iter().all(|&taken| taken <= machine.parameters().channels_per_cell));
    }
    let all: Vec<u32> = set.connections().iter().map(|c| c.words).collect();
    assert_eq!(words, all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn windows_keep_every_rule(
        topology in 0usize..8,
        pairs in prop::collection::vec((0u32..64, 0u32..64, 1u32..3000), 1..60),
        half in any::<bool>(),
        access in 1u32..5,
        link in 1u32..8,
        setup in prop::sample::select(vec![0u32, 1, 40, 900]),
        channels in 1u32..6,
        seed in any::<u64>(),
    ) {
        let machine = cases::machine(topology, |parameters| {
            parameters.access_clocks_per_word = access;
            parameters.link_clocks_per_word = link;
            parameters.stream_setup = setup;
            parameters.channels_per_cell = channels;
            parameters.duplex = if half { Duplex::Half } else { Duplex::Full };
        });
        let set = cases::set(&machine, &pairs);
        let network = Network::new(&machine);
        let found = fill(&machine, &set, &network, 1, 1 << 14, seed);
        prop_assert!(!found.is_empty());
        found.iter().for_each(|phases| check(&machine, &set, &network, phases));
        prop_assert_eq!(found, fill(&machine, &set, &network, 1, 1 << 14, seed));
    }
}
