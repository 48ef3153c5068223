//! The negotiation itself: who uses what, what it costs, and passes over the units in conflict.

use std::cmp::Reverse;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::units::Units;
use super::{Config, ordered};
use crate::plan::{Plan, Stream};
use crate::problem::Problem;
use crate::route::{HOP, RouteSearch};

/// The most that a resource costs: routes of 4096 hops and cells stay far below 2^32.
const DEAREST: u32 = 1 << 18;

/// Resources up to which slots are added: some hundred megabytes.
pub(super) const RESOURCES: u64 = 1 << 26;

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

/// A resource's users, and what its overuse has cost so far.
#[derive(Clone, Copy, Default)]
struct Use {
    users: u16,
    history: u16,
}

/// Where a unit is.
#[derive(Clone, Default)]
struct Place {
    slot: u32,
    /// The cells of its route; empty while the unit has no place.
    cells: Vec<u32>,
}

#[derive(Clone)]
pub(super) struct Negotiation<'a> {
    problem: &'a Problem<'a>,
    config: &'a Config,
    units: &'a Units,
    phase_of: Vec<u32>,
    slots_of: Vec<Vec<u32>>,
    /// By slot, then edge.
    links: Vec<Use>,
    /// By slot, then port.
    ports: Vec<Use>,
    /// By phase, then cell.
    channels: Vec<Use>,
    places: Vec<Place>,
    /// Overuses of links and ports, and of channels.
    overuse: u64,
    channel_overuse: u64,
    present: u32,
    rng: ChaCha8Rng,
    pub(super) work: u64,
    pub(super) passes: u32,
    search: RouteSearch,
    /// Scratch: slots by what their ports cost.
    order: Vec<(u32, u32, u32)>,
    /// Breaks ties between slots and between links, another way each time.
    salt: u32,
}

/// What the next user of a resource pays beside the resource's own cost.
#[inline]
fn extra(of: Use, capacity: u32, base: u32, present: u32) -> u32 {
    let over = (u32::from(of.users) + 1).saturating_sub(capacity);
    let base = base + u32::from(of.history);
    base + (((base * over.min(1 << 12)) >> 6) * present).min(DEAREST)
}

/// A resource whose own cost is nothing: what conflicts add alone.
#[inline]
fn penalty(of: Use, capacity: u32, base: u32, present: u32) -> u32 {
    extra(of, capacity, base, present) - base
}

impl<'a> Negotiation<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        config: &'a Config,
        units: &'a Units,
        phases: u32,
        seed: u64,
    ) -> Self {
        let slots = units.fewest_slots.max(phases);
        let phase_of: Vec<u32> = (0..slots)
            .map(|slot| (u64::from(slot) * u64::from(phases) / u64::from(slots)) as u32)
            .collect();
        let mut slots_of = vec![Vec::new(); phases as usize];
        for (slot, &phase) in phase_of.iter().enumerate() {
            slots_of[phase as usize].push(slot as u32);
        }
        let cells = problem.cell_count();
        Self {
            problem,
            config,
            units,
            links: vec![Use::default(); slots as usize * problem.edge_count()],
            ports: vec![Use::default(); slots as usize * problem.port_count],
            channels: vec![Use::default(); phases as usize * cells],
            phase_of,
            slots_of,
            places: vec![Place::default(); units.count()],
            overuse: 0,
            channel_overuse: 0,
            present: config.present_first,
            rng: ChaCha8Rng::seed_from_u64(seed),
            work: 0,
            passes: 0,
            search: RouteSearch::new(cells),
            order: Vec::new(),
            salt: 0,
        }
    }

    /// Negotiates until nothing is overused, with more slots and phases where it stalls.
    pub(super) fn settle(&mut self, budget: u64) -> Outcome {
        let mut open: Vec<u32> = (0..self.units.count() as u32).collect();
        // Far units first: they are the hardest to place.
        let hops = |unit: u32| self.problem.hops(self.units.connection[unit as usize] as usize);
        open.shuffle(&mut self.rng);
        open.sort_by_key(|&unit| Reverse(hops(unit)));
        let is_short = self.units.clocks(self.problem) < self.problem.switch;
        loop {
            match self.negotiate(open, self.config.patience, budget) {
                Outcome::Stalled => {}
                ended => return ended,
            }
            if self.resources() > RESOURCES {
                return Outcome::Exhausted;
            }
            // A phase where channels are what is missing, unless slots cost less.
            let scarce = self.channel_overuse * 8 > self.overuse;
            if self.overuse == 0 || (scarce && !is_short) {
                self.add_phase();
            } else {
                // As many slots as what is overused would fill, or one.
                let hops: usize = self.places.iter().map(|place| place.cells.len() + 1).sum();
                let slots = self.phase_of.len() as u64;
                let missing = (slots * self.overuse / (2 * hops as u64).max(1)).max(1);
                (0..missing).for_each(|_| self.add_slot());
            }
            self.forget();
            open = self.open();
        }
    }

    /// Resources of all slots and phases.
    fn resources(&self) -> u64 {
        (self.links.len() + self.ports.len() + self.channels.len()) as u64
    }

    /// Negotiates with a slot fewer, and so many passes without progress at most; what does not
    /// settle is left as it is.
    pub(super) fn shrink(&mut self, patience: u32, budget: u64) -> Outcome {
        if self.phase_of.len() <= self.units.fewest_slots as usize {
            return Outcome::Stalled;
        }
        // Whoever called has copied everything.
        self.work += self.resources() / 32;
        let open = self.remove_slot();
        self.forget();
        self.negotiate(open, patience, budget)
    }

    /// Passes over units until nothing is overused or there is no progress.
    fn negotiate(&mut self, mut open: Vec<u32>, patience: u32, budget: u64) -> Outcome {
        let (mut least, mut stalled) = (u64::MAX, 0);
        loop {
            self.passes += 1;
            for &unit in &open {
                self.remove(unit);
                self.place(unit);
                if self.work >= budget {
                    return Outcome::Exhausted;
                }
            }
            let now = self.overuse + self.channel_overuse;
            if now == 0 {
                return Outcome::Settled;
            }
            self.remember();
            self.work += self.resources() / 32 + self.units.count() as u64 / 2;
            self.present = (self.present
                + (self.present * self.config.present_growth).div_ceil(64))
            .min(self.config.present_most);
            if now < least {
                (least, stalled) = (now, 0);
            } else {
                stalled += 1;
            }
            if stalled > patience {
                return Outcome::Stalled;
            }
            open = self.open();
        }
    }

    /// Units in conflict and a few others, in random order.
    fn open(&mut self) -> Vec<u32> {
        let mut open = Vec::new();
        for unit in 0..self.units.count() as u32 {
            if self.is_in_conflict(unit) || self.rng.random_range(0..self.config.shaken) == 0 {
                open.push(unit);
            }
        }
        open.shuffle(&mut self.rng);
        open
    }

    /// Takes the slot with the fewest units away from the phase with the most slots; the units
    /// that lose their place.
    fn remove_slot(&mut self) -> Vec<u32> {
        let mut users = vec![0u32; self.phase_of.len()];
        self.places.iter().for_each(|place| users[place.slot as usize] += 1);
        let most = self.slots_of.iter().map(Vec::len).max().unwrap_or(0);
        let candidates = (0..self.phase_of.len() as u32)
            .filter(|&slot| self.slots_of[self.phase_of[slot as usize] as usize].len() == most);
        let gone = candidates.min_by_key(|&slot| users[slot as usize]).expect("there is a slot");
        let mut open: Vec<u32> = Vec::new();
        for unit in 0..self.units.count() as u32 {
            if self.places[unit as usize].slot == gone {
                self.remove(unit);
                open.push(unit);
            }
        }
        // Slots behind it move up by one, so those of a phase stay in ascending order.
        let phase = self.phase_of[gone as usize] as usize;
        self.slots_of[phase].retain(|&slot| slot != gone);
        self.phase_of.remove(gone as usize);
        for slots in &mut self.slots_of {
            slots.iter_mut().filter(|slot| **slot > gone).for_each(|slot| *slot -= 1);
        }
        for place in &mut self.places {
            place.slot -= u32::from(place.slot > gone);
        }
        let take = |of: &mut Vec<Use>, width: usize| {
            of.drain(gone as usize * width..(gone as usize + 1) * width);
        };
        take(&mut self.links, self.problem.edge_count());
        take(&mut self.ports, self.problem.port_count);
        open
    }

    /// Splits the phase with the most slots in two; adds a slot where none has two.
    fn add_phase(&mut self) {
        let new = self.slots_of.len() as u32;
        let longest = (0..self.slots_of.len()).max_by_key(|&phase| self.slots_of[phase].len());
        let slots = &mut self.slots_of[longest.expect("there is a phase")];
        if slots.len() < 2 {
            self.add_slot();
            return self.add_phase();
        }
        let half = slots.split_off(slots.len() / 2);
        half.iter().for_each(|&slot| self.phase_of[slot as usize] = new);
        self.slots_of.push(half);
        let count = self.slots_of.len() * self.problem.cell_count();
        self.channels.resize(count, Use::default());
        self.channels.iter_mut().for_each(|of| of.users = 0);
        self.channel_overuse = 0;
        for x in 0..self.problem.set.len() as u32 {
            let first = self.units.of(x).start as u32;
            self.count_channels(first, true);
        }
    }

    /// Adds a slot to the phase with the fewest.
    fn add_slot(&mut self) {
        let slot = self.phase_of.len() as u32;
        let phases = self.slots_of.iter().enumerate();
        let phase = phases.min_by_key(|(_, slots)| slots.len()).expect("there is a phase").0;
        self.phase_of.push(phase as u32);
        self.slots_of[phase].push(slot);
        self.links.resize(self.phase_of.len() * self.problem.edge_count(), Use::default());
        self.ports.resize(self.phase_of.len() * self.problem.port_count, Use::default());
    }

    /// Forgets part of what conflicts have cost: with more room they are other ones.
    fn forget(&mut self) {
        let kept = self.config.history_kept;
        let all = [&mut self.links, &mut self.ports, &mut self.channels];
        for of in all.into_iter().flatten() {
            of.history = (u32::from(of.history) * kept / 64) as u16;
        }
    }

    /// Makes what is overused dearer.
    fn remember(&mut self) {
        let (history, most) = (self.config.history, self.config.history_most);
        let add = |of: &mut Use, capacity: u32| {
            let over = u32::from(of.users).saturating_sub(capacity).min(4);
            of.history = (u32::from(of.history) + history * over).min(most) as u16;
        };
        let edges = self.problem.edge_count();
        for row in self.links.chunks_mut(edges.max(1)) {
            for (of, &capacity) in row.iter_mut().zip(&self.problem.capacity) {
                add(of, u32::from(capacity));
            }
        }
        self.ports.iter_mut().for_each(|of| add(of, 1));
        self.channels.iter_mut().for_each(|of| add(of, self.problem.channels));
    }

    fn is_in_conflict(&self, unit: u32) -> bool {
        let Place { slot, cells } = &self.places[unit as usize];
        let x = self.units.connection[unit as usize] as usize;
        let ports = self.problem.ports[x];
        let port = |port: u32| self.ports[*slot as usize * self.problem.port_count + port as usize];
        if ports.iter().any(|&p| port(p).users > 1) {
            return true;
        }
        let row = self.phase_of[*slot as usize] as usize * self.problem.cell_count();
        let full = |&cell: &u32| {
            u32::from(self.channels[row + cell as usize].users) > self.problem.channels
        };
        if cells.iter().any(full) {
            return true;
        }
        let row = *slot as usize * self.problem.edge_count();
        cells.windows(2).any(|pair| {
            let edge = self.problem.edge(pair[0], pair[1]);
            self.links[row + edge].users > self.problem.capacity[edge]
        })
    }

    /// Books or gives back what a unit uses, channels apart.
    fn count(&mut self, unit: u32, add: bool) {
        let x = self.units.connection[unit as usize] as usize;
        let Place { slot, cells } = &self.places[unit as usize];
        let slot = *slot as usize;
        let mut change = |of: &mut Use, capacity: u16| {
            if add {
                of.users += 1;
                self.overuse += u64::from(of.users > capacity);
            } else {
                self.overuse -= u64::from(of.users > capacity);
                of.users -= 1;
            }
        };
        let [source, target] = self.problem.ports[x];
        let row = slot * self.problem.port_count;
        change(&mut self.ports[row + source as usize], 1);
        if target != source {
            change(&mut self.ports[row + target as usize], 1);
        }
        let row = slot * self.problem.edge_count();
        for pair in cells.windows(2) {
            let edge = self.problem.edge(pair[0], pair[1]);
            change(&mut self.links[row + edge], self.problem.capacity[edge]);
        }
    }

    /// Whether another unit of the connection is on the same route in the slot before, so that
    /// both are one stream.
    fn continues(&self, unit: u32) -> bool {
        let place = &self.places[unit as usize];
        let slots = &self.slots_of[self.phase_of[place.slot as usize] as usize];
        let Ok(rank) = slots.binary_search(&place.slot) else { return false };
        let Some(before) = rank.checked_sub(1).map(|rank| slots[rank]) else { return false };
        let others = self.units.of(self.units.connection[unit as usize]);
        others.into_iter().any(|other| {
            let other = &self.places[other];
            !other.cells.is_empty() && other.slot == before && other.cells == place.cells
        })
    }

    /// Books or gives back the channels of all streams of a unit's connection.
    fn count_channels(&mut self, unit: u32, add: bool) {
        for other in self.units.of(self.units.connection[unit as usize]) {
            if self.places[other].cells.is_empty() || self.continues(other as u32) {
                continue;
            }
            let place = &self.places[other];
            let row = self.phase_of[place.slot as usize] as usize * self.problem.cell_count();
            for &cell in &place.cells {
                let of = &mut self.channels[row + cell as usize];
                if add {
                    of.users += 1;
                    self.channel_overuse += u64::from(u32::from(of.users) > self.problem.channels);
                } else {
                    self.channel_overuse -= u64::from(u32::from(of.users) > self.problem.channels);
                    of.users -= 1;
                }
            }
        }
    }

    fn remove(&mut self, unit: u32) {
        if self.places[unit as usize].cells.is_empty() {
            return;
        }
        self.count(unit, false);
        self.count_channels(unit, false);
        self.places[unit as usize].cells.clear();
        self.count_channels(unit, true);
    }

    /// Gives a unit the cheapest slot and route.
    fn place(&mut self, unit: u32) {
        let x = self.units.connection[unit as usize] as usize;
        let slots = self.phase_of.len();
        let [source, target] = self.problem.ports[x];
        let hops = u32::from(self.problem.hops(x)) * HOP;
        self.order.clear();
        self.salt = self.rng.random();
        let (count, base, present) = (self.problem.port_count, self.config.port, self.present);
        for slot in 0..slots {
            let row = slot * count;
            let mut cost = penalty(self.ports[row + source as usize], 1, base, present);
            if target != source {
                cost += penalty(self.ports[row + target as usize], 1, base, present);
            }
            let tie = (slot as u32 ^ self.salt).wrapping_mul(0x9e37_79b9) >> 16;
            self.order.push((cost, tie, slot as u32));
        }
        self.work += (slots / 16) as u64;
        let tries = self.config.tries as usize;
        if self.order.len() > tries {
            self.order.select_nth_unstable(tries);
        }
        self.order[..tries.min(slots)].sort_unstable();
        let mut best = self.beside_siblings(unit);
        let mut cells = std::mem::take(&mut self.places[unit as usize].cells);
        for row in 0..self.order.len().min(self.config.tries as usize) {
            let (cost, _, slot) = self.order[row];
            let limit = best.as_ref().map_or(u32::MAX, |best| best.0);
            if cost + hops >= limit {
                break;
            }
            if let Some(route) = self.route(x, slot, limit - cost) {
                best = Some((cost + route, slot, None));
                self.search.trace(self.problem, x, &mut cells);
            }
        }
        let (_, slot, sibling) = best.expect("every unit has a way");
        if let Some(sibling) = sibling {
            cells.clear();
            cells.extend_from_slice(&self.places[sibling as usize].cells);
        }
        self.count_channels(unit, false);
        self.places[unit as usize] = Place { slot, cells };
        self.count_channels(unit, true);
        self.count(unit, true);
    }

    /// The cheapest place directly before or after another unit of the connection on its route,
    /// where no channels have to be taken: cost, slot and the other unit.
    fn beside_siblings(&self, unit: u32) -> Option<(u32, u32, Option<u32>)> {
        let x = self.units.connection[unit as usize];
        let mut best: Option<(u32, u32, Option<u32>)> = None;
        for other in self.units.of(x) {
            let place = &self.places[other];
            if place.cells.is_empty() {
                continue;
            }
            let slots = &self.slots_of[self.phase_of[place.slot as usize] as usize];
            let rank = slots.binary_search(&place.slot).expect("a slot of its phase");
            let beside = [rank.checked_sub(1), Some(rank + 1)];
            for &slot in beside.into_iter().flatten().filter_map(|rank| slots.get(rank)) {
                let mut cost = 0;
                for port in self.problem.ports[x as usize] {
                    let row = slot as usize * self.problem.port_count;
                    cost +=
                        penalty(self.ports[row + port as usize], 1, self.config.port, self.present);
                }
                let row = slot as usize * self.problem.edge_count();
                for pair in place.cells.windows(2) {
                    let edge = self.problem.edge(pair[0], pair[1]);
                    let capacity = u32::from(self.problem.capacity[edge]);
                    cost += extra(self.links[row + edge], capacity, HOP, self.present);
                }
                if best.is_none_or(|best| cost < best.0) {
                    best = Some((cost, slot, Some(other as u32)));
                }
            }
        }
        best
    }

    /// The cost of the cheapest route in a slot if it is less than `limit`.
    fn route(&mut self, x: usize, slot: u32, limit: u32) -> Option<u32> {
        let problem = self.problem;
        let links = &self.links[slot as usize * problem.edge_count()..];
        let phase = self.phase_of[slot as usize] as usize;
        let channels = &self.channels[phase * problem.cell_count()..];
        let (present, salt) = (self.present, self.salt);
        let edge_cost = |edge: usize| {
            let jitter = (edge as u32 ^ salt).wrapping_mul(0x85eb_ca6b) >> 30;
            extra(links[edge], u32::from(problem.capacity[edge]), HOP, present) + jitter
        };
        let cell_cost =
            |cell: u32| penalty(channels[cell as usize], problem.channels, HOP, present);
        let found = self.search.find(problem, x, (limit, self.config.detour), edge_cost, cell_cost);
        self.work += std::mem::take(&mut self.search.work);
        found
    }

    /// Draws other random numbers from here on.
    pub(super) fn reseed(&mut self) {
        self.rng = ChaCha8Rng::seed_from_u64(self.rng.random());
    }

    /// Slots of all phases.
    pub(super) fn phases(&self) -> usize {
        self.slots_of.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.phase_of.len()
    }

    /// The streams of every phase in the order of their slots.
    pub(super) fn plan(&self) -> Plan {
        let mut phases: Vec<Vec<(u32, Stream)>> = vec![Vec::new(); self.slots_of.len()];
        for x in 0..self.problem.set.len() as u32 {
            let mut units: Vec<usize> = self.units.of(x).collect();
            units.sort_by_key(|&unit| (self.places[unit].cells.clone(), self.places[unit].slot));
            let mut open: Option<usize> = None;
            for &unit in &units {
                let place = &self.places[unit];
                let phase = &mut phases[self.phase_of[place.slot as usize] as usize];
                if self.continues(unit as u32)
                    && open.is_some()
                    && let Some((_, stream)) = phase.last_mut()
                {
                    stream.words += self.units.words[unit];
                    continue;
                }
                open = Some(unit);
                phase.push((
                    place.slot,
                    Stream {
                        connection: x,
                        words: self.units.words[unit],
                        start: 0,
                        cells: place.cells.clone(),
                    },
                ));
            }
        }
        let phases = phases.into_iter().filter(|phase| !phase.is_empty());
        Plan { phases: phases.map(ordered).collect(), clocks: 0 }
    }
}
