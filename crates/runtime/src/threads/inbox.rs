//! The unread messages of a cell: one queue for each cell that sent any.
//!
//! A message is copied when it is sent and when it is received. The memory of received messages is
//! reused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conset_ir::CellId;

use crate::error::RunError;
use crate::sync::Counter;

/// What a cell has been sent.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queues: Mutex<MessageQueues>,
    /// Messages that have come since the run began.
    pub(crate) come: Counter,
}

#[derive(Debug, Default)]
struct MessageQueues {
    queues: BTreeMap<CellId, VecDeque<Vec<u64>>>,
    spare: Vec<Vec<u64>>,
}

impl Inbox {
    fn queues(&self) -> MutexGuard<'_, MessageQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, source: CellId, words: impl Iterator<Item = u64>) {
        let mut queues = self.queues();
        let mut message = queues.spare.pop().unwrap_or_default();
        message.clear();
        message.extend(words);
        queues.queues.entry(source).or_default().push_back(message);
        // The lock is held, so no other thread raises it.
        self.come.publish(self.come.value() + 1);
    }

    /// Hands the words of the next message of a cell to `read`, if there is one.
    pub(crate) fn take<T>(&self, source: CellId, read: impl FnOnce(&[u64]) -> T) -> Option<T> {
        let mut queues = self.queues();
        let queue = queues.queues.get_mut(&source)?;
        let message = queue.pop_front()?;
        if queue.is_empty() {
            queues.queues.remove(&source);
        }
        let result = read(&message);
        queues.spare.push(message);
        Some(result)
    }

    /// The next message, of one source or of the first that has any: its source and its words.
    pub(crate) fn first(&self, source: Option<CellId>) -> Option<(CellId, usize)> {
        let queues = self.queues();
        let [from, to] = [source.unwrap_or(CellId(0)), source.unwrap_or(CellId(u32::MAX))];
        let mut queues = queues.queues.range(from..=to);
        queues.find_map(|(&source, queue)| queue.front().map(|message| (source, message.len())))
    }

    /// The error of a message that cell `cell`, whose inbox this is, has not received.
    pub(crate) fn unread(&self, cell: CellId) -> Option<RunError> {
        let queues = self.queues();
        let (&from, queue) = queues.queues.first_key_value()?;
        let words = queue.front().map_or(0, Vec::len);
        Some(RunError::UnreceivedMessage { cell, from, words })
    }
}
