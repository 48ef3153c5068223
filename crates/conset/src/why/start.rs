//! Explaining the start of a stream by the earlier slots of its two agents.
//!
//! A route occupies the send port of its source and the receive port of its target for its slot (with
//! half duplex a cell has one port for both). It waits for earlier slots of these ports and, in an
//! ordered set, for the connections before it. Following the waits backwards, from each slot to one
//! that ends where it begins, gives the chain that determines the start. The chain ends at clock 0
//! or at an idle interval.
//!
//! One stream at a time per port is assumed, as in the timetable, whatever `streams` is.

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, PhaseRoutes, PhaseTimes, Slot,
};
use serde::Serialize;

/// Greatest number of slots that are listed, in total and in the chain.
const LISTED: usize = 16;

/// Why a slot waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCause {
    /// The agent of its source is busy.
    Source,
    /// The agent of its target is busy.
    Target,
    /// Both agents are busy with the same connection.
    Both,
    /// The order of the set.
    Order,
}

/// A slot that a connection waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockingSlot {
    /// The connection in it.
    pub connection: ConnectionId,
    /// Its source.
    pub source: CellId,
    /// Its target.
    pub target: CellId,
    /// Its first clock.
    pub start: u64,
    /// The first clock after it.
    pub end: u64,
    /// Why the connection waits for it.
    pub at: WaitCause,
}

/// The start of a part of a connection, and why it is not earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StartExplanation {
    /// Its first clock, from the phase's start.
    pub start: u64,
    /// Whether the agents keep the planned start: neither opens the stream before it.
    pub kept: bool,
    /// Clocks of its slot.
    pub duration: u64,
    /// The first clock after its slot: the planned finish. Link sharing can delay it, at most to the
    /// end of the phase.
    pub end: u64,
    /// The earliest possible start if everything else stays unchanged.
    pub earliest: u64,
    /// The number of slots that precede it on its agents or by the order of the set.
    pub waits_total: usize,
    /// The last sixteen of them, in the order of their starts.
    pub waits: Vec<BlockingSlot>,
    /// The chain from the slot that ends where it begins back to the first one, at most sixteen.
    pub chain: Vec<BlockingSlot>,
}

/// The routes of a phase with their slots.
pub(super) struct PhaseSlots<'a> {
    pub(super) machine: &'a Machine,
    pub(super) set: &'a ConnectionSet,
    pub(super) routes: &'a PhaseRoutes,
    pub(super) times: &'a PhaseTimes,
}

impl PhaseSlots<'_> {
    /// Explains the start of the route in a row. O(routes log routes) for each link of the chain.
    pub(super) fn start(&self, row: usize) -> StartExplanation {
        let slot = self.times.slots[row];
        let mut waits = self.waits(row);
        waits.sort_by_key(|wait| (wait.start, wait.connection));
        let waits_total = waits.len();
        StartExplanation {
            start: slot.start,
            kept: self.machine.parameters().has_timed_starts(),
            duration: slot.duration,
            end: slot.end(),
            // Slots may overlap on machines with timed starts.
            earliest: self.earliest(row).min(slot.start),
            waits_total,
            waits: waits.split_off(waits_total.saturating_sub(LISTED)),
            chain: self.chain(row),
        }
    }

    fn connection(&self, row: usize) -> &Connection {
        self.set.get(self.routes.get(row).connection)
    }

    fn ports(&self, connection: &Connection) -> [u32; 2] {
        self.machine.parameters().duplex.ports(connection.source, connection.target)
    }

    /// Why the slot in `row` and the one in row `other` exclude each other; `None` if they do not.
    fn conflict(&self, row: usize, other: usize) -> Option<WaitCause> {
        if row == other {
            return None;
        }
        let [from, to] = self.ports(self.connection(row));
        let theirs = self.ports(self.connection(other));
        match (theirs.contains(&from), theirs.contains(&to)) {
            (true, true) => Some(WaitCause::Both),
            (true, false) => Some(WaitCause::Source),
            (false, true) => Some(WaitCause::Target),
            (false, false) => {
                let id = |row| self.routes.get(row).connection;
                self.comes_before(id(other), id(row)).then_some(WaitCause::Order)
            }
        }
    }

    fn comes_before(&self, before: ConnectionId, after: ConnectionId) -> bool {
        let order = self.set.order();
        !order.is_empty() && order.binary_search(&(before, after)).is_ok()
    }

    fn wait(&self, row: usize, at: WaitCause) -> BlockingSlot {
        let (slot, connection) = (self.times.slots[row], self.connection(row));
        BlockingSlot {
            connection: self.routes.get(row).connection,
            source: connection.source,
            target: connection.target,
            start: slot.start,
            end: slot.end(),
            at,
        }
    }

    fn waits(&self, row: usize) -> Vec<BlockingSlot> {
        let start = self.times.slots[row].start;
        (0..self.routes.len())
            .filter(|&other| self.times.slots[other].start < start)
            .filter_map(|other| Some(self.wait(other, self.conflict(row, other)?)))
            .collect()
    }

    /// The first start at which the slot fits between the others and satisfies the order.
    fn earliest(&self, row: usize) -> u64 {
        let id = self.routes.get(row).connection;
        let mut busy: Vec<Slot> = Vec::new();
        let mut ready = 0;
        for other in 0..self.routes.len() {
            let slot = self.times.slots[other];
            match self.conflict(row, other) {
                None => {}
                Some(WaitCause::Order) => ready = ready.max(slot.end()),
                Some(_) => {
                    busy.push(slot);
                    if self.comes_before(self.routes.get(other).connection, id) {
                        ready = ready.max(slot.end());
                    }
                }
            }
        }
        busy.sort_unstable_by_key(|slot| (slot.start, slot.end()));
        let duration = self.times.slots[row].duration;
        let mut earliest = ready;
        for slot in busy {
            if slot.start >= earliest.saturating_add(duration) {
                break;
            }
            earliest = earliest.max(slot.end());
        }
        earliest
    }

    fn chain(&self, row: usize) -> Vec<BlockingSlot> {
        let mut chain = Vec::new();
        let mut row = row;
        while chain.len() < LISTED && self.times.slots[row].start > 0 {
            let start = self.times.slots[row].start;
            let last = (0..self.routes.len())
                .filter(|&other| {
                    let slot = self.times.slots[other];
                    slot.end() == start && slot.start < start
                })
                .filter_map(|other| Some((other, self.conflict(row, other)?)))
                .min_by_key(|&(other, _)| (self.routes.get(other).connection, other));
            let Some((other, at)) = last else { break };
            chain.push(self.wait(other, at));
            row = other;
        }
        chain
    }
}
