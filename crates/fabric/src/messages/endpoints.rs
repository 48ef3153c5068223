//! Sending and receiving at a cell: the software of launches and receptions, and the transfer of
//! words between the agent and the network (rules in `agents`).

use conset_ir::convert::index;
use conset_ir::{Direction, Protocol};

use super::agents::{ReceiverState, SenderState};
use super::engine::{MessageEngine, MessageEvent, Timer};
use crate::network::{NONE, Tag};
use crate::payload::Payload;

impl MessageEngine {
    /// Starts the software of a launch, or of a reception, if the cell's processor is free for it.
    pub(crate) fn start_software(&mut self, cell: u32) {
        self.base.detector.reset();
        if self.is_cell_stopped(cell) {
            return;
        }
        if self.protocol == Protocol::Rendezvous {
            return self.rendezvous(cell);
        }
        let parameters = self.base.machine.parameters();
        if self.agents[index(cell)].can_send(self.half_duplex) {
            let agent = &mut self.agents[index(cell)];
            agent.sent = agent.pending.pop_front().expect("a message is pending");
            (agent.sending, agent.send_start, agent.send_next) =
                (SenderState::Software, self.base.now, 0);
            let message = self.worms[index(agent.sent)].message;
            let words = u64::from(message.words) + u64::from(self.check_words);
            let send = u64::from(parameters.c_send)
                + u64::from(self.base.machine.network_overhead(message.source, message.target));
            let copy =
                if self.half_duplex { u64::from(parameters.link_clocks_per_word) } else { 0 };
            self.base.set_timer(send + words * copy, Timer::Launch(cell));
        }
        if self.agents[index(cell)].can_receive() {
            let mut queue = self.agents[index(cell)].arrivals;
            let row = self.dequeue(&mut queue).expect("a header waits");
            let number = self.base.network.head(row).expect("a header waits").stream();
            self.worms[index(number)].head = NONE;
            let message = self.worms[index(number)].message;
            let machine = &self.base.machine;
            let clocks = u64::from(machine.parameters().c_receive)
                + u64::from(machine.network_overhead(message.source, message.target));
            let agent = &mut self.agents[index(cell)];
            // A cell that polls finds the message at its next poll.
            let free = self.base.now - agent.free_since;
            let wait = if self.poll == 0 { 0 } else { free.next_multiple_of(self.poll) - free };
            agent.arrivals = queue;
            agent.to_receive -= 1;
            (agent.receiving, agent.receive_start) = (ReceiverState::Software, self.base.now);
            (agent.receive_row, agent.received, agent.receive_next) = (row, number, 0);
            self.base.set_timer(wait + clocks, Timer::Reception(cell));
        }
    }

    pub(crate) fn handle_timer(&mut self, timer: Timer) {
        self.base.detector.reset();
        match timer {
            Timer::Driver(key) => self.base.expired.push(key),
            Timer::Launch(cell) => {
                self.agents[index(cell)].free_since = self.base.now;
                self.send_word(cell);
                self.start_software(cell);
            }
            Timer::Reception(cell) => {
                self.agents[index(cell)].free_since = self.base.now;
                self.receive_word(cell);
                self.start_software(cell);
            }
        }
    }

    /// Starts to move the next word of a cell's sender into the network, if it has one and there is
    /// space.
    #[inline]
    pub(crate) fn send_word(&mut self, cell: u32) {
        let row = self.launch + cell;
        let agent = &mut self.agents[index(cell)];
        if agent.send_next == self.worms[index(agent.sent)].length {
            agent.sending = SenderState::Leaving;
            return;
        }
        if self.holds_back(cell, Direction::Send) {
            return;
        }
        let agent = &mut self.agents[index(cell)];
        if self.base.network.has_space(row) {
            self.base.network.put(row, Tag::new(agent.sent, agent.send_next));
            agent.send_next += 1;
            agent.sending = SenderState::Word;
            self.sends_started.push(cell);
        } else {
            agent.sending = SenderState::Full;
            self.base.network.wait_for_space(row);
        }
    }

    /// Starts to move the next word out of the network to a cell's receiver, if there is one.
    #[inline]
    pub(crate) fn receive_word(&mut self, cell: u32) {
        if self.holds_back(cell, Direction::Receive) {
            return;
        }
        let agent = &mut self.agents[index(cell)];
        let row = agent.receive_row;
        if self.base.network.queued(row) == 0 {
            agent.receiving = ReceiverState::Empty;
            return;
        }
        agent.receiving = ReceiverState::Word;
        let tag = self.base.network.take(row);
        agent.taken = (tag.stream(), tag.index());
        let last = tag.index() + 1 == self.worms[index(agent.received)].length;
        self.receives_started.push(cell);
        if last {
            self.release_channel(row);
        }
    }

    /// Delivers the word that a receiver has moved.
    #[inline]
    pub(crate) fn deliver(&mut self, cell: u32, data: &mut dyn Payload) {
        let extra = self.base.machine.parameters().message_extra_words;
        let agent = &mut self.agents[index(cell)];
        let ((from, word), expected) = (agent.taken, agent.receive_next);
        let number = agent.received;
        agent.receive_next += 1;
        if (from, word) != (number, expected) && expected >= extra {
            agent.misplaced.get_or_insert((expected, from, word));
        }
        let worm = &self.worms[index(number)];
        let to = worm.message.label;
        if expected >= extra && worm.message.words > 0 {
            self.delivered += 1;
            let label = self.worms[index(from)].message.label;
            let place = (to, expected - extra);
            data.transfer((label, word.wrapping_sub(extra)), place);
            self.base.invert_corrupted((from, word), place, data);
        }
        // Not the count: faults lose words, and repeat them.
        if self.is_tail((from, word)) {
            self.finish(cell, number);
        }
    }

    /// Ends the reception of a message.
    fn finish(&mut self, cell: u32, number: u32) {
        let agent = &mut self.agents[index(cell)];
        agent.receiving = ReceiverState::Idle;
        let start = agent.receive_start;
        if self.base.injection.is_none() || self.is_right(cell, number) {
            self.push_event(Direction::Receive, number, start);
        }
        self.worms[index(number)].live = false;
        self.free.push(number);
        self.unfinished -= 1;
        if self.protocol == Protocol::Rendezvous {
            return self.finish_rendezvous(cell, number);
        }
        self.start_software(cell);
    }

    pub(crate) fn push_event(&mut self, direction: Direction, number: u32, start: u64) {
        let worm = &self.worms[index(number)];
        let (message, arrived) = (worm.message, worm.arrived);
        let arrived = (direction == Direction::Receive).then_some(arrived);
        self.events.push(MessageEvent { direction, message, start, arrived });
    }
}
