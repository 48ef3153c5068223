//! Chains of waits among cells that cannot continue.
//!
//! Every such cell waits for one other cell, or has ended. From the first waiting cell the chain
//! leads into a cycle, which the error then consists of, or to a cell that does not wait.

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
