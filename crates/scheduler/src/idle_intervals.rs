//! Assigns new connections to the idle time of an existing timetable.
//!
//! The phases of an earlier compile keep their slots, and some connections are new. For each of
//! them this module decides in which phase it fits best with regard to agents: where both its
//! agents are idle together for long enough before the end of the phase. If there is no such
//! interval, the phase that grows least is chosen, or a new phase if that costs less. Or the
//! connection is *split* and its parts are assigned to the longest idle intervals, if that costs
//! less still.
//!
//! Long connections are assigned first. An assignment occupies its time, so later connections see
//! it as busy. Each part beyond the first costs a share of a context switch, because it takes
//! channels and a set-up; no part is shorter than that either.
//!
//! # What this module does not do
//!
//! It does not choose routes. It reports the busy links to the router, which may put a connection
//! elsewhere. Connections with a bandwidth or latency requirement, or with a place in the order,
//! get no assignment and stay whole: the requirement applies to all their words together.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, LinkId, Machine, PhaseRoutes, Slot,
    StreamClocks,
};

use crate::cost::StreamCosts;
use crate::local_index::RowId;

/// A part of a new connection, or all of it, and its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// Words of the part.
    pub words: u32,
    /// Where it fits; `None` if that was not determined.
    pub slot: Option<AssignedSlot>,
}

/// A phase, and the time in it, for a part of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedSlot {
    /// The phase. Numbers beyond the existing phases are new ones.
    pub phase: u32,
    /// The time, in clocks from the start of the phase.
    pub slot: Slot,
    /// Clocks by which the phase grows.
    pub growth: u64,
    /// Links that are fully used at that time, ascending.
    pub busy_links: Vec<LinkId>,
}

/// A part must be worth this fraction of a context switch.
const PART_SHARE: u64 = 4;

/// The most parts of a connection.
const MAX_PARTS: usize = 8;

/// New connections times phases that are examined; beyond, nothing is assigned.
const ASSIGNMENT_BUDGET: usize = 1 << 22;

/// An existing timetable, and the connections to be added to it.
#[derive(Clone, Copy, Debug)]
pub struct AssignmentRequest<'a> {
    /// The routes of each phase.
    pub phases: &'a [PhaseRoutes],
    /// Their slots.
    pub slots: &'a [Vec<Slot>],
    /// The new connections.
    pub new: &'a [ConnectionId],
    /// Phases that a connection must not be assigned to, ascending.
    pub excluded: &'a [(ConnectionId, u32)],
    /// The most phases that may be added.
    pub max_new_phases: usize,
}

/// The assignments of each new connection of a set, in the order of the request.
#[must_use]
pub fn assign(
    machine: &Machine,
    set: &ConnectionSet,
    request: AssignmentRequest<'_>,
) -> Vec<Vec<Assignment>> {
    let AssignmentRequest { phases, new, excluded, .. } = request;
    let whole = |&id: &ConnectionId| vec![Assignment { words: set.get(id).words, slot: None }];
    let mut assigned: Vec<Vec<Assignment>> = new.iter().map(whole).collect();
    if phases.is_empty() || new.len().saturating_mul(phases.len()) > ASSIGNMENT_BUDGET {
        return assigned;
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
    let requested = rows.iter().map(|&row| new[row]);
    let mut idle_time = IdleTime::new(machine, set, request, requested);
    for row in rows {
        let id = new[row];
        let from = excluded.partition_point(|pair| pair.0 < id);
        let count = excluded[from..].partition_point(|pair| pair.0 == id);
        assigned[row] = idle_time.assign(set, id, &excluded[from..from + count]);
    }
    assigned
}

/// An interval of a phase in which both agents of a connection are idle: its start, and its clocks
/// up to the end of the phase.
#[derive(Clone, Copy)]
struct IdleInterval {
    phase: usize,
    start: u64,
    clocks: u64,
    /// Whether nothing follows in the phase, so that the interval can extend beyond its end.
    last: bool,
}

/// The idle time of the agents of new connections.
struct IdleTime<'a> {
    machine: &'a Machine,
    costs: StreamCosts,
    /// The end of each phase, new ones included.
    ends: Vec<u64>,
    /// The most phases that there may be.
    max_phases: usize,
    /// The row of each port that a request names.
    row_of: Vec<u32>,
    /// The slots of these ports, by row; ascending by phase.
    reserved: Vec<Vec<(u32, Slot)>>,
    /// The row of each cell that a request names, and its channels in use by row and phase.
    cell_row: Vec<u32>,
    used: Vec<u32>,
    phases: &'a [PhaseRoutes],
    slots: &'a [Vec<Slot>],
}

/// Slots of a port with their phases, ascending by phase.
type Reservations<'a> = &'a [(u32, Slot)];

/// No request names the port or cell.
const NONE: u32 = u32::MAX;

impl<'a> IdleTime<'a> {
    fn new(
        machine: &'a Machine,
        set: &ConnectionSet,
        AssignmentRequest { phases, slots, max_new_phases, .. }: AssignmentRequest<'a>,
        requested: impl Iterator<Item = ConnectionId>,
    ) -> Self {
        let costs = StreamCosts::new(machine);
        let mut this = Self {
            machine,
            costs,
            ends: vec![0; phases.len()],
            max_phases: phases.len() + max_new_phases,
            row_of: vec![NONE; costs.port_count(machine)],
            reserved: Vec::new(),
            cell_row: vec![NONE; machine.cell_count()],
            used: Vec::new(),
            phases,
            slots,
        };
        let mut cells = 0;
        for id in requested {
            let connection = set.get(id);
            for port in costs.ports(connection) {
                if this.row_of[port.row()] == NONE {
                    this.row_of[port.row()] = to_u32(this.reserved.len());
                    this.reserved.push(Vec::new());
                }
            }
            for cell in [connection.source, connection.target] {
                if this.cell_row[cell.index()] == NONE {
                    this.cell_row[cell.index()] = cells;
                    cells += 1;
                }
            }
        }
        this.used = vec![0; index(cells) * this.max_phases];
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
            self.used[index(row) * self.max_phases + phase] += 1;
        }
    }

    /// Channels that both endpoints of a connection have left in a phase.
    fn channels(&self, connection: &Connection, phase: usize) -> u32 {
        let left = |cell: CellId| {
            let used = self.used[index(self.cell_row[cell.index()]) * self.max_phases + phase];
            self.machine.parameters().channels_per_cell.saturating_sub(used)
        };
        left(connection.source).min(left(connection.target))
    }

    fn book(&mut self, ends: (CellId, CellId), phase: usize, slot: Slot) {
        let [a, b] = self.costs.ports_of(ends.0, ends.1);
        for port in std::iter::once(a).chain((a != b).then_some(b)) {
            let row = self.row_of[port.row()];
            if row != NONE {
                let reserved = &mut self.reserved[index(row)];
                let at = reserved.partition_point(|at| at.0 <= to_u32(phase));
                reserved.insert(at, (to_u32(phase), slot));
            }
        }
    }

    /// Assigns a connection, in parts if that is better, and reserves its time.
    fn assign(
        &mut self,
        set: &ConnectionSet,
        id: ConnectionId,
        excluded: &[(ConnectionId, u32)],
    ) -> Vec<Assignment> {
        let connection = set.get(id);
        let words = connection.words;
        let stream = *self.costs.stream(connection);
        let Candidates { growth, interval, intervals } =
            self.candidates(connection, stream.of(words), excluded);
        let Some(interval) = interval else { return vec![Assignment { words, slot: None }] };
        let parts = self.split(words, stream, intervals, growth);
        let parts = parts.unwrap_or_else(|| vec![(interval, words)]);
        let mut assigned = Vec::with_capacity(parts.len());
        for (interval, words) in parts {
            let slot = Slot { start: interval.start, duration: stream.of(words) };
            if interval.phase == self.ends.len() {
                self.ends.push(0);
            }
            let growth = slot.end().saturating_sub(self.ends[interval.phase]);
            let busy_links = self.busy_links(interval.phase, slot);
            self.ends[interval.phase] += growth;
            self.book((connection.source, connection.target), interval.phase, slot);
            for cell in [connection.source, connection.target] {
                self.use_channel(cell, interval.phase);
            }
            let place = AssignedSlot { phase: to_u32(interval.phase), slot, growth, busy_links };
            assigned.push(Assignment { words, slot: Some(place) });
        }
        assigned
    }

    /// The idle intervals of a connection, and the one where the whole connection costs least.
    fn candidates(
        &self,
        connection: &Connection,
        duration: u64,
        excluded: &[(ConnectionId, u32)],
    ) -> Candidates {
        let mut found = Candidates { growth: u64::MAX, interval: None, intervals: Vec::new() };
        let ports = self.costs.ports(connection);
        let [mut rest_a, mut rest_b] =
            ports.map(|port| &self.reserved[index(self.row_of[port.row()])][..]);
        for (phase, &end) in self.ends.iter().enumerate() {
            let (at_a, at_b) = (split_phase(&mut rest_a, phase), split_phase(&mut rest_b, phase));
            let channels = self.channels(connection, phase);
            if excluded.binary_search_by_key(&to_u32(phase), |pair| pair.1).is_ok() || channels == 0
            {
                continue;
            }
            let add = |interval| found.intervals.push((interval, channels));
            let fit = intervals(phase, end, duration, (at_a, at_b), add);
            let growth = fit.start.saturating_add(duration).saturating_sub(end);
            if growth < found.growth {
                (found.growth, found.interval) = (growth, Some(fit));
            }
        }
        let opened = duration.saturating_add(self.machine.parameters().switch_clocks());
        if self.ends.len() < self.max_phases && opened < found.growth {
            let interval = IdleInterval { phase: self.ends.len(), start: 0, clocks: 0, last: true };
            (found.growth, found.interval) = (opened, Some(interval));
        }
        found
    }

    /// The links of a phase that are fully used at some time of a slot.
    fn busy_links(&self, phase: usize, slot: Slot) -> Vec<LinkId> {
        let parameters = self.machine.parameters();
        let share = parameters.streams_per_link();
        let meets = |other: &Slot| other.start < slot.end() && slot.start < other.end();
        let Some(routes) = self.phases.get(phase) else { return Vec::new() };
        let routes = routes.iter().zip(&self.slots[phase]);
        let met = routes.filter(|row| meets(row.1)).flat_map(|(route, _)| route.links());
        let mut links: Vec<LinkId> = met.copied().collect();
        links.sort_unstable();
        let chunks = links.chunk_by(|a, b| a == b);
        chunks.filter(|chunk| to_u64(chunk.len()) >= u64::from(share)).map(|c| c[0]).collect()
    }

    /// Assigns words to the longest idle intervals, if phases grow by less than `most`.
    fn split(
        &self,
        words: u32,
        stream: StreamClocks,
        mut intervals: Vec<(IdleInterval, u32)>,
        most: u64,
    ) -> Option<Vec<(IdleInterval, u32)>> {
        let StreamClocks { setup, word, .. } = stream;
        let least = (self.machine.parameters().switch_clocks() / PART_SHARE).max(setup).max(word);
        if most <= least || stream.of(words) < 2 * least {
            return None;
        }
        let least_words = u32::try_from(least.div_ceil(word)).ok()?;
        intervals.sort_by_key(|(interval, _)| {
            (Reverse(interval.clocks), interval.phase, interval.start)
        });
        let mut left = words;
        let mut parts: Vec<(IdleInterval, u32)> = Vec::new();
        for &(interval, channels) in &intervals {
            let mut part = stream.words_in(interval.clocks).min(left);
            // The remainder must not be too short either.
            if part < left && left - part < least_words {
                part = left.saturating_sub(least_words);
            }
            if left == 0 || part < least_words || parts.len() == MAX_PARTS {
                break;
            }
            let here = parts.iter().filter(|part| part.0.phase == interval.phase).count();
            if here < index(channels) {
                left -= part;
                parts.push((interval, part));
            }
        }
        let growth = if left == 0 { 0 } else { extend_last(&mut parts, &intervals, left, stream)? };
        let price = growth.saturating_add(least * to_u64(parts.len()).saturating_sub(1));
        (parts.len() > 1 && price < most).then_some(parts)
    }
}

/// The candidates for a connection.
struct Candidates {
    /// The least growth if the connection stays whole, and its interval.
    growth: u64,
    interval: Option<IdleInterval>,
    /// All intervals, with the channels that are left in their phases.
    intervals: Vec<(IdleInterval, u32)>,
}

/// Puts the remaining words where a phase grows least: at the end of a part that is the last of its
/// phase, or in a part of their own if another one is allowed. Returns the growth in clocks.
fn extend_last(
    parts: &mut Vec<(IdleInterval, u32)>,
    intervals: &[(IdleInterval, u32)],
    left: u32,
    stream: StreamClocks,
) -> Option<u64> {
    let place = |interval: &IdleInterval| (interval.phase, interval.start);
    let best = intervals.iter().filter(|(interval, _)| interval.last).filter_map(
        |(interval, channels)| {
            let same = parts.iter().position(|part| place(&part.0) == place(interval));
            let here = parts.iter().filter(|part| part.0.phase == interval.phase).count();
            if same.is_none() && (parts.len() == MAX_PARTS || here >= index(*channels)) {
                return None;
            }
            // Both are words of one connection, so the sum does not overflow.
            let clocks = stream.of(left + same.map_or(0, |row| parts[row].1));
            Some((clocks.saturating_sub(interval.clocks), same, interval))
        },
    );
    let (growth, same, interval) =
        best.min_by_key(|(growth, _, interval)| (*growth, interval.phase))?;
    match same {
        Some(row) => parts[row].1 += left,
        None => parts.push((*interval, left)),
    }
    Some(growth)
}

/// The slots of one phase, which are at the head of `rest`.
fn split_phase<'a>(rest: &mut Reservations<'a>, phase: usize) -> Reservations<'a> {
    let (of, after) = rest.split_at(rest.partition_point(|at| at.0 <= to_u32(phase)));
    *rest = after;
    of
}

/// Adds the idle intervals of two ports in a phase. Returns the first interval that is long enough
/// for the whole duration, which may extend beyond the end of the phase.
fn intervals(
    phase: usize,
    end: u64,
    duration: u64,
    (a, b): (Reservations<'_>, Reservations<'_>),
    mut add: impl FnMut(IdleInterval),
) -> IdleInterval {
    let slots = a.iter().chain(b);
    let mut busy: Vec<(u64, u64)> = slots.map(|(_, slot)| (slot.start, slot.end())).collect();
    busy.sort_unstable();
    let mut fit = None;
    let mut now = 0;
    for (start, stop) in busy {
        if start > now {
            let interval = IdleInterval { phase, start: now, clocks: start - now, last: false };
            if fit.is_none() && interval.clocks >= duration {
                fit = Some(interval);
            }
            add(interval);
        }
        now = now.max(stop);
    }
    let last = IdleInterval { phase, start: now, clocks: end.saturating_sub(now), last: true };
    add(last);
    fit.unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use conset_ir::ChannelId;
    use proptest::prelude::*;

    use super::*;

    fn existing(
        machine: &Machine,
        rows: &[(usize, u32, u32, u32, u64)],
    ) -> (Vec<PhaseRoutes>, Vec<Vec<Slot>>, Vec<Connection>) {
        let phases = rows.iter().map(|row| row.0 + 1).max().unwrap_or(0);
        let mut routes = vec![PhaseRoutes::new(); phases];
        let mut slots = vec![Vec::new(); phases];
        let mut connections = Vec::new();
        let costs = StreamCosts::new(machine);
        for &(phase, source, target, words, start) in rows {
            let connection = Connection::new(CellId(source), CellId(target), words);
            let duration = costs.stream(&connection).of(words);
            let id = ConnectionId(connections.len() as u32);
            // Only the endpoints matter here.
            let cells = [CellId(source), CellId(target)];
            routes[phase].push(id, words, &cells, &[LinkId(0)], &[ChannelId(0); 2]).unwrap();
            slots[phase].push(Slot { start, duration });
            connections.push(connection);
        }
        (routes, slots, connections)
    }

    fn assigned(
        rows: &[(usize, u32, u32, u32, u64)],
        open: usize,
        new: Connection,
    ) -> Vec<(u32, Option<u32>)> {
        let machine = Machine::from_spec("mesh:4").unwrap();
        let (routes, slots, mut connections) = existing(&machine, rows);
        let id = ConnectionId(connections.len() as u32);
        connections.push(new);
        let set = ConnectionSet::new("s", connections).unwrap();
        let request = AssignmentRequest {
            phases: &routes,
            slots: &slots,
            new: &[id],
            excluded: &[],
            max_new_phases: open,
        };
        let assigned = assign(&machine, &set, request).pop().unwrap();
        assigned.iter().map(|d| (d.words, d.slot.as_ref().map(|slot| slot.phase))).collect()
    }

    #[test]
    fn an_idle_interval_is_preferred_to_growth() {
        let c = |words| Connection::new(CellId(0), CellId(1), words);
        // Agent 0 sends until 1000 in phase 0; phase 1 has an idle interval from 200 to 600.
        let rows = [(0, 0, 2, 500, 0), (1, 0, 2, 100, 0), (1, 3, 1, 200, 600)];
        assert_eq!(assigned(&rows, 0, c(200)), [(200, Some(1))]);
        // As a whole it would lengthen a phase by 402 clocks, so the smallest part goes elsewhere.
        assert_eq!(assigned(&rows, 0, c(201)), [(135, Some(1)), (66, Some(0))]);
        assert_eq!(assigned(&rows[..1], 0, c(60)), [(60, Some(0))]);
        assert_eq!(assigned(&[], 0, c(201)), [(201, None)]);
    }

    #[test]
    fn long_connections_are_split() {
        // Both phases are 2000 long, and idle at the end for 1400 and 1200 clocks.
        let rows = [(0, 0, 2, 300, 0), (0, 3, 2, 700, 600), (1, 0, 2, 400, 0), (1, 3, 2, 600, 800)];
        let long = Connection::new(CellId(0), CellId(1), 1000);
        assert_eq!(assigned(&rows, 0, long.clone()), [(700, Some(0)), (300, Some(1))]);
        // Words that do not fit lengthen one of the phases.
        let longer = Connection { words: 1400, ..long.clone() };
        let parts = assigned(&rows, 0, longer);
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), 1400);
        assert_eq!(parts.len(), 2);
        // All words go into at most `MAX_PARTS` parts, even if the last words fit into an interval of
        // their own.
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
        let parts = assigned(&rows, 2, Connection::new(CellId(1), CellId(3), 1580));
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), 1580);
        assert!(parts.len() <= MAX_PARTS, "{parts:?}");
        // A connection with a requirement stays whole and gets no assignment.
        let asks = Connection { min_bandwidth: Some(1), ..long };
        assert_eq!(assigned(&rows, 0, asks), [(1000, None)]);
    }

    proptest! {
        #[test]
        fn all_words_are_assigned_and_parts_are_not_short(
            rows in prop::collection::vec((0usize..4, 0u32..4, 0u32..4, 1u32..900, 0u64..3000), 0..20),
            new in prop::collection::vec((0u32..4, 0u32..4, 1u32..4000), 1..6),
        ) {
            let machine = Machine::from_spec("mesh:4").unwrap();
            let rows: Vec<_> = rows.into_iter().filter(|row| row.1 != row.2).collect();
            let (routes, slots, mut connections) = existing(&machine, &rows);
            let first = connections.len() as u32;
            connections.extend(new.iter().map(|&(a, b, w)| Connection::new(CellId(a), CellId(b), w)));
            let ids: Vec<_> = (first..connections.len() as u32).map(ConnectionId).collect();
            let set = ConnectionSet::new("s", connections).unwrap();
            let request =
                AssignmentRequest { phases: &routes, slots: &slots, new: &ids, excluded: &[], max_new_phases: 2 };
            for (assigned, &(_, _, words)) in assign(&machine, &set, request).iter().zip(&new) {
                prop_assert_eq!(assigned.iter().map(|part| part.words).sum::<u32>(), words);
                prop_assert!(assigned.len() <= MAX_PARTS);
                prop_assert!(assigned.len() == 1 || assigned.iter().all(|part| part.words >= 66));
            }
        }
    }
}
