//! The A* search for a shortest path in one layer of the graph.
//!
//! A cell costs at least [`UNIT`], so the hops to the target times [`UNIT`] never overestimate the
//! remaining cost, and the first path found is a shortest one. Costs are small whole numbers, so
//! the priority queue is an array of stacks (buckets). A search has a cost limit and stops when it
//! cannot stay below it.
//!
//! Where cells are full there may be no path, and a search from the source alone learns that only when
//! it has seen everything that it can reach. So a search that grows large also looks backwards from
//! the target, at as many cells as it has seen itself, and gives up if that side is closed off.
//!
//! The caller defines the cost of a cell and whether an edge may be used.

use super::cell_cost::FULL;
use crate::marks::Marks;
use crate::network::{Distances, Network, UNREACHABLE};
use conset_ir::convert::{index, to_u32};

/// The cost of an unused cell: the paper's 1, in units fine enough for the other costs.
pub(crate) const UNIT: u32 = 8;

/// Cells labelled in a search before it looks backwards from the target.
const FORWARD: u64 = 1 << 8;

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

/// What a look backwards from the target has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// No cell that the search can still reach leads to the target.
    ClosedOff,
    /// A cell that the search has reached does.
    Connected,
    Unknown,
}

/// Scratch memory of the search, reused without clearing.
#[derive(Clone, Debug)]
pub(crate) struct AStar {
    labels: Vec<CellLabel>,
    generation: u32,
    /// The top entry of each bucket; bucket `i` holds estimates that exceed the first by `i`.
    buckets: Vec<u32>,
    entries: Vec<OpenEntry>,
    /// Cells from which the target can be reached, in the order in which they were found, and the
    /// number of them whose neighbours were looked at.
    behind: Vec<u32>,
    behind_done: usize,
    is_behind: Marks,
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
            behind: Vec::new(),
            behind_done: 0,
            is_behind: Marks::new(cells),
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
        let begin = self.labelled_cells;
        let mut look_back = begin + FORWARD;
        while at < self.buckets.len() {
            if self.labelled_cells >= look_back {
                let most = self.labelled_cells - begin;
                look_back = match self.look_back(network, target, most, &cost, &open) {
                    Behind::ClosedOff => return None,
                    Behind::Unknown => self.labelled_cells + most,
                    Behind::Connected => u64::MAX,
                };
            }
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

    /// Continues to look backwards from the target, at `most` cells.
    fn look_back(
        &mut self,
        network: &Network,
        target: u32,
        most: u64,
        cost: &impl Fn(u32) -> u32,
        open: &impl Fn(usize) -> bool,
    ) -> Behind {
        if self.behind.is_empty() {
            self.behind.push(target);
            self.is_behind.insert(target);
        }
        for _ in 0..most {
            let Some(&cell) = self.behind.get(self.behind_done) else { return Behind::ClosedOff };
            self.behind_done += 1;
            self.labelled_cells += 1;
            for &before in network.back.of(cell) {
                let is_known = self.is_behind.contains(before);
                if is_known || cost(before) == FULL || !open(network.next.edge(before, cell)) {
                    continue;
                }
                if self.labels[index(before)].stamp == self.generation {
                    return Behind::Connected;
                }
                self.is_behind.insert(before);
                self.behind.push(before);
            }
        }
        Behind::Unknown
    }

    fn start(&mut self) {
        self.buckets.clear();
        self.entries.clear();
        self.behind.clear();
        self.behind_done = 0;
        self.is_behind.clear();
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

#[cfg(test)]
mod tests {
    use conset_ir::Machine;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Whether a path over cells that are not full leads from one cell to another.
    fn is_reachable(network: &Network, full: &[bool], source: u32, target: u32) -> bool {
        let mut seen = full.to_vec();
        let mut open = vec![source];
        while let Some(cell) = open.pop() {
            if !std::mem::replace(&mut seen[index(cell)], true) {
                open.extend(network.next.of(cell));
            }
        }
        seen[index(target)] && !full[index(target)] && !full[index(source)]
    }

    #[test]
    fn looking_backwards_gives_up_only_where_there_is_no_path() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (mut found, mut refused) = (0, 0);
        for spec in ["mesh:40x40", "torus:36x40", "fat-tree:512"] {
            let network = Network::new(&Machine::from_spec(spec).unwrap());
            let cells = to_u32(network.cell_count());
            let mut search = AStar::new(network.cell_count());
            for _ in 0..60 {
                // About as many as divide a grid into pieces.
                let full: Vec<bool> = (0..cells).map(|_| rng.random_range(0..100) < 38).collect();
                let [source, target] = [0; 2].map(|_| rng.random_range(0..cells));
                let mut distances = Distances::new(&network, [target].into_iter());
                distances.aim(&network, source, target);
                let cost = |cell: u32| if full[index(cell)] { FULL } else { UNIT };
                let path =
                    search.run(&network, &distances, source, target, u32::MAX, cost, |_| true);
                let expected = is_reachable(&network, &full, source, target)
                    && distances.to_target(source) != UNREACHABLE;
                assert_eq!(path.is_some(), expected, "{spec} {source} {target}");
                found += u32::from(path.is_some());
                refused +=
                    u32::from(path.is_none() && !full[index(source)] && !full[index(target)]);
            }
        }
        assert!(found > 10 && refused > 10, "{found} {refused}");
    }

    #[test]
    fn a_target_that_is_closed_off_costs_no_search_of_the_whole_machine() {
        let network = Network::new(&Machine::from_spec("mesh:200x200").unwrap());
        let (source, target) = (0, 100 * 200 + 100);
        let mut search = AStar::new(network.cell_count());
        let mut distances = Distances::new(&network, [target].into_iter());
        distances.aim(&network, source, target);
        let around = network.next.of(target).to_vec();
        let cost = |cell: u32| if around.contains(&cell) { FULL } else { UNIT };
        let path = search.run(&network, &distances, source, target, u32::MAX, cost, |_| true);
        assert!(path.is_none() && search.labelled_cells < 1000, "{}", search.labelled_cells);
    }
}
