//! Messages on the emulated machine: what was posted, what has arrived, who reads it.
//!
//! A *letter* is a message with its words. The engine calls it by its row here, and moves its
//! words from what was posted to what has arrived. Letters have a *subject*: one is for
//! [`crate::Cell::msg_receive`], which takes the next of a cell, or carries a connection of a
//! set that is exchanged by messages. A receiver takes letters as they arrive; one that its
//! program does not wait for now is kept until it is asked for.

use std::collections::{BTreeMap, VecDeque};

use conset_fabric::Payload;
use conset_ir::{CellId, ConnectionId};

/// What a letter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Whoever receives from the source.
    Plain,
    /// A connection of a set.
    Connection(usize, ConnectionId),
}

/// A message and its words.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) source: CellId,
    pub(crate) target: CellId,
    pub(crate) subject: Subject,
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// All letters of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    letters: Vec<Letter>,
    free: Vec<u32>,
    /// Letters received, in order, that no program has read; by target, subject and source.
    kept: BTreeMap<(CellId, Subject, CellId), VecDeque<u32>>,
    /// The letters of the exchange that each cell asks for, in the order of sending.
    pub(crate) posted: Vec<Vec<u32>>,
}

impl Mail {
    pub(crate) fn new(cells: usize) -> Self {
        Self { posted: vec![Vec::new(); cells], ..Self::default() }
    }

    /// Takes the words of a letter; its row.
    pub(crate) fn post(
        &mut self,
        (source, target): (CellId, CellId),
        subject: Subject,
        words: impl Iterator<Item = u64>,
    ) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            let (sent, received) = (Vec::new(), Vec::new());
            self.letters.push(Letter { source, target, subject, sent, received });
            self.letters.len() as u32 - 1
        });
        let letter = &mut self.letters[row as usize];
        (letter.source, letter.target, letter.subject) = (source, target, subject);
        letter.sent.clear();
        letter.sent.extend(words);
        letter.received.clear();
        row
    }

    pub(crate) fn letter(&self, row: u32) -> &Letter {
        &self.letters[row as usize]
    }

    /// Number of words of a letter.
    pub(crate) fn words(&self, row: u32) -> usize {
        self.letters[row as usize].sent.len()
    }

    /// A letter was received; it is kept until it is read.
    pub(crate) fn keep(&mut self, row: u32) {
        let letter = &self.letters[row as usize];
        let key = (letter.target, letter.subject, letter.source);
        self.kept.entry(key).or_default().push_back(row);
    }

    /// Whether a letter from `source` is kept for a cell.
    pub(crate) fn has(&self, cell: CellId, subject: Subject, source: CellId) -> bool {
        self.kept.contains_key(&(cell, subject, source))
    }

    /// Hands the words of the first such letter to `read`, and forgets it.
    pub(crate) fn read<T>(
        &mut self,
        cell: CellId,
        subject: Subject,
        source: CellId,
        read: impl FnOnce(&[u64]) -> T,
    ) -> Option<T> {
        let key = (cell, subject, source);
        let rows = self.kept.get_mut(&key)?;
        let row = rows.pop_front()?;
        if rows.is_empty() {
            self.kept.remove(&key);
        }
        self.free.push(row);
        Some(read(&self.letters[row as usize].received))
    }

    /// A letter that no program has read.
    pub(crate) fn unread(&self) -> Option<u32> {
        self.kept.values().next()?.front().copied()
    }
}

impl Payload for Mail {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.letters[from.0.index()].sent.get(from.1 as usize).copied().unwrap_or(0);
        let received = &mut self.letters[to.0.index()].received;
        if received.len() <= to.1 as usize {
            received.resize(to.1 as usize + 1, 0);
        }
        received[to.1 as usize] = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_in_the_order_of_their_arrival_and_by_subject() {
        let (a, b) = (CellId(0), CellId(1));
        let mut mail = Mail::new(2);
        let of = |word: u64| std::iter::once(word);
        let plain = mail.post((a, b), Subject::Plain, of(1));
        let other = Subject::Connection(0, ConnectionId(4));
        let set = mail.post((a, b), other, of(2));
        let second = mail.post((a, b), Subject::Plain, of(3));
        for row in [set, plain, second] {
            let x = ConnectionId(row);
            mail.transfer((x, 0), (x, 0));
            mail.keep(row);
        }
        assert!(!mail.has(b, Subject::Plain, b));
        assert_eq!(mail.read(b, Subject::Plain, a, |w| w[0]), Some(1));
        assert_eq!(mail.read(b, Subject::Plain, a, |w| w[0]), Some(3));
        assert_eq!(mail.read(b, other, a, |w| w[0]), Some(2));
        assert!(mail.unread().is_none());
        assert!(mail.post((b, a), Subject::Plain, of(9)) <= second, "rows are used again");
    }
}
