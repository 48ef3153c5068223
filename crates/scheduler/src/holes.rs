//! Where a timetable that stands has room for more.
//!
//! Phases were planned and their slots stay where they are; some connections are new. For each of
//! them this module says in which phase it would best go, as the agents' time tells: where both of
//! its agents are idle together for as long as it takes, before the phase is over. Where there is
//! no such hole, a phase gets longer or a new one is opened, whichever costs less; or the
//! connection is *cut* and its parts are dealt out to the longest holes, if that costs less still.
//!
//! Long connections are dealt first. What is dealt takes its time, so that the next one finds it
//! taken. Each part beyond the first costs a share of a switch, since it takes channels
//! and has to be set up; no part is shorter than that either.
//!
//! # What this module does not do
//!
//! Routes are the router's, which is told what links are busy and may put a connection elsewhere.
//! Connections that ask for a bandwidth or a latency, or have a place in the order, are dealt no
//! phase and stay whole: what they were promised is promised for all of their words together.

use std::cmp::Reverse;

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, LinkId, Machine, PhaseRoutes, Slot,
    StreamClocks,
};

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
    /// The phase; those beyond the ones that stand are new.
    pub phase: u32,
    /// When it would run, in clocks from the phase's beginning.
    pub slot: Slot,
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

/// What stands, and what is to be put to it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The routes of each phase; of their connections nothing is asked.
    pub phases: &'a [PhaseRoutes],
    /// Their slots.
    pub slots: &'a [Vec<Slot>],
    /// The new connections.
    pub new: &'a [ConnectionId],
    /// Phases that some of the new ones must not be dealt to, ascending.
    pub closed: &'a [(ConnectionId, u32)],
    /// Phases that may be opened.
    pub open: usize,
}

/// For each of the new connections of a set the places with room for it and its parts.
pub fn deal(machine: &Machine, set: &ConnectionSet, request: Request<'_>) -> Vec<Vec<Dealt>> {
    let Request { phases, new, closed, .. } = request;
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
        !c.has_requirements() && !ordered.get(id.index()).is_some_and(|&ordered| ordered)
    };
    let mut rows: Vec<usize> = (0..new.len()).filter(|&row| free(new[row])).collect();
    rows.sort_by_key(|&row| (Reverse(set.get(new[row]).words), new[row]));
    let asked = rows.iter().map(|&row| new[row]);
    let mut room = Room::new(machine, set, request, asked);
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
    /// When each phase is over, opened ones included.
    ends: Vec<u64>,
    /// Phases there may be.
    most: usize,
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

/// Slots of a side with their phases, ascending by phase.
type Booked<'a> = &'a [(u32, Slot)];

/// No row: nobody asks.
const NONE: u32 = u32::MAX;

impl<'a> Room<'a> {
    fn new(
        machine: &'a Machine,
        set: &ConnectionSet,
        Request { phases, slots, open, .. }: Request<'a>,
        asked: impl Iterator<Item = ConnectionId>,
    ) -> Self {
        let costs = Costs::new(machine.parameters());
        let mut this = Self {
            machine,
            costs,
            ends: vec![0; phases.len()],
            most: phases.len() + open,
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
        this.used = vec![0; cells as usize * this.most];
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
            self.used[row as usize * self.most + phase] += 1;
        }
    }

    /// Channels that both ends of a connection have left in a phase.
    fn channels(&self, connection: &Connection, phase: usize) -> u32 {
        let left = |cell: CellId| {
            let used = self.used[self.cell_row[cell.index()] as usize * self.most + phase];
            self.machine.parameters().channels_per_cell.saturating_sub(used)
        };
        left(connection.source).min(left(connection.target))
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
        let stream = *self.costs.stream(connection);
        let Found { growth, hole, holes } = self.search(connection, stream.of(words), closed);
        let Some(hole) = hole else { return vec![Dealt { words, place: None }] };
        let parts = self.cut(words, stream, holes, growth);
        let parts = parts.unwrap_or_else(|| vec![(hole, words)]);
        let mut dealt = Vec::with_capacity(parts.len());
        for (hole, words) in parts {
            let slot = Slot { start: hole.start, duration: stream.of(words) };
            if hole.phase == self.ends.len() {
                self.ends.push(0);
            }
            let growth = slot.end().saturating_sub(self.ends[hole.phase]);
            let busy = self.busy(hole.phase, slot);
            self.ends[hole.phase] += growth;
            self.book((connection.source, connection.target), hole.phase, slot);
            for cell in [connection.source, connection.target] {
                self.use_channel(cell, hole.phase);
            }
            let place = Place { phase: hole.phase as u32, slot, growth, busy };
            dealt.push(Dealt { words, place: Some(place) });
        }
        dealt
    }

    /// The holes of a connection, and the place where all of it costs least.
    fn search(
        &self,
        connection: &Connection,
        duration: u64,
        closed: &[(ConnectionId, u32)],
    ) -> Found {
        let mut found = Found { growth: u64::MAX, hole: None, holes: Vec::new() };
        let sides = self.costs.sides(connection);
        let [mut rest_a, mut rest_b] =
            sides.map(|side| &self.booked[self.row_of[side as usize] as usize][..]);
        for (phase, &end) in self.ends.iter().enumerate() {
            let (at_a, at_b) = (take_phase(&mut rest_a, phase), take_phase(&mut rest_b, phase));
            let channels = self.channels(connection, phase);
            if closed.binary_search_by_key(&(phase as u32), |pair| pair.1).is_ok() || channels == 0
            {
                continue;
            }
            let add = |hole| found.holes.push((hole, channels));
            let fit = holes(phase, end, duration, (at_a, at_b), add);
            let growth = fit.start.saturating_add(duration).saturating_sub(end);
            if growth < found.growth {
                (found.growth, found.hole) = (growth, Some(fit));
            }
        }
        let opened = duration.saturating_add(self.machine.parameters().switch_clocks());
        if self.ends.len() < self.most && opened < found.growth {
            let hole = Hole { phase: self.ends.len(), start: 0, clocks: 0, last: true };
            (found.growth, found.hole) = (opened, Some(hole));
        }
        found
    }

    /// The links of a phase that carry as many streams as they can at some time of a slot.
    fn busy(&self, phase: usize, slot: Slot) -> Vec<LinkId> {
        let parameters = self.machine.parameters();
        let share = parameters.streams_per_link();
        let meets = |other: &Slot| other.start < slot.end() && slot.start < other.end();
        let Some(routes) = self.phases.get(phase) else { return Vec::new() };
        let routes = routes.iter().zip(&self.slots[phase]);
        let met = routes.filter(|row| meets(row.1)).flat_map(|(route, _)| route.links());
        let mut links: Vec<LinkId> = met.copied().collect();
        links.sort_unstable();
        let chunks = links.chunk_by(|a, b| a == b);
        chunks.filter(|chunk| chunk.len() as u64 >= u64::from(share)).map(|c| c[0]).collect()
    }

    /// Deals words to the longest holes, where phases get longer by less than `most`.
    fn cut(
        &self,
        words: u32,
        stream: StreamClocks,
        mut holes: Vec<(Hole, u32)>,
        most: u64,
    ) -> Option<Vec<(Hole, u32)>> {
        let StreamClocks { setup, word, .. } = stream;
        let least = (self.machine.parameters().switch_clocks() / PART).max(setup).max(word);
        if most <= least || stream.of(words) < 2 * least {
            return None;
        }
        let least_words = u32::try_from(least.div_ceil(word)).ok()?;
        holes.sort_by_key(|(hole, _)| (Reverse(hole.clocks), hole.phase, hole.start));
        let mut left = words;
        let mut parts: Vec<(Hole, u32)> = Vec::new();
        for &(hole, channels) in &holes {
            let mut part = stream.words_in(hole.clocks).min(left);
            // What is left must not be too short either.
            if part < left && left - part < least_words {
                part = left.saturating_sub(least_words);
            }
            if left == 0 || part < least_words || parts.len() == PARTS {
                break;
            }
            let here = parts.iter().filter(|part| part.0.phase == hole.phase).count();
            if here < channels as usize {
                left -= part;
                parts.push((hole, part));
            }
        }
        let growth = if left == 0 { 0 } else { stretch(&mut parts, &holes, left, stream)? };
        let price = growth.saturating_add(least * (parts.len() as u64).saturating_sub(1));
        (parts.len() > 1 && price < most).then_some(parts)
    }
}

/// What a connection finds.
struct Found {
    /// The clocks by which it makes everything longer if it stays whole, and where.
    growth: u64,
    hole: Option<Hole>,
    /// All holes, with the channels that are left in their phases.
    holes: Vec<(Hole, u32)>,
}

/// Puts the words that are left where a phase gets longer the least by them: behind a part that is
/// the last of its phase, or in a part of their own where there may be one more. The clocks by
/// which it does.
fn stretch(
    parts: &mut Vec<(Hole, u32)>,
    holes: &[(Hole, u32)],
    left: u32,
    stream: StreamClocks,
) -> Option<u64> {
    let place = |hole: &Hole| (hole.phase, hole.start);
    let best = holes.iter().filter(|(hole, _)| hole.last).filter_map(|(hole, channels)| {
        let same = parts.iter().position(|part| place(&part.0) == place(hole));
        let here = parts.iter().filter(|part| part.0.phase == hole.phase).count();
        if same.is_none() && (parts.len() == PARTS || here >= *channels as usize) {
            return None;
        }
        // Both are words of one connection, so the sum is no more than it has.
        let clocks = stream.of(left + same.map_or(0, |row| parts[row].1));
        Some((clocks.saturating_sub(hole.clocks), same, hole))
    });
    let (growth, same, hole) = best.min_by_key(|(growth, _, hole)| (*growth, hole.phase))?;
    match same {
        Some(row) => parts[row].1 += left,
        None => parts.push((*hole, left)),
    }
    Some(growth)
}

/// The slots of one phase, which are the first of the rest.
fn take_phase<'a>(rest: &mut Booked<'a>, phase: usize) -> Booked<'a> {
    let (of, after) = rest.split_at(rest.partition_point(|at| at.0 <= phase as u32));
    *rest = after;
    of
}

/// Adds the holes of two sides in a phase, and gives the first place for a whole duration, which
/// may be beyond the phase's end.
fn holes(
    phase: usize,
    end: u64,
    duration: u64,
    (a, b): (Booked<'_>, Booked<'_>),
    mut add: impl FnMut(Hole),
) -> Hole {
    let slots = a.iter().chain(b);
    let mut busy: Vec<(u64, u64)> = slots.map(|(_, slot)| (slot.start, slot.end())).collect();
    busy.sort_unstable();
    let mut fit = None;
    let mut now = 0;
    for (start, stop) in busy {
        if start > now {
            let hole = Hole { phase, start: now, clocks: start - now, last: false };
            if fit.is_none() && hole.clocks >= duration {
                fit = Some(hole);
            }
            add(hole);
        }
        now = now.max(stop);
    }
    let last = Hole { phase, start: now, clocks: end.saturating_sub(now), last: true };
    add(last);
    fit.unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use conset_ir::ChannelId;
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
            let duration = costs.stream(&connection).of(words);
            let id = ConnectionId(connections.len() as u32);
            // Only the ends matter here.
            let cells = [CellId(source), CellId(target)];
            routes[phase].push(id, words, &cells, &[LinkId(0)], &[ChannelId(0); 2]).unwrap();
            slots[phase].push(Slot { start, duration });
            connections.push(connection);
        }
        (routes, slots, connections)
    }

    fn dealt(
        rows: &[(usize, u32, u32, u32, u64)],
        open: usize,
        new: Connection,
    ) -> Vec<(u32, Option<u32>)> {
        let machine = Machine::from_spec("mesh:4").unwrap();
        let (routes, slots, mut connections) = standing(&machine, rows);
        let id = ConnectionId(connections.len() as u32);
        connections.push(new);
        let set = ConnectionSet::new("s", connections).unwrap();
        let request = Request { phases: &routes, slots: &slots, new: &[id], closed: &[], open };
        let dealt = deal(&machine, &set, request).pop().unwrap();
        dealt.iter().map(|d| (d.words, d.place.as_ref().map(|place| place.phase))).collect()
    }

    #[test]
    fn a_hole_is_found_and_else_what_grows_least() {
        let c = |words| Connection::new(CellId(0), CellId(1), words);
        // Agent 0 sends until 1000 in phase 0; phase 1 has a hole from 200 to 600.
        let rows = [(0, 0, 2, 500, 0), (1, 0, 2, 100, 0), (1, 3, 1, 200, 600)];
        assert_eq!(dealt(&rows, 0, c(200)), [(200, Some(1))]);
        // Whole, a phase gets longer by 402 clocks; so the least part goes elsewhere.
        assert_eq!(dealt(&rows, 0, c(201)), [(135, Some(1)), (66, Some(0))]);
        assert_eq!(dealt(&rows[..1], 0, c(60)), [(60, Some(0))]);
        assert_eq!(dealt(&[], 0, c(201)), [(201, None)]);
    }

    #[test]
    fn what_is_long_is_dealt_in_parts() {
        // Both phases are 2000 long, and idle at the end for 1400 and 1200 clocks.
        let rows = [(0, 0, 2, 300, 0), (0, 3, 2, 700, 600), (1, 0, 2, 400, 0), (1, 3, 2, 600, 800)];
        let long = Connection::new(CellId(0), CellId(1), 1000);
        assert_eq!(dealt(&rows, 0, long.clone()), [(700, Some(0)), (300, Some(1))]);
        // What does not fit makes one of them longer.
        let longer = Connection { words: 1400, ..long.clone() };
        let parts = dealt(&rows, 0, longer);
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), 1400);
        assert_eq!(parts.len(), 2);
        // All of it goes in at most `PARTS` parts, also where the last words find holes of their
        // own, which is where one more was opened once.
        let rows = [
            (1, 0, 3, 1, 132),
            (1, 0, 3, 1, 672),
            (2, 1, 2, 413, 157),
            (3, 1, 0, 1, 132),
            (0, 0, 3, 1, 1734),
            (1, 0, 1, 1, 878),
            (2, 0, 3, 1, 1115),
            (0, 0, 3, 1, 132),
        ];
        let parts = dealt(&rows, 2, Connection::new(CellId(1), CellId(3), 1580));
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), 1580);
        assert!(parts.len() <= PARTS, "{parts:?}");
        // What asks for something stays whole and is told nothing.
        let asks = Connection { min_bandwidth: Some(1), ..long };
        assert_eq!(dealt(&rows, 0, asks), [(1000, None)]);
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
            let request =
                Request { phases: &routes, slots: &slots, new: &ids, closed: &[], open: 2 };
            for (dealt, &(_, _, words)) in deal(&machine, &set, request).iter().zip(&new) {
                prop_assert_eq!(dealt.iter().map(|part| part.words).sum::<u32>(), words);
                prop_assert!(dealt.len() <= PARTS);
                prop_assert!(dealt.len() == 1 || dealt.iter().all(|part| part.words >= 66));
            }
        }
    }
}
