//! The message-passing machine: wormholes through the network, agents, and time.
//!
//! It stands beside [`crate::Engine`] on the same links, queues and word-by-word turns
//! (`network`); what differs is who joins channels to pathways. There it is a context's tables,
//! here the messages themselves:
//!
//! * A message is launched from a channel of its own at the source (one of those kept for
//!   launching; an agent launches one message at a time). Its header is its first word.
//! * A header that arrives in a channel asks for the channel of its pool on the next link of its
//!   route. If that is free, the two are joined and the message flows on; if not, the header waits
//!   in order of arrival, and the words behind it stand in their queues.
//! * A channel is free again when the tail has left its queue. The first header in its line takes
//!   it in the same clock.
//! * A header that arrives at its target waits for the receiver, in order of arrival.
//! * Messages in different pools of a link share it word by word.
//!
//! Nothing is dropped and nothing times out. Whoever drives the engine hands over messages
//! ([`MessageEngine::send`]), says how many messages a cell is ready to receive
//! ([`MessageEngine::receive`]) and lets the machine run until messages have left or were received.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, Direction, Duplex, LinkId, Machine};

use super::agents::{Agent, Queue, Receiving, Sending};
use super::period::Past;
use super::routes::Router;
use crate::engine::{Payload, Stop};
use crate::fault::{FaultKind, MessageProblem};
use crate::lane::Lane;
use crate::network::{Carried, Channel, GATE, NONE, Network, Tag};
use crate::period::Watch;

/// A message as it is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The cell that sends it.
    pub source: CellId,
    /// The cell that receives it; may be the source.
    pub target: CellId,
    /// Words of data. The machine's `message_extra_words` go in front of them.
    pub words: u32,
    /// What the payload and the events call it; any number.
    pub label: ConnectionId,
}

/// Something that happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEvent {
    /// `Send`: its tail left the source. `Receive`: its last word was received.
    pub direction: Direction,
    /// The message.
    pub message: Message,
    /// When the software of this side began, in clocks. It ended now.
    pub began: u64,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The software of a launch or of a reception is over, at this cell.
    Sent(u32),
    Received(u32),
    /// The driver's.
    Driver(u32),
}

/// Links, channels, messages, agents and time.
#[derive(Clone, Debug)]
pub struct MessageEngine {
    pub(crate) machine: Arc<Machine>,
    pub(crate) now: u64,
    half: bool,
    pub(crate) router: Router,
    pub(crate) network: Network,
    pub(crate) slots: Vec<Slot>,
    /// The first of the channels that cells launch from, which come after those of the links.
    pub(crate) launch: u32,
    pub(crate) agents: Vec<Agent>,
    pub(crate) worms: Vec<Worm>,
    free: Vec<u32>,
    unfinished: usize,
    pub(crate) links: Lane<Carried>,
    pub(crate) sends: Lane<u32>,
    pub(crate) receives: Lane<u32>,
    /// Cells whose sender or receiver began to move a word in this clock, in order.
    putting: Vec<u32>,
    taking: Vec<u32>,
    pub(crate) timers: BinaryHeap<Reverse<(u64, Timer)>>,
    events: Vec<MessageEvent>,
    rung: Vec<u32>,
    pub(crate) delivered: u64,
    pub(crate) wrong_words: u64,
    pub(crate) watch: Watch,
    pub(crate) past: Box<Past>,
}

impl MessageEngine {
    /// The machine at clock 0. Without `datelines` all messages stay in pool 0, and rings can
    /// deadlock.
    pub fn new(machine: Arc<Machine>, datelines: bool) -> Self {
        let parameters = machine.parameters();
        let router = Router::new(&machine, datelines);
        let launch = machine.link_count() as u32 * router.pools;
        let rows = launch as usize + machine.agent_count();
        let mut network = Network::new(machine.link_count(), parameters.channel_depth);
        let channels = vec![Channel::new(GATE, 0, NONE); rows];
        network.load(channels, &vec![router.pools; machine.link_count()]);
        let half = parameters.duplex == Duplex::Half;
        let access = parameters.access_clocks_per_word;
        let sending = if half { parameters.link_clocks_per_word } else { access };
        let slot = Slot { owner: NONE, line: Queue::EMPTY, after: NONE };
        Self {
            now: 0,
            half,
            router,
            network,
            slots: vec![slot; rows],
            launch,
            agents: vec![Agent::new(); machine.agent_count()],
            worms: Vec::new(),
            free: Vec::new(),
            unfinished: 0,
            links: Lane::new(parameters.link_clocks_per_word),
            sends: Lane::new(sending),
            receives: Lane::new(access),
            putting: Vec::new(),
            taking: Vec::new(),
            timers: BinaryHeap::new(),
            events: Vec::new(),
            rung: Vec::new(),
            delivered: 0,
            wrong_words: 0,
            watch: Watch::new(parameters.link_clocks_per_word, access),
            past: Box::default(),
            machine,
        }
    }

    /// The same engine, going through every clock in which something happens. It gives the same
    /// results, only later: whole periods are skipped otherwise, where the machine repeats itself.
    #[must_use]
    pub fn without_skipping(mut self) -> Self {
        self.watch.switch_off();
        self
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Clocks since the engine was made.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Words carried over links, headers and trailers included.
    pub fn word_hops(&self) -> u64 {
        self.network.word_hops
    }

    /// Words of data delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Words delivered that were not the next of the message being received.
    pub fn wrong_words(&self) -> u64 {
        self.wrong_words
    }

    /// Messages handed over and not received yet.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Words that a link has carried.
    pub fn link_words(&self, link: LinkId) -> u64 {
        self.network.wires[link.index()].words
    }

    /// Hands a message over. Messages of a cell are sent in the order in which they are handed
    /// over.
    ///
    /// # Errors
    /// An end without a live agent, or no route between the ends.
    pub fn send(&mut self, message: Message) -> Result<(), FaultKind> {
        let Message { source, target, words, label } = message;
        let fail = |problem| {
            let (message, source_cell) = (label, source);
            FaultKind::Message { message, source_cell, target, problem }
        };
        for cell in [source, target] {
            if cell.index() >= self.machine.cell_count() || !self.machine.is_endpoint(cell) {
                return Err(fail(MessageProblem::NoAgent(cell)));
            }
        }
        let mut route = Vec::new();
        let number = match self.free.last() {
            Some(&number) => {
                std::mem::swap(&mut route, &mut self.worms[number as usize].route);
                number
            }
            None => self.worms.len() as u32,
        };
        if !self.router.route(&self.machine, source, target, &mut route) {
            return Err(fail(MessageProblem::NoRoute));
        }
        let extra = self.machine.parameters().message_extra_words;
        let length = words.saturating_add(extra).max(1);
        let worm = Worm { message, length, route, hops: 0, head: NONE, live: true };
        if self.free.pop().is_some() {
            self.worms[number as usize] = worm;
        } else {
            self.worms.push(worm);
        }
        self.unfinished += 1;
        self.agents[source.index()].pending.push_back(number);
        self.attend(source.0);
        Ok(())
    }

    /// The cell is ready to receive `messages` more messages, whichever arrive.
    pub fn receive(&mut self, cell: CellId, messages: u64) {
        if let Some(agent) = self.agents.get_mut(cell.index()) {
            agent.wanted = agent.wanted.saturating_add(messages);
            self.attend(cell.0);
        }
    }

    /// Whether a cell neither sends a message nor has one to send.
    pub fn is_quiet(&self, cell: CellId) -> bool {
        let agent = self.agents.get(cell.index());
        agent.is_none_or(|a| a.sending == Sending::Nothing && a.pending.is_empty())
    }

    /// Sets a timer that goes off in `clocks` clocks, under the number `key`.
    pub fn set_timer(&mut self, clocks: u64, key: u32) {
        self.timer(clocks, Timer::Driver(key));
    }

    fn timer(&mut self, clocks: u64, timer: Timer) {
        self.timers.push(Reverse((self.now.saturating_add(clocks), timer)));
    }

    /// The events since the last call, in order.
    pub fn take_events(&mut self, into: &mut Vec<MessageEvent>) {
        into.clear();
        into.append(&mut self.events);
    }

    /// The timers that went off since the last call.
    pub fn take_timers(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.rung);
    }

    /// Runs until there is something to tell ([`Stop::Finished`]: events, [`Stop::Timer`]) or
    /// nothing is under way ([`Stop::Idle`]). Whatever can happen in the present clock has
    /// happened then.
    pub fn run(&mut self, data: &mut dyn Payload) -> Stop {
        loop {
            self.settle();
            if !self.events.is_empty() {
                return Stop::Finished;
            }
            if !self.rung.is_empty() {
                return Stop::Timer;
            }
            if self.now >= self.watch.next {
                self.look(data);
            }
            if !self.advance(data) {
                return Stop::Idle;
            }
        }
    }

    fn settle(&mut self) {
        loop {
            self.network.settle();
            if !self.listen() && self.network.is_settled() {
                break;
            }
        }
        self.links.begin(self.now, &mut self.network.begun);
        self.sends.begin(self.now, &mut self.putting);
        self.receives.begin(self.now, &mut self.taking);
    }

    /// Goes on to the next clock in which something ends; `false` if nothing is under way.
    fn advance(&mut self, data: &mut dyn Payload) -> bool {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let next = [self.links.next(), self.sends.next(), self.receives.next(), timer];
        let Some(now) = next.into_iter().flatten().min() else { return false };
        self.now = now;
        // Everything arrives before anything new begins.
        let links = self.links.end(now);
        self.network.end(&links);
        let sends = self.sends.end(now);
        for &cell in &sends {
            self.network.arrive(self.launch + cell);
        }
        let receives = self.receives.end(now);
        for &cell in &receives {
            self.deliver(cell, data);
        }
        self.network.free(&links);
        self.links.recycle(links);
        for &cell in &sends {
            self.send_word(cell);
        }
        self.sends.recycle(sends);
        for &cell in &receives {
            // With its last word the receiver may have gone on to another message.
            if self.agents[cell as usize].receiving == Receiving::Word {
                self.receive_word(cell);
            }
        }
        self.receives.recycle(receives);
        while let Some(&Reverse((at, timer))) = self.timers.peek()
            && at == now
        {
            self.timers.pop();
            self.ring(timer);
        }
        true
    }

    /// Hears what the network has to say; whether it said anything.
    fn listen(&mut self) -> bool {
        let mut heard = false;
        while let Some(row) = self.network.room.pop() {
            heard = true;
            self.send_word(row - self.launch);
        }
        while !self.network.tails.is_empty() {
            heard = true;
            let mut tails = std::mem::take(&mut self.network.tails);
            for row in tails.drain(..) {
                let behind = self.network.disconnect(self.client(row));
                self.release(behind);
            }
            // Nothing is pushed meanwhile: words move in `settle`.
            self.network.tails = tails;
        }
        if !self.network.words.is_empty() {
            heard = true;
            let mut words = std::mem::take(&mut self.network.words);
            for row in words.drain(..) {
                self.hear_word(row);
            }
            self.network.words = words;
        }
        heard
    }

    /// The link to a channel, and which of its clients leads there.
    fn client(&self, row: u32) -> (u32, u16) {
        (row / self.router.pools, (row % self.router.pools) as u16)
    }

    /// The cell that a channel is on.
    pub(crate) fn cell_of(&self, row: u32) -> u32 {
        if row >= self.launch {
            row - self.launch
        } else {
            self.machine.link(LinkId(row / self.router.pools)).target.0
        }
    }

    /// A word came to a channel that leads nowhere yet: a header, or more for the receiver.
    fn hear_word(&mut self, row: u32) {
        // The receiver may have taken it already, and another be on its way.
        if self.network.queued(row) == 0 {
            return;
        }
        let tag = self.network.head(row).expect("a word is here");
        if tag.index() == 0 {
            self.worms[tag.stream() as usize].head = row;
            return self.header(row, tag.stream());
        }
        let cell = self.cell_of(row);
        if self.agents[cell as usize].receiving == Receiving::Empty {
            self.receive_word(cell);
        }
    }

    /// The header of a message is in channel `row` and wants to go on.
    fn header(&mut self, row: u32, number: u32) {
        self.watch.disturb();
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
    fn join(&mut self, row: u32, next: u32, number: u32) {
        self.slots[next as usize].owner = number;
        let worm = &mut self.worms[number as usize];
        worm.hops += 1;
        let last = worm.length - 1;
        self.network.connect(row, self.client(next), next, last);
    }

    /// The tail of a message has left channel `row`.
    fn release(&mut self, row: u32) {
        self.watch.disturb();
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
            let tag = self.network.head(first).expect("its header waits in it");
            self.join(first, row, tag.stream());
        }
    }

    /// Channel `row` joins a line.
    fn stand(&mut self, line: &mut Queue, row: u32) {
        self.slots[row as usize].after = NONE;
        match line.tail {
            NONE => line.head = row,
            last => self.slots[last as usize].after = row,
        }
        line.tail = row;
    }

    /// Takes the first channel out of a line.
    fn leave(&mut self, line: &mut Queue) -> Option<u32> {
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

    /// A cell begins what it can: a launch, a reception.
    fn attend(&mut self, cell: u32) {
        self.watch.disturb();
        let parameters = self.machine.parameters();
        if self.agents[cell as usize].can_send(self.half) {
            let agent = &mut self.agents[cell as usize];
            agent.sent = agent.pending.pop_front().expect("a message is pending");
            (agent.sending, agent.send_began, agent.send_next) = (Sending::Software, self.now, 0);
            let words = u64::from(self.worms[agent.sent as usize].message.words);
            let copy = if self.half { u64::from(parameters.link_clocks_per_word) } else { 0 };
            self.timer(u64::from(parameters.c_send) + words * copy, Timer::Sent(cell));
        }
        if self.agents[cell as usize].can_receive() {
            let mut line = self.agents[cell as usize].arrivals;
            let row = self.leave(&mut line).expect("a header waits");
            let number = self.network.head(row).expect("a header waits").stream();
            self.worms[number as usize].head = NONE;
            let clocks = self.machine.parameters().c_receive;
            let agent = &mut self.agents[cell as usize];
            agent.arrivals = line;
            agent.wanted -= 1;
            (agent.receiving, agent.receive_began) = (Receiving::Software, self.now);
            (agent.receive_row, agent.received, agent.receive_next) = (row, number, 0);
            self.timer(u64::from(clocks), Timer::Received(cell));
        }
    }

    fn ring(&mut self, timer: Timer) {
        self.watch.disturb();
        match timer {
            Timer::Driver(key) => self.rung.push(key),
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
    fn send_word(&mut self, cell: u32) {
        let agent = &mut self.agents[cell as usize];
        let row = self.launch + cell;
        if agent.send_next == self.worms[agent.sent as usize].length {
            agent.sending = Sending::Leaving;
        } else if self.network.has_room(row) {
            self.network.put(row, Tag::new(agent.sent, agent.send_next));
            agent.send_next += 1;
            agent.sending = Sending::Word;
            self.putting.push(cell);
        } else {
            agent.sending = Sending::Full;
            self.network.wait_for_room(row);
        }
    }

    /// The receiver of a cell takes the next word out of the network, if there is one.
    #[inline]
    fn receive_word(&mut self, cell: u32) {
        let agent = &mut self.agents[cell as usize];
        let row = agent.receive_row;
        if self.network.queued(row) == 0 {
            agent.receiving = Receiving::Empty;
            return;
        }
        agent.receiving = Receiving::Word;
        let tag = self.network.take(row);
        agent.taken = (tag.stream(), tag.index());
        let last = tag.index() + 1 == self.worms[agent.received as usize].length;
        self.taking.push(cell);
        if last {
            self.release(row);
        }
    }

    /// The word that a receiver has taken out is delivered.
    #[inline]
    fn deliver(&mut self, cell: u32, data: &mut dyn Payload) {
        let extra = self.machine.parameters().message_extra_words;
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

    fn finish(&mut self, cell: u32, number: u32) {
        let agent = &mut self.agents[cell as usize];
        agent.receiving = Receiving::Nothing;
        let began = agent.receive_began;
        self.tell(Direction::Receive, number, began);
        self.worms[number as usize].live = false;
        self.free.push(number);
        self.unfinished -= 1;
        self.attend(cell);
    }

    fn tell(&mut self, direction: Direction, number: u32, began: u64) {
        let message = self.worms[number as usize].message;
        self.events.push(MessageEvent { direction, message, began });
    }

    /// One clock in which something happens, for tests that look at every one.
    #[cfg(test)]
    pub(crate) fn step(&mut self, data: &mut dyn Payload) -> bool {
        self.settle();
        self.advance(data)
    }
}
