//! The rules of an image, alone and against the timetables it was made from.
//!
//! Alone: its tables are followed forward ([`crate::lift`]); the routing that comes out must be
//! right by the same rules as any routing; the word ranges of each connection tile its data, and
//! parts of a later phase carry later words; the planned starts keep the set's order; every
//! operation list is in the order of its planned starts; and the lists get through with any depth
//! of queue ([`crate::deadlock`]).
//!
//! Against timetables: each phase must have exactly the timetable's routes, cell by cell, channel
//! by channel and link by link, with their words and starts. Which of several parts of a
//! connection in *one* phase carries the earlier words is left to the image.
//!
//! Later checks are made on what earlier ones found right, so one fault is reported once.

use std::sync::Arc;

use conset_ir::{
    CellContext, CellId, ChannelId, ConnectionId, Direction, Duplex, Image, Operation, PhaseId,
    PhaseRoutes, RouteRef, Routing, SetImage, Slot, Timetable,
};

use crate::deadlock::{self, Verdict};
use crate::facts::Report;
use crate::lengths;
use crate::lift::{LiftedPhase, lift_phase};
use crate::order::PhaseSpans;
use crate::rejection::{Findings, Place, Rule};
use crate::routes;

/// What the tables of one set say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifted {
    /// The routes of each phase, in the order of their source cells and channels.
    pub routing: Routing,
    /// The planned start of each route of each phase, in clocks from the phase's start. (An image
    /// does not say how long a route is booked for.)
    pub starts: Vec<Vec<u64>>,
    /// The place in the connection's data of the first word that each route carries.
    pub first_words: Vec<Vec<u32>>,
}

/// Lifts one set; `None` if something was found on the way.
pub(crate) fn lift_set(image: &Image, set: &SetImage, findings: &mut Findings) -> Option<Lifted> {
    let before = findings.total();
    findings.enter_set(set.set.name());
    let mut phases = Vec::with_capacity(set.phases.len());
    let mut starts = Vec::with_capacity(set.phases.len());
    let mut first_words = Vec::with_capacity(set.phases.len());
    for (row, phase) in set.phases.iter().enumerate() {
        let phase_id = PhaseId(row as u32);
        let lifted = lift_phase(image.machine(), &set.set, phase_id, phase, findings);
        let LiftedPhase { routes, starts: clocks, first_words: words } = lifted;
        phases.push(routes);
        starts.push(clocks);
        first_words.push(words);
    }
    if findings.total() > before {
        return None;
    }
    match Routing::new(Arc::clone(image.machine()), Arc::clone(&set.set), phases) {
        Ok(routing) => Some(Lifted { routing, starts, first_words }),
        Err(error) => {
            findings.add(Rule::Shape, Place::set(), || error.to_string());
            None
        }
    }
}

/// Checks every set of an image on its own and, if there are any, against its timetables.
pub(crate) fn check(
    image: &Image,
    timetables: Option<&[&Timetable]>,
    findings: &mut Findings,
) -> Report {
    let mut report = Report::default();
    if let Some(timetables) = timetables
        && timetables.len() != image.sets().len()
    {
        findings.enter_set("image");
        findings.add(Rule::Lift, Place::set(), || {
            format!("{} sets in the image, {} timetables", image.sets().len(), timetables.len())
        });
        return report;
    }
    for (row, set) in image.sets().iter().enumerate() {
        if let Some(lifted) = lift_set(image, set, findings) {
            report = report.and(check_set(image, set, &lifted, findings));
            if let Some(timetables) = timetables {
                compare_set(&lifted, timetables[row], findings);
            }
        }
    }
    report
}

fn check_set(image: &Image, set: &SetImage, lifted: &Lifted, findings: &mut Findings) -> Report {
    let before = findings.total();
    let mut report = routes::check(&lifted.routing, findings);
    check_word_ranges(lifted, findings);
    if findings.total() == before {
        check_start_order(lifted, findings);
    }
    check_list_order(image, set, findings);
    if findings.total() > before {
        return report;
    }
    let mut checker = deadlock::Checker::new(image.machine(), &set.set);
    for (row, phase) in set.phases.iter().enumerate() {
        let (rule, waits) = match checker.phase(phase) {
            Verdict::Free => continue,
            Verdict::Undecided(waits) => (Rule::Undecided, waits),
            Verdict::Deadlock(waits) => (Rule::Deadlock, waits),
        };
        let mut place = Place::phase(PhaseId(row as u32));
        if let Some(first) = waits.first() {
            place = place.cell(first.cell).connection(first.connection);
        }
        findings.add(rule, place, || deadlock::describe(&waits));
    }
    report.operations = 2 * report.routes;
    if image.machine().parameters().has_timed_starts() {
        let starts = lifted.starts.iter().map(|starts| starts.iter().copied());
        report.add_lengths(&lengths::lengths(&lifted.routing, starts));
    }
    report
}

/// A part of a connection's data. The field order is the sorting order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    connection: ConnectionId,
    first_word: u32,
    phase: u32,
    words: u32,
}

/// The parts of a connection follow each other without gap or overlap, in the order of phases.
/// (That they are all of its words is the coverage rule.)
fn check_word_ranges(lifted: &Lifted, findings: &mut Findings) {
    let mut parts: Vec<Part> = Vec::new();
    for ((phase, routes), first_words) in lifted.routing.iter().zip(&lifted.first_words) {
        parts.extend(routes.iter().zip(first_words).map(|(route, &first_word)| Part {
            connection: route.connection,
            first_word,
            phase: phase.0,
            words: route.words,
        }));
    }
    parts.sort_unstable();
    for parts in parts.chunk_by(|a, b| a.connection == b.connection) {
        let mut expected = 0u64;
        let mut last_phase = 0;
        for part in parts {
            let place = Place::phase(PhaseId(part.phase)).connection(part.connection);
            if u64::from(part.first_word) != expected {
                findings.add(Rule::Words, place, || {
                    format!("a part starts at word {}, expected {expected}", part.first_word)
                });
            }
            if part.phase < last_phase {
                findings.add(Rule::Words, place, || {
                    format!(
                        "words from {} move in p{}, earlier words in p{last_phase}",
                        part.first_word, part.phase
                    )
                });
            }
            expected = u64::from(part.first_word) + u64::from(part.words);
            last_phase = part.phase;
        }
    }
}

/// Of an ordered pair in one phase the first is planned to start before the second.
fn check_start_order(lifted: &Lifted, findings: &mut Findings) {
    let set = lifted.routing.set();
    if set.order().is_empty() {
        return;
    }
    let mut spans = PhaseSpans::new(set.len());
    for ((phase, routes), starts) in lifted.routing.iter().zip(&lifted.starts) {
        for (route, &start) in routes.iter().zip(starts) {
            // An image does not say when a slot ends; one clock is the shortest there is.
            spans.add_slot(route.connection, phase, Slot { start, duration: 1 });
        }
    }
    spans.check_slots(set, findings);
}

/// Each list (one per direction, or one in all with half duplex) is in the order of its starts.
fn check_list_order(image: &Image, set: &SetImage, findings: &mut Findings) {
    let half = image.machine().parameters().duplex == Duplex::Half;
    for (row, phase) in set.phases.iter().enumerate() {
        for (cell, CellContext { operations, .. }) in phase.cells() {
            let mut latest = [0u64; 2];
            for (at, operation) in operations.iter().enumerate() {
                let receives = operation.direction == Direction::Receive;
                let latest = &mut latest[usize::from(receives && !half)];
                if operation.start < *latest {
                    list_disorder(PhaseId(row as u32), cell, at, operation, *latest, findings);
                }
                *latest = (*latest).max(operation.start);
            }
        }
    }
}

fn list_disorder(
    phase: PhaseId,
    cell: CellId,
    row: usize,
    operation: &Operation,
    latest: u64,
    findings: &mut Findings,
) {
    let place = Place::phase(phase).cell(cell).connection(operation.connection);
    findings.add(Rule::ListOrder, place, || {
        format!(
            "operation {row} starts at clock {}, one before it in the list at {latest}",
            operation.start
        )
    });
}

/// Compares what was lifted with the timetable that it was made from.
fn compare_set(lifted: &Lifted, timetable: &Timetable, findings: &mut Findings) {
    let (ours, theirs) = (&lifted.routing, timetable.routing());
    let mut differs = |what: String| findings.add(Rule::Lift, Place::set(), || what);
    if ours.machine() != theirs.machine() {
        return differs("the image is for another machine than the timetable".to_owned());
    }
    if ours.set() != theirs.set() {
        return differs(format!(
            "the image carries set `{}`, which is not the timetable's",
            ours.set().name()
        ));
    }
    if ours.phases().len() != theirs.phases().len() {
        return differs(format!(
            "{} phases in the image, {} in the timetable",
            ours.phases().len(),
            theirs.phases().len()
        ));
    }
    for (row, times) in timetable.phases().iter().enumerate() {
        let phase = PhaseId(row as u32);
        let found = Found { routes: &ours.phases()[row], starts: &lifted.starts[row] };
        let starts: Vec<u64> = times.slots.iter().map(|slot| slot.start).collect();
        let expected = Found { routes: &theirs.phases()[row], starts: &starts };
        compare_phase(phase, &found, &expected, findings);
    }
}

/// Routes and starts of a phase.
struct Found<'a> {
    routes: &'a PhaseRoutes,
    starts: &'a [u64],
}

/// Where a route begins: in a phase without double bookings, no two routes begin alike.
fn head(route: &RouteRef<'_>) -> (CellId, ChannelId) {
    (route.cells[0], route.channels[0])
}

impl Found<'_> {
    /// Heads with their rows, sorted.
    fn by_head(&self) -> Vec<((CellId, ChannelId), u32)> {
        let mut rows: Vec<_> =
            self.routes.iter().enumerate().map(|(row, r)| (head(&r), row as u32)).collect();
        rows.sort_unstable();
        rows
    }
}

fn compare_phase(phase: PhaseId, found: &Found<'_>, expected: &Found<'_>, findings: &mut Findings) {
    let (ours, theirs) = (found.by_head(), expected.by_head());
    let (mut a, mut b) = (0, 0);
    while a < ours.len() || b < theirs.len() {
        let our_head = ours.get(a).map(|row| row.0);
        let their_head = theirs.get(b).map(|row| row.0);
        let only_ours = their_head.is_none() || our_head.is_some_and(|h| Some(h) < their_head);
        let only_theirs = our_head.is_none() || their_head.is_some_and(|h| Some(h) < our_head);
        if only_ours {
            let route = found.routes.get(ours[a].1 as usize);
            differ(phase, &route, "the timetable has no route that begins here", findings);
            a += 1;
        } else if only_theirs {
            let route = expected.routes.get(theirs[b].1 as usize);
            differ(phase, &route, "the image has no route that begins here", findings);
            b += 1;
        } else {
            let (our_row, their_row) = (ours[a].1 as usize, theirs[b].1 as usize);
            let (route, wanted) = (found.routes.get(our_row), expected.routes.get(their_row));
            if let Some(what) = difference(&route, &wanted) {
                differ(phase, &wanted, &format!("another {what} than in the timetable"), findings);
            } else if found.starts[our_row] != expected.starts[their_row] {
                differ(phase, &wanted, "another start than in the timetable", findings);
            }
            a += 1;
            b += 1;
        }
    }
}

/// The first thing in which two routes differ.
fn difference(ours: &RouteRef<'_>, theirs: &RouteRef<'_>) -> Option<&'static str> {
    if ours.connection != theirs.connection {
        Some("connection")
    } else if ours.words != theirs.words {
        Some("number of words")
    } else if ours.cells != theirs.cells {
        Some("way")
    } else if ours.links() != theirs.links() {
        Some("link")
    } else if ours.channels != theirs.channels {
        Some("channel")
    } else {
        None
    }
}

fn differ(phase: PhaseId, route: &RouteRef<'_>, what: &str, findings: &mut Findings) {
    let (cell, channel) = head(route);
    let place = Place::phase(phase).cell(cell).connection(route.connection);
    findings.add(Rule::Lift, place, || format!("{what} (on {channel})"));
}
