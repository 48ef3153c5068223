//! What a cell does for its messages: the software of launches and receptions, and the words that
//! its sender puts into the network and its receiver takes out (rules in `agents`).

use conset_ir::Direction;

use super::agents::{Receiving, Sending};
use super::engine::{MessageEngine, MessageEvent, Timer};
use crate::engine::Payload;
use crate::network::{NONE, Tag};

impl MessageEngine {
    /// A cell begins what it can: a launch, a reception.
    pub(crate) fn attend(&mut self, cell: u32) {
        self.base.watch.disturb();
        let parameters = self.base.machine.parameters();
        if self.agents[cell as usize].can_send(self.half) {
            let agent = &mut self.agents[cell as usize];
            agent.sent = agent.pending.pop_front().expect("a message is pending");
            (agent.sending, agent.send_began, agent.send_next) =
                (Sending::Software, self.base.now, 0);
            let words = u64::from(self.worms[agent.sent as usize].message.words);
            let copy = if self.half { u64::from(parameters.link_clocks_per_word) } else { 0 };
            self.base.set_timer(u64::from(parameters.c_send) + words * copy, Timer::Sent(cell));
        }
        if self.agents[cell as usize].can_receive() {
            let mut line = self.agents[cell as usize].arrivals;
            let row = self.leave(&mut line).expect("a header waits");
            let number = self.base.network.head(row).expect("a header waits").stream();
            self.worms[number as usize].head = NONE;
            let clocks = self.base.machine.parameters().c_receive;
            let agent = &mut self.agents[cell as usize];
            agent.arrivals = line;
            agent.wanted -= 1;
            (agent.receiving, agent.receive_began) = (Receiving::Software, self.base.now);
            (agent.receive_row, agent.received, agent.receive_next) = (row, number, 0);
            self.base.set_timer(u64::from(clocks), Timer::Received(cell));
        }
    }

    pub(crate) fn ring(&mut self, timer: Timer) {
        self.base.watch.disturb();
        match timer {
            Timer::Driver(key) => self.base.rung.push(key),
            Timer::Sent(cell) => {
                self.send_word(cell);
                self.attend(cell);
            }
            Timer::Received(cell) => {
                self.receive_word(cell);
                self.attend(cell);
            }
        }
    }

    /// The sender of a cell puts its next word into the network, if it has one and there is room.
    #[inline]
    pub(crate) fn send_word(&mut self, cell: u32) {
        let agent = &mut self.agents[cell as usize];
        let row = self.launch + cell;
        if agent.send_next == self.worms[agent.sent as usize].length {
            agent.sending = Sending::Leaving;
        } else if self.base.network.has_room(row) {
            self.base.network.put(row, Tag::new(agent.sent, agent.send_next));
            agent.send_next += 1;
            agent.sending = Sending::Word;
            self.putting.push(cell);
        } else {
            agent.sending = Sending::Full;
            self.base.network.wait_for_room(row);
        }
    }

    /// The receiver of a cell takes the next word out of the network, if there is one.
    #[inline]
    pub(crate) fn receive_word(&mut self, cell: u32) {
        let agent = &mut self.agents[cell as usize];
        let row = agent.receive_row;
        if self.base.network.queued(row) == 0 {
            agent.receiving = Receiving::Empty;
            return;
        }
        agent.receiving = Receiving::Word;
        let tag = self.base.network.take(row);
        agent.taken = (tag.stream(), tag.index());
        let last = tag.index() + 1 == self.worms[agent.received as usize].length;
        self.taking.push(cell);
        if last {
            self.release(row);
        }
    }

    /// The word that a receiver has taken out is delivered.
    #[inline]
    pub(crate) fn deliver(&mut self, cell: u32, data: &mut dyn Payload) {
        let extra = self.base.machine.parameters().message_extra_words;
        let agent = &mut self.agents[cell as usize];
        let ((from, word), expected) = (agent.taken, agent.receive_next);
        let number = agent.received;
        agent.receive_next += 1;
        self.wrong_words += u64::from((from, word) != (number, expected));
        let worm = &self.worms[number as usize];
        let (length, to) = (worm.length, worm.message.label);
        if expected >= extra && worm.message.words > 0 {
            self.delivered += 1;
            let from = self.worms[from as usize].message.label;
            data.transfer((from, word.wrapping_sub(extra)), (to, expected - extra));
        }
        if expected + 1 == length {
            self.finish(cell, number);
        }
    }

    pub(crate) fn finish(&mut self, cell: u32, number: u32) {
        let agent = &mut self.agents[cell as usize];
        agent.receiving = Receiving::Nothing;
        let began = agent.receive_began;
        self.tell(Direction::Receive, number, began);
        self.worms[number as usize].live = false;
        self.free.push(number);
        self.unfinished -= 1;
        self.attend(cell);
    }

    pub(crate) fn tell(&mut self, direction: Direction, number: u32, began: u64) {
        let message = self.worms[number as usize].message;
        self.events.push(MessageEvent { direction, message, began });
    }
}
