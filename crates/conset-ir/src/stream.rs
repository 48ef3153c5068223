//! The duration of a stream, and the ports of agents that it occupies (machine model, rules 3
//! and 4).
//!
//! A stream carries words of a connection in one phase. While it is open, it occupies the agent at
//! its source and the agent at its target:
//!
//! * Opening it takes `stream_setup` clocks, at both ends in parallel; between two nodes of a cluster,
//!   `network_overhead` more.
//! * Then each word occupies the agents for `access_clocks_per_word`, or for
//!   `link_clocks_per_word` if that is longer: words cannot enter a link faster than it moves them,
//!   and the agents serve no other stream while this one waits. (Other streams could use the
//!   remaining rate of an agent. With `streams` = 1 there are none, and planners and timetables
//!   always plan one stream at a time.)
//! * A connection from a cell to itself crosses no link. With full duplex its two ends are the two
//!   directions of the agent, which work in parallel. With half duplex they share the agent: it
//!   opens two streams and handles every word twice, once to send it and once to receive it, since
//!   the channel between the ends holds only `channel_depth` words. Both ends therefore take
//!   *twice* the set-up and twice the clocks per word.
//!
//! The last word arrives [`StreamClocks::pipeline_latency`] clocks later, because agents and links
//! form a pipeline.
//!
//! Planners, timetables and the cost model use this module. The checker has its own formula, so
//! that it finds a mistake in this one. Tests of the fabric compare runs of single streams with it.
//!
//! # What this module does not do
//!
//! Streams that share a link take longer, which the cost model and the fabric determine. Message
//! passing has its own costs.

use crate::convert::to_u64;
use crate::ids::CellId;
use crate::machine::{Duplex, Parameters};
use crate::set::{Connection, ConnectionSet};

/// The clocks for which a stream of a connection occupies the agents at its ends.
///
/// The two public fields are to read; only the constructors make a value. Every number is below
/// 2^32, so sums over one stream (with fewer than 2^31 words) are below 2^63.
///
/// ```
/// use conset_ir::{CellId, Connection, Parameters, StreamClocks};
///
/// let connection = Connection::new(CellId(0), CellId(1), 133);
/// let clocks = StreamClocks::new(&Parameters::iwarp(), &connection);
/// assert_eq!(clocks.of(133), 2 * 133);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamClocks {
    /// Clocks to open the stream.
    pub setup: u64,
    /// Clocks for each word.
    pub word: u64,
    access: u64,
    link: u64,
    /// Whether one agent alternates between both ends.
    alternates: bool,
}

impl StreamClocks {
    /// The clocks of a stream of a connection on a machine with these parameters.
    pub fn new(parameters: &Parameters, connection: &Connection) -> Self {
        Self::between(parameters, connection.source == connection.target)
    }

    /// The clocks of a stream from a cell to itself (`itself`) or from one cell to another.
    pub fn between(parameters: &Parameters, itself: bool) -> Self {
        let access = u64::from(parameters.access_clocks_per_word);
        let link = u64::from(parameters.link_clocks_per_word);
        let setup = u64::from(parameters.stream_setup);
        let alternates = itself && parameters.duplex == Duplex::Half;
        let (setup, word) = match (itself, alternates) {
            (true, true) => (2 * setup, 2 * access),
            (true, false) => (setup, access),
            (false, _) => (setup, access.max(link)),
        };
        Self { setup, word, access, link, alternates }
    }

    /// The same stream between two nodes of a cluster: it takes `overhead` clocks more to open, and
    /// each word `link` clocks over the slowest link.
    pub fn between_nodes(self, overhead: u64, link: u64) -> Self {
        let (setup, word) = (self.setup + overhead, self.access.max(link));
        Self { setup, word, link, ..self }
    }

    /// Clocks for which a stream of `words` words occupies its agents: the duration of its slot
    /// (paper, section 4.4.2: `d_c`).
    pub fn of(&self, words: u32) -> u64 {
        self.setup + u64::from(words) * self.word
    }

    /// The greatest number of words for which a stream takes at most `clocks` clocks.
    pub fn words_in(&self, clocks: u64) -> u32 {
        let words = clocks.saturating_sub(self.setup) / self.word.max(1);
        u32::try_from(words).unwrap_or(u32::MAX)
    }

    /// Clocks from the end of the slot ([`StreamClocks::of`]) until the last word is received, over
    /// a route of `hops` links. A word passes the agent of the source, each link and the agent of
    /// the target; `of` includes the slowest of these. An agent that alternates between both ends
    /// has received the last word at the end of the slot.
    pub fn pipeline_latency(&self, hops: usize) -> u64 {
        if self.alternates {
            return 0;
        }
        let slowest = if hops > 0 { self.access.max(self.link) } else { self.access };
        2 * self.access + to_u64(hops) * self.link - slowest
    }

    /// Clocks from the opening of a stream that shares no agent or link until its last word is
    /// received, over a route of `hops` links.
    pub fn until_received(&self, words: u32, hops: usize) -> u64 {
        self.of(words) + self.pipeline_latency(hops)
    }
}

impl Duplex {
    /// The ports that a stream from `source` to `target` occupies: that of the source and that of
    /// the target. An agent has one port for each direction, or a single one with half duplex; a
    /// connection from a cell to itself then has the same port twice. Ports are numbered below
    /// [`Duplex::port_count`].
    pub fn ports(self, source: CellId, target: CellId) -> [u32; 2] {
        match self {
            Duplex::Full => [2 * source.0, 2 * target.0 + 1],
            Duplex::Half => [source.0, target.0],
        }
    }

    /// The number of ports of `cells` cells.
    pub fn port_count(self, cells: usize) -> usize {
        match self {
            Duplex::Full => 2 * cells,
            Duplex::Half => cells,
        }
    }
}

impl Parameters {
    /// The least clocks for which a stream of `words` words occupies *one end*, however fast its
    /// links are. The sum over the ends at an agent is a lower bound; an agent that alternates
    /// between both ends of a connection to itself counts both.
    pub fn end_clocks(&self, words: u32) -> u64 {
        u64::from(self.stream_setup) + u64::from(words) * u64::from(self.access_clocks_per_word)
    }

    /// The capacity of a link: the number of streams at full rate that it carries at a time.
    pub fn streams_per_link(&self) -> u32 {
        (self.access_clocks_per_word / self.link_clocks_per_word.max(1)).max(1)
    }

    /// Clocks for which each word of a stream from one cell to another occupies the agents.
    pub fn word_clocks(&self) -> u64 {
        StreamClocks::between(self, false).word
    }

    /// The duration of the longest connection of a set as one stream; 0 for an empty set.
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
    fn a_half_duplex_agent_alternates_between_both_ends_of_a_connection_to_itself() {
        let fem = Parameters { stream_setup: 7, ..Parameters::iwarp_fem() };
        assert_eq!(durations(&fem), [1337, 2674]);
        let itself = StreamClocks::between(&fem, true);
        assert_eq!((itself.pipeline_latency(0), itself.until_received(133, 0)), (0, 2674));
        assert_eq!(StreamClocks::between(&fem, false).pipeline_latency(3), 2 * 10 + 3 * 2 - 10);
        assert_eq!(fem.end_clocks(133), 1337);
    }

    #[test]
    fn words_in_is_the_inverse_of_the_duration() {
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
