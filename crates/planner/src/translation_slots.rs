//! Time slots for translation-invariant sets on tori: one connection is planned for all its
//! translates.
//!
//! All-to-all, shifts and stencils look the same from every cell. Their plans can too, up to a time
//! shift: if a connection is in slot `t`, its translate by `v` is in slot `t + shift(v)` modulo the
//! number of slots, where shifts of translations add up. Then one cell determines the use of all
//! agents, and one link that of all links of a direction. A connection takes an entry of an array
//! of slots for its source, one for its target, and one of its direction's array for each link of
//! its route, each at its slot less the shift of the cell. Planning all-to-all on 16x16 cells is
//! placing 255 items in six arrays (`packing`).
//!
//! A translation all the way round a dimension shifts time by nothing, so shifts exist only if the
//! number of slots suits the sizes of the torus, and a leg of a route must be shorter than the
//! distance after which shifts repeat, or it would conflict with itself. Where this allows too few
//! numbers of slots, only a subgroup of the translations shifts time, with arrays for each class of
//! cells that the subgroup maps to each other (`symmetry`): fewer symmetries, more items. The set
//! then needs to be invariant under the subgroup only.
//!
//! Without shifts slots are independent, and there may be any number of them. They are filled one
//! after the other (`filling`), which comes near the bound on tori whose sizes allow few classes.
//!
//! Slots are then assigned to phases by first fit so that no cell needs more channels than it has,
//! and streams start as early as this order allows. Where context switches cost more than slots,
//! the set is packed into phases directly in the same way: the arrays have an entry for each phase,
//! and connections take channels on the cells of their routes.
//!
//! Streams of one word start at single clocks instead, without slots (`pipelined`).

mod filling;
mod items;
mod packing;
mod pipelined;
mod symmetry;

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32, to_u64, truncate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::plan::{Found, Plan, Stream};
use crate::problem::Problem;
use filling::fill;
use items::TranslationPacking;
use packing::{ItemPlacement, Items, Weights, pack};
use symmetry::Torus;

/// The parameters of the search.
#[derive(Clone, Debug)]
pub struct TranslationConfig {
    /// The search starts with `1 / slack` more slots than the bound.
    pub slack: u32,
    /// The first attempts for each number of slots or phases take `1 / share` of the budget.
    pub share: u64,
    /// Filling slots one after the other takes `1 / filled` of the budget.
    pub filled: u64,
    /// The search ends at a plan that is above the bound by at most `1 / worth` of it.
    pub worth: u64,
    /// The maximum of connections of a set that is invariant under no translation.
    pub alone: usize,
    /// The maximum of items times slots of a packing.
    pub most: u64,
    /// The weights of the packing search, for one class of cells and for several.
    pub weights: [Weights; 2],
}

impl Default for TranslationConfig {
    fn default() -> Self {
        Self {
            slack: 16,
            share: 6,
            filled: 3,
            worth: 64,
            alone: 512,
            most: 1 << 22,
            weights: [(1015, 2500), (1000, 6000)].map(|(kept, patience)| Weights {
                growth: 800,
                kept,
                beside: 400,
                patience,
            }),
        }
    }
}

/// The default work budget for a problem, in units of 1024 array entries: proportional to the
/// number of connections, about two seconds at most.
pub fn budget(problem: &Problem<'_>) -> u64 {
    (to_u64(problem.set.len()) * PER_CONNECTION).clamp(BUDGET / 8, BUDGET)
}

const PER_CONNECTION: u64 = 1 << 10;
const BUDGET: u64 = 9 << 18;

/// Plans a set for the least time.
///
/// Returns `None` if the machine is not a torus, if the set is large and not invariant, has an order
/// or requirements, or if no plan was found within the budget.
pub fn plan(
    problem: &Problem<'_>,
    config: &TranslationConfig,
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let mut search = TranslationSearch::new(problem, config, budget, seed)?;
    search.plan_pipelined();
    // Slots hold all links of a route, single words only one at a time.
    if search.best.is_none() {
        search.plan_slots();
    }
    search.found()
}

/// Plans a set for the fewest phases; returns `None` as [`plan`] does.
pub fn plan_phases(
    problem: &Problem<'_>,
    config: &TranslationConfig,
    budget: u64,
    seed: u64,
) -> Option<Found> {
    let mut search = TranslationSearch::new(problem, config, budget, seed)?;
    search.plan_phases();
    search.found()
}

struct TranslationSearch<'a> {
    problem: &'a Problem<'a>,
    config: &'a TranslationConfig,
    torus: Torus,
    /// Steps of subgroups under which the set is invariant, largest subgroups first.
    steps: Vec<Vec<u32>>,
    /// Clocks of a slot: those of the longest connection.
    slot: u64,
    budget: u64,
    left: u64,
    rng: ChaCha8Rng,
    best: Option<Plan>,
}

/// A number of slots or phases, and the steps of a subgroup that suits it.
struct Period {
    period: u32,
    classes: u32,
    steps: Vec<u32>,
    /// Classes for each of those that steps alone make.
    folds: u32,
    /// For each dimension the orders that its shift may have.
    orders: Vec<Vec<u32>>,
}

/// The outcome of a packing.
enum PackingOutcome {
    /// The streams of each slot or phase.
    Streams(Vec<Vec<Stream>>),
    /// No packing was found within the budget.
    NotYet,
    /// With every shift tried, some connection conflicts with itself.
    Never,
}

/// The objective of a packing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Slots,
    Phases,
}

impl<'a> TranslationSearch<'a> {
    fn new(
        problem: &'a Problem<'a>,
        config: &'a TranslationConfig,
        budget: u64,
        seed: u64,
    ) -> Option<Self> {
        if !problem.is_plain() {
            return None;
        }
        let torus = Torus::new(problem)?;
        let mut all: Vec<Vec<u32>> = vec![Vec::new()];
        for &size in &torus.sizes {
            let divisors = (1..=size).filter(|step| size % step == 0);
            let longer = |step: u32| all.iter().map(move |steps| [&steps[..], &[step]].concat());
            all = divisors.flat_map(longer).collect();
            if all.len() > SUBGROUPS {
                return None;
            }
        }
        all.sort_by_key(|steps| steps.iter().product::<u32>());
        // Invariance under all translations is that under every subgroup.
        if !torus.is_invariant(&all[0]) {
            all.retain(|steps| torus.is_invariant(steps));
        }
        // Every set is invariant under the identity. If nothing else is, an item is one connection.
        if all.len() == 1 && problem.set.len() > config.alone {
            return None;
        }
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let words = problem.set.connections().iter().map(|c| c.words).max().unwrap_or(0);
        let slot = u64::from(words) * problem.word_clocks + problem.setup;
        let (steps, left, best) = (all, budget, None);
        Some(Self { problem, config, torus, steps, slot, budget, left, rng, best })
    }

    fn found(self) -> Option<Found> {
        let work = self.budget - self.left;
        self.best.map(|plan| Found { plan, work })
    }

    /// Plans streams of one word without slots, in one phase.
    fn plan_pipelined(&mut self) {
        if self.steps[0].iter().any(|&step| step > 1) {
            return;
        }
        let Self { problem, ref torus, .. } = *self;
        let (left, rng) = (&mut self.left, &mut self.rng);
        let Some((places, length)) = pipelined::plan(problem, torus, left, rng) else { return };
        let mut streams = Vec::with_capacity(problem.set.len());
        for (cell, list) in torus.lists.iter().enumerate() {
            streams.extend(list.iter().zip(&places).map(|(relative, place)| Stream {
                connection: relative.connection,
                words: relative.words,
                start: place.start,
                cells: torus.cells(to_u32(cell), &place.legs),
            }));
        }
        self.best = Some(Plan { phases: vec![streams], clocks: problem.switch + length });
    }

    /// Plans with decreasing numbers of slots, starting above the bound.
    fn plan_slots(&mut self) {
        let fewest = self.fewest_slots();
        let floor = self.floor(fewest);
        let mut slots: Option<u32> = None;
        let mut is_filled = false;
        let (mut from, mut most) = (fewest, fewest + fewest / self.config.slack + 1);
        loop {
            let mut periods = self.periods(from..=most, Goal::Slots);
            periods.sort_by_key(|p| (p.classes, p.period));
            let mut share = self.budget / self.config.share;
            let least = periods.first().map_or(0, |period| period.classes);
            // Of numbers of slots at most this did not succeed; they are tried again, for longer.
            let mut stuck = 0;
            while !self.is_over(floor) {
                let best = self.best.as_ref().map_or(u64::MAX, |best| best.clocks);
                periods.retain(|period| {
                    slots.is_none_or(|slots| period.period < slots)
                        && self.floor(period.period) < best
                });
                let mut open = (0..periods.len()).filter(|&row| periods[row].period > stuck);
                let Some(first) = open.next() else {
                    if periods.is_empty() {
                        break;
                    }
                    (stuck, share) = (0, 2 * share);
                    continue;
                };
                // The fewest items, and in the middle between what succeeded and what did not.
                let classes = periods[first].classes;
                let last = open.take_while(|&row| periods[row].classes == classes).last();
                let last = last.unwrap_or(first);
                // The fewest classes are quick; before others slots are filled one by one.
                if !is_filled && (classes > least || share > self.budget / self.config.share) {
                    is_filled = true;
                    slots = self.fill_slots(fewest, slots);
                    // Then the fewest classes have another turn, twice as long.
                    (stuck, share) = (0, 2 * share);
                    continue;
                }
                let row = if slots.is_none() { last } else { (first + last).div_ceil(2) };
                let period = periods.remove(row);
                match self.pack(&period, Goal::Slots, share) {
                    PackingOutcome::Never => {}
                    PackingOutcome::NotYet => {
                        stuck = period.period;
                        periods.insert(row, period);
                    }
                    PackingOutcome::Streams(streams) => {
                        slots = Some(period.period);
                        let plan = self.assign(streams);
                        self.take(plan);
                    }
                }
            }
            (from, most) = (most + 1, most + most / self.config.slack + 1);
            if slots.is_some() || self.is_over(floor) || from >= fewest.saturating_mul(2) {
                break;
            }
        }
    }

    /// Fills slots one after the other and packs the remaining items, repeatedly, with part of the
    /// budget. Returns the fewest slots; `slots` unchanged if links carry several streams at a time.
    fn fill_slots(&mut self, fewest: u32, slots: Option<u32>) -> Option<u32> {
        if self.problem.share > 1 || self.is_short_of_channels() {
            return slots;
        }
        // No shifts at all, so there may be any number of slots.
        let period = self.periods(1..=1, Goal::Slots).pop();
        let period = period.filter(|period| period.classes <= FILLED);
        let packing = period.and_then(|period| self.unpacked(&period, Goal::Slots, false));
        let Some(mut packing) = packing else { return slots };
        // As many slots may still make fewer phases.
        let mut best = slots.map(|slots| slots + 1);
        let tight: Vec<bool> = packing
            .items
            .loads(|_| true)
            .iter()
            .map(|load| load * TIGHT >= f64::from(fewest))
            .collect();
        let until = self.left - self.left / self.config.filled;
        let floor = self.floor(fewest);
        while self.left > until && !self.is_over(floor) {
            let (places, slots) = fill(&packing.items, &tight, &mut self.left, &mut self.rng);
            let loads = packing.items.loads(|item| places[item].is_none());
            let need = to_u32(truncate(loads.into_iter().fold(0.0, f64::max).round()));
            let rest: Vec<usize> = (0..places.len()).filter(|&x| places[x].is_none()).collect();
            let most = best.map_or(need + need / 2 + 4, |best| best.saturating_sub(slots));
            for count in need..most {
                let items = &mut packing.items;
                let some = Items {
                    period: index(count),
                    capacity: items.capacity.clone(),
                    choices: std::mem::take(&mut items.choices),
                    row_of: rest.iter().map(|&item| items.row_of[item]).collect(),
                    mirror: None,
                    first_fit: false,
                };
                let mut share = self.left.min(self.budget / REST);
                self.left -= share;
                let weights = &self.config.weights[1];
                let packed = pack(&some, weights, &mut share, &mut self.rng);
                self.left += share;
                items.choices = some.choices;
                let Some(packed) = packed else { continue };
                packing.places = places.iter().map(|place| place.unwrap_or_default()).collect();
                for (&item, ItemPlacement { choice, time }) in rest.iter().zip(packed) {
                    packing.places[item] = ItemPlacement { choice, time: slots + time };
                }
                packing.items.period = index(slots + count);
                best = Some(slots + count);
                let plan = self.assign(self.streams(&packing));
                self.take(plan);
                break;
            }
        }
        best.min(slots).or(best)
    }

    /// Packs into as few phases as possible.
    fn plan_phases(&mut self) {
        let fewest = self.problem.bounds.phases.max(1);
        for phases in fewest..=fewest + fewest / self.config.slack + 1 {
            for period in self.periods(phases..=phases, Goal::Phases) {
                let share = self.budget / self.config.share;
                if let PackingOutcome::Streams(phases) = self.pack(&period, Goal::Phases, share) {
                    self.take(Some(Plan { phases, clocks: 0 }));
                    return;
                }
            }
        }
    }

    /// The clocks of so many slots in the fewest phases: what no plan with them goes below.
    fn floor(&self, slots: u32) -> u64 {
        let switches = u64::from(self.problem.bounds.phases) * self.problem.switch;
        switches + u64::from(slots) * self.slot
    }

    /// Whether the search ends: the budget is used up, or what could still be gained over the best
    /// plan is less than its worth.
    fn is_over(&self, floor: u64) -> bool {
        let is_near = |plan: &Plan| plan.clocks <= floor + floor / self.config.worth;
        self.left == 0
            || self.problem.interrupt.is_requested()
            || self.best.as_ref().is_some_and(is_near)
    }

    fn take(&mut self, plan: Option<Plan>) {
        let Some(mut plan) = plan else { return };
        plan.compact(self.problem);
        if self.best.as_ref().is_none_or(|best| plan.clocks < best.clocks) {
            self.best = Some(plan);
        }
    }

    /// A lower bound of the number of slots.
    fn fewest_slots(&self) -> u32 {
        let problem = self.problem;
        let mut ports = vec![0u32; problem.port_count];
        for &[source, target] in &problem.ports {
            ports[index(source)] += 1;
            ports[index(target)] += u32::from(source != target);
        }
        let left = problem.bounds.clocks - u64::from(problem.bounds.phases) * problem.switch;
        let bound = u32::try_from(left / self.slot.max(1)).unwrap_or(u32::MAX / 2);
        ports.into_iter().max().unwrap_or(0).max(bound).max(1)
    }

    /// For each number of slots or phases the largest subgroups that suit it: for slots the first,
    /// for phases a few.
    fn periods(&self, range: std::ops::RangeInclusive<u32>, goal: Goal) -> Vec<Period> {
        let each = to_u64(self.problem.set.len()) / to_u64(self.torus.lists.len()) + 1;
        // With half duplex a shift of nothing makes a cell send and receive at once.
        let some = if goal == Goal::Phases || self.problem.half { SUITABLE } else { 1 };
        let each_period = |period: u32| {
            let most = self.config.most / (each * u64::from(period));
            let suits = |steps: &Vec<u32>| {
                let product: u32 = steps.iter().product();
                (1..=to_u32(most / u64::from(product))).find_map(|folds| {
                    let orders = self.orders(steps, folds * period, goal)?;
                    let (classes, steps) = (product * folds, steps.clone());
                    Some(Period { period, classes, steps, folds, orders })
                })
            };
            let mut periods: Vec<Period> = self.steps.iter().filter_map(suits).collect();
            periods.sort_by_key(|period| period.classes);
            periods.truncate(some);
            periods
        };
        range.flat_map(each_period).collect()
    }

    /// The orders that the shift of each dimension may have, modulo a number; `None` where there
    /// are none.
    fn orders(&self, steps: &[u32], modulus: u32, goal: Goal) -> Option<Vec<Vec<u32>>> {
        let torus = &self.torus;
        let dimensions = torus.sizes.iter().zip(steps).zip(&torus.farthest);
        dimensions
            .map(|((size, step), far)| {
                let least = match goal {
                    Goal::Slots => far.div_ceil(*step).div_ceil(self.problem.share),
                    Goal::Phases => 1,
                };
                let most = gcd(size / step, modulus);
                let orders: Vec<u32> =
                    (least.max(1)..=most).filter(|order| most.is_multiple_of(*order)).collect();
                (!orders.is_empty()).then_some(orders)
            })
            .collect()
    }

    /// Packs repeatedly, with different shifts each time.
    fn pack(&mut self, period: &Period, goal: Goal, share: u64) -> PackingOutcome {
        let mut share = share.min(self.left);
        self.left -= share;
        let mut refused = 0;
        while share > 0 {
            share = share.saturating_sub(1 + to_u64(self.torus.lists.len()) / 64);
            // A connection that is its own image takes twice what it needs, which may be too much.
            let is_odd = self.torus.sizes.iter().all(|size| size % 2 == 1);
            let reflect = goal != Goal::Phases && is_odd && self.rng.random_range(0..4) < 3;
            let Some(mut packing) = self.unpacked(period, goal, reflect) else {
                refused += 1;
                if refused == SHIFTS {
                    self.left += share;
                    return PackingOutcome::Never;
                }
                continue;
            };
            let weights = &self.config.weights[usize::from(period.classes > 1)];
            let packed = pack(&packing.items, weights, &mut share, &mut self.rng);
            if let Some(places) = packed {
                self.left += share;
                packing.places = places;
                return PackingOutcome::Streams(self.streams(&packing));
            }
        }
        PackingOutcome::NotYet
    }

    /// The items of a subgroup with random shifts, without places; `None` where every way of a
    /// connection meets itself.
    fn unpacked(
        &mut self,
        period: &Period,
        goal: Goal,
        reflect: bool,
    ) -> Option<TranslationPacking> {
        let Period { period: slots, folds, .. } = *period;
        let shifts: Vec<u32> =
            period.orders.iter().map(|orders| self.shift(orders, folds * slots)).collect();
        let subgroup = self.torus.subgroup(&period.steps, &shifts, (slots, folds))?;
        let mirror = if reflect { self.mirror(slots, &subgroup) } else { None };
        self.items(slots, subgroup, goal, mirror)
    }

    /// A random shift of one of these orders.
    fn shift(&mut self, orders: &[u32], period: u32) -> u32 {
        let order = orders[self.rng.random_range(0..orders.len())];
        loop {
            let factor = self.rng.random_range(0..order);
            if gcd(factor, order) == 1 {
                return period / order * factor;
            }
        }
    }

    /// Assigns slots to phases by first fit, those that take the most channels first; `None` if a
    /// slot takes more channels than a cell has.
    fn assign(&self, slots: Vec<Vec<Stream>>) -> Option<Plan> {
        let channels = |streams: &Vec<Stream>| {
            let mut taken = vec![0u32; self.problem.cell_count()];
            let cells = streams.iter().flat_map(|stream| &stream.cells);
            cells.for_each(|&cell| taken[index(cell)] += 1);
            taken
        };
        let taken: Vec<Vec<u32>> = slots.iter().map(channels).collect();
        let mut order: Vec<usize> = (0..slots.len()).filter(|&s| !slots[s].is_empty()).collect();
        order.sort_by_key(|&slot| Reverse(taken[slot].iter().sum::<u32>()));
        let mut phases: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
        for slot in order {
            let fits = |phase: &(Vec<u32>, Vec<usize>)| {
                let mut pairs = phase.0.iter().zip(&taken[slot]);
                pairs.all(|(phase, slot)| phase + slot <= self.problem.channels)
            };
            match phases.iter_mut().find(|phase| fits(phase)) {
                Some((phase, members)) => {
                    phase.iter_mut().zip(&taken[slot]).for_each(|(all, slot)| *all += slot);
                    members.push(slot);
                }
                None if taken[slot].iter().any(|&all| all > self.problem.channels) => return None,
                None => phases.push((taken[slot].clone(), vec![slot])),
            }
        }
        let mut slots = slots;
        let phases = phases.into_iter().map(|(_, members)| {
            members.into_iter().flat_map(|slot| std::mem::take(&mut slots[slot])).collect()
        });
        Some(Plan { phases: phases.collect(), clocks: 0 })
    }
}

/// Subgroups of a torus that are looked at, those tried for a period where the first may not do,
/// and shifts that are tried before a subgroup is given up.
const SUBGROUPS: usize = 1 << 12;
const SUITABLE: usize = 8;
const SHIFTS: u32 = 32;

/// How near to the fewest slots the load of an array is that must not be idle.
const TIGHT: f64 = 1.02;

/// What is left over when slots were filled is packed with this part of the budget at a time.
const REST: u64 = 1 << 9;

/// Classes up to which slots are filled; beyond, exact covers are not found.
const FILLED: u32 = 64;

/// The greatest common divisor.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
