//! The A* search for a shortest path in one layer of the graph.
//!
//! A cell costs at least [`UNIT`], so the hops to the target times [`UNIT`] never overestimate the
//! remaining cost, and the first path found is a shortest one. Costs are small whole numbers, so
//! the priority queue is an array of stacks (buckets). A search has a cost limit and stops when it
//! cannot stay below it.
//!
//! The caller defines the cost of a cell and whether an edge may be used.

use super::cell_cost::FULL;
use crate::network::{Distances, Network, UNREACHABLE};
use conset_ir::convert::{index, to_u32};

/// The cost of an unused cell: the paper's 1, in units fine enough for the other costs.
pub(crate) const UNIT: u32 = 8;

/// Marks the end of a bucket.
const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct CellLabel {
    stamp: u32,
    cost: u32,
    from: u32,
}

#[derive(Clone, Copy, Debug)]
struct OpenEntry {
    cell: u32,
    cost: u32,
    next: u32,
}

/// Scratch memory of the search, reused without clearing.
#[derive(Clone, Debug)]
pub(crate) struct AStar {
    labels: Vec<CellLabel>,
    generation: u32,
    /// The top entry of each bucket; bucket `i` holds estimates that exceed the first by `i`.
    buckets: Vec<u32>,
    entries: Vec<OpenEntry>,
    /// The path found last, source first.
    pub(crate) path: Vec<u32>,
    /// Cells labelled in all searches so far: the measure of work.
    pub(crate) labelled_cells: u64,
}

impl AStar {
    /// Scratch memory for a network of `cells` cells.
    pub(crate) fn new(cells: usize) -> Self {
        Self {
            labels: vec![CellLabel { stamp: 0, cost: 0, from: 0 }; cells],
            generation: 0,
            buckets: Vec::new(),
            entries: Vec::new(),
            path: Vec::new(),
            labelled_cells: 0,
        }
    }

    /// The cost of a shortest path from `source` to the target that `distances` aims at, if it is
    /// below `limit`; the path is left in [`AStar::path`]. `cost(cell)` is [`FULL`] and
    /// `open(edge)` is false where the path must not go.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn run(
        &mut self,
        network: &Network,
        distances: &Distances,
        source: u32,
        target: u32,
        limit: u32,
        cost: impl Fn(u32) -> u32,
        open: impl Fn(usize) -> bool,
    ) -> Option<u32> {
        let hops = distances.to_target(source);
        if hops == UNREACHABLE || cost(source) == FULL || cost(target) == FULL {
            return None;
        }
        let first = cost(source).saturating_add(hops.saturating_mul(UNIT));
        if first >= limit {
            return None;
        }
        self.start();
        self.label(source, cost(source), source);
        if source == target {
            self.trace(target, source);
            return Some(first);
        }
        self.push(0, source, cost(source));
        let mut at = 0;
        while at < self.buckets.len() {
            let top = self.buckets[at];
            if top == EMPTY {
                at += 1;
                continue;
            }
            let entry = self.entries[index(top)];
            self.buckets[at] = entry.next;
            if entry.cost > self.labels[index(entry.cell)].cost {
                continue;
            }
            if entry.cell == target {
                self.trace(target, source);
                return Some(entry.cost);
            }
            for edge in network.next.edges(entry.cell) {
                let next = network.next.head(edge);
                let step = cost(next);
                if step == FULL || !open(edge) {
                    continue;
                }
                let reached = entry.cost + step;
                let hops = distances.to_target(next);
                let estimate = reached.saturating_add(hops.saturating_mul(UNIT));
                if estimate >= limit || !self.label(next, reached, entry.cell) {
                    continue;
                }
                let above = index(estimate - first);
                if next == target && above <= at {
                    self.trace(target, source);
                    return Some(reached);
                }
                self.push(above.max(at), next, reached);
            }
        }
        None
    }

    fn start(&mut self) {
        self.buckets.clear();
        self.entries.clear();
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            for label in &mut self.labels {
                label.stamp = 0;
            }
            1
        });
    }

    /// Records a path to a cell; false if one of at most this cost was known.
    #[inline]
    fn label(&mut self, cell: u32, cost: u32, from: u32) -> bool {
        let label = &mut self.labels[index(cell)];
        if label.stamp == self.generation && label.cost <= cost {
            return false;
        }
        *label = CellLabel { stamp: self.generation, cost, from };
        self.labelled_cells += 1;
        true
    }

    #[inline]
    fn push(&mut self, bucket: usize, cell: u32, cost: u32) {
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, EMPTY);
        }
        let next = std::mem::replace(&mut self.buckets[bucket], to_u32(self.entries.len()));
        self.entries.push(OpenEntry { cell, cost, next });
    }

    fn trace(&mut self, target: u32, source: u32) {
        self.path.clear();
        let mut cell = target;
        while cell != source {
            self.path.push(cell);
            cell = self.labels[index(cell)].from;
        }
        self.path.push(source);
        self.path.reverse();
    }
}
