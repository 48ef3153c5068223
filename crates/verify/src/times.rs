//! The rules of a timetable: durations, streams per agent, order and makespan.
//!
//! * A slot lasts at least `words x access_clocks_per_word + stream_setup`. It may be longer, if a
//!   scheduler plans for slow links or for sharing.
//! * On a machine with timed starts, slots may overlap: a start only delays a stream, and a stream
//!   whose agent is still busy opens late, which the machine model permits. [`crate::lengths`]
//!   proves the length of phases without overlap.
//! * On any other machine, an agent never has more than `streams` slots open in one direction; with
//!   half duplex, in both directions together, where a connection of a cell to itself counts once.
//!   Slots are half-open intervals `[start, end)`.
//!
//! Times beyond the limit on clocks are refused first, so that the other rules can add them up.
//!
//! In each phase, the starts and ends are sorted by agent, direction and time and swept:
//! O(n log n).

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{
    CellId, Duplex, Machine, PhaseId, PhaseRoutes, PhaseTimes, RouteRef, Slot, Timetable,
};

use crate::clocks;
use crate::facts::Report;
use crate::order::PhaseSpans;
use crate::rejection::{Findings, Location, Rule};

/// Checks the times of a timetable whose routing has been accepted.
pub(crate) fn check(timetable: &Timetable, findings: &mut Findings) -> Report {
    let routing = timetable.routing();
    let mut spans = PhaseSpans::new(routing.set().len());
    let mut sweep = Sweep::new(timetable);
    let mut slots = 0;
    let before = findings.total();
    clocks::check_sum(Rule::Duration, "planned", clocks::of_timetable(timetable), findings);
    if findings.total() > before {
        return Report::default();
    }
    if timetable.phases().len() != routing.phases().len() {
        findings.add(Rule::Shape, Location::set(), || {
            format!("{} timetables, {} phases", timetable.phases().len(), routing.phases().len())
        });
        return Report::default();
    }
    for ((phase, routes), times) in routing.iter().zip(timetable.phases()) {
        if times.slots.len() != routes.len() {
            findings.add(Rule::Shape, Location::phase(phase), || {
                format!("{} slots for {} routes", times.slots.len(), routes.len())
            });
            continue;
        }
        slots += to_u64(times.slots.len());
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
    let least = least_duration(timetable.routing().machine(), route.words);
    let location = Location::phase(phase).connection(route.connection);
    if slot.duration < least {
        findings.add(Rule::Duration, location, || {
            format!(
                "a slot has {} clocks, but {} words take at least {least}",
                slot.duration, route.words
            )
        });
    }
}

/// The least number of clocks in which an agent opens a stream and moves `words` words.
pub(crate) fn least_duration(machine: &Machine, words: u32) -> u64 {
    let parameters = machine.parameters();
    u64::from(words) * u64::from(parameters.access_clocks_per_word)
        + u64::from(parameters.stream_setup)
}

fn check_makespan(phase: PhaseId, times: &PhaseTimes, findings: &mut Findings) {
    let end = times.slots.iter().map(Slot::end).max().unwrap_or(0);
    if times.makespan != end {
        findings.add(Rule::Makespan, Location::phase(phase), || {
            format!("a makespan of {} is claimed, the last slot ends at {end}", times.makespan)
        });
    }
}

/// The start or end of a slot at an agent in one direction. The field order is the sorting order;
/// at the same clock, ends precede starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    agent: CellId,
    receives: bool,
    clock: u64,
    starts: bool,
    route: u32,
}

/// The sweep over the streams of a phase. It reuses its memory for all phases.
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
            return; // It is never open; the duration rule has refused it.
        }
        for (clock, starts) in [(slot.start, true), (slot.end(), false)] {
            self.events.push(Event { agent, receives, clock, starts, route: to_u32(row) });
        }
    }

    /// Sweeps the events of an agent in time; reports the first clock with too many streams.
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
                let connection = |row: u32| routes.get(index(row)).connection;
                let what = match (self.half_duplex, event.receives) {
                    (true, _) => "sending and receiving together",
                    (false, true) => "receiving",
                    (false, false) => "sending",
                };
                let location =
                    Location::phase(phase).cell(event.agent).connection(connection(event.route));
                findings.add(Rule::AgentOverlap, location, || {
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
