//! How long a stream takes: the one place that says so (machine model, rules 3 and 4).
//!
//! A stream carries words of a connection in one phase. While it is open it keeps an agent busy at
//! its source and one at its target:
//!
//! * It is opened first, which takes `stream_setup` at both ends side by side.
//! * Then each word takes the agents `access_clocks_per_word`, or `link_clocks_per_word` where that
//!   is longer: words cannot enter a link faster than it takes them, and the agents stay with the
//!   stream while it waits. (Other streams could use the rest of an agent's rate; with `streams` =
//!   1 there are none, and planners and timetables always plan one stream at a time.)
//! * A connection from a cell to itself crosses no link. With full duplex the two ends are the two
//!   directions of the agent, side by side as elsewhere. With half duplex they share it: the agent
//!   opens two streams and takes every word twice, once to send and once to receive it, because
//!   the channel between the ends holds only `channel_depth` words. So both last together, for
//!   *twice* the set-up and twice the words.
//!
//! The last word arrives [`StreamClocks::flight`] clocks after that: agents and links pass words on
//! one behind the other.
//!
//! Planners, timetables and the cost model all ask here. The checker does not: it has its own
//! formula, so that a fault in this one is found. The fabric's tests hold runs of single streams
//! against it.
//!
//! # What this module does not do
//!
//! Streams that share a link take longer; that is for the cost model and the fabric. Message
//! passing has its own costs.

use crate::ids::CellId;
use crate::machine::{Duplex, Parameters};
use crate::set::{Connection, ConnectionSet};

/// What a stream of a connection costs the agents at its ends, in clocks. Every number is below
/// 2^32, so sums over one stream (words below 2^31) are below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamClocks {
    /// To open it.
    pub setup: u64,
    /// For each word.
    pub word: u64,
    access: u64,
    link: u64,
    /// Whether one agent serves both ends in turn.
    in_turn: bool,
}

impl StreamClocks {
    /// Of streams of a connection on a machine with these parameters.
    pub fn new(parameters: &Parameters, connection: &Connection) -> Self {
        Self::between(parameters, connection.source == connection.target)
    }

    /// Of streams from a cell to itself, or from one cell to another.
    pub fn between(parameters: &Parameters, itself: bool) -> Self {
        let access = u64::from(parameters.access_clocks_per_word);
        let link = u64::from(parameters.link_clocks_per_word);
        let setup = u64::from(parameters.stream_setup);
        let in_turn = itself && parameters.duplex == Duplex::Half;
        let (setup, word) = match (itself, in_turn) {
            (true, true) => (2 * setup, 2 * access),
            (true, false) => (setup, access),
            (false, _) => (setup, access.max(link)),
        };
        Self { setup, word, access, link, in_turn }
    }

    /// Clocks for which a stream of so many words keeps its agents busy: the length of its slot.
    /// (Paper, section 4.4.2: the duration `d_c`.)
    pub fn of(&self, words: u32) -> u64 {
        self.setup + u64::from(words) * self.word
    }

    /// The most words for which a stream takes no longer than so many clocks.
    pub fn words_in(&self, clocks: u64) -> u32 {
        let words = clocks.saturating_sub(self.setup) / self.word.max(1);
        u32::try_from(words).unwrap_or(u32::MAX)
    }

    /// Clocks from when a stream's agents are done with all words but those on their way until the
    /// last word is received, over so many links. A word goes through the agent of the source,
    /// each link and the agent of the target, of which the slowest is counted in
    /// [`StreamClocks::of`]. An agent that serves both ends in turn is done with its last word.
    pub fn flight(&self, hops: usize) -> u64 {
        if self.in_turn {
            return 0;
        }
        let slowest = if hops > 0 { self.access.max(self.link) } else { self.access };
        2 * self.access + hops as u64 * self.link - slowest
    }

    /// Clocks from the opening of a stream that has agents and links to itself until its last word
    /// is received, over so many links.
    pub fn until_received(&self, words: u32, hops: usize) -> u64 {
        self.of(words) + self.flight(hops)
    }
}

impl Duplex {
    /// The ports that streams from one cell to another keep busy: of the source, of the target. An
    /// agent has one port for each direction; with half duplex a single one, so that both are equal
    /// for a connection from a cell to itself. Below [`Duplex::port_count`].
    pub fn ports(self, source: CellId, target: CellId) -> [u32; 2] {
        match self {
            Duplex::Full => [2 * source.0, 2 * target.0 + 1],
            Duplex::Half => [source.0, target.0],
        }
    }

    /// The ports of so many cells.
    pub fn port_count(self, cells: usize) -> usize {
        match self {
            Duplex::Full => 2 * cells,
            Duplex::Half => cells,
        }
    }
}

impl Parameters {
    /// Clocks for which a stream of so many words keeps *one end* busy at least, however fast its
    /// links are: what adds up at an agent, end by end. An agent that serves both ends of a
    /// connection to itself in turn has both in its sum.
    pub fn end_clocks(&self, words: u32) -> u64 {
        u64::from(self.stream_setup) + u64::from(words) * u64::from(self.access_clocks_per_word)
    }

    /// Streams at full rate that a link carries at a time.
    pub fn streams_per_link(&self) -> u32 {
        (self.access_clocks_per_word / self.link_clocks_per_word.max(1)).max(1)
    }

    /// Clocks that each word takes the agents of a stream from one cell to another.
    pub fn word_clocks(&self) -> u64 {
        StreamClocks::between(self, false).word
    }

    /// Clocks of the longest of a set's connections as one stream; 0 for an empty set.
    pub fn longest_stream(&self, set: &ConnectionSet) -> u64 {
        let clocks = |c: &Connection| StreamClocks::new(self, c).of(c.words);
        set.connections().iter().map(clocks).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(parameters: &Parameters) -> [u64; 2] {
        [1, 0].map(|to| {
            let connection = Connection::new(CellId(0), CellId(to), 133);
            StreamClocks::new(parameters, &connection).of(connection.words)
        })
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
    fn half_duplex_serves_both_ends_of_a_connection_to_itself_in_turn() {
        let fem = Parameters { stream_setup: 7, ..Parameters::iwarp_fem() };
        assert_eq!(durations(&fem), [1337, 2674]);
        let itself = StreamClocks::between(&fem, true);
        assert_eq!((itself.flight(0), itself.until_received(133, 0)), (0, 2674));
        assert_eq!(StreamClocks::between(&fem, false).flight(3), 2 * 10 + 3 * 2 - 10);
        assert_eq!(fem.end_clocks(133), 1337);
    }

    #[test]
    fn as_many_words_fit_as_take_no_longer() {
        let fem = Parameters { stream_setup: 7, ..Parameters::iwarp_fem() };
        for itself in [false, true] {
            let stream = StreamClocks::between(&fem, itself);
            for clocks in [0, 7, 14, 100, 12_345] {
                let words = stream.words_in(clocks);
                assert!(words == 0 || stream.of(words) <= clocks);
                assert!(stream.of(words + 1) > clocks);
            }
            assert_eq!(stream.words_in(u64::MAX), u32::MAX);
        }
    }

    #[test]
    fn the_longest_stream_of_a_set_need_not_have_the_most_words() {
        let fem = Parameters { stream_setup: 7, ..Parameters::iwarp_fem() };
        let connect = |to, words| Connection::new(CellId(0), CellId(to), words);
        let set = ConnectionSet::new("s", vec![connect(1, 100), connect(0, 60)]).unwrap();
        assert_eq!(fem.longest_stream(&set), 2 * (600 + 7));
        assert_eq!(Parameters::iwarp().longest_stream(&set), 200);
        assert_eq!(fem.longest_stream(&ConnectionSet::new("e", vec![]).unwrap()), 0);
    }
}
