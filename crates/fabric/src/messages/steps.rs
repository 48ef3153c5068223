//! Execution of a step plan by message passing, with a check of every word.
//!
//! Each cell sends the messages of its list in order and receives messages in order of arrival. A
//! message is not sent before the words that it passes on have been received, nor before all messages
//! of connections that the set orders before its own ([`StepWaits`]), which costs nothing.
//!
//! The words are those of [`synthetic_word`] of their connection, so the value of a word identifies
//! it wherever it is. Connections of a cell to itself need no message.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, LinkId, Lists, PhaseId, Piece, StepWaits, Steps};

use super::engine::{Message, MessageEngine, MessageEvent};
use super::run::{MessageOptions, MessagesReport};
use crate::engine::Stop;
use crate::fault::{Fault, FaultKind};
use crate::payload::{Payload, synthetic_word};
use crate::trace::{StreamSpan, Trace};

/// Executes a step plan with words that are all different and checks each. The plan is verified;
/// `options.order` is ignored, as the plan has the order of sending.
///
/// # Errors
/// A message without a route, or a deadlock, with its cycle of waits.
pub fn run_steps(steps: &Steps, options: &MessageOptions) -> Result<MessagesReport, Fault> {
    let mut engine = MessageEngine::new(steps.machine().clone(), options.datelines);
    if !options.skip {
        engine = engine.without_skipping();
    }
    let mut run = StepsRun::new(engine, steps, options);
    match run.execute() {
        Ok(()) => Ok(run.report()),
        Err(kind) => {
            let clock = run.engine.now();
            Err(Fault { set: steps.set().name().to_owned(), phase: None, clock, kind })
        }
    }
}

/// The data of a checked run. It needs no memory, because a word is a function of its connection and
/// index. Messages are labelled with their numbers in the plan.
struct StepPayload<'a> {
    steps: &'a Steps,
    seed: u64,
    wrong: u64,
}

impl StepPayload<'_> {
    /// The value of a word of a message; `None` if the message does not have it.
    fn word(&self, message: ConnectionId, mut at: u32) -> Option<u64> {
        for &Piece { connection, first_word, words } in self.pieces(message) {
            if at < words {
                return Some(synthetic_word(self.seed, connection, first_word + at));
            }
            at -= words;
        }
        None
    }

    fn pieces(&self, message: ConnectionId) -> &[Piece] {
        self.steps.messages().get(message.index()).pieces
    }
}

impl Payload for StepPayload<'_> {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let received = self.word(from.0, from.1);
        self.wrong += u64::from(received.is_none() || received != self.word(to.0, to.1));
    }

    fn transfer_run(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32), words: u32) {
        let length = self.steps.messages().get(to.0.index()).words();
        let exist = length >= u64::from(to.1) + u64::from(words);
        // The same messages and indices have the same values, so there is nothing to compare.
        if from != to || !exist {
            (0..words).for_each(|i| self.transfer((from.0, from.1 + i), (to.0, to.1 + i)));
        }
    }
}

struct StepsRun<'a> {
    engine: MessageEngine,
    steps: &'a Steps,
    data: StepPayload<'a>,
    /// The messages that each cell sends, in the order of the plan.
    sends: Lists<u32>,
    /// Per cell, the messages that it has launched, and whether the last one has not left yet.
    launched: Vec<(u32, bool)>,
    waits: StepWaits<'a>,
    received: usize,
    trace: Option<Trace>,
}

impl<'a> StepsRun<'a> {
    fn new(engine: MessageEngine, steps: &'a Steps, options: &MessageOptions) -> Self {
        let trace = Trace {
            clock_hz: engine.machine().parameters().clock_hz,
            sets: vec![steps.set().name().to_owned()],
            ..Trace::default()
        };
        let agents = engine.machine().agent_count();
        let sources = steps.messages().iter().zip(0..).map(|(m, row)| (m.source.0, row));
        Self {
            engine,
            steps,
            data: StepPayload { steps, seed: options.seed, wrong: 0 },
            sends: Lists::new(agents, sources),
            launched: vec![(0, false); agents],
            waits: StepWaits::new(steps),
            received: 0,
            trace: options.trace.then_some(trace),
        }
    }

    fn execute(&mut self) -> Result<(), FaultKind> {
        let mut expected = vec![0u64; self.launched.len()];
        for message in self.steps.messages().iter() {
            expected[message.target.index()] += 1;
        }
        for (cell, &messages) in expected.iter().enumerate() {
            self.engine.receive(CellId::from_index(cell), messages);
        }
        for cell in 0..to_u32(self.launched.len()) {
            self.send_next(cell)?;
        }
        let (mut events, mut ready) = (Vec::new(), Vec::new());
        loop {
            match self.engine.run(&mut self.data) {
                Stop::Finished => {
                    self.engine.take_events(&mut events);
                    for event in &events {
                        self.event(event, &mut ready)?;
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

    /// Submits the next message of a cell, if it waits for nothing and the last one has left.
    fn send_next(&mut self, cell: u32) -> Result<(), FaultKind> {
        let (launched, leaving) = self.launched[index(cell)];
        let next = self.sends.of(cell).get(index(launched)).copied();
        let Some(row) = next.filter(|&row| !leaving && self.waits.is_ready(row)) else {
            return Ok(());
        };
        self.launched[index(cell)] = (launched + 1, true);
        let message = self.steps.messages().get(index(row));
        self.engine.send(Message {
            source: message.source,
            target: message.target,
            words: to_u32(message.words()),
            label: ConnectionId(row),
        })
    }

    fn event(&mut self, event: &MessageEvent, ready: &mut Vec<u32>) -> Result<(), FaultKind> {
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
                open: event.start,
                close: self.engine.now(),
            });
        }
        match event.direction {
            Direction::Send => {
                self.launched[cell.index()].1 = false;
                self.send_next(cell.0)
            }
            Direction::Receive => {
                self.received += 1;
                self.waits.received(label.0, ready);
                ready.drain(..).try_for_each(|row| {
                    let source = self.steps.messages().get(index(row)).source;
                    self.send_next(source.0)
                })
            }
        }
    }

    fn report(self) -> MessagesReport {
        let links = (0..self.engine.machine().link_count()).map(LinkId::from_index);
        let words = links.map(|link| (link, self.engine.link_words(link)));
        let wrong = self.data.wrong.max(self.engine.wrong_words());
        let moved: u64 = self.steps.messages().iter().map(|message| message.words()).sum();
        let complete = self.received == self.steps.messages().len();
        MessagesReport {
            set: self.steps.set().name().to_owned(),
            clocks: self.engine.now(),
            messages: self.received,
            words: self.engine.delivered(),
            word_hops: self.engine.word_hops(),
            payload_ok: wrong == 0 && complete && self.engine.delivered() == moved,
            wrong,
            // `max_by_key` returns the last of equals, which is the first in reverse.
            busiest_link: words.rev().max_by_key(|link| link.1).filter(|link| link.1 > 0),
            trace: self.trace,
        }
    }
}
