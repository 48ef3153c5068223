//! Faults of the hardware in runs of programs: context switches that go wrong, and words that were lost.
//!
//! The engine lets links and agents stop and words be spoiled by itself. What cells do wrongly at a context switch
//! depends on the driver: it knows when all cells are there. A cell with other tables than those of the phase keeps the
//! operations of its program; those that the tables do not fit are a fault.

use conset_fabric::{Engine, FaultKind, SwitchFaults};
use conset_ir::{PhaseId, PhaseImage};

use super::FabricDriver;
use crate::error::RunError;

impl FabricDriver<'_> {
    /// The faults of the next context switch, which all cells have reached.
    ///
    /// # Errors
    /// A cell that does not take part.
    pub(super) fn switch_faults(&mut self) -> Result<SwitchFaults, RunError> {
        let faults = self.engine.take_switch_faults();
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

    /// Words that a cell waits for although they were sent and are not on their way.
    pub(super) fn lost_words(&self) -> Option<RunError> {
        self.setup.faults?;
        self.engine.lost_words_fault().map(|kind| self.fault(kind))
    }
}
