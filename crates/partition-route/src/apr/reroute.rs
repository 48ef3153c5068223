//! Rip up and reroute: empties phases (the paper's step 4).
//!
//! One iteration takes the phase with the fewest channels in use, rips up its routes, and routes
//! its connections again in the other phases. If a connection finds no path, it is routed through
//! full cells, as few as possible; at each such cell the shortest route is ripped up in turn and
//! queued for rerouting. The cost of a cell grows with each conflict there, so that two connections
//! do not displace each other forever. If all connections find a route, the phase is removed; if
//! the iteration exceeds its budget, all changes are rolled back.

use std::collections::VecDeque;

use super::a_star::UNIT;
use super::layered_graph::LayeredGraph;
use super::paged_table::PagedTable;
use super::routing_state::{PoolRange, UNROUTED};
use conset_ir::convert::index;

/// The cost of a full cell, where a route must be ripped up; it is above the cost of any other
/// cell.
const FULL_CELL_COST: u32 = 8 * UNIT;
/// Added for each earlier conflict at the cell.
const HISTORY_COST: u32 = 2 * UNIT;
/// Routes that one iteration may rip up for each route of the phase.
const RIP_UPS_PER_ROUTE: usize = 6;
/// Routes that one iteration may rip up in addition.
const EXTRA_RIP_UPS: usize = 32;
/// Cells that the searches of one iteration may label for each channel in use.
const SEARCH_BUDGET_PER_CHANNEL: u64 = 32;
/// Cells that the searches of one iteration may label in addition.
const EXTRA_SEARCH_BUDGET: u64 = 1 << 16;
/// Phases searched for a path through full cells.
const SEARCHED_LAYERS: u32 = 32;

/// A route before the iteration: connection, phase, range in the pool.
type FormerRoute = (u32, u32, PoolRange);

/// Scratch memory of the iterations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rerouter {
    former: Vec<FormerRoute>,
    rip_count: Vec<u32>,
    queue: VecDeque<u32>,
    /// Number of conflicts, by phase and cell.
    conflicts: Option<PagedTable<u32>>,
    /// The first phase of the next search through full cells.
    offset: u32,
}

impl Rerouter {
    /// Tries to empty a phase and remove it. Changes nothing if it fails. `rank` is the position of
    /// each connection in the order of routing.
    pub(crate) fn empty(&mut self, graph: &mut LayeredGraph, phase: u32, rank: &[u32]) -> bool {
        self.former.clear();
        self.queue.clear();
        self.rip_count.clear();
        self.rip_count.resize(graph.ends.len(), 0);
        let conflicts = self.conflicts.get_or_insert_with(|| PagedTable::new(graph.network.cells));
        conflicts.reset(graph.state.phases);

        let mut first: Vec<u32> = graph.state.members(phase).to_vec();
        first.sort_unstable_by_key(|&x| rank[index(x)]);
        for &x in &first {
            self.rip_up(graph, x);
        }
        let channels: u64 = graph.state.load.iter().sum();
        let search_limit =
            graph.labelled_cells() + SEARCH_BUDGET_PER_CHANNEL * channels + EXTRA_SEARCH_BUDGET;
        let mut rip_up_budget = RIP_UPS_PER_ROUTE * first.len() + EXTRA_RIP_UPS;
        while let Some(x) = self.queue.pop_front() {
            if graph.labelled_cells() > search_limit
                || !self.reroute(graph, x, phase, &mut rip_up_budget)
            {
                self.rollback(graph);
                return false;
            }
        }
        graph.close_phase(phase);
        graph.state.compact_pool();
        true
    }

    /// Routes a connection that finds no free path, by moving others in any phase. Changes nothing
    /// if it fails.
    pub(crate) fn insert(&mut self, graph: &mut LayeredGraph, x: u32) -> bool {
        self.former.clear();
        self.queue.clear();
        self.rip_count.clear();
        self.rip_count.resize(graph.ends.len(), 0);
        let conflicts = self.conflicts.get_or_insert_with(|| PagedTable::new(graph.network.cells));
        conflicts.reset(graph.state.phases);
        let search_limit = graph.labelled_cells() + EXTRA_SEARCH_BUDGET;
        let mut rip_up_budget = EXTRA_RIP_UPS;
        self.queue.push_back(x);
        while let Some(next) = self.queue.pop_front() {
            if graph.labelled_cells() > search_limit
                || !self.reroute(graph, next, u32::MAX, &mut rip_up_budget)
            {
                if graph.state.phase_of[index(x)] != UNROUTED {
                    graph.remove(x);
                }
                // It had no route before, so none is restored.
                self.former.retain(|former| former.0 != x);
                self.rollback(graph);
                return false;
            }
        }
        graph.state.compact_pool();
        true
    }

    fn rip_up(&mut self, graph: &mut LayeredGraph, x: u32) {
        if self.rip_count[index(x)] == 0 {
            let phase = graph.state.phase_of[index(x)];
            self.former.push((x, phase, graph.state.pool_range(x)));
        }
        self.rip_count[index(x)] += 1;
        graph.remove(x);
        self.queue.push_back(x);
    }

    fn reroute(
        &mut self,
        graph: &mut LayeredGraph,
        x: u32,
        without: u32,
        rip_up_budget: &mut usize,
    ) -> bool {
        let Some(phases) = graph.precedence.legal_phases(&graph.state, x) else { return false };
        if let Some(found) = graph.shortest(x, &phases, without) {
            graph.insert(x, found.phase);
            return true;
        }
        let count = graph.state.phases;
        self.offset = self.offset.wrapping_add(7) % count;
        let offset = self.offset;
        let candidates = (0..count)
            .map(|i| (i + offset) % count)
            .filter(|p| *p != without && phases.contains(p))
            .take(index(SEARCHED_LAYERS));
        let conflicts = &self.conflicts;
        let full_cell_cost = |phase: u32, cell: u32| {
            let conflict_count =
                conflicts.as_ref().map_or(0, |conflicts| *conflicts.of(phase).get(cell));
            FULL_CELL_COST.saturating_add(HISTORY_COST.saturating_mul(conflict_count))
        };
        let Some(found) = graph.search_through_full(x, candidates, &full_cell_cost) else {
            return false;
        };
        let path = std::mem::take(&mut graph.path);
        let room =
            path.iter().all(|&cell| self.free_channel(graph, found.phase, cell, rip_up_budget));
        graph.path = path;
        if room {
            graph.insert(x, found.phase);
        } else {
            // The connection is not routed, but it is recorded in `former`, so that the rollback
            // restores it.
            debug_assert_eq!(graph.state.phase_of[index(x)], UNROUTED);
        }
        room
    }

    /// Makes sure that a cell has a free channel; false if the budget is exhausted.
    fn free_channel(
        &mut self,
        graph: &mut LayeredGraph,
        phase: u32,
        cell: u32,
        rip_up_budget: &mut usize,
    ) -> bool {
        if graph.state.used(phase)[index(cell)] < graph.state.capacity {
            return true;
        }
        if *rip_up_budget == 0 {
            return false;
        }
        *rip_up_budget -= 1;
        if let Some(conflicts) = &mut self.conflicts {
            *conflicts.value_mut(phase, cell) += 1;
        }
        let routes_through = graph.state.routes_through(phase, cell).iter().copied();
        let key = |x: &u32| (self.rip_count[index(*x)], graph.state.route(*x).len(), *x);
        match routes_through.min_by_key(key) {
            Some(x) => self.rip_up(graph, x),
            None => return false,
        }
        true
    }

    fn rollback(&mut self, graph: &mut LayeredGraph) {
        for &(x, _, _) in &self.former {
            if graph.state.phase_of[index(x)] != UNROUTED {
                graph.remove(x);
            }
        }
        for &(x, phase, place) in &self.former {
            graph.restore(x, phase, place);
        }
        graph.state.compact_pool();
    }
}
