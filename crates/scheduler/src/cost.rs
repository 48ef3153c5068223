//! What a stream costs an agent: durations and the sides of a cell (machine model, rule 4).
//!
//! A *side* is what one stream at a time can be booked on. With full duplex a cell has two, its
//! send side and its receive side; with half duplex it has one. A route books the send side of
//! its source and the receive side of its target for its whole duration:
//!
//! * `words x clocks per word + stream_setup`, where a word takes `access_clocks_per_word`, or
//!   `link_clocks_per_word` where that is longer and the route has a link: words cannot enter a
//!   link faster than it takes them, and the agent stays with the stream while it waits. (The
//!   machine's other streams could use the rest of the agent's rate; with `streams` = 1 nobody
//!   can, and the timetable always plans one stream at a time.)
//! * A connection of a cell to itself has no link. With full duplex it books both sides of its
//!   cell. With half duplex its send and its receive share the one agent word by word, because
//!   the channel between them holds only `channel_depth` words, so both streams are open
//!   together: it takes twice the words and opens two streams.
//!
//! Switches have no agent and are never an end.

use conset_ir::{CellId, Connection, Duplex, Machine, Parameters, RouteRef};

/// The numbers of the machine that durations depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    access: u64,
    link: u64,
    setup: u64,
    duplex: Duplex,
}

impl Costs {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            access: u64::from(parameters.access_clocks_per_word),
            link: u64::from(parameters.link_clocks_per_word),
            setup: u64::from(parameters.stream_setup),
            duplex: parameters.duplex,
        }
    }

    /// The predicted duration `d_c` of a route, in clocks. At most 2^62: words are below 2^32,
    /// each clock count is limited to 10^9, and they are doubled at most once.
    pub(crate) fn duration(&self, route: &RouteRef<'_>, connection: &Connection) -> u64 {
        self.of_words(route.words, connection, route.hops() == 0)
    }

    /// The same for some words of a connection whose route is not known yet.
    pub(crate) fn of_words(&self, words: u32, connection: &Connection, without_link: bool) -> u64 {
        let words = u64::from(words);
        let per_word = if without_link { self.access } else { self.access.max(self.link) };
        let once = words.saturating_mul(per_word).saturating_add(self.setup);
        let itself = connection.source == connection.target;
        if itself && self.duplex == Duplex::Half { once.saturating_mul(2) } else { once }
    }

    /// Clocks by which the last word of a stream over so many links is received later than it
    /// would be if words took no time on their way: it goes through the agent of the source, each
    /// link and the agent of the target, of which the slowest is what [`Costs::of_words`] counts
    /// for it. An agent that sends to itself in turns (half duplex) is done with its last word.
    pub(crate) fn flight(&self, hops: usize, connection: &Connection) -> u64 {
        if connection.source == connection.target && self.duplex == Duplex::Half {
            return 0;
        }
        let slowest = if hops > 0 { self.access.max(self.link) } else { self.access };
        2 * self.access + hops as u64 * self.link - slowest
    }

    /// The sides that a connection books: of its source, of its target. Equal for a connection
    /// to itself with half duplex. Below [`Costs::side_count`].
    pub(crate) fn sides(&self, connection: &Connection) -> [u32; 2] {
        self.sides_of(connection.source, connection.target)
    }

    /// The same for a connection with these ends.
    pub(crate) fn sides_of(&self, source: CellId, target: CellId) -> [u32; 2] {
        let (source, target) = (source.0, target.0);
        match self.duplex {
            Duplex::Full => [2 * source, 2 * target + 1],
            Duplex::Half => [source, target],
        }
    }

    /// Number of sides of a machine.
    pub(crate) fn side_count(&self, machine: &Machine) -> usize {
        match self.duplex {
            Duplex::Full => 2 * machine.cell_count(),
            Duplex::Half => machine.cell_count(),
        }
    }
}

/// A map from the rows of a large table to the few that a phase uses, numbered from 0 in the
/// order in which they are met. Clearing costs what was used, not the size of the table, so a
/// phase of ten routes costs the same on any machine.
#[derive(Debug)]
pub(crate) struct Compact {
    local: Vec<u32>,
    used: Vec<u32>,
}

impl Compact {
    const UNUSED: u32 = u32::MAX;

    pub(crate) fn new(rows: usize) -> Self {
        Self { local: vec![Self::UNUSED; rows], used: Vec::new() }
    }

    /// The number of a row within the phase; a new one if it was not met before.
    pub(crate) fn meet(&mut self, row: u32) -> u32 {
        let local = &mut self.local[row as usize];
        if *local == Self::UNUSED {
            *local = self.used.len() as u32;
            self.used.push(row);
        }
        *local
    }

    /// The number of a row within the phase, if it was met.
    pub(crate) fn find(&self, row: u32) -> Option<u32> {
        let local = self.local[row as usize];
        (local != Self::UNUSED).then_some(local)
    }

    /// The rows met, by their numbers within the phase.
    pub(crate) fn used(&self) -> &[u32] {
        &self.used
    }

    pub(crate) fn clear(&mut self) {
        for row in self.used.drain(..) {
            self.local[row as usize] = Self::UNUSED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{ChannelId, ConnectionId, LinkId, PhaseRoutes};

    fn durations(parameters: &Parameters) -> [u64; 2] {
        let (c, ch) = ([CellId(0), CellId(1)], [ChannelId(0); 2]);
        let mut phase = PhaseRoutes::new();
        phase.push(ConnectionId(0), 133, &c, &[LinkId(0)], &ch).unwrap();
        phase.push(ConnectionId(1), 133, &c[..1], &[], &ch[..1]).unwrap();
        let costs = Costs::new(parameters);
        [
            costs.duration(&phase.get(0), &Connection::new(c[0], c[1], 133)),
            costs.duration(&phase.get(1), &Connection::new(c[0], c[0], 133)),
        ]
    }

    #[test]
    fn durations_follow_the_slower_of_agent_and_link() {
        let iwarp = Parameters::iwarp();
        assert_eq!(durations(&iwarp), [266, 266]);
        assert_eq!(durations(&Parameters { stream_setup: 7, ..Parameters::iwarp() }), [273, 273]);
        // A connection to itself crosses no link.
        assert_eq!(durations(&Parameters { link_clocks_per_word: 5, ..iwarp }), [665, 266]);
    }

    #[test]
    fn half_duplex_serves_both_ends_of_a_self_connection_in_turn() {
        let fem = Parameters { stream_setup: 7, ..Parameters::iwarp_fem() };
        assert_eq!(durations(&fem), [1337, 2674]);
        let costs = Costs::new(&fem);
        assert_eq!(costs.sides(&Connection::new(CellId(3), CellId(3), 1)), [3, 3]);
        let costs = Costs::new(&Parameters::iwarp());
        assert_eq!(costs.sides(&Connection::new(CellId(3), CellId(3), 1)), [6, 7]);
    }

    #[test]
    fn compact_numbers_are_dense_and_forgotten() {
        let mut compact = Compact::new(10);
        assert_eq!((compact.meet(7), compact.meet(2), compact.meet(7)), (0, 1, 0));
        assert_eq!(compact.used(), [7, 2]);
        compact.clear();
        assert_eq!((compact.find(7), compact.meet(2)), (None, 0));
    }
}
