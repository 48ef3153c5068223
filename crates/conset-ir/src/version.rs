//! The lowest format version that can express a value.
//!
//! Writers write that version, so that older programs can read every file that has no newer
//! feature in it.

use crate::machine::Machine;
use crate::schedule::Schedule;

/// The version of the JSON form of programs that are compiled to steps.
pub(crate) const STEPS: u8 = 4;

/// The version of the text, JSON and binary forms needed for a machine: 2 with timed starts, else 1.
pub(crate) fn of_machine(machine: Option<&Machine>) -> u8 {
    if machine.is_some_and(|machine| machine.parameters().has_timed_starts()) { 2 } else { 1 }
}

/// The version of the text and JSON forms needed for a schedule.
pub(crate) fn of_schedule(schedule: &Schedule) -> u8 {
    if schedule.part_map().is_some() {
        return 3;
    }
    if has_digest_or_witness(schedule) { 2 } else { of_machine(Some(schedule.machine())) }
}

/// Whether a schedule has what version 1 cannot express: a digest, or a witness of a bound.
pub(crate) fn has_digest_or_witness(schedule: &Schedule) -> bool {
    schedule.digest().is_some() || schedule.sets().iter().any(|set| !set.proof.is_empty())
}
