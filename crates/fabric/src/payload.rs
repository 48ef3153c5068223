//! Buffers for the data of a whole set: a row of words to send and one to receive for each
//! connection.

use conset_ir::{ConnectionId, ConnectionSet};

use crate::engine::Payload;

/// The words of every connection of a set, as sent and as received. Words are 64 bits here,
/// whatever the machine's word holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    first: Vec<usize>,
    outgoing: Vec<u64>,
    incoming: Vec<u64>,
}

impl Buffers {
    /// Buffers of zeros for a set: two words for each of the set's words.
    pub fn new(set: &ConnectionSet) -> Self {
        let mut first = Vec::with_capacity(set.len() + 1);
        let mut end = 0usize;
        first.push(0);
        for connection in set.connections() {
            end += connection.words as usize;
            first.push(end);
        }
        Self { first, outgoing: vec![0; end], incoming: vec![0; end] }
    }

    fn row(&self, connection: ConnectionId) -> std::ops::Range<usize> {
        self.first[connection.index()]..self.first[connection.index() + 1]
    }

    /// The words that a connection's source sends.
    pub fn outgoing(&mut self, connection: ConnectionId) -> &mut [u64] {
        let row = self.row(connection);
        &mut self.outgoing[row]
    }

    /// The words that a connection's target received.
    pub fn incoming(&self, connection: ConnectionId) -> &[u64] {
        &self.incoming[self.row(connection)]
    }
}

impl Payload for Buffers {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.outgoing[self.first[from.0.index()] + from.1 as usize];
        self.incoming[self.first[to.0.index()] + to.1 as usize] = word;
    }

    fn transfer_run(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32), words: u32) {
        let start = self.first[from.0.index()] + from.1 as usize;
        let place = self.first[to.0.index()] + to.1 as usize;
        let words = words as usize;
        let run = &self.outgoing[start..start + words];
        self.incoming[place..place + words].copy_from_slice(run);
    }
}
