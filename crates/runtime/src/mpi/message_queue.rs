//! Single words and messages over MPI: one MPI message each, or a queue if source and target are on
//! the same rank.
//!
//! Sent words are copied, so that sending never waits. Messages with the same tag between the same
//! ranks arrive in the order in which they were sent.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use super::comm::Comm;
use super::raw_requests::{SingleRequest, probe};
use crate::error::MpiError;

/// An address of messages: the rank at the other end, and the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) rank: usize,
    pub(super) tag: i32,
}

/// The messages of a rank.
pub(super) struct MpiMessageQueue {
    comm: Comm,
    /// Sends that MPI has not done with.
    pending: RefCell<Vec<SingleRequest>>,
    /// Mail for this rank from itself, by tag.
    local: RefCell<BTreeMap<i32, VecDeque<Vec<u64>>>>,
    sent: Cell<u64>,
    received: Cell<u64>,
}

/// A message being received.
pub(super) enum IncomingMessage {
    Here(Vec<u64>),
    Coming(SingleRequest),
}

impl MpiMessageQueue {
    pub(super) fn new(comm: Comm) -> Self {
        Self {
            comm,
            pending: RefCell::default(),
            local: RefCell::default(),
            sent: Cell::new(0),
            received: Cell::new(0),
        }
    }

    /// Messages sent and received so far.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sent.get(), self.received.get())
    }

    pub(super) fn send(&self, to: Address, words: Vec<u64>) -> Result<(), MpiError> {
        self.sent.set(self.sent.get() + 1);
        if to.rank == self.comm.rank() {
            self.local.borrow_mut().entry(to.tag).or_default().push_back(words);
            return Ok(());
        }
        self.reap()?;
        let single = SingleRequest::send(&self.comm, words, to.rank, to.tag)?;
        self.pending.borrow_mut().push(single);
        Ok(())
    }

    /// Words of the next piece from an address, if one has come.
    pub(super) fn look(&self, from: Address) -> Result<Option<usize>, MpiError> {
        if from.rank == self.comm.rank() {
            let local = self.local.borrow();
            return Ok(local.get(&from.tag).and_then(|queue| queue.front()).map(Vec::len));
        }
        probe(&self.comm, from.rank, from.tag)
    }

    /// Takes the next piece, which [`MpiMessageQueue::look`] has found to have so many words.
    pub(super) fn take(&self, from: Address, words: usize) -> Result<IncomingMessage, MpiError> {
        self.received.set(self.received.get() + 1);
        if from.rank == self.comm.rank() {
            let mut local = self.local.borrow_mut();
            let words = local.get_mut(&from.tag).and_then(VecDeque::pop_front);
            return Ok(IncomingMessage::Here(words.expect("there is messages")));
        }
        Ok(IncomingMessage::Coming(SingleRequest::receive(&self.comm, words, from.rank, from.tag)?))
    }

    /// Forgets the sends that MPI is done with; whether that is all.
    pub(super) fn reap(&self) -> Result<bool, MpiError> {
        let mut pending = self.pending.borrow_mut();
        let mut at = 0;
        while at < pending.len() {
            if pending[at].test()? {
                pending.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(pending.is_empty())
    }
}

impl IncomingMessage {
    /// The words, once they are all here.
    pub(super) fn open(&mut self) -> Result<Option<&[u64]>, MpiError> {
        match self {
            IncomingMessage::Here(words) => Ok(Some(words)),
            IncomingMessage::Coming(single) => {
                Ok(if single.test()? { Some(single.words()) } else { None })
            }
        }
    }
}
