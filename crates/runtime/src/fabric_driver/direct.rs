//! Direct passes on the emulated machine: a cell sends one message and receives one at the same time,
//! by the protocol of the machine. Also messages from any cell.
//!
//! A pass has ended when its message has left and the awaited one has come. On machines whose messages
//! wait at their source ([`conset_ir::Protocol::Rendezvous`]) the cell asks for its source by name. On
//! others messages stand in the network, so a cell takes what comes, keeps what it does not wait for,
//! and asks again. While its own message leaves it takes one more ([`FabricDriver::keep_spare`]):
//! messages that nobody takes would hold channels that others need.

use conset_ir::CellId;

use super::{CellState, FabricDriver, computation};
use crate::error::{Awaiting, RunError};
use crate::message_queue::{MessageQueue, Subject};

/// What a pass still waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingPass {
    /// The message that has not left.
    sends: Option<u32>,
    /// The source of the message that has not come.
    receives: Option<CellId>,
}

impl PendingPass {
    pub(super) fn awaits_message(self) -> bool {
        self.receives.is_some()
    }

    fn is_over(self) -> bool {
        self.sends.is_none() && self.receives.is_none()
    }
}

impl FabricDriver<'_> {
    /// A cell starts a pass.
    pub(super) fn start_pass(
        &mut self,
        queue: &MessageQueue,
        row: usize,
        (sends, receives): (Option<u32>, Option<CellId>),
    ) -> Result<CellState, RunError> {
        let cell = self.cells[row];
        let receives = receives.filter(|&source| !queue.has(cell, Subject::Direct, source));
        if let Some(source) = receives {
            self.messages.engine.receive_from(cell, source);
        }
        if let Some(envelope) = sends {
            self.send_envelope(queue, envelope)?;
            self.keep_spare(row, Subject::Direct);
        }
        let pass = PendingPass { sends, receives };
        Ok(if pass.is_over() { CellState::Ready } else { CellState::Direct(pass) })
    }

    /// The message of a cell's pass has left.
    pub(super) fn pass_departed(&mut self, row: usize, pass: PendingPass, envelope: u32) {
        if pass.sends == Some(envelope) {
            self.continue_pass(row, PendingPass { sends: None, ..pass });
        }
    }

    /// A message has come to a cell in a pass; whether it is the one that the cell waits for. If not,
    /// the cell asks again.
    pub(super) fn pass_arrived(
        &mut self,
        row: usize,
        pass: PendingPass,
        (source, subject): (CellId, Subject),
    ) -> bool {
        let expected = subject == Subject::Direct && pass.receives == Some(source);
        if expected {
            self.continue_pass(row, PendingPass { receives: None, ..pass });
        } else if let Some(awaited) = pass.receives {
            self.messages.engine.receive_from(self.cells[row], awaited);
        }
        expected
    }

    fn continue_pass(&mut self, row: usize, pass: PendingPass) {
        self.states[row] = CellState::Direct(pass);
        if pass.is_over() {
            self.make_ready(row);
        }
    }

    /// What a cell in a pass waits for, and the cell that could change it.
    pub(super) fn awaited_in_pass(
        queue: &MessageQueue,
        pass: PendingPass,
    ) -> (Awaiting, Option<CellId>) {
        match (pass.receives, pass.sends) {
            (Some(source), _) => (Awaiting::Message { source }, Some(source)),
            (None, Some(envelope)) => {
                let target = queue.envelope(envelope).target;
                (Awaiting::Departure { target }, Some(target))
            }
            (None, None) => (Awaiting::Running, None),
        }
    }

    /// A cell waits for a message of any cell; it has none.
    pub(super) fn receive_any(&mut self, row: usize) -> CellState {
        self.messages.engine.receive(self.cells[row], 1);
        CellState::ReceiveAny
    }

    /// A cell asks whether a message has come, and lets time pass.
    pub(super) fn test_messages(&mut self, row: usize) -> CellState {
        if !self.messages.take_spare(row) {
            self.messages.engine.receive(self.cells[row], 1);
        }
        self.compute(row, computation::TEST_CLOCKS);
        CellState::Testing
    }
}
