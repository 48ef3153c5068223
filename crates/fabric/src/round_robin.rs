//! Round-robin arbitration: which client of a server is served next.
//!
//! A server (a link, or an agent's port) has numbered clients. A client that can move a word now
//! has its bit set. The next client is the first ready one at or after a pointer, cyclically; the
//! pointer is one past the client served last. The first 64 clients fit one machine word, which is
//! all of them on every real machine; more clients take one more word per 64.

use conset_ir::convert::{index, to_u32};

/// The ready clients of one server and the round-robin pointer. Small, because there is one for
/// every link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a third of the size, for a field that is rarely used")]
pub(crate) struct RoundRobin {
    ready: u64,
    pointer: u32,
    /// The bits of the clients from the 65th on.
    overflow: Option<Box<Vec<u64>>>,
}

impl RoundRobin {
    /// Space for `clients` clients, none of them ready.
    pub(crate) fn new(clients: usize) -> Self {
        let mut round_robin = Self::default();
        round_robin.grow(clients);
        round_robin
    }

    /// Makes space for one client more than before, number `clients - 1`.
    pub(crate) fn grow(&mut self, clients: usize) {
        if clients <= 64 {
            return;
        }
        let words = self.overflow.get_or_insert_default();
        words.resize((clients - 64).div_ceil(64).max(words.len()), 0);
    }

    /// Marks a client as able to move a word.
    #[inline]
    pub(crate) fn set(&mut self, client: u32) {
        if client < 64 {
            self.ready |= 1 << client;
        } else {
            let (word, bit) = self.overflow_bit(client);
            *word |= bit;
        }
    }

    /// Marks a client as unable to move a word.
    #[inline]
    pub(crate) fn clear(&mut self, client: u32) {
        if client < 64 {
            self.ready &= !(1 << client);
        } else {
            let (word, bit) = self.overflow_bit(client);
            *word &= !bit;
        }
    }

    /// The ready client to serve next.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        if self.overflow.is_some() {
            return self.next_of_many();
        }
        // A pointer of 64 is a pointer of 0, and the shift wraps accordingly. Which part is used
        // is hard to predict, so this compiles without a branch.
        let later = self.ready & u64::MAX.wrapping_shl(self.pointer);
        let bits = if later != 0 { later } else { self.ready };
        (bits != 0).then(|| bits.trailing_zeros())
    }

    /// The client was served: advances the pointer, and clears the client's bit if this was its
    /// last word for now.
    #[inline]
    pub(crate) fn served(&mut self, client: u32, last: bool) {
        self.pointer = client.wrapping_add(1);
        if client < 64 {
            self.ready &= !(u64::from(last) << client);
        } else if last {
            self.clear(client);
        }
    }

    /// The word and the bit of a client from the 65th on.
    #[cold]
    fn overflow_bit(&mut self, client: u32) -> (&mut u64, u64) {
        let overflow = self.overflow.as_mut().expect("`grow` made space for the client");
        (&mut overflow[index(client) / 64 - 1], 1 << (client % 64))
    }

    /// [`RoundRobin::next`] for more than 64 clients.
    #[cold]
    fn next_of_many(&self) -> Option<u32> {
        let overflow = self.overflow.as_deref().map_or(&[][..], Vec::as_slice);
        let word = |at: usize| if at == 0 { self.ready } else { overflow[at - 1] };
        let first = |at: usize, bits: u64| to_u32(at * 64) + bits.trailing_zeros();
        let words = overflow.len() + 1;
        let (home, bit) = (index(self.pointer) / 64 % words, self.pointer % 64);
        let later = word(home) & (u64::MAX << bit);
        if later != 0 {
            return Some(first(home, later));
        }
        // All other words, then the part of the pointer's own word before the pointer.
        (1..=words)
            .map(|step| (home + step) % words)
            .find(|&at| word(at) != 0)
            .map(|at| first(at, word(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_clients_are_served_in_turn() {
        for clients in [3, 64, 65, 200] {
            let mut round_robin = RoundRobin::new(clients);
            let ready = [0, 1, to_u32(clients) - 1];
            for client in ready {
                round_robin.set(client);
            }
            for round in 0..9 {
                let client = round_robin.next().unwrap();
                assert_eq!(client, ready[round % 3], "{clients} clients, round {round}");
                round_robin.served(client, false);
            }
            for client in ready {
                round_robin.clear(client);
            }
            assert_eq!(round_robin.next(), None);
        }
    }

    #[test]
    fn growing_keeps_ready_clients() {
        let mut round_robin = RoundRobin::new(1);
        round_robin.set(63);
        round_robin.grow(65);
        round_robin.set(64);
        assert_eq!(round_robin.next(), Some(63));
        round_robin.served(63, false);
        assert_eq!(round_robin.next(), Some(64));
    }
}
