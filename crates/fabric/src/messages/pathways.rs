//! Pathways: how a message takes channels, one after the other, and gives them back.
//!
//! A header takes the channel of its pool on the next link of its route as soon as that is free,
//! and stands in line for it, in order of arrival, until then. A channel is given back when the
//! tail has left its queue; the first header in its line takes it in the same clock. A header that
//! has come to its target stands in the receiver's line. All lines are linked through the channels
//! that the headers are in, since no header waits for two things.

use conset_ir::{Direction, LinkId};

use super::agents::{Queue, Sending};
use super::engine::{Message, MessageEngine};
use crate::network::NONE;

/// A message under way.
#[derive(Clone, Debug)]
pub(crate) struct Worm {
    pub(crate) message: Message,
    /// All words, the extra ones included; at least the header.
    pub(crate) length: u32,
    /// The channels after the one it is launched from.
    pub(crate) route: Vec<u32>,
    /// How many of them its header has been given.
    pub(crate) hops: usize,
    /// The channel its header is in; `NONE` before the launch and while it is received.
    pub(crate) head: u32,
    pub(crate) live: bool,
}

/// What a channel is to messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The message that holds it.
    pub(crate) owner: u32,
    /// Channels whose headers wait for it.
    pub(crate) line: Queue,
    /// The channel behind this one in the line that this one stands in.
    pub(crate) after: u32,
}

impl MessageEngine {
    /// The link to a channel, and which of its clients leads there.
    pub(crate) fn client(&self, row: u32) -> (u32, u16) {
        (row / self.router.pools, (row % self.router.pools) as u16)
    }

    /// The cell that a channel is on.
    pub(crate) fn cell_of(&self, row: u32) -> u32 {
        if row >= self.launch {
            row - self.launch
        } else {
            self.base.machine.link(LinkId(row / self.router.pools)).target.0
        }
    }

    /// The header of a message is in channel `row` and wants to go on.
    pub(crate) fn header(&mut self, row: u32, number: u32) {
        self.base.watch.disturb();
        let worm = &self.worms[number as usize];
        match worm.route.get(worm.hops) {
            Some(&next) if self.slots[next as usize].owner == NONE => self.join(row, next, number),
            Some(&next) => {
                let mut line = self.slots[next as usize].line;
                self.stand(&mut line, row);
                self.slots[next as usize].line = line;
            }
            None => {
                let cell = worm.message.target.0;
                let mut line = self.agents[cell as usize].arrivals;
                self.stand(&mut line, row);
                self.agents[cell as usize].arrivals = line;
                self.attend(cell);
            }
        }
    }

    /// A message takes a free channel.
    pub(crate) fn join(&mut self, row: u32, next: u32, number: u32) {
        self.slots[next as usize].owner = number;
        let worm = &mut self.worms[number as usize];
        worm.hops += 1;
        let last = worm.length - 1;
        self.base.network.connect(row, self.client(next), next, last);
    }

    /// The tail of a message has left channel `row`.
    pub(crate) fn release(&mut self, row: u32) {
        self.base.watch.disturb();
        if row >= self.launch {
            let cell = row - self.launch;
            let agent = &mut self.agents[cell as usize];
            agent.sending = Sending::Nothing;
            let (number, began) = (agent.sent, agent.send_began);
            self.tell(Direction::Send, number, began);
            return self.attend(cell);
        }
        self.slots[row as usize].owner = NONE;
        let mut line = self.slots[row as usize].line;
        if let Some(first) = self.leave(&mut line) {
            self.slots[row as usize].line = line;
            let tag = self.base.network.head(first).expect("its header waits in it");
            self.join(first, row, tag.stream());
        }
    }

    /// Channel `row` joins a line.
    pub(crate) fn stand(&mut self, line: &mut Queue, row: u32) {
        self.slots[row as usize].after = NONE;
        match line.tail {
            NONE => line.head = row,
            last => self.slots[last as usize].after = row,
        }
        line.tail = row;
    }

    /// Takes the first channel out of a line.
    pub(crate) fn leave(&mut self, line: &mut Queue) -> Option<u32> {
        let first = line.head;
        if first == NONE {
            return None;
        }
        line.head = self.slots[first as usize].after;
        if line.head == NONE {
            line.tail = NONE;
        }
        Some(first)
    }
}
