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

use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, Direction, Duplex, LinkId, Machine};

use super::agents::{Agent, Queue, Receiving, Sending};
use super::pathways::{Slot, Worm};
use super::period::Past;
use super::routes::Router;
use crate::base::Base;
use crate::engine::{Payload, Stop};
use crate::fault::{FaultKind, MessageProblem};
use crate::lane::Lane;
use crate::network::{Channel, GATE, NONE};

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
    pub(crate) base: Base<Timer>,
    pub(crate) half: bool,
    pub(crate) router: Router,
    pub(crate) slots: Vec<Slot>,
    /// The first of the channels that cells launch from, which come after those of the links.
    pub(crate) launch: u32,
    pub(crate) agents: Vec<Agent>,
    pub(crate) worms: Vec<Worm>,
    /// Numbers of worms that are over.
    pub(crate) free: Vec<u32>,
    pub(crate) unfinished: usize,
    pub(crate) sends: Lane<u32>,
    pub(crate) receives: Lane<u32>,
    /// Cells whose sender or receiver began to move a word in this clock, in order.
    pub(crate) putting: Vec<u32>,
    pub(crate) taking: Vec<u32>,
    pub(crate) events: Vec<MessageEvent>,
    pub(crate) delivered: u64,
    pub(crate) wrong_words: u64,
    pub(crate) past: Box<Past>,
}

impl MessageEngine {
    /// The machine at clock 0. Without `datelines` all messages stay in pool 0, and rings can
    /// deadlock.
    pub fn new(machine: Arc<Machine>, datelines: bool) -> Self {
        let parameters = machine.parameters();
        let half = parameters.duplex == Duplex::Half;
        let access = parameters.access_clocks_per_word;
        let sending = if half { parameters.link_clocks_per_word } else { access };
        let router = Router::new(&machine, datelines);
        let launch = machine.link_count() as u32 * router.pools;
        let rows = launch as usize + machine.agent_count();
        let served = (0..machine.link_count() as u32).map(|link| (link, router.pools));
        let slot = Slot { owner: NONE, line: Queue::EMPTY, after: NONE };
        let agents = vec![Agent::new(); machine.agent_count()];
        let mut base = Base::new(machine);
        base.network.load(vec![Channel::new(GATE, 0, NONE); rows], served);
        Self {
            base,
            half,
            router,
            slots: vec![slot; rows],
            launch,
            agents,
            worms: Vec::new(),
            free: Vec::new(),
            unfinished: 0,
            sends: Lane::new(sending),
            receives: Lane::new(access),
            putting: Vec::new(),
            taking: Vec::new(),
            events: Vec::new(),
            delivered: 0,
            wrong_words: 0,
            past: Box::default(),
        }
    }

    /// The same engine, going through every clock in which something happens. It gives the same
    /// results, only later: whole periods are skipped otherwise, where the machine repeats itself.
    #[must_use]
    pub fn without_skipping(mut self) -> Self {
        self.base.watch.switch_off();
        self
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.base.machine
    }

    /// Clocks since the engine was made.
    pub fn now(&self) -> u64 {
        self.base.now
    }

    /// Words carried over links, headers and trailers included.
    pub fn word_hops(&self) -> u64 {
        self.base.network.word_hops
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
        self.base.link_words(link)
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
            if cell.index() >= self.base.machine.cell_count()
                || !self.base.machine.is_endpoint(cell)
            {
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
        if !self.router.route(&self.base.machine, source, target, &mut route) {
            return Err(fail(MessageProblem::NoRoute));
        }
        let extra = self.base.machine.parameters().message_extra_words;
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
        self.base.set_timer(clocks, Timer::Driver(key));
    }

    /// Forgets the timers that were set, and those that have gone off and were not taken.
    pub fn clear_timers(&mut self) {
        self.base.rung.clear();
        self.base.keep_timers(|timer| !matches!(timer, Timer::Driver(_)));
    }

    /// Whether words are under way or the software of a message is at work, as
    /// [`MessageEngine::run`] left the machine. If not, only the driver can change anything.
    pub fn is_moving(&self) -> bool {
        let words = [self.base.links.next(), self.sends.next(), self.receives.next()];
        words.iter().any(Option::is_some)
            || self.base.timers().any(|timer| !matches!(timer, Timer::Driver(_)))
    }

    /// The events since the last call, in order.
    pub fn take_events(&mut self, into: &mut Vec<MessageEvent>) {
        into.clear();
        into.append(&mut self.events);
    }

    /// The timers that went off since the last call.
    pub fn take_timers(&mut self, into: &mut Vec<u32>) {
        self.base.take_timers(into);
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
            if !self.base.rung.is_empty() {
                return Stop::Timer;
            }
            if self.base.now >= self.base.watch.next {
                self.look(data);
            }
            if !self.advance(data) {
                return Stop::Idle;
            }
        }
    }

    fn settle(&mut self) {
        loop {
            self.base.network.settle();
            if !self.listen() && self.base.network.is_settled() {
                break;
            }
        }
        self.base.begin();
        self.sends.begin(self.base.now, &mut self.putting);
        self.receives.begin(self.base.now, &mut self.taking);
    }

    /// Goes on to the next clock in which something ends; `false` if nothing is under way.
    fn advance(&mut self, data: &mut dyn Payload) -> bool {
        let words = [self.base.links.next(), self.sends.next(), self.receives.next()];
        let next = words.into_iter().chain([self.base.next_timer()]);
        let Some(now) = next.flatten().min() else { return false };
        self.base.now = now;
        // Everything arrives before anything new begins.
        let links = self.base.links.end(now);
        self.base.network.end(&links);
        let sends = self.sends.end(now);
        for &cell in &sends {
            self.base.network.arrive(self.launch + cell);
        }
        let receives = self.receives.end(now);
        for &cell in &receives {
            self.deliver(cell, data);
        }
        self.base.network.free(&links);
        self.base.links.recycle(links);
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
        while let Some(timer) = self.base.ring() {
            self.ring(timer);
        }
        true
    }

    /// Hears what the network has to say; whether it said anything.
    fn listen(&mut self) -> bool {
        let mut heard = false;
        while let Some(row) = self.base.network.room.pop() {
            heard = true;
            self.send_word(row - self.launch);
        }
        while !self.base.network.tails.is_empty() {
            heard = true;
            let mut tails = std::mem::take(&mut self.base.network.tails);
            for row in tails.drain(..) {
                let behind = self.base.network.disconnect(self.client(row));
                self.release(behind);
            }
            // Nothing is pushed meanwhile: words move in `settle`.
            self.base.network.tails = tails;
        }
        if !self.base.network.words.is_empty() {
            heard = true;
            let mut words = std::mem::take(&mut self.base.network.words);
            for row in words.drain(..) {
                self.hear_word(row);
            }
            self.base.network.words = words;
        }
        heard
    }

    /// A word came to a channel that leads nowhere yet: a header, or more for the receiver.
    fn hear_word(&mut self, row: u32) {
        // The receiver may have taken it already, and another be on its way.
        if self.base.network.queued(row) == 0 {
            return;
        }
        let tag = self.base.network.head(row).expect("a word is here");
        if tag.index() == 0 {
            self.worms[tag.stream() as usize].head = row;
            return self.header(row, tag.stream());
        }
        let cell = self.cell_of(row);
        if self.agents[cell as usize].receiving == Receiving::Empty {
            self.receive_word(cell);
        }
    }

    /// One clock in which something happens, for tests that look at every one.
    #[cfg(test)]
    pub(crate) fn step(&mut self, data: &mut dyn Payload) -> bool {
        self.settle();
        self.advance(data)
    }
}
