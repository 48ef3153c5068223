//! Local search under the whole cost by threshold accepting: swaps two parts, even if that costs a
//! little.
//!
//! A random part is proposed to move next to one of its partners, in exchange with the part on that
//! cell. The connections of both parts are booked again, which gives the cost at once. A swap is
//! accepted if it costs no more than a threshold, which falls to 0 (as in simulated annealing, but
//! without an exponential function, whose result may differ between machines). The change of
//! distances is cheap to compute and rejects most bad swaps before anything is booked.
//!
//! The number of proposals is in proportion to the parts, the number of updated resources is
//! limited, and the best placement seen is kept.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::cost::PlacementLoads;
use super::metric::Metric;
use super::swap_descent::{FREE_CELL, NearbyEndpoints};
use super::traffic::Traffic;
use conset_ir::convert::{index, to_f64, to_u32, to_u64};

/// Proposals for each part.
const PROPOSALS_PER_PART: usize = 512;
/// The number of times that the placement is compared with the best so far.
const CHECKPOINTS: usize = 32;
/// The initial threshold, in the cost of one hop of an average flow.
const INITIAL_THRESHOLD: f64 = 1.5;
/// A swap whose distances cost more than this many thresholds is rejected before loads are updated.
const DETOUR_FACTOR: f64 = 4.0;

/// Improves a placement while at most `budget` resources are updated. Never makes it worse.
pub(super) fn improve(
    nearby: &NearbyEndpoints,
    metric: &Metric,
    traffic: &Traffic,
    loads: &mut PlacementLoads<'_>,
    place: &mut [u32],
    budget: u64,
    rng: &mut ChaCha8Rng,
) {
    loads.load(traffic, place);
    let limit = loads.work.saturating_add(budget);
    let mut search = SwapSearch::new(nearby, metric, traffic, loads, place);
    if traffic.flows.is_empty() || traffic.parts() < 2 {
        return;
    }
    let proposals = traffic.parts().saturating_mul(PROPOSALS_PER_PART);
    let first = search.mean_hop() * INITIAL_THRESHOLD;
    let mut best = (search.loads.clocks(), search.place.to_vec());
    'checkpoints: for checkpoint in 0..CHECKPOINTS {
        // The last quarter accepts improvements only.
        let left = 1.0 - to_f64(checkpoint) / to_f64(CHECKPOINTS * 3 / 4);
        let threshold = first * left.max(0.0);
        for step in 0..proposals.div_ceil(CHECKPOINTS) {
            search.propose(threshold, rng);
            // Checkpoints are also reached at fixed shares of the budget, whatever a proposal costs.
            if step.is_multiple_of(64)
                && search.loads.work > budget_at(limit, budget, checkpoint + 1)
            {
                if checkpoint + 1 == CHECKPOINTS {
                    break 'checkpoints;
                }
                break;
            }
        }
        search.loads.recompute_sums();
        let clocks = search.loads.clocks();
        if clocks < best.0 {
            best.0 = clocks;
            best.1.copy_from_slice(search.place);
        }
    }
    place.copy_from_slice(&best.1);
}

/// The work that is allowed by the end of a checkpoint.
fn budget_at(limit: u64, budget: u64, checkpoints: usize) -> u64 {
    limit - budget / to_u64(CHECKPOINTS) * to_u64(CHECKPOINTS - checkpoints)
}

struct SwapSearch<'a, 'b> {
    nearby: &'a NearbyEndpoints,
    metric: &'a Metric,
    traffic: &'a Traffic,
    loads: &'a mut PlacementLoads<'b>,
    place: &'a mut [u32],
    part_at: Vec<u32>,
    per_hop: (f64, f64),
}

impl<'a, 'b> SwapSearch<'a, 'b> {
    fn new(
        nearby: &'a NearbyEndpoints,
        metric: &'a Metric,
        traffic: &'a Traffic,
        loads: &'a mut PlacementLoads<'b>,
        place: &'a mut [u32],
    ) -> Self {
        let mut part_at = vec![FREE_CELL; nearby.cells()];
        for (part, &cell) in place.iter().enumerate() {
            part_at[index(cell)] = to_u32(part);
        }
        let per_hop = loads.constants.per_hop(loads.slack);
        Self { nearby, metric, traffic, loads, place, part_at, per_hop }
    }

    /// The cost of a hop of an average flow if nothing binds.
    fn mean_hop(&self) -> f64 {
        let flows = &self.traffic.flows;
        let sum: f64 = flows.iter().map(|flow| self.hop_cost(flow.count, flow.words)).sum();
        sum / to_f64(flows.len().max(1))
    }

    fn hop_cost(&self, count: u32, words: u64) -> f64 {
        f64::from(count) * self.per_hop.0 + to_f64(words) * self.per_hop.1
    }

    fn propose(&mut self, threshold: f64, rng: &mut ChaCha8Rng) {
        let part = rng.random_range(0..to_u32(self.place.len()));
        let flows = self.traffic.of(part);
        if flows.is_empty() {
            return;
        }
        let flow = &self.traffic.flows[index(flows[rng.random_range(0..flows.len())])];
        let partner = if flow.source == part { flow.target } else { flow.source };
        let around = self.nearby.of(self.place[index(partner)]);
        if around.is_empty() {
            return;
        }
        let there = around[rng.random_range(0..around.len())];
        let here = self.place[index(part)];
        if there == here {
            return;
        }
        let other = self.part_at[index(there)];
        let mut cost_increase = self.cost_increase(part, there, other);
        if other != FREE_CELL {
            cost_increase += self.cost_increase(other, here, part);
        }
        if cost_increase > threshold * DETOUR_FACTOR {
            return;
        }
        let before = (self.loads.clocks(), self.loads.sums);
        self.swap(part, there, other);
        if self.loads.clocks() > before.0 + threshold {
            self.swap(part, here, other);
            self.loads.sums = before.1;
        }
    }

    /// The increase of a part's distance cost if it moves there, except the distance to `partner`,
    /// which takes its place.
    fn cost_increase(&mut self, part: u32, there: u32, partner: u32) -> f64 {
        let here = self.place[index(part)];
        let mut cost_increase = 0.0;
        let flows = self.traffic.of(part);
        for &id in flows {
            let flow = &self.traffic.flows[index(id)];
            let other = if flow.source == part { flow.target } else { flow.source };
            if other != partner {
                let cell = self.place[index(other)];
                let hops = [there, here].map(|at| f64::from(self.metric.hops(at, cell)));
                cost_increase += (hops[0] - hops[1]) * self.hop_cost(flow.count, flow.words);
            }
        }
        self.loads.work += to_u64(flows.len());
        cost_increase
    }

    /// Moves a part; `other`, if any, takes its place.
    fn swap(&mut self, part: u32, there: u32, other: u32) {
        let here = self.place[index(part)];
        self.book(part, other, false);
        self.place[index(part)] = there;
        self.part_at[index(there)] = part;
        self.part_at[index(here)] = other;
        if other != FREE_CELL {
            self.place[index(other)] = here;
        }
        self.book(part, other, true);
    }

    /// Adds or removes all flows of two parts, those between them once.
    fn book(&mut self, part: u32, other: u32, add: bool) {
        for &id in self.traffic.of(part) {
            self.loads.book(&self.traffic.flows[index(id)], self.place, add);
        }
        self.book_own(part, add);
        if other == FREE_CELL {
            return;
        }
        for &id in self.traffic.of(other) {
            let flow = &self.traffic.flows[index(id)];
            if flow.source != part && flow.target != part {
                self.loads.book(flow, self.place, add);
            }
        }
        self.book_own(other, add);
    }

    fn book_own(&mut self, part: u32, add: bool) {
        let own = self.traffic.own[index(part)];
        if own > 0 {
            self.loads.book_own(self.place[index(part)], own, add);
        }
    }
}
