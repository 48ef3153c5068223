//! Places of units: the resources that a unit uses at its place, and the search for the cheapest
//! place.

use conset_ir::convert::{index, to_u32};
use rand::RngExt;

use super::{Negotiation, Placement};
use crate::slot_pathfinder::order;
use crate::slot_pathfinder::route::View;
use crate::slot_pathfinder::rows::{HOP, HOP_BASE, NEVER};

impl Negotiation<'_> {
    /// Adds or removes a unit as a user of its ports and links.
    pub(super) fn book(&mut self, unit: usize, add: bool) {
        let span = self.span(unit);
        let place = &self.places[unit];
        if place.cells.is_empty() {
            return;
        }
        let [source, target] = self.problem.ports[index(self.units.connection[unit])];
        let prices = &self.prices;
        self.overuse += self.ports.change(index(source), span, add, prices);
        if target != source {
            self.overuse += self.ports.change(index(target), span, add, prices);
        }
        for &edge in &place.edges {
            self.overuse += self.links.change(index(edge), span, add, prices);
        }
    }

    /// Whether another unit of the connection ends on the same route in the same phase where this
    /// unit starts, so that both are one stream.
    pub(super) fn continues(&self, unit: usize) -> bool {
        !self.is_first_without(unit, unit)
    }

    /// Whether a unit, which has its place, continues no unit of its connection but perhaps `left_out`.
    fn is_first_without(&self, unit: usize, left_out: usize) -> bool {
        let place = &self.places[unit];
        let mut others = self.units.of(self.units.connection[unit]);
        others.len() == 1
            || self.first.contains(&place.slot)
            || !others.any(|other| {
                let (slot, slots) = self.span(other);
                other != left_out
                    && slot + slots == index(place.slot)
                    && self.places[other].cells == place.cells
            })
    }

    /// Adds or removes a unit, which has its place, as a user of channels. It takes some unless it continues
    /// another unit; streams that begin where it ends give up theirs, and take them again without it.
    pub(super) fn book_channels(&mut self, unit: usize, add: bool) {
        if self.is_first_without(unit, unit) {
            self.book_stream(unit, add);
        }
        let (slot, slots) = self.span(unit);
        let of = self.units.of(self.units.connection[unit]);
        if of.len() == 1 || self.first.contains(&to_u32(slot + slots)) {
            return;
        }
        for next in of {
            let place = &self.places[next];
            if index(place.slot) == slot + slots
                && place.cells == self.places[unit].cells
                && self.is_first_without(next, unit)
            {
                self.book_stream(next, !add);
            }
        }
    }

    /// Adds or removes a user of the channels on a unit's route, in its phase.
    pub(super) fn book_stream(&mut self, unit: usize, add: bool) {
        let phase = self.phase_of(self.places[unit].slot);
        let phases = self.phases();
        for at in 0..self.places[unit].cells.len() {
            let cell = index(self.places[unit].cells[at]);
            let of = &mut self.channels[cell * phases + phase];
            self.channel_overuse += of.change(self.problem.channels, add);
            self.price_channels(cell, phase);
        }
    }

    /// Updates the costs of a cell's channels in the slots of a phase.
    pub(super) fn price_channels(&mut self, cell: usize, phase: usize) {
        let of = self.channels[cell * self.phases() + phase];
        let cost = of.surcharge(self.problem.channels, HOP_BASE, &self.prices);
        let slots = index(self.first[phase])..index(self.first[phase + 1]);
        let costs = &mut self.channel_costs[cell * self.links.slots()..][slots];
        if costs.first() != Some(&cost) {
            costs.fill(cost);
        }
    }

    pub(super) fn remove(&mut self, unit: usize) {
        if self.places[unit].cells.is_empty() {
            return;
        }
        self.book(unit, false);
        self.book_channels(unit, false);
        self.places[unit].cells.clear();
    }

    /// Places a unit at the cheapest start and route.
    pub(super) fn place(&mut self, unit: usize) {
        let x = self.units.connection[unit];
        let slots = usize::from(self.units.slots[unit]);
        let hops = i32::from(self.problem.hops(index(x)));
        let salt = self.rng.random::<u32>();
        self.fill_starts(index(x), (slots, self.units.words[unit]));
        let free = self.search.starts.iter().copied().min().unwrap_or(NEVER);
        let mut best = self.beside_sibling(unit);
        let mut cells = std::mem::take(&mut self.places[unit].cells);
        let mut edges = std::mem::take(&mut self.places[unit].edges);
        let (links, channels) = (&self.links, &self.channel_costs);
        let view = View { problem: self.problem, links, channels };
        let hop = HOP * i32::from(self.units.slots[unit]);
        if best.map_or(NEVER, |best| best.0) > free + hops * hop {
            let found = self.search.find(&view, (index(x), slots), salt);
            if let Some((cost, start)) =
                found.filter(|found| best.is_none_or(|best| found.0 < best.0))
            {
                best = Some((cost, start, None));
                self.search.trace(&view, (start, slots), salt, &mut cells);
            }
            self.work += std::mem::take(&mut self.search.work);
        }
        // A detour takes at least one hop more.
        let least = best.map_or(NEVER, |best| best.0);
        let is_tried = self.detours_one_in.is_some_and(|one_in| (salt >> 8).is_multiple_of(one_in));
        if is_tried && least > free + (hops + 1) * hop {
            let starts = (&self.search.starts[..], salt);
            let found = self.detours.find(&view, (index(x), slots), starts, least, &mut self.work);
            if let Some((cost, start)) = found.filter(|found| found.0 < least) {
                best = Some((cost, start, None));
                self.detours.trace(&view, (index(x), start, slots), salt, &mut cells);
            }
        }
        let (_, slot, sibling) =
            best.expect("the first slot has room for any unit, and its ends are connected");
        if let Some(sibling) = sibling {
            cells.clone_from(&self.places[sibling].cells);
        }
        edges.clear();
        edges.extend(cells.windows(2).map(|pair| to_u32(self.problem.edge(pair[0], pair[1]))));
        self.places[unit] = Placement { slot: to_u32(slot), cells, edges };
        self.book_channels(unit, true);
        self.book(unit, true);
    }

    /// Computes the cost of ports and of the order for each start of a unit of connection `x`.
    fn fill_starts(&mut self, x: usize, (slots, words): (usize, u32)) {
        let starts = &mut self.search.starts;
        let [source, target] = self.problem.ports[x];
        let (from, to) = self.ports.stretches(index(source), slots);
        starts.clear();
        starts.extend(from.iter().zip(to).map(|(from, to)| to.wrapping_sub(*from)));
        if target != source {
            let (from, to) = self.ports.stretches(index(target), slots);
            let both = starts.iter_mut().zip(from.iter().zip(to));
            both.for_each(|(sum, (a, b))| *sum = sum.wrapping_add(b.wrapping_sub(*a)));
        }
        for pair in self.first.windows(2) {
            let end = index(pair[1]).min(starts.len());
            let last = (index(pair[1]) + 1).saturating_sub(slots).max(index(pair[0]));
            starts[last.min(end)..end].fill(NEVER);
        }
        for (start, &room) in starts.iter_mut().zip(&self.room) {
            *start = if room < words { NEVER } else { *start };
        }
        for &row in self.order.of(to_u32(x)) {
            let [before, after] = self.order.pairs[index(row)];
            let is_after = index(after) == x;
            let Some(other) = self.interval(if is_after { before } else { after }) else {
                continue;
            };
            let starts = &mut self.search.starts;
            let count = starts.len();
            let broken = match is_after {
                true => &mut starts[..other.1.min(count)],
                false => &mut starts[(other.0 + 1).saturating_sub(slots).min(count)..],
            };
            let cost = order::cost(self.pair_history[index(row)], self.config.port, &self.prices);
            broken.iter_mut().for_each(|start| *start = (*start + cost).min(NEVER));
        }
    }

    /// The cheapest place directly before or after another unit of the connection, on its route,
    /// where no further channels are needed: cost, slot and the other unit. Uses the costs of
    /// [`Negotiation::fill_starts`].
    fn beside_sibling(&self, unit: usize) -> Option<(i32, usize, Option<usize>)> {
        let x = self.units.connection[unit];
        let slots = usize::from(self.units.slots[unit]);
        let mut best: Option<(i32, usize, Option<usize>)> = None;
        for other in self.units.of(x) {
            let place = &self.places[other];
            if place.cells.is_empty() {
                continue;
            }
            let (slot, count) = self.span(other);
            let phase = self.phase_of(place.slot);
            for start in [slot.checked_sub(slots), Some(slot + count)].into_iter().flatten() {
                let same =
                    (index(self.first[phase])..index(self.first[phase + 1])).contains(&start);
                let Some(&cost) = self.search.starts.get(start).filter(|_| same) else { continue };
                let links = place.edges.iter().map(|&e| self.links.cost(index(e), (start, slots)));
                // The other unit may have taken a long detour.
                let cost = links.fold(cost, i32::saturating_add);
                if cost < best.map_or(NEVER, |best| best.0) {
                    best = Some((cost, start, Some(other)));
                }
            }
        }
        best
    }
}
