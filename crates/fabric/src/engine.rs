//! The machine itself: network, agents and time, one clock in which something happens after
//! another.
//!
//! The engine knows contexts and operations and nothing of what drives it: an exchange that hands
//! over whole operation lists, or a runtime whose cells ask for one word at a time. The driver
//! writes a context ([`Engine::switch`]), submits operations ([`Engine::submit`]) and lets the
//! machine run until something is finished, something is wrong, or nothing is under way
//! ([`Engine::run`]). Then it may submit more, in the same clock, and run on.
//!
//! Words are not carried along: queues hold tags, and the moment a word is delivered the driver's
//! [`Payload`] moves it from the sender's data to the receiver's. Data that is still under way
//! must therefore not be changed by the sender.

use std::sync::Arc;

use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Direction, Feed, LinkId, Machine, Operation, PhaseImage,
};

use crate::agents::{Agents, AgentsState, Stream};
use crate::base::{Base, BaseState};
use crate::fault::{FaultKind, GateProblem};
use crate::lane::{Lane, LaneState};
use crate::period::Look;
use crate::tables::{Row, Tables};

/// The data that connections carry.
pub trait Payload {
    /// A word was delivered: move word `from.1` of what the source of connection `from.0` sends
    /// to place `to.1` of what the target of connection `to.0` receives. The two are equal where
    /// the image is right.
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32));

    /// Words that follow each other were delivered: as many times [`Payload::transfer`], from word
    /// to word.
    fn transfer_run(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32), words: u32) {
        for word in 0..words {
            self.transfer((from.0, from.1 + word), (to.0, to.1 + word));
        }
    }
}

/// Number of an operation, from 0 after each context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u32);

/// Why [`Engine::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Operations were finished; [`Engine::take_finished`] says which.
    Finished,
    /// Timers went off; [`Engine::take_timers`] says which.
    Timer,
    /// A word went astray or reached the wrong operation; [`Engine::take_fault`] says which.
    Fault,
    /// Nothing is under way: everything is finished, or will never be.
    Idle,
}

/// An operation as the engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationState {
    /// The cell.
    pub cell: CellId,
    /// Send or receive.
    pub direction: Direction,
    /// The connection.
    pub connection: ConnectionId,
    /// Words to move.
    pub words: u32,
    /// The first word's place in the connection.
    pub first_word: u32,
    /// When it was opened, in clocks.
    pub opened: u64,
    /// Which of its port's streams it was, from 0; below the machine's `streams`, or 2.
    pub slot: u32,
}

/// How an operation is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// It does not open before [`Engine::release`].
    pub held: bool,
    /// Opening it costs `stream_setup`. Not so where a stream was opened before and this is more
    /// of it.
    pub costs_setup: bool,
}

impl Submission {
    /// An operation of an operation list.
    pub const LISTED: Self = Self { held: false, costs_setup: true };
}

/// The last clock at which a planned start is kept, so that no clock overflows after it.
const LAST_START: u64 = 1 << 63;

/// Links, channels, agents and time.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) base: Base<u32>,
    pub(crate) agents: Agents,
    pub(crate) tables: Tables,
    access: Lane<u32>,
    setup: Lane<u32>,
    /// The clock that planned starts count from, where they are kept: the end of the switch.
    epoch: Option<u64>,
    past: Box<Past>,
}

/// A snapshot to find periods with.
#[derive(Clone, Debug, Default)]
struct Past {
    base: BaseState,
    agents: AgentsState,
    access: LaneState<u32>,
}

impl Engine {
    /// The machine at clock 0, with an empty context.
    pub fn new(machine: Arc<Machine>) -> Self {
        let parameters = machine.parameters();
        Self {
            agents: Agents::new(machine.agent_count(), parameters),
            tables: Tables::default(),
            access: Lane::new(parameters.access_clocks_per_word),
            setup: Lane::new(parameters.stream_setup),
            epoch: parameters.has_timed_starts().then_some(0),
            past: Box::default(),
            base: Base::new(machine),
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

    /// Words carried over links since the engine was made.
    pub fn word_hops(&self) -> u64 {
        self.base.network.word_hops
    }

    /// Words delivered since the engine was made.
    pub fn delivered(&self) -> u64 {
        self.agents.delivered
    }

    /// Words delivered to operations they were not sent for, since the engine was made.
    pub fn wrong_words(&self) -> u64 {
        self.agents.wrong_words
    }

    /// Operations submitted in this context that are not finished.
    pub fn unfinished(&self) -> usize {
        self.agents.unfinished
    }

    /// Writes a context into every cell and forgets the one before: its tables, its operations,
    /// its counts. The clock moves on by `t_sync + t_phase`; timers that go off before that would
    /// be passed over, so none may be set ([`Engine::load`] is for who has some).
    ///
    /// # Errors
    /// As [`Engine::load`]; the clock then stands still.
    pub fn switch(&mut self, phase: &PhaseImage) -> Result<(), FaultKind> {
        self.load(phase)?;
        self.base.now =
            self.base.now.saturating_add(self.base.machine.parameters().switch_clocks());
        self.epoch = self.epoch.map(|_| self.base.now);
        Ok(())
    }

    /// [`Engine::switch`] in no time: for who has let the clocks of the switch pass, while
    /// something else went on beside it.
    ///
    /// # Errors
    /// Words left in any channel ([`FaultKind::Undrained`]), or a table that the machine cannot
    /// hold ([`FaultKind::Table`]).
    pub fn load(&mut self, phase: &PhaseImage) -> Result<(), FaultKind> {
        if let Some(fault) = self.undrained() {
            return Err(fault);
        }
        let written = self.tables.write(&self.base.machine, phase)?;
        self.base.watch.disturb();
        self.agents.load(written.channels.len());
        self.base.network.load(written.channels, written.served);
        self.base.links.clear();
        self.access.clear();
        self.setup.clear();
        self.epoch = self.epoch.map(|_| self.base.now);
        Ok(())
    }

    /// Whether a word or the opening of a stream is under way, or a planned start is waited for, as
    /// [`Engine::run`] left the machine. If not, only timers and new operations can change anything.
    pub fn is_moving(&self) -> bool {
        let opening = [self.setup.next(), self.agents.next_start()];
        let words = [self.base.links.next(), self.access.next()];
        words.iter().chain(&opening).any(Option::is_some)
    }

    /// The words left in channels, as a fault, or `None` where all are empty.
    pub fn undrained(&self) -> Option<FaultKind> {
        let (row, _) = self.base.network.occupied().next()?;
        let Row { cell, channel, .. } = self.tables.rows[row as usize];
        let stream = self.base.network.head(row).expect("it holds words").stream();
        let words = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        let channels = self.base.network.occupied().count();
        let connection = ConnectionId(stream);
        Some(FaultKind::Undrained { cell, channel, connection, words, channels })
    }

    /// Throws away every word in the channels, and says how many there were. For who counts
    /// errors and goes on; a real machine has no such thing.
    pub fn discard(&mut self) -> u64 {
        let words = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        self.base.watch.disturb();
        self.base.network.load(Vec::new(), []);
        self.agents.load(0);
        self.base.links.clear();
        self.access.clear();
        self.setup.clear();
        words
    }

    /// Appends an operation of `set` to its cell's list. On a machine with timed starts it does
    /// not open before its planned start, in clocks from the end of the context switch; no start
    /// is kept beyond clock 2^63.
    ///
    /// # Errors
    /// A cell without a live agent or at the wrong end of the connection, or a gate that the
    /// cell's table has not.
    ///
    /// # Panics
    /// If the operation moves no words, which no image has.
    pub fn submit(
        &mut self,
        set: &ConnectionSet,
        cell: CellId,
        operation: &Operation,
        how: Submission,
    ) -> Result<OperationId, FaultKind> {
        let Operation { direction, connection, channel, words, .. } = *operation;
        assert!(words > 0, "an operation moves words");
        let fail = |problem| FaultKind::Gate { cell, channel, connection, direction, problem };
        if cell.index() >= self.base.machine.cell_count() || !self.base.machine.is_endpoint(cell) {
            return Err(fail(GateProblem::NoAgent));
        }
        let ends = set.get(connection);
        let end = if direction == Direction::Send { ends.source } else { ends.target };
        if end != cell {
            return Err(fail(GateProblem::WrongEnd));
        }
        let row = self.tables.gate(cell, operation)?;
        let start = self.epoch.map_or(0, |epoch| epoch.saturating_add(operation.start));
        let stream = Stream::new(cell, operation, row, start.min(LAST_START), how);
        self.base.watch.disturb();
        Ok(OperationId(self.agents.submit(stream)))
    }

    /// Lets an operation that was submitted as held open when its turn comes.
    pub fn release(&mut self, operation: OperationId) {
        self.base.watch.disturb();
        self.agents.release(operation.0);
    }

    /// Sets a timer that goes off in `clocks` clocks, under the number `key`.
    pub fn set_timer(&mut self, clocks: u64, key: u32) {
        self.base.set_timer(clocks, key);
    }

    /// Runs until there is something to tell. Whatever can happen in the present clock has
    /// happened then.
    pub fn run(&mut self, data: &mut dyn Payload) -> Stop {
        loop {
            self.settle();
            if self.base.network.stray.is_some() || self.agents.wrong.is_some() {
                return Stop::Fault;
            }
            if !self.agents.finished.is_empty() {
                self.base.watch.disturb();
                return Stop::Finished;
            }
            if !self.base.rung.is_empty() {
                self.base.watch.disturb();
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

    /// Looks whether the machine repeats itself, and jumps over whole periods if so.
    #[cold]
    fn look(&mut self, data: &mut dyn Payload) {
        let now = self.base.now;
        let found = match self.base.watch.look(now) {
            Look::Compare(period) => self.is_as_before().then_some(period),
            Look::Take => None,
            Look::Wait => return,
        };
        if let Some(period) = found {
            self.jump(period, data);
            self.base.watch.jumped(self.base.now, period);
        } else if self.base.watch.is_to_take(now) {
            self.base.save(&mut self.past.base);
            self.access.save(now, &mut self.past.access);
            self.agents.save(&mut self.past.agents);
        }
    }

    fn is_as_before(&self) -> bool {
        let past = &*self.past;
        self.access.is_as(self.base.now, &past.access)
            && self.agents.is_as(&past.agents)
            && self.base.is_as(&past.base)
    }

    /// Jumps as many periods as can be.
    fn jump(&mut self, period: u64, data: &mut dyn Payload) {
        let past = &*self.past;
        let mut allowed = self.base.allowed(period);
        for at in [self.setup.next(), self.agents.next_start()].into_iter().flatten() {
            allowed.before(self.base.now, period, at);
        }
        self.agents.allow(&past.agents, &mut allowed);
        let periods = allowed.periods();
        if periods > 0 {
            self.agents.jump(&past.agents, periods, data);
            let clocks = self.base.jump(&past.base, period, periods);
            self.access.delay(clocks);
        }
    }

    /// Lets everything move that can in the present clock.
    fn settle(&mut self) {
        loop {
            self.base.network.settle();
            self.agents.listen(&mut self.base.network);
            self.agents.settle(self.base.now, &mut self.base.network);
            let heard = self.base.network.words.is_empty() && self.base.network.room.is_empty();
            if heard && self.base.network.is_settled() && self.agents.is_settled() {
                break;
            }
        }
        self.base.begin();
        self.access.begin(self.base.now, &mut self.agents.begun);
        self.setup.begin(self.base.now, &mut self.agents.opening);
    }

    /// Goes on to the next clock in which something ends; `false` if nothing is under way.
    fn advance(&mut self, data: &mut dyn Payload) -> bool {
        let words = [self.base.links.next(), self.access.next()];
        let next = words.into_iter().chain([self.setup.next(), self.base.next_timer()]);
        let next = next.chain([self.agents.next_start()]);
        let Some(now) = next.flatten().min() else { return false };
        self.base.now = now;
        // Everything arrives before anything new begins.
        let links = self.base.links.end(now);
        self.base.network.end(&links);
        let ports = self.access.end(now);
        for &port in &ports {
            self.agents.end_word(port, &mut self.base.network, data);
        }
        let opened = self.setup.end(now);
        for &port in &opened {
            self.agents.end_setup(port, &self.base.network);
        }
        self.base.network.free(&links);
        self.agents.listen(&mut self.base.network);
        for freed in [&ports, &opened] {
            self.agents.free(now, freed, &mut self.base.network);
        }
        self.base.links.recycle(links);
        self.access.recycle(ports);
        if self.agents.wake(now) | !opened.is_empty() {
            self.base.watch.disturb();
        }
        self.setup.recycle(opened);
        while let Some(key) = self.base.ring() {
            self.base.rung.push(key);
        }
        true
    }

    /// The operations finished since the last call, in the order in which they were.
    pub fn take_finished(&mut self, into: &mut Vec<OperationId>) {
        into.clear();
        into.extend(self.agents.finished.drain(..).map(OperationId));
    }

    /// The timers that went off since the last call.
    pub fn take_timers(&mut self, into: &mut Vec<u32>) {
        self.base.take_timers(into);
    }

    /// What made [`Engine::run`] stop with [`Stop::Fault`]. Wrong words can be passed over by
    /// running on; a word that went astray cannot.
    pub fn take_fault(&mut self) -> Option<FaultKind> {
        if let Some(row) = self.base.network.stray {
            let Row { cell, channel, feed, .. } = self.tables.rows[row as usize];
            let tag = self.base.network.head(row).expect("a word is there");
            let link = if let Feed::Link(link) = feed { link } else { LinkId::NONE };
            let (connection, word) = (ConnectionId(tag.stream()), tag.index());
            return Some(FaultKind::Stray { cell, channel, link, connection, word });
        }
        let wrong = self.agents.wrong.take()?;
        let stream = &self.agents.streams[wrong.stream as usize];
        Some(FaultKind::WrongWord {
            cell: stream.cell,
            channel: self.tables.rows[stream.row as usize].channel,
            expected: stream.connection,
            expected_word: wrong.expected,
            connection: ConnectionId(wrong.tag.stream()),
            word: wrong.tag.index(),
        })
    }

    /// An operation of the present context.
    pub fn operation(&self, id: OperationId) -> OperationState {
        let stream = &self.agents.streams[id.0 as usize];
        OperationState {
            cell: stream.cell,
            direction: stream.direction,
            connection: stream.connection,
            words: stream.words,
            first_word: stream.first,
            opened: stream.opened,
            slot: stream.slot,
        }
    }

    /// Words that a link has carried in this context.
    pub fn link_words(&self, link: LinkId) -> u64 {
        self.base.link_words(link)
    }

    /// Words that a cell's agent has moved in this context, both directions together.
    pub fn agent_words(&self, cell: CellId) -> u64 {
        self.agents.words_of(cell)
    }

    /// The link that carried most words in this context, of several the first.
    pub(crate) fn busiest_link(&self) -> Option<(LinkId, u64)> {
        self.base.network.busiest_link().map(|(link, words)| (LinkId(link), words))
    }

    /// The cell whose agent moved most words in this context, of several the first.
    pub(crate) fn busiest_agent(&self) -> Option<(CellId, u64)> {
        self.agents.busiest()
    }

    /// One clock in which something happens, for tests that look at every one.
    #[cfg(test)]
    pub(crate) fn step(&mut self, data: &mut dyn Payload) -> bool {
        self.settle();
        self.advance(data)
    }

    /// Conservation: what was injected was delivered, is in a queue, or is in an agent's hands.
    #[cfg(test)]
    pub(crate) fn audit(&self) {
        self.base.network.audit(self.base.links.iter());
        let queued: u64 = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        let under_way = self.agents.injected - self.agents.delivered - queued;
        let busy = self.access.iter().count() + self.agents.begun.len();
        assert!(under_way <= busy as u64, "{under_way} words nowhere");
    }
}
