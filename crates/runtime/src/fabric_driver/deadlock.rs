//! The reason for a deadlock on the emulated machine: nothing is in progress, and programs wait.
//!
//! At a switch, or for the start of a nonblocking exchange, a cell waits for all others; for words
//! and messages it waits for one other cell. If all wait for all, the error names a cell that has
//! ended or that requests something else; otherwise it follows the chain of waits.

use conset_fabric::{ProgramState, Programs};
use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId};

use super::{CellState, FabricDriver};
use crate::error::RunError;
use crate::message_queue::MessageQueue;

impl FabricDriver<'_> {
    /// Nothing is under way and programs have not ended: why.
    pub(super) fn deadlock_error(&mut self, queue: &MessageQueue) -> RunError {
        let hardware = self.message_fault(queue).or_else(|| self.lost_words());
        let error = hardware.or_else(|| self.not_started());
        if let Some(error) = error.or_else(|| self.ended_before_switch()) {
            return error;
        }
        if self.messages.active {
            return self.message_deadlock(queue);
        }
        let kind = self.engine.explain(&*self).expect("programs wait");
        self.fault(kind)
    }

    /// A cell has ended, or switches, and others have started an exchange that it has not.
    fn not_started(&self) -> Option<RunError> {
        let (set, first, _) = self.unstarted()?;
        let phase = self.nonblocking_name(set);
        match self.states[self.absent_row()?] {
            CellState::Ended => {
                let ended = self.absent_cell()?;
                Some(RunError::Ended { ended, waiting: first, phase })
            }
            CellState::Switch(context) => {
                let (second, other) = (self.absent_cell()?, self.name(context));
                Some(RunError::Disagree { first, phase, second, other })
            }
            _ => None,
        }
    }

    /// A cell has ended, and all others wait at a switch.
    fn ended_before_switch(&self) -> Option<RunError> {
        if self.waiting == 0 || self.waiting + self.ended < self.cells.len() {
            return None;
        }
        let (waiting, phase) = (self.waiting_cell()?, self.name(self.requested_context()?));
        Some(RunError::Ended { ended: self.absent_cell()?, waiting, phase })
    }

    /// Whether a cell waits for all others, and not for one.
    pub(super) fn waits_for_all(&self, row: usize) -> bool {
        let begun = self.unstarted().is_some_and(|(_, _, number)| self.has_started(row, number));
        begun || matches!(self.states[row], CellState::Switch(_))
    }

    /// The first cell that others wait for at a switch, or to start an exchange.
    pub(super) fn absent_row(&self) -> Option<usize> {
        let mut rows = 0..self.cells.len();
        match self.unstarted() {
            Some((_, _, number)) => rows.find(|&row| !self.has_started(row, number)),
            None => rows.find(|&row| !matches!(self.states[row], CellState::Switch(_))),
        }
    }

    fn absent_cell(&self) -> Option<CellId> {
        self.absent_row().map(|row| self.cells[row])
    }
}

impl Programs for FabricDriver<'_> {
    fn state(&self, cell: CellId) -> ProgramState {
        let row = index(self.place[cell.index()]);
        match self.states[row] {
            CellState::Element(id) => ProgramState::Operation(id),
            CellState::Ended => ProgramState::Ended,
            _ if self.waits_for_all(row) => ProgramState::Switch(self.absent_cell()),
            _ => ProgramState::ListSubmitted,
        }
    }

    fn waiting_cell(&self) -> Option<CellId> {
        (0..self.cells.len()).find(|&row| self.waits_for_all(row)).map(|row| self.cells[row])
    }

    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId> {
        self.order.as_ref()?.unfinished_before(connection)
    }
}
