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

use crate::plan::{Plan, Stream};
use crate::problem::Problem;
use negotiation::{Negotiation, Outcome};
use units::Units;

/// The weights of the negotiation. Costs are in 64ths of a hop.
#[derive(Clone, Debug)]
pub struct Config {
    /// What an overuse adds to a resource's cost in the first pass, in 64ths of that cost.
    pub present_first: u32,
    /// The most it becomes.
    pub present_most: u32,
    /// How much it grows a pass, in 64ths of itself.
    pub present_growth: u32,
    /// What each pass in which a resource is overused adds to its cost for good.
    pub history: u32,
    /// A port's cost, as far as conflicts are concerned.
    pub port: u32,
    /// One unit in so many is moved although it is in no conflict.
    pub shaken: u32,
    /// Passes without fewer conflicts after which a slot or a phase is added.
    pub patience: u32,
    /// Slots that the busiest resource should fill at least: shorter sets are cut into units.
    pub grain: u32,
    /// The most units that a connection is cut into for that.
    pub pieces: u32,
    pub mask: u32,
    /// Slots in which a route is searched for each time a unit is placed.
    pub tries: u32,
    /// Hops beyond the shortest that a route may take.
    pub detour: u32,
    /// The most that a resource's history becomes.
    pub history_most: u32,
    pub decay: u32,
    pub relax: u32,
    /// Passes at most.
    pub passes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            present_first: 20,
            present_most: 1000,
            present_growth: 1,
            history: 20,
            port: 128,
            shaken: 20,
            patience: 12,
            grain: 12,
            pieces: 4,
            mask: 0b10110,
            tries: 16,
            detour: 4,
            history_most: 1 << 10,
            decay: 48,
            relax: 64,
            passes: 2000,
        }
    }
}

/// The usual budget of a set, in cells that searches for routes expand: in proportion to the
/// connections, some seconds at most.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (problem.set.len() as u64 * PER_CONNECTION).clamp(BUDGET / 8, BUDGET)
}

const PER_CONNECTION: u64 = 1 << 16;
const BUDGET: u64 = 1 << 25;

/// What a search found, and what it took.
pub struct Found {
    /// The best plan.
    pub plan: Plan,
    /// Cells that searches for routes expanded.
    pub work: u64,
    /// Passes over the units.
    pub passes: u32,
}

/// Plans a set; `None` where the set is empty or has an order or requirements, or the budget of
/// expanded cells was used up before there was a plan.
pub fn plan(problem: &Problem<'_>, config: &Config, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    let asks = |c: &conset_ir::Connection| c.min_bandwidth.is_some() || c.max_latency.is_some();
    if set.is_empty() || !set.order().is_empty() || set.connections().iter().any(asks) {
        return None;
    }
    let mut found = Found { plan: Plan::default(), work: 0, passes: 0 };
    found.plan.clocks = u64::MAX;
    let pieces = (1..=config.pieces).filter(|p| config.mask >> p & 1 == 1);
    let units: Vec<Units> = pieces.map(|pieces| Units::new(problem, pieces)).collect();
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for (row, units) in units.iter().enumerate() {
        let mut negotiation = Negotiation::new(problem, config, units, problem.bounds.phases.max(1), seed);
        let share = (budget - found.work) / (2 * (units.count() as u64).max(1)) * units.count() as u64;
        let outcome = negotiation.settle(share);
        found.take(problem, &negotiation, outcome);
        if std::env::var_os("DBG").is_some() { eprintln!("row {row} phases {} slots {} {outcome:?} clocks {} pass {} work {}", negotiation.phases(), negotiation.slots(), found.plan.clocks, negotiation.passes, negotiation.work); }
        if outcome == Outcome::Settled {
            attempts.push(Attempt { negotiation, units, patience: config.patience });
        }
    }
    // Slots are taken away one at a time, from the attempt with the most to gain in patience.
    while found.work < budget {
        let clocks = found.plan.clocks;
        attempts.retain(|attempt| attempt.floor(problem) < clocks && attempt.may_shrink());
        let Some(attempt) = attempts.iter_mut().min_by_key(|a| (a.patience, a.floor(problem))) else { break };
        let mut trial = attempt.negotiation.clone();
        (trial.work, trial.passes) = (0, 0);
        let outcome = trial.shrink(attempt.patience, budget - found.work);
        found.take(problem, &trial, outcome);
        if std::env::var_os("DBG").is_some() { eprintln!("shrink pieces {} phases {} slots {} {outcome:?} patience {} clocks {} pass {} work {}", attempt.units.count(), trial.phases(), trial.slots(), attempt.patience, found.plan.clocks, found.passes, found.work); }
        if outcome == Outcome::Settled {
            attempt.negotiation = trial;
        } else {
            attempt.patience *= 2;
            attempt.negotiation.reseed();
        }
    }
    (found.plan.clocks < u64::MAX).then_some(found)
}

struct Attempt<'a> {
    negotiation: Negotiation<'a>,
    units: &'a Units,
    patience: u32,
}

impl Attempt<'_> {
    /// What a plan with a slot fewer would take.
    fn floor(&self, problem: &Problem<'_>) -> u64 {
        self.negotiation.phases() as u64 * problem.switch
            + (self.negotiation.slots() as u64 - 1) * self.units.clocks(problem)
    }

    fn may_shrink(&self) -> bool {
        self.negotiation.slots() > self.units.fewest_slots as usize && self.patience < 4096
    }
}

impl Found {
    fn take(&mut self, problem: &Problem<'_>, negotiation: &Negotiation<'_>, outcome: Outcome) {
        self.work += negotiation.work;
        self.passes += negotiation.passes;
        if outcome == Outcome::Settled {
            let mut plan = negotiation.plan();
            plan.compact(problem);
            if plan.clocks < self.plan.clocks {
                self.plan = plan;
            }
        }
    }
}

/// Streams of a phase in the order of their slots.
fn ordered(mut streams: Vec<(u32, Stream)>) -> Vec<Stream> {
    streams.sort_by_key(|(slot, stream)| (*slot, std::cmp::Reverse(stream.words), stream.connection));
    streams.into_iter().map(|(_, stream)| stream).collect()
}
