//! The outcome of a run on threads: the error behind a failure, and errors that only the end
//! reveals.
//!
//! In a deadlock every cell waits for another or has ended; following the waits from the first
//! waiting cell leads into a cycle or to a cell that has ended.

use conset_ir::convert::to_u32;
use conset_ir::{CellId, ConnectionId};

use super::shared_state::{RunFailure, SharedState};
use super::worker::{CellActivity, CellStatus, StepEntry, WaitReason, WorkerResult};
use crate::call::{Collective, mismatch};
use crate::deadlock::follow;
use crate::error::{Awaiting, CellWait, RunError};
use crate::loaded_image::LoadedImage;

/// The error of a run, if it had one.
pub(crate) fn error_of(state: &mut SharedState<'_>, left: &[WorkerResult]) -> Option<RunError> {
    let failure = state.take_failure();
    let loaded = state.loaded;
    let places: Vec<CellStatus> =
        left.iter().flat_map(|left| left.places.iter().copied()).collect();
    match failure {
        Some(RunFailure::Known(error)) => Some(error),
        Some(RunFailure::Disagree { step, cell, what, call }) => {
            let record = left.iter().flat_map(|left| left.record.iter().copied());
            Some(disagreement(loaded, StepEntry { step, what, call, cell }, record))
        }
        Some(RunFailure::Deadlock) => Some(deadlock_error(loaded, &places)),
        None => ended_early(loaded, &places).or_else(|| unreceived(state)),
    }
}

fn disagreement(
    loaded: &LoadedImage,
    own: StepEntry,
    record: impl Iterator<Item = StepEntry>,
) -> RunError {
    let differs =
        |other: &StepEntry| (other.what, other.call.mark()) != (own.what, own.call.mark());
    let others = record.filter(|other| other.step == own.step && differs(other));
    // Another thing is worse than another place.
    let other = others.min_by_key(|other| (other.what == own.what, other.cell));
    let other = other.expect("it found another to disagree with");
    let (one, two) = if other.cell < own.cell { (other, own) } else { (own, other) };
    let collective = |done: StepEntry| Collective::of_number(done.what, loaded);
    if one.what == two.what {
        let describe = |done: StepEntry| {
            done.call.describe(done.cell, done.step, collective(done).title(loaded))
        };
        return mismatch(describe(one), describe(two));
    }
    let [phase, other] = [one, two].map(|done| collective(done).name(loaded));
    RunError::Disagree { first: one.cell, phase, second: two.cell, other }
}

/// A cell that ended at an earlier step than others, where all have ended.
fn ended_early(loaded: &LoadedImage, places: &[CellStatus]) -> Option<RunError> {
    let waiting = places.iter().rev().max_by_key(|place| place.step.0)?;
    let ended = places.iter().find(|place| place.step.0 < waiting.step.0)?;
    Some(ended_while(loaded, ended, waiting))
}

fn ended_while(loaded: &LoadedImage, ended: &CellStatus, waiting: &CellStatus) -> RunError {
    let phase = Collective::of_number(waiting.step.1, loaded).name(loaded);
    RunError::Ended { ended: ended.cell, waiting: waiting.cell, phase }
}

/// Words sent and not received, where all have ended.
fn unreceived(state: &SharedState<'_>) -> Option<RunError> {
    for (cell, inbox) in state.inboxes.iter().enumerate() {
        if let Some(error) = inbox.unread(CellId(to_u32(cell))) {
            return Some(error);
        }
    }
    for (row, shared) in state.sets.iter().enumerate() {
        let Some(elements) = shared.used_elements() else { continue };
        let set = state.loaded.set(row);
        for (connection, ends) in set.iter() {
            let [sent, received] = [&elements.sent, &elements.received]
                .map(|counters| counters[connection.index()].value());
            if received < sent {
                let (cell, words) = (ends.target, sent - received);
                let set = set.name().to_owned();
                return Some(RunError::Unreceived { cell, set, connection, words });
            }
        }
    }
    None
}

/// Why nothing can go on.
fn deadlock_error(loaded: &LoadedImage, places: &[CellStatus]) -> RunError {
    let together = |reason| {
        matches!(reason, WaitReason::Arrival(_) | WaitReason::Rows(..) | WaitReason::Readers(..))
    };
    let all_together = places.iter().all(|place| match place.at {
        CellActivity::Waiting(reason) => together(reason),
        CellActivity::Running | CellActivity::Ended => true,
    });
    let waiting = places.iter().find(|place| matches!(place.at, CellActivity::Waiting(_)));
    let waiting = waiting.expect("a cell waits where nothing can go on");
    let missing =
        |place: &&CellStatus| place.at == CellActivity::Ended && place.step.0 < waiting.step.0;
    if let (true, Some(ended)) = (all_together, places.iter().find(missing)) {
        return ended_while(loaded, ended, waiting);
    }
    let wait =
        |row: usize| CellWait { cell: places[row].cell, awaiting: awaiting(loaded, &places[row]) };
    let start = places.partition_point(|other| other.cell < waiting.cell);
    follow(start, wait, |row| next(loaded, places, &places[row]))
}

pub(super) fn awaiting(loaded: &LoadedImage, place: &CellStatus) -> Awaiting {
    let name = |set: usize| loaded.set(set).name().to_owned();
    match place.at {
        CellActivity::Ended => Awaiting::Ended,
        CellActivity::Running => Awaiting::Running,
        CellActivity::Waiting(WaitReason::Arrival(_)) => {
            Awaiting::Switch { phase: Collective::of_number(place.step.1, loaded).name(loaded) }
        }
        CellActivity::Waiting(WaitReason::Rows(set, connection)) => {
            Awaiting::Exchange { set: name(set), connection }
        }
        CellActivity::Waiting(WaitReason::Readers(set, connection)) => {
            Awaiting::Readers { set: name(set), connection }
        }
        CellActivity::Waiting(WaitReason::Word(set, connection)) => {
            Awaiting::Word { set: name(set), connection }
        }
        CellActivity::Waiting(WaitReason::Message(source)) => Awaiting::Message { source },
        CellActivity::Waiting(WaitReason::AnyMessage) => Awaiting::AnyMessage,
        CellActivity::Waiting(WaitReason::Receiver(target)) => Awaiting::Departure { target },
        CellActivity::Waiting(WaitReason::Order(set, connection, before)) => {
            Awaiting::Order { set: name(set), connection, before }
        }
    }
}

/// The place of the cell that a cell waits for.
fn next(loaded: &LoadedImage, places: &[CellStatus], place: &CellStatus) -> Option<usize> {
    let CellActivity::Waiting(reason) = place.at else { return None };
    let ends = |set: usize, connection: ConnectionId| loaded.set(set).get(connection);
    let cell = match reason {
        WaitReason::Arrival(step) => return places.iter().position(|other| other.step.0 < step),
        WaitReason::Rows(set, connection) | WaitReason::Word(set, connection) => {
            ends(set, connection).source
        }
        WaitReason::Readers(set, connection) => ends(set, connection).target,
        WaitReason::Order(set, _, before) => ends(set, before).target,
        WaitReason::Message(cell) | WaitReason::Receiver(cell) => cell,
        WaitReason::AnyMessage => return None,
    };
    places.binary_search_by_key(&cell, |other| other.cell).ok()
}
