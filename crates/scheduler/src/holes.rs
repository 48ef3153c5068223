//! Where a timetable that stands has room for more.
//!
//! Phases were planned and their slots stay where they are; some connections are new. For each of
//! them this module says in which phase it would best go, as the agents' time tells: where both of
//! its agents are idle together for as long as it takes, before the phase is over. Where no phase
//! has such a hole, a phase gets longer; then a connection may be *cut* instead and its parts
//! dealt out to the longest holes of several phases, if that costs less.
//!
//! Long connections are dealt first. What is dealt takes its time, so that the next one finds it
//! taken. A cut is worth [`PART`] of a switch for each part beyond the first, since each takes
//! channels and has to be set up; no part is shorter than that either.
//!
//! # What this module does not do
//!
//! Routes are the router's, which is told what links are busy and may put a connection elsewhere. Connections that ask
//! for a bandwidth or a latency, or have a place in the order, are dealt no phase and stay whole:
//! what they were promised is promised for all of their words together.

use std::cmp::Reverse;

use conset_ir::{CellId, ConnectionId, ConnectionSet, LinkId, Machine, PhaseRoutes, Slot};

use crate::cost::Costs;

/// A part of a new connection, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// Words of it.
    pub words: u32,
    /// Where there is room for them; none where there is no saying.
    pub place: Option<Place>,
}

/// Where there is room for a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The phase.
    pub phase: u32,
    /// Clocks by which the phase gets longer.
    pub growth: u64,
    /// Links that carry as much as they can at that time, ascending.
    pub busy: Vec<LinkId>,
}

/// The share of a switch that a part must be worth.
const PART: u64 = 4;

/// Parts of a connection at most.
const PARTS: usize = 8;

/// New connections times phases that are looked at; beyond, nothing is said.
const LOOKED_AT: usize = 1 << 22;

/// For each of some new connections of `set` the phases with room for it. `phases` and `slots` are
/// what stands; whose routes they are is not asked. `closed` are phases that some of the new ones
/// must not be dealt to, ascending.
pub fn deal(
    machine: &Machine,
    set: &ConnectionSet,
    phases: &[PhaseRoutes],
    slots: &[Vec<Slot>],
    new: &[ConnectionId],
    closed: &[(ConnectionId, u32)],
) -> Vec<Vec<Dealt>> {
    let whole = |&id: &ConnectionId| vec![Dealt { words: set.get(id).words, place: None }];
    let mut dealt: Vec<Vec<Dealt>> = new.iter().map(whole).collect();
    if phases.is_empty() || new.len().saturating_mul(phases.len()) > LOOKED_AT {
        return dealt;
    }
    let mut ordered = vec![false; if set.order().is_empty() { 0 } else { set.len() }];
    for &(before, after) in set.order() {
        ordered[before.index()] = true;
        ordered[after.index()] = true;
    }
    let free = |id: ConnectionId| {
        let c = set.get(id);
        let asks = c.min_bandwidth.is_some() || c.max_latency.is_some();
        !asks && !ordered.get(id.index()).is_some_and(|&ordered| ordered)
    };
    let mut rows: Vec<usize> = (0..new.len()).filter(|&row| free(new[row])).collect();
    rows.sort_by_key(|&row| (Reverse(set.get(new[row]).words), new[row]));
    let asked = rows.iter().map(|&row| new[row]);
    let mut room = Room::new(machine, set, phases, slots, asked);
    for row in rows {
        let id = new[row];
        let from = closed.partition_point(|pair| pair.0 < id);
        let count = closed[from..].partition_point(|pair| pair.0 == id);
        dealt[row] = room.deal(set, id, &closed[from..from + count]);
    }
    dealt
}

/// A hole of a phase: when it begins, and its clocks up to the phase's end.
#[derive(Clone, Copy)]
struct Hole {
    phase: usize,
    start: u64,
    clocks: u64,
    /// Whether nothing comes after it, so that it can be longer than the phase.
    last: bool,
}

/// What the agents of new connections have left.
struct Room<'a> {
    machine: &'a Machine,
    costs: Costs,
    ends: Vec<u64>,
    /// The row of each side that somebody asks for.
    row_of: Vec<u32>,
    /// The slots of those sides, by row; ascending by phase.
    booked: Vec<Vec<(u32, Slot)>>,
    /// The row of each cell that somebody asks for, and its channels in use by row and phase.
    cell_row: Vec<u32>,
    used: Vec<u32>,
    phases: &'a [PhaseRoutes],
    slots: &'a [Vec<Slot>],
}

/// No row: nobody asks.
const NONE: u32 = u32::MAX;

impl<'a> Room<'a> {
    fn new(
        machine: &'a Machine,
        set: &ConnectionSet,
        phases: &'a [PhaseRoutes],
        slots: &'a [Vec<Slot>],
        asked: impl Iterator<Item = ConnectionId>,
    ) -> Self {
        let costs = Costs::new(machine.parameters());
        let mut this = Self {
            machine,
            costs,
            ends: vec![0; phases.len()],
            row_of: vec![NONE; costs.side_count(machine)],
            booked: Vec::new(),
            cell_row: vec![NONE; machine.cell_count()],
            used: Vec::new(),
            phases,
            slots,
        };
        let mut cells = 0;
        for id in asked {
            let connection = set.get(id);
            for side in costs.sides(connection) {
                if this.row_of[side as usize] == NONE {
                    this.row_of[side as usize] = this.booked.len() as u32;
                    this.booked.push(Vec::new());
                }
            }
            for cell in [connection.source, connection.target] {
                if this.cell_row[cell.index()] == NONE {
                    this.cell_row[cell.index()] = cells;
                    cells += 1;
                }
            }
        }
        this.used = vec![0; cells as usize * phases.len()];
        for (phase, (routes, slots)) in phases.iter().zip(slots).enumerate() {
            for (route, &slot) in routes.iter().zip(slots) {
                this.ends[phase] = this.ends[phase].max(slot.end());
                this.book((route.cells[0], route.cells[route.cells.len() - 1]), phase, slot);
                for cell in route.cells {
                    this.use_channel(*cell, phase);
                }
            }
        }
        this
    }

    fn use_channel(&mut self, cell: CellId, phase: usize) {
        let row = self.cell_row[cell.index()];
        if row != NONE {
            self.used[row as usize * self.phases.len() + phase] += 1;
        }
    }

    fn has_channel(&self, cell: CellId, phase: usize) -> bool {
        let row = self.cell_row[cell.index()] as usize;
        self.used[row * self.phases.len() + phase] < self.machine.parameters().channels_per_cell
    }

    fn book(&mut self, ends: (CellId, CellId), phase: usize, slot: Slot) {
        let [a, b] = self.costs.sides_of(ends.0, ends.1);
        for side in std::iter::once(a).chain((a != b).then_some(b)) {
            let row = self.row_of[side as usize];
            if row != NONE {
                let booked = &mut self.booked[row as usize];
                let at = booked.partition_point(|at| at.0 <= phase as u32);
                booked.insert(at, (phase as u32, slot));
            }
        }
    }

    /// Takes the room for a connection, in parts where that is better.
    fn deal(
        &mut self,
        set: &ConnectionSet,
        id: ConnectionId,
        closed: &[(ConnectionId, u32)],
    ) -> Vec<Dealt> {
        let connection = set.get(id);
        let words = connection.words;
        let itself = connection.source == connection.target;
        let duration = self.costs.of_words(words, connection, itself);
        let mut holes = Vec::new();
        let mut best: Option<(u64, Hole)> = None;
        let [a, b] = self.costs.sides(connection).map(|side| self.row_of[side as usize] as usize);
        let (mut rest_a, mut rest_b) = (&self.booked[a][..], &self.booked[b][..]);
        for phase in 0..self.phases.len() {
            let (at_a, at_b) = (take_phase(&mut rest_a, phase), take_phase(&mut rest_b, phase));
            if closed.binary_search(&(id, phase as u32)).is_ok()
                || !self.has_channel(connection.source, phase)
                || !self.has_channel(connection.target, phase)
            {
                continue;
            }
            let (longest, fit) = search(phase, self.ends[phase], duration, at_a, at_b);
            let growth = fit.start.saturating_add(duration).saturating_sub(self.ends[phase]);
            if best.is_none_or(|best| growth < best.0) {
                best = Some((growth, fit));
            }
            holes.push(longest);
        }
        let Some((growth, hole)) = best else { return vec![Dealt { words, place: None }] };
        let phase_more = duration + self.machine.parameters().switch_clocks();
        let parts = self.cut(words, duration, holes, growth.min(phase_more));
        let parts = parts.unwrap_or_else(|| vec![(hole, words)]);
        let mut dealt = Vec::with_capacity(parts.len());
        for (hole, words) in parts {
            let duration = self.costs.of_words(words, connection, itself);
            let slot = Slot { start: hole.start, duration };
            let growth = slot.end().saturating_sub(self.ends[hole.phase]);
            let busy = self.busy(hole.phase, slot);
            self.ends[hole.phase] += growth;
            self.book((connection.source, connection.target), hole.phase, slot);
            for cell in [connection.source, connection.target] {
                self.use_channel(cell, hole.phase);
            }
            let place = Place { phase: hole.phase as u32, growth, busy };
            dealt.push(Dealt { words, place: Some(place) });
        }
        dealt
    }

    /// The links of a phase that carry as many streams as they can at some time of a slot.
    fn busy(&self, phase: usize, slot: Slot) -> Vec<LinkId> {
        let parameters = self.machine.parameters();
        let share = parameters.access_clocks_per_word / parameters.link_clocks_per_word;
        let meets = |other: &Slot| other.start < slot.end() && slot.start < other.end();
        let routes = self.phases[phase].iter().zip(&self.slots[phase]);
        let met = routes.filter(|row| meets(row.1)).flat_map(|(route, _)| route.links());
        let mut links: Vec<LinkId> = met.copied().collect();
        links.sort_unstable();
        let chunks = links.chunk_by(|a, b| a == b);
        chunks.filter(|chunk| chunk.len() as u64 >= u64::from(share.max(1))).map(|c| c[0]).collect()
    }

    /// Deals words to the longest holes, where phases get longer by less than `most`.
    fn cut(
        &self,
        words: u32,
        duration: u64,
        mut holes: Vec<Hole>,
        most: u64,
    ) -> Option<Vec<(Hole, u32)>> {
        let setup = u64::from(self.machine.parameters().stream_setup);
        let word = (duration.saturating_sub(setup) / u64::from(words)).max(1);
        let least = (self.machine.parameters().switch_clocks() / PART).max(setup).max(word);
        if most == 0 || u64::from(words) * word < 2 * least {
            return None;
        }
        holes.sort_by_key(|hole| (Reverse(hole.clocks), hole.phase));
        holes.truncate(PARTS);
        let fit = |hole: &Hole| {
            u32::try_from(hole.clocks.saturating_sub(setup) / word).unwrap_or(u32::MAX)
        };
        let least_words = u32::try_from(least.div_ceil(word)).ok()?;
        let mut left = words;
        let mut parts: Vec<(Hole, u32)> = Vec::new();
        for hole in holes {
            let mut part = fit(&hole).min(left);
            // What is left must not be too short either.
            if part < left && left - part < least_words {
                part = left.saturating_sub(least_words);
            }
            if left == 0 || part < least_words {
                break;
            }
            left -= part;
            parts.push((hole, part));
        }
        // The rest makes a phase longer: the hole that is the last of its phase is stretched.
        let mut growth = 0;
        if left > 0 {
            let stretched = parts.iter_mut().rev().find(|part| part.0.last)?;
            let clocks = u64::from(stretched.1 + left) * word + setup;
            growth = clocks.saturating_sub(stretched.0.clocks);
            stretched.1 += left;
        }
        let price = growth + least * (parts.len() as u64).saturating_sub(1);
        (parts.len() > 1 && price < most).then_some(parts)
    }
}

/// The slots of one phase, which are the first of the rest.
fn take_phase<'a>(rest: &mut &'a [(u32, Slot)], phase: usize) -> &'a [(u32, Slot)] {
    let (of, after) = rest.split_at(rest.partition_point(|at| at.0 <= phase as u32));
    *rest = after;
    of
}

/// The longest hole of two sides in a phase, and the first place for a whole duration, which may
/// be beyond the phase's end.
fn search(
    phase: usize,
    end: u64,
    duration: u64,
    a: &[(u32, Slot)],
    b: &[(u32, Slot)],
) -> (Hole, Hole) {
    let mut busy: Vec<(u64, u64)> =
        a.iter().chain(b).map(|(_, slot)| (slot.start, slot.end())).collect();
    busy.sort_unstable();
    let mut longest = Hole { phase, start: 0, clocks: 0, last: false };
    let mut fit = None;
    let mut now = 0;
    for (start, stop) in busy {
        let clocks = start.saturating_sub(now);
        if clocks > longest.clocks {
            longest = Hole { phase, start: now, clocks, last: false };
        }
        if fit.is_none() && clocks >= duration {
            fit = Some(Hole { phase, start: now, clocks, last: false });
        }
        now = now.max(stop);
    }
    let last = Hole { phase, start: now, clocks: end.saturating_sub(now), last: true };
    if last.clocks >= longest.clocks {
        longest = last;
    }
    (longest, fit.unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use conset_ir::{ChannelId, Connection};
    use proptest::prelude::*;

    use super::*;

    fn standing(
        machine: &Machine,
        rows: &[(usize, u32, u32, u32, u64)],
    ) -> (Vec<PhaseRoutes>, Vec<Vec<Slot>>, Vec<Connection>) {
        let phases = rows.iter().map(|row| row.0 + 1).max().unwrap_or(0);
        let mut routes = vec![PhaseRoutes::new(); phases];
        let mut slots = vec![Vec::new(); phases];
        let mut connections = Vec::new();
        let costs = Costs::new(machine.parameters());
        for &(phase, source, target, words, start) in rows {
            let connection = Connection::new(CellId(source), CellId(target), words);
            let duration = costs.of_words(words, &connection, source == target);
            let id = ConnectionId(connections.len() as u32);
            // Only the ends matter here.
            let cells = [CellId(source), CellId(target)];
            routes[phase].push(id, words, &cells, &[LinkId(0)], &[ChannelId(0); 2]).unwrap();
            slots[phase].push(Slot { start, duration });
            connections.push(connection);
        }
        (routes, slots, connections)
    }

    fn dealt(rows: &[(usize, u32, u32, u32, u64)], new: Connection) -> Vec<(u32, Option<u32>)> {
        let machine = Machine::from_spec("mesh:4").unwrap();
        let (routes, slots, mut connections) = standing(&machine, rows);
        let id = ConnectionId(connections.len() as u32);
        connections.push(new);
        let set = ConnectionSet::new("s", connections).unwrap();
        let dealt = deal(&machine, &set, &routes, &slots, &[id], &[]).pop().unwrap();
        dealt.iter().map(|d| (d.words, d.place.as_ref().map(|place| place.phase))).collect()
    }

    #[test]
    fn a_hole_is_found_and_else_what_grows_least() {
        let c = |words| Connection::new(CellId(0), CellId(1), words);
        // Agent 0 sends until 1000 in phase 0; phase 1 has a hole from 200 to 600.
        let rows = [(0, 0, 2, 500, 0), (1, 0, 2, 100, 0), (1, 3, 1, 200, 600)];
        assert_eq!(dealt(&rows, c(200)), [(200, Some(1))]);
        // Phase 0 gets longer by 402, phase 1 by as much as is sent.
        assert_eq!(dealt(&rows, c(201)), [(201, Some(0))]);
        assert_eq!(dealt(&[], c(201)), [(201, None)]);
    }

    #[test]
    fn what_is_long_is_dealt_in_parts() {
        // Both phases are 2000 long, and idle at the end for 1400 and 1200 clocks.
        let rows = [(0, 0, 2, 300, 0), (0, 3, 2, 700, 600), (1, 0, 2, 400, 0), (1, 3, 2, 600, 800)];
        let long = Connection::new(CellId(0), CellId(1), 1000);
        assert_eq!(dealt(&rows, long.clone()), [(700, Some(0)), (300, Some(1))]);
        // What does not fit makes one of them longer.
        let longer = Connection { words: 1400, ..long.clone() };
        let parts = dealt(&rows, longer);
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), 1400);
        assert_eq!(parts.len(), 2);
        // What asks for something stays whole and is told nothing.
        let asks = Connection { min_bandwidth: Some(1), ..long };
        assert_eq!(dealt(&rows, asks), [(1000, None)]);
    }

    proptest! {
        #[test]
        fn all_words_are_dealt_and_parts_are_not_short(
            rows in prop::collection::vec((0usize..4, 0u32..4, 0u32..4, 1u32..900, 0u64..3000), 0..20),
            new in prop::collection::vec((0u32..4, 0u32..4, 1u32..4000), 1..6),
        ) {
            let machine = Machine::from_spec("mesh:4").unwrap();
            let rows: Vec<_> = rows.into_iter().filter(|row| row.1 != row.2).collect();
            let (routes, slots, mut connections) = standing(&machine, &rows);
            let first = connections.len() as u32;
            connections.extend(new.iter().map(|&(a, b, w)| Connection::new(CellId(a), CellId(b), w)));
            let ids: Vec<_> = (first..connections.len() as u32).map(ConnectionId).collect();
            let set = ConnectionSet::new("s", connections).unwrap();
            for (dealt, &(_, _, words)) in deal(&machine, &set, &routes, &slots, &ids, &[]).iter().zip(&new) {
                prop_assert_eq!(dealt.iter().map(|part| part.words).sum::<u32>(), words);
                prop_assert!(dealt.len() <= PARTS);
                prop_assert!(dealt.len() == 1 || dealt.iter().all(|part| part.words >= 66));
            }
        }
    }
}
