//! Why a run is stuck: nothing is under way, and programs wait.
//!
//! Cells wait for all others at a switch, or for all others to begin an exchange that they have
//! begun; for words and messages they wait for one other. Where all wait for all, a cell that has
//! ended or that wants something else is to blame; otherwise the waits are followed.

use conset_fabric::{ProgramState, Programs};
use conset_ir::{CellId, ConnectionId};

use super::{At, Run};
use crate::error::RunError;
use crate::mail::Mail;

impl Run<'_> {
    /// Nothing is under way and programs have not ended: why.
    pub(super) fn stuck(&mut self, mail: &Mail) -> RunError {
        if let Some(error) = self.unbegun().or_else(|| self.ended_before_switch()) {
            return error;
        }
        if self.messages.active {
            return self.stuck_messages(mail);
        }
        let kind = self.engine.explain(&*self).expect("programs wait");
        self.fault(kind)
    }

    /// A cell has ended, or switches, and others have begun an exchange that it has not.
    fn unbegun(&self) -> Option<RunError> {
        let (set, first, _) = self.unstarted()?;
        let phase = self.flight_name(set);
        match self.at[self.absent_row()?] {
            At::Ended => {
                let ended = self.absent_cell()?;
                Some(RunError::Ended { ended, waiting: first, phase })
            }
            At::Switch(context) => {
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
        let (waiting, phase) = (self.waiting_cell()?, self.name(self.wanted()?));
        Some(RunError::Ended { ended: self.absent_cell()?, waiting, phase })
    }

    /// Whether a cell waits for all others, and not for one.
    pub(super) fn waits_for_all(&self, row: usize) -> bool {
        let begun = self.unstarted().is_some_and(|(_, _, number)| self.has_begun(row, number));
        begun || matches!(self.at[row], At::Switch(_))
    }

    /// The first cell that others wait for at a switch, or to begin an exchange.
    pub(super) fn absent_row(&self) -> Option<usize> {
        let mut rows = 0..self.cells.len();
        match self.unstarted() {
            Some((_, _, number)) => rows.find(|&row| !self.has_begun(row, number)),
            None => rows.find(|&row| !matches!(self.at[row], At::Switch(_))),
        }
    }
}

impl Programs for Run<'_> {
    fn state(&self, cell: CellId) -> ProgramState {
        let row = self.place[cell.index()] as usize;
        match self.at[row] {
            At::Element(id) => ProgramState::Operation(id),
            At::Ended => ProgramState::Ended,
            _ if self.waits_for_all(row) => ProgramState::Switch,
            _ => ProgramState::ListSubmitted,
        }
    }

    fn waiting_cell(&self) -> Option<CellId> {
        (0..self.cells.len()).find(|&row| self.waits_for_all(row)).map(|row| self.cells[row])
    }

    fn absent_cell(&self) -> Option<CellId> {
        self.absent_row().map(|row| self.cells[row])
    }

    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId> {
        self.order.as_ref()?.unfinished_before(connection)
    }
}
