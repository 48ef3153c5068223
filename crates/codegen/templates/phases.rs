
use conset_runtime::ir::{
    CellContext, ChannelEntry, ChannelId, Direction, Feed, LinkId, Operation, PhaseImage, Sink,
};

/// Stands for a gate where a link could be.
pub(crate) const GATE: u32 = u32::MAX;

/// The phases of a set, in the order of execution.
pub(crate) type Plan = [Phase];

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

fn set_image(
    machine: &Arc<Machine>,
    set: Arc<ConnectionSet>,
    phases: &Plan,
) -> Result<SetImage, ShapeError> {
    let cells = machine.cell_count();
    let phases = phases.iter().map(|phase| phase_image(phase, cells)).collect();
    Ok(SetImage::of_phases(set, phases))
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
