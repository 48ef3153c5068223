//! Execution of a set by message passing: one message per connection, with a check of every word.
//!
//! Each cell sends the messages of its list in order and receives messages in order of arrival
//! until it has all that are addressed to it. The set's order is kept as by the connection machine:
//! a message is not sent before all those ordered before it have been received, which costs
//! nothing; a cell sends the first message of its list that may be sent.
//!
//! The words are those of [`synthetic_word`], so the value of a word identifies it. A message is
//! received as a whole and by its label, so no word is missing or duplicated once all messages have
//! been received, which the run waits for.

use std::collections::BTreeSet;
use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, LinkId, Machine, PhaseId};

use super::engine::{Message, MessageEngine, MessageEvent};
use super::order::SendLists;
use crate::engine::Stop;
use crate::fault::{Fault, FaultKind};
use crate::payload::{Payload, synthetic_word};
use crate::trace::{StreamSpan, Trace};

/// The order in which cells send their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageOrder {
    /// The order of the set.
    #[default]
    Given,
    /// The messages with the most words first, otherwise in the order of the set.
    LongestFirst,
    /// By the target's number, each cell beginning with the number after its own, so that in an
    /// all-to-all exchange every cell sends to another one at a time.
    Staggered,
    /// A random order for each cell, determined by the seed.
    Random,
}

impl MessageOrder {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Given, Self::LongestFirst, Self::Staggered, Self::Random];

    /// The spelling of the order.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::LongestFirst => "longest-first",
            Self::Staggered => "staggered",
            Self::Random => "random",
        }
    }
}

/// Options of an exchange by message passing.
///
/// ```
/// use conset_fabric::messages::{MessageOptions, MessageOrder};
///
/// let options = MessageOptions::default().seed(7).with_order(MessageOrder::Random);
/// assert!(options.datelines && options.skip && !options.trace);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageOptions {
    /// Seed of the words' values and of the random order.
    pub seed: u64,
    /// The order of sending.
    pub order: MessageOrder,
    /// Change pools at datelines. Without this, messages on rings can deadlock.
    pub datelines: bool,
    /// Skip whole periods where the state of the machine repeats; the results are the same.
    pub skip: bool,
    /// Record a [`Trace`] of when messages were sent and received.
    pub trace: bool,
}

impl Default for MessageOptions {
    fn default() -> Self {
        Self { seed: 1, order: MessageOrder::Given, datelines: true, skip: true, trace: false }
    }
}

impl MessageOptions {
    /// Sets [`MessageOptions::seed`].
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets [`MessageOptions::order`].
    #[must_use]
    pub fn with_order(self, order: MessageOrder) -> Self {
        Self { order, ..self }
    }

    /// Sets [`MessageOptions::datelines`].
    #[must_use]
    pub fn datelines(self, datelines: bool) -> Self {
        Self { datelines, ..self }
    }

    /// Sets [`MessageOptions::skip`].
    #[must_use]
    pub fn skip(self, skip: bool) -> Self {
        Self { skip, ..self }
    }

    /// Sets [`MessageOptions::trace`].
    #[must_use]
    pub fn trace(self, trace: bool) -> Self {
        Self { trace, ..self }
    }
}

/// Times and counts of an exchange by message passing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessagesReport {
    /// The set's name.
    pub set: String,
    /// Clocks until the last word was received.
    pub clocks: u64,
    /// Messages received.
    pub messages: usize,
    /// Words of data received.
    pub words: u64,
    /// Word-hops: words carried, counted once on every link, including headers and trailers.
    pub word_hops: u64,
    /// Every word of every message arrived, in order, at the right cell.
    pub payload_ok: bool,
    /// Words whose value or index was not the expected one.
    pub wrong: u64,
    /// The link that carried the most words, and their number; the first one of equals.
    pub busiest_link: Option<(LinkId, u64)>,
    /// The messages as streams, if requested.
    pub trace: Option<Trace>,
}

/// Executes a set by message passing with words that are all different and checks each.
///
/// # Errors
/// A message without a live agent or a route, or a deadlock, with its cycle of waits.
pub fn run_checked(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    options: &MessageOptions,
) -> Result<MessagesReport, Fault> {
    let lists = SendLists::of_set(set, machine.agent_count(), options);
    run_lists(machine, set, &lists, options)
}

/// [`run_checked`] with the caller's own lists, which must have every connection of the set once, at
/// its source; `options.order` is ignored.
///
/// # Errors
/// As [`run_checked`].
pub fn run_lists(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    lists: &SendLists,
    options: &MessageOptions,
) -> Result<MessagesReport, Fault> {
    let mut engine = MessageEngine::new(machine.clone(), options.datelines);
    if !options.skip {
        engine = engine.without_skipping();
    }
    let data = MessagePayload::new(set, options.seed);
    let mut run = MessageRun::new(engine, (set, data), lists, options);
    match run.execute() {
        Ok(()) => Ok(run.report()),
        Err(kind) => {
            let clock = run.engine.now();
            Err(Fault { set: set.name().to_owned(), phase: None, clock, kind })
        }
    }
}

impl MessagesReport {
    /// The report of a run that had to deliver this number of messages and words.
    pub(super) fn new(
        engine: &MessageEngine,
        set: &str,
        expected: (usize, u64),
        received: usize,
        wrong: u64,
        trace: Option<Trace>,
    ) -> Self {
        let links = (0..engine.machine().link_count()).map(LinkId::from_index);
        let words = links.map(|link| (link, engine.link_words(link)));
        let complete = (received, engine.delivered()) == expected;
        Self {
            set: set.to_owned(),
            clocks: engine.now(),
            messages: received,
            words: engine.delivered(),
            word_hops: engine.word_hops(),
            payload_ok: wrong == 0 && complete,
            wrong,
            // `max_by_key` returns the last of equals, which is the first in reverse.
            busiest_link: words.rev().max_by_key(|link| link.1).filter(|link| link.1 > 0),
            trace,
        }
    }
}

/// The stream of an event, which ends now.
pub(super) fn span(event: &MessageEvent, now: u64) -> StreamSpan {
    let Message { source, target, words, label } = event.message;
    StreamSpan {
        set: 0,
        phase: PhaseId(0),
        cell: if event.direction == Direction::Send { source } else { target },
        direction: event.direction,
        connection: label,
        first_word: 0,
        words,
        slot: 0,
        open: event.start,
        close: now,
        arrived: event.arrived,
    }
}

/// The data of a run, by label of the message.
pub(super) trait MessageData: Payload {
    /// The source begins to send a message.
    fn begin(&mut self, _message: ConnectionId) {}

    /// The reception of a message has ended.
    ///
    /// # Errors
    /// What the receiver notices.
    fn end(&mut self, _engine: &MessageEngine, _message: ConnectionId) -> Result<(), FaultKind> {
        Ok(())
    }

    /// A fault was noticed at a clock. Returns whether the exchange goes on, so that what can still arrive does.
    fn goes_on_after(&mut self, _clock: u64, _kind: &FaultKind) -> bool {
        false
    }
}

/// The data of a checked run. It needs no memory, because a word is a function of its index.
pub(super) struct MessagePayload<'a> {
    set: &'a ConnectionSet,
    seed: u64,
    wrong: u64,
}

impl<'a> MessagePayload<'a> {
    pub(super) fn new(set: &'a ConnectionSet, seed: u64) -> Self {
        Self { set, seed, wrong: 0 }
    }
}

impl MessageData for MessagePayload<'_> {}

impl Payload for MessagePayload<'_> {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let received = synthetic_word(self.seed, from.0, from.1);
        let exists = to.1 < self.set.get(to.0).words;
        self.wrong += u64::from(!exists || received != synthetic_word(self.seed, to.0, to.1));
    }

    /// The same connections and indices have the same values, so there is nothing to compare.
    fn transfer_run(&mut self, _first: (ConnectionId, u32), _words: u32) {}
}

/// The exchange of a set.
pub(super) struct MessageRun<'a, D> {
    pub(super) engine: MessageEngine,
    set: &'a ConnectionSet,
    pub(super) data: D,
    /// The position of each connection in the concatenated lists; empty if the set has no order.
    positions: Vec<u32>,
    /// Number of messages before each connection that were not received; empty if the set has no
    /// order.
    before: Vec<u32>,
    /// Per cell, the messages that may be sent, by position; empty if the set has no order.
    ready: Vec<BTreeSet<(u32, ConnectionId)>>,
    lists: &'a SendLists,
    /// Per cell, the number of messages of its list already sent; used if the set has no order.
    sent: Vec<usize>,
    received: usize,
    trace: Option<Trace>,
}

impl<'a, D: MessageData> MessageRun<'a, D> {
    pub(super) fn new(
        engine: MessageEngine,
        (set, data): (&'a ConnectionSet, D),
        lists: &'a SendLists,
        options: &MessageOptions,
    ) -> Self {
        let trace = Trace {
            clock_hz: engine.machine().parameters().clock_hz,
            sets: vec![set.name().to_owned()],
            ..Trace::default()
        };
        let mut run = Self {
            engine,
            set,
            data,
            positions: Vec::new(),
            before: Vec::new(),
            ready: Vec::new(),
            lists,
            sent: vec![0; lists.cell_count()],
            received: 0,
            trace: options.trace.then_some(trace),
        };
        if !set.order().is_empty() {
            run.prepare_order();
        }
        run
    }

    /// Prepares the fields for a set with an order.
    fn prepare_order(&mut self) {
        self.positions = vec![0; self.set.len()];
        self.before = vec![0; self.set.len()];
        for (_, after) in self.set.order() {
            self.before[after.index()] += 1;
        }
        let mut position = 0;
        for cell in 0..self.lists.cell_count() {
            let mut ready = BTreeSet::new();
            for &id in self.lists.of(cell) {
                self.positions[id.index()] = position;
                if self.before[id.index()] == 0 {
                    ready.insert((position, id));
                }
                position += 1;
            }
            self.ready.push(ready);
        }
    }

    pub(super) fn execute(&mut self) -> Result<(), FaultKind> {
        let mut expected = vec![0u64; self.engine.machine().agent_count()];
        for (id, connection) in self.set.iter() {
            // A source without an agent has no list, so its message is sent here and fails.
            if connection.source.index() >= expected.len() {
                self.send(id)?;
            }
            if let Some(cell) = expected.get_mut(connection.target.index()) {
                *cell += 1;
            }
        }
        for (cell, &messages) in expected.iter().enumerate() {
            self.engine.receive(CellId::from_index(cell), messages);
        }
        for cell in 0..self.lists.cell_count() {
            self.send_next(cell)?;
        }
        let mut events = Vec::new();
        loop {
            match self.engine.run(&mut self.data) {
                Stop::Finished => {
                    self.engine.take_events(&mut events);
                    for event in &events {
                        self.event(event)?;
                    }
                }
                Stop::Fault if self.engine.goes_on(&mut self.data) => {}
                Stop::Idle | Stop::Fault => break,
                Stop::Timer => {}
            }
        }
        self.engine.outcome()
    }

    fn send(&mut self, id: ConnectionId) -> Result<(), FaultKind> {
        let connection = self.set.get(id);
        let (source, target, words) = (connection.source, connection.target, connection.words);
        self.data.begin(id);
        self.engine.send(Message { source, target, words, label: id })
    }

    /// Submits the next message that a cell may send.
    fn send_next(&mut self, cell: usize) -> Result<(), FaultKind> {
        let id = if self.ready.is_empty() {
            let sent = &mut self.sent[cell];
            let id = self.lists.of(cell).get(*sent).copied();
            *sent += 1;
            id
        } else {
            self.ready[cell].pop_first().map(|(_, id)| id)
        };
        id.map_or(Ok(()), |id| self.send(id))
    }

    fn event(&mut self, event: &MessageEvent) -> Result<(), FaultKind> {
        if let Some(trace) = &mut self.trace {
            trace.streams.push(span(event, self.engine.now()));
        }
        match event.direction {
            Direction::Send => self.send_next(event.message.source.index()),
            Direction::Receive => {
                if let Err(kind) = self.data.end(&self.engine, event.message.label) {
                    let goes_on = self.data.goes_on_after(self.engine.now(), &kind);
                    return if goes_on { Ok(()) } else { Err(kind) };
                }
                self.received += 1;
                self.release(event.message.label)
            }
        }
    }

    /// Records that a message was received; those that waited only for it may be sent.
    fn release(&mut self, id: ConnectionId) -> Result<(), FaultKind> {
        let order = self.set.order();
        let from = order.partition_point(|pair| pair.0 < id);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == id) {
            self.before[after.index()] -= 1;
            if self.before[after.index()] == 0 {
                let cell = self.set.get(after).source;
                self.ready[cell.index()].insert((self.positions[after.index()], after));
                if self.engine.is_quiet(cell) {
                    self.send_next(cell.index())?;
                }
            }
        }
        Ok(())
    }
}

impl MessageRun<'_, MessagePayload<'_>> {
    fn report(self) -> MessagesReport {
        let expected = (self.set.len(), self.set.words());
        let (wrong, received) = (self.data.wrong, self.received);
        MessagesReport::new(&self.engine, self.set.name(), expected, received, wrong, self.trace)
    }
}
