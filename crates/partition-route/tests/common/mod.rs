//! What the tests share: patterns, random machines and sets, and an independent check of a
//! routing that recounts everything from the routes.
#![allow(dead_code)]

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, LinkId, Machine, Parameters,
    Routing, Topology,
};

/// A machine of a specification, with so many channels per cell.
pub(crate) fn machine(spec: &str, channels: u32) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let parameters = Parameters { channels_per_cell: channels, ..machine.parameters().clone() };
    Arc::new(machine.with_parameters(parameters).unwrap())
}

/// A set of connections (source, target, words).
pub(crate) fn set(rows: &[(u32, u32, u32)]) -> ConnectionSet {
    let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
    ConnectionSet::new("s", rows.iter().map(row).collect()).unwrap()
}

/// Everybody to everybody else.
pub(crate) fn all_to_all(machine: &Machine) -> ConnectionSet {
    let cells: Vec<u32> = machine.endpoints().map(|c| c.0).collect();
    let pairs = cells.iter().flat_map(|&a| cells.iter().map(move |&b| (a, b, 8)));
    set(&pairs.filter(|p| p.0 != p.1).collect::<Vec<_>>())
}

/// A small generator of numbers, so that the tests do not lean on the router's.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(most.max(1))) as u32
    }
}

/// Recounts a routing: every connection once and whole, ends right, cells joined by the links
/// named, nothing dead, no cell twice, channels there and given once, order kept.
pub(crate) fn check(routing: &Routing) {
    let (machine, set) = (routing.machine(), routing.set());
    let channels = machine.parameters().channels_per_cell;
    let mut phase_of = vec![None; set.len()];
    for (phase, routes) in routing.iter() {
        assert!(!routes.is_empty(), "{phase} is empty");
        let mut taken: Vec<(CellId, ChannelId)> = Vec::new();
        let mut passing = vec![0u32; machine.cell_count()];
        for route in routes.iter() {
            let id = route.connection;
            let connection = set.get(id);
            assert_eq!(phase_of[id.index()].replace(phase), None, "{id} twice");
            assert_eq!(route.words, connection.words, "{id}");
            assert_eq!(route.cells[0], connection.source, "{id}");
            assert_eq!(route.cells[route.cells.len() - 1], connection.target, "{id}");
            for (pair, &link) in route.cells.windows(2).zip(route.links()) {
                assert_ne!(link, LinkId::NONE);
                assert!(machine.outgoing(pair[0]).contains(&link), "{id}: {link} is dead");
                assert_eq!(machine.link(link).source, pair[0], "{id}");
                assert_eq!(machine.link(link).target, pair[1], "{id}");
            }
            for (&cell, &channel) in route.cells.iter().zip(route.channels) {
                assert!(machine.is_alive(cell), "{id}: {cell} is dead");
                assert!(channel.0 < channels, "{id}: {channel} on {cell}");
                assert_eq!(route.cells.iter().filter(|&&c| c == cell).count(), 1, "{id}");
                taken.push((cell, channel));
                passing[cell.index()] += 1;
            }
        }
        assert!(passing.iter().all(|&n| n <= channels), "{phase}: a cell is overfull");
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "{phase}: a channel is given twice");
    }
    for (row, phase) in phase_of.iter().enumerate() {
        assert!(phase.is_some(), "{} has no phase", ConnectionId::from_index(row));
    }
    for &(before, after) in set.order() {
        assert!(phase_of[before.index()] <= phase_of[after.index()], "{before} before {after}");
    }
    check_requirements(routing);
}

/// Recounts how links are shared and what that leaves to each connection.
fn check_requirements(routing: &Routing) {
    let parameters = routing.machine().parameters();
    let link_clocks = u64::from(parameters.link_clocks_per_word);
    let access = u64::from(parameters.access_clocks_per_word);
    for routes in routing.phases() {
        let mut sharing = vec![0u64; routing.machine().link_count()];
        for link in routes.iter().flat_map(|r| r.links()) {
            sharing[link.index()] += 1;
        }
        for route in routes.iter() {
            let connection = routing.set().get(route.connection);
            let shared = route.links().iter().map(|l| sharing[l.index()]);
            let worst = (shared.clone().max().unwrap_or(0) * link_clocks).max(access);
            let latency = 2 * access + shared.sum::<u64>() * link_clocks;
            if let Some(bandwidth) = connection.min_bandwidth {
                assert!(u64::from(bandwidth) * worst <= 1000, "{} too slow", route.connection);
            }
            if let Some(most) = connection.max_latency {
                assert!(latency <= u64::from(most), "{} too late", route.connection);
            }
        }
    }
}

/// Clocks that the given phases and routes take at least: each phase its switch and its busiest
/// agent or link.
pub(crate) fn least_clocks(routing: &Routing) -> u64 {
    let machine = routing.machine();
    let parameters = machine.parameters();
    let stream = |words: u32| {
        u64::from(words) * u64::from(parameters.access_clocks_per_word)
            + u64::from(parameters.stream_setup)
    };
    let mut clocks = 0;
    for routes in routing.phases() {
        let mut out = vec![0; machine.cell_count()];
        let mut into = vec![0; machine.cell_count()];
        let mut links = vec![0; machine.link_count()];
        for route in routes.iter() {
            out[route.cells[0].index()] += stream(route.words);
            into[route.cells[route.cells.len() - 1].index()] += stream(route.words);
            for link in route.links() {
                links[link.index()] +=
                    u64::from(route.words) * u64::from(parameters.link_clocks_per_word);
            }
        }
        let busiest = out.iter().chain(&into).chain(&links).max().copied().unwrap_or(0);
        clocks += parameters.switch_clocks() + busiest;
    }
    clocks
}

/// A machine of any shape, perhaps with something dead, from a seed.
pub(crate) fn random_machine(numbers: &mut Numbers) -> Arc<Machine> {
    let topology = random_topology(numbers);
    let graph = topology.graph().unwrap();
    let (cells, links) = (graph.node_count() as u32, graph.edge_count() as u32);
    let ends: Vec<(CellId, CellId)> = graph
        .edge_indices()
        .map(|e| graph.edge_endpoints(e).unwrap())
        .map(|(a, b)| (CellId(a.index() as u32), CellId(b.index() as u32)))
        .collect();
    let mut dead_cells = Vec::new();
    let mut dead_links = Vec::new();
    if numbers.below(3) == 0 {
        for _ in 0..numbers.below(3) {
            dead_cells.push(CellId(numbers.below(cells)));
        }
        for _ in 0..numbers.below(4).min(links) {
            dead_links.push(ends[numbers.below(links) as usize]);
        }
    }
    let parameters = Parameters {
        channels_per_cell: 1 + numbers.below(6),
        stream_setup: numbers.below(2) * 30,
        ..Parameters::iwarp()
    };
    Arc::new(Machine::new("random", topology, parameters, dead_cells, dead_links).unwrap())
}

fn random_topology(numbers: &mut Numbers) -> Topology {
    let dims = |numbers: &mut Numbers| {
        let count = 1 + numbers.below(3);
        (0..count).map(|_| 1 + numbers.below(4)).collect()
    };
    match numbers.below(6) {
        0 => Topology::Torus { dims: dims(numbers) },
        1 => Topology::Mesh { dims: dims(numbers) },
        2 => Topology::Ring { cells: 1 + numbers.below(9) },
        3 => Topology::Hypercube { dimension: numbers.below(5) },
        4 => Topology::fat_tree(1 + numbers.below(20)),
        _ => {
            let (cells, switches) = (1 + numbers.below(8), numbers.below(4));
            let nodes = cells + switches;
            let mut links = Vec::new();
            for _ in 0..numbers.below(4 * nodes) {
                let (a, b) = (numbers.below(nodes), numbers.below(nodes));
                if a != b {
                    links.push((a, b));
                }
            }
            Topology::Graph { cells, switches, links }
        }
    }
}

/// Connections between live cells that a way joins, with an order between some of them.
pub(crate) fn random_set(numbers: &mut Numbers, machine: &Machine, most: u32) -> ConnectionSet {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let hops: Vec<Vec<u32>> = cells.iter().map(|&c| machine.hops_from(c)).collect();
    let mut connections = Vec::new();
    for _ in 0..numbers.below(most) {
        if cells.is_empty() {
            break;
        }
        let source = numbers.below(cells.len() as u32) as usize;
        let target = cells[numbers.below(cells.len() as u32) as usize];
        if hops[source][target.index()] != u32::MAX {
            connections.push(Connection::new(cells[source], target, 1 + numbers.below(200)));
        }
    }
    let count = connections.len() as u32;
    let mut order = Vec::new();
    if count > 1 && numbers.below(2) == 0 {
        for _ in 0..numbers.below(count) {
            let (a, b) = (numbers.below(count), numbers.below(count));
            if a != b {
                // Downwards in a scrambled numbering, so that there is no cycle.
                let key = |x: u32| (x.wrapping_mul(0x9e37_79b9), x);
                let (a, b) = if key(a) < key(b) { (a, b) } else { (b, a) };
                order.push((ConnectionId(a), ConnectionId(b)));
            }
        }
    }
    ConnectionSet::new("random", connections).unwrap().with_order(order).unwrap()
}
