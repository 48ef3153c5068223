//! Who waits for whom, among cells that cannot go on.
//!
//! Every cell waits for one other, or has ended. From the first waiting cell the waits lead round
//! in a circle, which is then all that is told, or to a cell that waits for none.

use crate::error::{CellWait, RunError};

/// The error for cells that cannot go on. Cells are numbered by the caller; `wait` says what one
/// waits for and `next` for which.
pub(crate) fn follow(
    start: usize,
    wait: impl Fn(usize) -> CellWait,
    next: impl Fn(usize) -> Option<usize>,
) -> RunError {
    let mut path = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    let mut at = Some(start);
    while let Some(row) = at {
        if let Some(begin) = seen.insert(row, path.len()) {
            // What led here is no part of the circle.
            path.drain(..begin);
            return RunError::Deadlock { waits: path, closed: true };
        }
        path.push(wait(row));
        at = next(row);
    }
    RunError::Deadlock { waits: path, closed: false }
}
