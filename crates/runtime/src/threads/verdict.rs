//! What a run ended with: the error behind a failure, and what only the end shows.
//!
//! Where nothing can go on every cell waits for another or has ended; following the waits from
//! the first waiting cell leads round in a circle or to a cell that has ended.

use conset_ir::{CellId, ConnectionId};

use super::board::{Board, Failure};
use super::worker::{At, Done, Left, Place, Why};
use crate::call::{Collective, mismatch};
use crate::error::{Awaiting, CellWait, RunError};
use crate::loaded::Loaded;
use crate::waits::follow;

/// The error of a run, if it had one.
pub(crate) fn error_of<R>(board: &mut Board<'_>, left: &[Left<R>]) -> Option<RunError> {
    let failure = board.take_failure();
    let loaded = board.loaded;
    let places: Vec<Place> = left.iter().flat_map(|left| left.places.iter().copied()).collect();
    match failure {
        Some(Failure::Known(error)) => Some(error),
        Some(Failure::Disagree { step, cell, what, call }) => {
            let said = left.iter().flat_map(|left| left.said.iter().copied());
            Some(disagreement(loaded, Done { step, what, call, cell }, said))
        }
        Some(Failure::Stuck) => Some(stuck(loaded, &places)),
        None => ended_early(loaded, &places).or_else(|| unreceived(board)),
    }
}

fn disagreement(loaded: &Loaded, own: Done, said: impl Iterator<Item = Done>) -> RunError {
    let differs = |other: &Done| (other.what, other.call.mark()) != (own.what, own.call.mark());
    let others = said.filter(|other| other.step == own.step && differs(other));
    // Another thing is worse than another place.
    let other = others.min_by_key(|other| (other.what == own.what, other.cell));
    let other = other.expect("it found another to disagree with");
    let (one, two) = if other.cell < own.cell { (other, own) } else { (own, other) };
    let collective = |done: Done| Collective::of_number(done.what, loaded);
    if one.what == two.what {
        let told =
            |done: Done| done.call.told(done.cell, done.step, collective(done).title(loaded));
        return mismatch(told(one), told(two));
    }
    let [phase, other] = [one, two].map(|done| collective(done).name(loaded));
    RunError::Disagree { first: one.cell, phase, second: two.cell, other }
}

/// A cell that ended at an earlier step than others, where all have ended.
fn ended_early(loaded: &Loaded, places: &[Place]) -> Option<RunError> {
    let waiting = places.iter().rev().max_by_key(|place| place.step.0)?;
    let ended = places.iter().find(|place| place.step.0 < waiting.step.0)?;
    Some(ended_while(loaded, ended, waiting))
}

fn ended_while(loaded: &Loaded, ended: &Place, waiting: &Place) -> RunError {
    let phase = Collective::of_number(waiting.step.1, loaded).name(loaded);
    RunError::Ended { ended: ended.cell, waiting: waiting.cell, phase }
}

/// Words sent and not received, where all have ended.
fn unreceived(board: &Board<'_>) -> Option<RunError> {
    for (cell, inbox) in board.mail.iter().enumerate() {
        if let Some(error) = inbox.unread(CellId(cell as u32)) {
            return Some(error);
        }
    }
    for (row, shared) in board.sets.iter().enumerate() {
        let Some(elements) = shared.used_elements() else { continue };
        let set = board.loaded.set(row);
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
fn stuck(loaded: &Loaded, places: &[Place]) -> RunError {
    let together = |why| matches!(why, Why::Arrival(_) | Why::Rows(..) | Why::Readers(..));
    let all_together = places.iter().all(|place| match place.at {
        At::Waiting(why) => together(why),
        At::Running | At::Ended => true,
    });
    let waiting = places.iter().find(|place| matches!(place.at, At::Waiting(_)));
    let waiting = waiting.expect("a cell waits where nothing can go on");
    let missing = |place: &&Place| place.at == At::Ended && place.step.0 < waiting.step.0;
    if let (true, Some(ended)) = (all_together, places.iter().find(missing)) {
        return ended_while(loaded, ended, waiting);
    }
    let wait =
        |row: usize| CellWait { cell: places[row].cell, awaiting: awaiting(loaded, &places[row]) };
    let start = places.partition_point(|other| other.cell < waiting.cell);
    follow(start, wait, |row| next(loaded, places, &places[row]))
}

fn awaiting(loaded: &Loaded, place: &Place) -> Awaiting {
    let name = |set: usize| loaded.set(set).name().to_owned();
    match place.at {
        At::Ended => Awaiting::Ended,
        At::Running => Awaiting::Running,
        At::Waiting(Why::Arrival(_)) => {
            Awaiting::Switch { phase: Collective::of_number(place.step.1, loaded).name(loaded) }
        }
        At::Waiting(Why::Rows(set, connection)) => {
            Awaiting::Exchange { set: name(set), connection }
        }
        At::Waiting(Why::Readers(set, connection)) => {
            Awaiting::Readers { set: name(set), connection }
        }
        At::Waiting(Why::Word(set, connection)) => Awaiting::Word { set: name(set), connection },
        At::Waiting(Why::Message(source)) => Awaiting::Message { source },
        At::Waiting(Why::Order(set, connection, before)) => {
            Awaiting::Order { set: name(set), connection, before }
        }
    }
}

/// The place of the cell that a cell waits for.
fn next(loaded: &Loaded, places: &[Place], place: &Place) -> Option<usize> {
    let At::Waiting(why) = place.at else { return None };
    let ends = |set: usize, connection: ConnectionId| loaded.set(set).get(connection);
    let cell = match why {
        Why::Arrival(step) => return places.iter().position(|other| other.step.0 < step),
        Why::Rows(set, connection) | Why::Word(set, connection) => ends(set, connection).source,
        Why::Readers(set, connection) => ends(set, connection).target,
        Why::Order(set, _, before) => ends(set, before).target,
        Why::Message(source) => source,
    };
    places.binary_search_by_key(&cell, |other| other.cell).ok()
}
