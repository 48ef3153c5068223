//! Negotiated congestion over channels, agents and links, for plans of few phases.
//!
//! Each connection gets a phase and a route. Routes may detour around full cells. The number of phases
//! starts at the bound and grows when the negotiation stalls (`negotiation`).
//!
//! A phase lasts as long as its busiest agent or link. Once channels suffice, agents and links are
//! negotiated in the same way: each phase has a limit for them, which is lowered repeatedly, first in all
//! phases and then in one after the other. There are two kinds of plans:
//!
//! * For sets that need several phases of many short streams, such as halos, context switches take most of
//!   the time. The streams of each phase get start times (`timetable`).
//! * The streams of a phase share links. If no agent has two streams in a phase, a phase then takes little
//!   longer than its busiest link, however long streams are, so such plans are made if agents have few
//!   connections for the number of phases. Streams of one agent wait for each other, and each is delayed by
//!   those that it meets, so phases with more of them take far longer than their links.
//!
//! Connections are not cut: halves of a connection are two streams of an agent. Sets with an order or with
//! required bandwidths or latencies are not supported.

mod negotiation;
mod route;
mod timetable;

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u64};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::plan::{Plan, Stream};
use crate::problem::Problem;
use crate::work::Limits;
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
    /// The cost of a port for each stream of average length in the phase: while channels alone are
    /// negotiated, and while limits are lowered. Streams of an agent in the same phase wait for each other,
    /// which costs more than links tell.
    pub even: [u32; 2],
    /// In a pass, one in `shaken` connections without a conflict is moved as well.
    pub shaken: u32,
    /// The number of phases in which a route is searched when a connection is placed.
    pub tries: u32,
    /// The maximum number of hops beyond the shortest route.
    pub detour: u16,
    /// The number of passes without less overuse after which the negotiation has stalled: of channels alone,
    /// and of lower limits.
    pub patience: [u32; 2],
    /// The number of restarts of present costs without less overuse after which the search gives up
    /// a number of phases.
    pub cycles: u32,
    /// The number of passes after which a negotiation of all phases as one gives up a number of phases.
    pub whole_passes: u32,
    /// The initial step by which limits are lowered.
    pub step: u32,
    /// The number of timetables tried for each phase, each with different noise.
    pub rounds: u32,
    /// The same for the best division at the end, at most.
    pub last_rounds: u32,
    /// Streams get no starts if `switches` times the context switches of the bound take less than the bound
    /// of time.
    pub switches: u64,
    /// The limits of agents and links are not lowered if the plan takes longer than the best one so far
    /// by more than this fraction of it: one in `hopeless`.
    pub hopeless: u64,
    /// The number of connections up to which they are lowered anyway: it takes little time, and gains more
    /// in the few phases of few connections.
    pub improved: usize,
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
            even: [8, 512],
            shaken: 20,
            tries: 2,
            detour: 20,
            patience: [24, 60],
            cycles: 24,
            whole_passes: 256,
            step: 8,
            rounds: 12,
            last_rounds: 150,
            switches: 3,
            hopeless: 14,
            improved: 1 << 10,
        }
    }
}

/// The default work budget for a problem, in cells expanded by route searches: in proportion to the
/// connections, and a few seconds at most. Small sets get more for each connection.
pub fn budget(problem: &Problem<'_>) -> u64 {
    let connections = to_u64(problem.set.len());
    let small = (connections * PER_CONNECTION_OF_SMALL).min(SMALL_BUDGET);
    (connections * PER_CONNECTION).max(small).min(BUDGET)
}

const PER_CONNECTION: u64 = 3 << 11;
const PER_CONNECTION_OF_SMALL: u64 = 1 << 14;
const SMALL_BUDGET: u64 = 1 << 24;
const BUDGET: u64 = 3 << 24;

/// The timetables of a plan take at most this part of the budget, one in so many, and those at the end
/// this part.
const TIMETABLES: u64 = 32;
const LAST_TIMETABLES: u64 = 4;

/// Connections up to which long streams get a phase for each stream of an agent. Slots and rounds do better
/// for more.
const SINGLE: usize = 3 << 10;

/// Limits are lowered from loads of at most one in so many above the mean of all phases.
const LONGER: u64 = 8;

/// The maximum number of resources of all phases.
const RESOURCES: u64 = 1 << 25;

/// The plans of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasePlans {
    /// The best plan whose streams have starts at which they do not meet; `None` if context switches
    /// take so little of the time that a longer phase is no loss.
    pub with_starts: Option<Plan>,
    /// Plans whose streams share links, without starts; the one with the least loads first. Their clocks are
    /// those of the busiest agents and links, which is less than such phases take.
    pub shared: Vec<Plan>,
    /// The work done, in cells expanded.
    pub work: u64,
}

/// Plans a set with as few phases as possible, or with a stream of each agent in each.
///
/// Returns `None` if the set is empty or has an order or requirements, if neither few phases gain much nor
/// agents have few connections, or if the budget was used up before a plan was found.
pub fn plans(
    problem: &Problem<'_>,
    config: &PhaseConfig,
    limits: Limits,
    seed: u64,
) -> Option<PhasePlans> {
    let set = problem.set;
    if !problem.is_plain() {
        return None;
    }
    let clocks: Vec<[u64; 2]> = set
        .connections()
        .iter()
        .enumerate()
        .map(|(x, c)| [problem.clocks(x).of(c.words), u64::from(c.words) * problem.word_clocks])
        .collect();
    // Where switches take only a part of the time, a few phases more are no loss, but idle links are, which
    // starts leave between streams.
    let switches = u64::from(problem.bounds.phases) * problem.switch;
    let with_starts = switches.saturating_mul(config.switches) >= problem.bounds.clocks;
    let degree = degree(problem);
    let is_single = set.len() <= SINGLE && is_few(degree, index(problem.bounds.phases.max(1)));
    if !with_starts && !is_single {
        return None;
    }
    let mut search = PhaseSearch {
        problem,
        config,
        clocks: &clocks,
        limits,
        seed,
        degree,
        with_starts,
        best: None,
        shared: Vec::new(),
        work: 0,
        round_work: 0,
    };
    let settled = search.fewest()?;
    search.lower_all(settled);
    let PhaseSearch { best, mut shared, work, .. } = search;
    shared.sort_by_key(|plan| plan.clocks);
    Some(PhasePlans { with_starts: best, shared, work })
}

/// Whether so many phases are worth a negotiation beside the fewest.
fn is_few(phases: usize, fewest: usize) -> bool {
    phases <= 2 * fewest
}

/// The greatest number of connections of a port.
fn degree(problem: &Problem<'_>) -> usize {
    let mut degrees = vec![0; problem.port_count];
    for &[source, target] in &problem.ports {
        degrees[index(source)] += 1;
        degrees[index(target)] += usize::from(target != source);
    }
    degrees.into_iter().max().unwrap_or(0)
}

struct PhaseSearch<'a> {
    problem: &'a Problem<'a>,
    config: &'a PhaseConfig,
    /// Clocks that a connection keeps its agents busy, and a link of its route.
    clocks: &'a [[u64; 2]],
    limits: Limits,
    seed: u64,
    /// The greatest number of connections of a port.
    degree: usize,
    /// Whether streams get starts.
    with_starts: bool,
    best: Option<Plan>,
    shared: Vec<Plan>,
    work: u64,
    /// The work of the last timetables, for each that was tried for a phase.
    round_work: u64,
}

impl<'a> PhaseSearch<'a> {
    /// Negotiates channels alone, from the bound upwards: the fewest phases that are found.
    fn fewest(&mut self) -> Option<PhaseNegotiation<'a>> {
        let each = self.problem.cell_count() + self.problem.port_count + self.problem.edge_count();
        let mut phases = index(self.problem.bounds.phases.max(1));
        let cycles = self.config.cycles;
        loop {
            if self.left() == 0 || to_u64(phases * each) > RESOURCES {
                return None;
            }
            let channel_capacity = u64::from(self.problem.channels);
            // Where routes have to go is cheaper to find for all phases as one. If even that takes
            // long, there are hardly enough phases.
            let mut whole = self.unplaced(1, channel_capacity * to_u64(phases));
            let mut trial = self.unplaced(phases, channel_capacity);
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
            match outcome {
                RoutingOutcome::Settled => return Some(trial),
                RoutingOutcome::TooLarge => return None,
                RoutingOutcome::Stalled | RoutingOutcome::Exhausted => (),
            }
            phases += 1 + phases / 32;
        }
    }

    /// All connections without a place.
    fn unplaced(&self, phases: usize, channel_capacity: u64) -> PhaseNegotiation<'a> {
        let Self { problem, config, clocks, seed, .. } = *self;
        PhaseNegotiation::new(problem, config, clocks, phases, channel_capacity, seed)
    }

    /// Lowers the limits of agents and links, each time with an equal part of the budget: in the fewest
    /// phases, and in so many that no agent has two streams in one, if these are not many more.
    fn lower_all(&mut self, settled: PhaseNegotiation<'a>) {
        let fewest = settled.phases();
        let end = self.limits.work;
        let single = self.degree.max(fewest);
        let has_single = is_few(single, fewest);
        if has_single {
            self.limits.work = self.work + self.left() / 2;
        }
        self.lower(settled);
        self.limits.work = end;
        if has_single
            && !self.is_hopeless()
            && let Some(settled) = self.single(single)
        {
            self.lower(settled);
        }
    }

    /// A negotiation with this number of phases in which no agent has two streams in one.
    fn single(&mut self, phases: usize) -> Option<PhaseNegotiation<'a>> {
        let mut trial = self.unplaced(phases, u64::from(self.problem.channels));
        trial.limit_agents();
        self.settled(trial, self.config.cycles)
    }

    /// Gives starts to what has settled, and improves it if it may become the best plan.
    fn lower(&mut self, mut settled: PhaseNegotiation<'a>) {
        self.keep(&settled, self.config.rounds);
        if !self.is_hopeless() {
            self.lower_limits(&mut settled);
        }
        // A phase that has become empty is left out.
        let loads = settled.loads();
        let used = loads.iter().filter(|&&load| load > 0);
        let clocks = used.map(|load| self.problem.switch + load).sum();
        self.shared.push(Plan { phases: self.streams(&settled), clocks });
    }

    /// Whether the plan with starts takes so much longer than the best plan of others that lower limits
    /// cannot make up for it.
    fn is_hopeless(&self) -> bool {
        let longest = self.limits.clocks.saturating_add(self.limits.clocks / self.config.hopeless);
        let is_large = self.problem.set.len() > self.config.improved;
        is_large && self.best.as_ref().is_some_and(|best| best.clocks > longest)
    }

    /// Lowers the limits of agents and links for as long as that goes and the budget lasts: of all phases
    /// at once, then of one after the other. Then takes more time for the timetable of the best.
    fn lower_limits(&mut self, settled: &mut PhaseNegotiation<'a>) {
        let mut best = settled.clone();
        let mut step = u64::from(self.config.step);
        while self.left() > 0 && step > 0 {
            let loads = settled.loads();
            // Phases that are longer than others are shortened first.
            let mean = loads.iter().sum::<u64>() / to_u64(loads.len());
            let lower = |&load: &u64| {
                let load = load.min(mean + mean / LONGER);
                load - load * step / 64
            };
            let limits: Vec<u64> = loads.iter().map(lower).collect();
            if limits == loads {
                break;
            }
            if !self.lower_to(limits, settled, &mut best) {
                step /= 2;
                settled.reseed();
            }
        }
        let mut phases: Vec<usize> = (0..settled.phases()).collect();
        phases.sort_by_key(|&phase| Reverse(settled.loads()[phase]));
        for phase in phases {
            while self.left() > 0 {
                let mut limits = settled.loads();
                limits[phase] = limits[phase].saturating_sub(1);
                if !self.lower_to(limits, settled, &mut best) {
                    break;
                }
            }
        }
        self.keep(&best, self.rounds(self.config.last_rounds, LAST_TIMETABLES));
    }

    /// Lowers the limits of what has settled, and replaces it and the one with the best starts. Returns whether
    /// that settles.
    fn lower_to(
        &mut self,
        limits: Vec<u64>,
        settled: &mut PhaseNegotiation<'a>,
        best: &mut PhaseNegotiation<'a>,
    ) -> bool {
        let mut trial = settled.clone();
        trial.limit(limits);
        let Some(lower) = self.settled(trial, 1) else { return false };
        *settled = lower;
        if self.keep(settled, self.rounds(self.config.rounds, TIMETABLES)) {
            best.clone_from(settled);
        }
        true
    }

    /// As many timetables as take one in `part` of the budget, but at most this number.
    fn rounds(&self, most: u32, part: u64) -> u32 {
        let rounds = self.limits.work / part / self.round_work.max(1);
        u32::try_from(rounds).unwrap_or(u32::MAX).min(most)
    }

    /// The negotiation, if it settles within what is left of the budget.
    fn settled(
        &mut self,
        mut trial: PhaseNegotiation<'a>,
        cycles: u32,
    ) -> Option<PhaseNegotiation<'a>> {
        let outcome = trial.settle((cycles, u32::MAX), self.left());
        self.count(&mut trial);
        (outcome == RoutingOutcome::Settled).then_some(trial)
    }

    fn left(&self) -> u64 {
        self.limits.work.saturating_sub(self.work)
    }

    fn count(&mut self, negotiation: &mut PhaseNegotiation<'_>) {
        self.work += std::mem::take(&mut negotiation.work);
    }

    /// The streams of each phase, without starts.
    fn streams(&self, settled: &PhaseNegotiation<'_>) -> Vec<Vec<Stream>> {
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
        phases
    }

    /// Gives starts to what has settled; whether that is the best plan, which is kept.
    fn keep(&mut self, settled: &PhaseNegotiation<'_>, rounds: u32) -> bool {
        if !self.with_starts {
            return false;
        }
        let work = self.work;
        let mut phases = self.streams(settled);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut clocks = 0;
        for streams in &mut phases {
            let mut phase = PhaseTimetable::new(self.problem, streams);
            let (starts, makespan) = phase.solve(rounds, &mut rng);
            streams.iter_mut().zip(starts).for_each(|(stream, start)| stream.start = start);
            clocks += self.problem.switch + makespan;
            self.work += phase.work;
        }
        self.round_work = (self.work - work) / (u64::from(rounds) + 1);
        let is_best = self.best.as_ref().is_none_or(|best| clocks < best.clocks);
        if is_best {
            self.best = Some(Plan { phases, clocks });
        }
        is_best
    }
}
