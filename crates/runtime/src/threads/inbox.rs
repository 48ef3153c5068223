//! The messages of a cell that it has not received: a queue for each cell that sent any.
//!
//! A message is copied when it is sent and when it is received. The memory of those received is
//! used again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conset_ir::CellId;

use crate::error::RunError;
use crate::sync::Counter;

/// What a cell has been sent.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    letters: Mutex<Letters>,
    /// Messages that have come since the run began.
    pub(crate) come: Counter,
}

#[derive(Debug, Default)]
struct Letters {
    queues: BTreeMap<CellId, VecDeque<Vec<u64>>>,
    spare: Vec<Vec<u64>>,
}

impl Inbox {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, source: CellId, words: impl Iterator<Item = u64>) {
        let mut letters = self.letters();
        let mut letter = letters.spare.pop().unwrap_or_default();
        letter.clear();
        letter.extend(words);
        letters.queues.entry(source).or_default().push_back(letter);
        // The lock is held, so nobody else raises it.
        self.come.publish(self.come.value() + 1);
    }

    /// Hands the words of the next message of a cell to `read`, if there is one.
    pub(crate) fn take<T>(&self, source: CellId, read: impl FnOnce(&[u64]) -> T) -> Option<T> {
        let mut letters = self.letters();
        let queue = letters.queues.get_mut(&source)?;
        let letter = queue.pop_front()?;
        if queue.is_empty() {
            letters.queues.remove(&source);
        }
        let result = read(&letter);
        letters.spare.push(letter);
        Some(result)
    }

    /// The error of a message that cell `cell`, whose inbox this is, has not received.
    pub(crate) fn unread(&self, cell: CellId) -> Option<RunError> {
        let letters = self.letters();
        let (&from, queue) = letters.queues.first_key_value()?;
        let words = queue.front().map_or(0, Vec::len);
        Some(RunError::UnreceivedMessage { cell, from, words })
    }
}
