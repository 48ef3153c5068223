//! The wait-for graph: explains a deadlock by a cycle or chain of waits.
//!
//! Every blocked operation, channel or program waits for one other: a send for space in its
//! channel, a full channel for the next channel, a full gate channel for the agent to receive, a
//! receive for its connection's send, a listed operation for the one before it, a held operation for
//! a connection ordered before it, a cell's program for the operation it started. A walk along
//! these edges from a blocked operation either reaches a node twice, which is the cycle of a
//! deadlock, or ends at an operation that is missing in a program or a list. The engine knows the
//! state of the machine; the driver provides the state of the programs ([`Programs`]).

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Feed};

use crate::agents::{OperationStage, SubmittedOperation};
use crate::engine::{Engine, OperationId};
use crate::fault::{FaultKind, WaitCause, WaitEdge};
use crate::injection::Part;
use crate::tables::TableRow;

/// The state of a cell's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// It has submitted its operation list and does nothing else.
    ListSubmitted,
    /// It waits for this operation.
    Operation(OperationId),
    /// It waits at a context switch for all other cells, of which this one has not reached it.
    Switch(Option<CellId>),
    /// It has ended.
    Ended,
}

/// The programs that drive the engine, as far as a deadlock depends on them.
pub trait Programs {
    /// The state of the program of `cell`.
    fn state(&self, cell: CellId) -> ProgramState;
    /// The first cell that waits at a context switch, if any.
    fn waiting_cell(&self) -> Option<CellId>;
    /// An incomplete connection that is ordered before `connection`.
    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitNode {
    Operation(u32),
    /// A channel whose words do not move.
    Channel(u32),
    /// The send (`true`) or receive of a connection, missing in a cell's program.
    Missing(CellId, bool, ConnectionId),
    Program(CellId),
}

impl Engine {
    /// Explains why nothing moves after [`Engine::run`] has returned [`crate::Stop::Idle`]: a cycle
    /// of waits if there is one, else the chain from the first unfinished operation to the missing
    /// one. `None` if every operation has finished and no program waits.
    pub fn explain(&self, programs: &dyn Programs) -> Option<FaultKind> {
        let operations = self.agents.operations.iter().enumerate();
        let starts: Vec<WaitNode> = operations
            .filter(|(_, operation)| operation.stage != OperationStage::Finished)
            .map(|(number, _)| WaitNode::Operation(to_u32(number)))
            .chain(programs.waiting_cell().map(WaitNode::Program))
            .collect();
        let unfinished = self.agents.unfinished;
        let mut visited = BTreeMap::new();
        let mut first_chain = None;
        for (walk, &start) in starts.iter().enumerate() {
            let mut path = Vec::new();
            let mut at = Some(start);
            while let Some(node) = at {
                if let Some(&other) = visited.get(&node) {
                    if other == walk {
                        let from = path.iter().position(|p: &(WaitNode, WaitEdge)| p.0 == node);
                        let cycle = &path[from.expect("this walk visited it")..];
                        let waits = cycle.iter().map(|p| p.1).collect();
                        return Some(FaultKind::Deadlock { waits, closed: true, unfinished });
                    }
                    break;
                }
                visited.insert(node, walk);
                let (wait, next) = self.follow(node, programs);
                path.push((node, wait));
                at = next;
            }
            first_chain.get_or_insert(path);
        }
        let waits = first_chain?.iter().map(|p| p.1).collect();
        Some(FaultKind::Deadlock { waits, closed: false, unfinished })
    }

    /// What a node waits for.
    fn follow(&self, node: WaitNode, programs: &dyn Programs) -> (WaitEdge, Option<WaitNode>) {
        match node {
            WaitNode::Operation(number) => self.follow_operation(number, programs),
            WaitNode::Channel(row) => self.follow_channel(row),
            WaitNode::Missing(cell, send, connection) => {
                let direction = if send { Direction::Send } else { Direction::Receive };
                let cause = WaitCause::Program { direction, connection };
                (WaitEdge { cell, cause }, Some(WaitNode::Program(cell)))
            }
            WaitNode::Program(cell) => {
                let (cause, next) = match programs.state(cell) {
                    ProgramState::Operation(id) => return self.follow_operation(id.0, programs),
                    ProgramState::Switch(absent) => {
                        (WaitCause::Switch, absent.map(WaitNode::Program))
                    }
                    ProgramState::Ended => (WaitCause::Ended, None),
                    ProgramState::ListSubmitted => (WaitCause::NotListed, None),
                };
                (WaitEdge { cell, cause }, next)
            }
        }
    }

    fn follow_operation(
        &self,
        number: u32,
        programs: &dyn Programs,
    ) -> (WaitEdge, Option<WaitNode>) {
        let operation = &self.agents.operations[index(number)];
        let SubmittedOperation { connection, direction, cell, row, .. } = *operation;
        if self.base.is_stopped(Part::Agent(cell)) {
            return (WaitEdge { cell, cause: WaitCause::DeadCell { direction, connection } }, None);
        }
        let channel = self.tables.rows[index(row)].channel;
        let (cause, next) = match (operation.stage, direction) {
            (OperationStage::Open, Direction::Send) => {
                (WaitCause::Space { connection, channel }, Some(WaitNode::Channel(row)))
            }
            (OperationStage::Open, Direction::Receive) => {
                (WaitCause::Words { connection, channel }, self.source_of(row))
            }
            _ => match self.agents.blocker_of(number) {
                Some(blocker) => {
                    (WaitCause::Turn { direction, connection }, Some(WaitNode::Operation(blocker)))
                }
                None => {
                    let before = programs.unfinished_before(connection);
                    let next = before.and_then(|before| self.receiver_of(before));
                    (WaitCause::Order { connection, before }, next)
                }
            },
        };
        (WaitEdge { cell, cause }, next)
    }

    /// What a channel whose words do not move waits for.
    fn follow_channel(&self, row: u32) -> (WaitEdge, Option<WaitNode>) {
        let TableRow { cell, channel, sink, .. } = self.tables.rows[index(row)];
        if let Some((next, link)) = self.base.network.ahead(row) {
            let is_dead = self.base.is_stopped(Part::Link(link));
            let link = conset_ir::LinkId(link);
            if is_dead {
                return (WaitEdge { cell, cause: WaitCause::DeadLink { channel, link } }, None);
            }
            let cause = WaitCause::Ahead { channel, link };
            return (WaitEdge { cell, cause }, Some(WaitNode::Channel(next)));
        }
        let connection =
            self.base.network.head(row).map_or(ConnectionId(0), |t| ConnectionId(t.stream()));
        let receiver = self.agents.at_gate(row, cell, Direction::Receive);
        let next = match (receiver, sink) {
            (Some(number), _) => Some(WaitNode::Operation(number)),
            (None, Some(sink)) => Some(WaitNode::Missing(cell, false, sink)),
            (None, None) => None,
        };
        (WaitEdge { cell, cause: WaitCause::Unreceived { channel, connection } }, next)
    }

    /// The send that the words of an empty channel come from.
    fn source_of(&self, row: u32) -> Option<WaitNode> {
        let mut at = row;
        loop {
            let TableRow { cell, feed, .. } = self.tables.rows[index(at)];
            // Words that could move on, but do not: before a dead link.
            if at != row && self.base.network.queued(at) > 0 {
                return Some(WaitNode::Channel(at));
            }
            if let Feed::Gate(connection) = feed {
                let sender = self.agents.at_gate(at, cell, Direction::Send);
                let missing = WaitNode::Missing(cell, true, connection);
                return Some(sender.map_or(missing, WaitNode::Operation));
            }
            let channels = self.base.network.channels.iter();
            at = to_u32(channels.into_iter().position(|c| c.next() == Some(at))?);
        }
    }

    fn receiver_of(&self, connection: ConnectionId) -> Option<WaitNode> {
        let found = self.agents.operations.iter().position(|operation| {
            operation.connection == connection
                && operation.direction == Direction::Receive
                && operation.stage != OperationStage::Finished
        });
        found.map(|number| WaitNode::Operation(to_u32(number)))
    }
}
