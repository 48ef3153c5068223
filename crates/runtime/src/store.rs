//! The words on the wire: what was sent and what was received, by connection.
//!
//! A word is looked up where it was sent when it is delivered, which can be after the sender's
//! call has returned. So sent words are kept here and not in the sender's own variables, until
//! the next switch to another set; every switch finds the network empty.

use conset_fabric::Payload;
use conset_ir::{ConnectionId, ConnectionSet};

/// Words of the active set. A row is as long as the words put there so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    outgoing: Vec<Vec<u64>>,
    incoming: Vec<Vec<u64>>,
}

impl Store {
    /// Room for another set.
    pub(crate) fn start_set(&mut self, set: &ConnectionSet) {
        for rows in [&mut self.outgoing, &mut self.incoming] {
            rows.clear();
            rows.resize(set.len(), Vec::new());
        }
    }

    pub(crate) fn put(&mut self, connection: ConnectionId, index: u32, bits: u64) {
        *place(&mut self.outgoing[connection.index()], index) = bits;
    }

    /// Puts all words of a connection.
    pub(crate) fn fill(&mut self, connection: ConnectionId, words: impl Iterator<Item = u64>) {
        let row = &mut self.outgoing[connection.index()];
        row.clear();
        row.extend(words);
    }

    pub(crate) fn get(&self, connection: ConnectionId, index: u32) -> u64 {
        self.incoming[connection.index()].get(index as usize).copied().unwrap_or(0)
    }
}

impl Payload for Store {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.outgoing[from.0.index()].get(from.1 as usize).copied().unwrap_or(0);
        *place(&mut self.incoming[to.0.index()], to.1) = word;
    }
}

#[inline]
fn place(row: &mut Vec<u64>, index: u32) -> &mut u64 {
    if row.len() <= index as usize {
        row.resize(index as usize + 1, 0);
    }
    &mut row[index as usize]
}
