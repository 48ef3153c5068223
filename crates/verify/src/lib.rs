//! The independent checker of conset schedules and images.
//!
//! The checker shares no code with the stages that produce schedules. It depends on `conset-ir` only
//! (a test enforces this) and computes everything again from the value. An accepted value is
//! returned as a [`Verified`], which only this crate can make and which code generation requires. A
//! refused value yields a [`Rejection`], which lists each [`Violation`] with its [`Rule`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use conset_ir::{
//!     CellId, ChannelId, Connection, ConnectionId, ConnectionSet, LinkFinder, Machine, PhaseRoutes,
//!     Routing,
//! };
//! use conset_verify::Rule;
//!
//! let machine = Arc::new(Machine::from_spec("torus:4x4")?);
//! let connection = Connection::new(CellId(0), CellId(1), 133);
//! let set = Arc::new(ConnectionSet::new("one", vec![connection])?);
//! let route = |words| -> Result<Routing, conset_ir::ShapeError> {
//!     let cells = [CellId(0), CellId(1)];
//!     let links: Vec<_> = LinkFinder::new(&machine).along(&cells).collect();
//!     let mut phase = PhaseRoutes::new();
//!     phase.push(ConnectionId(0), words, &cells, &links, &[ChannelId(0); 2])?;
//!     Routing::new(machine.clone(), set.clone(), vec![phase])
//! };
//! assert_eq!(conset_verify::routing(&route(133)?)?.hops, 1);
//! let rejection = conset_verify::routing(&route(132)?).unwrap_err();
//! assert_eq!(rejection.rules(), [Rule::Coverage]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is verified
//!
//! For a **routing** with phases `P` and the routes `R(p)` of phase `p`:
//!
//! | rule | statement |
//! |---|---|
//! | shape | every id is in range; a route has one channel per cell and one link fewer |
//! | coverage | for every connection `x`: the words of its routes, over all phases, sum to the words of `x`; no route has 0 words |
//! | ends | a route starts at the source of its connection and ends at its target, both live cells with an agent |
//! | adjacency | link `i` of a route leads from its cell `i` to its cell `i + 1` |
//! | dead | no cell and no link of a route is marked dead |
//! | simple-route | no cell occurs twice in a route |
//! | capacity | for every `p` and cell `c`: `\|{r in R(p) : c in r}\| <= channels_per_cell` |
//! | channel-range | every channel is below `channels_per_cell` (reserved channels have higher numbers) |
//! | double-booking | for every `p`: no two routes use the same channel of the same cell |
//! | order | for every pair `(a, b)`: the last phase of `a` is not later than the first of `b` |
//! | bandwidth, latency | with the link sharing of its phase, a route meets the requirements of its connection |
//!
//! For a **timetable**, in addition:
//!
//! | rule | statement |
//! |---|---|
//! | duration | a slot lasts at least `words x access_clocks_per_word + stream_setup`; all phases, and all sets of a program, end within the limit on clocks |
//! | agent-overlap | at no time has an agent more than `streams` slots open in one direction (half duplex: in both together, where a connection of a cell to itself counts once); not checked on a machine with timed starts, where a stream opens late if its agent is busy |
//! | order | if `a` ends and `b` begins in the same phase, every slot of `a` ends before any slot of `b` starts |
//! | makespan | it is the end of the last slot, 0 without slots |
//!
//! For a **schedule**, in addition:
//!
//! | rule | statement |
//! |---|---|
//! | claim | a lower bound is at most what its witness (or, without one, a count) proves; the prediction is between the time of the busiest agents and links and the time of all routes one after the other (module `claims`) |
//! | digest | a stated digest is that of the machine and the sets |
//!
//! For a **step plan**, whose messages are followed in the order of the operation lists:
//!
//! | rule | statement |
//! |---|---|
//! | ends | a message is from a live cell with an agent to another one |
//! | words | a piece has at least one word, and only words of its connection |
//! | holding | a cell sends only words that it has: its own, or received by an earlier operation |
//! | coverage | every word of a connection ends at its target |
//! | pairing | every message is once in the list of each of its ends and in no other; messages between the same two cells have the same order in both |
//! | order | for every pair `(a, b)`: all messages with pieces of `a` are before all with pieces of `b` |
//! | deadlock | the graph of the lists, one node per message and one chain per cell, has no cycle |
//! | duration | all messages, one after the other, end within the limit on clocks |
//! | claim | a bound is at most what is proved; the prediction is between the time of the busiest cell and that of all messages one after the other (module `step_claims`) |
//! | digest | a stated digest is that of the machine and the sets |
//!
//! For an **image**, whose tables are followed from every injection gate:
//!
//! | rule | statement |
//! |---|---|
//! | barrier | every phase has a table for every cell |
//! | table | no channel has two entries at a cell |
//! | chain | every forward leads to an entry fed by that link, and every entry fed by a link is the target of exactly one forward |
//! | cycle | every entry is reached from a gate |
//! | gate | gates are at the ends of their connection, and both ends of a route have the same connection |
//! | operation | every operation has a gate, and every gate exactly one operation |
//! | words | both ends move the same range of words; the ranges of a connection partition its data, and later phases carry later words |
//! | start | both ends have the same planned start |
//! | list-order | every operation list is ordered by planned start |
//! | deadlock, undecided | all operation lists complete with channels of any depth ([`deadlock`]) |
//! | lift | routes, channels, links, words and starts are those of the timetable that the image was generated from |
//!
//! In addition, the routes that result from the tables are checked by all rules of a routing, and
//! their planned starts by *agent-overlap* and *order*, each with the shortest slot for its words.
//! (So the lists of different agents can be in a different order only for connections of a cell to
//! itself with half duplex, or if an agent holds several streams; the deadlock rule covers these.)
//!
//! # What follows
//!
//! *Every word arrives once, in order, at the right cell*, by coverage, words, gate and chain.
//! *A context switch is safe:* the tables of a phase replace the previous ones at every cell
//! (barrier). Operations move exactly the words of the phase, so channels are empty when all lists
//! are complete, and all lists do complete (deadlock).
//! *A verified timetable is free of deadlock* if its lists are in the order of its slots, because
//! every operation waits only for streams with earlier slots. The image is checked nevertheless.
//!
//! *The length of a phase is known*, on a machine with timed starts, if its streams never meet on a
//! link or an agent: [`phase_lengths`] proves it and [`Report`] counts such phases. Other phases are
//! neither proved nor refused.
//!
//! # What is not verified
//!
//! * That a schedule is good, a bound tight, or a prediction accurate (only that it is within the
//!   limits that can be computed).
//! * Slots against link sharing and, with `streams` above 1, against the sharing of an agent's rate:
//!   a timetable is an order with estimates, and the runtime observes the order. For the same
//!   reason, the guaranteed bandwidth considers *links* and the access rate of one stream.
//! * That the order between connections of one phase that share no agent is observed at run time:
//!   the lists of different cells are independent. The deadlock model treats this order as waits.
//! * The machine: its links are used as they are; only dead cells and links are computed again.
//! * Node lists: which mesh node a word belongs to.
//!
//! # Cost
//!
//! Linear in hops, O(n log n) in slots and operations; flat arrays, no hash maps. At most
//! [`Rejection::LISTED`] violations are listed; all are counted.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

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
mod step_claims;
mod steps;
mod times;
mod token_model;
mod waits;

use conset_ir::digest::spelling;
use conset_ir::{
    Image, Lists, Routing, Schedule, SetSchedule, SetSteps, StepSchedule, Steps, Timetable,
};

use crate::rejection::Findings;

pub use facts::Report;
pub use image::Lifted;
pub use lengths::phase_lengths;
pub use rejection::{Rejection, Rule, Violation};
pub use sharing::link_sharing;
pub use verified::Verified;

/// Checks a routing: coverage, routes, channels, order between phases, requirements.
///
/// # Errors
/// All violations.
pub fn routing(routing: &Routing) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    findings.enter_set(routing.set().name());
    let report = routes::check(routing, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a timetable and its routing, and marks it as verified. [`check_timetable`] borrows the
/// timetable instead.
///
/// # Errors
/// All violations. Times are checked only if the routing is correct.
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
/// All violations. Claims are checked only if the timetable is correct.
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

/// Checks a compiled program: all its sets, and its digest if it has one.
///
/// # Errors
/// All violations of its sets.
pub fn schedule(schedule: Schedule) -> Result<Verified<Schedule>, Rejection> {
    let report = check_schedule(&schedule)?;
    Ok(Verified::new(schedule, report))
}

/// Checks a compiled program: all its sets, and its digest if it has one.
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
    digest_into(schedule.digest(), || schedule.recomputed_digest(), &mut findings);
    findings.finish().map(|()| report)
}

/// Checks only that the clocks of all sets of a program together are within the limits: the rule of
/// [`schedule`] that remains if [`set_schedule`] accepted each set.
///
/// # Errors
/// The sets at which a limit is exceeded.
pub fn check_clocks(schedule: &Schedule) -> Result<(), Rejection> {
    let mut findings = Findings::new();
    clocks::check(schedule, &mut findings);
    findings.finish()
}

/// Checks only that a stated digest is that of the machine and the sets: the rule of [`schedule`]
/// that does not concern a single set.
///
/// # Errors
/// A different digest.
pub fn check_digest(schedule: &Schedule) -> Result<(), Rejection> {
    let mut findings = Findings::new();
    digest_into(schedule.digest(), || schedule.recomputed_digest(), &mut findings);
    findings.finish()
}

/// Checks an image on its own: its tables, the resulting routing, and its operation lists.
///
/// # Errors
/// All violations; later rules are checked only for sets that satisfy the earlier ones.
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

/// Checks an image on its own and compares it with timetables, one per set of the image in its
/// order. The timetables themselves are checked by [`timetable`].
///
/// # Errors
/// All violations, and every route that differs.
pub fn image_of(image: Image, timetables: &[&Timetable]) -> Result<Verified<Image>, Rejection> {
    let report = check_image_of(&image, timetables)?;
    Ok(Verified::new(image, report))
}

/// Checks an image on its own and compares it with timetables.
///
/// # Errors
/// As [`image_of`].
pub fn check_image_of(image: &Image, timetables: &[&Timetable]) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = image::check(image, Some(timetables), &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a step plan: what its messages carry, and the operation lists that follow from it. It marks
/// the plan as verified; [`check_steps`] borrows it instead.
///
/// # Errors
/// All violations. What messages carry is followed only if the messages themselves are correct.
pub fn steps(steps: Steps) -> Result<Verified<Steps>, Rejection> {
    let report = check_steps(&steps)?;
    Ok(Verified::new(steps, report))
}

/// Checks a step plan.
///
/// # Errors
/// As [`steps()`].
pub fn check_steps(steps: &Steps) -> Result<Report, Rejection> {
    check_step_lists(steps, &steps.lists())
}

/// Checks a step plan with operation lists other than its own: for each cell with an agent, the
/// numbers of the messages that it sends or receives, in the order of its operations.
///
/// # Errors
/// As [`steps()`], and lists that are not paired or wait for each other in a cycle.
pub fn check_step_lists(steps: &Steps, lists: &Lists<u32>) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    findings.enter_set(steps.set().name());
    let report = steps::check(steps, lists, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a set that is compiled to steps: its plan and its claims.
///
/// # Errors
/// All violations. Claims are checked only if the plan is correct.
pub fn check_set_steps(set: &SetSteps) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    let report = set_steps_into(set, &mut findings);
    findings.finish().map(|()| report)
}

/// Checks a program that is compiled to steps: all its sets, and its digest if it has one.
///
/// # Errors
/// All violations of its sets.
pub fn step_schedule(schedule: StepSchedule) -> Result<Verified<StepSchedule>, Rejection> {
    let report = check_step_schedule(&schedule)?;
    Ok(Verified::new(schedule, report))
}

/// Checks a program that is compiled to steps.
///
/// # Errors
/// As [`step_schedule`].
pub fn check_step_schedule(schedule: &StepSchedule) -> Result<Report, Rejection> {
    let mut findings = Findings::new();
    clocks::check_words(schedule.machine(), &schedule.program(), &mut findings);
    step_claims::check_sums(schedule.sets(), &mut findings);
    let mut report = Report::default();
    if findings.total() == 0 {
        for set in schedule.sets() {
            report = report.and(set_steps_into(set, &mut findings));
        }
    }
    digest_into(schedule.digest(), || schedule.recomputed_digest(), &mut findings);
    findings.finish().map(|()| report)
}

/// Reconstructs the routes and starts of an image by following its tables, set by set. Sets with
/// steps have no tables and are left out.
///
/// # Errors
/// Tables that lead nowhere, into cycles or to wrong gates, or that do not fit the operations. The
/// routes are not checked.
pub fn lift(image: &Image) -> Result<Vec<Lifted>, Rejection> {
    let mut findings = Findings::new();
    let sets = image.sets().iter().filter(|set| set.steps.is_none());
    let lifted = sets.filter_map(|set| image::lift_set(image, set, &mut findings)).collect();
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

fn set_steps_into(set: &SetSteps, findings: &mut Findings) -> Report {
    let before = findings.total();
    findings.enter_set(set.steps.set().name());
    let report = steps::check(&set.steps, &set.steps.lists(), findings);
    if findings.total() == before {
        step_claims::check(set, findings);
    }
    report
}

fn digest_into(stated: Option<u64>, recompute: impl FnOnce() -> u64, findings: &mut Findings) {
    let Some(stated) = stated else { return };
    let found = recompute();
    if stated != found {
        findings.enter_set("program");
        findings.add(Rule::Digest, rejection::Location::set(), || {
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
