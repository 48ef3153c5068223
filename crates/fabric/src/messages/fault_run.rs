//! Message passing on a machine with faults ([`crate::injection`]), and what becomes of it.
//!
//! Cells use only what hardware sees, as in exchanges by connections ([`crate::detection`]): what the engine notices
//! (`faults`). With check words, [`CHECK_WORDS`](crate::CHECK_WORDS) more words follow the data of each message: weighted sums that begin with the
//! number of the message, its length and that of the exchange. They cost the time of that many words for each message, and
//! are compared before the receiver uses its words. Cells of a step plan pass on what they have received, right or wrong.

use std::sync::Arc;

use conset_ir::convert::{index, to_u64};
use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine, Steps};

use super::cell_words::{Carried, CellWords};
use super::engine::MessageEngine;
use super::order::SendLists;
use super::run::{MessageOptions, MessageRun};
use super::steps::StepsRun;
use crate::detection::Detection;
use crate::fault::{Fault, FaultKind};
use crate::fault_run::{FaultRun, Outcome};
use crate::injection::{FaultExtent, FaultPlan, FaultPlanError};
use crate::payload::synthetic_word;

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
    let own = |id, word| synthetic_word(options.seed, id, word);
    let data = CellWords::new(set, Carried::of_set(set), &own, (detection, 0));
    let lists = SendLists::of_set(set, machine.agent_count(), options);
    let mut run = MessageRun::new(engine, (set, data), &lists, options);
    let done = run.execute();
    let wrong = wrong_words(&run.data, set.iter(), &own);
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
    let own = |id, word| synthetic_word(options.seed, id, word);
    let set = steps.set();
    let data = CellWords::new(set, Carried::of_steps(steps), &own, (detection, 0));
    let mut run = StepsRun::new(engine, (steps, data), options);
    let done = run.execute();
    // Connections of a cell to itself need no message.
    let carried = set.iter().filter(|(_, connection)| connection.source != connection.target);
    let wrong = wrong_words(&run.data, carried, &own);
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

/// Words of connections that their targets do not have as their sources had them.
fn wrong_words<'a>(
    data: &CellWords<'_>,
    connections: impl Iterator<Item = (ConnectionId, &'a Connection)>,
    own: &dyn Fn(ConnectionId, u32) -> u64,
) -> u64 {
    let wrong_of = |(id, connection): (ConnectionId, &Connection)| {
        let held = data.at_target(id);
        let is_right = |&word: &u32| held.is_some_and(|held| held[index(word)] == own(id, word));
        to_u64((0..connection.words).filter(|word| !is_right(word)).count())
    };
    connections.map(wrong_of).sum()
}
