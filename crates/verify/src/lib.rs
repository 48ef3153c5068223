//! The independent checker of conset schedules and images.

pub mod facts;
pub mod rejection;
pub mod verified;

mod channels;
mod claims;
mod live;
mod order;
mod routes;
mod sharing;
mod times;

use conset_ir::{Routing, Schedule, SetSchedule, Timetable};

use crate::rejection::Findings;

pub use facts::Report;
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
    let mut findings = Findings::new();
    let report = set_into(&schedule, &mut findings);
    findings.finish()?;
    Ok(Verified::new(schedule, report))
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
    let mut report = Report::default();
    for set in schedule.sets() {
        report = report.and(set_into(set, &mut findings));
    }
    findings.finish().map(|()| report)
}

fn timetable_into(timetable: &Timetable, findings: &mut Findings) -> Report {
    let before = findings.total();
    findings.enter_set(timetable.routing().set().name());
    let report = routes::check(timetable.routing(), findings);
    if findings.total() > before {
        return report;
    }
    report.and(times::check(timetable, findings))
}

fn set_into(schedule: &SetSchedule, findings: &mut Findings) -> Report {
    let before = findings.total();
    let report = timetable_into(&schedule.timetable, findings);
    if findings.total() == before {
        claims::check(schedule, findings);
    }
    report
}
