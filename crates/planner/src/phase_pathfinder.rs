//! Negotiated congestion over the channels of cells, for plans of few phases.
//!
//! For sets that need several phases of many short streams, such as halos: context switches take
//! most of the time, and channels are scarce. Each connection gets a phase and a route. Routes may
//! detour around full cells. The number of phases starts at the bound and grows when the
//! negotiation stalls (`negotiation`).
//!
//! A phase lasts as long as its busiest agent or link. Once channels suffice, agents and links are
//! negotiated in the same way: each phase has a limit for them, which is lowered repeatedly. At the
//! end the streams of each phase get start times (`timetable`).
//!
//! Connections are not cut. Sets with an order or with required bandwidths or latencies are not
//! supported.

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
    /// The present cost factor in the first pass: an overuse adds this factor of a resource's cost.
    pub present_first: u32,
    /// The maximum present cost factor.
    pub present_most: u32,
    /// The growth of the present cost factor per pass.
    pub present_growth: u32,
    /// The history cost that each overuse of a resource adds per pass.
    pub history: u32,
    /// The maximum history cost of a resource.
    pub history_most: u32,
    /// The share of history costs that is kept when limits change.
    pub history_kept: u32,
    /// The cost of a port for each stream of average length in the phase.
    pub even: u32,
    /// In a pass, one in `shaken` connections without a conflict is moved as well.
    pub shaken: u32,
    /// The number of phases in which a route is searched when a connection is placed.
    pub tries: u32,
    /// The maximum number of hops beyond the shortest route.
    pub detour: u16,
    /// The number of passes without less overuse after which the negotiation has stalled.
    pub patience: u32,
    /// The number of restarts of present costs without less overuse after which the search gives up
    /// a number of phases.
    pub cycles: u32,
    /// The number of passes after which a negotiation of all phases as one gives up a number of phases.
    pub whole_passes: u32,
    /// The initial step by which limits are lowered.
    pub step: u32,
    /// The number of timetables tried for each phase, each with different noise.
    pub rounds: u32,
    /// The same for the best division at the end.
    pub last_rounds: u32,
    /// A set is declined if `switches` times the context switches of its bound take less than the
    /// bound of time.
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
            whole_passes: 16,
            step: 8,
            rounds: 12,
            last_rounds: 150,
            switches: 3,
        }
    }
}

/// The default work budget for a problem, in cells expanded by route searches.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (to_u64(problem.set.len()) * PER_CONNECTION).min(BUDGET)
}

const PER_CONNECTION: u64 = 1 << 13;
const BUDGET: u64 = 1 << 26;

/// The maximum number of resources of all phases.
const RESOURCES: u64 = 1 << 25;

/// Plans a set with as few phases as possible.
///
/// Returns `None` if the set is empty or has an order or requirements, if few phases gain little,
/// or if the budget was used up before a plan was found.
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
        let cycles = self.config.cycles;
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
            // Where routes have to go is cheaper to find for all phases as one. If even that takes
            // long, there are hardly enough phases.
            let mut whole = trial(1, channel_capacity * to_u64(phases));
            let mut trial = trial(phases, channel_capacity);
            let mut outcome = RoutingOutcome::Settled;
            if phases > 1 {
                outcome = whole.settle((cycles, self.config.whole_passes), self.left().div_ceil(8));
                self.count(&mut whole);
                trial.adopt_prices(&whole);
            }
            if outcome == RoutingOutcome::Settled {
                outcome = trial.settle((cycles, u32::MAX), self.left().div_ceil(2));
                self.count(&mut trial);
            }
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
            let outcome = trial.settle((1, u32::MAX), self.left());
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
