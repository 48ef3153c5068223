//! Context loading: the forwarding tables of a phase become the channels of the network.
//!
//! Every row of every cell's table becomes a channel; the channels are numbered cell by cell. The
//! next channel of a row that forwards is looked up in the neighbour's table. If the neighbour has
//! no such row, or the row is fed by another link, the words go to an additional *unmapped*
//! channel, where they are reported as misrouted. The tables are not checked otherwise: only a row
//! that cannot be written into the machine, or that would forward a word forever, is rejected here.

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ChannelId, ConnectionId, Direction, Feed, LinkId, Machine, Operation, PhaseImage, Sink,
};

use crate::fault::{FaultKind, GateProblem, TableProblem};
use crate::network::{Channel, GATE, NONE, UNMAPPED};

/// The cell of a channel and the contents of its row; read only when a stream opens or fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableRow {
    pub(crate) cell: CellId,
    pub(crate) channel: ChannelId,
    pub(crate) feed: Feed,
    /// The connection of its sink gate, if the sink is a gate.
    pub(crate) sink: Option<ConnectionId>,
}

/// The tables of the present context.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedTables {
    pub(crate) rows: Vec<TableRow>,
    /// The cells that have table rows, ascending.
    listed: Vec<CellId>,
    /// The rows of cell `listed[c]` are `first[c]..first[c + 1]`, in `rows` and in `by_channel`.
    first: Vec<u32>,
    /// (channel, row), sorted within each cell.
    by_channel: Vec<(u32, u32)>,
    /// Scratch: the number of channels that each link serves; all 0 between calls.
    counts: Vec<u32>,
}

/// The channels of a context, for the network.
pub(crate) struct ChannelLayout {
    pub(crate) channels: Vec<Channel>,
    /// The links that serve channels, and the number of channels of each.
    pub(crate) served: Vec<(u32, u32)>,
}

impl LoadedTables {
    /// Loads a phase's tables. O(rows log rows), independent of the size of the machine.
    pub(crate) fn write(
        &mut self,
        machine: &Machine,
        phase: &PhaseImage,
    ) -> Result<ChannelLayout, FaultKind> {
        self.index(phase)?;
        self.counts.resize(machine.link_count(), 0);
        let mut served = Vec::new();
        let mut channels = Vec::with_capacity(self.rows.len());
        for (cell, context) in phase.cells() {
            for entry in context.entries {
                channels.push(match entry.sink {
                    Sink::Gate(_) => Channel::new(GATE, 0, NONE),
                    Sink::Forward { link, channel } => {
                        if machine.outgoing(cell).binary_search(&link).is_err() {
                            self.counts.clear();
                            return Err(FaultKind::Table {
                                cell,
                                channel: entry.channel,
                                problem: TableProblem::Link(link),
                            });
                        }
                        let next = self.listener(machine.link(link).target, link, channel);
                        let slot = self.counts[link.index()];
                        if slot == 0 {
                            served.push((link.0, 0));
                        }
                        self.counts[link.index()] += 1;
                        Channel::new(link.0, slot, next)
                    }
                });
            }
        }
        for (link, count) in &mut served {
            *count = std::mem::take(&mut self.counts[index(*link)]);
        }
        channels.resize(self.rows.len(), Channel::new(UNMAPPED, 0, NONE));
        self.reject_cycles(&channels)?;
        Ok(ChannelLayout { channels, served })
    }

    /// Numbers the rows and sorts each cell's by channel.
    fn index(&mut self, phase: &PhaseImage) -> Result<(), FaultKind> {
        self.rows.clear();
        self.listed.clear();
        self.first.clear();
        self.by_channel.clear();
        for (cell, context) in phase.cells() {
            let start = self.rows.len();
            self.listed.push(cell);
            self.first.push(to_u32(start));
            for entry in context.entries {
                self.by_channel.push((entry.channel.0, to_u32(self.rows.len())));
                let sink = if let Sink::Gate(x) = entry.sink { Some(x) } else { None };
                self.rows.push(TableRow { cell, channel: entry.channel, feed: entry.feed, sink });
            }
            let own = &mut self.by_channel[start..];
            own.sort_unstable();
            if let Some(pair) = own.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let channel = ChannelId(pair[0].0);
                return Err(FaultKind::Table { cell, channel, problem: TableProblem::Twice });
            }
        }
        self.first.push(to_u32(self.rows.len()));
        Ok(())
    }

    /// The row of channel `channel` of `cell` if it is fed by `link`; otherwise a new unmapped
    /// channel.
    fn listener(&mut self, cell: CellId, link: LinkId, channel: ChannelId) -> u32 {
        let feed = Feed::Link(link);
        if let Some(row) = self.find(cell, channel)
            && self.rows[index(row)].feed == feed
        {
            return row;
        }
        self.rows.push(TableRow { cell, channel, feed, sink: None });
        to_u32(self.rows.len()) - 1
    }

    /// The row of a cell's channel.
    fn find(&self, cell: CellId, channel: ChannelId) -> Option<u32> {
        // If all cells have rows, the cell is at this position; otherwise it is before it.
        let most = self.listed.len().min(cell.index() + 1);
        let listed = match self.listed[..most].last() {
            Some(&last) if last == cell => most - 1,
            _ => self.listed[..most].binary_search(&cell).ok()?,
        };
        let (from, to) = (self.first[listed], self.first[listed + 1]);
        let own = &self.by_channel[index(from)..index(to)];
        own.binary_search_by_key(&channel.0, |pair| pair.0).ok().map(|at| own[at].1)
    }

    /// Rejects cycles of channels, which would forward a word forever.
    fn reject_cycles(&self, channels: &[Channel]) -> Result<(), FaultKind> {
        // 0: not visited; any other number is the walk that visited the channel first.
        let mut visited = vec![0u32; channels.len()];
        for start in 0..channels.len() {
            let walk = to_u32(start + 1);
            let mut at = start;
            while visited[at] == 0 {
                visited[at] = walk;
                match channels[at].next() {
                    Some(next) => at = index(next),
                    None => break,
                }
            }
            if visited[at] == walk && channels[at].next().is_some() {
                let TableRow { cell, channel, .. } = self.rows[at];
                return Err(FaultKind::Table { cell, channel, problem: TableProblem::Cycle });
            }
        }
        Ok(())
    }

    /// The channel at the gate of an operation.
    pub(crate) fn gate(&self, cell: CellId, operation: &Operation) -> Result<u32, FaultKind> {
        let Operation { direction, connection, channel, .. } = *operation;
        let fail = |problem| FaultKind::Gate { cell, channel, connection, direction, problem };
        let row = self.find(cell, channel).ok_or_else(|| fail(GateProblem::NoEntry))?;
        let gate = match (direction, self.rows[index(row)]) {
            (Direction::Send, TableRow { feed: Feed::Gate(x), .. }) => Some(x),
            (Direction::Receive, TableRow { sink, .. }) => sink,
            _ => None,
        };
        match gate {
            Some(x) if x == connection => Ok(row),
            Some(x) => Err(fail(GateProblem::Other(x))),
            None => Err(fail(GateProblem::NoGate)),
        }
    }
}
