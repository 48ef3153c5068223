//! Pathways: how messages acquire and release channels.
//!
//! A header acquires the channel of its pool on the next link of its route when that is free; until
//! then it waits in the channel's queue, in order of arrival. A channel is released when the tail
//! has left it; the first waiting header acquires it in the same clock. A header that has reached
//! its target waits in the receiver's queue. The queues are linked lists through the channels that
//! the headers occupy, because no header waits in two queues.

use conset_ir::convert::index;
use conset_ir::{Direction, LinkId, Protocol};

use super::agents::{SenderState, WaitQueue};
use super::engine::{Message, MessageEngine};
use crate::network::NONE;

/// A message from its submission to its reception.
#[derive(Clone, Debug)]
pub(crate) struct Worm {
    pub(crate) message: Message,
    /// Number of words, including the extra ones; at least 1, the header.
    pub(crate) length: u32,
    /// The channels after the launch channel.
    pub(crate) route: Vec<u32>,
    /// Number of channels of the route that its header has acquired.
    pub(crate) hops: usize,
    /// The channel of its header; `NONE` before the launch and during the reception.
    pub(crate) head: u32,
    /// When its header arrived at the target's cell; 0 before that.
    pub(crate) arrived: u64,
    pub(crate) live: bool,
}

/// The message that holds a channel and those that wait for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathwayChannel {
    /// The message that holds it.
    pub(crate) owner: u32,
    /// Channels whose headers wait for this one.
    pub(crate) waiters: WaitQueue,
    /// The next channel in the queue in which this channel waits.
    pub(crate) next_waiter: u32,
}

impl MessageEngine {
    /// The link that feeds a channel, and the link's client that forwards to it.
    pub(crate) fn client(&self, row: u32) -> (u32, u32) {
        let pool = row % self.router.pools;
        (row / self.router.pools, pool)
    }

    /// The cell of a channel.
    pub(crate) fn cell_of(&self, row: u32) -> u32 {
        if row >= self.launch {
            row - self.launch
        } else {
            self.base.machine.link(LinkId(row / self.router.pools)).target.0
        }
    }

    /// Advances the header of a message, which is in channel `row`, or makes it wait.
    pub(crate) fn route_header(&mut self, row: u32, number: u32) {
        self.base.detector.reset();
        let worm = &self.worms[index(number)];
        match worm.route.get(worm.hops) {
            Some(&next) if self.channels[index(next)].owner == NONE => {
                self.acquire_channel(row, next, number);
            }
            Some(&next) => {
                let mut queue = self.channels[index(next)].waiters;
                self.enqueue(&mut queue, row);
                self.channels[index(next)].waiters = queue;
            }
            None => {
                let cell = worm.message.target.0;
                self.worms[index(number)].arrived = self.base.now;
                if self.protocol == Protocol::Rendezvous {
                    return self.start_receiving(cell, row, number);
                }
                let mut queue = self.agents[index(cell)].arrivals;
                self.enqueue(&mut queue, row);
                self.agents[index(cell)].arrivals = queue;
                self.start_software(cell);
            }
        }
    }

    /// A message whose header is in channel `row` acquires the free channel `next`.
    fn acquire_channel(&mut self, row: u32, next: u32, number: u32) {
        self.channels[index(next)].owner = number;
        let worm = &mut self.worms[index(number)];
        worm.hops += 1;
        let last = worm.length - 1;
        self.base.network.connect(row, self.client(next), next, last);
    }

    /// Releases channel `row`, which the tail of a message has left.
    pub(crate) fn release_channel(&mut self, row: u32) {
        self.base.detector.reset();
        if row >= self.launch {
            let cell = row - self.launch;
            let agent = &mut self.agents[index(cell)];
            if self.protocol == Protocol::Rendezvous {
                agent.sending = SenderState::Handed;
                return;
            }
            agent.sending = SenderState::Idle;
            let (number, start) = (agent.sent, agent.send_start);
            self.push_event(Direction::Send, number, start);
            return self.start_software(cell);
        }
        self.channels[index(row)].owner = NONE;
        if self.base.network.queued(row) > 0 {
            // Only with faults.
            self.notice_stray_word(row);
            return;
        }
        let mut queue = self.channels[index(row)].waiters;
        if let Some(first) = self.dequeue(&mut queue) {
            self.channels[index(row)].waiters = queue;
            let tag = self.base.network.head(first).expect("a header waits in it");
            self.acquire_channel(first, row, tag.stream());
        }
    }

    /// Appends channel `row` to a queue.
    fn enqueue(&mut self, queue: &mut WaitQueue, row: u32) {
        self.channels[index(row)].next_waiter = NONE;
        match queue.tail {
            NONE => queue.head = row,
            last => self.channels[index(last)].next_waiter = row,
        }
        queue.tail = row;
    }

    /// Removes the first channel of a queue.
    pub(crate) fn dequeue(&mut self, queue: &mut WaitQueue) -> Option<u32> {
        let first = queue.head;
        if first == NONE {
            return None;
        }
        queue.head = self.channels[index(first)].next_waiter;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        Some(first)
    }
}
