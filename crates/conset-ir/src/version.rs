//! The lowest format version that can express a value.
//!
//! Writers write that version, so that older programs can read every file that has no newer
//! feature in it.

use crate::document::Document;
use crate::image::Image;
use crate::machine::Machine;
use crate::schedule::{Binding, Schedule};
use crate::step_schedule::StepSchedule;
use crate::topology::Topology;
use crate::witness::Witness;

/// The version of the JSON form of programs that are compiled to steps, and of the text form of
/// their images.
pub(crate) const STEPS: u8 = 4;

/// The version of the text and JSON forms of schedules with [`Witness::Prices`]; the major version of
/// their binary form is one less.
const PRICES: u8 = 7;

/// The version of the text and JSON forms of schedules with a bound by [`Binding::Latency`]; the
/// major version of their binary form is one less.
const LATENCY: u8 = 8;

/// The greatest number of channels per cell that programs before version 5 accept.
const FORMER_CHANNELS: u32 = 4096;

/// The version of the text and JSON forms needed for a machine: 6 with parameters of active messages; 5
/// for clusters, with their parameters, and for more than 4096 channels; 4 with parameters of messages, or with parents of a fat-tree, that are
/// not the default; 2 with timed starts; else 1.
pub(crate) fn of_machine(machine: Option<&Machine>) -> u8 {
    match machine_major(machine) {
        major @ 3.. => major + 1,
        major => major,
    }
}

/// The major version of the binary form needed for a document. Older programs would read something
/// else if they skipped what is new, so they must refuse it, which a minor version does not do.
pub(crate) fn major(document: &Document) -> u8 {
    let contents = match document {
        Document::Schedule(schedule) => of_claims(schedule),
        Document::Steps(schedule) if steps_have_prices(schedule) => Some(PRICES),
        _ => None,
    };
    match contents {
        Some(version) => version - 1,
        None => machine_major(document.machine().map(|machine| &**machine)),
    }
}

/// The major version of the binary form needed for a machine.
fn machine_major(machine: Option<&Machine>) -> u8 {
    let Some(machine) = machine else { return 1 };
    let parameters = machine.parameters();
    if parameters.has_active_parameters() {
        5
    } else if matches!(machine.topology(), Topology::Cluster { .. })
        || parameters.network_overhead.max(parameters.network_clocks_per_word) > 0
        || parameters.channels_per_cell.max(parameters.channels_reserved) > FORMER_CHANNELS
    {
        4
    } else if machine.topology().has_own_parents() || machine.parameters().has_message_parameters()
    {
        3
    } else if machine.parameters().has_timed_starts() {
        2
    } else {
        1
    }
}

/// The version of the text and JSON forms needed for a schedule.
pub(crate) fn of_schedule(schedule: &Schedule) -> u8 {
    let contents = if let Some(version) = of_claims(schedule) {
        version
    } else if schedule.part_map().is_some() {
        3
    } else if has_digest_or_witness(schedule) {
        2
    } else {
        1
    };
    of_machine(Some(schedule.machine())).max(contents)
}

/// The version of the text form needed for a step schedule.
pub(crate) fn of_step_schedule(schedule: &StepSchedule) -> u8 {
    let contents = if steps_have_prices(schedule) { PRICES } else { 1 };
    of_machine(Some(schedule.machine())).max(contents)
}

/// The version of the text form needed for an image.
pub(crate) fn of_image(image: &Image) -> u8 {
    let contents = if image.is_steps() { STEPS } else { 1 };
    of_machine(Some(image.machine())).max(contents)
}

/// Whether a schedule has what version 1 cannot express: a digest, or a witness of a bound.
pub(crate) fn has_digest_or_witness(schedule: &Schedule) -> bool {
    schedule.digest().is_some() || schedule.sets().iter().any(|set| !set.proof.is_empty())
}

/// The version of the text and JSON forms needed for the bounds of a schedule, if it is a major one.
fn of_claims(schedule: &Schedule) -> Option<u8> {
    if is_bound_by_latency(schedule) {
        Some(LATENCY)
    } else {
        has_prices(schedule).then_some(PRICES)
    }
}

fn is_bound_by_latency(schedule: &Schedule) -> bool {
    schedule.sets().iter().any(|set| set.bounds.clocks_by == Binding::Latency)
}

fn has_prices(schedule: &Schedule) -> bool {
    let witnesses = schedule.sets().iter().flat_map(|set| [&set.proof.phases, &set.proof.clocks]);
    witnesses.flatten().any(is_prices)
}

fn steps_have_prices(schedule: &StepSchedule) -> bool {
    let witnesses = schedule.sets().iter().map(|set| &set.bounds.clocks_witness);
    witnesses.flatten().any(is_prices)
}

fn is_prices(witness: &Witness) -> bool {
    matches!(witness, Witness::Prices { .. })
}
