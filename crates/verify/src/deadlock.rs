//! Deadlock detection in the operation lists of a phase, by a token model with three outcomes.
//!
//! Every agent executes its operation lists in order: one list for each direction with full duplex,
//! a single one with half duplex. At most `streams` operations of a list are open at a time; the
//! next one opens when one of them completes. A send and the receive of the same words form a
//! *transfer*. Each route has its own channels, and links are shared in turns. So one transfer can
//! wait for another only because of the lists and the order of the set. Individual words do not
//! matter, only the capacity of the channels, and the model is run for both extremes:
//!
//! * *Least buffering*: channels hold nothing. A transfer happens when both its ends are open, and
//!   completes both.
//! * *Most buffering*: channels hold everything. A send completes as soon as it is open; a receive
//!   completes when it is open and its send is complete.
//!
//! In both runs, a transfer whose connection follows others in the order of the set happens only
//! when all transfers of those in this phase are complete. If a cell sends to itself and the send
//! and the receive are adjacent in a half duplex list, in that order, they are one operation,
//! since the agent alternates between them.
//!
//! A larger capacity never prevents a transfer, and possible transfers do not disable each other,
//! so the order in which the model considers them does not matter. If all lists complete with least
//! buffering, the phase is [`Verdict::Free`] on any machine. If they block with most buffering, it
//! is [`Verdict::Deadlock`] on any machine. If they block with least buffering only, the outcome
//! depends on queue depths, route lengths and word counts, and is [`Verdict::Undecided`]. An end
//! without another end is blocked for ever.
//!
//! The model ignores the forwarding tables: it pairs sends and receives by connection, first word
//! and number of words. Time: O(n log n) in the operations, for the pairing.

use std::fmt;

use conset_ir::{ConnectionSet, Machine, PhaseImage};

use crate::token_model::{Buffering, TokenModel, TokenRun};

pub use crate::waits::{BlockedOperation, WaitsFor, describe};

/// Whether the operation lists of a phase complete. Exhaustive, since there is no other outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They complete with any queue depth.
    Free,
    /// They complete only with sufficient queues; the blocked operations without any.
    Undecided(Vec<BlockedOperation>),
    /// They complete with no queue depth; the blocked operations with unlimited queues.
    Deadlock(Vec<BlockedOperation>),
}

/// The token model of one set on one machine. It reuses its memory for all phases.
pub struct Checker<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    run: TokenRun,
}

impl fmt::Debug for Checker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("set", &self.set.name()).finish_non_exhaustive()
    }
}

impl<'a> Checker<'a> {
    /// A checker for phases of `set` on `machine`.
    pub fn new(machine: &'a Machine, set: &'a ConnectionSet) -> Self {
        Self { machine, set, run: TokenRun::new(set.len()) }
    }

    /// Runs the model for a phase. The phase must have one operation list per cell of the machine
    /// and only connections of the set, as [`conset_ir::Image::new`] ensures.
    ///
    /// # Panics
    /// If it has other connections.
    #[must_use]
    pub fn phase(&mut self, phase: &PhaseImage) -> Verdict {
        let model = TokenModel::new(self.machine, self.set, phase);
        match self.run.witness(&model, Buffering::Least) {
            None => Verdict::Free,
            Some(least) => match self.run.witness(&model, Buffering::Most) {
                None => Verdict::Undecided(least),
                Some(most) => Verdict::Deadlock(most),
            },
        }
    }
}
