//! Slots: negotiated congestion over time.
//!
//! Time is divided into slots of one length, and slots are dealt to phases. Connections are cut
//! into *units* of at most a slot's words. A resource is a link in a slot, a port of an agent in
//! a slot, or the channels of a cell in a phase. Each unit is given a slot and a route; units in
//! conflict are routed again and again, while what is overused becomes dearer (PathFinder:
//! McMurchie and Ebeling, FPGA 1995), until nothing is.
//!
//! A first plan is negotiated from the bound upwards: slots and phases are added where negotiation
//! stalls. Then there is a *trial* for each way to cut the set, with as many slots and phases as
//! bounds ask for. A trial has a limit of work, and present cost rises as that is used up, so what
//! is overused in the end tells how near it came. Where it failed it may be made again with twice
//! the work, or with more slots or phases; where it succeeded, with fewer. Trials are ranked by
//! what was overused and by the clocks that they would gain, and get work in inverse proportion to
//! their rank, until the budget is used up.
//!
//! Units of a connection on one route in neighbouring slots become one stream, which takes its
//! channels once. In the end streams are moved to their earliest starts, which frees what slots
//! of uneven units have left.
//!
//! What comes after others in the set's order gets slots behind theirs. Sets with requirements of
//! bandwidth or latency are not planned here.

mod negotiation;
mod order;
mod route;
mod rows;
mod starts;
mod units;

use std::cmp::Reverse;

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use negotiation::{Negotiation, Outcome, RESOURCES, SLOTS};
use order::Order;
use units::Units;

/// The weights of the negotiation. Costs are in 64ths of the cost of a hop over a free link for a
/// slot.
#[derive(Clone, Debug)]
pub struct Config {
    /// Numbers of units that the longest connection is cut into, and of slots that such a unit
    /// takes.
    pub cuts: Vec<(u32, u32)>,
    /// The same where words are uneven; each is also used with the mean instead of the longest.
    pub uneven_cuts: Vec<(u32, u32)>,
    /// What an overuse adds to a resource's cost when a negotiation begins, as a factor of that
    /// cost, in 4096ths.
    pub present_first: u32,
    /// The same when the work of a negotiation is used up.
    pub present_most: u32,
    /// What each pass in which a resource is overused adds to its cost.
    pub history: u32,
    /// The most that these additions amount to.
    pub history_most: u32,
    /// What is kept of these additions when slots are added or taken away, in 64ths.
    pub history_kept: u32,
    /// The cost of a port that is free, as far as factors apply to it.
    pub port: u32,
    /// Hops beyond the shortest that a route may take.
    pub detour: u16,
    /// One of so many searches for detours allows so many hops more: rings and cuts are relieved by
    /// routes the other way round.
    pub far_detours: u32,
    /// Hops beyond the shortest in such a search.
    pub far: u16,
    /// More phases than the bound to begin with: as many as take this part of the bound of time.
    pub free_phases: u32,
    /// The limit of work of a trial that starts anew, when it is made first; in multiples of the
    /// work of placing all units once.
    pub effort: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cuts: vec![(1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (2, 2), (4, 1)],
            uneven_cuts: vec![(1, 8), (1, 1), (1, 4)],
            present_first: 1280,
            present_most: 16384,
            history: 5,
            history_most: 1 << 10,
            history_kept: 48,
            port: 128,
            detour: 4,
            far_detours: 64,
            far: 24,
            free_phases: 64,
            effort: 16,
        }
    }
}

/// The usual budget of a set, in slots that searches for routes look at, by eights: in proportion
/// to the connections, some seconds at most.
pub fn budget(problem: &Problem<'_>) -> u64 {
    let usual = problem.set.len() as u64 * PER_CONNECTION;
    // Small sets get four times as much: that takes two seconds at most.
    usual.max((4 * usual).min(BUDGET / 2)).min(BUDGET)
}

/// Hops of the farthest connection of a set that is planned.
const FARTHEST: u16 = 1 << 12;

const PER_CONNECTION: u64 = 1 << 21;
const BUDGET: u64 = 1 << 30;

/// A plan that is shorter by one in so many clocks is worth a trial.
const WORTHWHILE: u64 = 256;

/// Placing a unit takes about as much as looking at so many slots, and at those that there are.
const SWEEP: u64 = 24;

/// Trials that start from what was settled take so many times less than those that start anew.
const CARRIED: u64 = 4;

/// Overuse is counted in so many users.
const MILLION: u64 = 1_000_000;

/// Plans a set; `None` where the set is empty or has requirements, where routes are very long, or
/// slots or pairs of the order very many, or where the budget was used up before there was a plan.
pub fn plan(problem: &Problem<'_>, config: &Config, budget: u64, seed: u64) -> Option<Found> {
    let set = problem.set;
    if set.is_empty() || set.has_requirements() {
        return None;
    }
    let order = Order::new(set)?;
    if (0..set.len()).any(|x| problem.hops(x) > FARTHEST) {
        return None;
    }
    let mut units: Vec<Units> = Vec::new();
    for cut in units::cuts(problem, config) {
        let cut = Units::cut(problem, cut);
        if units.iter().all(|units| (units.count(), units.slot) != (cut.count(), cut.slot)) {
            units.push(cut);
        }
    }
    let mut search = Search::new(problem, config, &order, budget);
    search.begin(&units, seed);
    search.run();
    search.found()
}

/// Plans a set as [`plan`] does, but begins with so many phases of so many slots, leaves connections
/// whole and makes no detours, for which there is no room where phases are nearly full.
pub(crate) fn together(
    problem: &Problem<'_>,
    (phases, each): (u32, u32),
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let config = Config::default();
    let config = Config { detour: 0, far: 0, ..config };
    let mut words: Vec<u32> = problem.set.connections().iter().map(|c| c.words).collect();
    words.sort_unstable_by_key(|&words| Reverse(words));
    let units = Units::cut(problem, (words.first()?.max(&1).to_owned(), 1));
    let order = Order::new(problem.set)?;
    let slots = phases * each;
    if is_large(problem, phases, slots) {
        return None;
    }
    // Each slot is for words that are as long as those of an equal share of the connections, and
    // there are a phase's slots more for each.
    let share = |slot: u32| u64::from(slot.saturating_sub(each)) * words.len() as u64;
    let room = (0..slots).map(|slot| words[(share(slot) / u64::from(slots)) as usize]);
    let shape = (phases, room.collect());
    let mut state = Negotiation::new(problem, &config, (&units, &order), shape, seed);
    let mut search = Search::new(problem, &config, &order, budget);
    search.seed = seed;
    let outcome = state.settle(config.effort / CARRIED, budget);
    let clocks = search.take(&mut state, outcome)?;
    search.cuts.push(Cut { units: &units, settled: None });
    search.settled(0, state, clocks);
    search.run();
    search.found()
}

/// The fewest slots with which so many phases may do, as far as bounds tell.
fn fewest_slots(units: &Units, phases: u32) -> u32 {
    units.fewest_slots.max(phases + units.longest as u32 - 1)
}

/// Whether so many phases and slots are too many.
fn is_large(problem: &Problem<'_>, phases: u32, slots: u32) -> bool {
    let each = (problem.edge_count() + problem.port_count) as u64;
    let cells = u64::from(phases) * problem.cell_count() as u64;
    slots > SLOTS || u64::from(slots) * each + cells > RESOURCES
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    order: &'a Order,
    budget: u64,
    best: Option<Plan>,
    work: u64,
    seed: u64,
    /// The work of placing a unit, for each slot.
    placing: u64,
    cuts: Vec<Cut<'a>>,
    trials: Vec<Trial>,
}

/// One way to cut the connections.
struct Cut<'a> {
    units: &'a Units,
    /// The last negotiation that gave a plan, and the clocks of that plan.
    settled: Option<(Negotiation<'a>, u64)>,
}

/// Slots and phases to negotiate with.
#[derive(Clone, Copy)]
struct Trial {
    cut: usize,
    shape: Shape,
    /// Whether it starts from what was settled, with fewer slots or phases.
    is_carried: bool,
    /// Its limit of work, in multiples of the work of placing all units once.
    effort: u64,
    /// Users too many that were left last time, of a million. Before the first time, a guess.
    overuse: u64,
}

/// Slots of all phases, and phases.
type Shape = (u32, u32);

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, config: &'a Config, order: &'a Order, budget: u64) -> Self {
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

    /// Adds the cuts, negotiates a first plan with the first of them, and plans a trial at the
    /// bound for each.
    fn begin(&mut self, units: &'a [Units], seed: u64) {
        self.seed = seed;
        let bounds = self.problem.bounds;
        let free = bounds.clocks / u64::from(self.config.free_phases) / self.problem.switch.max(1);
        let phases = bounds.phases.max(1) + free.min(u64::from(bounds.phases)) as u32;
        for units in units {
            let cut = self.cuts.len();
            self.cuts.push(Cut { units, settled: None });
            if cut == 0 {
                let shape = (fewest_slots(units, phases), phases);
                let Some(mut state) = self.begun(cut, shape) else { return };
                let outcome = state.settle(self.config.effort / CARRIED, self.left().div_ceil(2));
                self.placing = state.placing;
                let Some(clocks) = self.take(&mut state, outcome) else { return };
                self.settled(cut, state, clocks);
            }
            let phases = bounds.phases.max(1);
            self.push(Trial {
                cut,
                shape: (fewest_slots(units, phases), phases),
                is_carried: false,
                effort: self.config.effort,
                overuse: 0,
            });
        }
    }

    /// Makes trials until the budget is used up. They are ranked by their overuse, squared, over
    /// the clocks that they would gain, and each gets work in inverse proportion to its rank.
    fn run(&mut self) {
        while self.left() > 0 {
            let mut ranked: Vec<(u128, usize)> = Vec::new();
            for (row, &Trial { cut, shape, overuse, .. }) in self.trials.iter().enumerate() {
                if let Some(gain) = self.gain(cut, shape) {
                    let overuse = u128::from((overuse + 1) * MILLION);
                    ranked.push((overuse * overuse / u128::from(gain), row));
                }
            }
            ranked.sort_unstable();
            let cost = |(rank, &(_, row)): (u64, &(u128, usize))| {
                let Trial { cut, shape, effort, .. } = self.trials[row];
                let units = self.cuts[cut].units.count() as u64;
                (effort * units * (SWEEP + u64::from(shape.0)) * rank, row)
            };
            let Some((_, row)) = (1..).zip(&ranked).map(cost).min() else { break };
            let trial = self.trials.swap_remove(row);
            self.make(trial);
        }
    }

    /// Makes a trial, and plans what follows from its outcome.
    fn make(&mut self, trial: Trial) {
        let Trial { cut, shape, is_carried, effort, .. } = trial;
        self.seed = self.seed.wrapping_add(1);
        let carried = self.cuts[cut].settled.as_ref().filter(|_| is_carried);
        let state = match carried {
            Some((state, _)) => Some(state.reseeded(self.seed)),
            None => self.begun(cut, shape),
        };
        let Some(mut state) = state else { return };
        let outcome = state.fit(shape, effort, self.left());
        let left = state.left_over();
        if let Some(clocks) = self.take(&mut state, outcome) {
            self.settled(cut, state, clocks);
            return;
        }
        // There is less overuse where there is more room.
        let overuse = left.least / 2;
        let first = self.config.effort / if is_carried { CARRIED } else { 1 };
        let more = |shape| Trial { cut, shape, is_carried, effort: first, overuse };
        let (slots, phases) = shape;
        let missing = (u64::from(slots) * left.links / MILLION).max(1) as u32;
        self.push(more((slots + missing, phases)));
        if left.channels > 0 {
            let missing = (u64::from(phases) * left.channels / MILLION).max(1) as u32;
            self.push(more((slots, phases + missing)));
        }
        self.trials.push(Trial { effort: 2 * effort, overuse: left.least, ..trial });
    }

    /// Keeps a negotiation that gave a plan, and plans trials with fewer slots and phases.
    fn settled(&mut self, cut: usize, state: Negotiation<'a>, clocks: u64) {
        let (slots, phases) = (state.slots() as u32, state.phases() as u32);
        let units = self.cuts[cut].units;
        self.cuts[cut].settled = Some((state, clocks));
        let is_less = |(s, p): Shape| s < slots || p < phases;
        self.trials.retain(|t| t.cut != cut || !t.is_carried || is_less(t.shape));
        let best = self.best.as_ref().map_or(clocks, |best| best.clocks);
        let (slot, switch) = (units.slot, self.problem.switch);
        // What it takes to be as good as the best plan.
        let slots = slots.saturating_sub((clocks.saturating_sub(best) / slot) as u32);
        let step = slots.saturating_sub(units.fewest_slots) / 4;
        // Phases are worth some slots.
        let gone = (phases.saturating_sub(self.problem.bounds.phases) / 2).max(1).min(phases - 1);
        let worth = (u64::from(gone) * switch).saturating_sub(best / WORTHWHILE + 1) / slot;
        let overuse = MILLION / u64::from(slots.max(1));
        for shape in [
            (slots.saturating_sub(step.max(1)), phases),
            (slots.saturating_sub(1), phases),
            (slots + worth as u32, phases - gone),
        ] {
            let effort = self.config.effort / CARRIED;
            self.push(Trial { cut, shape, is_carried: true, effort, overuse });
        }
    }

    /// Plans a trial if it is possible as far as bounds tell, would give a better plan, and is not
    /// planned already.
    fn push(&mut self, trial: Trial) {
        let Trial { cut, shape: (slots, phases), is_carried, .. } = trial;
        let same = |t: &Trial| (t.cut, t.shape, t.is_carried) == (cut, (slots, phases), is_carried);
        if phases >= self.problem.bounds.phases.max(1)
            && slots >= fewest_slots(self.cuts[cut].units, phases)
            && !is_large(self.problem, phases, slots)
            && self.gain(cut, trial.shape).is_some()
            && !self.trials.iter().any(same)
        {
            self.trials.push(trial);
        }
    }

    /// A negotiation in which no unit has a place; `None` where that is large.
    fn begun(&self, cut: usize, (slots, phases): Shape) -> Option<Negotiation<'a>> {
        if is_large(self.problem, phases, slots) {
            return None;
        }
        let shape = (phases, vec![u32::MAX; slots as usize]);
        let units = (self.cuts[cut].units, self.order);
        let mut state = Negotiation::new(self.problem, self.config, units, shape, self.seed);
        state.placing = self.placing;
        Some(state)
    }

    /// Clocks by which a plan of such a shape would be better than the best; `None` where they are
    /// few.
    fn gain(&self, cut: usize, (slots, phases): Shape) -> Option<u64> {
        let best = self.best.as_ref()?.clocks;
        let Cut { units, settled } = &self.cuts[cut];
        let bounds = &self.problem.bounds;
        // Exact starts shorten plans of uneven units by an unknown part, up to the bound.
        let (clocks, from_slots, from_phases) = match settled {
            Some((state, clocks)) => (*clocks, state.slots() as u32, state.phases() as u32),
            None if units.are_uneven() => (bounds.clocks, units.fewest_slots, bounds.phases),
            None => (0, 0, 0),
        };
        let more =
            |now: u32, from: u32, each: u64| (i64::from(now) - i64::from(from)) * each as i64;
        let clocks = clocks as i64
            + more(slots, from_slots, units.slot)
            + more(phases, from_phases, self.problem.switch);
        let clocks = u64::try_from(clocks).unwrap_or(0).max(bounds.clocks);
        (best - best / WORTHWHILE).checked_sub(clocks).filter(|&gain| gain > 0)
    }

    fn left(&self) -> u64 {
        self.budget.saturating_sub(self.work)
    }

    /// Counts what a negotiation took, and keeps its plan if that is the best. The clocks of its
    /// plan, if it has one.
    fn take(&mut self, negotiation: &mut Negotiation<'_>, outcome: Outcome) -> Option<u64> {
        self.work += std::mem::take(&mut negotiation.work);
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

/// Streams of a phase in the order of their slots.
fn ordered(mut streams: Vec<(u32, Stream)>) -> Vec<Stream> {
    streams.sort_by_key(|(slot, stream)| (*slot, Reverse(stream.words), stream.connection));
    streams.into_iter().map(|(_, stream)| stream).collect()
}
