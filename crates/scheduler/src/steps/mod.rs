//! Planners of steps: exchanges by messages, for machines without tables.
//!
//! One family of planners, [`Levels`]: cells are numbered in a mixed radix. In each level, a cell
//! exchanges messages with those cells whose number differs from its own in one digit, and a piece
//! of a connection goes to the cell that agrees with its target in that digit. All pieces between
//! the same two cells in a level are one message, so more levels send fewer and longer messages. A
//! [`StepOrder`] arranges the messages of a level in steps. The known algorithms are instances
//! (R. Ponnusamy, R. Thakur, A. Choudhary, G. Fox: Experimental performance evaluation of the CM-5,
//! 1993):
//!
//! | algorithm | radices | order |
//! |---|---|---|
//! | linear exchange LEX, LS | one level | linear |
//! | pairwise exchange PEX, PS | one level | pairwise |
//! | balanced exchange BEX, BS | one level | balanced |
//! | greedy scheduling GS | one level | greedy |
//! | recursive exchange REX | 2, 2, .., 2 | pairwise |
//! | rows, then columns | rows, columns | any |
//!
//! The number of cells need not be the product of the radices: the pieces of a cell that does not
//! exist are at the last cell that does, which agrees with their target in all digits so far.
//!
//! Connections that are ordered after others are planned after them, in steps of their own.

mod bound;
mod greedy;
mod levels;
mod links;
mod loaded;
mod order;
mod rendezvous;
mod standing;

use conset_ir::{CellId, Duplex, LinkId, Machine, Protocol, Steps};

pub use bound::{least_clocks, least_clocks_direct};
pub use levels::{Levels, factorisations};
pub use order::StepOrder;

/// The links of a message from one cell to another, appended to a list; they depend on the machine's
/// way of routing messages.
pub type MessageRoute<'a> = dyn FnMut(CellId, CellId, &mut Vec<LinkId>) + 'a;

/// Predicts the clocks of a step plan: the end of its last message.
///
/// A message holds all links of its route from the clock at which all are free until its tail has
/// passed. With `Rendezvous`, a message starts when it is next in the lists of both cells, and both
/// are busy with the software of both and with the words. With `Standing`, cells launch in the order
/// of their lists and receive in the order of arrival, as on the emulated fabric.
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

/// What messages cost on a machine, in clocks.
#[derive(Clone, Copy, Debug)]
struct MessageCosts {
    protocol: Protocol,
    half_duplex: bool,
    send: u64,
    receive: u64,
    link: u64,
    access: u64,
    /// For each word: the rate of agents or links, whichever is slower.
    rate: u64,
    extra_words: u64,
}

impl MessageCosts {
    fn new(machine: &Machine, protocol: Protocol) -> Self {
        let p = machine.parameters();
        let (link, access) =
            (u64::from(p.link_clocks_per_word), u64::from(p.access_clocks_per_word));
        Self {
            protocol,
            half_duplex: p.duplex == Duplex::Half,
            send: p.c_send.into(),
            receive: p.c_receive.into(),
            link,
            access,
            rate: link.max(access),
            extra_words: p.message_extra_words.into(),
        }
    }

    /// The words of a message, with its header and trailer, at the rate of agents or links.
    fn words(&self, words: u64) -> u64 {
        (words + self.extra_words) * self.rate
    }

    /// Clocks from the start of a message to its first word on a link, and to its end.
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
