//! Cheapest paths with costs on cells and links.
//!
//! A* search with the remaining hops as its estimate: every cell costs at least [`UNIT`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::index;
use conset_partition_route::network::{Distances, Network, UNREACHABLE};

/// The least cost of a cell.
pub(super) const UNIT: u32 = 16;

/// The cost of a cell or link that must not be used.
pub(super) const CLOSED: u32 = u32::MAX;

/// The reusable memory of the search.
pub(super) struct PathSearch {
    cost: Vec<u32>,
    from: Vec<u32>,
    touched: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// The path found last, source first.
    pub(super) path: Vec<u32>,
}

impl PathSearch {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            cost: vec![CLOSED; cells],
            from: vec![0; cells],
            touched: Vec::new(),
            heap: BinaryHeap::new(),
            path: Vec::new(),
        }
    }

    /// Finds a cheapest path from `source` to the target that `distances` is aimed at, and returns
    /// whether there is one. A path that costs [`CLOSED`] or more counts as none.
    pub(super) fn find(
        &mut self,
        network: &Network,
        distances: &Distances,
        (source, target): (u32, u32),
        cell: impl Fn(u32) -> u32,
        link: impl Fn(usize) -> u32,
    ) -> bool {
        for at in self.touched.drain(..) {
            self.cost[index(at)] = CLOSED;
        }
        self.heap.clear();
        let hops = distances.to_target(source);
        if hops == UNREACHABLE || cell(source) == CLOSED || cell(target) == CLOSED {
            return false;
        }
        self.reach(source, cell(source), source, hops);
        while let Some(Reverse((_, cost, at))) = self.heap.pop() {
            if cost > self.cost[index(at)] {
                continue;
            }
            if at == target {
                self.trace(source, target);
                return true;
            }
            for edge in network.outgoing().edges(at) {
                let next = network.outgoing().head(edge);
                let (step, over) = (cell(next), link(edge));
                if step == CLOSED || over == CLOSED {
                    continue;
                }
                let reached = cost.saturating_add(step).saturating_add(over);
                if reached < self.cost[index(next)] {
                    self.reach(next, reached, at, distances.to_target(next));
                }
            }
        }
        false
    }

    /// The number of cells that the last search expanded.
    pub(super) fn expanded(&self) -> usize {
        self.touched.len()
    }

    fn reach(&mut self, cell: u32, cost: u32, from: u32, hops: u32) {
        if self.cost[index(cell)] == CLOSED {
            self.touched.push(cell);
        }
        self.cost[index(cell)] = cost;
        self.from[index(cell)] = from;
        let estimate = cost.saturating_add(hops.saturating_mul(UNIT));
        self.heap.push(Reverse((estimate, cost, cell)));
    }

    fn trace(&mut self, source: u32, target: u32) {
        self.path.clear();
        let mut cell = target;
        self.path.push(cell);
        while cell != source {
            cell = self.from[index(cell)];
            self.path.push(cell);
        }
        self.path.reverse();
    }
}
