//! The cheapest shortest route of a connection, for all start slots at once.
//!
//! The search runs backwards from the target, over the cells that lie on routes of fewest hops. The
//! costs of a cell are a row with one number for each slot in which a unit may start, and an edge is
//! relaxed for all of them in one loop over slices. `detours` finds routes with more hops.

use crate::problem::Problem;
use crate::shortest_routes::ShortestRoutes;
use conset_ir::convert::{index, to_u64};

use super::rows::{NEVER, Rows};

/// The costs that a search reads.
pub(super) struct View<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) links: &'a Rows,
    /// The cost of a channel, by cell, then slot.
    pub(super) channels: &'a [i32],
}

impl View<'_> {
    /// The cost of a channel of a cell, by slot.
    #[inline]
    pub(super) fn channels(&self, cell: u32) -> &[i32] {
        let slots = self.links.slots();
        &self.channels[index(cell) * slots..][..slots]
    }
}

/// The least cost, and its start. Of equal ones `salt` chooses.
pub(super) fn least_start(costs: &[i32], salt: u32) -> Option<(i32, usize)> {
    let least = costs.iter().copied().min()?;
    let (before, after) = costs.split_at(index(salt) % costs.len());
    let first = |row: &[i32]| row.iter().position(|&cost| cost == least);
    let start = first(after).map(|at| at + before.len()).or_else(|| first(before))?;
    (least < NEVER).then_some((least, start))
}

/// The search's memory, kept from search to search.
#[derive(Clone)]
pub(super) struct RouteSearch {
    routes: ShortestRoutes,
    /// By row, then start.
    costs: Vec<i32>,
    sums: Vec<i32>,
    /// The cost of ports by start; `NEVER` where no unit can start.
    pub(super) starts: Vec<i32>,
    /// The work: slots of edges examined, in eighths.
    pub(super) work: u64,
}

impl RouteSearch {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            routes: ShortestRoutes::new(cells),
            costs: Vec::new(),
            sums: Vec::new(),
            starts: Vec::new(),
            work: 0,
        }
    }

    /// The cheapest start and shortest route of connection `x` for so many slots: cost and start. Of
    /// equal starts `salt` chooses.
    pub(super) fn find(
        &mut self,
        view: &View<'_>,
        (x, slots): (usize, usize),
        salt: u32,
    ) -> Option<(i32, usize)> {
        let width = self.starts.len();
        self.routes.gather(view.problem, x);
        let rows = self.routes.cells().len();
        self.costs.resize(rows * width, 0);
        for row in (0..rows).rev() {
            self.relax(view, row, slots);
        }
        self.work += to_u64(self.routes.arc_count() + rows) * (3 + to_u64(width) / 8);
        let costs = &mut self.costs[..width];
        costs.iter_mut().zip(&self.starts).for_each(|(to, start)| *to = to.wrapping_add(*start));
        least_start(costs, salt)
    }

    /// Computes a cell's costs, those over its cheapest arc. The rows behind it are known.
    fn relax(&mut self, view: &View<'_>, row: usize, slots: usize) {
        let width = self.starts.len();
        let arcs = self.routes.arcs(row);
        self.sums.clear();
        // The target has no arcs.
        self.sums.resize(width, if arcs.is_empty() { 0 } else { NEVER });
        for &(next, edge) in arcs {
            let ahead = &self.costs[index(next) * width..][..width];
            let (from, to) = view.links.stretches(index(edge), slots);
            let stretch = from.iter().zip(to).zip(ahead);
            for (sum, ((from, to), ahead)) in self.sums.iter_mut().zip(stretch) {
                // No sum is near to overflow, and checks would keep the loop from being vectors'.
                let cost = ahead.wrapping_add(to.wrapping_sub(*from));
                *sum = if cost < *sum { cost } else { *sum };
            }
        }
        for (sum, channel) in self.sums.iter_mut().zip(view.channels(self.routes.cells()[row])) {
            *sum = sum.wrapping_add(*channel);
        }
        self.costs[row * width..][..width].copy_from_slice(&self.sums);
    }

    /// The cells of a cheapest route from a start, to `cells`. Of equal ones `salt` chooses.
    pub(super) fn trace(
        &self,
        view: &View<'_>,
        (start, slots): (usize, usize),
        mut salt: u32,
        cells: &mut Vec<u32>,
    ) {
        let width = self.starts.len();
        let mut row = 0;
        cells.clear();
        cells.push(self.routes.cells()[0]);
        loop {
            let arcs = self.routes.arcs(row);
            salt = salt.wrapping_mul(0x9e37_79b9).rotate_left(15);
            let cost = |&(at, &(next, edge)): &(u32, &(u32, u32))| {
                let stretch = view.links.cost(index(edge), (start, slots));
                let tie = (at ^ salt).wrapping_mul(0x85eb_ca6b);
                (self.costs[index(next) * width + start] + stretch, tie)
            };
            let Some((_, &(next, _))) = (0u32..).zip(arcs).min_by_key(cost) else { break };
            row = index(next);
            cells.push(self.routes.cells()[row]);
        }
    }
}
