//! The emulated connection machine: network, agents and time, simulated event by event.
//!
//! The engine knows contexts and operations, and nothing about the driver: an exchange that submits
//! whole operation lists, or a runtime whose cells request one word at a time. The driver writes a
//! context ([`Engine::switch`]), submits operations ([`Engine::submit`]) and runs the machine until
//! an operation finishes, a fault occurs, a timer expires or nothing is in progress
//! ([`Engine::run`]). It may then submit more operations in the same clock and run on.
//!
//! Queues hold tags, not data. When a word is delivered, the driver's [`Payload`] copies it from
//! the sender's data to the receiver's, so the sender must not change data that is still in transit.

use std::sync::Arc;

use conset_ir::convert::index;
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Direction, Feed, LinkId, Machine, Operation, PhaseImage,
};

pub use crate::agents::Submission;
use crate::agents::{Agents, AgentsSnapshot, SubmittedOperation};
use crate::base::{Base, BaseSnapshot};
use crate::delay_queue::{DelayQueue, DelayQueueSnapshot};
use crate::fast_forward::DetectorAction;
use crate::fault::{FaultKind, GateProblem};
use crate::payload::Payload;
use crate::tables::{LoadedTables, TableRow};

mod faults;

pub(crate) use faults::LostWords;

/// Number of an operation, from 0 after each context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u32);

/// Why [`Engine::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Operations have finished; [`Engine::take_finished`] returns them.
    Finished,
    /// Timers have expired; [`Engine::take_timers`] returns them.
    Timer,
    /// A word was misrouted or reached the wrong operation; [`Engine::take_fault`] returns the fault.
    Fault,
    /// Nothing is in progress: every operation has finished, or is deadlocked.
    Idle,
}

/// The state of a submitted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationState {
    /// The cell.
    pub cell: CellId,
    /// Send or receive.
    pub direction: Direction,
    /// The connection.
    pub connection: ConnectionId,
    /// Words to move.
    pub words: u32,
    /// The index of the first word in the connection.
    pub first_word: u32,
    /// When it was opened, in clocks since the engine was created; 0 before that.
    pub opened: u64,
    /// Its slot among the port's open streams, below the larger of the machine's `streams` and 2;
    /// `u32::MAX` before it is opened.
    pub slot: u32,
}

/// Planned starts are at most this clock, so that no later clock overflows.
const LATEST_START: u64 = 1 << 63;

/// Links, channels, agents and time.
///
/// ```
/// use std::sync::Arc;
/// use conset_fabric::{Engine, SetBuffers, Stop};
/// use conset_ir::{ConnectionSet, Machine};
///
/// let mut engine = Engine::new(Arc::new(Machine::from_spec("ring:4")?));
/// engine.set_timer(10, 7);
/// let mut data = SetBuffers::new(&ConnectionSet::new("empty", vec![])?);
/// assert_eq!(engine.run(&mut data), Stop::Timer);
/// assert_eq!(engine.now(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) base: Base<u32>,
    pub(crate) agents: Agents,
    pub(crate) tables: LoadedTables,
    /// Ports that move a word.
    access: DelayQueue<u32>,
    /// Ports that open a stream, without and with the overhead between nodes.
    setup: [DelayQueue<u32>; 2],
    /// The clock from which planned starts count, the end of the switch; `None` on a machine
    /// without timed starts.
    epoch: Option<u64>,
    snapshot: Box<EngineSnapshot>,
}

/// A snapshot for the detection of periods.
#[derive(Clone, Debug, Default)]
struct EngineSnapshot {
    base: BaseSnapshot,
    agents: AgentsSnapshot,
    access: DelayQueueSnapshot<u32>,
}

impl Engine {
    /// The machine at clock 0, with an empty context.
    pub fn new(machine: Arc<Machine>) -> Self {
        let parameters = machine.parameters();
        Self {
            agents: Agents::new(machine.agent_count(), parameters),
            tables: LoadedTables::default(),
            access: DelayQueue::new(parameters.access_clocks_per_word),
            setup: [0, parameters.network_overhead]
                .map(|overhead| DelayQueue::new(parameters.stream_setup + overhead)),
            epoch: parameters.has_timed_starts().then_some(0),
            snapshot: Box::default(),
            base: Base::new(machine),
        }
    }

    /// The engine without skipping of periods: it simulates every clock in which something happens.
    /// The results are the same; the simulation takes longer.
    #[must_use]
    pub fn without_skipping(mut self) -> Self {
        self.base.detector.disable();
        self
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.base.machine
    }

    /// Clocks since the engine was created.
    pub fn now(&self) -> u64 {
        self.base.now
    }

    /// Words carried over links since the engine was created.
    pub fn word_hops(&self) -> u64 {
        self.base.network.word_hops
    }

    /// Words delivered since the engine was created.
    pub fn delivered(&self) -> u64 {
        self.agents.delivered
    }

    /// Words delivered to operations that did not expect them, since the engine was created.
    pub fn wrong_words(&self) -> u64 {
        self.agents.wrong_words
    }

    /// Number of operations submitted in this context that have not finished.
    pub fn unfinished(&self) -> usize {
        self.agents.unfinished
    }

    /// Writes a context into every cell and discards the previous one: its tables, operations and
    /// counts. The clock advances by `t_sync + t_phase`. No timer may expire within these clocks,
    /// because it would be missed; a driver with timers uses [`Engine::load`].
    ///
    /// # Errors
    /// As [`Engine::load`]; the clock does not advance then.
    pub fn switch(&mut self, phase: &PhaseImage) -> Result<(), FaultKind> {
        self.load(phase)?;
        self.base.now =
            self.base.now.saturating_add(self.base.machine.parameters().switch_clocks());
        self.epoch = self.epoch.map(|_| self.base.now);
        Ok(())
    }

    /// [`Engine::switch`] without advancing the clock, for a driver that has let the clocks of the
    /// switch pass while other actions were in progress.
    ///
    /// # Errors
    /// Words left in any channel ([`FaultKind::Undrained`]), or a table that the machine cannot
    /// hold ([`FaultKind::Table`]).
    pub fn load(&mut self, phase: &PhaseImage) -> Result<(), FaultKind> {
        if let Some(fault) = self.undrained() {
            return Err(fault);
        }
        let written = self.tables.write(&self.base.machine, phase)?;
        self.base.detector.reset();
        self.agents.load(written.channels.len());
        self.base.network.load(written.channels, written.served);
        self.base.in_flight.clear();
        self.access.clear();
        self.setup.iter_mut().for_each(DelayQueue::clear);
        self.epoch = self.epoch.map(|_| self.base.now);
        if self.base.injection.is_some() {
            self.keep_stopped();
        }
        Ok(())
    }

    /// Whether a word or the opening of a stream is in progress, a port waits for a planned start, or a fault holds
    /// operations up for some clocks, after [`Engine::run`] has returned. If not, only timers and new operations can change the
    /// state.
    pub fn is_moving(&self) -> bool {
        let words = [self.base.in_flight.next_end(), self.access.next_end()];
        words.iter().chain(&self.next_openings()).any(Option::is_some)
            || self.base.is_held_up(self.agents.unfinished > 0)
    }

    /// The clocks at which an opening ends, and at which one may start.
    fn next_openings(&self) -> [Option<u64>; 3] {
        let [without, with] = self.setup.each_ref().map(DelayQueue::next_end);
        [without, with, self.agents.next_start()]
    }

    /// The words left in channels, as a fault; `None` if all channels are empty.
    pub fn undrained(&self) -> Option<FaultKind> {
        let (row, _) = self.base.network.occupied().next()?;
        let TableRow { cell, channel, .. } = self.tables.rows[index(row)];
        let stream = self.base.network.head(row).expect("it holds words").stream();
        let words = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        let channels = self.base.network.occupied().count();
        let connection = ConnectionId(stream);
        Some(FaultKind::Undrained { cell, channel, connection, words, channels })
    }

    /// Discards every word in the channels and returns their number. A real machine cannot do this;
    /// it is for a driver that counts errors and continues.
    pub fn discard(&mut self) -> u64 {
        let words = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        self.base.detector.reset();
        self.base.network.load(Vec::new(), []);
        self.agents.load(0);
        self.base.in_flight.clear();
        self.access.clear();
        self.setup.iter_mut().for_each(DelayQueue::clear);
        words
    }

    /// Appends an operation of `set` to its cell's list. On a machine with timed starts it does not
    /// open before its planned start, in clocks from the end of the context switch; a start after
    /// clock 2^63 is taken as clock 2^63.
    ///
    /// # Errors
    /// A cell that has no live agent or is not that end of the connection, or a gate that the cell's
    /// table does not have.
    ///
    /// # Panics
    /// If the operation moves no words; images have no such operations.
    pub fn submit(
        &mut self,
        set: &ConnectionSet,
        cell: CellId,
        operation: &Operation,
        submission: Submission,
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
        let start = start.min(LATEST_START);
        let has_overhead = self.base.machine.network_overhead(ends.source, ends.target) > 0;
        let operation =
            SubmittedOperation::new(cell, operation, row, start, has_overhead, submission);
        self.base.detector.reset();
        Ok(OperationId(self.agents.submit(operation)))
    }

    /// Allows an operation that was submitted as held to open.
    pub fn release(&mut self, operation: OperationId) {
        self.base.detector.reset();
        self.agents.release(operation.0);
    }

    /// Sets a timer that expires in `clocks` clocks and is reported as `key`.
    pub fn set_timer(&mut self, clocks: u64, key: u32) {
        self.base.set_timer(clocks, key);
    }

    /// Runs until there is something to report. Everything that can happen in the present clock has
    /// happened then.
    pub fn run(&mut self, data: &mut dyn Payload) -> Stop {
        loop {
            if self.base.injection.is_some() {
                self.base.inject(&mut self.agents);
            }
            self.settle();
            if self.base.network.misrouted.is_some() || !self.agents.wrong.is_empty() {
                return Stop::Fault;
            }
            if !self.agents.finished.is_empty() {
                self.base.detector.reset();
                return Stop::Finished;
            }
            if !self.base.expired.is_empty() {
                self.base.detector.reset();
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

    /// Skips whole periods if the machine repeats its state.
    #[cold]
    fn check_period(&mut self, data: &mut dyn Payload) {
        let now = self.base.now;
        let found = match self.base.detector.check(now) {
            DetectorAction::Compare(period) => self.matches_snapshot().then_some(period),
            DetectorAction::TakeSnapshot => None,
            DetectorAction::Wait => return,
        };
        if let Some(period) = found {
            self.skip(period, data);
            self.base.detector.skipped(self.base.now, period);
        } else if self.base.detector.should_snapshot(now) {
            self.base.save(&mut self.snapshot.base);
            self.access.save(now, &mut self.snapshot.access);
            self.agents.save(&mut self.snapshot.agents);
        }
    }

    fn matches_snapshot(&self) -> bool {
        let past = &*self.snapshot;
        self.access.matches(self.base.now, &past.access)
            && self.agents.matches(&past.agents)
            && self.base.matches(&past.base)
    }

    /// Skips as many periods as possible.
    fn skip(&mut self, period: u64, data: &mut dyn Payload) {
        let past = &*self.snapshot;
        let mut limit = self.base.skip_limit(period);
        for at in self.next_openings().into_iter().flatten() {
            limit.before(self.base.now, period, at);
        }
        self.agents.limit_skip(&past.agents, &mut limit);
        let periods = limit.periods();
        if periods > 0 {
            self.agents.skip(&past.agents, periods, data);
            let clocks = self.base.skip(&past.base, period, periods);
            self.access.delay(clocks);
        }
    }

    /// Starts every action that can start in the present clock.
    pub(crate) fn settle(&mut self) {
        loop {
            self.base.network.settle();
            self.agents.handle_reports(&mut self.base.network);
            self.agents.settle(self.base.now, &mut self.base.network);
            let network = &self.base.network;
            let handled = network.arrivals.is_empty() && network.space.is_empty();
            if handled && network.is_settled() {
                break;
            }
        }
        self.base.start_transfers();
        self.access.start(self.base.now, &mut self.agents.started);
        for (setup, opening) in self.setup.iter_mut().zip(&mut self.agents.opening) {
            setup.start(self.base.now, opening);
        }
    }

    /// Advances to the next clock in which an action ends; `false` if nothing is in progress.
    fn advance(&mut self, data: &mut dyn Payload) -> bool {
        let words = [self.base.in_flight.next_end(), self.access.next_end()];
        let next = words.into_iter().chain([self.base.next_timer()]).chain(self.next_openings());
        let next = self.base.next_with_faults(next.flatten().min(), self.agents.unfinished > 0);
        let Some(now) = next else { return false };
        self.base.now = now;
        // All words arrive before any action starts.
        let mut transfers = self.base.in_flight.take_ended(now);
        let mut spoiled = Vec::new();
        if self.base.injection.is_some() {
            self.base.inject(&mut self.agents);
            spoiled = self.spoil(&mut transfers);
        }
        self.base.network.arrive_all(&transfers);
        let mut ports = self.access.take_ended(now);
        match &self.base.injection {
            None => self.end_words(&ports, data),
            Some(_) => self.end_spoiled_words(&ports, data),
        }
        let mut opened = self.setup.each_mut().map(|setup| setup.take_ended(now));
        for &port in opened.iter().flatten() {
            self.agents.end_setup(port, &self.base.network);
        }
        if self.base.injection.is_some() {
            transfers.append(&mut spoiled);
            self.hold_back(&mut transfers, [&mut ports].into_iter().chain(&mut opened));
        }
        self.base.network.serve_links(&transfers);
        self.agents.handle_reports(&mut self.base.network);
        for free in [&ports, &opened[0], &opened[1]] {
            self.agents.serve_ports(now, free, &mut self.base.network);
        }
        self.base.in_flight.recycle(transfers);
        self.access.recycle(ports);
        if self.agents.wake(now) | opened.iter().any(|opened| !opened.is_empty()) {
            self.base.detector.reset();
        }
        for (setup, opened) in self.setup.iter_mut().zip(opened) {
            setup.recycle(opened);
        }
        while let Some(key) = self.base.pop_expired() {
            self.base.expired.push(key);
        }
        true
    }

    /// These ports have moved their words.
    #[inline]
    fn end_words(&mut self, ports: &[u32], data: &mut dyn Payload) {
        for &port in ports {
            self.agents.end_word(port, &mut self.base.network, data);
        }
    }

    /// Moves the operations that finished since the last call into `into`, in order.
    pub fn take_finished(&mut self, into: &mut Vec<OperationId>) {
        into.clear();
        into.extend(self.agents.finished.drain(..).map(OperationId));
    }

    /// Moves the keys of the timers that expired since the last call into `into`.
    pub fn take_timers(&mut self, into: &mut Vec<u32>) {
        self.base.take_timers(into);
    }

    /// The fault for which [`Engine::run`] returned [`Stop::Fault`]. The machine can run on after a
    /// wrong word, but not after a misrouted one.
    pub fn take_fault(&mut self) -> Option<FaultKind> {
        if let Some(row) = self.base.network.misrouted {
            let TableRow { cell, channel, feed, .. } = self.tables.rows[index(row)];
            let tag = self.base.network.head(row).expect("a word is there");
            let link = if let Feed::Link(link) = feed { link } else { LinkId::NONE };
            let (connection, word) = (ConnectionId(tag.stream()), tag.index());
            return Some(FaultKind::Misrouted { cell, channel, link, connection, word });
        }
        let wrong = self.agents.wrong.pop_front()?;
        let operation = &self.agents.operations[index(wrong.operation)];
        Some(FaultKind::WrongWord {
            cell: operation.cell,
            channel: self.tables.rows[index(operation.row)].channel,
            expected: operation.connection,
            expected_word: wrong.expected,
            connection: ConnectionId(wrong.tag.stream()),
            word: wrong.tag.index(),
        })
    }

    /// The state of an operation of the present context.
    ///
    /// # Panics
    /// If `id` is of an earlier context that had more operations.
    pub fn operation(&self, id: OperationId) -> OperationState {
        let operation = &self.agents.operations[index(id.0)];
        OperationState {
            cell: operation.cell,
            direction: operation.direction,
            connection: operation.connection,
            words: operation.words,
            first_word: operation.first,
            opened: operation.opened,
            slot: operation.slot,
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

    /// The link that carried the most words in this context; the first one of equals.
    pub(crate) fn busiest_link(&self) -> Option<(LinkId, u64)> {
        self.base.network.busiest_link().map(|(link, words)| (LinkId(link), words))
    }

    /// The cell whose agent moved the most words in this context; the first one of equals.
    pub(crate) fn busiest_agent(&self) -> Option<(CellId, u64)> {
        self.agents.busiest()
    }

    /// Simulates one clock in which something happens, for tests that examine each of them.
    #[cfg(test)]
    pub(crate) fn step(&mut self, data: &mut dyn Payload) -> bool {
        self.settle();
        self.advance(data)
    }

    /// Checks conservation: each injected word was delivered, is in a queue, or is being moved by an
    /// agent.
    #[cfg(test)]
    pub(crate) fn audit(&self) {
        self.base.network.audit(self.base.in_flight.iter());
        let queued: u64 = self.base.network.occupied().map(|(_, words)| u64::from(words)).sum();
        let in_transit = self.agents.injected - self.agents.delivered - queued;
        let busy = self.access.iter().count() + self.agents.started.len();
        assert!(in_transit <= conset_ir::convert::to_u64(busy), "{in_transit} words are lost");
    }
}
