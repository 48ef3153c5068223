//! Quick descent: swaps parts on nearby cells while that shortens weighted distances.
//!
//! For each part the cells near its partners are tried: the saving if the part moves there and the
//! part on that cell (if any) takes its place. The best swap with a saving is made. A few rounds,
//! and a limit on the total work, keep it cheap.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Lists, Machine};

use super::metric::Metric;
use super::part_graph::PartGraph;
use crate::network::{BoundedBfs, Network};

/// The most rounds over all parts.
const MAX_ROUNDS: usize = 8;
/// The number of endpoints that count as near a cell.
const NEARBY: usize = 8;
/// Cells visited to find them.
const BFS_LIMIT: usize = 256;
/// Partners of a part whose neighbourhoods are tried, those with the greatest weights.
const MAX_PARTNERS: usize = 8;
/// Pairs of parts examined in all rounds together.
const WORK_BUDGET: usize = 1 << 24;

/// Stands for no part on a cell.
pub(super) const FREE_CELL: u32 = u32::MAX;

/// The sum of weight times distance.
pub(super) fn weighted_hops(graph: &PartGraph, metric: &Metric, place: &[u32]) -> i128 {
    let of = |part: u32| {
        let here = place[index(part)];
        let row = graph.of(part);
        row.map(|(other, weight)| {
            i128::from(weight * i64::from(metric.hops(here, place[index(other)])))
        })
        .sum::<i128>()
    };
    (0..to_u32(place.len())).map(of).sum()
}

/// Swaps parts, or moves them to free cells, while that reduces weight times hops.
pub(super) fn improve(
    nearby: &NearbyEndpoints,
    metric: &Metric,
    graph: &PartGraph,
    place: &mut [u32],
) {
    let mut part_at = vec![FREE_CELL; nearby.cells()];
    for (part, &cell) in place.iter().enumerate() {
        part_at[index(cell)] = to_u32(part);
    }
    let mut work = 0;
    let mut candidates = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let mut swapped = false;
        for part in 0..to_u32(place.len()) {
            candidates.clear();
            cells_near_partners(graph, nearby, place, part, &mut candidates);
            let here = place[index(part)];
            let mut best = (0, FREE_CELL);
            for &there in &candidates {
                let other = part_at[index(there)];
                work += graph.degree(part);
                let mut saved = saving(graph, metric, place, part, there, other);
                if other != FREE_CELL {
                    work += graph.degree(other);
                    saved += saving(graph, metric, place, other, here, part);
                }
                if saved > best.0 {
                    best = (saved, there);
                }
            }
            if best.1 != FREE_CELL {
                let other = part_at[index(best.1)];
                place[index(part)] = best.1;
                part_at[index(best.1)] = part;
                part_at[index(here)] = other;
                if other != FREE_CELL {
                    place[index(other)] = here;
                }
                swapped = true;
            }
            if work > WORK_BUDGET {
                return;
            }
        }
        if !swapped {
            return;
        }
    }
}

/// Weight times hops saved by moving a part, except its distance to `partner`, which moves the
/// other way.
fn saving(
    graph: &PartGraph,
    metric: &Metric,
    place: &[u32],
    part: u32,
    there: u32,
    partner: u32,
) -> i64 {
    let here = place[index(part)];
    let mut saved = 0;
    for (other, words) in graph.of(part) {
        if other != partner {
            let cell = place[index(other)];
            let hops = [here, there].map(|at| i64::from(metric.hops(at, cell)));
            saved += words * (hops[0] - hops[1]);
        }
    }
    saved
}

fn cells_near_partners(
    graph: &PartGraph,
    nearby: &NearbyEndpoints,
    place: &[u32],
    part: u32,
    candidates: &mut Vec<u32>,
) {
    if graph.degree(part) <= MAX_PARTNERS {
        for (other, _) in graph.of(part) {
            candidates.extend_from_slice(nearby.of(place[index(other)]));
        }
    } else {
        let mut most: Vec<(std::cmp::Reverse<i64>, u32)> =
            graph.of(part).map(|(other, words)| (std::cmp::Reverse(words), other)).collect();
        most.select_nth_unstable(MAX_PARTNERS);
        for &(_, other) in &most[..MAX_PARTNERS] {
            candidates.extend_from_slice(nearby.of(place[index(other)]));
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|&cell| cell != place[index(part)]);
}

/// The endpoints nearest to each endpoint.
pub(super) struct NearbyEndpoints(Lists);

impl NearbyEndpoints {
    /// Searches around each live cell with an agent.
    pub(super) fn new(machine: &Machine, network: &Network) -> Self {
        let mut pairs = Vec::new();
        let mut bfs = BoundedBfs::new(network.cells);
        for centre in machine.endpoints() {
            let start = pairs.len();
            let mut expanded = 0;
            bfs.run(&network.next, centre.0, |cell, hops| {
                expanded += 1;
                if hops > 0 && machine.is_endpoint(CellId(cell)) {
                    pairs.push((centre.0, cell));
                }
                pairs.len() - start == NEARBY || expanded == BFS_LIMIT
            });
        }
        Self(Lists::new(network.cells, pairs.iter().copied()))
    }

    /// Cells of the machine, including dead cells and switches.
    pub(super) fn cells(&self) -> usize {
        index(self.0.rows())
    }

    /// The endpoints near a cell, the nearest first.
    pub(super) fn of(&self, cell: u32) -> &[u32] {
        self.0.of(cell)
    }
}
