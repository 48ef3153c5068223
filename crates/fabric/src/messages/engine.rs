//! The emulated message-passing machine: wormhole routing, agents and time.
//!
//! It uses the same links, queues and round-robin arbitration (`network`) as [`crate::Engine`].
//! There the tables of a context connect the channels; here the messages themselves do:
//!
//! * A message is launched from the launch channel of its source cell; a cell launches one message
//!   at a time. The first word of a message is its header.
//! * A header that arrives in a channel requests the channel of its pool on the next link of its
//!   route. If that channel is free, the two are connected and the message flows on; if not, the
//!   header waits in order of arrival, and the words behind it wait in their queues.
//! * A channel is released when the tail has left its queue. The first header that waits for it
//!   takes it in the same clock.
//! * A header that arrives at its target waits for the receiver, in order of arrival. Under
//!   rendezvous the receiver already waits for it (`rendezvous`).
//! * Messages in different pools of a link share the link word by word.
//!
//! No message is dropped and none times out, except by faults of the hardware (`messages/faults.rs`).
//! The driver submits messages ([`MessageEngine::send`]), allows cells to receive a number of
//! messages ([`MessageEngine::receive`]) and runs the machine until messages have left or were
//! received.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Duplex, LinkId, Machine, Protocol};

use super::agents::{MessageAgent, ReceiverState, SenderState, WaitQueue};
use super::fast_forward::MessageSnapshot;
use super::pathways::{PathwayChannel, Worm};
use super::routes::Router;
use crate::base::Base;
use crate::delay_queue::DelayQueue;
use crate::engine::Stop;
use crate::fault::{FaultKind, MessageProblem};
use crate::network::{Channel, GATE, NONE};
use crate::payload::Payload;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The cell that sends it.
    pub source: CellId,
    /// The cell that receives it; it may be the source.
    pub target: CellId,
    /// Words of data. The machine sends `message_extra_words` more before them.
    pub words: u32,
    /// Identifies the message in the payload and in events; need not be unique.
    pub label: ConnectionId,
}

/// The end of the sending or receiving of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEvent {
    /// `Send`: the tail has left the source. `Receive`: the last word was received.
    pub direction: Direction,
    /// The message.
    pub message: Message,
    /// When the software of this end started, in clocks. The event occurs at the present clock.
    pub start: u64,
    /// When the header arrived at the target's cell; `None` for sends.
    pub arrived: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The software of a launch ends at this cell.
    Launch(u32),
    /// The software of a reception ends at this cell.
    Reception(u32),
    /// A timer of the driver.
    Driver(u32),
}

/// Links, channels, messages, agents and time.
///
/// ```
/// use std::sync::Arc;
/// use conset_fabric::messages::{Message, MessageEngine};
/// use conset_fabric::{SetBuffers, Stop};
/// use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine};
///
/// let (source, target, label) = (CellId(0), CellId(2), ConnectionId(0));
/// let set = ConnectionSet::new("s", vec![Connection::new(source, target, 5)])?;
/// let mut engine = MessageEngine::new(Arc::new(Machine::from_spec("ring:4")?), true);
/// engine.send(Message { source, target, words: 5, label })?;
/// engine.receive(target, 1);
/// let (mut data, mut events) = (SetBuffers::new(&set), Vec::new());
/// while engine.run(&mut data) == Stop::Finished {
///     engine.take_events(&mut events);
/// }
/// assert_eq!((engine.unfinished(), engine.delivered()), (0, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MessageEngine {
    pub(crate) base: Base<Timer>,
    pub(crate) half_duplex: bool,
    pub(crate) protocol: Protocol,
    /// Clocks of a poll that finds no message; 0 if arrivals are noticed at once.
    pub(crate) poll: u64,
    pub(crate) router: Router,
    pub(crate) channels: Vec<PathwayChannel>,
    /// The first launch channel; they come after the channels of the links, one per cell.
    pub(crate) launch: u32,
    pub(crate) agents: Vec<MessageAgent>,
    pub(crate) worms: Vec<Worm>,
    /// Numbers of `worms` that are free for new messages.
    pub(crate) free: Vec<u32>,
    pub(crate) unfinished: usize,
    pub(crate) sends: DelayQueue<u32>,
    pub(crate) receives: DelayQueue<u32>,
    /// Cells whose sender, and cells whose receiver, started to move a word in this clock, in order.
    pub(crate) sends_started: Vec<u32>,
    pub(crate) receives_started: Vec<u32>,
    pub(crate) events: Vec<MessageEvent>,
    pub(crate) delivered: u64,
    pub(crate) snapshot: Box<MessageSnapshot>,
    /// Check words at the end of each message.
    pub(crate) check_words: u32,
    /// Whether receivers compare the identities of words, which only a simulator knows.
    pub(crate) compares_words: bool,
    /// What a router or a receiver has noticed first; only with faults.
    pub(crate) noticed: Option<FaultKind>,
}

impl MessageEngine {
    /// The machine at clock 0. Without `datelines` all messages stay in pool 0, and messages on
    /// rings can deadlock.
    pub fn new(machine: Arc<Machine>, datelines: bool) -> Self {
        let parameters = machine.parameters();
        let half_duplex = parameters.duplex == Duplex::Half;
        let access = parameters.access_clocks_per_word;
        let protocol = parameters.protocol;
        // Buffers are spooled out at the rate of the link; a rendezvous needs none.
        let buffered = half_duplex && protocol != Protocol::Rendezvous;
        let sending = if buffered { parameters.link_clocks_per_word } else { access };
        let router = Router::new(&machine, datelines);
        let launch = to_u32(machine.link_count()) * router.pools;
        let rows = index(launch) + machine.agent_count();
        let served = (0..to_u32(machine.link_count())).map(|link| (link, router.pools));
        let channel = PathwayChannel { owner: NONE, waiters: WaitQueue::EMPTY, next_waiter: NONE };
        let agents = vec![MessageAgent::new(); machine.agent_count()];
        let mut base = Base::new(machine);
        base.network.load(vec![Channel::new(GATE, 0, NONE); rows], served);
        Self {
            base,
            half_duplex,
            protocol,
            poll: 0,
            router,
            channels: vec![channel; rows],
            launch,
            agents,
            worms: Vec::new(),
            free: Vec::new(),
            unfinished: 0,
            sends: DelayQueue::new(sending),
            receives: DelayQueue::new(access),
            sends_started: Vec::new(),
            receives_started: Vec::new(),
            events: Vec::new(),
            delivered: 0,
            snapshot: Box::default(),
            check_words: 0,
            compares_words: true,
            noticed: None,
        }
    }

    /// The engine without skipping of periods: it simulates every clock in which something happens.
    /// The results are the same; the simulation takes longer.
    #[must_use]
    pub fn without_skipping(mut self) -> Self {
        self.base.detector.disable();
        self
    }

    /// The engine with cells that find a message only when they poll, every `clocks` clocks since
    /// their processor became free.
    #[must_use]
    pub(crate) fn with_polls(mut self, clocks: u32) -> Self {
        self.poll = clocks.into();
        self
    }

    /// All processors become free now, so that they poll now.
    pub(crate) fn restart_polls(&mut self) {
        let now = self.base.now;
        self.agents.iter_mut().for_each(|agent| agent.free_since = now);
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.base.machine
    }

    /// Clocks since the engine was created.
    pub fn now(&self) -> u64 {
        self.base.now
    }

    /// Word-hops: words carried over links, including headers and trailers.
    pub fn word_hops(&self) -> u64 {
        self.base.network.word_hops
    }

    /// Number of words of data delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Number of messages submitted that were not received yet.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Words that a link has carried.
    pub fn link_words(&self, link: LinkId) -> u64 {
        self.base.link_words(link)
    }

    /// Words in channels and on links.
    pub(crate) fn words_in_network(&self) -> u64 {
        self.base.network.occupied().map(|(_, words)| u64::from(words)).sum()
    }

    /// The words of the link that has carried the most.
    pub(crate) fn busiest_link_words(&self) -> u64 {
        self.base.network.busiest_link().map_or(0, |link| link.1)
    }

    /// Submits a message. The messages of a cell are sent in the order of submission.
    ///
    /// # Errors
    /// An end has no live agent, or there is no route between the ends.
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
                std::mem::swap(&mut route, &mut self.worms[index(number)].route);
                number
            }
            None => to_u32(self.worms.len()),
        };
        if !self.router.route(&self.base.machine, source, target, &mut route) {
            return Err(fail(MessageProblem::NoRoute));
        }
        let extra = self.base.machine.parameters().message_extra_words;
        let length = words.saturating_add(extra).saturating_add(self.check_words).max(1);
        let worm = Worm { message, length, route, hops: 0, head: NONE, arrived: 0, live: true };
        if self.free.pop().is_some() {
            self.worms[index(number)] = worm;
        } else {
            self.worms.push(worm);
        }
        self.unfinished += 1;
        self.agents[source.index()].pending.push_back(number);
        self.start_software(source.0);
        Ok(())
    }

    /// Allows `cell` to receive `messages` more messages, in order of arrival.
    pub fn receive(&mut self, cell: CellId, messages: u64) {
        if let Some(agent) = self.agents.get_mut(cell.index()) {
            agent.to_receive = agent.to_receive.saturating_add(messages);
            self.start_software(cell.0);
        }
    }

    /// Allows `cell` to receive one more message, from `source`. This differs from
    /// [`MessageEngine::receive`] only on machines whose messages wait at their source for the
    /// receiver ([`Protocol::Rendezvous`]); on others, messages are received in order of arrival.
    pub fn receive_from(&mut self, cell: CellId, source: CellId) {
        if self.protocol != Protocol::Rendezvous {
            return self.receive(cell, 1);
        }
        if let Some(agent) = self.agents.get_mut(cell.index()) {
            agent.receive_from.push(source);
            self.start_software(cell.0);
        }
    }

    /// Whether a cell neither sends a message nor has one pending.
    pub fn is_quiet(&self, cell: CellId) -> bool {
        let agent = self.agents.get(cell.index());
        agent.is_none_or(|a| a.sending == SenderState::Idle && a.pending.is_empty())
    }

    /// Sets a timer that expires in `clocks` clocks and is reported as `key`.
    pub fn set_timer(&mut self, clocks: u64, key: u32) {
        self.base.set_timer(clocks, Timer::Driver(key));
    }

    /// Lets time pass up to a clock, if that is later. Nothing may be in progress, and no timer may expire before.
    pub fn pass_until(&mut self, clock: u64) {
        self.base.now = self.base.now.max(clock);
    }

    /// Removes all timers of the driver, including expired ones that were not taken.
    pub fn clear_timers(&mut self) {
        self.base.expired.clear();
        self.base.retain_timers(|timer| !matches!(timer, Timer::Driver(_)));
    }

    /// Whether a word is in transit, the software of a message is running, or a fault holds messages up for some clocks,
    /// after [`MessageEngine::run`] has returned. If not, only the driver can change the state.
    pub fn is_moving(&self) -> bool {
        let words =
            [self.base.in_flight.next_end(), self.sends.next_end(), self.receives.next_end()];
        words.iter().any(Option::is_some)
            || self.base.timers().any(|timer| !matches!(timer, Timer::Driver(_)))
            || self.base.is_held_up(self.unfinished > 0)
    }

    /// Moves the events since the last call into `into`, in order.
    pub fn take_events(&mut self, into: &mut Vec<MessageEvent>) {
        into.clear();
        into.append(&mut self.events);
    }

    /// Moves the keys of the timers that expired since the last call into `into`.
    pub fn take_timers(&mut self, into: &mut Vec<u32>) {
        self.base.take_timers(into);
    }

    /// Runs until there is something to report ([`Stop::Finished`] for events, [`Stop::Timer`]) or
    /// nothing is in progress ([`Stop::Idle`]). Everything that can happen in the present clock has
    /// happened then. [`Stop::Fault`] occurs only with faults of the hardware.
    pub fn run(&mut self, data: &mut dyn Payload) -> Stop {
        loop {
            if self.base.injection.is_some() {
                let woken = self.inject();
                self.wake_all(&woken);
            }
            self.settle();
            if self.noticed.is_some() {
                return Stop::Fault;
            }
            if !self.events.is_empty() {
                return Stop::Finished;
            }
            if !self.base.expired.is_empty() {
                return Stop::Timer;
            }
            if self.base.now >= self.base.detector.next {
                self.check_period(data);
            }
            if !self.advance(data) {
                return Stop::Idle;
            }
        }
    }

    fn settle(&mut self) {
        loop {
            self.base.network.settle();
            if !self.handle_reports() && self.base.network.is_settled() || self.noticed.is_some() {
                break;
            }
        }
        self.base.start_transfers();
        self.sends.start(self.base.now, &mut self.sends_started);
        self.receives.start(self.base.now, &mut self.receives_started);
    }

    /// Advances to the next clock in which an action ends; `false` if nothing is in progress.
    fn advance(&mut self, data: &mut dyn Payload) -> bool {
        let words =
            [self.base.in_flight.next_end(), self.sends.next_end(), self.receives.next_end()];
        let next = words.into_iter().chain([self.base.next_timer()]);
        let next = self.base.next_with_faults(next.flatten().min(), self.unfinished > 0);
        let Some(now) = next else { return false };
        self.base.now = now;
        // All words arrive before any action starts.
        let mut transfers = self.base.in_flight.take_ended(now);
        let (mut spoiled, mut woken) = (Vec::new(), Vec::new());
        if self.base.injection.is_some() {
            woken = self.inject();
            spoiled = self.spoil(&mut transfers);
        }
        self.base.network.arrive_all(&transfers);
        let mut sends = self.sends.take_ended(now);
        for &cell in &sends {
            self.base.network.arrive(self.launch + cell);
        }
        let mut receives = self.receives.take_ended(now);
        for &cell in &receives {
            self.deliver(cell, data);
        }
        if self.base.injection.is_some() {
            transfers.append(&mut spoiled);
            self.hold_back(&mut transfers, &mut sends, &mut receives);
        }
        self.base.network.serve_links(&transfers);
        self.base.in_flight.recycle(transfers);
        for &cell in &sends {
            self.send_word(cell);
        }
        self.sends.recycle(sends);
        for &cell in &receives {
            // After the last word of a message the receiver may have started another one.
            if self.agents[index(cell)].receiving == ReceiverState::Word {
                self.receive_word(cell);
            }
        }
        self.receives.recycle(receives);
        self.wake_all(&woken);
        while let Some(timer) = self.base.pop_expired() {
            self.handle_timer(timer);
        }
        true
    }

    /// Handles the reports of the network; returns whether there were any.
    fn handle_reports(&mut self) -> bool {
        let mut any = false;
        while let Some(row) = self.base.network.space.pop() {
            any = true;
            self.send_word(row - self.launch);
        }
        while !self.base.network.tails.is_empty() {
            any = true;
            let mut tails = std::mem::take(&mut self.base.network.tails);
            for row in tails.drain(..) {
                let previous = self.base.network.disconnect(self.client(row));
                self.release_channel(previous);
            }
            if self.noticed.is_some() {
                return true;
            }
            // Nothing was added in the loop: words move only in `settle`.
            self.base.network.tails = tails;
        }
        if !self.base.network.arrivals.is_empty() {
            any = true;
            let mut arrivals = std::mem::take(&mut self.base.network.arrivals);
            for row in arrivals.drain(..) {
                self.word_arrived(row);
            }
            self.base.network.arrivals = arrivals;
        }
        any
    }

    /// Handles the arrival of a word in a channel that is not connected: a header, or a word for the
    /// receiver.
    fn word_arrived(&mut self, row: u32) {
        // The receiver may have taken the word already.
        if self.base.network.queued(row) == 0 {
            return;
        }
        let tag = self.base.network.head(row).expect("a word is queued");
        let cell = self.cell_of(row);
        // With faults, a later word of a message may look like its header.
        if self.is_receiving(cell, row) {
            if self.agents[index(cell)].receiving == ReceiverState::Empty {
                self.receive_word(cell);
            }
        } else if tag.index() == 0 {
            self.worms[index(tag.stream())].head = row;
            self.route_header(row, tag.stream());
        } else {
            self.notice_stray_word(row);
        }
    }

    /// Whether a cell is receiving a message from channel `row` and has not taken its tail yet.
    fn is_receiving(&self, cell: u32, row: u32) -> bool {
        // A switch has no agent.
        let Some(agent) = self.agents.get(index(cell)) else { return false };
        let is_open = match agent.receiving {
            ReceiverState::Idle | ReceiverState::Software => false,
            ReceiverState::Word => !self.is_tail(agent.taken),
            ReceiverState::Empty => true,
        };
        is_open && agent.receive_row == row
    }

    /// Whether a word is the last one of its message.
    pub(crate) fn is_tail(&self, (number, word): (u32, u32)) -> bool {
        word + 1 == self.worms[index(number)].length
    }

    /// Simulates one clock in which something happens, for tests that examine each of them.
    #[cfg(test)]
    pub(crate) fn step(&mut self, data: &mut dyn Payload) -> bool {
        self.settle();
        self.advance(data)
    }
}
