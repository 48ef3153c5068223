//! Exchanges by messages that can go on after a fault: what has been delivered until then, and what is dead.
//!
//! As [`Fabric::exchange_or_drain`](crate::Fabric::exchange_or_drain) for phases, but a message is the unit of delivery:
//! it is delivered when its tail has come and its number of words is right or, with check words, these fit. An exchange goes on
//! after a fault that a receiver notices, until nothing moves any more. A word that no header came before ends it at once,
//! since its router does not know where it belongs. Then the network is emptied: messages that were not delivered have to be sent
//! again. Of a step plan, words are delivered when they are at the targets of their connections; those that other cells
//! hold to pass them on are forgotten.

use std::sync::Arc;

use conset_ir::convert::index;
use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine, Steps};

use super::cell_words::{Carried, CellWords};
use super::engine::MessageEngine;
use super::order::SendLists;
use super::run::{MessageOptions, MessageRun};
use super::steps::StepsRun;
use crate::detection::Detection;
use crate::exchange::{Interruption, WordRun};
use crate::fault::{Fault, FaultKind};
use crate::injection::{FaultPlan, FaultPlanError, HardwareFaults};
use crate::payload::SetBuffers;

/// A machine with faults that exchanges sets and step plans by messages, one after the other.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_fabric::messages::{MessageFabric, MessageOptions};
/// use conset_fabric::{Detection, SetBuffers};
/// use conset_ir::{CellId, Connection, ConnectionSet, Machine};
///
/// let ring = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 5)])?;
/// let (mut data, options) = (SetBuffers::new(&set), MessageOptions::default());
/// let plan = "link c0 -> c1 dead".parse()?;
/// let mut fabric = MessageFabric::new(ring.clone(), &plan, Detection::Checked)?;
/// let interrupted = fabric.exchange_or_drain(&set, &options, &mut data).unwrap_err();
/// assert_eq!(interrupted.dead_links, [(CellId(0), CellId(1))]);
/// // The other way round.
/// fabric.resume(Arc::new(ring.with_dead(&[], &interrupted.dead_links)?));
/// fabric.exchange_or_drain(&set, &options, &mut data)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MessageFabric {
    machine: Arc<Machine>,
    faults: Option<HardwareFaults>,
    detection: Detection,
    clock: u64,
    /// Exchanges begun.
    exchanges: u64,
}

impl MessageFabric {
    /// The machine at clock 0.
    ///
    /// # Errors
    /// A plan that names a part which the machine does not have.
    pub fn new(
        machine: Arc<Machine>,
        plan: &FaultPlan,
        detection: Detection,
    ) -> Result<Self, FaultPlanError> {
        let faults = Some(HardwareFaults::new(plan, &machine)?);
        Ok(Self { machine, faults, detection, clock: 0, exchanges: 0 })
    }

    /// Clocks since the machine was made.
    pub fn now(&self) -> u64 {
        self.clock
    }

    /// The clock at which each fault of the plan acted first, in the order of the plan.
    pub fn faults_acted(&self) -> &[Option<u64>] {
        self.faults.as_ref().map_or(&[], |faults| faults.0.acted())
    }

    /// Goes on with the same machine with other dead cells and links, which messages avoid from now on.
    ///
    /// # Panics
    /// If it is another machine.
    pub fn resume(&mut self, machine: Arc<Machine>) {
        assert_eq!(self.machine.topology(), machine.topology(), "the same machine");
        self.machine = machine;
    }

    /// Exchanges a set by messages.
    ///
    /// # Errors
    /// The first fault, and what was delivered until nothing moved any more. The other words are undefined in `data`.
    ///
    /// # Panics
    /// If the buffers are of another set.
    pub fn exchange_or_drain(
        &mut self,
        set: &ConnectionSet,
        options: &MessageOptions,
        data: &mut SetBuffers,
    ) -> Result<(), Box<Interruption>> {
        let lists = SendLists::of_set(set, self.machine.agent_count(), options);
        self.execute(set, Carried::of_set(set), data, |engine, words| {
            let mut run = MessageRun::new(engine, (set, words), &lists, options);
            let done = run.execute();
            (run.engine, run.data, done)
        })
    }

    /// Exchanges a set by its step plan, which is for the machine as it is now.
    ///
    /// # Errors
    /// As [`MessageFabric::exchange_or_drain`].
    ///
    /// # Panics
    /// If the buffers are of another set.
    pub fn exchange_steps_or_drain(
        &mut self,
        steps: &Steps,
        data: &mut SetBuffers,
    ) -> Result<(), Box<Interruption>> {
        let set = steps.set();
        // They need no message.
        let is_own = |row: &(ConnectionId, &Connection)| row.1.source == row.1.target;
        let own: Vec<WordRun> = set.iter().filter(is_own).map(whole).collect();
        for run in &own {
            for word in 0..run.words {
                let value = data.outgoing(run.connection)[index(word)];
                data.store((run.connection, word), value);
            }
        }
        let options = MessageOptions::default();
        let done = self.execute(set, Carried::of_steps(steps), data, |engine, words| {
            let mut run = StepsRun::new(engine, (steps, words), &options);
            let done = run.execute();
            (run.engine, run.data, done)
        });
        done.map_err(|mut interruption| {
            interruption.delivered.extend(own);
            interruption.delivered.sort_unstable();
            interruption
        })
    }

    fn execute(
        &mut self,
        set: &ConnectionSet,
        messages: Vec<Carried>,
        data: &mut SetBuffers,
        run: impl for<'b> FnOnce(
            MessageEngine,
            CellWords<'b>,
        ) -> (MessageEngine, CellWords<'b>, Result<(), FaultKind>),
    ) -> Result<(), Box<Interruption>> {
        let mut engine =
            MessageEngine::new(self.machine.clone(), true).with_detection(self.detection);
        engine.pass_until(self.clock);
        if let Some(faults) = self.faults.take() {
            engine.give_faults(faults);
        }
        let outgoing: Vec<Vec<u64>> =
            set.iter().map(|(id, _)| data.outgoing(id).to_vec()).collect();
        let own = |id: ConnectionId, word: u32| outgoing[id.index()][index(word)];
        let number = (self.detection, self.exchanges);
        let words = CellWords::new(set, messages, &own, number).draining();
        let (mut engine, words, done) = run(engine, words);
        self.exchanges += 1;
        self.clock = engine.now();
        self.faults = engine.take_faults();
        for (id, _) in set.iter() {
            let values = words.at_target(id).unwrap_or_default();
            (0u32..).zip(values).for_each(|(word, &value)| data.store((id, word), value));
        }
        let mut drained = words.into_drained(self.clock, done);
        let Some((clock, kind)) = drained.fault.take() else { return Ok(()) };
        drained.delivered.sort_unstable();
        drained.damaged.sort_unstable();
        drained.damaged.dedup();
        let fault = Fault { set: set.name().to_owned(), phase: None, clock, kind };
        let dead = self.faults.iter().flat_map(|faults| faults.0.dead());
        let mut interruption = Interruption::new(fault, self.clock, &self.machine, dead);
        interruption.delivered = drained.delivered;
        interruption.damaged = drained.damaged;
        interruption.discarded = engine.words_in_network();
        Err(Box::new(interruption))
    }
}

/// All words of a connection.
fn whole((connection, row): (ConnectionId, &Connection)) -> WordRun {
    WordRun { connection, first_word: 0, words: row.words }
}
