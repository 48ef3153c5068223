//! Executing a set by message passing: a message per connection, every word checked.
//!
//! Each cell sends its list, one message after the other, and receives whatever arrives until it
//! has as many messages as are addressed to it. The set's order is kept as on the connection side:
//! a message is not sent before all that are ordered before it have been received, at the price
//! of nothing; a cell sends the first message of its list that may be sent.
//!
//! The words are those of [`synthetic_word`], so every word that a message delivers is known by
//! its value. A message is received as a whole and by its label, so nothing can be missing or
//! double when all messages have been received, which the run waits for.

use std::collections::BTreeSet;
use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Direction, LinkId, Machine, PhaseId};

use super::engine::{Message, MessageEngine, MessageEvent};
use super::order::SendLists;
use crate::check::synthetic_word;
use crate::engine::{Payload, Stop};
use crate::fault::{Fault, FaultKind};
use crate::trace::{StreamSpan, Trace};

/// In which order cells send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageOrder {
    /// In the order of the set.
    #[default]
    Given,
    /// In a random order of each cell's own, by the seed.
    Random,
}

/// How messages are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageOptions {
    /// Of the words' values and of the random order.
    pub seed: u64,
    /// The order of sending.
    pub order: MessageOrder,
    /// Change pools at datelines. Without it rings can deadlock.
    pub datelines: bool,
    /// Skip whole periods where the machine repeats itself: the same results, sooner.
    pub skip: bool,
    /// Keep a [`Trace`] of when messages were sent and received.
    pub trace: bool,
}

impl Default for MessageOptions {
    fn default() -> Self {
        Self { seed: 1, order: MessageOrder::Given, datelines: true, skip: true, trace: false }
    }
}

/// What an exchange by messages took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagesReport {
    /// The set's name.
    pub set: String,
    /// Clocks until the last word was received.
    pub clocks: u64,
    /// Messages received.
    pub messages: usize,
    /// Words of data received.
    pub words: u64,
    /// Words carried, counted once on every link, headers and trailers included.
    pub word_hops: u64,
    /// Every word of every message arrived, in order, at the right cell.
    pub payload_ok: bool,
    /// Words whose value or place was not the expected one.
    pub wrong: u64,
    /// The link that carried most words, and how many; the first where several did.
    pub busiest_link: Option<(LinkId, u64)>,
    /// Messages as streams, if asked for.
    pub trace: Option<Trace>,
}

/// Executes a set by message passing with words that are all different and checks each.
///
/// # Errors
/// A message without a live agent or a route, or a deadlock, with its circle of waits.
pub fn run_checked(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    options: &MessageOptions,
) -> Result<MessagesReport, Fault> {
    let mut lists = SendLists::in_order(set, machine.agent_count());
    if options.order == MessageOrder::Random {
        lists.shuffle(options.seed);
    }
    run_lists(machine, set, &lists, options)
}

/// The same with lists of the caller's, in which every connection of the set stands once, at its
/// source; `options.order` is not looked at.
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
    let mut run = Run::new(engine, set, lists, options);
    match run.execute() {
        Ok(()) => Ok(run.report()),
        Err(kind) => {
            let clock = run.engine.now();
            Err(Fault { set: set.name().to_owned(), phase: None, clock, kind })
        }
    }
}

/// The data of a checked run: no memory, every word from its place.
struct Synthetic<'a> {
    set: &'a ConnectionSet,
    seed: u64,
    wrong: u64,
}

impl Payload for Synthetic<'_> {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let received = synthetic_word(self.seed, from.0, from.1);
        let there = to.1 < self.set.get(to.0).words;
        self.wrong += u64::from(!there || received != synthetic_word(self.seed, to.0, to.1));
    }

    fn transfer_run(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32), words: u32) {
        let there = u64::from(self.set.get(to.0).words) >= u64::from(to.1) + u64::from(words);
        // A word is a function of its place, and at the same places stand the same words.
        if from != to || !there {
            (0..words).for_each(|i| self.transfer((from.0, from.1 + i), (to.0, to.1 + i)));
        }
    }
}

struct Run<'a> {
    engine: MessageEngine,
    set: &'a ConnectionSet,
    data: Synthetic<'a>,
    /// Place of each connection in the lists, counted through; only where the set has an order.
    places: Vec<u32>,
    /// Messages before each connection that were not received; only where the set has an order.
    before: Vec<u32>,
    /// Per cell, what may be sent, by place in the lists.
    ready: Vec<BTreeSet<(u32, ConnectionId)>>,
    lists: &'a SendLists,
    /// Per cell, how much of its list has been sent; only where the set has no order.
    sent: Vec<u32>,
    received: usize,
    trace: Option<Trace>,
}

impl<'a> Run<'a> {
    fn new(
        engine: MessageEngine,
        set: &'a ConnectionSet,
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
            data: Synthetic { set, seed: options.seed, wrong: 0 },
            places: Vec::new(),
            before: Vec::new(),
            ready: Vec::new(),
            lists,
            sent: vec![0; lists.cells()],
            received: 0,
            trace: options.trace.then_some(trace),
        };
        if !set.order().is_empty() {
            run.hold_back();
        }
        run
    }

    /// Prepares for a set with an order.
    fn hold_back(&mut self) {
        self.places = vec![0; self.set.len()];
        self.before = vec![0; self.set.len()];
        for (_, after) in self.set.order() {
            self.before[after.index()] += 1;
        }
        let mut place = 0;
        for cell in 0..self.lists.cells() {
            let mut ready = BTreeSet::new();
            for &id in self.lists.of(cell) {
                self.places[id.index()] = place;
                if self.before[id.index()] == 0 {
                    ready.insert((place, id));
                }
                place += 1;
            }
            self.ready.push(ready);
        }
    }

    fn execute(&mut self) -> Result<(), FaultKind> {
        let mut wanted = vec![0u64; self.engine.machine().agent_count()];
        for (id, connection) in self.set.iter() {
            // A source without an agent has no list in which it would be missed.
            if connection.source.index() >= wanted.len() {
                self.send(id)?;
            }
            if let Some(cell) = wanted.get_mut(connection.target.index()) {
                *cell += 1;
            }
        }
        for (cell, &messages) in wanted.iter().enumerate() {
            self.engine.receive(CellId(cell as u32), messages);
        }
        for cell in 0..self.lists.cells() {
            self.next(cell)?;
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
                Stop::Idle => break,
                Stop::Timer | Stop::Fault => {}
            }
        }
        match self.engine.explain() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    fn send(&mut self, id: ConnectionId) -> Result<(), FaultKind> {
        let connection = self.set.get(id);
        let (source, target, words) = (connection.source, connection.target, connection.words);
        self.engine.send(Message { source, target, words, label: id })
    }

    /// Hands over the next message that a cell may send.
    fn next(&mut self, cell: usize) -> Result<(), FaultKind> {
        let id = if self.ready.is_empty() {
            let sent = &mut self.sent[cell];
            let id = self.lists.of(cell).get(*sent as usize).copied();
            *sent += 1;
            id
        } else {
            self.ready[cell].pop_first().map(|(_, id)| id)
        };
        id.map_or(Ok(()), |id| self.send(id))
    }

    fn event(&mut self, event: &MessageEvent) -> Result<(), FaultKind> {
        let Message { source, target, words, label } = event.message;
        let cell = if event.direction == Direction::Send { source } else { target };
        if let Some(trace) = &mut self.trace {
            trace.streams.push(StreamSpan {
                set: 0,
                phase: PhaseId(0),
                cell,
                direction: event.direction,
                connection: label,
                words,
                slot: 0,
                open: event.began,
                close: self.engine.now(),
            });
        }
        match event.direction {
            Direction::Send => self.next(cell.index()),
            Direction::Receive => {
                self.received += 1;
                self.release(label)
            }
        }
    }

    /// A message was received: those that waited for it alone may be sent.
    fn release(&mut self, id: ConnectionId) -> Result<(), FaultKind> {
        let order = self.set.order();
        let from = order.partition_point(|pair| pair.0 < id);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == id) {
            self.before[after.index()] -= 1;
            if self.before[after.index()] == 0 {
                let cell = self.set.get(after).source;
                self.ready[cell.index()].insert((self.places[after.index()], after));
                if self.engine.is_quiet(cell) {
                    self.next(cell.index())?;
                }
            }
        }
        Ok(())
    }

    fn report(self) -> MessagesReport {
        let links = (0..self.engine.machine().link_count() as u32).map(LinkId);
        let words = links.map(|link| (link, self.engine.link_words(link)));
        let wrong = self.data.wrong.max(self.engine.wrong_words());
        let complete =
            self.received == self.set.len() && self.engine.delivered() == self.set.words();
        MessagesReport {
            set: self.set.name().to_owned(),
            clocks: self.engine.now(),
            messages: self.received,
            words: self.engine.delivered(),
            word_hops: self.engine.word_hops(),
            payload_ok: wrong == 0 && complete,
            wrong,
            // The last of equals in reverse is the first.
            busiest_link: words.rev().max_by_key(|link| link.1).filter(|link| link.1 > 0),
            trace: self.trace,
        }
    }
}
