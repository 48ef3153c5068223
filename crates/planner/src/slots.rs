//! Slots: negotiated congestion over time.
//!
//! Time is divided into slots of one length, and slots are dealt to phases. Connections are cut
//! into *units* of at most a slot's words. A resource is a link in a slot, a port of an agent in
//! a slot, or the channels of a cell in a phase. Each unit is given a slot and a route; units in
//! conflict are routed again and again, while what is overused becomes dearer (PathFinder:
//! McMurchie and Ebeling, FPGA 1995), until nothing is.
//!
//! The number of slots and of phases starts at the bound, and grows where negotiation stalls.
//! Units of a connection on one route in neighbouring slots become one stream, which takes its
//! channels once. In the end streams are moved to their earliest starts, which frees what slots
//! of uneven units have left.
//!
//! Sets with an order or with requirements of bandwidth or latency are not planned here.

mod negotiation;
mod units;

use std::cmp::Reverse;

use conset_ir::Connection;

use crate::plan::{Plan, Stream};
use crate::problem::Problem;
use negotiation::{Negotiation, Outcome, RESOURCES};
use units::Units;

/// The weights of the negotiation. Costs are in 64ths of the cost of a hop over a free link, and
/// factors in 64ths.
#[derive(Clone, Debug)]
pub struct Config {
    /// Numbers of units that the longest connection is cut into: one attempt for each. Where
    /// words are uneven there is one more for each, with the mean instead of the longest.
    pub pieces: Vec<u32>,
    /// What an overuse adds to a resource's cost in the first pass, as a factor of that cost.
    pub present_first: u32,
    /// The greatest such factor.
    pub present_most: u32,
    /// How much the factor grows in a pass.
    pub present_growth: u32,
    /// What each pass in which a resource is overused adds to its cost.
    pub history: u32,
    /// The most that these additions amount to.
    pub history_most: u32,
    /// What is kept of these additions when slots are added or taken away.
    pub history_kept: u32,
    /// The cost of a port that is free, as far as factors apply to it.
    pub port: u32,
    /// One unit in so many is moved in a pass although it is in no conflict.
    pub shaken: u32,
    /// Slots in which a route is searched for each time a unit is placed.
    pub tries: u32,
    /// Hops beyond the shortest that a route may take.
    pub detour: u16,
    /// Passes without fewer conflicts after which a negotiation has stalled, at first.
    pub patience: u32,
    /// The same for the last attempt to do with a slot fewer.
    pub patience_most: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pieces: vec![1, 2, 4],
            present_first: 20,
            present_most: 1000,
            present_growth: 1,
            history: 20,
            history_most: 1 << 10,
            history_kept: 48,
            port: 128,
            shaken: 20,
            tries: 16,
            detour: 4,
            patience: 12,
            patience_most: 1 << 12,
        }
    }
}

/// The usual budget of a set, in cells that searches for routes expand: in proportion to the
/// connections, some seconds at most.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (problem.set.len() as u64 * PER_CONNECTION).clamp(BUDGET / 16, BUDGET)
}

/// Hops of the farthest connection of a set that is planned.
const FARTHEST: u16 = 1 << 12;

const PER_CONNECTION: u64 = 1 << 16;
const BUDGET: u64 = 1 << 26;

/// What a search found, and what it took.
pub struct Found {
    /// The best plan.
    pub plan: Plan,
    /// Cells that searches for routes expanded, and what else took as long.
    pub work: u64,
    /// Passes over the units.
    pub passes: u32,
}

/// Plans a set; `None` where the set is empty or has an order or requirements, where routes are
/// very long or slots very many, or where the budget was used up before there was a plan.
pub fn plan(problem: &Problem<'_>, config: &Config, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    let asks = |c: &Connection| c.min_bandwidth.is_some() || c.max_latency.is_some();
    if set.is_empty() || !set.order().is_empty() || set.connections().iter().any(asks) {
        return None;
    }
    if (0..set.len()).any(|x| problem.hops(x) > FARTHEST) {
        return None;
    }
    let mut units: Vec<Units> = Vec::new();
    for length in units::lengths(problem, &config.pieces) {
        let cut = Units::of_length(problem, length);
        if units.iter().all(|units| units.count() != cut.count()) {
            units.push(cut);
        }
    }
    let mut search = Search { problem, config, budget, best: None, work: 0, passes: 0 };
    let mut attempts = Vec::new();
    for units in &units {
        attempts.extend(search.first(units, seed));
    }
    search.tighten(attempts);
    let Search { best, work, passes, .. } = search;
    best.map(|plan| Found { plan, work, passes })
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    budget: u64,
    best: Option<Plan>,
    work: u64,
    passes: u32,
}

/// A negotiation that has settled.
struct Attempt<'a> {
    settled: Negotiation<'a>,
    units: &'a Units,
    /// Passes without progress after which the next one with a slot fewer is given up.
    patience: u32,
}

impl<'a> Search<'a> {
    /// Negotiates from the bound upwards. At most half of what is left of the budget is for that.
    fn first(&mut self, units: &'a Units, seed: u64) -> Option<Attempt<'a>> {
        if self.best.as_ref().is_some_and(|best| best.clocks <= self.floor(units)) {
            return None;
        }
        let phases = self.problem.bounds.phases.max(1);
        let slots = u64::from(units.fewest_slots.max(phases));
        let each = (self.problem.edge_count() + self.problem.port_count) as u64;
        let cells = u64::from(phases) * self.problem.cell_count() as u64;
        if slots * each + cells > RESOURCES {
            return None;
        }
        let mut negotiation = Negotiation::new(self.problem, self.config, units, phases, seed);
        let outcome = negotiation.settle(self.left().div_ceil(2));
        self.take(&mut negotiation, outcome);
        let settled = (outcome == Outcome::Settled).then_some(negotiation)?;
        Some(Attempt { settled, units, patience: self.config.patience })
    }

    /// Clocks that no plan of these units is below.
    fn floor(&self, units: &Units) -> u64 {
        u64::from(self.problem.bounds.phases) * self.problem.switch
            + u64::from(units.fewest_slots) * units.clocks(self.problem)
    }

    /// Takes slots away, one at a time, for as long as that may give a better plan and the budget
    /// lasts: from the attempt that has been given up least often, of these from the one that
    /// would be the shortest.
    fn tighten(&mut self, mut attempts: Vec<Attempt<'a>>) {
        while self.left() > 0 {
            let best = self.best.as_ref().map_or(u64::MAX, |best| best.clocks);
            let problem = self.problem;
            attempts.retain(|attempt| {
                attempt.patience <= self.config.patience_most
                    && attempt.settled.slots() > attempt.units.fewest_slots as usize
                    && attempt.next_clocks(problem) < best
            });
            let next = attempts.iter_mut().min_by_key(|a| (a.patience, a.next_clocks(problem)));
            let Some(attempt) = next else { break };
            let mut trial = attempt.settled.clone();
            let outcome = trial.shrink(attempt.patience, self.left());
            self.take(&mut trial, outcome);
            if outcome == Outcome::Settled {
                attempt.settled = trial;
            } else {
                attempt.patience *= 2;
                attempt.settled.reseed();
            }
        }
    }

    fn left(&self) -> u64 {
        self.budget.saturating_sub(self.work)
    }

    /// Counts what a negotiation took, and keeps its plan if that is the best.
    fn take(&mut self, negotiation: &mut Negotiation<'_>, outcome: Outcome) {
        self.work += std::mem::take(&mut negotiation.work);
        self.passes += std::mem::take(&mut negotiation.passes);
        if outcome != Outcome::Settled {
            return;
        }
        let mut plan = negotiation.plan();
        plan.compact(self.problem);
        if self.best.as_ref().is_none_or(|best| plan.clocks < best.clocks) {
            self.best = Some(plan);
        }
    }
}

impl Attempt<'_> {
    /// What a plan with a slot fewer takes at most.
    fn next_clocks(&self, problem: &Problem<'_>) -> u64 {
        self.settled.phases() as u64 * problem.switch
            + (self.settled.slots() as u64 - 1) * self.units.clocks(problem)
    }
}

/// Streams of a phase in the order of their slots.
fn ordered(mut streams: Vec<(u32, Stream)>) -> Vec<Stream> {
    streams.sort_by_key(|(slot, stream)| (*slot, Reverse(stream.words), stream.connection));
    streams.into_iter().map(|(_, stream)| stream).collect()
}
