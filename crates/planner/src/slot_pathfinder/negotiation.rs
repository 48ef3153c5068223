//! The state of a negotiation: places of units, users and costs of resources, and passes of rip-up
//! and reroute over the units in conflict.

mod placing;

use std::cmp::Reverse;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use conset_ir::convert::{index, to_i64, to_u32, to_u64};

use super::detours::DetourSearch;
use super::order::Order;
use super::route::RouteSearch;
use super::rows::{HOP, HOP_BASE, NEVER, Prices, Rows, Use};
use super::units::Units;
use super::{MILLION, PLACING_WORK, SlotConfig, ordered};
use crate::plan::{Plan, Stream};
use crate::problem::Problem;

/// The maximum cost of a resource in a slot. It is lower for sets with very long routes, so that
/// sums fit into 32 bits.
const COST_LIMIT: i32 = 1 << 16;

/// The maximum number of resources of all slots: a few hundred megabytes.
pub(super) const RESOURCES: u64 = 1 << 24;
/// The maximum number of slots, for sums of costs.
pub(super) const SLOTS: u32 = 1 << 13;

/// The growth of the number of slots or phases added, per budget of work after its first half: at
/// the end of the budget, nine times as many are added as at first.
const GROWTH_RATE: u64 = 16;

/// Fractions are stored in this many parts.
const PARTS: u64 = 1 << 10;

/// The work of finding out whether a unit is in conflict is about that of examining this many slots of a
/// link, in eighths.
const CONFLICT_WORK: u64 = 8;

/// The overuse that remained at the end of a negotiation, per million users.
pub(super) struct RemainingOveruse {
    /// The least overuse after any pass.
    pub(super) least: u64,
    /// The overuse of links and ports, and the violated pairs of the order, at the end.
    pub(super) links: u64,
    /// The overuse of channels at the end.
    pub(super) channels: u64,
}

/// How a negotiation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No resource is overused.
    Settled,
    /// The work limit was reached before.
    Stalled,
    /// The budget is used up, or slots or resources exceed their limits.
    Exhausted,
}

/// The start slot and the route of a unit.
#[derive(Clone, Default)]
struct Placement {
    slot: u32,
    /// The cells of its route; empty while the unit has no place.
    cells: Vec<u32>,
    /// The edges of its route.
    edges: Vec<u32>,
}

/// The places of all units, and the use and the costs of all resources.
#[derive(Clone)]
pub(super) struct Negotiation<'a> {
    problem: &'a Problem<'a>,
    config: &'a SlotConfig,
    units: &'a Units,
    order: &'a Order,
    /// The history costs of the pairs of the order.
    pair_history: Vec<Use>,
    /// The number of violated pairs after the last pass.
    violated: i64,
    /// The first slot of each phase, and the number of slots.
    first: Vec<u32>,
    /// The maximum words of a unit that starts in each slot.
    room: Vec<u32>,
    links: Rows,
    ports: Rows,
    /// The use of channels, by cell, then phase; and the cost for one more user, by cell, then slot.
    channels: Vec<Use>,
    channel_costs: Vec<i32>,
    places: Vec<Placement>,
    /// The overuse of links and ports, and of channels.
    overuse: i64,
    channel_overuse: i64,
    prices: Prices,
    rng: ChaCha8Rng,
    /// The work of placing units, by which negotiations are limited.
    work: u64,
    /// The work of everything else. It uses up the budget too, but does not end a negotiation: one with
    /// few units needs as many passes as one with many.
    upkeep: u64,
    /// The work of placing a unit, in [`PARTS`] of the number of slots and [`PLACING_WORK`]; 0
    /// until all units were placed once.
    pub(super) placing: u64,
    /// The least overuse after any pass.
    least: u64,
    search: RouteSearch,
    detours: DetourSearch,
    /// One in so many searches for a place looks for detours; `None` if none does.
    pub(super) detours_one_in: Option<u32>,
}

impl<'a> Negotiation<'a> {
    /// A negotiation in which no unit has a place, with the given number of phases, and one slot for
    /// each entry of `room`: the maximum words of a unit that starts there.
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a SlotConfig,
        (units, order): (&'a Units, &'a Order),
        (phases, room): (u32, Vec<u32>),
        seed: u64,
    ) -> Self {
        let farthest = (0..problem.set.len()).map(|x| problem.hops(x)).max().unwrap_or(0);
        let longest = i32::try_from(units.longest).unwrap_or(i32::MAX);
        let links = (i32::from(farthest) + 1) * longest;
        let prices = Prices {
            present: config.present_first,
            history: config.history,
            history_most: config.history_most,
            dearest: u32::try_from(COST_LIMIT.min(NEVER / 8 / links)).unwrap_or(0),
        };
        let slots = room.len();
        let mut this = Self {
            problem,
            config,
            units,
            order,
            pair_history: vec![Use::default(); order.pairs.len()],
            violated: 0,
            first: vec![0],
            room,
            links: Rows::new(problem.capacity.iter().map(|&c| c.into()).collect(), HOP_BASE, HOP),
            ports: Rows::new(vec![1; problem.port_count], config.port, 0),
            channels: Vec::new(),
            channel_costs: Vec::new(),
            places: vec![Placement::default(); units.count()],
            overuse: 0,
            channel_overuse: 0,
            prices,
            rng: ChaCha8Rng::seed_from_u64(seed),
            work: 0,
            upkeep: 0,
            placing: 0,
            least: 0,
            search: RouteSearch::new(problem.cell_count()),
            detours: DetourSearch::new(problem),
            detours_one_in: None,
        };
        let room = std::mem::take(&mut this.room);
        this.reshape(this.phase_starts(to_u32(slots), phases), &vec![None; slots]);
        this.room = room;
        this
    }

    /// The first slots of phases of about equal length, which are multiples of the longest unit if
    /// there are enough slots.
    fn phase_starts(&self, slots: u32, phases: u32) -> Vec<u32> {
        let unit = to_u32(self.units.longest);
        let (whole, rest) = (slots / unit, slots % unit);
        let first = |phase: u32| match whole >= phases {
            true => {
                let units = u64::from(whole) * u64::from(phase) / u64::from(phases);
                to_u32(units) * unit + if phase == phases { rest } else { 0 }
            }
            // The first phase has room for the longest unit; the others share the remaining slots.
            false if phase == 0 => 0,
            false => {
                let left = u64::from(slots - unit) * u64::from(phase - 1);
                unit + to_u32(left / u64::from(phases - 1).max(1))
            }
        };
        (0..=phases).map(first).collect()
    }

    /// Negotiates until no resource is overused. Adds slots or phases whenever the work exceeds
    /// `effort` times that of placing all units once.
    pub(super) fn settle(&mut self, effort: u64, budget: u64) -> Outcome {
        loop {
            match self.negotiate(effort, budget) {
                Outcome::Stalled => {}
                ended => return ended,
            }
            if self.resources() > RESOURCES || to_u32(self.slots()) > SLOTS {
                return Outcome::Exhausted;
            }
            // In the second half of the budget, the number of slots or phases added grows, so that
            // there is a plan at its end.
            let late = self.spent().saturating_sub(budget / 2);
            self.grow(1 + to_u32(GROWTH_RATE * late / budget.max(1)));
            self.forget();
        }
    }

    /// Adds `times` phases if a greater share of the channels in use than of the links and ports in use is
    /// overused, otherwise `times` the number of slots that the overuse would fill.
    fn grow(&mut self, times: u32) {
        let overuse = self.overuse + self.violated;
        let used: u64 =
            self.links.users().iter().sum::<u64>() + self.ports.users().iter().sum::<u64>();
        let used_channels: u64 = self.channels.iter().map(|of| u64::from(of.users)).sum();
        let scarce = self.channel_overuse * to_i64(used) > overuse * to_i64(used_channels);
        let slots = to_u32(self.slots());
        if overuse == 0 || scarce {
            let phases = to_u32(self.phases()) + times;
            let least = phases + to_u32(self.units.longest) - 1;
            let old = (0..slots.max(least)).map(|slot| (slot < slots).then_some(slot));
            let old: Vec<_> = old.collect();
            self.reshape(self.phase_starts(to_u32(old.len()), phases), &old);
            return;
        }
        // At least one slot, to the phases with the most overuse.
        let missing = u64::from(slots) * to_u64(overuse) / used.max(1);
        let missing = to_u32((missing.max(1) * u64::from(times)).min(u64::from(slots)));
        let over: Vec<u64> =
            self.links.overuse().iter().zip(self.ports.overuse()).map(|(a, b)| a + b).collect();
        let of = |phase: &usize| -> u64 {
            over[index(self.first[*phase])..index(self.first[phase + 1])].iter().sum()
        };
        let mut phases: Vec<usize> = (0..self.phases()).collect();
        phases.sort_by_key(|phase| Reverse(of(phase)));
        let mut more = vec![0; phases.len()];
        (0..index(missing)).for_each(|slot| more[phases[slot % phases.len()]] += 1);
        let (mut first, mut old) = (vec![0], Vec::new());
        for (phase, &more) in more.iter().enumerate() {
            old.extend((self.first[phase]..self.first[phase + 1]).map(Some));
            old.extend((0..more).map(|_| None));
            first.push(to_u32(old.len()));
        }
        self.reshape(first, &old);
    }

    /// Negotiates with a fixed number of slots and phases.
    pub(super) fn fit(&mut self, (slots, phases): (u32, u32), effort: u64, budget: u64) -> Outcome {
        while to_u32(self.slots()) > slots
            && let Some(gone) = self.removable_slot()
        {
            self.remove_slot(gone);
        }
        if (to_u32(self.slots()), to_u32(self.phases())) != (slots, phases) {
            let have = to_u32(self.slots());
            let old: Vec<_> = (0..slots).map(|slot| (slot < have).then_some(slot)).collect();
            self.reshape(self.phase_starts(slots, phases), &old);
        }
        self.forget();
        self.negotiate(effort, budget)
    }

    /// The slot with the fewest users whose phase stays long enough without it; `None` if there is
    /// no such slot.
    fn removable_slot(&self) -> Option<usize> {
        let lengths = || self.first.windows(2).map(|pair| index(pair[1] - pair[0]));
        let longest = self.units.longest;
        let roomy = lengths().filter(|&length| length >= longest).count();
        let mut users = self.ports.users();
        users.iter_mut().zip(self.links.users()).for_each(|(sum, users)| *sum += users);
        let mut candidates = Vec::new();
        for (phase, length) in lengths().enumerate() {
            if length > 1 && (length != longest || roomy > 1) {
                candidates.extend(index(self.first[phase])..index(self.first[phase + 1]));
            }
        }
        candidates.into_iter().min_by_key(|&slot| users[slot])
    }

    fn remove_slot(&mut self, gone: usize) {
        let old = (0..self.slots()).filter(|&slot| slot != gone);
        let old: Vec<_> = old.map(|slot| Some(to_u32(slot))).collect();
        let before = |&first: &u32| first - u32::from(index(first) > gone);
        let first = self.first.iter().map(before).collect();
        self.reshape(first, &old);
    }

    /// Replaces the slots and phases: phases begin at the slots `first`, and slot `s` is the former
    /// slot `old[s]`, or a new one. Units whose slots are no longer adjacent and in one phase lose
    /// their place.
    fn reshape(&mut self, first: Vec<u32>, old: &[Option<u32>]) {
        let phases = first.len() - 1;
        let resources = to_u64((self.problem.edge_count() + self.problem.port_count) * old.len());
        self.work += resources / 4;
        self.upkeep += resources;
        let mut now = vec![None; self.slots()];
        for (slot, old) in old.iter().enumerate() {
            if let Some(old) = old {
                now[index(*old)] = Some(to_u32(slot));
            }
        }
        self.links = self.links.reshaped(old, &self.prices);
        self.ports = self.ports.reshaped(old, &self.prices);
        self.first = first;
        let room = |old: &Option<u32>| old.map_or(u32::MAX, |old| self.room[index(old)]);
        self.room = old.iter().map(room).collect();
        // The first slot has room for any unit, so that each can be placed.
        self.room.iter_mut().take(1).for_each(|room| *room = u32::MAX);
        self.channels = vec![Use::default(); phases * self.problem.cell_count()];
        self.channel_costs = vec![0; self.slots() * self.problem.cell_count()];
        (self.overuse, self.channel_overuse) = (0, 0);
        for unit in 0..self.units.count() {
            let place = &mut self.places[unit];
            if place.cells.is_empty() {
                continue;
            }
            let slots = u32::from(self.units.slots[unit]);
            let stays = now[index(place.slot)].filter(|&to| {
                let phase = self.first.partition_point(|&first| first <= to);
                to + slots <= self.first[phase]
                    && (0..slots).all(|i| now[index(place.slot + i)] == Some(to + i))
            });
            match stays {
                Some(to) => place.slot = to,
                None => place.cells.clear(),
            }
        }
        for unit in 0..self.units.count() {
            self.book(unit, true);
            if !self.places[unit].cells.is_empty() && !self.continues(unit) {
                self.book_stream(unit, true);
            }
        }
    }

    /// The number of resources of all slots and phases.
    fn resources(&self) -> u64 {
        let each = self.problem.edge_count() + self.problem.port_count;
        to_u64(each * self.slots() + self.channels.len())
    }

    /// Places the units in conflict again, pass by pass, until no resource is overused or the work
    /// reaches `effort` times that of placing all units once. The present cost factor rises with
    /// the fraction of that work that is done.
    fn negotiate(&mut self, effort: u64, budget: u64) -> Outcome {
        let start = self.work;
        self.least = u64::MAX;
        self.prices.present = self.config.present_first;
        let placing_work = PLACING_WORK + to_u64(self.slots());
        let count = to_u64(self.units.count());
        let most = |placing: u64| start + effort * placing * count * placing_work / PARTS;
        let mut limit = if self.placing == 0 { u64::MAX } else { most(self.placing) };
        let mut is_complete = false;
        loop {
            let conflicts = self.conflicts();
            for unit in conflicts.iter().map(|&unit| index(unit)) {
                self.remove(unit);
                self.place(unit);
                if self.spent() >= budget || self.problem.interrupt.is_requested() {
                    return Outcome::Exhausted;
                }
                if self.work >= limit && is_complete {
                    break;
                }
            }
            if self.placing == 0 {
                let units = to_u64(conflicts.len().max(1));
                self.placing = ((self.work - start) * PARTS / units / placing_work).max(1);
                limit = most(self.placing);
            }
            self.violated =
                to_i64((0..self.order.pairs.len()).filter(|&row| self.is_violated(row)).count());
            let now = to_u64(self.overuse + self.channel_overuse + self.violated);
            self.least = self.least.min(now);
            if now == 0 {
                return Outcome::Settled;
            }
            is_complete = true;
            if self.work >= limit {
                return Outcome::Stalled;
            }
            let done = (self.work - start) * PARTS / (limit - start);
            let rise = u64::from(self.config.present_most - self.config.present_first);
            let rise = rise * done / PARTS * done / PARTS;
            self.prices.present = self.config.present_first + to_u32(rise);
            self.remember();
        }
    }

    /// The remaining overuse of a negotiation that did not settle.
    pub(super) fn remaining_overuse(&self) -> RemainingOveruse {
        let users = self.links.users().iter().sum::<u64>() + self.ports.users().iter().sum::<u64>();
        let share = |over: u64| over * MILLION / users.max(1);
        let [links, channels] = [self.overuse + self.violated, self.channel_overuse];
        RemainingOveruse {
            least: share(self.least.min(to_u64(links + channels))),
            links: share(to_u64(links)),
            channels: share(to_u64(channels)),
        }
    }

    /// Units without a place and units in conflict, in random order.
    fn conflicts(&mut self) -> Vec<u32> {
        let mut conflicts = Vec::new();
        for unit in 0..self.units.count() {
            if self.places[unit].cells.is_empty() || self.is_in_conflict(unit) {
                conflicts.push(to_u32(unit));
            }
        }
        self.work += to_u64(self.units.count()) / 4;
        self.upkeep += to_u64(self.units.count()) * CONFLICT_WORK;
        conflicts.shuffle(&mut self.rng);
        conflicts
    }

    /// Reduces all history costs: after a change of slots or phases, other resources are scarce.
    fn forget(&mut self) {
        let kept = self.config.history_kept;
        self.links.forget(kept);
        self.ports.forget(kept);
        self.channels.iter_mut().for_each(|of| of.forget(kept));
        self.pair_history.iter_mut().for_each(|of| of.forget(kept));
    }

    /// Raises the history costs of overused resources and violated pairs, and updates all costs.
    fn remember(&mut self) {
        self.links.remember(&self.prices);
        self.ports.remember(&self.prices);
        self.channels.iter_mut().for_each(|of| of.remember(self.problem.channels, &self.prices));
        for cell in 0..self.problem.cell_count() {
            (0..self.phases()).for_each(|phase| self.price_channels(cell, phase));
        }
        for row in 0..self.pair_history.len() {
            self.pair_history[row].users = u32::from(self.is_violated(row));
            self.pair_history[row].remember(0, &self.prices);
            self.pair_history[row].users = 0;
        }
        self.work += self.resources() / 4;
        self.upkeep += self.resources();
    }

    /// The first slot of a connection's units, and the first slot after them. Units without a place
    /// are ignored.
    fn interval(&self, x: u32) -> Option<(usize, usize)> {
        let units = self.units.of(x).filter(|&unit| !self.places[unit].cells.is_empty());
        let spans = units.map(|unit| self.span(unit)).map(|(at, slots)| (at, at + slots));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether a unit of the successor starts before the last unit of its predecessor ends.
    fn is_violated(&self, pair: usize) -> bool {
        let [before, after] = self.order.pairs[pair].map(|x| self.interval(x));
        before.zip(after).is_some_and(|(before, after)| before.1 > after.0)
    }

    /// The first slot and the number of slots of a unit.
    fn span(&self, unit: usize) -> (usize, usize) {
        (index(self.places[unit].slot), usize::from(self.units.slots[unit]))
    }

    fn phase_of(&self, slot: u32) -> usize {
        self.first.partition_point(|&first| first <= slot) - 1
    }

    fn is_in_conflict(&self, unit: usize) -> bool {
        let span = self.span(unit);
        let place = &self.places[unit];
        let ports = self.problem.ports[index(self.units.connection[unit])];
        let phase = self.phase_of(place.slot);
        let full = |&cell: &u32| {
            let of = self.channels[index(cell) * self.phases() + phase];
            of.users > self.problem.channels
        };
        ports.iter().any(|&port| self.ports.is_overused(index(port), span))
            || place.edges.iter().any(|&edge| self.links.is_overused(index(edge), span))
            || (self.channel_overuse > 0 && place.cells.iter().any(full))
            || {
                let pairs = self.order.of(self.units.connection[unit]);
                pairs.iter().any(|&pair| self.is_violated(index(pair)))
            }
    }

    /// All work since it was last taken.
    fn spent(&self) -> u64 {
        self.work + self.upkeep
    }

    /// Takes [`Negotiation::spent`], which is 0 then.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work) + std::mem::take(&mut self.upkeep)
    }

    /// A copy with another seed of random numbers.
    pub(super) fn reseeded(&self, seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), ..self.clone() }
    }

    /// The number of phases.
    pub(super) fn phases(&self) -> usize {
        self.first.len() - 1
    }

    /// The number of slots of all phases.
    pub(super) fn slots(&self) -> usize {
        self.links.slots()
    }

    /// The streams of each phase, in the order of their slots, without starts.
    pub(super) fn plan(&self) -> Plan {
        let mut phases: Vec<Vec<(u32, Stream)>> = vec![Vec::new(); self.phases()];
        for x in 0..to_u32(self.problem.set.len()) {
            let mut units: Vec<usize> = self.units.of(x).collect();
            units.sort_by_key(|&unit| (&self.places[unit].cells, self.places[unit].slot));
            for &unit in &units {
                let place = &self.places[unit];
                let phase = &mut phases[self.phase_of(place.slot)];
                let words = self.units.words[unit];
                if self.continues(unit)
                    && let Some((_, stream)) = phase.last_mut()
                {
                    stream.words += words;
                    continue;
                }
                let cells = place.cells.clone();
                phase.push((place.slot, Stream { connection: x, words, start: 0, cells }));
            }
        }
        let phases = phases.into_iter().filter(|phase| !phase.is_empty());
        Plan { phases: phases.map(ordered).collect(), clocks: 0 }
    }
}
