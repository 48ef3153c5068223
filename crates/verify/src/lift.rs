//! Reconstruction of routes and starts from the forwarding tables of an image ("lifting").
//!
//! A forwarding table has no routes; it forwards the words of a channel to a gate or to a channel of
//! a neighbour. Lifting follows the entries from every injection gate to a delivery gate, which
//! yields a route. It checks these rules in each phase:
//!
//! * *table*: no channel has two entries at a cell;
//! * *chain*: every forward uses a link of its cell and leads to an entry at the target of the link
//!   that is fed by that link; every entry fed by a link is the target of exactly one forward.
//!   (Entries of another context violate this rule);
//! * *cycle*: every entry is reached from a gate;
//! * *gate*: a connection is injected at its source and delivered at its target only, and both ends
//!   of a route have the same connection;
//! * *operation*: every operation uses a gate of its connection and direction on its channel, and
//!   every gate has exactly one operation;
//! * *words*, *start*: both ends of a route have the same first word, words and planned start.
//!
//! Every entry is fed by at most one other (a second forward is refused and not followed), so the
//! chains are disjoint and finite. The time is linear in the entries, except for sorting the entries
//! of each cell by channel.
//!
//! The resulting routing is then checked by the rules of any routing.

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ChannelEntry, ChannelId, ConnectionId, ConnectionSet, Direction, Feed, LinkId, Machine,
    Operation, PhaseId, PhaseImage, PhaseRoutes, Sink,
};

use crate::rejection::{Findings, Location, Rule};

const NONE: u32 = u32::MAX;

/// The routes of one phase in the order of their source cells and channels, with the starts and
/// words of their operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiftedPhase {
    /// The routes.
    pub(crate) routes: PhaseRoutes,
    /// The planned start of each route, in clocks from the start of the phase.
    pub(crate) starts: Vec<u64>,
    /// The index in the connection's data of the first word of each route.
    pub(crate) first_words: Vec<u32>,
}

/// A table entry, and what is known about it.
#[derive(Clone, Copy)]
struct TableRow {
    cell: CellId,
    entry: ChannelEntry,
    /// The row it forwards to.
    next: u32,
    fed: bool,
    reached: bool,
    /// Rows of the cell's operation list that use its gates.
    send: u32,
    receive: u32,
}

/// The tables of one phase, sorted by cell and channel.
pub(crate) struct Lifter<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    phase: PhaseId,
    image: &'a PhaseImage,
    rows: Vec<TableRow>,
    /// The rows of the participating cell number `c` are `first[c]..first[c + 1]`.
    first: Vec<u32>,
}

/// Lifts one phase. The result is incomplete if there is a violation.
pub(crate) fn lift_phase(
    machine: &Machine,
    set: &ConnectionSet,
    phase: PhaseId,
    image: &PhaseImage,
    findings: &mut Findings,
) -> LiftedPhase {
    if image.cell_count() != machine.cell_count() {
        findings.add(Rule::Barrier, Location::phase(phase), || {
            format!("tables for {} of {} cells", image.cell_count(), machine.cell_count())
        });
        return LiftedPhase::default();
    }
    let mut lifter = Lifter { machine, set, phase, image, rows: Vec::new(), first: vec![0] };
    lifter.read_tables(findings);
    lifter.join_forwards(findings);
    lifter.assign_operations(findings);
    lifter.check_gates(findings);
    let lifted = lifter.walk(findings);
    lifter.check_reached(findings);
    lifted
}

impl<'a> Lifter<'a> {
    fn at(&self, cell: CellId) -> Location {
        Location::phase(self.phase).cell(cell)
    }

    fn read_tables(&mut self, findings: &mut Findings) {
        for (cell, context) in self.image.cells() {
            let start = self.rows.len();
            for &entry in context.entries {
                if self.is_in_shape(cell, &entry, findings) {
                    self.rows.push(TableRow {
                        cell,
                        entry,
                        next: NONE,
                        fed: false,
                        reached: false,
                        send: NONE,
                        receive: NONE,
                    });
                }
            }
            // A stable sort, so that the first of two entries for a channel is used.
            self.rows[start..].sort_by_key(|row| row.entry.channel);
            self.drop_repeated(cell, start, findings);
            self.first.push(to_u32(self.rows.len()));
        }
    }

    fn drop_repeated(&mut self, cell: CellId, start: usize, findings: &mut Findings) {
        let mut kept = start;
        for row in start..self.rows.len() {
            let channel = self.rows[row].entry.channel;
            if kept > start && self.rows[kept - 1].entry.channel == channel {
                findings.add(Rule::Table, self.at(cell), || {
                    format!("{channel} has more than one entry")
                });
                continue;
            }
            self.rows[kept] = self.rows[row];
            kept += 1;
        }
        self.rows.truncate(kept);
    }

    fn is_in_shape(&self, cell: CellId, entry: &ChannelEntry, findings: &mut Findings) -> bool {
        let channels = self.machine.parameters().channels_per_cell;
        let (feed_gate, feed_link) = match entry.feed {
            Feed::Gate(x) => (Some(x), None),
            Feed::Link(link) => (None, Some(link)),
        };
        let (sink_gate, sink_link, next) = match entry.sink {
            Sink::Gate(x) => (Some(x), None, entry.channel),
            Sink::Forward { link, channel } => (None, Some(link), channel),
        };
        let mut fits = true;
        for channel in [entry.channel, next] {
            if channel.0 >= channels {
                fits = false;
                findings.add(Rule::ChannelRange, self.at(cell), || {
                    format!("{channel} in the table; connections have {channels} channels")
                });
            }
        }
        let gates = [feed_gate, sink_gate].into_iter().flatten();
        let links = [feed_link, sink_link].into_iter().flatten();
        if gates.into_iter().any(|x| x.index() >= self.set.len())
            || links.into_iter().any(|link| link.index() >= self.machine.link_count())
        {
            fits = false;
            findings.add(Rule::Shape, self.at(cell), || {
                format!("the entry of {} has an unknown connection or link", entry.channel)
            });
        }
        fits
    }

    /// The row of a channel of a cell.
    fn find(&self, cell: CellId, channel: ChannelId) -> Option<usize> {
        let listed = self.image.row_of(cell)?;
        let start = index(self.first[listed]);
        let end = index(self.first[listed + 1]);
        let found = self.rows[start..end].binary_search_by_key(&channel, |row| row.entry.channel);
        found.ok().map(|at| start + at)
    }

    /// Finds the next row of every forward.
    fn join_forwards(&mut self, findings: &mut Findings) {
        for at in 0..self.rows.len() {
            let TableRow { cell, entry, .. } = self.rows[at];
            let Sink::Forward { link, channel } = entry.sink else { continue };
            let wire = self.machine.link(link);
            let location = self.at(cell);
            if wire.source != cell {
                findings.add(Rule::Chain, location, || {
                    format!("{} forwards over {link}, which leaves {}", entry.channel, wire.source)
                });
                continue;
            }
            let next = self.find(wire.target, channel);
            let fed = next.filter(|&next| self.rows[next].entry.feed == Feed::Link(link));
            let Some(next) = fed else {
                findings.add(Rule::Chain, location, || {
                    format!(
                        "{} forwards over {link} into {channel} of {}, which is not fed by it",
                        entry.channel, wire.target
                    )
                });
                continue;
            };
            if self.rows[next].fed {
                findings.add(Rule::Chain, location, || {
                    format!(
                        "{} forwards over {link} into {channel} of {}, as another channel does",
                        entry.channel, wire.target
                    )
                });
                continue;
            }
            self.rows[next].fed = true;
            self.rows[at].next = to_u32(next);
        }
    }

    /// Assigns every operation to its gate.
    fn assign_operations(&mut self, findings: &mut Findings) {
        for (cell, context) in self.image.cells() {
            for (row, operation) in context.operations.iter().enumerate() {
                if let Err(what) = self.assign_operation(cell, row, operation) {
                    let location = self.at(cell).connection(operation.connection);
                    findings.add(Rule::Operation, location, || {
                        format!("operation {row} on {}: {what}", operation.channel)
                    });
                }
            }
        }
    }

    fn assign_operation(
        &mut self,
        cell: CellId,
        row: usize,
        operation: &Operation,
    ) -> Result<(), &'static str> {
        if operation.connection.index() >= self.set.len() || operation.words == 0 {
            return Err("no such connection, or no words");
        }
        let at = self.find(cell, operation.channel).ok_or("the channel is not in the table")?;
        let TableRow { entry, send, receive, .. } = &mut self.rows[at];
        let (opens, user) = match operation.direction {
            Direction::Send => (entry.feed == Feed::Gate(operation.connection), send),
            Direction::Receive => (entry.sink == Sink::Gate(operation.connection), receive),
        };
        if !opens {
            return Err("the channel has no gate of this connection in this direction");
        }
        if *user != NONE {
            return Err("another operation uses the gate");
        }
        *user = to_u32(row);
        Ok(())
    }

    /// Checks that each gate is at an end of its connection and has an operation.
    fn check_gates(&self, findings: &mut Findings) {
        for row in &self.rows {
            let TableRow { cell, entry, .. } = *row;
            let fed = match entry.feed {
                Feed::Gate(x) => Some((x, "injected", self.set.get(x).source, row.send)),
                Feed::Link(_) => None,
            };
            let sunk = match entry.sink {
                Sink::Gate(x) => Some((x, "delivered", self.set.get(x).target, row.receive)),
                Sink::Forward { .. } => None,
            };
            for (x, what, end, user) in [fed, sunk].into_iter().flatten() {
                let location = self.at(cell).connection(x);
                if end != cell {
                    findings.add(Rule::Gate, location, || {
                        format!("{what} here through {}, its end is {end}", entry.channel)
                    });
                }
                if user == NONE {
                    findings.add(Rule::Operation, location, || {
                        format!("no operation uses the gate on {}", entry.channel)
                    });
                }
            }
        }
    }

    /// Follows the chain of every injection gate to its end.
    fn walk(&mut self, findings: &mut Findings) -> LiftedPhase {
        let mut lifted = LiftedPhase::default();
        let mut path = Path::default();
        for head in 0..self.rows.len() {
            let Feed::Gate(connection) = self.rows[head].entry.feed else { continue };
            let tail = self.follow(head, &mut path);
            let Sink::Gate(ends_as) = self.rows[tail].entry.sink else { continue };
            if ends_as != connection {
                let location = self.at(self.rows[tail].cell).connection(connection);
                findings.add(Rule::Gate, location, || format!("delivered as {ends_as}"));
                continue;
            }
            let (Some(send), Some(receive)) = (
                self.operation(head, self.rows[head].send),
                self.operation(tail, self.rows[tail].receive),
            ) else {
                continue; // `check_gates` has reported the gate.
            };
            self.compare_ends(connection, send, receive, findings);
            let pushed = lifted.routes.push(
                connection,
                send.words,
                &path.cells,
                &path.links,
                &path.channels,
            );
            if let Err(error) = pushed {
                findings.add(Rule::Shape, self.at(self.rows[head].cell), || error.to_string());
                continue;
            }
            lifted.starts.push(send.start);
            lifted.first_words.push(send.first_word);
        }
        lifted
    }

    /// Follows the chain from `head`, marks its rows and returns the last one.
    fn follow(&mut self, head: usize, path: &mut Path) -> usize {
        path.clear();
        let mut at = head;
        loop {
            let row = &mut self.rows[at];
            row.reached = true;
            path.cells.push(row.cell);
            path.channels.push(row.entry.channel);
            if row.next == NONE {
                return at;
            }
            if let Sink::Forward { link, .. } = row.entry.sink {
                path.links.push(link);
            }
            at = index(row.next);
        }
    }

    fn operation(&self, row: usize, operation: u32) -> Option<&'a Operation> {
        self.image.cell(self.rows[row].cell).operations.get(index(operation))
    }

    fn compare_ends(
        &self,
        connection: ConnectionId,
        send: &Operation,
        receive: &Operation,
        findings: &mut Findings,
    ) {
        let location = Location::phase(self.phase).connection(connection);
        let range = |op: &Operation| (op.first_word, op.words);
        if range(send) != range(receive) {
            findings.add(Rule::Words, location, || {
                format!(
                    "the sender has {} words from {}, the receiver {} from {}",
                    send.words, send.first_word, receive.words, receive.first_word
                )
            });
        }
        if send.start != receive.start {
            findings.add(Rule::Start, location, || {
                format!(
                    "the sender starts at clock {}, the receiver at clock {}",
                    send.start, receive.start
                )
            });
        }
    }

    /// Reports entries that nothing forwards to, then the remaining ones, which form cycles.
    fn check_reached(&mut self, findings: &mut Findings) {
        let mut path = Path::default();
        for head in 0..self.rows.len() {
            let TableRow { cell, entry, fed, .. } = self.rows[head];
            let Feed::Link(link) = entry.feed else { continue };
            if !fed {
                self.follow(head, &mut path);
                findings.add(Rule::Chain, self.at(cell), || {
                    format!("{} is fed by {link}, but nothing forwards to it", entry.channel)
                });
            }
        }
        for head in 0..self.rows.len() {
            if self.rows[head].reached {
                continue;
            }
            let cells = self.follow_cycle(head);
            findings.add(Rule::Cycle, self.at(self.rows[head].cell), || {
                let shown: Vec<String> = cells.iter().take(8).map(ToString::to_string).collect();
                format!("{} entries forward in a cycle: {}", cells.len(), shown.join(", "))
            });
        }
    }

    fn follow_cycle(&mut self, head: usize) -> Vec<CellId> {
        let mut cells = Vec::new();
        let mut at = head;
        while !self.rows[at].reached {
            self.rows[at].reached = true;
            cells.push(self.rows[at].cell);
            if self.rows[at].next == NONE {
                break;
            }
            at = index(self.rows[at].next);
        }
        cells
    }
}

/// The chain being followed.
#[derive(Default)]
struct Path {
    cells: Vec<CellId>,
    links: Vec<LinkId>,
    channels: Vec<ChannelId>,
}

impl Path {
    fn clear(&mut self) {
        self.cells.clear();
        self.links.clear();
        self.channels.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellContext, Connection};

    /// Lifts a phase of a machine of two cells that `Image::new` has not checked.
    fn rules_broken(cells: usize, entries: &[ChannelEntry], operations: &[Operation]) -> Vec<Rule> {
        let machine = Machine::from_spec("mesh:2").unwrap();
        let connections =
            [1, 0].map(|target| Connection::new(CellId(0), CellId(target), 4)).to_vec();
        let set = ConnectionSet::new("s", connections).unwrap();
        let context = |row| CellContext {
            entries: if row == 0 { entries } else { &[] },
            operations: if row == 0 { operations } else { &[] },
        };
        let image = PhaseImage::from_cells((0..cells).map(context));
        let mut findings = Findings::new();
        lift_phase(&machine, &set, PhaseId(0), &image, &mut findings);
        findings.finish().err().map(|rejection| rejection.rules()).unwrap_or_default()
    }

    #[test]
    fn what_constructors_refuse_is_refused_here_too() {
        let entry = |channel, feed, sink| ChannelEntry { channel: ChannelId(channel), feed, sink };
        let gate = ConnectionId(7);
        let forward =
            |link, channel| Sink::Forward { link: LinkId(link), channel: ChannelId(channel) };
        assert_eq!(rules_broken(2, &[], &[]), []);
        assert_eq!(rules_broken(1, &[], &[]), [Rule::Barrier]);
        assert_eq!(rules_broken(3, &[], &[]), [Rule::Barrier]);
        for (rule, wrong) in [
            (Rule::Shape, entry(0, Feed::Gate(gate), forward(0, 0))),
            (Rule::Shape, entry(0, Feed::Link(LinkId(1)), Sink::Gate(gate))),
            (Rule::Shape, entry(0, Feed::Link(LinkId::NONE), forward(0, 0))),
            (Rule::Shape, entry(0, Feed::Link(LinkId(1)), forward(2, 0))),
            (Rule::Shape, entry(0, Feed::Gate(ConnectionId(2)), forward(0, 0))),
            (Rule::ChannelRange, entry(12, Feed::Link(LinkId(1)), forward(0, 0))),
            (Rule::ChannelRange, entry(0, Feed::Link(LinkId(1)), forward(0, u32::MAX))),
        ] {
            assert_eq!(rules_broken(2, &[wrong], &[]), [rule], "{wrong:?}");
        }

        // A connection to itself: both gates on one channel.
        let own = entry(0, Feed::Gate(ConnectionId(1)), Sink::Gate(ConnectionId(1)));
        let operation = |direction, connection, words| Operation {
            direction,
            connection: ConnectionId(connection),
            channel: ChannelId(0),
            words,
            first_word: 0,
            start: 0,
        };
        let receive = operation(Direction::Receive, 1, 4);
        let send = operation(Direction::Send, 1, 4);
        assert_eq!(rules_broken(2, &[own], &[send, receive]), []);
        for wrong in [operation(Direction::Send, 1, 0), operation(Direction::Send, 2, 4)] {
            assert_eq!(rules_broken(2, &[own], &[wrong, receive]), [Rule::Operation]);
        }
    }
}
