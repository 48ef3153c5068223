//! Opening streams: which operation of a port's list may open, and what else is known of lists and
//! gates. The rules are those of [`super`].

use std::cmp::Reverse;

use conset_ir::{CellId, Direction};

use super::{Agents, Flow, Gate, State, Stream};
use crate::network::{NONE, Network};

impl Agents {
    /// Opens what may open on a free port; whether the port is now busy with it.
    #[cold]
    pub(super) fn open_streams(&mut self, now: u64, number: u32, network: &Network) -> bool {
        while let Some(stream) = self.next_to_open(now, number) {
            let this = &mut self.streams[stream as usize];
            let port = &mut self.ports[number as usize];
            let free = port.slots.iter().position(|flow| flow.stream == NONE);
            let slot = free.unwrap_or(port.slots.len());
            let flow = Flow {
                stream,
                send: this.direction == Direction::Send,
                row: this.row,
                connection: this.connection,
                next: this.first,
                left: this.words,
            };
            if slot == port.slots.len() {
                port.slots.push(flow);
                port.turns.grow(slot + 1);
            }
            port.slots[slot] = flow;
            port.open += 1;
            (this.slot, this.state, this.opened) = (slot as u32, State::Opening, now);
            let (costs, direction, row) = (this.costs, this.direction, this.row);
            self.gates(direction)[row as usize].stream = stream;
            if costs && self.setup {
                self.ports[number as usize].moving = slot as u32;
                self.opening.push(number);
                return true;
            }
            self.opened(stream, network);
        }
        self.ports[number as usize].look = false;
        false
    }

    /// The gates that operations of one direction open at.
    pub(super) fn gates(&mut self, direction: Direction) -> &mut [Gate] {
        match direction {
            Direction::Send => &mut self.feeds,
            Direction::Receive => &mut self.sinks,
        }
    }

    /// The operation at a gate, if there is one.
    pub(super) fn stream_at(&self, row: u32, direction: Direction) -> Option<u32> {
        let gates = match direction {
            Direction::Send => &self.feeds,
            Direction::Receive => &self.sinks,
        };
        Some(gates[row as usize].stream).filter(|&stream| stream != NONE)
    }

    /// Takes the operation that may open next out of a port's list.
    pub(super) fn next_to_open(&mut self, now: u64, number: u32) -> Option<u32> {
        let waiting = &mut self.waiting[number as usize];
        if waiting.partner != NONE {
            return Some(std::mem::replace(&mut waiting.partner, NONE));
        }
        let open = self.ports[number as usize].open;
        if open >= self.limit.max(2) {
            return None;
        }
        let head = *waiting.list.front()?;
        let Stream { held, row, direction, mut start, .. } = self.streams[head as usize];
        if held || self.stream_at(row, direction).is_some() {
            return None;
        }
        let partner = if self.full { None } else { self.partner_of(number, head) };
        let (need, limit) = match partner {
            Some(_) => (2, self.limit.max(2)),
            None => (1, self.limit),
        };
        if open + need > limit {
            return None;
        }
        let waiting = &mut self.waiting[number as usize];
        if let Some(place) = partner {
            let other = &self.streams[waiting.list[place] as usize];
            if other.held {
                return None;
            }
            start = start.max(other.start);
        }
        if start > now {
            if waiting.wake != start {
                waiting.wake = start;
                self.sleeping.push(Reverse((start, number)));
            }
            return None;
        }
        if let Some(place) = partner {
            waiting.partner = waiting.list.remove(place).expect("found in the list");
        }
        waiting.list.pop_front()
    }

    /// Where in the list of a half-duplex port the other half of a connection to itself stands.
    pub(super) fn partner_of(&self, number: u32, head: u32) -> Option<usize> {
        let Stream { connection, row, direction, .. } = self.streams[head as usize];
        let other = match direction {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
        };
        if self.stream_at(row, other).is_some() {
            return None;
        }
        self.waiting[number as usize].list.iter().position(|&other| {
            let other = &self.streams[other as usize];
            other.row == row && other.connection == connection && other.direction != direction
        })
    }

    pub(super) fn opened(&mut self, number: u32, network: &Network) {
        let stream = &mut self.streams[number as usize];
        stream.state = State::Open;
        let Stream { direction, row, port, slot, .. } = *stream;
        self.gates(direction)[row as usize] = Gate { stream: number, port, slot };
        // A send finds out by trying whether there is room.
        if direction == Direction::Send || network.queued(row) > 0 {
            self.make_ready(port, slot);
        }
    }

    /// The operation that a channel's words come from (`Send`) or go to (`Receive`): the open
    /// one, or the first listed one.
    pub(crate) fn at_gate(&self, row: u32, cell: CellId, direction: Direction) -> Option<u32> {
        let listed = || {
            let waiting = self.waiting.get(self.port_of(cell, direction) as usize)?;
            waiting.list.iter().copied().find(|&number| {
                let stream = &self.streams[number as usize];
                stream.row == row && stream.direction == direction
            })
        };
        self.stream_at(row, direction).or_else(listed)
    }

    /// What keeps a listed operation from opening: one before it in the list, or an open one.
    pub(crate) fn in_front_of(&self, number: u32) -> Option<u32> {
        let port = self.streams[number as usize].port as usize;
        let head = self.waiting[port].list.front().copied().filter(|&head| head != number);
        head.or_else(|| self.ports[port].open().map(|flow| flow.stream).next())
    }
}
