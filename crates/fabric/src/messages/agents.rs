//! Agents of the message-passing side: one sender and one receiver per cell.
//!
//! The rules (paper, sections 3.1 and 4.3; machine model, rule 7), with full duplex:
//!
//! * **Sending** is a background task. The sender takes its cell's messages one after the other:
//!   `c_send` clocks of software, then it spools the words into the channel it launches from, one
//!   each `access_clocks_per_word` where there is room. The next message has to wait until the
//!   tail of this one has left the cell.
//! * **Receiving** is serial. The receiver takes the message whose header arrived first: `c_receive`
//!   clocks of software, *while the message stands in the network* and holds its channels, then
//!   it spools one word each `access_clocks_per_word` where there is one. It receives only as
//!   often as it is asked to.
//! * **One processor** runs the software of both; the spooling is done for it. So a cell's launches
//!   and receptions overlap in their words but never in their software: "overlapping of sending
//!   and receiving can at best reduce the message passing time by one transfer time" (4.3.1), and
//!   the paper's predictions add both overheads up. What the processor has begun it finishes; of
//!   what it can begin, a launch goes first, as it is an event's handler.
//!
//! With half duplex (the FEM loops, section 5.2) the processor does more:
//!
//! * "The data is copied to a buffer before sending rather than transferred directly": a launch
//!   takes it `c_send` and one link time for each word copied. The buffer is spooled out in the
//!   background at the rate of the link.
//! * "The receiver actively receives and processes messages in the foreground": from `c_receive`
//!   to the last word, one word each `access_clocks_per_word`, the processor is at nothing else.
//!
//! These costs give the paper's four predictions for the finite element meshes (Table 6) within
//! 2 % from the degrees and words of its Table 4 ([`super::predict`]).
//!
//! Nothing here can deadlock by itself: a message whose reception has begun holds all its
//! channels and is put into them by the background sender.

use std::collections::VecDeque;

use crate::network::NONE;

/// A first-come-first-served queue of channels, linked through `Slot::after`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// What a sender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Nothing,
    /// The software of a launch.
    Software,
    /// A word is on its way into the channel.
    Word,
    /// The channel is full.
    Full,
    /// All words are in the channel; the tail has not left it.
    Leaving,
}

/// What a receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    Nothing,
    /// The software of a reception.
    Software,
    /// A word is being taken out.
    Word,
    /// The channel is empty.
    Empty,
}

/// The message-passing side of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// The messages that are sent and received, and since when.
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) send_began: u64,
    pub(crate) receive_began: u64,
    /// Places of the next word to send and of the next to deliver.
    pub(crate) send_next: u32,
    pub(crate) receive_next: u32,
    /// The channel received from.
    pub(crate) receive_row: u32,
    /// The word being taken out: its message and its place in it.
    pub(crate) taken: (u32, u32),
    /// Messages to send after this one.
    pub(crate) pending: VecDeque<u32>,
    /// Channels in which a header waits for the receiver.
    pub(crate) arrivals: Queue,
    /// Messages that the cell still asks for.
    pub(crate) wanted: u64,
}

impl Agent {
    pub(crate) fn new() -> Self {
        Self {
            sending: Sending::Nothing,
            receiving: Receiving::Nothing,
            sent: NONE,
            received: NONE,
            send_began: 0,
            receive_began: 0,
            send_next: 0,
            receive_next: 0,
            receive_row: NONE,
            taken: (NONE, 0),
            pending: VecDeque::new(),
            arrivals: Queue::EMPTY,
            wanted: 0,
        }
    }

    /// Whether a launch may begin; `half`: receiving takes the processor to the last word.
    pub(crate) fn can_send(&self, half: bool) -> bool {
        let free = match self.receiving {
            Receiving::Nothing => true,
            Receiving::Software => false,
            Receiving::Word | Receiving::Empty => !half,
        };
        self.sending == Sending::Nothing && free && !self.pending.is_empty()
    }

    /// Whether a reception may begin.
    pub(crate) fn can_receive(&self) -> bool {
        self.receiving == Receiving::Nothing
            && self.sending != Sending::Software
            && self.wanted > 0
            && self.arrivals.head != NONE
    }
}
