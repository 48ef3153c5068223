//! The negotiation itself: who uses what, what it costs, and passes over the units in conflict.

use std::cmp::Reverse;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::order::{self, Order};
use super::route::{RouteSearch, View};
use super::rows::{HOP, NEVER, Prices, Rows, Use};
use super::units::Units;
use super::{Config, ordered};
use crate::plan::{Plan, Stream};
use crate::problem::Problem;

/// The most that a resource costs in a slot, unless routes are very long.
const DEAREST: i32 = 1 << 16;

/// Resources up to which slots are added: some hundred megabytes. And slots, for sums of costs.
pub(super) const RESOURCES: u64 = 1 << 24;
pub(super) const SLOTS: u32 = 1 << 13;

/// How fast that is which is added in haste: half of this when the budget is used up.
const HASTE: u64 = 16;

/// How a negotiation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing is overused.
    Settled,
    /// No progress.
    Stalled,
    /// The budget is used up.
    Exhausted,
}

/// Where a unit is.
#[derive(Clone, Default)]
struct Place {
    slot: u32,
    /// The cells of its route; empty while the unit has no place.
    cells: Vec<u32>,
    /// Its edges.
    edges: Vec<u32>,
}

#[derive(Clone)]
pub(super) struct Negotiation<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    units: &'a Units,
    order: &'a Order,
    /// What broken pairs of the order have cost so far.
    breaks: Vec<Use>,
    broken: i64,
    /// Clocks for which the words of the farthest connection are on their way.
    flight: u64,
    /// The first slot of each phase, and the number of slots.
    first: Vec<u32>,
    /// Words for which each slot has room.
    room: Vec<u32>,
    links: Rows,
    ports: Rows,
    /// By cell, then phase, and what the next user pays.
    channels: Vec<Use>,
    channel_costs: Vec<i32>,
    places: Vec<Place>,
    /// Users too many of links and ports, and of channels.
    overuse: i64,
    channel_overuse: i64,
    prices: Prices,
    rng: ChaCha8Rng,
    pub(super) work: u64,
    search: RouteSearch,
}

impl<'a> Negotiation<'a> {
    /// All units without a place, in so many phases and slots with room for so many words.
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a Config,
        (units, order): (&'a Units, &'a Order),
        (phases, room): (u32, Vec<u32>),
        seed: u64,
    ) -> Self {
        let farthest = (0..problem.set.len()).map(|x| problem.hops(x)).max().unwrap_or(0);
        let links = (i32::from(farthest) + i32::from(config.far) + 1) * units.longest as i32;
        let prices = Prices {
            present: config.present_first,
            history: config.history,
            history_most: config.history_most,
            dearest: DEAREST.min(NEVER / 8 / links),
        };
        let slots = room.len();
        let mut this = Self {
            problem,
            config,
            units,
            order,
            breaks: vec![Use::default(); order.pairs.len()],
            broken: 0,
            flight: problem.clocks(0).pipeline_latency(farthest.into()),
            first: vec![0],
            room,
            links: Rows::new(problem.capacity.iter().map(|&c| c.into()).collect(), HOP, HOP),
            ports: Rows::new(vec![1; problem.port_count], config.port as i32, 0),
            channels: Vec::new(),
            channel_costs: Vec::new(),
            places: vec![Place::default(); units.count()],
            overuse: 0,
            channel_overuse: 0,
            prices,
            rng: ChaCha8Rng::seed_from_u64(seed),
            work: 0,
            search: RouteSearch::new(problem.cell_count()),
        };
        let room = std::mem::take(&mut this.room);
        this.reshape(this.cut(slots as u32, phases), &vec![None; slots]);
        this.room = room;
        this
    }

    /// The first slots of so many phases of about the same length: whole units as far as that goes.
    fn cut(&self, slots: u32, phases: u32) -> Vec<u32> {
        let unit = self.units.longest as u32;
        let (whole, rest) = (slots / unit, slots % unit);
        let first = |phase: u32| match whole >= phases {
            true => {
                let units = u64::from(whole) * u64::from(phase) / u64::from(phases);
                units as u32 * unit + if phase == phases { rest } else { 0 }
            }
            // The first has room for the longest unit, the others share what is left.
            false if phase == 0 => 0,
            false => {
                let left = u64::from(slots - unit) * u64::from(phase - 1);
                unit + (left / u64::from(phases - 1).max(1)) as u32
            }
        };
        (0..=phases).map(first).collect()
    }

    /// Negotiates until nothing is overused, with more slots and phases where it stalls, up to so
    /// many clocks.
    pub(super) fn settle(&mut self, most: u64, budget: u64) -> Outcome {
        let mut open: Vec<u32> = (0..self.units.count() as u32).collect();
        // Far and long units first: they are the hardest to place.
        let size = |unit: u32| {
            let hops = self.problem.hops(self.units.connection[unit as usize] as usize);
            u32::from(self.units.slots[unit as usize]) * (u32::from(hops) + 1)
        };
        open.shuffle(&mut self.rng);
        open.sort_by_key(|&unit| Reverse(size(unit)));
        loop {
            match self.negotiate(open, self.config.patience_first, budget) {
                Outcome::Stalled => {}
                ended => return ended,
            }
            let is_large = self.resources() > RESOURCES || self.slots() as u32 > SLOTS;
            if is_large || self.clocks() > most {
                return Outcome::Exhausted;
            }
            // Where there is no plan yet and half of the budget is used up, more and more is added.
            let late = self.work.saturating_sub(budget / 2);
            let haste = if most == u64::MAX { HASTE * late / budget.max(1) } else { 0 };
            self.grow(1 + haste as u32);
            self.forget();
            open = self.open();
        }
    }

    /// Adds so many phases where channels are what is missing, otherwise so many times the slots
    /// that what is overused would fill.
    fn grow(&mut self, times: u32) {
        let unit = self.units.slot * self.units.longest as u64;
        let overuse = self.overuse + self.broken;
        // Slots that cost less than a phase are added first, unless that has taken long.
        let scarce = match unit >= self.problem.switch {
            true => self.channel_overuse * 8 > overuse,
            false => times > 1 && self.channel_overuse > overuse,
        };
        let slots = self.slots() as u32;
        if overuse == 0 || scarce {
            let phases = self.phases() as u32 + times;
            let least = phases + self.units.longest as u32 - 1;
            let old = (0..slots.max(least)).map(|slot| (slot < slots).then_some(slot));
            let old: Vec<_> = old.collect();
            self.reshape(self.cut(old.len() as u32, phases), &old);
            return;
        }
        // At least one, to the phases that need them most.
        let used: u64 =
            self.links.users().iter().sum::<u64>() + self.ports.users().iter().sum::<u64>();
        let missing = u64::from(slots) * overuse as u64 / used.max(1);
        let missing = (missing.max(1) * u64::from(times)).min(u64::from(slots)) as u32;
        let over: Vec<u64> =
            self.links.overuse().iter().zip(self.ports.overuse()).map(|(a, b)| a + b).collect();
        let of = |phase: &usize| -> u64 {
            over[self.first[*phase] as usize..self.first[phase + 1] as usize].iter().sum()
        };
        let mut phases: Vec<usize> = (0..self.phases()).collect();
        phases.sort_by_key(|phase| Reverse(of(phase)));
        let mut more = vec![0; phases.len()];
        (0..missing as usize).for_each(|slot| more[phases[slot % phases.len()]] += 1);
        let (mut first, mut old) = (vec![0], Vec::new());
        for (phase, &more) in more.iter().enumerate() {
            old.extend((self.first[phase]..self.first[phase + 1]).map(Some));
            old.extend((0..more).map(|_| None));
            first.push(old.len() as u32);
        }
        self.reshape(first, &old);
    }

    /// Negotiates with so many slots and phases, and so many passes without progress at most.
    pub(super) fn fit(
        &mut self,
        (slots, phases): (u32, u32),
        patience: u32,
        budget: u64,
    ) -> Outcome {
        while self.slots() as u32 > slots
            && let Some(gone) = self.gone()
        {
            self.remove_slot(gone);
        }
        if (self.slots() as u32, self.phases() as u32) != (slots, phases) {
            let have = self.slots() as u32;
            let old: Vec<_> = (0..slots).map(|slot| (slot < have).then_some(slot)).collect();
            self.reshape(self.cut(slots, phases), &old);
        }
        self.forget();
        let open = self.open();
        self.negotiate(open, patience, budget)
    }

    /// The fewest slots with which so many phases may do, as far as bounds tell.
    pub(super) fn fewest_slots(&self, phases: u32) -> u32 {
        self.units.fewest_slots.max(phases + self.units.longest as u32 - 1)
    }

    /// Slots beyond those that bounds ask for.
    pub(super) fn spare_slots(&self) -> usize {
        self.slots().saturating_sub(self.units.fewest_slots as usize)
    }

    /// The slot with the fewest users that can go.
    fn gone(&self) -> Option<usize> {
        let lengths = || self.first.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let longest = self.units.longest;
        let roomy = lengths().filter(|&length| length >= longest).count();
        let mut users = self.ports.users();
        users.iter_mut().zip(self.links.users()).for_each(|(sum, users)| *sum += users);
        let mut candidates = Vec::new();
        for (phase, length) in lengths().enumerate() {
            if length > 1 && (length != longest || roomy > 1) {
                candidates.extend(self.first[phase] as usize..self.first[phase + 1] as usize);
            }
        }
        candidates.into_iter().min_by_key(|&slot| users[slot])
    }

    fn remove_slot(&mut self, gone: usize) {
        let old = (0..self.slots()).filter(|&slot| slot != gone);
        let old: Vec<_> = old.map(|slot| Some(slot as u32)).collect();
        let before = |&first: &u32| first - u32::from(first as usize > gone);
        let first = self.first.iter().map(before).collect();
        self.reshape(first, &old);
    }

    /// Gives phases these first slots, of which `old` tells what they were. Units whose slots are
    /// no longer side by side lose their place.
    fn reshape(&mut self, first: Vec<u32>, old: &[Option<u32>]) {
        let phases = first.len() - 1;
        self.work += ((self.problem.edge_count() + self.problem.port_count) * old.len()) as u64 / 4;
        let mut now = vec![None; self.slots()];
        for (slot, old) in old.iter().enumerate() {
            if let Some(old) = old {
                now[*old as usize] = Some(slot as u32);
            }
        }
        self.links = self.links.reshaped(old, &self.prices);
        self.ports = self.ports.reshaped(old, &self.prices);
        self.first = first;
        let room = |old: &Option<u32>| old.map_or(u32::MAX, |old| self.room[old as usize]);
        self.room = old.iter().map(room).collect();
        // Every unit has some slot, whichever were taken away.
        self.room.iter_mut().take(1).for_each(|room| *room = u32::MAX);
        self.channels = vec![Use::default(); phases * self.problem.cell_count()];
        self.channel_costs = vec![0; self.channels.len()];
        (self.overuse, self.channel_overuse) = (0, 0);
        for unit in 0..self.units.count() {
            let place = &mut self.places[unit];
            if place.cells.is_empty() {
                continue;
            }
            let slots = u32::from(self.units.slots[unit]);
            let stays = now[place.slot as usize].filter(|&to| {
                let phase = self.first.partition_point(|&first| first <= to);
                to + slots <= self.first[phase]
                    && (0..slots).all(|i| now[(place.slot + i) as usize] == Some(to + i))
            });
            match stays {
                Some(to) => place.slot = to,
                None => place.cells.clear(),
            }
        }
        for unit in 0..self.units.count() as u32 {
            self.count(unit, true);
        }
        for x in 0..self.problem.set.len() as u32 {
            self.count_channels(x, true);
        }
    }

    /// Resources of all slots and phases.
    fn resources(&self) -> u64 {
        let each = self.problem.edge_count() + self.problem.port_count;
        (each * self.slots() + self.channels.len()) as u64
    }

    /// Passes over units until nothing is overused or there is no progress.
    fn negotiate(&mut self, mut open: Vec<u32>, patience: u32, budget: u64) -> Outcome {
        let (mut least, mut stalled) = (i64::MAX, 0);
        loop {
            for &unit in &open {
                self.remove(unit);
                self.place(unit);
                if self.work >= budget {
                    return Outcome::Exhausted;
                }
            }
            self.broken =
                (0..self.order.pairs.len()).filter(|&row| self.is_broken(row)).count() as i64;
            let now = self.overuse + self.channel_overuse + self.broken;
            if now == 0 {
                return Outcome::Settled;
            }
            // Progress that would take for ever is none.
            if now < least - least / 16 {
                (least, stalled) = (now, 0);
            } else {
                stalled += 1;
            }
            if stalled > patience {
                return Outcome::Stalled;
            }
            self.remember();
            open = self.open();
        }
    }

    /// Units without a place and those in conflict, in random order.
    fn open(&mut self) -> Vec<u32> {
        let mut open = Vec::new();
        for unit in 0..self.units.count() as u32 {
            if self.places[unit as usize].cells.is_empty() || self.is_in_conflict(unit) {
                open.push(unit);
            }
        }
        self.work += self.units.count() as u64 / 4;
        open.shuffle(&mut self.rng);
        open
    }

    /// Forgets part of what conflicts have cost: with more room they are other ones.
    fn forget(&mut self) {
        let kept = self.config.history_kept;
        self.links.forget(kept);
        self.ports.forget(kept);
        self.channels.iter_mut().for_each(|of| of.forget(kept));
        self.breaks.iter_mut().for_each(|of| of.forget(kept));
        self.prices.present = self.prices.present.min(self.config.present_again);
    }

    /// Makes what is overused dearer.
    fn remember(&mut self) {
        let present = self.prices.present;
        let grown = present + present * self.config.present_growth / 64;
        self.prices.present = grown.min(self.config.present_most);
        self.links.remember(&self.prices);
        self.ports.remember(&self.prices);
        for (of, cost) in self.channels.iter_mut().zip(&mut self.channel_costs) {
            of.remember(self.problem.channels, &self.prices);
            *cost = of.surcharge(self.problem.channels, HOP, &self.prices);
        }
        for row in 0..self.breaks.len() {
            self.breaks[row].users = u32::from(self.is_broken(row));
            self.breaks[row].remember(0, &self.prices);
            self.breaks[row].users = 0;
        }
        self.work += self.resources() / 4;
    }

    /// The first slot of a connection's units and the first behind them, of those with a place.
    fn extent(&self, x: u32) -> Option<(usize, usize)> {
        let units = self.units.of(x).filter(|&unit| !self.places[unit].cells.is_empty());
        let spans = units.map(|unit| self.span(unit as u32)).map(|(at, slots)| (at, at + slots));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn is_broken(&self, pair: usize) -> bool {
        let [before, after] = self.order.pairs[pair].map(|x| self.extent(x));
        before.zip(after).is_some_and(|(before, after)| before.1 > after.0)
    }

    /// Where a unit is: first slot, slots.
    fn span(&self, unit: u32) -> (usize, usize) {
        (self.places[unit as usize].slot as usize, usize::from(self.units.slots[unit as usize]))
    }

    fn phase_of(&self, slot: u32) -> usize {
        self.first.partition_point(|&first| first <= slot) - 1
    }

    fn is_in_conflict(&self, unit: u32) -> bool {
        let span = self.span(unit);
        let place = &self.places[unit as usize];
        let ports = self.problem.ports[self.units.connection[unit as usize] as usize];
        let phase = self.phase_of(place.slot);
        let full = |&cell: &u32| {
            let of = self.channels[cell as usize * self.phases() + phase];
            of.users > self.problem.channels
        };
        ports.iter().any(|&port| self.ports.is_overused(port as usize, span))
            || place.edges.iter().any(|&edge| self.links.is_overused(edge as usize, span))
            || (self.channel_overuse > 0 && place.cells.iter().any(full))
            || {
                let pairs = self.order.of(self.units.connection[unit as usize]);
                pairs.iter().any(|&pair| self.is_broken(pair as usize))
            }
    }

    /// Books or gives back what a unit uses, channels apart.
    fn count(&mut self, unit: u32, add: bool) {
        let span = self.span(unit);
        let place = &self.places[unit as usize];
        if place.cells.is_empty() {
            return;
        }
        let [source, target] = self.problem.ports[self.units.connection[unit as usize] as usize];
        let prices = &self.prices;
        self.overuse += self.ports.change(source as usize, span, add, prices);
        if target != source {
            self.overuse += self.ports.change(target as usize, span, add, prices);
        }
        for &edge in &place.edges {
            self.overuse += self.links.change(edge as usize, span, add, prices);
        }
    }

    /// Whether another unit of the connection on the same route ends where this one begins, so
    /// that both are one stream.
    fn continues(&self, unit: u32) -> bool {
        let place = &self.places[unit as usize];
        let others = self.units.of(self.units.connection[unit as usize]);
        others.len() > 1
            && !self.first.contains(&place.slot)
            && others.into_iter().any(|other| {
                let (slot, slots) = self.span(other as u32);
                let other = &self.places[other];
                !other.cells.is_empty()
                    && slot + slots == place.slot as usize
                    && other.cells == place.cells
            })
    }

    /// Books or gives back the channels of all streams of a connection.
    fn count_channels(&mut self, x: u32, add: bool) {
        let phases = self.phases();
        for unit in self.units.of(x) {
            if self.places[unit].cells.is_empty() || self.continues(unit as u32) {
                continue;
            }
            let phase = self.phase_of(self.places[unit].slot);
            for &cell in &self.places[unit].cells {
                let row = cell as usize * phases + phase;
                let of = &mut self.channels[row];
                self.channel_overuse += of.change(self.problem.channels, add);
                self.channel_costs[row] = of.surcharge(self.problem.channels, HOP, &self.prices);
            }
        }
    }

    fn remove(&mut self, unit: u32) {
        if self.places[unit as usize].cells.is_empty() {
            return;
        }
        let x = self.units.connection[unit as usize];
        self.count(unit, false);
        self.count_channels(x, false);
        self.places[unit as usize].cells.clear();
        self.count_channels(x, true);
    }

    /// Gives a unit the cheapest start and route.
    fn place(&mut self, unit: u32) {
        let x = self.units.connection[unit as usize];
        let slots = usize::from(self.units.slots[unit as usize]);
        let hops = i32::from(self.problem.hops(x as usize));
        let salt = self.rng.random::<u32>();
        self.fill_starts(x as usize, (slots, self.units.words[unit as usize]));
        let free = self.search.starts.iter().copied().min().unwrap_or(NEVER);
        let mut best = self.beside_siblings(unit);
        let mut cells = std::mem::take(&mut self.places[unit as usize].cells);
        let mut edges = std::mem::take(&mut self.places[unit as usize].edges);
        let view = View {
            problem: self.problem,
            links: &self.links,
            first: &self.first,
            channels: &self.channel_costs,
        };
        // A detour takes two links more, at least.
        let is_far = salt.is_multiple_of(self.config.far_detours);
        let detour = if is_far { self.config.far } else { self.config.detour };
        let detours = (detour > 0).then_some((detour, hops + 2));
        for (detour, hops) in std::iter::once((0, hops)).chain(detours) {
            let least = best.map_or(NEVER, |best| best.0);
            if least <= free + hops * HOP * slots as i32 {
                break;
            }
            let found = self.search.find(&view, x as usize, (slots, detour), salt);
            if let Some((cost, start)) = found.filter(|found| found.0 < least) {
                best = Some((cost, start, None));
                self.search.trace(&view, (start, slots), salt, &mut cells);
            }
        }
        self.work += std::mem::take(&mut self.search.work);
        let (_, slot, sibling) = best.expect("every unit has a way");
        if let Some(sibling) = sibling {
            cells.clone_from(&self.places[sibling as usize].cells);
        }
        edges.clear();
        edges.extend(cells.windows(2).map(|pair| self.problem.edge(pair[0], pair[1]) as u32));
        self.count_channels(x, false);
        self.places[unit as usize] = Place { slot: slot as u32, cells, edges };
        self.count_channels(x, true);
        self.count(unit, true);
    }

    /// What ports and the order cost a unit of so many slots and words, for each start.
    fn fill_starts(&mut self, x: usize, (slots, words): (usize, u32)) {
        let starts = &mut self.search.starts;
        let [source, target] = self.problem.ports[x];
        let (from, to) = self.ports.stretches(source as usize, slots);
        starts.clear();
        starts.extend(from.iter().zip(to).map(|(from, to)| to.wrapping_sub(*from)));
        if target != source {
            let (from, to) = self.ports.stretches(target as usize, slots);
            let both = starts.iter_mut().zip(from.iter().zip(to));
            both.for_each(|(sum, (a, b))| *sum = sum.wrapping_add(b.wrapping_sub(*a)));
        }
        for pair in self.first.windows(2) {
            let end = (pair[1] as usize).min(starts.len());
            let last = (pair[1] as usize + 1).saturating_sub(slots).max(pair[0] as usize);
            starts[last.min(end)..end].fill(NEVER);
        }
        for (start, &room) in starts.iter_mut().zip(&self.room) {
            *start = if room < words { NEVER } else { *start };
        }
        for &row in self.order.of(x as u32) {
            let [before, after] = self.order.pairs[row as usize];
            let is_after = after as usize == x;
            let Some(other) = self.extent(if is_after { before } else { after }) else { continue };
            let starts = &mut self.search.starts;
            let count = starts.len();
            let broken = match is_after {
                true => &mut starts[..other.1.min(count)],
                false => &mut starts[(other.0 + 1).saturating_sub(slots).min(count)..],
            };
            let cost = order::cost(self.breaks[row as usize], self.config.port, &self.prices);
            broken.iter_mut().for_each(|start| *start = (*start + cost).min(NEVER));
        }
    }

    /// The cheapest place directly before or after another unit of the connection on its route,
    /// where no channels have to be taken: cost, slot and the other unit. Starts are filled.
    fn beside_siblings(&self, unit: u32) -> Option<(i32, usize, Option<u32>)> {
        let x = self.units.connection[unit as usize];
        let slots = usize::from(self.units.slots[unit as usize]);
        let mut best: Option<(i32, usize, Option<u32>)> = None;
        for other in self.units.of(x) {
            let place = &self.places[other];
            if place.cells.is_empty() {
                continue;
            }
            let (slot, count) = self.span(other as u32);
            let phase = self.phase_of(place.slot);
            for start in [slot.checked_sub(slots), Some(slot + count)].into_iter().flatten() {
                let same =
                    (self.first[phase] as usize..self.first[phase + 1] as usize).contains(&start);
                let Some(&cost) = self.search.starts.get(start).filter(|_| same) else { continue };
                let links =
                    place.edges.iter().map(|&e| self.links.cost(e as usize, (start, slots)));
                let cost = cost + links.sum::<i32>();
                if cost < best.map_or(NEVER, |best| best.0) {
                    best = Some((cost, start, Some(other as u32)));
                }
            }
        }
        best
    }

    /// Draws other random numbers from here on.
    pub(super) fn reseed(&mut self) {
        self.rng = ChaCha8Rng::seed_from_u64(self.rng.random());
    }

    pub(super) fn phases(&self) -> usize {
        self.first.len() - 1
    }

    /// Clocks of a slot.
    pub(super) fn slot(&self) -> u64 {
        self.units.slot
    }

    /// About what its plan takes.
    pub(super) fn clocks(&self) -> u64 {
        let phase = self.problem.switch + self.flight;
        self.slots() as u64 * self.units.slot + self.phases() as u64 * phase
    }

    /// Slots of all phases.
    pub(super) fn slots(&self) -> usize {
        self.links.slots()
    }

    /// The streams of every phase in the order of their slots.
    pub(super) fn plan(&self) -> Plan {
        let mut phases: Vec<Vec<(u32, Stream)>> = vec![Vec::new(); self.phases()];
        for x in 0..self.problem.set.len() as u32 {
            let mut units: Vec<usize> = self.units.of(x).collect();
            units.sort_by_key(|&unit| (&self.places[unit].cells, self.places[unit].slot));
            for &unit in &units {
                let place = &self.places[unit];
                let phase = &mut phases[self.phase_of(place.slot)];
                let words = self.units.words[unit];
                if self.continues(unit as u32)
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
