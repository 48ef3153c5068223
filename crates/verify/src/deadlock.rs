//! Do the operation lists of a phase get through? A token model with a three-valued answer.
//!
//! Every agent works its operation list in order: one list for each direction with full duplex,
//! one in all with half duplex. Of each list at most `streams` operations are open at a time; the
//! next one opens when one of them is done. A send and the receive of the same words are a *part*.
//! Each route has channels of its own and links are shared by turns, so the lists (and the set's
//! order) are all that can make one part wait for another. Words do not matter one by one, only
//! how many the channels hold, and the model is run at both ends of that range:
//!
//! * *least*: channels hold nothing. A part moves when both its ends are open, and then both are
//!   done.
//! * *most*: channels hold everything. A send is done as soon as it is open; a receive is done when
//!   it is open and its send is done.
//!
//! In both, a part whose connection comes after others in the set's order moves only when all of
//! theirs in this phase are done. And in both, a connection from a cell to itself whose send and
//! receive are neighbours in a half duplex list, in that order, is one operation: the agent
//! alternates.
//!
//! More room never stops a part that moved with less, and parts that can move do not disable each
//! other; so the order in which the model looks at them does not matter, and: through with least
//! is [`Verdict::Free`] on any machine; stuck with most is [`Verdict::Deadlock`] on any machine;
//! stuck with least but not with most depends on queue depths, route lengths and word counts, and
//! is [`Verdict::Undecided`]. An end whose other end is nowhere is stuck for ever.
//!
//! The model does not look at the forwarding tables: which receive belongs to which send is taken
//! from connection, first word and words. Time: O(n log n) in the operations, for pairing.

use std::fmt;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, Machine, PhaseImage};

use crate::tokens::{Buffering, Model, Run};

/// Whether a phase's operation lists get through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With any queue depth.
    Free,
    /// Only if the channels hold enough: the waits with channels that hold nothing.
    Undecided(Vec<Wait>),
    /// With no queue depth: the waits with channels that hold everything.
    Deadlock(Vec<Wait>),
}

/// One wait of a chain of waits. Each is for what the next one is about; the last is for the
/// first, which closes the cycle, unless it is for [`WaitsFor::Nobody`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The cell that waits.
    pub cell: CellId,
    /// The row of its operation list that waits.
    pub operation: u32,
    /// Whether it sends or receives.
    pub direction: Direction,
    /// The connection it sends or receives.
    pub connection: ConnectionId,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What an open operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The other end, whose cell has other operations to do first.
    Other {
        /// The cell of the other end.
        cell: CellId,
        /// The connection it is busy with.
        busy_with: ConnectionId,
    },
    /// A connection that comes before this one in the set's order.
    Order {
        /// That connection.
        before: ConnectionId,
        /// The cell at which it is stuck.
        cell: CellId,
        /// The connection this cell is busy with; the same, if it waits for something else.
        busy_with: ConnectionId,
    },
    /// The other end, which is in no list.
    Nobody,
}

impl fmt::Display for Wait {
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
                write!(f, "{before} has to come before, which is stuck at {cell}")
            }
            WaitsFor::Order { before, cell, busy_with } => {
                write!(f, "{before} has to come before, {cell} is busy with {busy_with}")
            }
            WaitsFor::Nobody => f.write_str("the other end is in no list"),
        }
    }
}

/// A chain of waits as one line, shortened where it is long.
pub fn describe(waits: &[Wait]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = waits.iter().take(SHOWN).map(ToString::to_string).collect();
    if waits.len() > SHOWN {
        shown.push(format!("and {} more waits", waits.len() - SHOWN));
    }
    shown.join("; ")
}

/// The model of one set on one machine; its memory is kept from phase to phase.
pub struct Checker<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    run: Run,
}

impl<'a> Checker<'a> {
    /// A checker for phases of `set` on `machine`.
    pub fn new(machine: &'a Machine, set: &'a ConnectionSet) -> Self {
        Self { machine, set, run: Run::new(set.len()) }
    }

    /// Judges a phase. It must have one operation list per cell of the machine and name only
    /// connections of the set; [`conset_ir::Image::new`] sees to that.
    ///
    /// # Panics
    /// If it names others.
    pub fn phase(&mut self, phase: &PhaseImage) -> Verdict {
        let model = Model::new(self.machine, self.set, phase);
        match self.run.witness(&model, Buffering::Least) {
            None => Verdict::Free,
            Some(least) => match self.run.witness(&model, Buffering::Most) {
                None => Verdict::Undecided(least),
                Some(most) => Verdict::Deadlock(most),
            },
        }
    }
}
