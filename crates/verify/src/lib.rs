//! The independent checker of conset schedules and images.
//!
//! It shares no code with the stages that make schedules: it depends on `conset-ir` alone (a test
//! holds it to that) and recounts everything from the values it is given. What passes comes back
//! as a [`Verified`], which nothing else can make and which code generation asks for; what does
//! not comes back as a [`Rejection`] that lists every [`Violation`] under its [`Rule`].
//!
//! # What is verified
//!
//! For a **routing**, with `P` its phases and `R(p)` the routes of phase `p`:
//!
//! | rule | statement |
//! |---|---|
//! | shape | every id is a row of what it names; a route has one channel per cell and one link fewer |
//! | coverage | for every connection `x`: the words of its routes, over all phases, sum to the words of `x`; no route carries 0 |
//! | ends | a route starts at its connection's source and ends at its target, both live agents |
//! | adjacency | link `i` of a route runs from its cell `i` to its cell `i + 1` |
//! | dead | no cell and no link of a route is marked dead |
//! | simple-route | no cell comes twice in a route |
//! | capacity | for every `p` and cell `c`: `\|{r in R(p) : c in r}\| <= channels_per_cell` |
//! | channel-range | every channel is below `channels_per_cell` (the reserve is numbered after) |
//! | double-booking | for every `p`: no two routes hold the same channel of the same cell |
//! | order | for every pair `(a, b)`: the last phase of `a` is not later than the first of `b` |
//! | bandwidth, latency | what link sharing in the phase leaves a route meets its connection's contract |
//!
//! For a **timetable**, besides:
//!
//! | rule | statement |
//! |---|---|
//! | duration | a slot lasts at least `words x access_clocks_per_word + stream_setup`; all phases, and all sets of a program, end within the limit on clocks |
//! | agent-overlap | at no moment has an agent more than `streams` slots open in one direction (half duplex: in both together, a connection to itself counting once); not asked on a machine with timed starts, where a stream whose agent is busy opens late |
//! | order | if `a` ends and `b` begins in the same phase, every slot of `a` ends before any of `b` starts |
//! | makespan | is the end of the last slot, 0 without slots |
//!
//! For a **schedule**, besides:
//!
//! | rule | statement |
//! |---|---|
//! | claim | a lower bound is no more than what its witness (or, without one, a count) proves, and the prediction is between what the busiest agents and links take and what all routes take one after the other (module `claims`) |
//! | digest | where a digest is stated, it is that of the machine and the sets |
//!
//! For an **image**, the tables are followed forward from every injection gate, and then
//!
//! | rule | statement |
//! |---|---|
//! | barrier | every phase has a table for every cell |
//! | table | no channel is listed twice at a cell |
//! | chain | every forward is taken up by an entry fed by that link, every entry fed by a link is the target of exactly one forward |
//! | cycle | every entry is reached from a gate |
//! | gate | gates are at their connection's ends, and a route ends as the connection it began as |
//! | operation | every operation has its gate, every gate exactly one operation |
//! | words | both ends move the same range of words; a connection's ranges tile its data, later phases carry later words |
//! | start | both ends plan the same start |
//! | list-order | every operation list is in the order of its planned starts |
//! | deadlock, undecided | the lists get through with channels of any depth ([`deadlock`]) |
//! | lift | routes, channels, links, words and starts are those of the timetable it was made from |
//!
//! and every rule of a routing is asked of the routes that were found, and *agent-overlap* and
//! *order* of their planned starts, each with the shortest slot that its words allow. (So the lists
//! of different agents can differ only in connections of a cell to itself, half duplex, or where
//! an agent holds several streams: that is what is left for deadlock.)
//!
//! # What follows from it
//!
//! *Every word arrives once, in order, at the right cell:* coverage, words, gate and chain.
//! *A switch is safe:* a phase's tables replace those before as a whole, at every cell (barrier);
//! operations move exactly the words of the phase, so channels are empty when all lists are done;
//! and they do get done (deadlock).
//! *A verified timetable is free of deadlock* if its lists are in the order of its slots: a wait
//! is always for a stream with an earlier slot. It is checked on the image all the same.
//!
//! *A phase takes a known time*, on a machine with timed starts, if its streams never meet on a link
//! or an agent: [`phase_lengths`] proves it and [`Report`] counts such phases. Others are neither
//! proved nor refused.
//!
//! # What is not
//!
//! * That a schedule is good, that a bound is tight, that a prediction comes true (only that it is
//!   within what can be counted).
//! * The rate that open streams of an agent share among them when `streams` is above 1, and link
//!   sharing, against the slots: a timetable is an order with estimates, the runtime keeps the
//!   order. For the same reason bandwidth is what *links* and one stream's access rate guarantee.
//! * That order between connections of one phase that share no agent is kept at run time: the
//!   lists of different cells do not know of each other. The deadlock model takes order as waits.
//! * The machine itself: links are taken from it, only what is dead is worked out anew.
//! * Node lists: which mesh node a word stands for.
//!
//! # Cost
//!
//! Linear in hops, n log n in slots and operations; flat arrays, no hash maps. Errors are listed
//! up to [`Rejection::LISTED`] and counted beyond.

#![forbid(unsafe_code)]

pub mod deadlock;
pub mod facts;
pub mod rejection;
pub mod verified;

mod channels;
mod claims;
mod clocks;
mod image;
mod lengths;
mod lift;
mod live;
mod order;
mod routes;
mod sharing;
mod times;
mod tokens;

use conset_ir::digest::spelling;
use conset_ir::{Image, Routing, Schedule, SetSchedule, Timetable};

use crate::rejection::Findings;

pub use facts::Report;
pub use image::Lifted;
pub use lengths::phase_lengths;
pub use rejection::{Rejection, Rule, Violation};
pub use sharing::link_sharing;
pub use verified::Verified;

/// Checks a routing: coverage, routes, channels, order between phases, contracts.
///
/// # Errors
/// Everything that is wrong with it.
pub fn routing(routing: &Routing) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    findings.enter_set(routing.set().name());
    let report = routes::check(routing, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a timetable and its routing, and marks it as verified. To keep the value if it is
/// refused, call [`check_timetable`] instead.
///
/// # Errors
/// Everything that is wrong with it. Times are only looked at if the routing is right.
pub fn timetable(timetable: Timetable) -> Result<Verified<Timetable>, Rejection> {
    let report = check_timetable(&timetable)?;
    Ok(Verified::new(timetable, report))
}

/// Checks a timetable and its routing.
///
/// # Errors
/// As [`timetable`].
pub fn check_timetable(timetable: &Timetable) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = timetable_into(timetable, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a compiled set: its timetable and its claims.
///
/// # Errors
/// Everything that is wrong with it. Claims are only looked at if the timetable is right.
pub fn set_schedule(schedule: SetSchedule) -> Result<Verified<SetSchedule>, Rejection> {
    let report = check_set_schedule(&schedule)?;
    Ok(Verified::new(schedule, report))
}

/// Checks a compiled set: its timetable and its claims.
///
/// # Errors
/// As [`set_schedule`].
pub fn check_set_schedule(schedule: &SetSchedule) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = set_into(schedule, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a compiled program: every set of it.
///
/// # Errors
/// Everything that is wrong with any of its sets.
pub fn schedule(schedule: Schedule) -> Result<Verified<Schedule>, Rejection> {
    let report = check_schedule(&schedule)?;
    Ok(Verified::new(schedule, report))
}

/// Checks a compiled program: every set of it.
///
/// # Errors
/// As [`schedule`].
pub fn check_schedule(schedule: &Schedule) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    clocks::check(schedule, &mut findings);
    let mut report = Report::default();
    if findings.total() == 0 {
        for set in schedule.sets() {
            report = report.and(set_into(set, &mut findings));
        }
    }
    digest_into(schedule, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks only that the clocks of all sets of a program together are within the limits: what
/// remains to be asked of a schedule each set of which passed [`set_schedule`].
///
/// # Errors
/// The sets up to which they are more.
pub fn check_clocks(schedule: &Schedule) -> Result<(), Rejection> {
    let mut findings = Findings::new();
    clocks::check(schedule, &mut findings);
    findings.finish()
}

/// Checks that a digest, if one is stated, is that of the machine and the sets: the rule of
/// [`schedule`] that is none of [`set_schedule`].
///
/// # Errors
/// Another digest.
pub fn check_digest(schedule: &Schedule) -> Result<(), Rejection> {
    let mut findings = Findings::new();
    digest_into(schedule, &mut findings);
    findings.finish()
}

/// Checks an image on its own: its tables, the routing they spell, its operation lists.
///
/// # Errors
/// Everything that is wrong with it; later rules are only asked of sets that keep the earlier
/// ones.
pub fn image(image: Image) -> Result<Verified<Image>, Rejection> {
    let report = check_image(&image)?;
    Ok(Verified::new(image, report))
}

/// Checks an image on its own.
///
/// # Errors
/// As [`image`].
pub fn check_image(image: &Image) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = image::check(image, None, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks an image on its own and that it says what the timetables say, one timetable per set of
/// the image, in its order. That the timetables are right themselves is for [`timetable`].
///
/// # Errors
/// Everything that is wrong with it, and every route in which it differs.
pub fn image_of(image: Image, timetables: &[&Timetable]) -> Result<Verified<Image>, Rejection> {
    let report = check_image_of(&image, timetables)?;
    Ok(Verified::new(image, report))
}

/// Checks an image on its own and that it says what the timetables say.
///
/// # Errors
/// As [`image_of`].
pub fn check_image_of(image: &Image, timetables: &[&Timetable]) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = image::check(image, Some(timetables), &mut findings);
    findings.finish().map(|()| report)
}

/// Follows the tables of an image forward, back to routes and starts, set by set.
///
/// # Errors
/// Where the tables lead nowhere, in rings, to wrong gates, or do not fit the operations. That
/// the routes are right is not asked.
pub fn lift(image: &Image) -> Result<Vec<Lifted>, Rejection> {
    let mut findings = Findings::new();
    let lifted =
        image.sets().iter().filter_map(|set| image::lift_set(image, set, &mut findings)).collect();
    findings.finish().map(|()| lifted)
}

fn timetable_into(timetable: &Timetable, findings: &mut Findings) -> Report {
    let before = findings.total();
    findings.enter_set(timetable.routing().set().name());
    let report = routes::check(timetable.routing(), findings);
    if findings.total() > before {
        return report;
    }
    let mut report = report.and(times::check(timetable, findings));
    if findings.total() == before && timetable.routing().machine().parameters().has_timed_starts() {
        report.add_lengths(&phase_lengths(timetable));
    }
    report
}

fn digest_into(schedule: &Schedule, findings: &mut Findings) {
    let Some(stated) = schedule.digest() else { return };
    let found = schedule.recomputed_digest();
    if stated != found {
        findings.enter_set("program");
        findings.add(Rule::Digest, rejection::Place::set(), || {
            format!(
                "the digest {} is stated; that of the machine and the sets is {}",
                spelling(stated),
                spelling(found)
            )
        });
    }
}

fn set_into(schedule: &SetSchedule, findings: &mut Findings) -> Report {
    let before = findings.total();
    let report = timetable_into(&schedule.timetable, findings);
    if findings.total() == before {
        claims::check(schedule, findings);
    }
    report
}
