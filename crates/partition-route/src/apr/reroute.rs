//! Rip up and reroute: emptying phases (the paper's step 4).
//!
//! One iteration picks the phase with the fewest channels in use, rips up its routes and routes
//! its connections again in the other phases. Where one finds no way, it is led over cells that
//! are full, as few as possible; for each such cell the shortest route there is ripped up in its
//! turn and waits to be rerouted. A cell that was fought over costs more each time, so that two
//! connections do not drive each other out for ever. If all find a place the phase is gone; if
//! the iteration runs out of work, everything is put back as it was.

use std::collections::VecDeque;

use super::layered_graph::LayeredGraph;
use super::paged_table::PagedTable;
use super::search::UNIT;
use super::state::UNROUTED;

/// Cost of passing a full cell, where somebody must be ripped up, above the dearest other cell's.
const TOLL: u32 = 8 * UNIT;
/// Added for each time that somebody was ripped up there before.
const MEMORY: u32 = 2 * UNIT;
/// Routes that one iteration may rip up, for each that the phase had.
const PATIENCE: usize = 6;
/// Routes that one iteration may rip up beyond that.
const FEWEST: usize = 32;
/// Cells that the searches of one iteration may label, for each channel in use.
const EFFORT: u64 = 32;
/// Cells that the searches of one iteration may label beyond that.
const LEAST_EFFORT: u64 = 1 << 16;
/// Phases looked at when a connection is led over full cells.
const COPIES: u32 = 32;

/// A route before the iteration: connection, phase, place in the pool.
type Former = (u32, u32, (u64, u32));

/// Scratch of the iterations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reroute {
    former: Vec<Former>,
    ripped: Vec<u32>,
    queue: VecDeque<u32>,
    /// Times that somebody was ripped up, by phase and cell.
    fights: Option<PagedTable<u32>>,
    /// Where the search over full cells starts.
    turn: u32,
}

impl Reroute {
    /// Tries to empty a phase and take it out. If it cannot, nothing has changed. `rank` is the
    /// place of each connection in the order of routing.
    pub(crate) fn empty(&mut self, copies: &mut LayeredGraph, phase: u32, rank: &[u32]) -> bool {
        self.former.clear();
        self.queue.clear();
        self.ripped.clear();
        self.ripped.resize(copies.ends.len(), 0);
        let fights = self.fights.get_or_insert_with(|| PagedTable::new(copies.network.cells));
        fights.reset(copies.state.phases);

        let mut first: Vec<u32> = copies.state.members(phase).to_vec();
        first.sort_unstable_by_key(|&x| rank[x as usize]);
        for &x in &first {
            self.rip(copies, x);
        }
        let channels: u64 = copies.state.load.iter().sum();
        let enough = copies.effort() + EFFORT * channels + LEAST_EFFORT;
        let mut work = PATIENCE * first.len() + FEWEST;
        while let Some(x) = self.queue.pop_front() {
            if copies.effort() > enough || !self.reroute(copies, x, phase, &mut work) {
                self.undo(copies);
                return false;
            }
        }
        copies.close_phase(phase);
        copies.state.pack();
        true
    }

    /// Routes a connection that finds no room, by moving others in any phase. If it cannot,
    /// nothing has changed.
    pub(crate) fn insert(&mut self, copies: &mut LayeredGraph, x: u32) -> bool {
        self.former.clear();
        self.queue.clear();
        self.ripped.clear();
        self.ripped.resize(copies.ends.len(), 0);
        let fights = self.fights.get_or_insert_with(|| PagedTable::new(copies.network.cells));
        fights.reset(copies.state.phases);
        let enough = copies.effort() + LEAST_EFFORT;
        let mut work = FEWEST;
        self.queue.push_back(x);
        while let Some(next) = self.queue.pop_front() {
            if copies.effort() > enough || !self.reroute(copies, next, u32::MAX, &mut work) {
                if copies.state.phase_of[x as usize] != UNROUTED {
                    copies.take(x);
                }
                // It had no route before, so it has none to be given back.
                self.former.retain(|former| former.0 != x);
                self.undo(copies);
                return false;
            }
        }
        copies.state.pack();
        true
    }

    fn rip(&mut self, copies: &mut LayeredGraph, x: u32) {
        if self.ripped[x as usize] == 0 {
            let phase = copies.state.phase_of[x as usize];
            self.former.push((x, phase, copies.state.place_of(x)));
        }
        self.ripped[x as usize] += 1;
        copies.take(x);
        self.queue.push_back(x);
    }

    fn reroute(
        &mut self,
        copies: &mut LayeredGraph,
        x: u32,
        without: u32,
        work: &mut usize,
    ) -> bool {
        let Some(phases) = copies.order.phases(&copies.state, x) else { return false };
        if let Some(found) = copies.shortest(x, &phases, without) {
            copies.put(x, found.phase);
            return true;
        }
        let count = copies.state.phases;
        self.turn = self.turn.wrapping_add(7) % count;
        let turn = self.turn;
        let candidates = (0..count)
            .map(|i| (i + turn) % count)
            .filter(|p| *p != without && phases.contains(p))
            .take(COPIES as usize);
        let fights = &self.fights;
        let toll = |phase: u32, cell: u32| {
            let fought = fights.as_ref().map_or(0, |fights| *fights.of(phase).get(cell));
            TOLL.saturating_add(MEMORY.saturating_mul(fought))
        };
        let Some(found) = copies.through_full(x, candidates, &toll) else { return false };
        let path = std::mem::take(&mut copies.path);
        let room = path.iter().all(|&cell| self.make_room(copies, found.phase, cell, work));
        copies.path = path;
        if room {
            copies.put(x, found.phase);
        } else {
            // The connection is not routed, but it is among the former ones, so that undoing
            // finds it.
            debug_assert_eq!(copies.state.phase_of[x as usize], UNROUTED);
        }
        room
    }

    /// Sees to it that a cell has a free channel; false if that was too much work.
    fn make_room(
        &mut self,
        copies: &mut LayeredGraph,
        phase: u32,
        cell: u32,
        work: &mut usize,
    ) -> bool {
        if copies.state.used(phase)[cell as usize] < copies.state.capacity {
            return true;
        }
        if *work == 0 {
            return false;
        }
        *work -= 1;
        if let Some(fights) = &mut self.fights {
            *fights.at(phase, cell) += 1;
        }
        let passing = copies.state.passing(phase, cell).iter().copied();
        let key = |x: &u32| (self.ripped[*x as usize], copies.state.route(*x).len(), *x);
        match passing.min_by_key(key) {
            Some(x) => self.rip(copies, x),
            None => return false,
        }
        true
    }

    fn undo(&mut self, copies: &mut LayeredGraph) {
        for &(x, _, _) in &self.former {
            if copies.state.phase_of[x as usize] != UNROUTED {
                copies.take(x);
            }
        }
        for &(x, phase, place) in &self.former {
            copies.restore(x, phase, place);
        }
        copies.state.pack();
    }
}
