//! Limits for the sums of clocks over all sets of a program.
//!
//! Files may state any number of clocks. The later rules of the checker, and all code that uses
//! verified values, can add up the accepted ones in `u64`: the words of all sets, one connection
//! after the other, take at most [`limits::SERIAL_TIME`], and timetables, bounds and predictions at
//! most [`limits::TIME`] each.

use conset_ir::{Machine, PhaseTimes, Program, Schedule, Timetable, limits};

use crate::rejection::{Findings, Location, Rule};

/// Checks a schedule. Its sets must be checked only if this finds nothing.
pub(crate) fn check(schedule: &Schedule, findings: &mut Findings) {
    check_words(schedule.machine(), &schedule.program(), findings);
    let mut sums = [0u128; 3];
    for set in schedule.sets() {
        findings.enter_set(set.timetable.routing().set().name());
        let planned = of_timetable(&set.timetable);
        let claims = [set.bounds.clocks, set.predicted_clocks].map(u128::from);
        let parts = [
            (Rule::Duration, "planned", planned),
            (Rule::Claim, "claimed as a bound", claims[0]),
            (Rule::Claim, "predicted", claims[1]),
        ];
        for (sum, (rule, what, clocks)) in sums.iter_mut().zip(parts) {
            *sum += clocks;
            check_sum(rule, what, *sum, findings);
        }
    }
}

/// Checks the time of the words of a program, one connection after the other.
pub(crate) fn check_words(machine: &Machine, program: &Program, findings: &mut Findings) {
    if let Err(error) = program.check_clocks(machine) {
        findings.enter_set("program");
        findings.add(Rule::Duration, Location::set(), || error.message);
    }
}

/// Checks a sum over the sets so far.
pub(crate) fn check_sum(rule: Rule, what: &str, sum: u128, findings: &mut Findings) {
    if sum > u128::from(limits::TIME) {
        findings.add(rule, Location::set(), || {
            format!(
                "{sum} clocks are {what}, with those of the sets before it; at most {}",
                limits::TIME
            )
        });
    }
}

/// The clocks of a timetable, computed or claimed, whichever is greater, with switches.
pub(crate) fn of_timetable(timetable: &Timetable) -> u128 {
    let switch = u128::from(timetable.routing().machine().parameters().switch_clocks());
    let end = |times: &PhaseTimes| {
        let ends = times.slots.iter().map(|s| u128::from(s.start) + u128::from(s.duration));
        ends.max().unwrap_or(0).max(times.makespan.into())
    };
    timetable.phases().iter().map(|times| switch + end(times)).sum()
}
