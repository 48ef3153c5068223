//! Planners of steps: exchanges by messages, for machines without tables.
//!
//! One family of planners, [`Levels`]: in each level, a cell exchanges messages with some others, and
//! all pieces of connections between the same two cells are one message. So more levels send fewer and
//! longer messages. A planner ([`LevelsSpec`]) has three parts:
//!
//! * a *route* of pieces ([`PieceRoute`]), in a mixed radix, by halves or by nodes: in which levels pieces go
//!   from their sources to their targets;
//! * a *numbering* of the cells ([`Numbering`]): which cells have digits in common;
//! * an *order* ([`StepOrder`]), which arranges the messages of a level in steps.
//!
//! The known algorithms are instances. The first are those of R. Ponnusamy, R. Thakur, A. Choudhary,
//! G. Fox: Experimental performance evaluation of the CM-5, 1993; the others, for a mesh of 16 by 16
//! cells, those of S. Hambrusch, F. Hameed, A. Khokhar: C3, section 4 (module `c3`).
//!
//! | algorithm | planner |
//! |---|---|
//! | linear exchange LEX, LS | one level, linear |
//! | pairwise exchange PEX, PS; 1-lev-perm by exclusive-or | one level, pairwise |
//! | balanced exchange BEX, BS; 1-lev-perm by balanced permutations | one level, balanced |
//! | 1-lev-perm by linear permutations | one level, ring |
//! | greedy scheduling GS | one level, greedy |
//! | recursive exchange REX | radices 2, 2, .., 2, pairwise |
//! | one-to-all 2-lev-rec, all-to-all 2-lev-r,c | `levels:16x16/rows` |
//! | one-to-all 3-lev-sq | `levels:16x4x4/tiles` |
//! | one-to-all logp-lev-sq, logp-lev-rec(0.75) | `halves`, `halves:0.75` |
//! | all-to-one of these | the same with `/inverse` |
//! | all-to-all 2-lev-sq | `levels:16x16/tiles/s1d1,d1s1` |
//! | all-to-all logp-lev-bfly | `halves/pairwise` |
//!
//! Pieces are moved and not copied, so a broadcast is no route. Algorithm 1-lev-our-br of C3, which
//! broadcasts all words to all cells, is the plan of another set: each edge of a binomial tree is a
//! connection of all words, ordered after the edge above it (pattern `broadcast-tree`).
//!
//! Any number of cells can have any radices whose product is no less.
//!
//! Connections that are ordered after others are planned after them, in steps of their own.

mod bound;
mod greedy;
mod halves;
mod levels;
mod links;
mod loaded;
mod nodes;
mod numbering;
mod order;
mod rendezvous;
mod route;
mod spec;
mod standing;
mod worms;

use conset_ir::{CellId, Duplex, LinkId, Machine, Protocol, Steps, Topology};

pub use bound::{least_clocks, least_clocks_direct};
pub use halves::Share;
pub use levels::{Levels, factorisations};
pub use numbering::Numbering;
pub use order::StepOrder;
pub use route::{PieceRoute, Place, PlaceDigit};
pub use spec::LevelsSpec;

/// The links of a message from one cell to another, appended to a list; they depend on the machine's
/// way of routing messages.
pub type MessageRoute<'a> = dyn FnMut(CellId, CellId, &mut Vec<LinkId>) + 'a;

/// Predicts the clocks of a step plan: the end of its last message.
///
/// With `Rendezvous`, a message starts when it is next in the lists of both cells, and both are busy
/// with the software of both and with the words. It holds all links of its route from the clock at
/// which all are free until its tail has passed. With `Standing`, cells launch in the order of their
/// lists and receive in the order of arrival, as on the emulated fabric, and a header takes the links
/// of its route one by one.
pub fn predict(steps: &Steps, protocol: Protocol, route: &mut MessageRoute<'_>) -> u64 {
    predict_ends(steps, protocol, route).into_iter().max().unwrap_or(0)
}

/// Predicts for each message the clock at which it has been received, as [`predict()`].
pub fn predict_ends(steps: &Steps, protocol: Protocol, route: &mut MessageRoute<'_>) -> Vec<u64> {
    predict_times(steps, protocol, route).into_iter().map(|times| times.received).collect()
}

/// When a message is sent and received, in clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageTimes {
    /// When the software of the sender starts.
    pub send_open: u64,
    /// When its tail has left its source.
    pub sent: u64,
    /// When its header is at its target; under rendezvous the receiver waits for it.
    pub arrived: u64,
    /// When the software of the receiver starts.
    pub receive_open: u64,
    /// When its last word has been received.
    pub received: u64,
}

/// Predicts when each message is sent and received, as [`predict()`].
pub fn predict_times(
    steps: &Steps,
    protocol: Protocol,
    route: &mut MessageRoute<'_>,
) -> Vec<MessageTimes> {
    match protocol {
        Protocol::Rendezvous => rendezvous::times(steps, route),
        Protocol::Standing => standing::times(steps, route),
    }
}

/// The least clocks that a message of `words` takes from its start until it has been received: the
/// software of its ends, and its words with header and trailer.
pub fn message_clocks(machine: &Machine, protocol: Protocol, words: u64) -> u64 {
    let costs = MessageCosts::new(machine, protocol);
    costs.software() + costs.words(words)
}

/// What messages cost on a machine, in clocks.
#[derive(Clone, Copy, Debug)]
struct MessageCosts {
    protocol: Protocol,
    half_duplex: bool,
    send: u64,
    receive: u64,
    link: u64,
    access: u64,
    /// For each word: the rate of agents or the fastest links, whichever is slower.
    rate: u64,
    /// The same of links between two nodes.
    network_rate: u64,
    extra_words: u64,
    /// Clocks at each end of a message between two nodes, and the cells of a node.
    overhead: u64,
    cells_per_node: u32,
}

impl MessageCosts {
    fn new(machine: &Machine, protocol: Protocol) -> Self {
        let p = machine.parameters();
        let [link, slowest] = machine.link_clocks_range().map(u64::from);
        let access = u64::from(p.access_clocks_per_word);
        Self {
            protocol,
            half_duplex: p.duplex == Duplex::Half,
            send: p.c_send.into(),
            receive: p.c_receive.into(),
            link,
            access,
            rate: link.max(access),
            network_rate: slowest.max(access),
            extra_words: p.message_extra_words.into(),
            overhead: match machine.topology() {
                Topology::Cluster { .. } => p.network_overhead.into(),
                _ => 0,
            },
            cells_per_node: match machine.topology() {
                Topology::Cluster { cells_per_node, .. } => *cells_per_node,
                _ => 1,
            },
        }
    }

    /// Clocks of software at each end of a message beyond those of others.
    fn overhead(&self, source: CellId, target: CellId) -> u64 {
        if self.is_inside(source, target) { 0 } else { self.overhead }
    }

    /// As [`MessageCosts::software`], of a message between two cells.
    fn software_of(&self, source: CellId, target: CellId) -> u64 {
        let overhead = self.overhead(source, target);
        self.software()
            + match self.protocol {
                Protocol::Rendezvous => 2 * overhead,
                Protocol::Standing => overhead,
            }
    }

    /// The words of a message within a node, with its header and trailer, at the rate of agents or
    /// links.
    fn words(&self, words: u64) -> u64 {
        (words + self.extra_words) * self.rate
    }

    /// As [`MessageCosts::words`], of a message between two cells.
    fn words_of(&self, source: CellId, target: CellId, words: u64) -> u64 {
        (words + self.extra_words) * self.rate_of(source, target)
    }

    /// Clocks for each word of a message between two cells.
    fn rate_of(&self, source: CellId, target: CellId) -> u64 {
        if self.is_inside(source, target) { self.rate } else { self.network_rate }
    }

    fn is_inside(&self, source: CellId, target: CellId) -> bool {
        source.0 / self.cells_per_node == target.0 / self.cells_per_node
    }

    /// Clocks from the start of a message within a node to its first word on a link, and to its end.
    fn software(&self) -> u64 {
        match self.protocol {
            Protocol::Rendezvous => self.send + self.receive,
            Protocol::Standing => self.send.max(self.receive),
        }
    }

    /// Whether a cell does one thing at a time.
    fn one_at_a_time(&self) -> bool {
        self.protocol == Protocol::Rendezvous || self.half_duplex
    }
}
