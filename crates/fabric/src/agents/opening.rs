//! Opening of streams: which operation of a port's list may open next, and queries about lists and
//! gates. The rules are those of [`super`].

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Direction};

use super::{Agents, Gate, OpenStream, OperationStage, SubmittedOperation};
use crate::network::{NONE, Network};

impl Agents {
    /// Opens the streams that may open on a free port; returns whether the port is now busy with an
    /// opening.
    #[cold]
    pub(super) fn open_streams(&mut self, now: u64, number: u32, network: &Network) -> bool {
        while let Some(opened) = self.next_to_open(now, number) {
            let operation = &mut self.operations[index(opened)];
            let port = &mut self.ports[index(number)];
            let free = port.slots.iter().position(|stream| stream.operation == NONE);
            let slot = free.unwrap_or(port.slots.len());
            let stream = OpenStream {
                operation: opened,
                send: operation.direction == Direction::Send,
                row: operation.row,
                connection: operation.connection,
                next: operation.first,
                left: operation.words,
            };
            if slot == port.slots.len() {
                port.slots.push(stream);
                port.round_robin.grow(slot + 1);
            }
            port.slots[slot] = stream;
            port.open += 1;
            let slot = to_u32(slot);
            operation.slot = slot;
            (operation.stage, operation.opened) = (OperationStage::Opening, now);
            let SubmittedOperation { costs_setup, has_overhead, direction, row, .. } = *operation;
            let kind = usize::from(has_overhead);
            self.gates(direction)[index(row)].operation = opened;
            if costs_setup && self.has_setup[kind] {
                self.ports[index(number)].moving = slot;
                self.opening[kind].push(number);
                return true;
            }
            self.opened(opened, network);
        }
        self.ports[index(number)].check_list = false;
        false
    }

    /// The gates at which operations of one direction open.
    pub(super) fn gates(&mut self, direction: Direction) -> &mut [Gate] {
        match direction {
            Direction::Send => &mut self.feeds,
            Direction::Receive => &mut self.sinks,
        }
    }

    /// The operation at a gate, if there is one.
    pub(super) fn operation_at(&self, row: u32, direction: Direction) -> Option<u32> {
        let gates = match direction {
            Direction::Send => &self.feeds,
            Direction::Receive => &self.sinks,
        };
        Some(gates[index(row)].operation).filter(|&operation| operation != NONE)
    }

    /// Removes the operation that may open next from a port's list.
    pub(super) fn next_to_open(&mut self, now: u64, number: u32) -> Option<u32> {
        let pending = &mut self.pending[index(number)];
        if pending.partner != NONE {
            return Some(std::mem::replace(&mut pending.partner, NONE));
        }
        let open = self.ports[index(number)].open;
        if open >= self.stream_limit.max(2) {
            return None;
        }
        let head = *pending.list.front()?;
        let SubmittedOperation { held, row, direction, mut start, .. } =
            self.operations[index(head)];
        if held || self.operation_at(row, direction).is_some() {
            return None;
        }
        let partner = if self.full_duplex { None } else { self.partner_of(number, head) };
        let (need, limit) = match partner {
            Some(_) => (2, self.stream_limit.max(2)),
            None => (1, self.stream_limit),
        };
        if open + need > limit {
            return None;
        }
        let pending = &mut self.pending[index(number)];
        if let Some(place) = partner {
            let other = &self.operations[index(pending.list[place])];
            if other.held {
                return None;
            }
            start = start.max(other.start);
        }
        #[cfg(feature = "canary-clocks")]
        let start = canary(start);
        if start > now {
            if pending.wake != start {
                pending.wake = start;
                self.sleeping.push(Reverse((start, number)));
            }
            return None;
        }
        if let Some(place) = partner {
            pending.partner = pending.list.remove(place).expect("found in the list");
        }
        pending.list.pop_front()
    }

    /// The position in a half-duplex port's list of the other end of a connection of the cell to
    /// itself.
    pub(super) fn partner_of(&self, number: u32, head: u32) -> Option<usize> {
        let SubmittedOperation { connection, row, direction, .. } = self.operations[index(head)];
        let other = match direction {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
        };
        if self.operation_at(row, other).is_some() {
            return None;
        }
        self.pending[index(number)].list.iter().position(|&other| {
            let other = &self.operations[index(other)];
            other.row == row && other.connection == connection && other.direction != direction
        })
    }

    pub(super) fn opened(&mut self, number: u32, network: &Network) {
        let operation = &mut self.operations[index(number)];
        operation.stage = OperationStage::Open;
        let SubmittedOperation { direction, row, port, slot, .. } = *operation;
        self.gates(direction)[index(row)] = Gate { operation: number, port, slot };
        // A send finds out whether there is space when it is served.
        if direction == Direction::Send || network.queued(row) > 0 {
            self.make_stream_ready(port, slot);
        }
    }

    /// The operation that a channel's words come from (`Send`) or go to (`Receive`): the one at the
    /// gate, or the first one in the list.
    pub(crate) fn at_gate(&self, row: u32, cell: CellId, direction: Direction) -> Option<u32> {
        let listed = || {
            let pending = self.pending.get(index(self.port_of(cell, direction)))?;
            pending.list.iter().copied().find(|&number| {
                let operation = &self.operations[index(number)];
                operation.row == row && operation.direction == direction
            })
        };
        self.operation_at(row, direction).or_else(listed)
    }

    /// The operation that prevents a listed one from opening: one before it in the list, or an open
    /// one.
    pub(crate) fn blocker_of(&self, number: u32) -> Option<u32> {
        let port = index(self.operations[index(number)].port);
        let head = self.pending[port].list.front().copied().filter(|&head| head != number);
        head.or_else(|| self.ports[port].open().map(|stream| stream.operation).next())
    }
}

/// A planted bug: streams with some planned starts open one clock late. Every word arrives, and no bound is
/// violated. Only tests that must find it have this feature.
#[cfg(feature = "canary-clocks")]
fn canary(start: u64) -> u64 {
    if start % 8 == 5 { start + 1 } else { start }
}
