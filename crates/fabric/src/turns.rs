//! Taking turns: which of a server's clients goes next.
//!
//! A server (a link, or an agent's port) has numbered clients. Those that can move a word now
//! have a bit set; the turn is a pointer just past the client served last. The next client is the
//! first ready one from the pointer on, round the end. Up to 64 clients are one machine word,
//! which is every real machine; more clients take one word per 64.

/// The ready clients of one server and the turn. Small, since there is one for every link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a third of the size, for what is never used")]
pub(crate) struct Turns {
    few: u64,
    turn: u32,
    many: Option<Box<Vec<u64>>>,
}

impl Turns {
    /// Room for `clients` clients, none of them ready.
    pub(crate) fn new(clients: usize) -> Self {
        let many = (clients > 64).then(|| Box::new(vec![0; clients.div_ceil(64)]));
        Self { few: 0, turn: 0, many }
    }

    /// Makes room for one more client than before, numbered `clients - 1`.
    pub(crate) fn grow(&mut self, clients: usize) {
        if clients <= 64 {
            return;
        }
        let words = self.many.get_or_insert_with(|| Box::new(vec![self.few]));
        words.resize(clients.div_ceil(64).max(words.len()), 0);
    }

    /// The client can move a word.
    #[inline]
    pub(crate) fn set(&mut self, client: u32) {
        match &mut self.many {
            None => self.few |= 1 << client,
            Some(words) => words[client as usize / 64] |= 1 << (client % 64),
        }
    }

    /// The client cannot move a word.
    #[inline]
    pub(crate) fn clear(&mut self, client: u32) {
        match &mut self.many {
            None => self.few &= !(1 << client),
            Some(words) => words[client as usize / 64] &= !(1 << (client % 64)),
        }
    }

    /// The ready client whose turn it is.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        match &self.many {
            None => {
                if self.few == 0 {
                    return None;
                }
                let later = self.few & (!0u64 << self.turn);
                Some(if later != 0 { later } else { self.few }.trailing_zeros())
            }
            Some(words) => next_of_many(words, self.turn as usize),
        }
    }

    /// The client was served and the turn passes on; if that was its last word for now, it is
    /// not ready any more.
    #[inline]
    pub(crate) fn served(&mut self, client: u32, last: bool) {
        match &mut self.many {
            None => {
                self.few &= !(u64::from(last) << client);
                self.turn = client.wrapping_add(1) & 63;
            }
            Some(words) => {
                words[client as usize / 64] &= !(u64::from(last) << (client % 64));
                self.turn = (client + 1) % (64 * words.len() as u32);
            }
        }
    }
}

fn next_of_many(words: &[u64], turn: usize) -> Option<u32> {
    let home = turn / 64;
    let later = words[home] & (!0u64 << (turn % 64));
    if later != 0 {
        return Some((home * 64) as u32 + later.trailing_zeros());
    }
    // All the others, then what lies before the turn in its own word.
    (1..=words.len())
        .map(|step| (home + step) % words.len())
        .find(|&at| words[at] != 0)
        .map(|at| (at * 64) as u32 + words[at].trailing_zeros())
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
