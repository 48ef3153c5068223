//! Random machines and connection sets.

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Parameters, Topology,
};
use proptest::prelude::*;

fn topology() -> impl Strategy<Value = Topology> {
    let dims = prop::collection::vec(1u32..5, 1..4);
    prop_oneof![
        dims.clone().prop_map(|dims| Topology::Torus { dims }),
        dims.prop_map(|dims| Topology::Mesh { dims }),
        (1u32..9).prop_map(|cells| Topology::Ring { cells }),
        (0u32..5).prop_map(|dimension| Topology::Hypercube { dimension }),
        (1u32..20).prop_map(Topology::fat_tree),
        (1u32..9, prop::collection::vec((0u32..9, 0u32..9), 0..40)).prop_map(|(cells, links)| {
            let links = links.into_iter().map(|(a, b)| (a % cells, b % cells));
            Topology::Graph { cells, switches: 0, links: links.filter(|(a, b)| a != b).collect() }
        }),
    ]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let costs = (1u32..4, 1u32..12, 0u32..40, 1u32..9);
    (1u32..14, costs, any::<bool>(), 1u32..4).prop_map(
        |(channels_per_cell, (link, access, setup, depth), half, streams)| Parameters {
            channels_per_cell,
            link_clocks_per_word: link,
            access_clocks_per_word: access,
            stream_setup: setup,
            channel_depth: depth,
            duplex: if half { Duplex::Half } else { Duplex::Full },
            streams,
            timed_starts: u32::from(setup % 4 == 3),
            ..Parameters::iwarp()
        },
    )
}

/// A machine, perhaps with a dead cell.
fn machine() -> impl Strategy<Value = Machine> {
    (topology(), parameters(), any::<Option<u8>>()).prop_map(|(topology, parameters, dead)| {
        let build =
            |dead| Machine::new("random", topology.clone(), parameters.clone(), dead, vec![]);
        let whole = build(vec![]).expect("sizes are small");
        match dead {
            Some(cell) if whole.agent_count() > 1 => {
                build(vec![CellId(u32::from(cell) % whole.agent_count() as u32)])
                    .expect("it exists")
            }
            _ => whole,
        }
    })
}

/// Connections between live cells, self-connections and repetitions included, with some order.
fn set(machine: &Machine) -> impl Strategy<Value = ConnectionSet> + use<> {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let end = prop::sample::select(cells);
    let connection = (end.clone(), end, 1u32..40)
        .prop_map(|(source, target, words)| Connection::new(source, target, words));
    (
        prop::collection::vec(connection, 0..60),
        prop::collection::vec((any::<u16>(), any::<u16>()), 0..6),
    )
        .prop_map(|(connections, pairs)| {
            let n = connections.len() as u32;
            let order = pairs
                .into_iter()
                .filter(|_| n > 0)
                .map(|(a, b)| (u32::from(a) % n, u32::from(b) % n))
                .filter(|(a, b)| a != b)
                // Smaller before larger, so there is no cycle.
                .map(|(a, b)| (ConnectionId(a.min(b)), ConnectionId(a.max(b))))
                .collect();
            ConnectionSet::new("random", connections).unwrap().with_order(order).unwrap()
        })
}

/// A machine, a set for it and a seed.
pub(crate) fn case() -> impl Strategy<Value = (Machine, ConnectionSet, u64)> {
    machine().prop_flat_map(|machine| {
        let set = set(&machine);
        (Just(machine), set, any::<u64>())
    })
}
