//! Taking turns: which of a server's clients goes next.
//!
//! A server (a link, or an agent's port) has numbered clients. Those that can move a word now
//! have a bit set; the turn is a pointer just past the client served last. The next client is the
//! first ready one from the pointer on, round the end. The first 64 clients are one machine word,
//! which is all of them on every real machine; more clients take one more word per 64.

/// The ready clients of one server and the turn. Small, since there is one for every link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a third of the size, for what is never used")]
pub(crate) struct Turns {
    ready: u64,
    turn: u32,
    /// The clients from the 65th on.
    others: Option<Box<Vec<u64>>>,
}

impl Turns {
    /// Room for `clients` clients, none of them ready.
    pub(crate) fn new(clients: usize) -> Self {
        let mut turns = Self::default();
        turns.grow(clients);
        turns
    }

    /// Makes room for one more client than before, numbered `clients - 1`.
    pub(crate) fn grow(&mut self, clients: usize) {
        if clients <= 64 {
            return;
        }
        // Behind the 64th came the first so far.
        self.turn = if self.others.is_none() { self.turn % 64 } else { self.turn };
        let words = self.others.get_or_insert_default();
        words.resize((clients - 64).div_ceil(64).max(words.len()), 0);
    }

    /// The client can move a word.
    #[inline]
    pub(crate) fn set(&mut self, client: u32) {
        if client < 64 {
            self.ready |= 1 << client;
        } else {
            let (word, bit) = self.other(client);
            *word |= bit;
        }
    }

    /// The client cannot move a word.
    #[inline]
    pub(crate) fn clear(&mut self, client: u32) {
        if client < 64 {
            self.ready &= !(1 << client);
        } else {
            let (word, bit) = self.other(client);
            *word &= !bit;
        }
    }

    /// The ready client whose turn it is.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        if self.others.is_some() {
            return self.next_of_many();
        }
        // A turn of 64 is a turn of 0, as the shift has it. Which half is chosen is hard to
        // foresee, so there is no branch.
        let later = self.ready & u64::MAX.wrapping_shl(self.turn);
        let bits = if later != 0 { later } else { self.ready };
        (bits != 0).then(|| bits.trailing_zeros())
    }

    /// The client was served and the turn passes on; if that was its last word for now, it is
    /// not ready any more.
    #[inline]
    pub(crate) fn served(&mut self, client: u32, last: bool) {
        self.turn = client.wrapping_add(1);
        if client < 64 {
            self.ready &= !(u64::from(last) << client);
        } else if last {
            self.clear(client);
        }
    }

    /// The word and the bit of a client that is not among the first.
    #[cold]
    fn other(&mut self, client: u32) -> (&mut u64, u64) {
        let others = self.others.as_mut().expect("so many clients have room");
        (&mut others[client as usize / 64 - 1], 1 << (client % 64))
    }

    /// The same as [`Turns::next`], where there are more than 64 clients.
    #[cold]
    fn next_of_many(&self) -> Option<u32> {
        let others = self.others.as_deref().map_or(&[][..], Vec::as_slice);
        let word = |at: usize| if at == 0 { self.ready } else { others[at - 1] };
        let first = |at: usize, bits: u64| (at * 64) as u32 + bits.trailing_zeros();
        let words = others.len() + 1;
        let (home, bit) = (self.turn as usize / 64 % words, self.turn % 64);
        let later = word(home) & (u64::MAX << bit);
        if later != 0 {
            return Some(first(home, later));
        }
        // All the others, then what lies before the turn in its own word.
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
            let mut turns = Turns::new(clients);
            let ready = [0, 1, clients as u32 - 1];
            for client in ready {
                turns.set(client);
            }
            for round in 0..9 {
                let client = turns.next().unwrap();
                assert_eq!(client, ready[round % 3], "{clients} clients, round {round}");
                turns.served(client, false);
            }
            for client in ready {
                turns.clear(client);
            }
            assert_eq!(turns.next(), None);
        }
    }

    #[test]
    fn growing_keeps_who_is_ready() {
        let mut turns = Turns::new(1);
        turns.set(63);
        turns.grow(65);
        turns.set(64);
        assert_eq!(turns.next(), Some(63));
        turns.served(63, false);
        assert_eq!(turns.next(), Some(64));
    }
}
