//! Negotiated congestion (PathFinder) over links, agents and channels in time slots.
//!
//! Time is divided into slots of equal length, and each phase is a range of slots. Connections are
//! cut into *units* of at most one slot's words, or of a few slots. A resource is a link in a slot,
//! a port of an agent in a slot, or the channels of a cell in a phase. Each unit gets a start slot
//! and a route. Units that overuse a resource are removed and placed again, while the cost of
//! overused resources rises, until no resource is overused (McMurchie and Ebeling, FPGA 1995).
//!
//! The first plan is negotiated from the bound upwards: whenever the negotiation stalls, slots are
//! added if links and ports are scarcer than channels, otherwise phases. Its cut is one whose units
//! fit into the phases (`first_cut`). Then there is a *trial* for each way to cut the set, with the
//! number of slots and phases of the bounds. A trial has a work limit, and present costs rise as the
//! work is used up, so the remaining overuse tells how close a failed trial came to a plan. A failed
//! trial is queued again with twice the work, and with more slots or phases, of which slots are
//! expected to relieve links and phases to relieve channels; a successful one is followed by trials
//! with fewer. Trials are ranked by their overuse and by the clocks that they would gain, and get
//! work in inverse proportion to their rank, until the budget is used up.
//!
//! Units of a connection on the same route in adjacent slots become one stream, which takes its
//! channels once. At the end, streams are moved to their earliest starts, which removes the idle
//! time that units of unequal length leave in slots (`starts`).
//!
//! If the set has an order, successors get later slots than their predecessors (`order`). Sets with
//! required bandwidths or latencies are not supported.

mod detours;
mod negotiation;
mod order;
mod route;
mod rows;
mod starts;
mod units;

use std::cmp::Reverse;

use conset_ir::convert::{index, to_i64, to_u32, to_u64, to_usize};

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use negotiation::{Negotiation, Outcome, RESOURCES, SLOTS};
use order::Order;
use units::Units;

/// The weights of the negotiation. Costs are in 64ths of the cost of a hop over a free link for one
/// slot.
#[derive(Clone, Debug)]
pub struct SlotConfig {
    /// Ways to cut a set: the number of units of the longest connection, and the number of slots of
    /// such a unit.
    pub cuts: Vec<(u32, u32)>,
    /// The same for sets of connections of unequal length. Each way is also used with the mean
    /// length in place of the maximum.
    pub uneven_cuts: Vec<(u32, u32)>,
    /// The present cost factor at the start of a negotiation, in 4096ths: an overuse adds this
    /// factor of a resource's cost.
    pub present_first: u32,
    /// The present cost factor when the work limit is reached, in 4096ths.
    pub present_most: u32,
    /// The history cost that each overuse of a resource adds per pass.
    pub history: u32,
    /// The maximum history cost of a resource.
    pub history_most: u32,
    /// The share of history costs that is kept when slots are added or removed, in 64ths.
    pub history_kept: u32,
    /// The cost of a port that the present cost factor multiplies. An unused port costs nothing.
    pub port: u32,
    /// With a budget of at least this much per unit, a detour is looked for in each search of a place
    /// that has no free shortest route; with half as much, in one search of two, and so on.
    pub detours: u64,
    /// The first negotiation has more phases than the bound: as many more as take one
    /// `free_phases`-th of the bound of time.
    pub free_phases: u32,
    /// The initial work limit of a trial that starts without a plan, in multiples of the work of
    /// placing all units once.
    pub effort: u64,
    /// The maximum work limit of a trial, in the same unit and per unit to be placed: small sets
    /// end their search here and not at the end of the budget.
    pub effort_per_unit: u64,
}

impl Default for SlotConfig {
    fn default() -> Self {
        Self {
            cuts: vec![
                (1, 1),
                (1, 2),
                (1, 4),
                (2, 1),
                (3, 1),
                (2, 2),
                (4, 1),
                (5, 1),
                (6, 1),
                (7, 1),
            ],
            uneven_cuts: vec![(1, 8), (1, 1), (1, 4)],
            present_first: 1280,
            present_most: 16384,
            history: 5,
            history_most: 1 << 10,
            history_kept: 48,
            port: 128,
            detours: 1 << 20,
            free_phases: 64,
            effort: 16,
            effort_per_unit: 16,
        }
    }
}

/// The default work budget for a problem: proportional to the connections, and a few seconds at
/// most. The unit of work is eight slots of a link that a route search examines.
pub fn budget(problem: &Problem<'_>) -> u64 {
    let budget = to_u64(problem.set.len()) * PER_CONNECTION;
    // Small sets get four times as much, which takes three seconds at most.
    budget.max((4 * budget).min(SMALL_BUDGET)).min(BUDGET)
}

/// The maximum number of hops of a connection.
const HOPS_LIMIT: u16 = 1 << 12;

const PER_CONNECTION: u64 = 1 << 21;
const SMALL_BUDGET: u64 = 1 << 29;
const BUDGET: u64 = 3 << 28;

/// A trial must gain more than this fraction of the clocks of the best plan: one in 256.
const LEAST_GAIN: u64 = 256;

/// The work of placing a unit, in addition to the number of slots, is about that of examining this
/// many slots.
const PLACING_WORK: u64 = 24;

/// A trial that starts from a settled negotiation gets this fraction of the work of one that starts
/// without a plan: one quarter.
const WARM_START: u64 = 4;

/// The first plan is negotiated with a cut whose fewest slots take at most this fraction longer than
/// those of the cut that takes the least time: one eighth.
const ROUNDING: u64 = 8;

/// Overuse is stored as a number of users in this many.
const MILLION: u64 = 1_000_000;

/// Plans a set.
///
/// Returns `None` if the set is empty or has requirements, if it has very long routes, very many
/// slots or very many pairs of the order, or if the budget was used up before a plan was found.
pub fn plan(problem: &Problem<'_>, config: &SlotConfig, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    if set.is_empty() || set.has_requirements() {
        return None;
    }
    let order = Order::new(set)?;
    if (0..set.len()).any(|x| problem.hops(x) > HOPS_LIMIT) {
        return None;
    }
    let mut units: Vec<Units> = Vec::new();
    for cut in units::cuts(problem, config, budget) {
        let cut = Units::cut(problem, cut);
        if units.iter().all(|units| (units.count(), units.slot) != (cut.count(), cut.slot)) {
            units.push(cut);
        }
    }
    if let Some(first) = first_cut(&units, problem.bounds.phases) {
        units[..=first].rotate_right(1);
    }
    let mut search = SlotSearch::new(problem, config, &order, budget);
    search.start(&units, seed);
    search.run();
    search.found()
}

/// The cut with which the first plan is negotiated: the first one, unless its longest unit is longer
/// than a phase of the bound on average, or its slots waste more than an eighth of the time. (Long
/// units fit into few phases, so agents with several of them would need many slots.) Then it is the
/// cut that takes the least work of those that are suitable; `None` if there is none.
fn first_cut(units: &[Units], phases: u32) -> Option<usize> {
    let clocks = |cut: &Units| u64::from(cut.fewest_slots) * cut.slot;
    let least = units.iter().map(clocks).min()?;
    let is_suitable = |cut: &Units| {
        cut.longest * index(phases.max(1)) <= index(cut.fewest_slots)
            && clocks(cut) <= least + least / ROUNDING
    };
    let work = |cut: &Units| to_u64(cut.count()) * u64::from(cut.fewest_slots);
    let mut cuts = units.iter().enumerate().filter(|(_, cut)| is_suitable(cut)).peekable();
    match cuts.peek() {
        Some((0, _)) => Some(0),
        _ => cuts.min_by_key(|(_, cut)| work(cut)).map(|(row, _)| row),
    }
}

/// Plans a set as [`plan`] does, but starts with a given number of phases of `each` slots, does not
/// cut connections and allows no detours: nearly full phases have no room for detours.
pub(crate) fn plan_full_phases(
    problem: &Problem<'_>,
    (phases, each): (u32, u32),
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let config = SlotConfig::default();
    let mut words: Vec<u32> = problem.set.connections().iter().map(|c| c.words).collect();
    words.sort_unstable_by_key(|&words| Reverse(words));
    let units = Units::cut(problem, (words.first()?.max(&1).to_owned(), 1));
    let order = Order::new(problem.set)?;
    let slots = phases * each;
    if is_large(problem, phases, slots) {
        return None;
    }
    // Sorted by length, the connections are divided into equal shares, one for each slot, and each
    // slot has room for the longest connection of its share. The shares are `each` slots late, so
    // that the first slots have room for any connection.
    let share = |slot: u32| u64::from(slot.saturating_sub(each)) * to_u64(words.len());
    let room = (0..slots).map(|slot| words[to_usize(share(slot) / u64::from(slots))]);
    let room = (phases, room.collect());
    let mut state = Negotiation::new(problem, &config, (&units, &order), room, seed);
    let mut search = SlotSearch::new(problem, &config, &order, budget);
    search.seed = seed;
    let outcome = state.settle(config.effort / WARM_START, budget);
    let clocks = search.take(&mut state, outcome)?;
    search.cuts.push(Cut { units: &units, settled: None });
    search.settled(0, state, clocks);
    search.run();
    search.found()
}

/// A lower bound of the number of slots of a plan with the given number of phases.
fn fewest_slots(units: &Units, phases: u32) -> u32 {
    units.fewest_slots.max(phases + to_u32(units.longest) - 1)
}

/// Whether the number of slots or of resources exceeds its limit.
fn is_large(problem: &Problem<'_>, phases: u32, slots: u32) -> bool {
    let each = to_u64(problem.edge_count() + problem.port_count);
    let cells = u64::from(phases) * to_u64(problem.cell_count());
    slots > SLOTS || u64::from(slots) * each + cells > RESOURCES
}

/// The queue of trials, the best plan and the work done.
struct SlotSearch<'a> {
    problem: &'a Problem<'a>,
    config: &'a SlotConfig,
    order: &'a Order,
    budget: u64,
    best: Option<Plan>,
    work: u64,
    seed: u64,
    /// [`Negotiation::placing`] of the first negotiation.
    placing: u64,
    cuts: Vec<Cut<'a>>,
    trials: Vec<SlotTrial>,
}

/// One way to cut the connections.
struct Cut<'a> {
    units: &'a Units,
    /// The last negotiation that yielded a plan, and the clocks of the plan.
    settled: Option<(Negotiation<'a>, u64)>,
}

/// A negotiation to be run with a fixed number of slots and phases.
#[derive(Clone, Copy)]
struct SlotTrial {
    cut: usize,
    counts: SlotCounts,
    /// Whether the trial starts from the settled negotiation of its cut.
    is_warm: bool,
    /// The work limit, in multiples of the work of placing all units once.
    effort: u64,
    /// The overuse that remained last time, per million users; an estimate before the first time.
    overuse: u64,
}

/// The number of slots of all phases, and the number of phases.
type SlotCounts = (u32, u32);

impl<'a> SlotSearch<'a> {
    fn new(
        problem: &'a Problem<'a>,
        config: &'a SlotConfig,
        order: &'a Order,
        budget: u64,
    ) -> Self {
        let (cuts, trials) = (Vec::new(), Vec::new());
        Self {
            problem,
            config,
            order,
            budget,
            best: None,
            work: 0,
            seed: 0,
            placing: 0,
            cuts,
            trials,
        }
    }

    fn found(self) -> Option<Found> {
        let Self { best, work, .. } = self;
        best.map(|plan| Found { plan, work })
    }

    /// Negotiates a first plan with the first cut, and queues a trial at the bound for each cut.
    fn start(&mut self, units: &'a [Units], seed: u64) {
        self.seed = seed;
        let bounds = self.problem.bounds;
        let free = bounds.clocks / u64::from(self.config.free_phases) / self.problem.switch.max(1);
        let phases = bounds.phases.max(1) + to_u32(free.min(u64::from(bounds.phases)));
        for units in units {
            let cut = self.cuts.len();
            self.cuts.push(Cut { units, settled: None });
            if cut == 0 {
                let counts = (fewest_slots(units, phases), phases);
                let Some(mut state) = self.unplaced(cut, counts) else { return };
                let outcome =
                    state.settle(self.config.effort / WARM_START, self.left().div_ceil(2));
                self.placing = state.placing;
                let Some(clocks) = self.take(&mut state, outcome) else { return };
                self.settled(cut, state, clocks);
            }
            let phases = bounds.phases.max(1);
            self.push(SlotTrial {
                cut,
                counts: (fewest_slots(units, phases), phases),
                is_warm: false,
                effort: self.config.effort,
                overuse: 0,
            });
        }
    }

    /// Runs trials until the budget is used up. Trials are ranked by the square of their overuse,
    /// divided by the clocks that they would gain. Each gets work in inverse proportion to its rank.
    fn run(&mut self) {
        while self.left() > 0 {
            let mut ranked: Vec<(u128, usize)> = Vec::new();
            for (row, &SlotTrial { cut, counts, effort, overuse, .. }) in
                self.trials.iter().enumerate()
            {
                // Trials beyond the limit stay in the queue, so that they are not queued anew.
                let most = self.config.effort_per_unit * to_u64(self.cuts[cut].units.count());
                if effort > most.max(self.config.effort) {
                    continue;
                }
                if let Some(gain) = self.gain(cut, counts) {
                    let overuse = u128::from((overuse + 1) * MILLION);
                    ranked.push((overuse * overuse / u128::from(gain), row));
                }
            }
            ranked.sort_unstable();
            let cost = |(rank, &(_, row)): (u64, &(u128, usize))| {
                let SlotTrial { cut, counts, effort, .. } = self.trials[row];
                let units = to_u64(self.cuts[cut].units.count());
                (effort * units * (PLACING_WORK + u64::from(counts.0)) * rank, row)
            };
            let Some((_, row)) = (1..).zip(&ranked).map(cost).min() else { break };
            let trial = self.trials.swap_remove(row);
            self.run_trial(trial);
        }
    }

    /// Runs a trial and queues the trials that follow from its outcome.
    fn run_trial(&mut self, trial: SlotTrial) {
        let SlotTrial { cut, counts, is_warm, .. } = trial;
        self.seed = self.seed.wrapping_add(1);
        let settled = self.cuts[cut].settled.as_ref().filter(|_| is_warm);
        let state = match settled {
            Some((state, _)) => Some(state.reseeded(self.seed)),
            None => self.unplaced(cut, counts),
        };
        let Some(mut state) = state else { return };
        let outcome = state.fit(counts, trial.effort, self.left());
        let remaining = state.remaining_overuse();
        if let Some(clocks) = self.take(&mut state, outcome) {
            self.settled(cut, state, clocks);
            return;
        }
        // With more slots, half the overuse of links is expected, with more phases half that of channels.
        let [links, channels] = [remaining.links, remaining.channels];
        let all = (links + channels).max(1);
        let less = |gone: u64| remaining.least * (all - gone.min(all)) / all;
        let effort = self.config.effort / if is_warm { WARM_START } else { 1 };
        let more = |counts, overuse| SlotTrial { cut, counts, is_warm, effort, overuse };
        let (slots, phases) = counts;
        let missing = to_u32((u64::from(slots) * links / MILLION).max(1));
        self.push(more((slots + missing, phases), less(links.div_ceil(2))));
        if channels > 0 {
            let missing = to_u32((u64::from(phases) * channels / MILLION).max(1));
            self.push(more((slots, phases + missing), less(channels.div_ceil(2))));
        }
        self.trials.push(SlotTrial { effort: 2 * trial.effort, overuse: remaining.least, ..trial });
    }

    /// Stores a negotiation that yielded a plan, and queues trials with fewer slots or phases.
    fn settled(&mut self, cut: usize, state: Negotiation<'a>, clocks: u64) {
        let (slots, phases) = (to_u32(state.slots()), to_u32(state.phases()));
        let units = self.cuts[cut].units;
        self.cuts[cut].settled = Some((state, clocks));
        let is_less = |(s, p): SlotCounts| s < slots || p < phases;
        self.trials.retain(|t| t.cut != cut || !t.is_warm || is_less(t.counts));
        let best = self.best.as_ref().map_or(clocks, |best| best.clocks);
        let (slot, switch) = (units.slot, self.problem.switch);
        // The number of slots at which the plan would be as short as the best one.
        let excess = u32::try_from(clocks.saturating_sub(best) / slot).unwrap_or(u32::MAX);
        let slots = slots.saturating_sub(excess);
        let step = slots.saturating_sub(units.fewest_slots) / 4;
        // The switches that are saved with fewer phases take as long as some slots.
        let gone = (phases.saturating_sub(self.problem.bounds.phases) / 2).max(1).min(phases - 1);
        let worth = (u64::from(gone) * switch).saturating_sub(best / LEAST_GAIN + 1) / slot;
        let worth = u32::try_from(worth).unwrap_or(u32::MAX);
        let overuse = MILLION / u64::from(slots.max(1));
        for counts in [
            (slots.saturating_sub(step.max(1)), phases),
            (slots.saturating_sub(1), phases),
            (slots.saturating_add(worth), phases - gone),
        ] {
            let effort = self.config.effort / WARM_START;
            self.push(SlotTrial { cut, counts, is_warm: true, effort, overuse });
        }
    }

    /// Queues a trial if the bounds permit it, it would yield a better plan, and it is not in the
    /// queue yet.
    fn push(&mut self, trial: SlotTrial) {
        let SlotTrial { cut, counts: (slots, phases), is_warm, .. } = trial;
        let same = |t: &SlotTrial| (t.cut, t.counts, t.is_warm) == (cut, (slots, phases), is_warm);
        if phases >= self.problem.bounds.phases.max(1)
            && slots >= fewest_slots(self.cuts[cut].units, phases)
            && !is_large(self.problem, phases, slots)
            && self.gain(cut, trial.counts).is_some()
            && !self.trials.iter().any(same)
        {
            self.trials.push(trial);
        }
    }

    /// A negotiation in which no unit has a place; `None` if it would be too large.
    fn unplaced(&self, cut: usize, (slots, phases): SlotCounts) -> Option<Negotiation<'a>> {
        if is_large(self.problem, phases, slots) {
            return None;
        }
        let room = (phases, vec![u32::MAX; index(slots)]);
        let units = (self.cuts[cut].units, self.order);
        let mut state = Negotiation::new(self.problem, self.config, units, room, self.seed);
        state.placing = self.placing;
        let budget = to_u64(self.cuts[cut].units.count()) * self.config.detours;
        let one_in = u32::try_from(budget.div_ceil(self.budget.max(1))).unwrap_or(u32::MAX);
        state.detours_one_in = Some(one_in.max(1));
        Some(state)
    }

    /// An estimate of the clocks by which a plan with these counts would be shorter than the best
    /// plan; `None` if they are too few for a trial.
    fn gain(&self, cut: usize, (slots, phases): SlotCounts) -> Option<u64> {
        let best = self.best.as_ref()?.clocks;
        let Cut { units, settled } = &self.cuts[cut];
        let bounds = &self.problem.bounds;
        // Exact starts shorten plans with units of unequal length by an unknown amount, so without a
        // settled plan the bound is the estimate.
        let (clocks, from_slots, from_phases) = match settled {
            Some((state, clocks)) => (*clocks, to_u32(state.slots()), to_u32(state.phases())),
            None if units.are_uneven() => (bounds.clocks, units.fewest_slots, bounds.phases),
            None => (0, 0, 0),
        };
        let more =
            |now: u32, from: u32, each: u64| (i64::from(now) - i64::from(from)) * to_i64(each);
        let clocks = to_i64(clocks)
            + more(slots, from_slots, units.slot)
            + more(phases, from_phases, self.problem.switch);
        let clocks = u64::try_from(clocks).unwrap_or(0).max(bounds.clocks);
        (best - best / LEAST_GAIN).checked_sub(clocks).filter(|&gain| gain > 0)
    }

    /// The remaining budget.
    fn left(&self) -> u64 {
        self.budget.saturating_sub(self.work)
    }

    /// Adds the work of a negotiation, and stores its plan if it is the best. Returns the clocks of
    /// the plan, if there is one.
    fn take(&mut self, negotiation: &mut Negotiation<'_>, outcome: Outcome) -> Option<u64> {
        self.work += negotiation.take_work();
        if outcome != Outcome::Settled {
            return None;
        }
        let mut plan = negotiation.plan();
        plan.compact(self.problem);
        starts::pack(&mut plan, self.problem, self.order, &mut self.work);
        let clocks = plan.clocks;
        if self.best.as_ref().is_none_or(|best| clocks < best.clocks) {
            self.best = Some(plan);
        }
        Some(clocks)
    }
}

/// Streams of a phase, sorted by their slots; in a slot, long streams first.
fn ordered(mut streams: Vec<(u32, Stream)>) -> Vec<Stream> {
    streams.sort_by_key(|(slot, stream)| (*slot, Reverse(stream.words), stream.connection));
    streams.into_iter().map(|(_, stream)| stream).collect()
}
