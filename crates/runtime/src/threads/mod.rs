//! The transport on threads of this process: no machine, no clocks, at the speed of memory.
//!
//! A few *workers*, by default one per core, run contiguous blocks of cells each. A cell is a
//! coroutine that stays on its worker. Cells read each other's buffers directly (module `port`).
//! While a cell waits, its worker runs other cells, then spins, then yields the core (module
//! `worker`).
//!
//! Programs give the same results as on the emulated machine, to the bit. The differences:
//!
//! * Sending an element never waits for space: each connection has space for all its words. Sending
//!   a message does not wait either: it is copied into the inbox of its target.
//! * An exchange is one step, not one per phase; a cell cannot take part in it by instantiating its
//!   phases.
//! * A tree is walked in one step, too: whichever cell comes last to a branch combines it, in the
//!   order of the tree (module `tree`).
//! * The values of a nonblocking exchange can be read as soon as it is started. The target cells
//!   copy them when they test, complete an exchange or wait (module `nonblocking`). Completing an
//!   exchange waits for its incoming words, not for the readers of its outgoing words.
//! * If two errors occur at the same time, the reported one may differ from run to run.
//!
//! A run ends as soon as any cell fails or panics, cells make different collective calls, or no
//! cell can ever continue. The latter is detected exactly, without a time-out
//! (`sync::IdleDetector`). A cell that computes without calling the library is waited for without
//! limit unless there is a time-out ([`ThreadOptions::time_out`], or the environment variable
//! `CONSET_TIMEOUT`, in seconds), and so are cells that poll, which may still do something else,
//! unless a source has ended. Waits of 10 seconds, then 20, 40, ... are reported on standard error
//! (module `watchdog`).

mod combine;
mod direct;
mod elements;
mod inbox;
mod nonblocking;
mod outcome;
mod port;
mod published_buffers;
mod rounds;
mod shared_state;
mod tree;
mod tree_nonblocking;
mod watchdog;
mod worker;

use std::time::Duration;

use conset_ir::CellId;

use crate::error::RunError;
use crate::executor::{Program, RunSetup};
use crate::patience::{Patience, REPORT_AFTER};
use crate::report::RunReport;
use shared_state::{RunFailure, SharedState};
use worker::{WorkerResult, run_worker};

/// Options of runs on threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadOptions {
    /// Number of threads, at most one per cell; one per core if `None`.
    pub workers: Option<usize>,
    /// The longest time between two calls of a cell, and the longest time in which cells may do
    /// nothing but test ([`crate::Cell::test`]) while all others wait. If `None`, that of the environment
    /// variable `CONSET_TIMEOUT` (in seconds), or no limit. Deadlocks are detected without it. A cell
    /// that takes longer ends the run with [`RunError::TimeOut`] at its next call, and the process if
    /// it makes none for as long again (10 seconds at least), as a thread cannot be ended from
    /// outside.
    pub time_out: Option<Duration>,
    /// The length of a wait that is reported on standard error, with who waits for what; the next
    /// report of the run is for twice as long, and so on. 10 seconds if `None`.
    pub report_after: Option<Duration>,
}

impl ThreadOptions {
    /// Options with this number of threads.
    pub const fn workers(workers: usize) -> Self {
        Self { workers: Some(workers), time_out: None, report_after: None }
    }

    /// Sets the longest time between two calls of a cell.
    #[must_use]
    pub fn time_out(mut self, time_out: impl Into<Option<Duration>>) -> Self {
        self.time_out = time_out.into();
        self
    }

    /// Sets the length of a wait that is reported.
    #[must_use]
    pub fn report_after(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.report_after = time.into();
        self
    }

    fn patience(&self) -> Result<Patience, RunError> {
        let report_after = self.report_after.unwrap_or(REPORT_AFTER);
        match self.time_out {
            Some(_) => Ok(Patience { report_after, time_out: self.time_out }),
            None => Ok(Patience { report_after, ..Patience::of_environment()? }),
        }
    }

    fn count(&self, cells: usize) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.unwrap_or_else(cores).clamp(1, cells.max(1))
    }
}

/// The cells of each worker: contiguous blocks, as equal as can be.
fn assign(cells: &[CellId], workers: usize) -> impl Iterator<Item = &[CellId]> {
    (0..workers).map(move |worker| {
        &cells[worker * cells.len() / workers..(worker + 1) * cells.len() / workers]
    })
}

/// Runs the program on every live cell with an agent.
pub(crate) fn run(
    setup: RunSetup<'_>,
    options: ThreadOptions,
    program: &Program<'_>,
) -> Result<RunReport, RunError> {
    let cells = &setup.loaded.live;
    let workers = options.count(cells.len());
    let patience = options.patience()?;
    let mut state = SharedState::new(setup.loaded, workers, patience);
    let shared = &state;
    let left: Vec<WorkerResult> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers);
        for (number, cells) in assign(cells, workers).enumerate() {
            let work = move || run_worker(shared, number, cells, setup.stack_size, program);
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    report_missing_workers(shared, workers - number, cells, &error);
                    break;
                }
            }
        }
        if let Some(time_out) = patience.time_out {
            watchdog::monitor(shared, &threads, time_out);
        }
        let joined = threads.into_iter().map(|thread| thread.join().expect("workers do not panic"));
        joined.collect()
    });
    if let Some(error) = outcome::error_of(&mut state, &left) {
        return Err(error);
    }
    Ok(RunReport {
        switches: left.first().map_or(0, |left| left.switches),
        words: left.iter().map(|left| left.words).sum(),
        ..RunReport::default()
    })
}

/// The system gives no more threads: those there are must not wait for the missing ones.
fn report_missing_workers(
    state: &SharedState<'_>,
    missing: usize,
    cells: &[CellId],
    error: &std::io::Error,
) {
    let cell = cells.first().copied().unwrap_or(CellId(0));
    state.fail(cell, RunFailure::Known(RunError::Thread { cell, message: error.to_string() }));
    (0..missing).for_each(|_| state.shutdown.acknowledge());
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(test)]
mod dealing {
    use super::*;

    #[test]
    fn cells_are_dealt_in_blocks() {
        let cells: Vec<CellId> = (0..7).map(CellId).collect();
        let sizes: Vec<usize> = assign(&cells, 3).map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 2, 3]);
        assert_eq!(assign(&cells, 3).flatten().copied().collect::<Vec<_>>(), cells);
        assert_eq!(ThreadOptions::workers(9).count(4), 4);
        assert_eq!(ThreadOptions::workers(0).count(0), 1);
    }
}
