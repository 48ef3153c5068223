//! Images built by hand: shortest routes, first phase with a free channel everywhere, lowest free
//! channels, operations in the order of the connections. Shared by tests and the speed example.

#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use conset_ir::{
    CellContext, CellId, ChannelEntry, ChannelId, Connection, ConnectionId, ConnectionSet,
    Direction, Feed, Image, LinkId, Machine, Operation, Parameters, PhaseImage, SetImage, Sink,
};

/// A cell's tables while they are being built.
#[derive(Clone, Debug, Default)]
pub struct CellTables {
    pub entries: Vec<ChannelEntry>,
    pub operations: Vec<Operation>,
}

/// The tables of a phase, by cell.
pub type PhaseTables = Vec<CellTables>;

/// A machine with some parameters changed.
pub fn machine(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    Arc::new(machine.with_parameters(parameters).unwrap())
}

/// A set of (source, target, words).
pub fn set(connections: &[(u32, u32, u32)]) -> ConnectionSet {
    let connection = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
    ConnectionSet::new("s", connections.iter().map(connection).collect()).unwrap()
}

/// Every cell to every other, nearest cell numbers first.
pub fn all_to_all(cells: u32, words: u32) -> ConnectionSet {
    let pairs = (1..cells).flat_map(|k| (0..cells).map(move |c| (c, (c + k) % cells, words)));
    set(&pairs.collect::<Vec<_>>())
}

/// Hops from every cell to `target`, for machines whose links come in both directions.
fn hops_to(machine: &Machine, target: CellId) -> Vec<u32> {
    machine.hops_from(target)
}

/// The links of a shortest route: at each cell the first link that leads nearer.
pub fn route(machine: &Machine, from: CellId, to: CellId) -> Vec<LinkId> {
    let hops = hops_to(machine, to);
    route_by(machine, from, &hops)
}

fn route_by(machine: &Machine, from: CellId, hops: &[u32]) -> Vec<LinkId> {
    let (mut at, mut links) = (from, Vec::new());
    while hops[at.index()] > 0 {
        let nearer = |l: &&LinkId| hops[machine.link(**l).target.index()] + 1 == hops[at.index()];
        let link = *machine.outgoing(at).iter().find(nearer).unwrap();
        links.push(link);
        at = machine.link(link).target;
    }
    links
}

/// Adds a route for a part of a connection; `channels` is one channel for each cell.
pub fn add(
    tables: &mut PhaseTables,
    machine: &Machine,
    connection: ConnectionId,
    source: CellId,
    links: &[LinkId],
    channels: &[ChannelId],
    (first_word, words): (u32, u32),
) {
    let cells: Vec<CellId> =
        std::iter::once(source).chain(links.iter().map(|&l| machine.link(l).target)).collect();
    let start = u64::from(connection.0);
    for (i, (&cell, &channel)) in cells.iter().zip(channels).enumerate() {
        let feed = if i == 0 { Feed::Gate(connection) } else { Feed::Link(links[i - 1]) };
        let sink = match links.get(i) {
            Some(&link) => Sink::Forward { link, channel: channels[i + 1] },
            None => Sink::Gate(connection),
        };
        tables[cell.index()].entries.push(ChannelEntry { channel, feed, sink });
    }
    let ends = [(0, Direction::Send), (cells.len() - 1, Direction::Receive)];
    for (i, direction) in ends {
        let channel = channels[i];
        let operation = Operation { direction, connection, channel, words, first_word, start };
        tables[cells[i].index()].operations.push(operation);
    }
}

/// The tables of a set: each connection in the first phase where every cell of its route has a
/// channel free, and not before those that are ordered before it and have lower ids. Starts are
/// the connections' numbers, or where they are kept some clocks apart.
pub fn tables(machine: &Machine, set: &ConnectionSet) -> Vec<PhaseTables> {
    let cells = machine.cell_count();
    let hops: Vec<Vec<u32>> = (0..cells).map(|c| hops_to(machine, CellId(c as u32))).collect();
    let limit = machine.parameters().channels_per_cell;
    let (mut phases, mut used): (Vec<PhaseTables>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    let mut phase_of = Vec::with_capacity(set.len());
    for (id, connection) in set.iter() {
        let links = route_by(machine, connection.source, &hops[connection.target.index()]);
        let on_route: Vec<usize> = std::iter::once(connection.source.index())
            .chain(links.iter().map(|&l| machine.link(l).target.index()))
            .collect();
        let before = set.order().iter().filter(|pair| pair.1 == id && pair.0 < id);
        let earliest = before.map(|pair| phase_of[pair.0.index()]).max().unwrap_or(0);
        let free = |p: &usize| on_route.iter().all(|&c| used[*p][c] < limit);
        let phase = (earliest..used.len()).find(free).unwrap_or_else(|| {
            phases.push(vec![CellTables::default(); cells]);
            used.push(vec![0; cells]);
            phases.len() - 1
        });
        phase_of.push(phase);
        let mut channels = Vec::new();
        for &cell in &on_route {
            channels.push(ChannelId(used[phase][cell]));
            used[phase][cell] += 1;
        }
        let words = (0, connection.words);
        add(&mut phases[phase], machine, id, connection.source, &links, &channels, words);
    }
    if machine.parameters().has_timed_starts() {
        plan_starts(&mut phases, 40);
    }
    phases
}

/// Gives operations planned starts: the same at both ends of a part, and in the order of each
/// list. Starts are up to `step` clocks apart.
pub fn plan_starts(phases: &mut [PhaseTables], step: u64) {
    for operations in phases.iter_mut().flatten().map(|cell| &mut cell.operations) {
        for operation in operations.iter_mut() {
            let spread = u64::from(operation.connection.0) * 7919 % (step + 1);
            operation.start = u64::from(operation.connection.0) * step + spread;
        }
    }
}

/// An image of one set.
pub fn image(machine: &Arc<Machine>, set: ConnectionSet, phases: &[PhaseTables]) -> Image {
    Image::new(machine.clone(), vec![set_image(set, phases)]).unwrap()
}

fn set_image(set: ConnectionSet, phases: &[PhaseTables]) -> SetImage {
    let phases = phases.iter().map(|phase| {
        PhaseImage::from_cells(
            phase.iter().map(|c| CellContext { entries: &c.entries, operations: &c.operations }),
        )
    });
    SetImage::of_phases(Arc::new(set), phases.collect())
}

/// Several sets on a machine, built and put together.
pub fn build_all(
    machine: &Arc<Machine>,
    sets: impl IntoIterator<Item = ConnectionSet>,
) -> Arc<Image> {
    let sets = sets.into_iter().map(|set| {
        let phases = tables(machine, &set);
        set_image(set, &phases)
    });
    Arc::new(Image::new(machine.clone(), sets.collect()).unwrap())
}

/// A set on a machine, built and put together.
pub fn build(machine: &Arc<Machine>, set: ConnectionSet) -> Image {
    let phases = tables(machine, &set);
    image(machine, set, &phases)
}

/// What links do to words, as it is written in plans of faults.
pub const EFFECTS: [&str; 4] = ["drops", "duplicates", "corrupts", "reorders"];

/// The links of a machine as they are written in plans of faults.
pub fn links(machine: &Machine) -> Vec<String> {
    let links = (0..machine.link_count()).map(|row| machine.link(LinkId::from_index(row)));
    let mut names: Vec<String> =
        links.map(|link| format!("link {} -> {}", link.source, link.target)).collect();
    names.sort();
    names.dedup();
    names
}
