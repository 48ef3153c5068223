//! Progress reports of long operations, and the callback that receives them.

use std::time::Duration;

/// A progress report of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A stage begins.
    Stage(&'static str),
    /// Progress within the current stage.
    Done {
        /// Units of work completed.
        done: u64,
        /// Units of work in total; 0 if that is not known.
        total: u64,
    },
    /// The best plans found so far, summed over all sets.
    Found {
        /// Predicted clocks.
        clocks: u64,
        /// Lower bound on the clocks.
        bound: u64,
    },
}

/// A callback that receives progress reports.
pub type Observer<'a> = dyn FnMut(Progress) + 'a;

/// A clock that returns the time since some fixed moment. It is used only to measure how long
/// planners take.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);
