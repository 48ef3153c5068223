//! A quick descent: swaps of parts on nearby cells, while they shorten weighted ways.
//!
//! For each part in turn the cells near its partners are tried: what would it save to go there,
//! the part that lives there (if any) coming here? The best swap that saves something is made.
//! A few rounds, and a limit on all work, keep it cheap.

use conset_ir::Machine;

use super::graph::PartGraph;
use super::metric::Metric;
use crate::network::{BoundedBfs, Network};

/// Rounds over all parts.
const ROUNDS: usize = 8;
/// Cells that count as near a cell.
const NEAR: usize = 8;
/// Cells looked at to find them.
const LOOK: usize = 256;
/// Partners of a part whose surroundings are tried, those with the most weight.
const PARTNERS: usize = 8;
/// Pairs of parts looked at in all rounds together.
const WORK: usize = 1 << 24;

/// Lives on a free cell.
pub(super) const NOBODY: u32 = u32::MAX;

/// Weight times distance.
pub(super) fn weighted_hops(graph: &PartGraph, metric: &Metric, place: &[u32]) -> i128 {
    let of = |part: u32| {
        let here = place[part as usize];
        let row = graph.of(part).iter();
        row.map(|&(other, weight)| i128::from(weight * metric.hops(here, place[other as usize])))
            .sum::<i128>()
    };
    (0..place.len() as u32).map(of).sum()
}

/// Swaps parts, or moves them to free cells, while that saves weight times hops.
pub(super) fn improve(near: &Near, metric: &Metric, graph: &PartGraph, place: &mut [u32]) {
    let mut lives = vec![NOBODY; near.cells()];
    for (part, &cell) in place.iter().enumerate() {
        lives[cell as usize] = part as u32;
    }
    let mut work = 0;
    let mut candidates = Vec::new();
    for _ in 0..ROUNDS {
        let mut swapped = false;
        for part in 0..place.len() as u32 {
            candidates.clear();
            near_partners(graph, near, place, part, &mut candidates);
            let here = place[part as usize];
            let mut best = (0, NOBODY);
            for &there in &candidates {
                let other = lives[there as usize];
                work += graph.of(part).len();
                let mut saved = saving(graph, metric, place, part, there, other);
                if other != NOBODY {
                    work += graph.of(other).len();
                    saved += saving(graph, metric, place, other, here, part);
                }
                if saved > best.0 {
                    best = (saved, there);
                }
            }
            if best.1 != NOBODY {
                let other = lives[best.1 as usize];
                place[part as usize] = best.1;
                lives[best.1 as usize] = part;
                lives[here as usize] = other;
                if other != NOBODY {
                    place[other as usize] = here;
                }
                swapped = true;
            }
            if work > WORK {
                return;
            }
        }
        if !swapped {
            return;
        }
    }
}

/// Weight times hops saved by moving a part, its distance to `partner` (who moves the other way) left out.
fn saving(
    graph: &PartGraph,
    metric: &Metric,
    place: &[u32],
    part: u32,
    there: u32,
    partner: u32,
) -> i64 {
    let here = place[part as usize];
    let mut saved = 0;
    for &(other, words) in graph.of(part) {
        if other != partner {
            let cell = place[other as usize];
            saved += words * (metric.hops(here, cell) - metric.hops(there, cell));
        }
    }
    saved
}

fn near_partners(
    graph: &PartGraph,
    near: &Near,
    place: &[u32],
    part: u32,
    candidates: &mut Vec<u32>,
) {
    let row = graph.of(part);
    if row.len() <= PARTNERS {
        for &(other, _) in row {
            candidates.extend_from_slice(near.of(place[other as usize]));
        }
    } else {
        let mut most: Vec<(std::cmp::Reverse<i64>, u32)> =
            row.iter().map(|&(other, words)| (std::cmp::Reverse(words), other)).collect();
        most.select_nth_unstable(PARTNERS);
        for &(_, other) in &most[..PARTNERS] {
            candidates.extend_from_slice(near.of(place[other as usize]));
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|&cell| cell != place[part as usize]);
}

/// The endpoints nearest to each endpoint.
pub(super) struct Near {
    first: Vec<u32>,
    cells: Vec<u32>,
}

impl Near {
    /// Looks around each live cell with an agent.
    pub(super) fn new(machine: &Machine, network: &Network) -> Self {
        let mut this = Self { first: vec![0], cells: Vec::new() };
        let mut ball = BoundedBfs::new(network.cells);
        for centre in machine.cells() {
            if machine.is_endpoint(centre) {
                let start = this.cells.len();
                let mut looked_at = 0;
                ball.grow(&network.next, centre.0, |cell, hops| {
                    looked_at += 1;
                    if hops > 0 && machine.is_endpoint(conset_ir::CellId(cell)) {
                        this.cells.push(cell);
                    }
                    this.cells.len() - start == NEAR || looked_at == LOOK
                });
            }
            this.first.push(this.cells.len() as u32);
        }
        this
    }

    /// Cells of the machine, dead ones and switches too.
    pub(super) fn cells(&self) -> usize {
        self.first.len() - 1
    }

    /// The endpoints near a cell.
    pub(super) fn of(&self, cell: u32) -> &[u32] {
        let cell = cell as usize;
        &self.cells[self.first[cell] as usize..self.first[cell + 1] as usize]
    }
}
