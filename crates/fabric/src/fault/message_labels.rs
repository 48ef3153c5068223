//! The messages that a fault names. An engine knows messages by labels; a driver that uses labels of its own says what
//! they stand for before it reports the fault.

use conset_ir::ConnectionId;

use super::{FaultKind, WaitCause};

impl FaultKind {
    /// Calls `with` for each message or connection that this fault names, the most telling one first: of a chain of
    /// waits the end.
    pub fn for_each_label(&mut self, with: &mut dyn FnMut(&mut ConnectionId)) {
        match self {
            Self::LostWords { connection, .. }
            | Self::CheckFailed { connection, .. }
            | Self::Misrouted { connection, .. }
            | Self::Gate { connection, .. }
            | Self::Undrained { connection, .. }
            | Self::Coverage { connection, .. } => with(connection),
            Self::ExcessWords { message, .. }
            | Self::StrayWord { message, .. }
            | Self::Message { message, .. } => with(message),
            Self::MisplacedWord { message, found, .. } => {
                with(message);
                with(found);
            }
            Self::WrongWord { expected, connection, .. } => {
                with(expected);
                with(connection);
            }
            Self::Deadlock { waits, .. } => {
                waits.iter_mut().rev().for_each(|wait| wait.cause.for_each_label(with));
            }
            Self::NoSet { .. }
            | Self::NoPhase { .. }
            | Self::Table { .. }
            | Self::Absent { .. } => {}
        }
    }
}

impl WaitCause {
    fn for_each_label(&mut self, with: &mut dyn FnMut(&mut ConnectionId)) {
        match self {
            Self::Space { connection, .. }
            | Self::Words { connection, .. }
            | Self::Turn { connection, .. }
            | Self::DeadCell { connection, .. }
            | Self::Unreceived { connection, .. }
            | Self::Program { connection, .. } => with(connection),
            Self::Order { connection, before } => {
                with(connection);
                before.iter_mut().for_each(with);
            }
            Self::StoppedLink { message, .. }
            | Self::Unwanted { message }
            | Self::Rendezvous { message } => with(message),
            Self::Header { message, holder: other, .. }
            | Self::Launch { message, before: other }
            | Self::Reception { message, before: other } => {
                with(message);
                with(other);
            }
            Self::Ahead { .. }
            | Self::DeadLink { .. }
            | Self::Switch
            | Self::Ended
            | Self::NotListed => {}
        }
    }
}
