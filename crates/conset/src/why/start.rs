//! Why a stream starts when it starts: what holds its two agents before.
//!
//! A route books the send side of its source and the receive side of its target for its slot
//! (with half duplex a cell has one side for both). What it waits for is what those sides are
//! booked for before, and in an ordered set what must be finished before. Following the wait
//! backwards, from each slot to one that ends as it begins, gives the chain that makes the start
//! as late as it is; the chain ends at clock 0 or at a pause that nothing explains.
//!
//! One stream at a time per side is counted, as the timetable plans, whatever `streams` is.

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, PhaseRoutes, PhaseTimes, Slot,
};
use serde::Serialize;

/// Slots that are listed, and links of the chain.
const LISTED: usize = 16;

/// Why a slot waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsAt {
    /// Its source's agent is busy.
    Source,
    /// Its target's agent is busy.
    Target,
    /// Both are busy with the same.
    Both,
    /// The set orders it so.
    Order,
}

/// A slot that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
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
    /// Where it is in the way.
    pub at: WaitsAt,
}

/// When a part of a connection starts, and why not before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Start {
    /// Its first clock, from the phase's start.
    pub start: u64,
    /// Whether the machine's agents keep it: none of the two opens the stream before.
    pub kept: bool,
    /// Clocks it is booked for.
    pub duration: u64,
    /// The first clock after its slot: its planned finish. Link sharing can delay it, at most
    /// until the phase is over.
    pub end: u64,
    /// The earliest start if everything else stays as it is.
    pub earliest: u64,
    /// Slots that begin before it on its agents, or come before it by order.
    pub waits_total: usize,
    /// The last sixteen of them, in the order of their starts.
    pub waits: Vec<Wait>,
    /// From the slot that ends as it begins back to the first: at most sixteen.
    pub chain: Vec<Wait>,
}

/// A phase's routes with their slots.
pub(super) struct Booked<'a> {
    pub(super) machine: &'a Machine,
    pub(super) set: &'a ConnectionSet,
    pub(super) routes: &'a PhaseRoutes,
    pub(super) times: &'a PhaseTimes,
}

impl Booked<'_> {
    /// Explains the start of the route in a row. O(routes log routes) for each link of the chain.
    pub(super) fn start(&self, row: usize) -> Start {
        let slot = self.times.slots[row];
        let mut waits = self.waits(row);
        waits.sort_by_key(|wait| (wait.start, wait.connection));
        let waits_total = waits.len();
        Start {
            start: slot.start,
            kept: self.machine.parameters().has_timed_starts(),
            duration: slot.duration,
            end: slot.end(),
            // Slots overlap where agents that keep starts work them off as they can.
            earliest: self.earliest(row).min(slot.start),
            waits_total,
            waits: waits.split_off(waits_total.saturating_sub(LISTED)),
            chain: self.chain(row),
        }
    }

    fn connection(&self, row: usize) -> &Connection {
        self.set.get(self.routes.get(row).connection)
    }

    fn sides(&self, connection: &Connection) -> [u32; 2] {
        self.machine.parameters().duplex.ports(connection.source, connection.target)
    }

    /// How the slot in row `other` is in the way of the one in `row`, whenever it is.
    fn meets(&self, row: usize, other: usize) -> Option<WaitsAt> {
        if row == other {
            return None;
        }
        let [from, to] = self.sides(self.connection(row));
        let theirs = self.sides(self.connection(other));
        match (theirs.contains(&from), theirs.contains(&to)) {
            (true, true) => Some(WaitsAt::Both),
            (true, false) => Some(WaitsAt::Source),
            (false, true) => Some(WaitsAt::Target),
            (false, false) => {
                let id = |row| self.routes.get(row).connection;
                self.comes_before(id(other), id(row)).then_some(WaitsAt::Order)
            }
        }
    }

    fn comes_before(&self, before: ConnectionId, after: ConnectionId) -> bool {
        let order = self.set.order();
        !order.is_empty() && order.binary_search(&(before, after)).is_ok()
    }

    fn wait(&self, row: usize, at: WaitsAt) -> Wait {
        let (slot, connection) = (self.times.slots[row], self.connection(row));
        Wait {
            connection: self.routes.get(row).connection,
            source: connection.source,
            target: connection.target,
            start: slot.start,
            end: slot.end(),
            at,
        }
    }

    fn waits(&self, row: usize) -> Vec<Wait> {
        let start = self.times.slots[row].start;
        (0..self.routes.len())
            .filter(|&other| self.times.slots[other].start < start)
            .filter_map(|other| Some(self.wait(other, self.meets(row, other)?)))
            .collect()
    }

    /// First fit among the other slots, not before what comes before by order.
    fn earliest(&self, row: usize) -> u64 {
        let id = self.routes.get(row).connection;
        let mut busy: Vec<Slot> = Vec::new();
        let mut ready = 0;
        for other in 0..self.routes.len() {
            let slot = self.times.slots[other];
            match self.meets(row, other) {
                None => {}
                Some(WaitsAt::Order) => ready = ready.max(slot.end()),
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

    fn chain(&self, row: usize) -> Vec<Wait> {
        let mut chain = Vec::new();
        let mut row = row;
        while chain.len() < LISTED && self.times.slots[row].start > 0 {
            let start = self.times.slots[row].start;
            let last = (0..self.routes.len())
                .filter(|&other| {
                    let slot = self.times.slots[other];
                    slot.end() == start && slot.start < start
                })
                .filter_map(|other| Some((other, self.meets(row, other)?)))
                .min_by_key(|&(other, _)| (self.routes.get(other).connection, other));
            let Some((other, at)) = last else { break };
            chain.push(self.wait(other, at));
            row = other;
        }
        chain
    }
}
