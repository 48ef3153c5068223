//! Messages between two cells on threads: those that are copied into an inbox, and direct passes.
//!
//! # Direct passes
//!
//! 1. A cell puts the place of its words (an *offer*) into the [`DirectInbox`] of their target.
//! 2. It waits for the offer of its source, copies the words from the memory of the source into its
//!    own, and counts one more of the source's offers as taken.
//! 3. It waits until its own offer has been taken.
//!
//! # Why reading the memory of other cells is sound
//!
//! The argument is that of exchanges (module [`port`](super::port)). A source stays in its call until its
//! offer has been taken, or until the run has ended early and all workers have acknowledged that; in
//! between no code of a program runs at the source, so nothing unwinds. The target takes the offer out
//! of the inbox, copies, and counts it as taken without being suspended in between: its worker has not
//! acknowledged an end of the run then. An offer that stays in an inbox when a run ends is never
//! read. The words offered are borrowed for reading by the call of the source, those written are
//! borrowed for writing by the call of the target.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use conset_ir::CellId;

use super::port::ThreadPort;
use super::shared_state::WordSlot;
use super::worker::{WaitCondition, WaitReason};
use crate::executor::Resume;
use crate::port::{DirectPass, RawWords, Stopped};
use crate::sync::Counter;

/// What other cells offer a cell, and how many of its own offers were taken.
#[derive(Debug, Default)]
pub(crate) struct DirectInbox {
    /// By source, which has one offer at a time.
    offers: Mutex<BTreeMap<CellId, WordSlot>>,
    /// Offers that have come since the run began.
    come: Counter,
    /// Offers of this cell to others that were taken.
    taken: Counter,
}

impl DirectInbox {
    fn offers(&self) -> MutexGuard<'_, BTreeMap<CellId, WordSlot>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self, source: CellId, row: RawWords) {
        let mut offers = self.offers();
        let slot = WordSlot::default();
        slot.put(row, std::ptr::null(), 1);
        offers.insert(source, slot);
        // The lock is held, so no other thread raises it.
        self.come.publish(self.come.value() + 1);
    }

    fn take(&self, source: CellId) -> Option<RawWords> {
        let slot = self.offers().remove(&source)?;
        Some(slot.get().0)
    }

    /// One more of the owner's offers was taken. It has one at a time, so no other thread raises the
    /// counter.
    fn acknowledge(&self) {
        self.taken.publish(self.taken.value() + 1);
    }
}

impl ThreadPort<'_, '_> {
    /// [`crate::port::CellPort::pass_directly`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn pass_in_place(&mut self, pass: &DirectPass) -> Result<usize, Stopped> {
        self.check()?;
        let state = self.state;
        let own = &state.direct[self.id.index()];
        let taken = own.taken.value() + 1;
        if let Some((target, row)) = pass.outgoing {
            state.direct[target.index()].offer(self.id, row);
        }
        let mut found = 0;
        if let Some((source, into)) = pass.incoming {
            let there = loop {
                let come = own.come.value();
                if let Some(there) = own.take(source) {
                    break there;
                }
                self.wait_for(&own.come, come + 1, WaitReason::Message(source))?;
            };
            // SAFETY: the source stays in its call until the acknowledgement, and nobody writes what
            // it offers: see the module. The caller says that the row can be written; it overlaps
            // nothing that is borrowed for reading.
            found = unsafe { into.copy_if_fits(&there) };
            state.direct[source.index()].acknowledge();
            self.worker.moved(found);
        }
        if let Some((target, _)) = pass.outgoing {
            self.wait_for(&own.taken, taken, WaitReason::Receiver(target))?;
        }
        Ok(found)
    }

    /// [`crate::port::CellPort::send_message`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn put_message(
        &mut self,
        target: CellId,
        words: RawWords,
    ) -> Result<(), Stopped> {
        self.check()?;
        // SAFETY: the caller says that the row can be read.
        let bits = (0..words.words).map(|index| unsafe { words.get(index) });
        self.state.inboxes[target.index()].put(self.id, bits);
        Ok(())
    }

    /// Hands the words of the next message of a cell to `read`, when there is one.
    pub(super) fn receive<T>(
        &mut self,
        source: CellId,
        read: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        self.check()?;
        let inbox = &self.state.inboxes[self.id.index()];
        loop {
            let come = inbox.come.value();
            let read = |words: &[u64]| (words.len(), read(words));
            if let Some((words, result)) = inbox.take(source, read) {
                self.worker.moved(words);
                return Ok(result);
            }
            self.wait_for(&inbox.come, come + 1, WaitReason::Message(source))?;
        }
    }

    /// [`crate::port::CellPort::next_message`].
    pub(super) fn look_for_message(
        &mut self,
        source: Option<CellId>,
        wait: bool,
    ) -> Result<Option<(CellId, usize)>, Stopped> {
        self.check()?;
        let inbox = &self.state.inboxes[self.id.index()];
        let reason = source.map_or(WaitReason::AnyMessage, WaitReason::Message);
        loop {
            let value = inbox.come.value() + 1;
            let found = inbox.first(source);
            if found.is_some() {
                return Ok(found);
            }
            if wait {
                self.wait_for(&inbox.come, value, reason)?;
                continue;
            }
            self.state.activity[self.worker.number].0.test();
            let condition = WaitCondition { counter: &inbox.come, value, reason, asks: true };
            return match self.yielder.suspend(condition) {
                Resume::Continue => Ok(inbox.first(source)),
                Resume::Abort => Err(Stopped),
            };
        }
    }
}
