//! Progress reports of long operations, and the callback that receives them.

use std::time::Duration;

/// A progress report of a long operation.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::{Compiler, Progress};
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 5)])?;
/// let mut stages = Vec::new();
/// let observer = |progress| {
///     if let Progress::Stage(name) = progress {
///         stages.push(name);
///     }
/// };
/// Compiler::new(&machine).observer(observer).compile(&set.into())?;
/// assert!(stages.contains(&"checking"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
