//! The watch over cells that make no call: a cell in its own code cannot be interrupted, so all
//! that can be done is to notice.
//!
//! Every worker says which of its cells runs and counts their calls. Where a time-out is asked
//! for, the thread that began the run looks now and then. A cell that has made no call for that
//! long ends the run, with an error that names it, as soon as it makes one. One that does not
//! even then would keep the run from ending for ever; it ends the process.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use conset_ir::CellId;

use super::board::{Board, Failure};
use crate::error::RunError;

/// The least time from the end of a run to the end of the process.
const GRACE: Duration = Duration::from_secs(10);

/// What a worker is at. Written by the worker alone.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// The cell that runs, plus 1; 0 if none does.
    cell: AtomicU32,
    calls: AtomicU64,
}

impl Activity {
    #[inline]
    pub(crate) fn enter(&self, cell: CellId) {
        self.cell.store(cell.0.wrapping_add(1), Ordering::Relaxed);
        self.call();
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.cell.store(0, Ordering::Relaxed);
    }

    /// The cell that runs makes a call.
    #[inline]
    pub(crate) fn call(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn look(&self) -> (u32, u64) {
        (self.cell.load(Ordering::Relaxed), self.calls.load(Ordering::Relaxed))
    }
}

/// Watches until all workers have come to their end.
pub(crate) fn watch<T>(board: &Board<'_>, threads: &[ScopedJoinHandle<'_, T>], time_out: Duration) {
    let pause = (time_out / 8).clamp(Duration::from_millis(1), Duration::from_millis(10));
    let mut seen: Vec<_> = board.activity.iter().map(|a| (a.0.look(), Instant::now())).collect();
    while !threads.iter().all(ScopedJoinHandle::is_finished) {
        std::thread::park_timeout(pause);
        for (activity, (before, since)) in board.activity.iter().zip(&mut seen) {
            let now = activity.0.look();
            if now != *before || now.0 == 0 {
                (*before, *since) = (now, Instant::now());
                continue;
            }
            let cell = CellId(now.0.wrapping_sub(1));
            let error = RunError::TimeOut { cell, time_out };
            if since.elapsed() >= time_out + GRACE.max(time_out) {
                end_process(&error);
            }
            if since.elapsed() >= time_out && !board.ending.has_begun() {
                board.fail(cell, Failure::Known(error));
            }
        }
    }
}

#[allow(clippy::print_stderr, reason = "there is nobody left to return an error to")]
fn end_process(error: &RunError) -> ! {
    eprintln!("conset: {error}, and does not end with the run");
    std::process::abort();
}
