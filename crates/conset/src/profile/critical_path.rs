//! The critical path: the chain of streams and context switches that decides the end of an exchange,
//! and the slack of all streams.
//!
//! Phases follow each other, so every switch is on the path, and in each phase a chain of streams
//! that ends with its last word. The chain is followed backwards. An end of a stream closes when it
//! does because one of its two ends was opened when it was: the one that was opened later. (A sender
//! that has put all its words into queues before the receiver opens does not depend on the receiver.
//! A message depends on its receiver if that let it wait.) That end was opened when
//!
//! * the last stream before it at its port was complete,
//! * the connections that the set orders before it, or the message that brings what it passes on,
//!   had been received, or
//! * with timed starts, the last stream before it on one of its links was complete, because the plan
//!   keeps streams apart on links;
//!
//! whichever was last; if there is none, the switch or the begin of the exchange precedes it. A part
//! of the chain is counted as set-up or software, words, waiting for links and what else delays words,
//! or, between two streams, waiting for a planned start. These add up to the clocks of the exchange.
//!
//! The *slack* of a stream is the number of clocks by which its ends can be later without the phase
//! becoming longer, if the times of all streams between opening and end stay the same and ports keep
//! their order. It is found by a pass in reverse order of time over the same relations. If a port has
//! several open streams, the next one that it opens after an end counts as the one that waited for it.

use std::collections::HashMap;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, PhaseId};
use serde::Serialize;

use super::transfers::{PhaseTransfers, PortLayout, Transfer};
use super::{ExchangedBy, PortSide};

/// The chain that decides the end of an exchange, and the slack of all streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CriticalPath {
    /// Where its clocks go; they add up to those of the exchange.
    pub clocks: PathClocks,
    /// The streams on the path, in the order of time. Before those of a phase is its switch.
    pub segments: Vec<PathSegment>,
    /// The slack of all streams.
    pub slack: Slack,
    /// The slack of each stream, in the order of phases. JSON has its distribution only.
    #[serde(skip)]
    pub streams: Vec<StreamSlack>,
}

/// The slack of one stream or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamSlack {
    /// The connection; of a step plan the number of the message.
    pub connection: ConnectionId,
    /// The first of its words among those of the connection.
    pub first_word: u32,
    /// The clocks by which it can be later.
    pub slack: u64,
}

/// Where the clocks of a critical path go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathClocks {
    /// Context switches.
    pub switch: u64,
    /// Set-up of streams, or software of messages.
    pub setup: u64,
    /// Moving words.
    pub words: u64,
    /// Waiting for words or space: latency, shared links, full queues, other streams of an agent.
    pub link: u64,
    /// Waiting between two streams: for planned starts.
    pub start: u64,
}

impl PathClocks {
    /// All clocks.
    pub fn total(&self) -> u64 {
        let Self { switch, setup, words, link, start } = *self;
        [switch, setup, words, link, start].into_iter().fold(0, u64::saturating_add)
    }
}

/// A stream on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathSegment {
    /// The phase.
    pub phase: PhaseId,
    /// The connection; of a step plan the number of the message.
    pub connection: ConnectionId,
    /// The source.
    pub source: CellId,
    /// The target.
    pub target: CellId,
    /// The first of its words among those of the connection, which tells the parts of a split
    /// connection apart.
    pub first_word: u32,
    /// Words of the stream.
    pub words: u32,
    /// From here on the stream is on the path, in clocks from the end of the phase's switch.
    pub from: u64,
    /// Where the path leaves it.
    pub to: u64,
    /// What it was opened after.
    pub after: PathCause,
    /// Clocks between that and its opening.
    pub waited: u64,
}

/// What a stream of the critical path was opened after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathCause {
    /// The begin of the phase: nothing precedes it.
    Begin,
    /// The stream before it at a port.
    Port {
        /// The cell.
        cell: CellId,
        /// The port's directions.
        side: PortSide,
    },
    /// What must be received before it is sent.
    Order,
    /// The stream before it on a link (timed starts).
    Link,
}

/// The distribution of slack over all streams, in clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Slack {
    /// Streams or messages.
    pub streams: usize,
    /// Those without slack.
    pub zero: usize,
    /// A quarter of the streams has at most this slack.
    pub quarter: u64,
    /// Half of the streams have at most this slack.
    pub median: u64,
    /// Three quarters of the streams have at most this slack.
    pub three_quarters: u64,
    /// The greatest slack.
    pub greatest: u64,
}

impl Slack {
    fn of(streams: &[StreamSlack]) -> Self {
        let mut slack: Vec<u64> = streams.iter().map(|stream| stream.slack).collect();
        slack.sort_unstable();
        let Some(last) = slack.len().checked_sub(1) else { return Self::default() };
        Self {
            streams: slack.len(),
            zero: slack.partition_point(|&clocks| clocks == 0),
            quarter: slack[last / 4],
            median: slack[last / 2],
            three_quarters: slack[last * 3 / 4],
            greatest: slack[last],
        }
    }
}

/// The critical path of the phases of a set.
pub(super) fn of(
    set: &ConnectionSet,
    phases: &[PhaseTransfers],
    layout: &PortLayout,
    by: ExchangedBy,
) -> CriticalPath {
    let mut clocks = PathClocks::default();
    let mut segments = Vec::new();
    let mut streams = Vec::new();
    for phase in phases {
        clocks.switch += phase.switch;
        let graph = PhaseGraph::new(set, phase, layout, by);
        let path = graph.path(&mut clocks);
        segments.extend(path);
        streams.extend(phase.transfers.iter().zip(graph.slack()).map(|(transfer, slack)| {
            let Transfer { connection, first_word, .. } = *transfer;
            StreamSlack { connection, first_word, slack }
        }));
    }
    let slack = Slack::of(&streams);
    CriticalPath { clocks, segments, slack, streams }
}

/// One end of a transfer.
type EndId = (u32, Direction);

/// A use of a port or a link.
#[derive(Clone, Copy)]
struct Use {
    from: u64,
    to: u64,
    transfer: u32,
    /// The end that opens.
    opens: Direction,
    /// The end that closes.
    closes: Direction,
}

/// The uses of a port or a link, in two orders.
#[derive(Default)]
struct Uses {
    by_from: Vec<Use>,
    by_to: Vec<Use>,
}

impl Uses {
    fn sort(&mut self) {
        self.by_to = self.by_from.clone();
        self.by_from.sort_by_key(|used| (used.from, used.transfer));
        self.by_to.sort_by_key(|used| (used.to, used.transfer));
    }

    /// The last use that ends at `clock` or before.
    fn before(&self, clock: u64) -> Option<&Use> {
        let end = self.by_to.partition_point(|used| used.to <= clock);
        self.by_to[..end].last()
    }

    /// The first use that begins at `clock` or after.
    fn after(&self, clock: u64) -> Option<&Use> {
        self.by_from.get(self.by_from.partition_point(|used| used.from < clock))
    }
}

/// What precedes what in a phase.
struct PhaseGraph<'a> {
    phase: &'a PhaseTransfers,
    layout: &'a PortLayout,
    ports: Vec<Uses>,
    links: HashMap<u32, Uses>,
    /// When the last word is received. The cost model may add clocks to the phase.
    end: u64,
    /// Pairs of a transfer that is received before another one is sent, by the first and by the
    /// second.
    successors: Vec<(u32, u32)>,
    predecessors: Vec<(u32, u32)>,
}

impl<'a> PhaseGraph<'a> {
    fn new(
        set: &ConnectionSet,
        phase: &'a PhaseTransfers,
        layout: &'a PortLayout,
        by: ExchangedBy,
    ) -> Self {
        let mut ports: Vec<Uses> = Vec::new();
        ports.resize_with(layout.count(), Uses::default);
        for (row, transfer) in (0..).zip(&phase.transfers) {
            for direction in [Direction::Send, Direction::Receive] {
                let end = transfer.end(direction);
                let used = Use {
                    from: end.open,
                    to: end.free(),
                    transfer: row,
                    opens: direction,
                    closes: direction,
                };
                ports[layout.port(end.cell, direction)].by_from.push(used);
            }
        }
        ports.iter_mut().for_each(Uses::sort);
        let mut links: HashMap<u32, Uses> = HashMap::new();
        for ((row, transfer), used) in (0..).zip(&phase.transfers).zip(&phase.links) {
            for link in used {
                links.entry(link.0).or_default().by_from.push(Use {
                    from: transfer.send.open,
                    to: transfer.receive.close,
                    transfer: row,
                    opens: Direction::Send,
                    closes: Direction::Receive,
                });
            }
        }
        links.values_mut().for_each(Uses::sort);
        let mut successors = phase.suppliers.clone();
        // The messages of a step plan are not connections.
        if by != ExchangedBy::Steps {
            successors.extend(ordered(set, phase));
        }
        let mut predecessors: Vec<(u32, u32)> =
            successors.iter().map(|&(before, after)| (after, before)).collect();
        successors.sort_unstable();
        predecessors.sort_unstable();
        let end = phase.transfers.iter().map(|t| t.receive.close).max().unwrap_or(0);
        Self { phase, layout, end, ports, links, successors, predecessors }
    }

    fn transfer(&self, row: u32) -> &Transfer {
        &self.phase.transfers[index(row)]
    }

    /// Whether an end closes when it does because of when the receiver was opened.
    fn receiver_decides(&self, row: u32, closes: Direction) -> bool {
        let Transfer { send, receive, arrived, .. } = self.transfer(row);
        let later = receive.open > arrived.unwrap_or(send.open);
        later && receive.open < self.transfer(row).end(closes).close
    }

    /// The end whose opening decides when an end closes. Of two that open together, the one whose
    /// port was free later.
    fn decisive(&self, (row, closes): EndId) -> Direction {
        let Transfer { send, receive, arrived, .. } = self.transfer(row);
        if self.receiver_decides(row, closes) {
            return Direction::Receive;
        }
        let ports_free = |direction| self.port_of((row, direction)).before(send.open);
        let (sender, receiver) = (ports_free(Direction::Send), ports_free(Direction::Receive));
        let together = arrived.is_none() && send.open == receive.open;
        match together && receiver.map(|used| used.to) > sender.map(|used| used.to) {
            true => Direction::Receive,
            false => Direction::Send,
        }
    }

    fn port_of(&self, (row, direction): EndId) -> &Uses {
        &self.ports[self.layout.port(self.transfer(row).end(direction).cell, direction)]
    }

    /// What an end was opened after: the end that closed last before, and why it matters.
    fn predecessor(&self, (row, opens): EndId) -> Option<(EndId, u64, PathCause)> {
        let end = self.transfer(row).end(opens);
        let cell = end.cell;
        let mut found: Option<(EndId, u64, PathCause)> = None;
        let mut consider = |candidate: (EndId, u64, PathCause)| {
            if found.is_none_or(|found| candidate.1 > found.1) {
                found = Some(candidate);
            }
        };
        if let Some(used) = self.port_of((row, opens)).before(end.open) {
            let cause = PathCause::Port { cell, side: self.layout.side(opens) };
            consider(((used.transfer, used.closes), used.to, cause));
        }
        if opens == Direction::Send {
            let from = self.predecessors.partition_point(|pair| pair.0 < row);
            for &(_, before) in self.predecessors[from..].iter().take_while(|pair| pair.0 == row) {
                let received = self.transfer(before).receive.free();
                if received <= end.open {
                    consider(((before, Direction::Receive), received, PathCause::Order));
                }
            }
        }
        for link in self.phase.links.get(index(row)).into_iter().flatten() {
            if let Some(used) = self.links[&link.0].before(end.open) {
                consider(((used.transfer, used.closes), used.to, PathCause::Link));
            }
        }
        found
    }

    /// The path to the end of the phase, in the order of time; its clocks are added to `clocks`.
    fn path(&self, clocks: &mut PathClocks) -> Vec<PathSegment> {
        let rows = 0..to_u32(self.phase.transfers.len());
        let last = rows.max_by_key(|&row| {
            let close = self.transfer(row).receive.close;
            (close, std::cmp::Reverse(row))
        });
        let mut path = Vec::new();
        let mut at = last.map(|row| ((row, Direction::Receive), self.phase.clocks));
        if at.is_none() {
            clocks.start += self.phase.clocks;
        }
        while let Some(((row, closes), to)) = at {
            let transfer = self.transfer(row);
            let opens = self.decisive((row, closes));
            let from = transfer.end(opens).open;
            let before = self.predecessor((row, opens));
            let (free, after) =
                before.map_or((0, PathCause::Begin), |(_, free, after)| (free, after));
            let length = to - from;
            let setup = transfer.end(opens).setup.min(length);
            let closing = transfer.end(closes);
            let words = (closing.moving + closing.copying).min(length - setup);
            clocks.setup += setup;
            clocks.words += words;
            clocks.link += length - setup - words;
            clocks.start += from - free;
            path.push(PathSegment {
                phase: self.phase.phase,
                connection: transfer.connection,
                source: transfer.send.cell,
                target: transfer.receive.cell,
                first_word: transfer.first_word,
                words: transfer.words,
                from,
                to,
                after,
                waited: from - free,
            });
            at = before.map(|(end, free, _)| (end, free));
        }
        path.reverse();
        path
    }

    /// The slack of each transfer.
    fn slack(&self) -> Vec<u64> {
        let count = self.phase.transfers.len();
        // By transfer and direction: how much later an end may open, and close.
        let mut open = vec![[u64::MAX; 2]; count];
        let mut close = vec![[u64::MAX; 2]; count];
        let mut events = Vec::with_capacity(4 * count);
        for (row, transfer) in (0..).zip(&self.phase.transfers) {
            for direction in [Direction::Send, Direction::Receive] {
                let end = transfer.end(direction);
                // The clock at which the port is free counts as the end; at equal clocks, what
                // opens comes first in the reverse order.
                events.push((end.open, true, (row, direction)));
                events.push((end.free(), false, (row, direction)));
            }
        }
        events.sort_unstable_by(|a, b| b.cmp(a));
        for (clock, opens, (row, direction)) in events {
            let side = side(direction);
            if opens {
                open[index(row)][side] = self.may_open_later((row, direction), &close);
            } else {
                close[index(row)][side] = self.may_close_later((row, direction), clock, &open);
            }
        }
        close.into_iter().map(|[sent, received]| sent.min(received)).collect()
    }

    /// By how much an end may open later.
    fn may_open_later(&self, (row, opens): EndId, close: &[[u64; 2]]) -> u64 {
        let Transfer { send, receive, arrived, .. } = self.transfer(row);
        let end = self.transfer(row).end(opens);
        let ends = [Direction::Send, Direction::Receive].into_iter();
        let slack = ends.filter(|&closes| self.transfer(row).end(closes).close > end.open);
        let slack = slack.map(|closes| {
            let decides = self.receiver_decides(row, closes);
            let spare = match (opens, decides) {
                (Direction::Receive, false) if arrived.is_none() => {
                    send.open.saturating_sub(receive.open)
                }
                (Direction::Send, true) => receive.open - arrived.unwrap_or(send.open),
                _ => 0,
            };
            close[index(row)][side(closes)].saturating_add(spare)
        });
        slack.min().unwrap_or(u64::MAX)
    }

    /// By how much an end that closes at `clock` may close later.
    fn may_close_later(&self, (row, closes): EndId, clock: u64, open: &[[u64; 2]]) -> u64 {
        let mut slack = u64::MAX;
        let mut consider = |from: u64, (after, opens): EndId| {
            let spare = open[index(after)][side(opens)].saturating_add(from - clock);
            slack = slack.min(spare);
        };
        if let Some(used) = self.port_of((row, closes)).after(clock) {
            consider(used.from, (used.transfer, used.opens));
        }
        if closes == Direction::Send {
            return slack;
        }
        let from = self.successors.partition_point(|pair| pair.0 < row);
        for &(_, after) in self.successors[from..].iter().take_while(|pair| pair.0 == row) {
            let begin = self.transfer(after).send.open;
            if begin >= clock {
                consider(begin, (after, Direction::Send));
            }
        }
        for link in self.phase.links.get(index(row)).into_iter().flatten() {
            if let Some(used) = self.links[&link.0].after(clock) {
                consider(used.from, (used.transfer, used.opens));
            }
        }
        slack.min(self.end - self.transfer(row).receive.close)
    }
}

fn side(direction: Direction) -> usize {
    match direction {
        Direction::Send => 0,
        Direction::Receive => 1,
    }
}

/// Pairs of transfers of the phase whose connections the set orders.
fn ordered(set: &ConnectionSet, phase: &PhaseTransfers) -> Vec<(u32, u32)> {
    if set.order().is_empty() {
        return Vec::new();
    }
    let mut of_connection: HashMap<ConnectionId, Vec<u32>> = HashMap::new();
    for (row, transfer) in (0..).zip(&phase.transfers) {
        of_connection.entry(transfer.connection).or_default().push(row);
    }
    let mut pairs = Vec::new();
    for (before, after) in set.order() {
        let (Some(before), Some(after)) = (of_connection.get(before), of_connection.get(after))
        else {
            continue;
        };
        pairs.extend(before.iter().flat_map(|&b| after.iter().map(move |&a| (b, a))));
    }
    pairs
}
