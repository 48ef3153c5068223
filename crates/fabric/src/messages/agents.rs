//! The agents of the message-passing machine: one sender and one receiver per cell.
//!
//! The rules (paper, sections 3.1 and 4.3; machine model, rule 7), with full duplex:
//!
//! * **Sending** is a background task. The sender takes its cell's messages in order: `c_send` clocks
//!   of software, then it spools the words into the launch channel, one per
//!   `access_clocks_per_word` while there is space. The next message waits until the tail of this
//!   one has left the cell.
//! * **Receiving** is serial. The receiver takes the message whose header arrived first: `c_receive`
//!   clocks of software, *while the message waits in the network* and holds its channels, then it
//!   spools one word per `access_clocks_per_word` while there is one. It receives only as many
//!   messages as the driver allows.
//! * **One processor** runs the software of both; the spools work in the background. So a cell's
//!   launches and receptions overlap in their words but never in their software: "overlapping of
//!   sending and receiving can at best reduce the message passing time by one transfer time"
//!   (4.3.1), and the paper's predictions add both overheads. The processor is not preempted; if it
//!   can start either, a launch has priority, because an event handler performs it.
//!
//! With half duplex (the FEM loops, section 5.2) the processor has more to do:
//!
//! * "The data is copied to a buffer before sending rather than transferred directly": a launch
//!   takes `c_send` and one link time for each word copied. The buffer is spooled out in the
//!   background at the rate of the link.
//! * "The receiver actively receives and processes messages in the foreground": from `c_receive`
//!   to the last word, at one word per `access_clocks_per_word`, the processor does nothing else.
//!
//! With the degrees and words of the paper's Table 4, these costs reproduce its four predictions for
//! the finite element meshes (Table 6) within 2 % ([`super::predict`]).
//!
//! The agents cannot cause a deadlock: a message whose reception has started holds all its channels,
//! and the background sender fills them.

use std::collections::VecDeque;

use conset_ir::{CellId, Direction};

use crate::network::NONE;

/// A first-in, first-out queue of channels, linked through `PathwayChannel::next_waiter`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitQueue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl WaitQueue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// The state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SenderState {
    Idle,
    /// The software of a launch runs.
    Software,
    /// A word is on its way into the channel.
    Word,
    /// The channel is full.
    Full,
    /// All words are in the channel; the tail has not left it.
    Leaving,
    /// The tail has left the cell and has not been received; only under rendezvous.
    Handed,
}

/// The state of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiverState {
    Idle,
    /// The software of a reception runs. Under rendezvous also: the header has not arrived.
    Software,
    /// A word is being received.
    Word,
    /// The channel is empty.
    Empty,
}

/// The message-passing agent of a cell.
#[derive(Clone, Debug)]
pub(crate) struct MessageAgent {
    pub(crate) sending: SenderState,
    pub(crate) receiving: ReceiverState,
    /// The messages being sent and received, and when their software started.
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) send_start: u64,
    pub(crate) receive_start: u64,
    /// When the last software of the cell ended.
    pub(crate) free_since: u64,
    /// Indices of the next word to send and of the next word to deliver.
    pub(crate) send_next: u32,
    pub(crate) receive_next: u32,
    /// The channel from which the receiver takes words.
    pub(crate) receive_row: u32,
    /// The word being received: its message and its index.
    pub(crate) taken: (u32, u32),
    /// The first word of the message being received that came in the place of another one: its place, its message and
    /// its index; only with faults.
    pub(crate) misplaced: Option<(u32, u32, u32)>,
    /// Messages to send after `sent`.
    pub(crate) pending: VecDeque<u32>,
    /// Channels in which a header waits for the receiver.
    pub(crate) arrivals: WaitQueue,
    /// Number of messages that the cell may still receive.
    pub(crate) to_receive: u64,
    /// Sources of further messages that it may receive; only under rendezvous.
    pub(crate) receive_from: Vec<CellId>,
    /// Messages for the cell that have not started, in the order of their announcement, and whether
    /// the cell's own first pending message is announced; only under rendezvous.
    pub(crate) announcements: VecDeque<u32>,
    pub(crate) announced: bool,
    /// Whether the sender, and the receiver, has a word to move when a stall or rest is over; only with faults.
    pub(crate) held_back: [bool; 2],
}

impl MessageAgent {
    pub(crate) fn new() -> Self {
        Self {
            sending: SenderState::Idle,
            receiving: ReceiverState::Idle,
            sent: NONE,
            received: NONE,
            send_start: 0,
            receive_start: 0,
            free_since: 0,
            send_next: 0,
            receive_next: 0,
            receive_row: NONE,
            taken: (NONE, 0),
            misplaced: None,
            pending: VecDeque::new(),
            arrivals: WaitQueue::EMPTY,
            to_receive: 0,
            receive_from: Vec::new(),
            announcements: VecDeque::new(),
            announced: false,
            held_back: [false; 2],
        }
    }

    /// Whether a message may start in a direction under rendezvous.
    pub(crate) fn is_free(&self, direction: Direction, half_duplex: bool) -> bool {
        let sends = self.sending == SenderState::Idle;
        let receives = self.receiving == ReceiverState::Idle;
        match direction {
            _ if half_duplex => sends && receives,
            Direction::Send => sends,
            Direction::Receive => receives,
        }
    }

    /// Whether the cell may receive a message of this source under rendezvous.
    pub(crate) fn receives_from(&self, source: CellId) -> bool {
        self.to_receive > 0 || self.receive_from.contains(&source)
    }

    /// Records that a message of this source is received.
    pub(crate) fn count_received(&mut self, source: CellId) {
        match self.receive_from.iter().position(|&from| from == source) {
            Some(place) => drop(self.receive_from.remove(place)),
            None => self.to_receive -= 1,
        }
    }

    /// Whether a launch may start. With half duplex, receiving occupies the processor up to the last
    /// word.
    pub(crate) fn can_send(&self, half_duplex: bool) -> bool {
        let free = match self.receiving {
            ReceiverState::Idle => true,
            ReceiverState::Software => false,
            ReceiverState::Word | ReceiverState::Empty => !half_duplex,
        };
        self.sending == SenderState::Idle && free && !self.pending.is_empty()
    }

    /// Whether a reception may start.
    pub(crate) fn can_receive(&self) -> bool {
        self.receiving == ReceiverState::Idle
            && self.sending != SenderState::Software
            && self.to_receive > 0
            && self.arrivals.head != NONE
    }
}
