//! Faults of the hardware in runs of programs: context switches that go wrong, and words that were lost.
//!
//! The machine has three engines, for connections, for messages and for packets of active messages. The one that is at
//! work has the faults ([`HardwareFaults`]), so that clocks, words of links and dead parts are counted over the whole run.
//!
//! The engine lets links and agents stop and words be spoiled by itself. What cells do wrongly at a context switch
//! depends on the driver: it knows when all cells are there. A cell with other tables than those of the phase keeps the
//! operations of its program; those that the tables do not fit are a fault.

use conset_fabric::{Engine, Fault, FaultKind, HardwareFaults, SwitchFaults};
use conset_ir::{ConnectionId, PhaseId, PhaseImage};

use super::FabricDriver;
use crate::error::RunError;
use crate::message_queue::{MessageQueue, Subject};

impl FabricDriver<'_> {
    /// Takes the faults from the engine that is at work.
    pub(super) fn take_faults(&mut self) -> Option<HardwareFaults> {
        match self.messages.active {
            true => self.messages.engine.take_faults(),
            false => self.engine.take_faults(),
        }
    }

    /// Gives the faults to the engine that is at work.
    pub(super) fn give_faults(&mut self, faults: HardwareFaults) {
        match self.messages.active {
            true => self.messages.engine.give_faults(faults),
            false => self.engine.give_faults(faults),
        }
    }

    /// The faults of the next context switch, which all cells have reached.
    ///
    /// # Errors
    /// A cell that does not take part.
    pub(super) fn switch_faults(&mut self) -> Result<SwitchFaults, RunError> {
        let faults = match self.messages.active {
            true => self.messages.engine.take_switch_faults(),
            false => self.engine.take_switch_faults(),
        };
        match faults.absent {
            Some(cell) => Err(self.fault(FaultKind::Absent { cell, switch: faults.switch })),
            None => Ok(faults),
        }
    }

    /// Writes the tables of a phase, by [`Engine::switch`] or [`Engine::load`].
    pub(super) fn write_tables(
        &mut self,
        set: usize,
        phase: PhaseId,
        faults: &SwitchFaults,
        write: impl FnOnce(&mut Engine, &PhaseImage) -> Result<(), FaultKind>,
    ) -> Result<(), RunError> {
        let image = &self.setup.loaded.image;
        let phases = &image.sets()[set].phases;
        let written = match &mut self.tables {
            None => write(&mut self.engine, &phases[phase.index()]),
            Some(tables) => {
                *tables = faults.context(image.machine(), phases, phase, tables).into_owned();
                write(&mut self.engine, tables)
            }
        };
        written.map_err(|kind| self.fault(kind))
    }

    /// What faults have done to messages, if the engine of messages is at work; by the names of the messages.
    pub(super) fn message_fault(&self, queue: &MessageQueue) -> Option<RunError> {
        let mut kind = self.messages.engine.hardware_fault()?;
        let mut set = None;
        kind.for_each_label(&mut |label| {
            let (name, connection) = self.message_name(queue, *label);
            set.get_or_insert(name);
            *label = connection;
        });
        let set = set.unwrap_or_else(|| "messages".to_owned());
        Some(RunError::Fault(Fault { set, phase: None, clock: self.now(), kind }))
    }

    /// What a message belongs to, and its number there. A message of a program has only its ends for a name; its
    /// number is that of its place in memory.
    fn message_name(&self, queue: &MessageQueue, label: ConnectionId) -> (String, ConnectionId) {
        let envelope = queue.envelope(label.0);
        let ends = || format!("from {} to {}", envelope.source, envelope.target);
        let of_set = |set: usize| self.setup.loaded.set(set).name().to_owned();
        match envelope.subject {
            Subject::Connection(set, connection) | Subject::Edge(set, connection) => {
                (of_set(set), connection)
            }
            Subject::Step(round, message) => {
                let set = of_set(self.steps.set_of(round));
                (format!("{set}, messages of steps"), ConnectionId(message))
            }
            Subject::Plain => (format!("message {}", ends()), label),
            Subject::Direct => (format!("direct message {}", ends()), label),
            Subject::Packet => (format!("packet of an epoch {}", ends()), label),
        }
    }

    /// What faults have done to the packets of a round; messages are numbered by what cells have for each other in it.
    pub(super) fn round_fault(&self, kind: FaultKind, clock: u64) -> RunError {
        let set = "round of an epoch".to_owned();
        RunError::Fault(Fault { set, phase: None, clock, kind })
    }

    /// Words that a cell waits for although they were sent and are not on their way.
    pub(super) fn lost_words(&self) -> Option<RunError> {
        self.setup.faults.filter(|_| !self.messages.active)?;
        self.engine.lost_words_fault().map(|kind| self.fault(kind))
    }
}
