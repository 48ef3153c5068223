//! The cheapest route of a connection in a phase: A* over cells, with hops as the estimate.
//!
//! A route may exceed the shortest by a few hops (`detour`). Costs are in 64ths of a hop over a
//! free link. The caller supplies the costs of links and cells.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::{Problem, UNREACHABLE};
use conset_ir::convert::index;
use conset_partition_route::marks::Marks;

/// The cost of a hop over a link without other users.
pub(super) const HOP: u32 = 64;

/// The reusable memory of the search.
#[derive(Clone, Default)]
pub(super) struct PhaseRouteSearch {
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    cost: Vec<u32>,
    parent: Vec<u32>,
    hops: Vec<u32>,
    reached: Marks,
    /// The number of cells expanded.
    pub(super) work: u64,
}

impl PhaseRouteSearch {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            cost: vec![0; cells],
            parent: vec![0; cells],
            hops: vec![0; cells],
            reached: Marks::new(cells),
            work: 0,
        }
    }

    /// The cost of the cheapest route of connection `x` if it is less than `limit`.
    pub(super) fn find(
        &mut self,
        problem: &Problem<'_>,
        x: usize,
        (limit, detour): (u32, u16),
        edge_cost: impl Fn(usize) -> u32,
        cell_cost: impl Fn(u32) -> u32,
    ) -> Option<u32> {
        let connection = &problem.set.connections()[x];
        let (source, target) = (connection.source.0, connection.target.0);
        let distances = problem.distances(x);
        let estimate = |cell: u32| u32::from(distances[index(cell)]) * HOP;
        let longest = u32::from(distances[index(source)]) + u32::from(detour);
        self.forget();
        let first = cell_cost(source);
        if first + estimate(source) >= limit {
            return None;
        }
        self.reach(source, source, first, 0);
        self.heap.push(Reverse((first + estimate(source), estimate(source), source)));
        while let Some(Reverse((key, ahead, cell))) = self.heap.pop() {
            let cost = self.cost[index(cell)];
            if key > cost + ahead {
                continue;
            }
            self.work += 1;
            if cell == target {
                return Some(cost);
            }
            let hops = self.hops[index(cell)] + 1;
            for edge in problem.edges(cell) {
                let next = problem.head(edge);
                let left = distances[index(next)];
                if left == UNREACHABLE || hops + u32::from(left) > longest {
                    continue;
                }
                let cost = cost + edge_cost(edge) + cell_cost(next);
                let key = cost + estimate(next);
                let reached = self.reached.contains(next);
                if key < limit && (!reached || cost < self.cost[index(next)]) {
                    self.reach(next, cell, cost, hops);
                    self.heap.push(Reverse((key, estimate(next), next)));
                }
            }
        }
        None
    }

    /// Stores the cells of the last route found in `cells`.
    pub(super) fn trace(&self, problem: &Problem<'_>, x: usize, cells: &mut Vec<u32>) {
        let connection = &problem.set.connections()[x];
        cells.clear();
        let mut cell = connection.target.0;
        cells.push(cell);
        while cell != connection.source.0 {
            cell = self.parent[index(cell)];
            cells.push(cell);
        }
        cells.reverse();
    }

    fn forget(&mut self) {
        self.heap.clear();
        self.reached.clear();
    }

    fn reach(&mut self, cell: u32, parent: u32, cost: u32, hops: u32) {
        self.reached.insert(cell);
        let row = index(cell);
        (self.cost[row], self.parent[row], self.hops[row]) = (cost, parent, hops);
    }
}
