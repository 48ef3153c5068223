//! Enforcement of the set's order across cells: the send of a connection is held until every
//! connection ordered before it has been received completely.
//!
//! Operation lists ensure an order only within a cell. Between cells, the fabric knows when a
//! connection is complete and releases the sends that waited for it; the token that would tell
//! their cells is not priced. Operations after a held one in the same list wait too, because lists
//! are executed in order. The order applies to one execution of the set: connections completed in
//! earlier phases count, those of earlier executions do not.

use std::collections::BTreeSet;
use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, Operation};

use crate::engine::{Engine, OperationId, Submission};
use crate::fault::FaultKind;

/// The state of a set's order in one execution of the set.
#[derive(Clone, Debug)]
pub struct OrderKeeper {
    set: Arc<ConnectionSet>,
    /// Per connection: the words still to be received, and the number of incomplete connections
    /// before it. Empty if the set has no order.
    to_receive: Vec<u64>,
    before: Vec<u32>,
    /// Held operations of the phase, by connection.
    held: BTreeSet<(ConnectionId, OperationId)>,
}

impl OrderKeeper {
    /// The order of a set at the start of its execution.
    pub fn new(set: Arc<ConnectionSet>) -> Self {
        let (mut to_receive, mut before) = (Vec::new(), Vec::new());
        if !set.order().is_empty() {
            to_receive = set.connections().iter().map(|c| u64::from(c.words)).collect();
            before = vec![0; set.len()];
            for (_, after) in set.order() {
                before[after.index()] += 1;
            }
        }
        Self { set, to_receive, before, held: BTreeSet::new() }
    }

    /// To be called after a context switch: the held operations of the last context are gone.
    pub fn switched(&mut self) {
        self.held.clear();
    }

    /// Submits an operation, as held if the order requires it. `costs_setup` as in [`Submission`].
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn submit(
        &mut self,
        engine: &mut Engine,
        cell: CellId,
        operation: &Operation,
        costs_setup: bool,
    ) -> Result<OperationId, FaultKind> {
        let connection = operation.connection;
        let waits = self.before.get(connection.index()).is_some_and(|&n| n > 0);
        let held = waits && operation.direction == Direction::Send;
        let id = engine.submit(&self.set, cell, operation, Submission { held, costs_setup })?;
        if held {
            self.held.insert((connection, id));
        }
        Ok(id)
    }

    /// Records that words of a connection were received; releases the operations that waited for the
    /// last of them.
    pub fn received(&mut self, engine: &mut Engine, connection: ConnectionId, words: u32) {
        let Some(left) = self.to_receive.get_mut(connection.index()) else { return };
        if *left == 0 {
            return;
        }
        *left = left.saturating_sub(u64::from(words));
        if *left > 0 {
            return;
        }
        let order = self.set.order();
        let from = order.partition_point(|pair| pair.0 < connection);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == connection) {
            self.before[after.index()] -= 1;
            if self.before[after.index()] == 0 {
                let all = (after, OperationId(0))..=(after, OperationId(u32::MAX));
                for held in self.held.range(all) {
                    engine.release(held.1);
                }
            }
        }
    }

    /// An incomplete connection that is ordered before `connection`.
    pub fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId> {
        let pairs = self.set.order().iter();
        let mut before = pairs.filter(|pair| pair.1 == connection).map(|pair| pair.0);
        before.find(|x| self.to_receive[x.index()] > 0)
    }
}
