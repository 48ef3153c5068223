//! Writing a context: a phase's forwarding tables become the network's channels.
//!
//! Every row of every cell's table becomes a channel, numbered through cell by cell. A row that
//! forwards looks its next channel up on the neighbour; if the neighbour has no such row, or the
//! row listens elsewhere, the words run into a *void*, which is a channel of its own that serves
//! as the place where they are found astray. The tables are taken at their word: only what could
//! not be written into the machine, or would let a word run for ever, is refused here.

use conset_ir::{
    CellId, ChannelId, ConnectionId, Direction, Feed, LinkId, Machine, Operation, PhaseImage, Sink,
};

use crate::fault::{FaultKind, GateProblem, TableProblem};
use crate::network::{Channel, GATE, NONE, VOID};

/// Where a channel is and what its row says; only looked at when streams open or fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) cell: CellId,
    pub(crate) channel: ChannelId,
    pub(crate) feed: Feed,
    /// The connection of its sink gate.
    pub(crate) sink: Option<ConnectionId>,
}

/// A context as it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) rows: Vec<Row>,
    /// The cells that take part, ascending.
    listed: Vec<CellId>,
    /// Rows of the `c`th of them: `first[c]..first[c + 1]`, of `rows` and of `by_channel`.
    first: Vec<u32>,
    /// (channel, row), sorted within each cell.
    by_channel: Vec<(u32, u32)>,
    /// Scratch: channels that each link serves; nothing between two contexts.
    counts: Vec<u32>,
}

/// What [`Tables::write`] hands to the network.
pub(crate) struct Written {
    pub(crate) channels: Vec<Channel>,
    /// The links that serve channels, and how many.
    pub(crate) served: Vec<(u32, u32)>,
}

impl Tables {
    /// Writes a phase's tables. O(rows log rows), however large the machine is.
    pub(crate) fn write(
        &mut self,
        machine: &Machine,
        phase: &PhaseImage,
    ) -> Result<Written, FaultKind> {
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
                        let slot = u16::try_from(slot).expect("one row per channel of the cell");
                        Channel::new(link.0, slot, next)
                    }
                });
            }
        }
        for (link, count) in &mut served {
            *count = std::mem::take(&mut self.counts[*link as usize]);
        }
        channels.resize(self.rows.len(), Channel::new(VOID, 0, NONE));
        self.refuse_circles(&channels)?;
        Ok(Written { channels, served })
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
            self.first.push(start as u32);
            for entry in context.entries {
                self.by_channel.push((entry.channel.0, self.rows.len() as u32));
                let sink = if let Sink::Gate(x) = entry.sink { Some(x) } else { None };
                self.rows.push(Row { cell, channel: entry.channel, feed: entry.feed, sink });
            }
            let own = &mut self.by_channel[start..];
            own.sort_unstable();
            if let Some(pair) = own.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let channel = ChannelId(pair[0].0);
                return Err(FaultKind::Table { cell, channel, problem: TableProblem::Twice });
            }
        }
        self.first.push(self.rows.len() as u32);
        Ok(())
    }

    /// The channel of `cell` that takes words from `link` into channel number `channel`; a new
    /// void if there is none.
    fn listener(&mut self, cell: CellId, link: LinkId, channel: ChannelId) -> u32 {
        let feed = Feed::Link(link);
        if let Some(row) = self.find(cell, channel)
            && self.rows[row as usize].feed == feed
        {
            return row;
        }
        self.rows.push(Row { cell, channel, feed, sink: None });
        self.rows.len() as u32 - 1
    }

    /// The row of a cell's channel.
    fn find(&self, cell: CellId, channel: ChannelId) -> Option<u32> {
        // Where all cells take part it is where it is looked for first, and never behind that.
        let most = self.listed.len().min(cell.index() + 1);
        let listed = match self.listed[..most].last() {
            Some(&last) if last == cell => most - 1,
            _ => self.listed[..most].binary_search(&cell).ok()?,
        };
        let (from, to) = (self.first[listed], self.first[listed + 1]);
        let own = &self.by_channel[from as usize..to as usize];
        own.binary_search_by_key(&channel.0, |pair| pair.0).ok().map(|at| own[at].1)
    }

    /// A word on a circle of channels would run for ever.
    fn refuse_circles(&self, channels: &[Channel]) -> Result<(), FaultKind> {
        // 0 is not seen yet; any other number names the walk that saw the channel first.
        let mut seen = vec![0u32; channels.len()];
        for start in 0..channels.len() {
            let walk = start as u32 + 1;
            let mut at = start;
            while seen[at] == 0 {
                seen[at] = walk;
                match channels[at].next() {
                    Some(next) => at = next as usize,
                    None => break,
                }
            }
            if seen[at] == walk && channels[at].next().is_some() {
                let Row { cell, channel, .. } = self.rows[at];
                return Err(FaultKind::Table { cell, channel, problem: TableProblem::Circle });
            }
        }
        Ok(())
    }

    /// The channel behind the gate of an operation.
    pub(crate) fn gate(&self, cell: CellId, operation: &Operation) -> Result<u32, FaultKind> {
        let Operation { direction, connection, channel, .. } = *operation;
        let fail = |problem| FaultKind::Gate { cell, channel, connection, direction, problem };
        let row = self.find(cell, channel).ok_or_else(|| fail(GateProblem::NoEntry))?;
        let gate = match (direction, self.rows[row as usize]) {
            (Direction::Send, Row { feed: Feed::Gate(x), .. }) => Some(x),
            (Direction::Receive, Row { sink, .. }) => sink,
            _ => None,
        };
        match gate {
            Some(x) if x == connection => Ok(row),
            Some(x) => Err(fail(GateProblem::Other(x))),
            None => Err(fail(GateProblem::NoGate)),
        }
    }
}
