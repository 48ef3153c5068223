//! Single words on threads: what must be received before a connection is sent, and words that were
//! not received when a phase is left.

use super::port::ThreadPort;
use super::shared_state::RunFailure;
use crate::error::RunError;
use crate::port::Stopped;

impl ThreadPort<'_, '_> {
    /// Leaves a phase of a set and says what was sent; how often such a phase was left.
    pub(super) fn count_sent(&mut self, set: usize) -> u32 {
        let elements = self.state.sets[set].elements();
        self.times_left[set] = self.times_left[set].wrapping_add(1);
        let times = self.times_left[set];
        for &connection in self.state.loaded.sets[set].outgoing.of(self.id) {
            let sent = elements.sent[connection.index()].value();
            elements.sent_before(connection, times).publish(sent);
        }
        times
    }

    /// All cells have left the phase: finds words that were not received.
    pub(super) fn count_received(&mut self, set: usize, times: u32) -> Result<(), Stopped> {
        let elements = self.state.sets[set].elements();
        for &connection in self.state.loaded.sets[set].incoming.of(self.id) {
            let sent = elements.sent_before(connection, times).value();
            let received = elements.received[connection.index()].value();
            if received < sent {
                let set = self.state.loaded.set(set).name().to_owned();
                let words = sent - received;
                let error = RunError::Unreceived { cell: self.id, set, connection, words };
                self.state.fail(self.id, RunFailure::Known(error));
                return Err(Stopped);
            }
        }
        Ok(())
    }

    /// What must be received before the cell's connections of a set, from now on.
    pub(super) fn start_order(&mut self, set: usize) {
        self.order.clear();
        self.ordered = Some(set);
        let connections = self.state.loaded.set(set);
        let elements = self.state.sets[set].elements();
        for &(before, after) in connections.order() {
            if connections.get(after).source == self.id {
                // All that was sent when the set was last left has been received.
                let base = elements.sent_before(before, self.times_left[set]).value();
                self.order.push((after, before, base + u64::from(connections.get(before).words)));
            }
        }
    }
}
