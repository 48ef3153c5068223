//! Message passing on a machine with faults ([`crate::injection`]), and what becomes of it.
//!
//! Cells use only what hardware sees, as in exchanges by connections ([`crate::detection`]): what the engine notices
//! (`faults`). With check words, [`CHECK_WORDS`](crate::CHECK_WORDS) more words follow the data of each message: weighted sums that begin with the
//! number of the message, its length and that of the exchange. They cost the time of that many words for each message, and
//! are compared before the receiver uses its words. Cells of a step plan pass on what they have received, right or wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_ir::convert::{index, to_u64};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Machine, Piece, Steps};

use super::engine::MessageEngine;
use super::order::SendLists;
use super::run::{MessageData, MessageOptions, MessageRun};
use super::steps::StepsRun;
use crate::detection::{Detection, StreamTable};
use crate::fault::{Fault, FaultKind};
use crate::fault_run::{FaultRun, Outcome};
use crate::injection::{FaultExtent, FaultPlan, FaultPlanError};
use crate::payload::{Payload, synthetic_word};

/// Exchanges a set by messages on a machine with faults. The first fault that is noticed ends the run.
/// With [`Detection::Simulator`] receivers also see words in the places of others. Faults of context switches never act.
///
/// # Errors
/// A plan that names a part which the machine does not have.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_fabric::messages::{MessageOptions, run_set_with_faults};
/// use conset_fabric::{Detection, Outcome};
/// use conset_ir::{CellId, Connection, ConnectionSet, Machine};
///
/// let ring = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 5)])?;
/// // The extra words come first.
/// let word = ring.parameters().message_extra_words + 3;
/// let plan = format!("link c0 -> c1 corrupts word {word}").parse()?;
/// let run = |detection| run_set_with_faults(&ring, &set, &MessageOptions::default(), &plan, detection);
/// assert_eq!(run(Detection::Plain)?.outcome, Outcome::Silent);
/// assert_eq!(run(Detection::Checked)?.outcome, Outcome::Detected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_set_with_faults(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    options: &MessageOptions,
    plan: &FaultPlan,
    detection: Detection,
) -> Result<FaultRun, FaultPlanError> {
    let engine = engine(machine, options, plan, detection)?;
    let whole = set.iter().map(|(id, connection)| {
        (connection.source, connection.target, vec![Piece::whole(set, id)])
    });
    let data = FaultyData::new(set, whole, options.seed, detection);
    let lists = SendLists::of_set(set, machine.agent_count(), options);
    let mut run = MessageRun::new(engine, (set, data), &lists, options);
    let done = run.execute();
    let wrong = run.data.wrong_words(|_| true);
    Ok(fault_run(&run.engine, set, done, wrong))
}

/// Executes a step plan on a machine with faults, as [`run_set_with_faults`] does with a set.
///
/// # Errors
/// A plan that names a part which the machine does not have.
pub fn run_steps_with_faults(
    steps: &Steps,
    options: &MessageOptions,
    plan: &FaultPlan,
    detection: Detection,
) -> Result<FaultRun, FaultPlanError> {
    let engine = engine(steps.machine(), options, plan, detection)?;
    let messages = steps.messages().iter();
    let messages =
        messages.map(|message| (message.source, message.target, message.pieces.to_vec()));
    let data = FaultyData::new(steps.set(), messages, options.seed, detection);
    let mut run = StepsRun::new(engine, (steps, data), options);
    let done = run.execute();
    // Connections of a cell to itself need no message.
    let set = steps.set();
    let wrong = run.data.wrong_words(|id| set.get(id).source != set.get(id).target);
    Ok(fault_run(&run.engine, set, done, wrong))
}

fn engine(
    machine: &Arc<Machine>,
    options: &MessageOptions,
    plan: &FaultPlan,
    detection: Detection,
) -> Result<MessageEngine, FaultPlanError> {
    let engine = MessageEngine::new(machine.clone(), options.datelines);
    engine.with_detection(detection).with_faults(plan)
}

fn fault_run(
    engine: &MessageEngine,
    set: &ConnectionSet,
    done: Result<(), FaultKind>,
    wrong: u64,
) -> FaultRun {
    let clock = engine.now();
    let fault =
        done.err().map(|kind| Fault { set: set.name().to_owned(), phase: None, clock, kind });
    let wrong = if fault.is_some() { 0 } else { wrong };
    let outcome = match &fault {
        Some(fault) => Outcome::of_fault(&fault.kind),
        None if wrong > 0 => Outcome::Silent,
        None => Outcome::Delivered,
    };
    let acted = engine.faults_acted().to_vec();
    let extent = FaultExtent { clocks: clock, words: engine.busiest_link_words(), switches: 0 };
    FaultRun { outcome, fault, reports: Vec::new(), acted, clock, wrong, extent }
}

/// A message: its ends and what it carries.
struct Carried {
    source: CellId,
    target: CellId,
    pieces: Vec<Piece>,
}

/// The words of a run, as the cells have them.
struct FaultyData<'a> {
    set: &'a ConnectionSet,
    seed: u64,
    /// By label.
    messages: Vec<Carried>,
    /// The values of each message that was begun, and of what has come of each, with check words.
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
    /// What cells have received of connections.
    held: BTreeMap<(CellId, ConnectionId), Vec<u64>>,
    /// The check words, if there are any.
    checks: Option<StreamTable>,
}

impl<'a> FaultyData<'a> {
    fn new(
        set: &'a ConnectionSet,
        messages: impl Iterator<Item = (CellId, CellId, Vec<Piece>)>,
        seed: u64,
        detection: Detection,
    ) -> Self {
        let carried = |(source, target, pieces)| Carried { source, target, pieces };
        let messages: Vec<Carried> = messages.map(carried).collect();
        let words = |message: &Carried| message.pieces.iter().map(|piece| piece.words).sum();
        let checks = (detection == Detection::Checked)
            .then(|| StreamTable::of_messages(messages.iter().map(words), 0));
        let empty = vec![Vec::new(); messages.len()];
        let (sent, received, held) = (empty.clone(), empty, BTreeMap::new());
        Self { set, seed, messages, sent, received, held, checks }
    }

    /// Words of connections that their targets do not have as their sources had them.
    fn wrong_words(&self, is_carried: impl Fn(ConnectionId) -> bool) -> u64 {
        let wrong_of = |(id, words, target): (ConnectionId, u32, CellId)| {
            let held = self.held.get(&(target, id));
            let is_right = |&word: &u32| {
                held.is_some_and(|held| held[index(word)] == synthetic_word(self.seed, id, word))
            };
            to_u64((0..words).filter(|word| !is_right(word)).count())
        };
        let connections = self.set.iter().filter(|(id, _)| is_carried(*id));
        connections
            .map(|(id, connection)| wrong_of((id, connection.words, connection.target)))
            .sum()
    }
}

impl MessageData for FaultyData<'_> {
    fn begin(&mut self, message: ConnectionId) {
        let Carried { source, pieces, .. } = &self.messages[message.index()];
        let mut values = Vec::new();
        for &Piece { connection, first_word, words } in pieces {
            let own = self.set.get(connection).source == *source;
            let held = self.held.get(&(*source, connection));
            values.extend((first_word..first_word + words).map(|word| match held {
                _ if own => synthetic_word(self.seed, connection, word),
                Some(held) => held[index(word)],
                None => 0,
            }));
        }
        if let Some(checks) = &self.checks {
            let sums = checks.check_words(message, &values);
            values.extend(sums);
        }
        self.sent[message.index()] = values;
    }

    fn end(&mut self, engine: &MessageEngine, message: ConnectionId) -> Result<(), FaultKind> {
        let received = std::mem::take(&mut self.received[message.index()]);
        let Carried { target, pieces, .. } = &self.messages[message.index()];
        let cell = *target;
        if let Some(checks) = &self.checks
            && let Some(damage) = checks.message_damage(message, &received)
        {
            let (connection, links) = (message, engine.links_of(message));
            return Err(FaultKind::CheckFailed { cell, connection, damage, links });
        }
        let mut values = received.into_iter();
        for piece in pieces {
            let words = index(self.set.get(piece.connection).words);
            let held = self.held.entry((cell, piece.connection)).or_insert_with(|| vec![0; words]);
            let first = index(piece.first_word);
            held[first..first + index(piece.words)]
                .iter_mut()
                .zip(&mut values)
                .for_each(|(place, value)| *place = value);
        }
        Ok(())
    }
}

impl Payload for FaultyData<'_> {
    /// The place is known only when all words have come. An extra word that came for a word of data has the value 0.
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        let value = self.sent[from.0.index()].get(index(from.1)).copied().unwrap_or(0);
        self.received[to.0.index()].push(value);
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        if let Some(last) = self.received[to.0.index()].last_mut() {
            *last ^= u64::from(bits);
        }
    }
}
