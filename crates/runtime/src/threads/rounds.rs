//! Rounds of epochs, and sized exchanges, in memory.
//!
//! A cell puts its lists into the mailboxes of their targets and arrives at the next step; when all
//! cells have, each takes what its mailbox holds. Lists are handed over without a copy.
//!
//! Mailboxes have two sides, for rounds of even and of odd numbers. A cell that is a round ahead
//! fills the other side. It cannot be two ahead, as it waits in each round for all cells to arrive,
//! and a cell arrives at a round after it has taken what the one before brought.

use std::sync::{Mutex, MutexGuard, PoisonError};

use conset_ir::CellId;

use super::port::ThreadPort;
use crate::call::Collective;
use crate::epochs::routing::{ByteLists, ItemShape, Round, RoundResult, TakeLists};
use crate::port::{RawWords, Stopped, UnpackFn};

/// The lists that a cell was sent, with the places of their sources; by round.
#[derive(Debug, Default)]
pub(crate) struct Mailbox([Mutex<ByteLists>; 2]);

/// What all cells know of the last rounds.
#[derive(Debug, Default)]
pub(crate) struct RoundBoard([Mutex<RoundNotes>; 2]);

/// What is known of a round.
#[derive(Debug, Default)]
struct RoundNotes {
    number: u64,
    /// The cell that came first, and its items.
    opened: Option<(CellId, ItemShape)>,
    /// The place of the first cell that has sent any.
    first: Option<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPort<'_, '_> {
    pub(super) fn deliver_round(
        &mut self,
        round: Round<'_>,
        arrived: &mut dyn TakeLists,
    ) -> RoundResult {
        self.check()?;
        self.rounds += 1;
        let (number, side) = (self.rounds, usize::from(self.rounds.is_multiple_of(2)));
        let notes = &self.state.rounds.0[side];
        {
            let mut notes = lock(notes);
            if notes.number != number {
                *notes = RoundNotes { number, ..RoundNotes::default() };
            }
            let (cell, shape) = *notes.opened.get_or_insert((self.id, round.shape));
            if let Err(wrong) = round.shape.check(cell, shape) {
                return Ok(Err(wrong));
            }
            if !round.lists.is_empty() {
                notes.first = Some(notes.first.map_or(round.own, |first| first.min(round.own)));
            }
        }
        for (target, bytes) in round.lists {
            let mailbox = &self.state.mailboxes[round.live[target].index()];
            lock(&mailbox.0[side]).push((round.own, bytes.into_owned()));
        }
        self.step(Collective::Round)?;
        self.barrier()?;
        let lists = std::mem::take(&mut *lock(&self.state.mailboxes[self.id.index()].0[side]));
        let words = lists.iter().map(|list| list.1.len()).sum::<usize>();
        self.worker.moved(words / (round.shape.item_bytes() / round.shape.words.max(1)));
        lists.into_iter().for_each(|(source, bytes)| arrived.take(source, bytes.into()));
        let first = lock(notes).first;
        Ok(Ok(first))
    }

    /// # Safety
    /// The rows can be read until the call returns or unwinds.
    pub(super) unsafe fn exchange_rows_sized(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        read: &mut UnpackFn<'_>,
    ) -> Result<(), Stopped> {
        self.step(Collective::SizedExchange(set))?;
        self.publish_slots(set, outgoing.iter().copied());
        let loaded = self.state.loaded;
        for (place, &connection) in loaded.sets[set].incoming.of(self.id).iter().enumerate() {
            let (row, ..) = self.slot_of(set, connection)?.get();
            // SAFETY: the row is in memory that its source has published, and that nobody writes
            // before this cell is done (module `port`); its words are of as many bytes, which the marks
            // of the calls say.
            let bytes = unsafe { std::slice::from_raw_parts(row.pointer, row.words * row.size) };
            read((place, 0), bytes);
            self.worker.moved(row.words);
        }
        self.finish(set)
    }
}
