//! The data that connections carry: the [`Payload`] trait, buffers for a whole set, and synthetic
//! words for checked runs.

use conset_ir::convert::index;
use conset_ir::{ConnectionId, ConnectionSet};

/// Moves the data of connections. The engine calls it when a word is delivered.
pub trait Payload {
    /// A word was delivered: copies word `from.1` of the data that the source of connection
    /// `from.0` sends to word `to.1` of the data that the target of connection `to.0` receives.
    /// `from` and `to` are equal unless the image is wrong.
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32));

    /// `words` consecutive words were delivered where they belong, the first one to `first`. Equivalent to one
    /// [`Payload::transfer`] for each.
    fn transfer_run(&mut self, first: (ConnectionId, u32), words: u32) {
        for word in first.1..first.1 + words {
            self.transfer((first.0, word), (first.0, word));
        }
    }

    /// The word that was just delivered to `to` arrived with these bits inverted. Only a machine with a
    /// [`crate::FaultPlan`] calls it, and it must be implemented for data that such a machine carries.
    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        let _ = (to, bits);
    }
}

/// The words of every connection of a set, as sent and as received. Words have 64 bits here,
/// whatever the word size of the machine.
///
/// ```
/// use conset_fabric::{Payload, SetBuffers};
/// use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet};
///
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 2)])?;
/// let x0 = ConnectionId(0);
/// let mut buffers = SetBuffers::new(&set);
/// buffers.outgoing(x0).copy_from_slice(&[7, 8]);
/// buffers.transfer_run((x0, 0), 2);
/// assert_eq!(buffers.incoming(x0), [7, 8]);
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetBuffers {
    first: Vec<usize>,
    outgoing: Vec<u64>,
    incoming: Vec<u64>,
}

impl SetBuffers {
    /// Zeroed buffers for a set: one outgoing and one incoming word for each of the set's words.
    pub fn new(set: &ConnectionSet) -> Self {
        let mut first = Vec::with_capacity(set.len() + 1);
        let mut end = 0usize;
        first.push(0);
        for connection in set.connections() {
            end += index(connection.words);
            first.push(end);
        }
        Self { first, outgoing: vec![0; end], incoming: vec![0; end] }
    }

    fn row(&self, connection: ConnectionId) -> std::ops::Range<usize> {
        self.first[connection.index()]..self.first[connection.index() + 1]
    }

    /// The words that a connection's source sends.
    ///
    /// # Panics
    /// If the set has no such connection.
    pub fn outgoing(&mut self, connection: ConnectionId) -> &mut [u64] {
        let row = self.row(connection);
        &mut self.outgoing[row]
    }

    /// Sets a word that a connection's target has received.
    pub(crate) fn store(&mut self, (connection, word): (ConnectionId, u32), value: u64) {
        let place = self.first[connection.index()] + index(word);
        self.incoming[place] = value;
    }

    /// The words that a connection's target has received.
    ///
    /// # Panics
    /// If the set has no such connection.
    pub fn incoming(&self, connection: ConnectionId) -> &[u64] {
        &self.incoming[self.row(connection)]
    }
}

impl Payload for SetBuffers {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let word = self.outgoing[self.first[from.0.index()] + index(from.1)];
        self.incoming[self.first[to.0.index()] + index(to.1)] = word;
    }

    fn transfer_run(&mut self, first: (ConnectionId, u32), words: u32) {
        let start = self.first[first.0.index()] + index(first.1);
        let run = start..start + index(words);
        self.incoming[run.clone()].copy_from_slice(&self.outgoing[run]);
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        let place = self.first[to.0.index()] + index(to.1);
        self.incoming[place] ^= u64::from(bits);
    }
}

/// The value of word `index` of a connection in a checked run. It is a one-to-one function of the
/// connection and the index for each seed, so different words have different values.
#[inline]
pub fn synthetic_word(seed: u64, connection: ConnectionId, index: u32) -> u64 {
    let mut bits = (u64::from(connection.0) << 32 | u64::from(index)) ^ seed;
    bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits ^ (bits >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random plans of faults and reports of runs are reproducible only if these values stay.
    #[test]
    fn values_of_words_never_change() {
        let word = |seed, connection, index| synthetic_word(seed, ConnectionId(connection), index);
        assert_eq!(word(0, 0, 0), 0);
        assert_eq!(word(1, 0, 0), 0x4179_b061_e0c0_e0d0);
        assert_eq!(word(1, 2, 3), 0x4397_a788_9d54_635a);
        assert_eq!(word(0xfeed_face_cafe_beef, u32::MAX, u32::MAX), 0xf8eb_2030_b3d8_716c);
    }
}
