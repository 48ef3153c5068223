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
    /// takes: one attempt for each.
    pub cuts: Vec<(u32, u32)>,
    /// The same where words are uneven, with one more attempt for each that takes the mean instead
    /// of the longest.
    pub uneven_cuts: Vec<(u32, u32)>,
    /// What an overuse adds to a resource's cost in the first pass, as a factor of that cost,
    /// in 4096ths.
    pub present_first: u32,
    /// The greatest such factor.
    pub present_most: u32,
    /// The greatest with which it goes on when slots are added or taken away.
    pub present_again: u32,
    /// How much the factor grows in a pass, in 64ths.
    pub present_growth: u32,
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
    /// Passes without a sixteenth of conflicts fewer after which slots are added at first.
    pub patience_first: u32,
    /// Such passes after which an attempt to do with less has stalled, at first.
    pub patience: u32,
    /// The same for the last attempt to do with a slot or a phase fewer.
    pub patience_most: u32,
    /// Finer units have their turn when what is tried next took more than this part of the budget
    /// last time.
    pub quick: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cuts: vec![(1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (2, 2), (4, 1)],
            uneven_cuts: vec![(1, 8), (1, 1), (1, 4)],
            present_first: 1280,
            present_most: 20000,
            present_again: 16000,
            present_growth: 1,
            history: 10,
            history_most: 1 << 10,
            history_kept: 48,
            port: 128,
            detour: 4,
            far_detours: 64,
            far: 24,
            free_phases: 64,
            patience_first: 4,
            patience: 12,
            patience_most: 1 << 12,
            quick: 32,
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
const WORTHWHILE: i64 = 256;

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
    search.run(Vec::new(), &units, seed);
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
    let config = Config { detour: 0, far: 0, patience_first: config.patience, ..config };
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
    let mut settled = Negotiation::new(problem, &config, (&units, &order), shape, seed);
    let mut search = Search::new(problem, &config, &order, budget);
    let outcome = settled.settle(u64::MAX, budget);
    let clocks = search.take(&mut settled, outcome)?;
    let first = Attempt::new(settled, Some(clocks), config.patience);
    search.run(vec![first], &[], seed);
    search.found()
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
}

/// A negotiation, and what is tried next with it.
struct Attempt<'a> {
    state: Negotiation<'a>,
    /// Clocks of its plan, or what a plan would take if it had one.
    clocks: u64,
    /// Whether it has a plan.
    settled: bool,
    /// As many phases, one fewer, and one more: after how many passes without progress that is
    /// given up next time, and the work it took last time.
    tries: [(i64, u32, u64); 3],
    /// Slots that are taken away at once.
    step: u64,
}

impl<'a> Attempt<'a> {
    fn new(state: Negotiation<'a>, clocks: Option<u64>, patience: u32) -> Self {
        let step = (state.spare_slots() as u64 / 4).max(1);
        let tries = [0, -1, 1].map(|more| (more, patience, 0));
        let settled = clocks.is_some();
        Self { clocks: clocks.unwrap_or(state.clocks()), settled, state, tries, step }
    }
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, config: &'a Config, order: &'a Order, budget: u64) -> Self {
        Self { problem, config, order, budget, best: None, work: 0 }
    }

    fn found(self) -> Option<Found> {
        let Self { best, work, .. } = self;
        best.map(|plan| Found { plan, work })
    }

    /// Negotiates from the bound upwards. A part of what is left of the budget is for that.
    fn first(&mut self, units: &'a Units, seed: u64) -> Option<Attempt<'a>> {
        let bounds = &self.problem.bounds;
        let free = bounds.clocks / u64::from(self.config.free_phases) / self.problem.switch.max(1);
        let phases = bounds.phases.max(1) + free.min(u64::from(bounds.phases)) as u32;
        let mut state = self.begun(units, (0, phases), seed)?;
        // What comes out much longer than the best is not made better than that in the end.
        let most = self.best.as_ref().map_or(u64::MAX, |best| best.clocks + best.clocks / 8);
        let part = if self.best.is_some() { 8 } else { 2 };
        let outcome = state.settle(most, self.left().div_ceil(part));
        let clocks = self.take(&mut state, outcome)?;
        Some(Attempt::new(state, Some(clocks), self.config.patience))
    }

    /// A negotiation with so many slots, or as many as bounds ask for; `None` where that is large.
    fn begun(
        &self,
        units: &'a Units,
        (slots, phases): (u32, u32),
        seed: u64,
    ) -> Option<Negotiation<'a>> {
        let slots = slots.max(units.fewest_slots).max(phases + units.longest as u32 - 1);
        if is_large(self.problem, phases, slots) {
            return None;
        }
        let shape = (phases, vec![u32::MAX; slots as usize]);
        Some(Negotiation::new(self.problem, self.config, (units, self.order), shape, seed))
    }

    /// An attempt with other units, which begins where it would be better than the best plan.
    fn other(&self, units: &'a Units, seed: u64) -> Option<Attempt<'a>> {
        let best = self.best.as_ref()?;
        let phases = best.phases.len() as u32;
        let slots =
            best.clocks.saturating_sub(u64::from(phases) * self.problem.switch) / units.slot;
        let state = self.begun(units, (slots as u32, phases), seed)?;
        Some(Attempt::new(state, None, self.config.patience))
    }

    /// Begins with some attempts and the coarsest units, and takes slots and phases away for as
    /// long as that may give a better plan and the budget lasts: what took the least work last
    /// time, of these what would give the shortest plan. Where nothing gains quickly the next units
    /// have their turn.
    fn run(&mut self, mut attempts: Vec<Attempt<'a>>, units: &'a [Units], seed: u64) {
        let mut pending = units.iter();
        while self.left() > 0 {
            let next = self.next(&attempts);
            let quick = self.budget / u64::from(self.config.quick);
            if next.is_none_or(|((spent, _), ..)| spent > quick)
                && let Some(units) = pending.next()
            {
                // What uneven units take is known only when their exact starts are.
                let attempt = match attempts.is_empty() || units.are_uneven() {
                    true => self.first(units, seed),
                    false => self.other(units, seed),
                };
                attempts.extend(attempt);
                continue;
            }
            let Some((_, row, column)) = next else { break };
            let attempt = &mut attempts[row];
            let (more, patience, _) = attempt.tries[column];
            let before = self.work;
            let mut trial = attempt.state.clone();
            let shape = self.shape(attempt, more).expect("it was chosen");
            let outcome = trial.fit(shape, patience, self.left());
            if let Some(clocks) = self.take(&mut trial, outcome) {
                (attempt.state, attempt.clocks, attempt.settled) = (trial, clocks, true);
            } else if more == 0 && attempt.step > 1 {
                attempt.step /= 2;
            } else {
                attempt.tries[column].1 *= 2;
                if attempt.settled {
                    attempt.state.reseed();
                } else if more == 0 {
                    attempt.state = trial;
                    attempt.clocks = attempt.state.clocks();
                }
            }
            attempt.tries[column].2 = self.work - before;
        }
    }

    /// The most slots with which an attempt with so many more phases would be better than the best
    /// plan, and its phases.
    fn shape(&self, attempt: &Attempt<'a>, more: i64) -> Option<(u32, u32)> {
        let best = self.best.as_ref()?.clocks as i64;
        let best = best - best / WORTHWHILE;
        let phases = u32::try_from(attempt.state.phases() as i64 + more).ok()?;
        let (slot, switch) = (attempt.state.slot() as i64, self.problem.switch as i64);
        let gain = attempt.clocks as i64 + more * switch - best;
        let step = if more == 0 { attempt.step as i64 } else { 1 };
        let slots = attempt.state.slots() as i64 - gain.div_euclid(slot) - step;
        let slots = u32::try_from(slots).ok()?;
        let fits = phases >= self.problem.bounds.phases.max(1)
            && slots >= attempt.state.fewest_slots(phases)
            && slots <= SLOTS;
        fits.then_some((slots, phases))
    }

    /// What is tried next: the work it took last time and the clocks that it would give; the
    /// attempt, and what is done about its phases.
    fn next(&self, attempts: &[Attempt<'a>]) -> Option<((u64, u64), usize, usize)> {
        let mut next: Option<((u64, u64), usize, usize)> = None;
        for (row, attempt) in attempts.iter().enumerate() {
            for (column, &(more, patience, spent)) in attempt.tries.iter().enumerate() {
                let Some((slots, phases)) = self.shape(attempt, more) else { continue };
                let clocks = u64::from(slots) * attempt.state.slot()
                    + u64::from(phases) * self.problem.switch;
                let key = (spent, clocks);
                if patience <= self.config.patience_most
                    && next.is_none_or(|(least, ..)| key < least)
                {
                    next = Some((key, row, column));
                }
            }
        }
        next
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
