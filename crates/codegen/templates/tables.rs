//! Tables of numbers made into an image, through the constructors that check it.

use std::sync::Arc;

use conset_runtime::Image;
use conset_runtime::ir::{
    CellContext, CellId, ChannelEntry, ChannelId, Connection, ConnectionId, ConnectionSet,
    Direction, Feed, LinkId, Machine, NodeLists, Operation, PhaseImage, SetImage, ShapeError, Sink,
};

/// Stands for a gate where a link could be.
pub(crate) const GATE: u32 = u32::MAX;

/// A connection set with its phases.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    /// Source, target, words, least bandwidth and greatest latency (0: none).
    pub(crate) connections: &'static [[u32; 5]],
    /// The connections that have a name of their own.
    pub(crate) names: &'static [(u32, &'static str)],
    /// Before, after.
    pub(crate) order: &'static [[u32; 2]],
    /// The nodes behind each connection, one list after the other.
    pub(crate) nodes: Option<&'static [u32]>,
    pub(crate) phases: &'static [Phase],
}

/// The tables of one phase. Cells that take no part are left out.
pub(crate) struct Phase {
    /// Cell, number of its entries, number of its operations.
    pub(crate) cells: &'static [[u32; 3]],
    /// Channel, feeding link or `GATE`, connection of the gate; link that it sinks into or
    /// `GATE`, channel beyond the link or connection of the gate.
    pub(crate) entries: &'static [[u32; 5]],
    /// 0 to send or 1 to receive, connection, channel, words, first word.
    pub(crate) operations: &'static [[u32; 5]],
    /// Planned start of each operation, in clocks.
    pub(crate) starts: &'static [u64],
}

/// The image of some sets.
pub(crate) fn image(machine: Arc<Machine>, sets: &[&Set]) -> Result<Image, ShapeError> {
    let cells = machine.cell_count();
    let sets = sets.iter().map(|set| set_image(set, cells)).collect::<Result<_, _>>()?;
    Image::new(machine, sets)
}

fn set_image(set: &Set, cells: usize) -> Result<SetImage, ShapeError> {
    let required = |value: u32| (value > 0).then_some(value);
    let mut connections: Vec<Connection> = set
        .connections
        .iter()
        .map(|&[source, target, words, bandwidth, latency]| Connection {
            min_bandwidth: required(bandwidth),
            max_latency: required(latency),
            ..Connection::new(CellId(source), CellId(target), words)
        })
        .collect();
    for &(row, name) in set.names {
        connections[row as usize].name = Some(name.into());
    }
    let order = set.order.iter().map(|&[a, b]| (ConnectionId(a), ConnectionId(b))).collect();
    let mut built = ConnectionSet::new(set.name, connections)?.with_order(order)?;
    if let Some(mut nodes) = set.nodes {
        let lists: Vec<&[u32]> = set
            .connections
            .iter()
            .map(|connection| nodes.split_off(..connection[2] as usize).unwrap_or_default())
            .collect();
        built = built.with_nodes(NodeLists::from_lists(lists))?;
    }
    let phases = set.phases.iter().map(|phase| phase_image(phase, cells)).collect();
    Ok(SetImage::of_phases(Arc::new(built), phases))
}

fn phase_image(phase: &Phase, cells: usize) -> PhaseImage {
    let entries: Vec<ChannelEntry> = phase.entries.iter().map(entry).collect();
    let operations: Vec<Operation> =
        phase.operations.iter().zip(phase.starts).map(operation).collect();
    let (mut entries, mut operations) = (&entries[..], &operations[..]);
    let mut listed = phase.cells;
    PhaseImage::from_cells((0..cells).map(|cell| match listed {
        [[at, entry_count, operation_count], rest @ ..] if *at as usize == cell => {
            listed = rest;
            let (these, others) = entries.split_at(*entry_count as usize);
            entries = others;
            let (doings, others) = operations.split_at(*operation_count as usize);
            operations = others;
            CellContext { entries: these, operations: doings }
        }
        _ => CellContext { entries: &[], operations: &[] },
    }))
}

fn entry(&[channel, from, fed, to, into]: &[u32; 5]) -> ChannelEntry {
    let feed = match from {
        GATE => Feed::Gate(ConnectionId(fed)),
        link => Feed::Link(LinkId(link)),
    };
    let sink = match to {
        GATE => Sink::Gate(ConnectionId(into)),
        link => Sink::Forward { link: LinkId(link), channel: ChannelId(into) },
    };
    ChannelEntry { channel: ChannelId(channel), feed, sink }
}

fn operation(
    (&[direction, connection, channel, words, first_word], &start): (&[u32; 5], &u64),
) -> Operation {
    Operation {
        direction: if direction == 0 { Direction::Send } else { Direction::Receive },
        connection: ConnectionId(connection),
        channel: ChannelId(channel),
        words,
        first_word,
        start,
    }
}
