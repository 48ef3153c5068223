//! Execution of a step plan by message passing, with a check of every word.
//!
//! There are no barriers. A message is not sent before the words that it passes on have been
//! received, nor before all messages of connections that the set orders before its own
//! ([`StepWaits`]). A cell copies the words that it passes on, which takes `copy_clocks_per_word` for
//! each.
//!
//! * **Standing:** each cell sends the messages of its list in order, the next one when the tail of
//!   the last one has left, and receives messages in order of arrival. They have a place in its
//!   memory, since the plan is known.
//! * **Rendezvous:** each cell executes its list strictly in order, sends and receives alike. (On
//!   the CM-5, an exchange of two cells is two messages in turn.)
//!
//! The words are those of [`synthetic_word`] of their connection, so the value of a word identifies
//! it wherever it is. Connections of a cell to itself need no message.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Lists, Piece, Protocol, StepWaits, Steps};

use super::engine::{Message, MessageEngine, MessageEvent};
use super::run::{MessageData, MessageOptions, MessagesReport, span};
use crate::engine::Stop;
use crate::fault::{Fault, FaultKind};
use crate::payload::{Payload, synthetic_word};
use crate::trace::Trace;

/// Executes a step plan with words that are all different and checks each. The plan is verified;
/// `options.order` is ignored, as the plan has the order of sending.
///
/// # Errors
/// A message without a route, or a deadlock, with its cycle of waits.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_fabric::messages::{MessageOptions, run_steps};
/// use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, Piece};
/// use conset_ir::{StepMessages, Steps};
///
/// let cm5 = Arc::new(Machine::from_spec("cm5:32")?);
/// let set = ConnectionSet::new("one", vec![Connection::new(CellId(0), CellId(1), 4)])?;
/// let mut messages = StepMessages::new();
/// messages.push(CellId(0), CellId(1), &[Piece::whole(&set, ConnectionId(0))])?;
/// messages.end_step()?;
/// let steps = Steps::new(cm5, Arc::new(set), messages)?;
/// let report = run_steps(&steps, &MessageOptions::default())?;
/// // 16 bytes: 73 + 0.112 * 16 = 74.8 us in the paper, in ticks of 10 ns.
/// assert_eq!((report.clocks, report.payload_ok), (7480, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_steps(steps: &Steps, options: &MessageOptions) -> Result<MessagesReport, Fault> {
    let mut engine = MessageEngine::new(steps.machine().clone(), options.datelines);
    if !options.skip {
        engine = engine.without_skipping();
    }
    let data = StepPayload { steps, seed: options.seed, wrong: 0 };
    let mut run = StepsRun::new(engine, (steps, data), options);
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

impl MessageData for StepPayload<'_> {}

impl Payload for StepPayload<'_> {
    #[inline]
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let received = self.word(from.0, from.1);
        self.wrong += u64::from(received.is_none() || received != self.word(to.0, to.1));
    }

    /// The same messages and indices have the same values, so there is nothing to compare.
    fn transfer_run(&mut self, _first: (ConnectionId, u32), _words: u32) {}
}

/// The exchange of a plan.
pub(super) struct StepsRun<'a, D> {
    pub(super) engine: MessageEngine,
    steps: &'a Steps,
    pub(super) data: D,
    protocol: Protocol,
    /// What each cell does in order: with rendezvous all its messages, else those that it sends.
    lists: Lists<u32>,
    /// Per cell, how much of its list it has begun, and whether the last operation is not done.
    begun: Vec<(u32, bool)>,
    waits: StepWaits<'a>,
    received: usize,
    trace: Option<Trace>,
}

impl<'a, D: MessageData> StepsRun<'a, D> {
    pub(super) fn new(
        engine: MessageEngine,
        (steps, data): (&'a Steps, D),
        options: &MessageOptions,
    ) -> Self {
        let parameters = engine.machine().parameters();
        let trace = options.trace.then(|| Trace {
            clock_hz: parameters.clock_hz,
            sets: vec![steps.set().name().to_owned()],
            ..Trace::default()
        });
        let agents = engine.machine().agent_count();
        let lists = match parameters.protocol {
            Protocol::Rendezvous => steps.lists(),
            Protocol::Standing => {
                let sources = steps.messages().iter().zip(0..).map(|(m, row)| (m.source.0, row));
                Lists::new(agents, sources)
            }
        };
        Self {
            protocol: parameters.protocol,
            engine,
            steps,
            data,
            lists,
            begun: vec![(0, false); agents],
            waits: StepWaits::new(steps),
            received: 0,
            trace,
        }
    }

    pub(super) fn execute(&mut self) -> Result<(), FaultKind> {
        if self.protocol == Protocol::Standing {
            let mut expected = vec![0u64; self.begun.len()];
            for message in self.steps.messages().iter() {
                expected[message.target.index()] += 1;
            }
            for (cell, &messages) in expected.iter().enumerate() {
                self.engine.receive(CellId::from_index(cell), messages);
            }
        }
        for cell in 0..to_u32(self.begun.len()) {
            self.begin_next(cell)?;
        }
        let (mut events, mut copied, mut ready) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            match self.engine.run(&mut self.data) {
                Stop::Finished => {
                    self.engine.take_events(&mut events);
                    for event in &events {
                        self.event(event, &mut ready)?;
                    }
                }
                Stop::Timer => {
                    self.engine.take_timers(&mut copied);
                    for row in copied.drain(..) {
                        self.receive(row, &mut ready)?;
                    }
                }
                Stop::Fault if self.engine.goes_on(&mut self.data) => {}
                Stop::Idle | Stop::Fault => break,
            }
        }
        self.engine.outcome()
    }

    /// Begins the next operation of a cell, if the last one is done and it waits for nothing.
    fn begin_next(&mut self, cell: u32) -> Result<(), FaultKind> {
        let (begun, busy) = self.begun[index(cell)];
        let next = self.lists.of(cell).get(index(begun)).copied();
        let Some(row) = next.filter(|_| !busy) else { return Ok(()) };
        let message = self.steps.messages().get(index(row));
        let (source, target) = (message.source, message.target);
        if source.0 == cell {
            if !self.waits.is_ready(row) {
                return Ok(());
            }
            let words = to_u32(message.words());
            self.data.begin(ConnectionId(row));
            self.engine.send(Message { source, target, words, label: ConnectionId(row) })?;
        } else {
            self.engine.receive_from(target, source);
        }
        self.begun[index(cell)] = (begun + 1, true);
        Ok(())
    }

    fn event(&mut self, event: &MessageEvent, ready: &mut Vec<u32>) -> Result<(), FaultKind> {
        if let Some(trace) = &mut self.trace {
            trace.streams.push(span(event, self.engine.now()));
        }
        let row = event.message.label.0;
        match event.direction {
            Direction::Send => self.end_operation(event.message.source.0),
            Direction::Receive => {
                if let Err(kind) = self.data.end(&self.engine, ConnectionId(row)) {
                    let goes_on = self.data.goes_on_after(self.engine.now(), &kind);
                    return if goes_on { Ok(()) } else { Err(kind) };
                }
                match self.steps.copy_clocks(index(row)) {
                    0 => self.receive(row, ready),
                    clocks => {
                        self.engine.set_timer(clocks, row);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Records that a message was received, and copied if it is passed on.
    fn receive(&mut self, row: u32, ready: &mut Vec<u32>) -> Result<(), FaultKind> {
        self.received += 1;
        self.waits.received(row, ready);
        if self.protocol == Protocol::Rendezvous {
            self.end_operation(self.steps.messages().get(index(row)).target.0)?;
        }
        ready.drain(..).try_for_each(|row| {
            let source = self.steps.messages().get(index(row)).source;
            self.begin_next(source.0)
        })
    }

    fn end_operation(&mut self, cell: u32) -> Result<(), FaultKind> {
        self.begun[index(cell)].1 = false;
        self.begin_next(cell)
    }
}

impl StepsRun<'_, StepPayload<'_>> {
    fn report(self) -> MessagesReport {
        let messages = self.steps.messages();
        let words = messages.iter().map(|message| message.words()).sum();
        let expected = (messages.len(), words);
        let (wrong, received) = (self.data.wrong, self.received);
        let name = self.steps.set().name();
        MessagesReport::new(&self.engine, name, expected, received, wrong, self.trace)
    }
}
