//! Who waits for what, when nothing moves any more.
//!
//! Every stuck thing waits for one other: a send for room in its channel, a full channel for the
//! channel ahead, a full gate channel for the agent to receive, a receive for its connection's
//! send, a listed operation for the one in front of it, a held one for the connection ordered
//! before it, a cell's program for the operation it began. Following the waits from any stuck
//! operation comes back to itself, which is the cycle of a deadlock, or ends at something that
//! nobody does, which is a program or a list with something missing. The engine knows the
//! machine's side; what the programs are doing, the driver says ([`Programs`]).

use std::collections::BTreeMap;

use conset_ir::{CellId, ConnectionId, Direction, Feed};

use crate::agents::State;
use crate::engine::{Engine, OperationId};
use crate::fault::{FaultKind, Wait, Waiting};

/// What a cell's program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It handed its operations over and does nothing else.
    Listed,
    /// It waits for this operation.
    Operation(OperationId),
    /// It waits for all cells at a context switch.
    Switch,
    /// It has ended.
    Ended,
}

/// What drives the engine, asked when nothing moves any more.
pub trait Programs {
    /// What the program of `cell` is doing.
    fn doing(&self, cell: CellId) -> Doing;
    /// The first cell that waits at a context switch, if there is any.
    fn waiting_cell(&self) -> Option<CellId>;
    /// A cell that has not come to the context switch that others wait at.
    fn absent_cell(&self) -> Option<CellId>;
    /// An unfinished connection that is ordered before `connection`.
    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Stream(u32),
    /// A channel that gives up no word.
    Full(u32),
    /// A cell's program, which must send (`true`) or receive a connection.
    Lacks(CellId, bool, ConnectionId),
    Program(CellId),
}

impl Engine {
    /// Why nothing moves: a cycle of waits if there is one, else the chain from the first
    /// unfinished operation to what is missing. `None` if nothing is unfinished and no program
    /// waits. To be asked when [`Engine::run`] said [`crate::Stop::Idle`].
    pub fn explain(&self, programs: &dyn Programs) -> Option<FaultKind> {
        let stuck = |s: &crate::agents::Stream| s.state != State::Finished;
        let streams = self.agents.streams.iter().enumerate().filter(|(_, s)| stuck(s));
        let starts: Vec<Node> = streams
            .map(|(number, _)| Node::Stream(number as u32))
            .chain(programs.waiting_cell().map(Node::Program))
            .collect();
        let unfinished = self.agents.unfinished;
        let mut seen = BTreeMap::new();
        let mut first_chain = None;
        for (walk, &start) in starts.iter().enumerate() {
            let mut path = Vec::new();
            let mut at = Some(start);
            while let Some(node) = at {
                if let Some(&other) = seen.get(&node) {
                    if other == walk {
                        let from = path.iter().position(|p: &(Node, Wait)| p.0 == node);
                        let cycle = &path[from.expect("this walk saw it")..];
                        let waits = cycle.iter().map(|p| p.1).collect();
                        return Some(FaultKind::Deadlock { waits, closed: true, unfinished });
                    }
                    break;
                }
                seen.insert(node, walk);
                let (wait, next) = self.follow(node, programs);
                path.push((node, wait));
                at = next;
            }
            first_chain.get_or_insert(path);
        }
        let waits = first_chain?.iter().map(|p| p.1).collect();
        Some(FaultKind::Deadlock { waits, closed: false, unfinished })
    }

    /// What a stuck thing waits for.
    fn follow(&self, node: Node, programs: &dyn Programs) -> (Wait, Option<Node>) {
        match node {
            Node::Stream(number) => self.follow_stream(number, programs),
            Node::Full(row) => self.follow_full(row),
            Node::Lacks(cell, send, connection) => {
                let direction = if send { Direction::Send } else { Direction::Receive };
                let waiting = Waiting::Program { direction, connection };
                (Wait { cell, waiting }, Some(Node::Program(cell)))
            }
            Node::Program(cell) => {
                let (waiting, next) = match programs.doing(cell) {
                    Doing::Operation(id) => return self.follow_stream(id.0, programs),
                    Doing::Switch => (Waiting::Switch, programs.absent_cell().map(Node::Program)),
                    Doing::Ended => (Waiting::Ended, None),
                    Doing::Listed => (Waiting::Nothing, None),
                };
                (Wait { cell, waiting }, next)
            }
        }
    }

    fn follow_stream(&self, number: u32, programs: &dyn Programs) -> (Wait, Option<Node>) {
        let stream = &self.agents.streams[number as usize];
        let (connection, direction, cell) = (stream.connection, stream.direction, stream.cell);
        let channel = self.tables.rows[stream.row as usize].channel;
        let (waiting, next) = match (stream.state, direction) {
            (State::Open, Direction::Send) => {
                (Waiting::Room { connection, channel }, Some(Node::Full(stream.row)))
            }
            (State::Open, Direction::Receive) => {
                (Waiting::Words { connection, channel }, self.source_of(stream.row))
            }
            _ => match self.agents.in_front_of(number) {
                Some(front) => (Waiting::Turn { direction, connection }, Some(Node::Stream(front))),
                None => {
                    let before = programs.unfinished_before(connection);
                    let next = before.and_then(|before| self.receiver_of(before));
                    (Waiting::Order { connection, before }, next)
                }
            },
        };
        (Wait { cell, waiting }, next)
    }

    /// A channel with words that do not move on.
    fn follow_full(&self, row: u32) -> (Wait, Option<Node>) {
        let place = self.tables.rows[row as usize];
        let (cell, channel) = (place.cell, place.channel);
        if let Some((next, link)) = self.base.network.ahead(row) {
            let link = conset_ir::LinkId(link);
            let waiting = Waiting::Ahead { channel, link };
            return (Wait { cell, waiting }, Some(Node::Full(next)));
        }
        let connection =
            self.base.network.head(row).map_or(ConnectionId(0), |t| ConnectionId(t.stream()));
        let receiver = self.agents.at_gate(row, cell, Direction::Receive);
        let next = match (receiver, place.sink) {
            (Some(number), _) => Some(Node::Stream(number)),
            (None, Some(sink)) => Some(Node::Lacks(cell, false, sink)),
            (None, None) => None,
        };
        (Wait { cell, waiting: Waiting::Taken { channel, connection } }, next)
    }

    /// What the words of an empty channel should come from: the send at the far end.
    fn source_of(&self, row: u32) -> Option<Node> {
        let mut at = row;
        loop {
            let place = self.tables.rows[at as usize];
            if let Feed::Gate(connection) = place.feed {
                let sender = self.agents.at_gate(at, place.cell, Direction::Send);
                let lacks = Node::Lacks(place.cell, true, connection);
                return Some(sender.map_or(lacks, Node::Stream));
            }
            let channels = self.base.network.channels.iter();
            at = channels.into_iter().position(|c| c.next() == Some(at))? as u32;
        }
    }

    fn receiver_of(&self, connection: ConnectionId) -> Option<Node> {
        let found = self.agents.streams.iter().position(|stream| {
            stream.connection == connection
                && stream.direction == Direction::Receive
                && stream.state != State::Finished
        });
        found.map(|number| Node::Stream(number as u32))
    }
}
