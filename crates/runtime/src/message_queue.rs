//! Messages on the emulated machine: posted, delivered, and waiting to be read.
//!
//! An *envelope* is a message with its words. The engine identifies it by its row here and
//! transfers its words. A message has a *subject*: it is for [`crate::Cell::msg_receive`], which
//! takes the next message of a cell, or it carries a connection of a set that is exchanged by
//! messages, an array over the edge of a tree, or pieces of connections by a step plan. A receiver
//! takes messages as they arrive; those that its program does not wait for are kept until it asks.

use std::collections::{BTreeMap, VecDeque};

use conset_fabric::Payload;
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId};

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The next receive from the source.
    Plain,
    /// A connection of a set.
    Connection(usize, ConnectionId),
    /// A connection of a set as the edge of a tree.
    Edge(usize, ConnectionId),
    /// A message of a step plan, in a round of exchanges.
    Step(u64, u32),
    /// The next packet of an epoch from the source.
    Packet,
    /// The next direct pass from the source.
    Direct,
}

/// A message and its words.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) source: CellId,
    pub(crate) target: CellId,
    pub(crate) subject: Subject,
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// All messages of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageQueue {
    envelopes: Vec<Envelope>,
    free: Vec<u32>,
    /// Messages received, in order, that no program has read; by target, subject and source.
    kept: BTreeMap<(CellId, Subject, CellId), VecDeque<u32>>,
    /// The messages of the exchange that each cell asks for, in the order of sending.
    pub(crate) posted: Vec<Vec<u32>>,
}

impl MessageQueue {
    pub(crate) fn new(cells: usize) -> Self {
        Self { posted: vec![Vec::new(); cells], ..Self::default() }
    }

    /// Takes the words of a message; its row.
    pub(crate) fn post(
        &mut self,
        (source, target): (CellId, CellId),
        subject: Subject,
        words: impl Iterator<Item = u64>,
    ) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            let (sent, received) = (Vec::new(), Vec::new());
            self.envelopes.push(Envelope { source, target, subject, sent, received });
            to_u32(self.envelopes.len()) - 1
        });
        let envelope = &mut self.envelopes[index(row)];
        (envelope.source, envelope.target, envelope.subject) = (source, target, subject);
        envelope.sent.clear();
        envelope.sent.extend(words);
        envelope.received.clear();
        row
    }

    pub(crate) fn envelope(&self, row: u32) -> &Envelope {
        &self.envelopes[index(row)]
    }

    /// Number of words of a message.
    pub(crate) fn words(&self, row: u32) -> usize {
        self.envelopes[index(row)].sent.len()
    }

    /// A message was received; it is kept until it is read.
    pub(crate) fn keep(&mut self, row: u32) {
        let envelope = &self.envelopes[index(row)];
        let key = (envelope.target, envelope.subject, envelope.source);
        self.kept.entry(key).or_default().push_back(row);
    }

    /// Whether a message from `source` is kept for a cell.
    pub(crate) fn has(&self, cell: CellId, subject: Subject, source: CellId) -> bool {
        self.kept.contains_key(&(cell, subject, source))
    }

    /// The first message kept for a cell, of one source or of the first that has any: its source and
    /// its words.
    pub(crate) fn first_plain(
        &self,
        cell: CellId,
        source: Option<CellId>,
    ) -> Option<(CellId, usize)> {
        let [from, to] = [source.unwrap_or(CellId(0)), source.unwrap_or(CellId(u32::MAX))];
        let keys = (cell, Subject::Plain, from)..=(cell, Subject::Plain, to);
        let (&(_, _, source), rows) = self.kept.range(keys).next()?;
        Some((source, self.words(*rows.front()?)))
    }

    /// Hands the words of the first such message to `read`, and forgets it.
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
        Some(read(&self.envelopes[index(row)].received))
    }

    /// A message that no program has read.
    pub(crate) fn unread(&self) -> Option<u32> {
        self.kept.values().next()?.front().copied()
    }
}

impl Payload for MessageQueue {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.envelopes[from.0.index()].sent.get(index(from.1)).copied().unwrap_or(0);
        let received = &mut self.envelopes[to.0.index()].received;
        if received.len() <= index(to.1) {
            received.resize(index(to.1) + 1, 0);
        }
        received[index(to.1)] = word;
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        if let Some(word) = self.envelopes[to.0.index()].received.get_mut(index(to.1)) {
            *word ^= u64::from(bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_in_the_order_of_their_arrival_and_by_subject() {
        let (a, b) = (CellId(0), CellId(1));
        let mut queue = MessageQueue::new(2);
        let of = |word: u64| std::iter::once(word);
        let plain = queue.post((a, b), Subject::Plain, of(1));
        let other = Subject::Connection(0, ConnectionId(4));
        let set = queue.post((a, b), other, of(2));
        let second = queue.post((a, b), Subject::Plain, of(3));
        for row in [set, plain, second] {
            let x = ConnectionId(row);
            queue.transfer((x, 0), (x, 0));
            queue.keep(row);
        }
        assert!(!queue.has(b, Subject::Plain, b));
        assert_eq!(queue.read(b, Subject::Plain, a, |w| w[0]), Some(1));
        assert_eq!(queue.read(b, Subject::Plain, a, |w| w[0]), Some(3));
        assert_eq!(queue.read(b, other, a, |w| w[0]), Some(2));
        assert!(queue.unread().is_none());
        assert!(queue.post((b, a), Subject::Plain, of(9)) <= second, "rows are used again");
    }
}
