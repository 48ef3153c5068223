//! Few phases: negotiated congestion over the channels of cells.
//!
//! For sets that need several phases of many short streams, such as halos, in which context
//! switches take the most time and channels are what is scarce. Each connection gets a phase and
//! a route; routes may detour round cells that are full. The number of phases starts at the bound
//! and grows where negotiation stalls (`negotiation`).
//!
//! A phase lasts as long as its busiest agent or link, so once channels fit, agents and links are
//! negotiated in the same way: each phase has a limit for them, which is lowered again and again.
//! In the end the streams of each phase are given starts, phase by phase (`timetable`).
//!
//! Connections are not cut. Sets with an order or with requirements of bandwidth or latency are
//! not planned here.

mod negotiation;
mod route;
mod timetable;

use conset_ir::convert::{index, to_u64};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use negotiation::{PhaseNegotiation, RoutingOutcome};
use timetable::PhaseTimetable;

/// The weights of the negotiation. Costs are in 64ths of the cost of a hop over a free link, and
/// factors in 64ths.
#[derive(Clone, Debug)]
pub struct PhaseConfig {
    /// What an overuse adds to a resource's cost in the first pass, as a factor of that cost.
    pub present_first: u32,
    /// The greatest such factor.
    pub present_most: u32,
    /// How much the factor grows in a pass.
    pub present_growth: u32,
    /// What each pass in which a resource is overused adds to its cost, for each overuse.
    pub history: u32,
    /// The most that these additions amount to.
    pub history_most: u32,
    /// What is kept of these additions when limits change.
    pub history_kept: u32,
    /// What a port costs for each stream of average length in the phase.
    pub even: u32,
    /// One connection in so many is moved in a pass although it is in no conflict.
    pub shaken: u32,
    /// Phases in which a route is searched for each time a connection is placed.
    pub tries: u32,
    /// Hops beyond the shortest that a route may take.
    pub detour: u16,
    /// Passes without less overuse after which a negotiation has stalled.
    pub patience: u32,
    /// How often present costs begin anew, without less overuse in the end, before a number of
    /// phases is given up.
    pub cycles: u32,
    /// By how much limits are lowered at first.
    pub step: u32,
    /// Timetables that are tried for each phase, with other noise.
    pub rounds: u32,
    /// The same for the best division in the end.
    pub last_rounds: u32,
    /// A set is declined if so many times the switches of its bound take less than the bound of
    /// time.
    pub switches: u64,
}

impl Default for PhaseConfig {
    fn default() -> Self {
        Self {
            present_first: 20,
            present_most: 1000,
            present_growth: 1,
            history: 20,
            history_most: 1 << 12,
            history_kept: 48,
            even: 8,
            shaken: 20,
            tries: 2,
            detour: 20,
            patience: 24,
            cycles: 24,
            step: 8,
            rounds: 12,
            last_rounds: 150,
            switches: 3,
        }
    }
}

/// The usual budget of a set, in cells that searches for routes expand.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (to_u64(problem.set.len()) * PER_CONNECTION).min(BUDGET)
}

const PER_CONNECTION: u64 = 1 << 13;
const BUDGET: u64 = 1 << 26;

/// Resources of all phases that a negotiation may have.
const RESOURCES: u64 = 1 << 25;

/// Plans a set with as few phases as are found; `None` where the set is empty or has an order or
/// requirements, where few phases gain little, or where the budget was used up before there was a
/// plan.
pub fn plan(problem: &Problem<'_>, config: &PhaseConfig, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    if !problem.is_plain() {
        return None;
    }
    // Phases of the bound that are filled nearly are found late, and where switches take less than
    // a part of the time a longer phase is no less good.
    let switches = u64::from(problem.bounds.phases) * problem.switch;
    if switches.saturating_mul(config.switches) < problem.bounds.clocks {
        return None;
    }
    let clocks: Vec<[u64; 2]> = set
        .connections()
        .iter()
        .enumerate()
        .map(|(x, c)| [problem.clocks(x).of(c.words), u64::from(c.words) * problem.word_clocks])
        .collect();
    let mut search = PhaseSearch { problem, config, budget, seed, best: None, work: 0 };
    let settled = search.fewest(&clocks)?;
    search.even(settled);
    let PhaseSearch { best, work, .. } = search;
    best.map(|plan| Found { plan, work })
}

struct PhaseSearch<'a> {
    problem: &'a Problem<'a>,
    config: &'a PhaseConfig,
    budget: u64,
    seed: u64,
    best: Option<Plan>,
    work: u64,
}

impl<'a> PhaseSearch<'a> {
    /// Negotiates channels alone, from the bound upwards: the fewest phases that are found.
    fn fewest(&mut self, clocks: &'a [[u64; 2]]) -> Option<PhaseNegotiation<'a>> {
        let each = self.problem.cell_count() + self.problem.port_count + self.problem.edge_count();
        let mut phases = index(self.problem.bounds.phases.max(1));
        loop {
            if self.left() == 0 || to_u64(phases * each) > RESOURCES {
                return None;
            }
            let trial = |phases: usize, channel_capacity: u64| {
                PhaseNegotiation::new(
                    self.problem,
                    self.config,
                    clocks,
                    phases,
                    channel_capacity,
                    self.seed,
                )
            };
            let channel_capacity = u64::from(self.problem.channels);
            // Where routes have to go is cheaper to find for all phases as one.
            let mut whole = trial(1, channel_capacity * to_u64(phases));
            let mut trial = trial(phases, channel_capacity);
            if phases > 1 {
                whole.settle(self.config.cycles, self.left().div_ceil(4));
                self.count(&mut whole);
                trial.adopt_prices(&whole);
            }
            let outcome = trial.settle(self.config.cycles, self.left().div_ceil(2));
            self.count(&mut trial);
            if outcome == RoutingOutcome::Settled {
                return Some(trial);
            }
            phases += 1 + phases / 32;
        }
    }

    /// Lowers the limits of agents and links for as long as that goes and the budget lasts. Then
    /// takes more time for the timetable of the best.
    fn even(&mut self, mut settled: PhaseNegotiation<'a>) {
        let rounds = self.config.rounds;
        self.keep(&settled, rounds);
        let mut best = settled.clone();
        let mut step = u64::from(self.config.step);
        while self.left() > 0 && step > 0 {
            let loads = settled.loads();
            let limits: Vec<u64> = loads.iter().map(|load| load - load * step / 64).collect();
            if limits == loads {
                break;
            }
            let mut trial = settled.clone();
            trial.limit(limits);
            let outcome = trial.settle(1, self.left());
            self.count(&mut trial);
            if outcome == RoutingOutcome::Settled {
                settled = trial;
                if self.keep(&settled, rounds) {
                    best = settled.clone();
                }
            } else {
                step /= 2;
                settled.reseed();
            }
        }
        self.keep(&best, self.config.last_rounds);
    }

    fn left(&self) -> u64 {
        self.budget.saturating_sub(self.work)
    }

    fn count(&mut self, negotiation: &mut PhaseNegotiation<'_>) {
        self.work += std::mem::take(&mut negotiation.work);
    }

    /// Gives starts to what has settled; whether that is the best plan, which is kept.
    fn keep(&mut self, settled: &PhaseNegotiation<'_>, rounds: u32) -> bool {
        let mut phases: Vec<Vec<Stream>> = Vec::new();
        for ((x, connection), (phase, cells)) in self.problem.set.iter().zip(settled.places()) {
            phases.resize_with(phases.len().max(index(phase) + 1), Vec::new);
            phases[index(phase)].push(Stream {
                connection: x.0,
                words: connection.words,
                start: 0,
                cells: cells.to_vec(),
            });
        }
        phases.retain(|phase| !phase.is_empty());
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut clocks = 0;
        for streams in &mut phases {
            let mut phase = PhaseTimetable::new(self.problem, streams);
            let (starts, makespan) = phase.solve(rounds, &mut rng);
            streams.iter_mut().zip(starts).for_each(|(stream, start)| stream.start = start);
            clocks += self.problem.switch + makespan;
            self.work += phase.work;
        }
        let is_best = self.best.as_ref().is_none_or(|best| clocks < best.clocks);
        if is_best {
            self.best = Some(Plan { phases, clocks });
        }
        is_best
    }
}
