//! Rendezvous: a message leaves its source when its receiver asks for it
//! ([`conset_ir::Protocol::Rendezvous`]).
//!
//! The first message that a cell has to send is *announced* to its target. It starts as soon as
//! both cells are free and the target may receive from this source; of several announced messages
//! the target takes the one that was announced first. Then the software of both cells runs, one
//! after the other (`c_send + c_receive` clocks), and the words follow at the access rate. Nothing
//! waits in the network for a receiver. Both cells are busy until the last word was received, the
//! source in its sending direction and the target in its receiving direction; with half duplex a
//! cell that is busy in one direction is busy in both, so an exchange of two cells is two messages
//! in turn. (Section 3 of the CM-5 paper: CMMD's synchronous messages take 73 us and 0.112 us a byte one
//! way; its Table 4 has twice that for an exchange. The synchronous messages of the T3D differ in
//! being full duplex.)
//!
//! A message of `m` words and `e` extra words over `d` free links takes
//!
//! ```text
//! c_send + c_receive + access + d * link + (m + e) * access
//! ```
//!
//! as the standing protocol does with full duplex ([`super`]).

use conset_ir::convert::index;
use conset_ir::{CellId, Direction};

use super::agents::{ReceiverState, SenderState};
use super::engine::{MessageEngine, Timer};
use crate::network::NONE;

impl MessageEngine {
    /// Announces the first message that a cell has to send, and starts whatever can start at the
    /// cell.
    pub(crate) fn rendezvous(&mut self, cell: u32) {
        let agent = &mut self.agents[index(cell)];
        let mut target = None;
        if let Some(&number) = agent.pending.front() {
            let to = self.worms[index(number)].message.target.0;
            if !std::mem::replace(&mut agent.announced, true) {
                self.agents[index(to)].announcements.push_back(number);
            }
            target = Some(to);
        }
        self.meet(cell);
        if let Some(target) = target {
            self.meet(target);
        }
    }

    /// Starts the first announced message that `target` can receive now, if there is one.
    fn meet(&mut self, target: u32) {
        let receiver = &self.agents[index(target)];
        if self.is_cell_stopped(target) || !receiver.is_free(Direction::Receive, self.half_duplex) {
            return;
        }
        let can_start = |&number: &u32| {
            let source = self.worms[index(number)].message.source;
            receiver.receives_from(source)
                && !self.is_cell_stopped(source.0)
                && self.agents[source.index()].is_free(Direction::Send, self.half_duplex)
        };
        let Some(place) = receiver.announcements.iter().position(can_start) else { return };
        let receiver = &mut self.agents[index(target)];
        let number = receiver.announcements.remove(place).expect("a place in the queue");
        let source = self.worms[index(number)].message.source;
        receiver.count_received(source);
        (receiver.receiving, receiver.receive_start) = (ReceiverState::Software, self.base.now);
        (receiver.received, receiver.receive_next) = (number, 0);
        let sender = &mut self.agents[source.index()];
        sender.pending.pop_front();
        sender.announced = false;
        (sender.sending, sender.send_start) = (SenderState::Software, self.base.now);
        (sender.sent, sender.send_next) = (number, 0);
        let parameters = self.base.machine.parameters();
        let overhead = u64::from(self.base.machine.network_overhead(source, CellId(target)));
        let software =
            u64::from(parameters.c_send) + u64::from(parameters.c_receive) + 2 * overhead;
        self.base.set_timer(software, Timer::Launch(source.0));
    }

    /// The header of the message that a cell receives has arrived in channel `row`.
    pub(crate) fn start_receiving(&mut self, cell: u32, row: u32, number: u32) {
        debug_assert_eq!(self.agents[index(cell)].received, number, "the cell waits for it");
        self.worms[index(number)].head = NONE;
        self.agents[index(cell)].receive_row = row;
        self.receive_word(cell);
    }

    /// The last word of a message was received: its source is free, too.
    pub(crate) fn finish_rendezvous(&mut self, cell: u32, number: u32) {
        let source = self.worms[index(number)].message.source.0;
        let sender = &mut self.agents[index(source)];
        debug_assert_eq!(sender.sending, SenderState::Handed, "the tail left before it arrived");
        sender.sending = SenderState::Idle;
        let start = sender.send_start;
        self.push_event(Direction::Send, number, start);
        self.rendezvous(cell);
        self.rendezvous(source);
    }
}
