//! The operations that a deadlocked phase cannot complete, and what each of them waits for.

use std::fmt;

use conset_ir::{CellId, ConnectionId, Direction};

/// An operation in a chain of operations that cannot complete. Each waits for the next one; the
/// last waits for the first, which closes the cycle, or for [`WaitsFor::Nobody`].
///
/// A record of facts with public fields; it has no invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedOperation {
    /// The cell.
    pub cell: CellId,
    /// The row of its operation list.
    pub operation: u32,
    /// The direction of the operation.
    pub direction: Direction,
    /// The connection of the operation.
    pub connection: ConnectionId,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What an open operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// The other end, whose cell has to complete another operation first.
    Other {
        /// The cell of the other end.
        cell: CellId,
        /// The connection of that operation.
        busy_with: ConnectionId,
    },
    /// A connection that precedes this one in the order of the set.
    Order {
        /// That connection.
        before: ConnectionId,
        /// The cell at which it is blocked.
        cell: CellId,
        /// The connection that this cell has to complete first, or the same connection if it waits
        /// for something else.
        busy_with: ConnectionId,
    },
    /// The other end, which is in no operation list.
    Nobody,
}

impl fmt::Display for BlockedOperation {
    /// `c0 sends x1 (operation 0), c1 is busy with x2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.direction {
            Direction::Send => "sends",
            Direction::Receive => "receives",
        };
        write!(f, "{} {verb} {} (operation {}), ", self.cell, self.connection, self.operation)?;
        match self.waits_for {
            WaitsFor::Other { cell, busy_with } => write!(f, "{cell} is busy with {busy_with}"),
            WaitsFor::Order { before, cell, busy_with } if before == busy_with => {
                write!(f, "{before} must complete first and is blocked at {cell}")
            }
            WaitsFor::Order { before, cell, busy_with } => {
                write!(f, "{before} must complete first, {cell} is busy with {busy_with}")
            }
            WaitsFor::Nobody => f.write_str("the other end is in no operation list"),
        }
    }
}

/// A chain of blocked operations as one line, shortened if it is long.
pub fn describe(waits: &[BlockedOperation]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = waits.iter().take(SHOWN).map(ToString::to_string).collect();
    if waits.len() > SHOWN {
        shown.push(format!("and {} more waits", waits.len() - SHOWN));
    }
    shown.join("; ")
}
