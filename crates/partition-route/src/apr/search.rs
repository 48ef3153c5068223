//! The shortest path search in one copy of the graph.
//!
//! Dijkstra's algorithm with a sense of direction (A*): the cost of a cell is at least
//! [`UNIT`], so hops to the target times that never say too much, and the first path found is a
//! shortest one. Costs are small whole numbers, so the queue is an array of stacks. A search is
//! given the cost that it must stay below and gives up beyond.
//!
//! What a cell costs, and whether an edge may be taken, is the caller's business.

use super::costs::FULL;
use crate::network::{Distances, Network, UNREACHABLE};

/// Cost of a cell that nobody uses (the paper's 1, in fractions fine enough for the rest).
pub(crate) const UNIT: u32 = 8;

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Label {
    stamp: u32,
    cost: u32,
    from: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    cell: u32,
    cost: u32,
    below: u32,
}

/// Scratch of the search, reused without clearing.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    labels: Vec<Label>,
    now: u32,
    /// The top entry of each stack; stack `i` holds estimates of `i` more than the first.
    tops: Vec<u32>,
    entries: Vec<Entry>,
    /// The path found last, source first.
    pub(crate) path: Vec<u32>,
    /// Cells labelled in all searches so far: the measure of work.
    pub(crate) effort: u64,
}

impl Search {
    /// Scratch for a network of so many cells.
    pub(crate) fn new(cells: usize) -> Self {
        Self {
            labels: vec![Label { stamp: 0, cost: 0, from: 0 }; cells],
            now: 0,
            tops: Vec::new(),
            entries: Vec::new(),
            path: Vec::new(),
            effort: 0,
        }
    }

    /// The cost of a shortest path from `source` to the target that `distances` aims at, if it
    /// is below `limit`; the path is left in [`Search::path`]. `cost(cell)` is [`FULL`] and
    /// `open(edge)` is false where the path may not go.
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
        while at < self.tops.len() {
            let top = self.tops[at];
            if top == END {
                at += 1;
                continue;
            }
            let entry = self.entries[top as usize];
            self.tops[at] = entry.below;
            if entry.cost > self.labels[entry.cell as usize].cost {
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
                let above = (estimate - first) as usize;
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
        self.tops.clear();
        self.entries.clear();
        self.now = self.now.checked_add(1).unwrap_or_else(|| {
            for label in &mut self.labels {
                label.stamp = 0;
            }
            1
        });
    }

    /// Notes a way to a cell; false if one as short was known.
    #[inline]
    fn label(&mut self, cell: u32, cost: u32, from: u32) -> bool {
        let label = &mut self.labels[cell as usize];
        if label.stamp == self.now && label.cost <= cost {
            return false;
        }
        *label = Label { stamp: self.now, cost, from };
        self.effort += 1;
        true
    }

    #[inline]
    fn push(&mut self, stack: usize, cell: u32, cost: u32) {
        if stack >= self.tops.len() {
            self.tops.resize(stack + 1, END);
        }
        let below = std::mem::replace(&mut self.tops[stack], self.entries.len() as u32);
        self.entries.push(Entry { cell, cost, below });
    }

    fn trace(&mut self, target: u32, source: u32) {
        self.path.clear();
        let mut cell = target;
        while cell != source {
            self.path.push(cell);
            cell = self.labels[cell as usize].from;
        }
        self.path.push(source);
        self.path.reverse();
    }
}
