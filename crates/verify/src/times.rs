//! The rules of a timetable: every route has time for its words, agents hold no more streams than
//! they can, order is kept, the makespan is what it is.
//!
//! * A slot lasts at least `words x access_clocks_per_word + stream_setup`. Longer is allowed: a
//!   scheduler may plan for slow links or for sharing.
//! * On a machine with timed starts slots are starts that hold streams back, and may overlap: a
//!   stream whose agent is still busy opens late, which the machine model allows. What is proved of
//!   plans without overlap is for [`crate::lengths`]. On any other machine:
//! * Slots are half open, `[start, end)`. At no moment has an agent more than `streams` of them
//!   open in one direction; with half duplex, in both directions together, a connection from a
//!   cell to itself counting once.
//!
//! Per phase the starts and ends are sorted by agent, direction and time and swept: O(n log n).

use conset_ir::{CellId, Duplex, PhaseId, PhaseRoutes, PhaseTimes, RouteRef, Slot, Timetable};

use crate::facts::Report;
use crate::order::PhaseSpans;
use crate::rejection::{Findings, Place, Rule};

/// Checks the times of a timetable whose routing has been checked and found right.
pub(crate) fn check(timetable: &Timetable, findings: &mut Findings) -> Report {
    let routing = timetable.routing();
    let mut spans = PhaseSpans::new(routing.set().len());
    let mut sweep = Sweep::new(timetable);
    let mut slots = 0;
    if timetable.phases().len() != routing.phases().len() {
        findings.add(Rule::Shape, Place::set(), || {
            format!("{} timetables, {} phases", timetable.phases().len(), routing.phases().len())
        });
        return Report::default();
    }
    for ((phase, routes), times) in routing.iter().zip(timetable.phases()) {
        if times.slots.len() != routes.len() {
            findings.add(Rule::Shape, Place::phase(phase), || {
                format!("{} slots for {} routes", times.slots.len(), routes.len())
            });
            continue;
        }
        slots += times.slots.len() as u64;
        for (route, slot) in routes.iter().zip(&times.slots) {
            check_duration(timetable, phase, &route, *slot, findings);
            spans.add_slot(route.connection, phase, *slot);
        }
        check_makespan(phase, times, findings);
        if !routing.machine().parameters().has_timed_starts() {
            sweep.check(phase, routes, times, findings);
        }
    }
    spans.check_slots(routing.set(), findings);
    Report { slots, ..Report::default() }
}

fn check_duration(
    timetable: &Timetable,
    phase: PhaseId,
    route: &RouteRef<'_>,
    slot: Slot,
    findings: &mut Findings,
) {
    let parameters = timetable.routing().machine().parameters();
    let least = u64::from(route.words) * u64::from(parameters.access_clocks_per_word)
        + u64::from(parameters.stream_setup);
    let place = Place::phase(phase).connection(route.connection);
    if slot.duration < least {
        findings.add(Rule::Duration, place, || {
            format!(
                "a slot of {} clocks, {} words take at least {least}",
                slot.duration, route.words
            )
        });
    }
    if slot.start.checked_add(slot.duration).is_none() {
        findings.add(Rule::Duration, place, || {
            format!("a slot from {} for {} clocks has no end", slot.start, slot.duration)
        });
    }
}

fn check_makespan(phase: PhaseId, times: &PhaseTimes, findings: &mut Findings) {
    let end = times.slots.iter().map(|slot| slot.start.saturating_add(slot.duration)).max();
    let end = end.unwrap_or(0);
    if times.makespan != end {
        findings.add(Rule::Makespan, Place::phase(phase), || {
            format!("a makespan of {} is claimed, the last slot ends at {end}", times.makespan)
        });
    }
}

/// A slot's start or end at one agent in one direction. The field order is the sorting order;
/// at one moment ends come before starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    agent: CellId,
    receives: bool,
    clock: u64,
    starts: bool,
    route: u32,
}

/// The sweep over the streams of a phase; the memory is kept from phase to phase.
struct Sweep {
    half_duplex: bool,
    streams: u32,
    events: Vec<Event>,
}

impl Sweep {
    fn new(timetable: &Timetable) -> Self {
        let parameters = timetable.routing().machine().parameters();
        Self {
            half_duplex: parameters.duplex == Duplex::Half,
            streams: parameters.streams,
            events: Vec::new(),
        }
    }

    fn check(
        &mut self,
        phase: PhaseId,
        routes: &PhaseRoutes,
        times: &PhaseTimes,
        findings: &mut Findings,
    ) {
        self.events.clear();
        for (row, (route, slot)) in routes.iter().zip(&times.slots).enumerate() {
            let (source, target) = (route.cells[0], route.cells[route.cells.len() - 1]);
            self.add(source, false, *slot, row);
            if !(self.half_duplex && source == target) {
                self.add(target, !self.half_duplex, *slot, row);
            }
        }
        self.events.sort_unstable();
        let same_agent = |a: &Event, b: &Event| (a.agent, a.receives) == (b.agent, b.receives);
        for events in self.events.chunk_by(same_agent) {
            self.sweep(phase, routes, events, findings);
        }
    }

    fn add(&mut self, agent: CellId, receives: bool, slot: Slot, row: usize) {
        if slot.duration == 0 {
            return; // Open at no moment; the duration rule has refused it.
        }
        let end = slot.start.saturating_add(slot.duration);
        for (clock, starts) in [(slot.start, true), (end, false)] {
            self.events.push(Event { agent, receives, clock, starts, route: row as u32 });
        }
    }

    /// Goes through one agent's events in time; reports the first moment with too many streams.
    fn sweep(
        &self,
        phase: PhaseId,
        routes: &PhaseRoutes,
        events: &[Event],
        findings: &mut Findings,
    ) {
        let mut open = 0;
        let mut latest = events[0].route;
        for event in events {
            if !event.starts {
                open -= 1;
                continue;
            }
            open += 1;
            if open > self.streams {
                let connection = |row: u32| routes.get(row as usize).connection;
                let what = match (self.half_duplex, event.receives) {
                    (true, _) => "sending and receiving together",
                    (false, true) => "receiving",
                    (false, false) => "sending",
                };
                let place =
                    Place::phase(phase).cell(event.agent).connection(connection(event.route));
                findings.add(Rule::AgentOverlap, place, || {
                    format!(
                        "{open} streams open at clock {} ({what}; {} among them), the agent holds {}",
                        event.clock,
                        connection(latest),
                        self.streams
                    )
                });
                return;
            }
            latest = event.route;
        }
    }
}
