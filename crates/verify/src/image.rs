//! The rules of an image, on its own and compared with the timetables it was generated from.
//!
//! On its own: its tables are followed ([`crate::lift`]), and the resulting routing is checked by
//! the rules of any routing. The word ranges of each connection must partition its data, and later
//! phases carry later words. The planned starts, with the shortest duration for each route, must
//! satisfy the rules of a timetable ([`crate::times`]). Every operation list must be ordered by
//! planned start, and all lists must complete with queues of any depth ([`crate::deadlock`]).
//!
//! A set with a step plan has no tables: its plan is checked by the rules of steps
//! ([`mod@crate::steps`]).
//!
//! Compared with timetables: each phase must have exactly the routes of the timetable, with the same
//! cells, channels, links, words and starts. The image decides which of several parts of a
//! connection in *one* phase carries the earlier words.
//!
//! Later checks apply only to what earlier checks accepted, so that each mistake is reported once.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellContext, CellId, ChannelId, ConnectionId, Direction, Duplex, Image, Operation, PhaseId,
    PhaseRoutes, PhaseTimes, Program, RouteRef, Routing, SetImage, Slot, Timetable,
};

use crate::clocks;
use crate::deadlock::{self, Verdict};
use crate::facts::Report;
use crate::lengths;
use crate::lift::{LiftedPhase, lift_phase};
use crate::rejection::{Findings, Location, Rule};
use crate::routes;
use crate::steps;
use crate::times;

/// The routes and starts of one set, as its tables define them.
///
/// A record with public fields to read. It is `#[non_exhaustive]`: only [`lift`](crate::lift) makes
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lifted {
    /// The routes of each phase, in the order of their source cells and channels.
    pub routing: Routing,
    /// The planned start of each route of each phase, in clocks from the start of the phase. (An
    /// image has no durations.)
    pub starts: Vec<Vec<u64>>,
    /// The index in the connection's data of the first word of each route.
    pub first_words: Vec<Vec<u32>>,
}

impl Lifted {
    /// The routes with their planned starts, each with the shortest duration for its words.
    ///
    /// # Panics
    /// If the number of starts is not that of the routes, which is never so for a lifted set.
    pub fn timetable(&self) -> Timetable {
        let machine = self.routing.machine();
        let phases = self.routing.phases().iter().zip(&self.starts);
        let times = phases.map(|(routes, starts)| {
            let slot = |(route, &start): (RouteRef<'_>, _)| Slot {
                start,
                duration: times::least_duration(machine, route.words),
            };
            let slots: Vec<Slot> = routes.iter().zip(starts).map(slot).collect();
            let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
            PhaseTimes { slots, makespan }
        });
        Timetable::new(self.routing.clone(), times.collect()).expect("a start for each route")
    }
}

/// Lifts one set with phases; `None` if there is a violation.
pub(crate) fn lift_set(image: &Image, set: &SetImage, findings: &mut Findings) -> Option<Lifted> {
    let before = findings.total();
    findings.enter_set(set.set.name());
    let mut phases = Vec::with_capacity(set.phases.len());
    let mut starts = Vec::with_capacity(set.phases.len());
    let mut first_words = Vec::with_capacity(set.phases.len());
    for (row, phase) in set.phases.iter().enumerate() {
        let phase_id = PhaseId::from_index(row);
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
            findings.add(Rule::Shape, Location::set(), || error.to_string());
            None
        }
    }
}

/// Checks every set of an image on its own and, if given, compares it with its timetable.
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
        findings.add(Rule::Lift, Location::set(), || {
            format!("{} sets in the image, {} timetables", image.sets().len(), timetables.len())
        });
        return report;
    }
    let before = findings.total();
    let sets = image.sets().iter().map(|set| Arc::clone(&set.set)).collect();
    let program = Program::new(sets).expect("names were checked when the image was built");
    clocks::check_words(image.machine(), &program, findings);
    if findings.total() > before {
        return report;
    }
    let mut planned = 0;
    for (row, set) in image.sets().iter().enumerate() {
        if let Some(steps) = &set.steps {
            findings.enter_set(set.set.name());
            report = report.and(steps::check(steps, &steps.lists(), findings));
            if timetables.is_some() {
                findings.add(Rule::Lift, Location::set(), || {
                    "the set has steps, and is compared with a timetable".to_owned()
                });
            }
            continue;
        }
        if let Some(lifted) = lift_set(image, set, findings) {
            report = report.and(check_set(image, set, &lifted, &mut planned, findings));
            if let Some(timetables) = timetables {
                compare_set(&lifted, timetables[row], findings);
            }
        }
    }
    if findings.total() == before {
        clocks::check_sum(Rule::Duration, "planned", planned, findings);
    }
    report
}

/// Checks a lifted set, and adds the clocks of its starts and words to `planned`.
fn check_set(
    image: &Image,
    set: &SetImage,
    lifted: &Lifted,
    planned: &mut u128,
    findings: &mut Findings,
) -> Report {
    let before = findings.total();
    let mut report = routes::check(&lifted.routing, findings);
    check_word_ranges(lifted, findings);
    if findings.total() == before {
        *planned += check_times(lifted, findings);
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
        let mut location = Location::phase(PhaseId::from_index(row));
        if let Some(first) = waits.first() {
            location = location.cell(first.cell).connection(first.connection);
        }
        findings.add(rule, location, || deadlock::describe(&waits));
    }
    report.operations = 2 * report.routes;
    if image.machine().parameters().has_timed_starts() {
        let starts = lifted.starts.iter().map(|starts| starts.iter().copied());
        report.add_lengths(&lengths::lengths(&lifted.routing, starts));
    }
    report
}

/// A range of words of a connection. The field order is the sorting order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WordRange {
    connection: ConnectionId,
    first_word: u32,
    phase: u32,
    words: u32,
}

/// Checks that the word ranges of a connection follow each other without gaps and overlaps, in the
/// order of phases. (The coverage rule checks that they are all of its words.)
fn check_word_ranges(lifted: &Lifted, findings: &mut Findings) {
    let mut ranges: Vec<WordRange> = Vec::new();
    for ((phase, routes), first_words) in lifted.routing.iter().zip(&lifted.first_words) {
        ranges.extend(routes.iter().zip(first_words).map(|(route, &first_word)| WordRange {
            connection: route.connection,
            first_word,
            phase: phase.0,
            words: route.words,
        }));
    }
    ranges.sort_unstable();
    for ranges in ranges.chunk_by(|a, b| a.connection == b.connection) {
        let mut expected = 0u64;
        let mut last_phase = 0;
        for range in ranges {
            let location = Location::phase(PhaseId(range.phase)).connection(range.connection);
            if u64::from(range.first_word) != expected {
                findings.add(Rule::Words, location, || {
                    format!("a part starts at word {}, expected {expected}", range.first_word)
                });
            }
            if range.phase < last_phase {
                findings.add(Rule::Words, location, || {
                    format!(
                        "words from {} move in p{}, earlier words in p{last_phase}",
                        range.first_word, range.phase
                    )
                });
            }
            expected = u64::from(range.first_word) + u64::from(range.words);
            last_phase = range.phase;
        }
    }
}

/// Checks that the planned starts, with the shortest duration for each route, satisfy the rules of
/// a timetable: no agent has more streams open than it can hold, and of an ordered pair in one
/// phase the first ends before the second starts. Returns the clocks of the timetable.
fn check_times(lifted: &Lifted, findings: &mut Findings) -> u128 {
    let timetable = lifted.timetable();
    times::check(&timetable, findings);
    clocks::of_timetable(&timetable)
}

/// Checks that each list (one per direction, or a single one with half duplex) is ordered by start.
fn check_list_order(image: &Image, set: &SetImage, findings: &mut Findings) {
    let half = image.machine().parameters().duplex == Duplex::Half;
    for (row, phase) in set.phases.iter().enumerate() {
        for (cell, CellContext { operations, .. }) in phase.cells() {
            let mut latest = [0u64; 2];
            for (at, operation) in operations.iter().enumerate() {
                let receives = operation.direction == Direction::Receive;
                let latest = &mut latest[usize::from(receives && !half)];
                if operation.start < *latest {
                    list_disorder(PhaseId::from_index(row), cell, at, operation, *latest, findings);
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
    let location = Location::phase(phase).cell(cell).connection(operation.connection);
    findings.add(Rule::ListOrder, location, || {
        format!(
            "operation {row} starts at clock {}, an earlier one in the list at {latest}",
            operation.start
        )
    });
}

/// Compares a lifted set with the timetable that the image was generated from.
fn compare_set(lifted: &Lifted, timetable: &Timetable, findings: &mut Findings) {
    let (ours, theirs) = (&lifted.routing, timetable.routing());
    let mut differs = |what: String| findings.add(Rule::Lift, Location::set(), || what);
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
        let phase = PhaseId::from_index(row);
        let found = TimedRoutes { routes: &ours.phases()[row], starts: &lifted.starts[row] };
        let starts: Vec<u64> = times.slots.iter().map(|slot| slot.start).collect();
        let expected = TimedRoutes { routes: &theirs.phases()[row], starts: &starts };
        compare_phase(phase, &found, &expected, findings);
    }
}

/// Routes and starts of a phase.
struct TimedRoutes<'a> {
    routes: &'a PhaseRoutes,
    starts: &'a [u64],
}

/// The first cell and channel of a route. They identify it in a phase without double bookings.
fn head(route: &RouteRef<'_>) -> (CellId, ChannelId) {
    (route.cells[0], route.channels[0])
}

impl TimedRoutes<'_> {
    /// The heads of the routes with their rows, sorted.
    fn by_head(&self) -> Vec<((CellId, ChannelId), u32)> {
        let mut rows: Vec<_> =
            self.routes.iter().enumerate().map(|(row, r)| (head(&r), to_u32(row))).collect();
        rows.sort_unstable();
        rows
    }
}

fn compare_phase(
    phase: PhaseId,
    found: &TimedRoutes<'_>,
    expected: &TimedRoutes<'_>,
    findings: &mut Findings,
) {
    let (ours, theirs) = (found.by_head(), expected.by_head());
    let (mut a, mut b) = (0, 0);
    while a < ours.len() || b < theirs.len() {
        let our_head = ours.get(a).map(|row| row.0);
        let their_head = theirs.get(b).map(|row| row.0);
        let only_ours = their_head.is_none() || our_head.is_some_and(|h| Some(h) < their_head);
        let only_theirs = our_head.is_none() || their_head.is_some_and(|h| Some(h) < our_head);
        if only_ours {
            let route = found.routes.get(index(ours[a].1));
            differ(phase, &route, "the timetable has no route that begins here", findings);
            a += 1;
        } else if only_theirs {
            let route = expected.routes.get(index(theirs[b].1));
            differ(phase, &route, "the image has no route that begins here", findings);
            b += 1;
        } else {
            let (our_row, their_row) = (index(ours[a].1), index(theirs[b].1));
            let (route, planned) = (found.routes.get(our_row), expected.routes.get(their_row));
            if let Some(what) = difference(&route, &planned) {
                differ(phase, &planned, &format!("another {what} than in the timetable"), findings);
            } else if found.starts[our_row] != expected.starts[their_row] {
                differ(phase, &planned, "another start than in the timetable", findings);
            }
            a += 1;
            b += 1;
        }
    }
}

/// The first property in which two routes differ.
fn difference(ours: &RouteRef<'_>, theirs: &RouteRef<'_>) -> Option<&'static str> {
    if ours.connection != theirs.connection {
        Some("connection")
    } else if ours.words != theirs.words {
        Some("number of words")
    } else if ours.cells != theirs.cells {
        Some("route")
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
    let location = Location::phase(phase).cell(cell).connection(route.connection);
    findings.add(Rule::Lift, location, || format!("{what} (on {channel})"));
}
