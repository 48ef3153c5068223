//! The watchdog for cells that make no call: a cell in its own code cannot be interrupted, so it
//! can only be detected.
//!
//! Every worker records which of its cells runs and counts their calls. If there is a time-out, the
//! thread that started the run checks these records periodically. A cell that has made no call for
//! the time-out ends the run at its next call, with an error that names it. If it makes none for as
//! long again, the process is aborted, because the run could never end.
//!
//! A cell that polls ([`crate::Cell::test`]) is not in its own code for long, yet makes no
//! progress, and prevents its worker from detecting a deadlock (`sync::IdleDetector`), because it
//! may do anything after a test. One case is certain and detected at once: the source that it waits
//! for has ended. Otherwise, if cells of all workers do nothing but poll or wait for as long as a
//! cell may be in its own code, the run is taken to be deadlocked ([`Watchdog`]).
//!
//! Without a time-out a run goes on for as long as it takes. Long waits are reported on standard error
//! ([`Reports`]): who waits for what, and which cells are in their own code.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use conset_ir::CellId;
use conset_ir::convert::to_u64;

use super::outcome::awaiting;
use super::shared_state::{RunFailure, SharedState};
use super::worker::CellStatus;
use crate::error::{CellWait, RunError};
use crate::patience::{Patience, end_process};

/// What a worker is at. Written by the worker alone.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The cell that runs, plus 1; or one of the next three.
    at: AtomicU32,
    calls: AtomicU64,
    /// Calls that ask whether an exchange has arrived.
    tests: AtomicU64,
    /// Looks at the waiting cells while the worker rests.
    looks: AtomicU64,
}

/// Its cells have ended.
const ENDED: u32 = 0;
/// It rests, as none of its cells can go on.
const RESTS: u32 = u32::MAX;
/// It has not started, or is between two cells.
const BETWEEN: u32 = u32::MAX - 1;

impl Default for Activity {
    fn default() -> Self {
        let [calls, tests, looks] = [(); 3].map(|()| AtomicU64::new(0));
        Self { at: AtomicU32::new(BETWEEN), calls, tests, looks }
    }
}

impl Activity {
    #[inline]
    pub(crate) fn enter(&self, cell: CellId) {
        self.at.store(cell.0.wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.at.store(BETWEEN, Ordering::Relaxed);
    }

    /// The worker rests, and looks whether a cell can go on.
    pub(crate) fn rest(&self) {
        self.at.store(RESTS, Ordering::Relaxed);
        add_one(&self.looks);
    }

    /// The worker runs no cell any more.
    pub(crate) fn end(&self) {
        self.at.store(ENDED, Ordering::Relaxed);
    }

    /// The cell that runs makes a call.
    #[inline]
    pub(crate) fn call(&self) {
        add_one(&self.calls);
    }

    /// The cell that runs asks whether an exchange has arrived, which is no way to get on.
    #[inline]
    pub(crate) fn test(&self) {
        add_one(&self.tests);
    }

    fn look(&self) -> ActivitySnapshot {
        let [calls, tests, looks] =
            [&self.calls, &self.tests, &self.looks].map(|count| count.load(Ordering::Relaxed));
        ActivitySnapshot { at: self.at.load(Ordering::Relaxed), calls, tests, looks }
    }
}

/// Adds to a number that no other thread writes.
#[inline]
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// What was seen of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActivitySnapshot {
    at: u32,
    calls: u64,
    tests: u64,
    looks: u64,
}

impl ActivitySnapshot {
    /// The cell that runs.
    fn cell(&self) -> Option<CellId> {
        let runs = !matches!(self.at, ENDED | RESTS | BETWEEN);
        runs.then(|| CellId(self.at.wrapping_sub(1)))
    }
}

/// How long the cells of all workers have done nothing but ask or wait, as far as one worker sees
/// that whose cells ask.
#[derive(Debug)]
pub(crate) struct Watchdog {
    seen: Vec<ActivitySnapshot>,
    /// What was seen where that began.
    begin: Vec<ActivitySnapshot>,
    /// The last look; none since one of the worker's own cells went on.
    since: Option<Instant>,
    quiet: Duration,
}

impl Watchdog {
    pub(crate) fn new(state: &SharedState<'_>) -> Self {
        let seen: Vec<ActivitySnapshot> =
            state.activity.iter().map(|activity| activity.0.look()).collect();
        Self { begin: seen.clone(), seen, since: None, quiet: Duration::ZERO }
    }

    /// A cell of this worker goes on.
    pub(crate) fn stop(&mut self) {
        self.since = None;
    }

    /// Looks again, after each turn in which cells did nothing but ask; how long that has gone on.
    ///
    /// The time between two looks counts only up to a part of what is too long: in the rest the
    /// cells that ask do something else. And a worker that rests must have found meanwhile that
    /// none of its cells can go on: it may have been kept from looking.
    pub(crate) fn quiet(&mut self, state: &SharedState<'_>) -> Duration {
        let Patience { report_after, time_out } = state.patience;
        let (longest, now) = (time_out.unwrap_or(report_after) / 8, Instant::now());
        let before = self.since.replace(now);
        let mut quiet = before.is_some();
        for (activity, seen) in state.activity.iter().zip(&mut self.seen) {
            let before = std::mem::replace(seen, activity.0.look());
            let waits = matches!(seen.at, ENDED | RESTS) || seen.tests != before.tests;
            quiet &= waits && seen.calls == before.calls;
        }
        if !quiet {
            self.quiet = Duration::ZERO;
            self.begin.copy_from_slice(&self.seen);
            return Duration::ZERO;
        }
        self.quiet += before.map_or(Duration::ZERO, |before| (now - before).min(longest));
        // Of two checks started since then, one has finished.
        let mut workers = self.begin.iter().zip(&self.seen);
        let all = workers.all(|(begin, seen)| seen.at != RESTS || seen.looks >= begin.looks + 2);
        if all { self.quiet } else { Duration::ZERO }
    }
}

/// The reports of long waits of a run: each is for a wait twice as long as the one before, whichever
/// worker waits.
#[derive(Debug)]
pub(crate) struct Reports {
    /// The length of a wait that is reported next, in milliseconds.
    next: AtomicU64,
}

impl Reports {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { next: AtomicU64::new(to_u64(patience.report_after.as_millis())) }
    }

    /// A worker, of which a cell is at `place`, has waited for so long: says so if it is time.
    pub(crate) fn report(&self, state: &SharedState<'_>, place: &CellStatus, waited: Duration) {
        let (next, waited) = (self.next.load(Ordering::Relaxed), to_u64(waited.as_millis()));
        if waited < next {
            return;
        }
        let after = waited.saturating_mul(2);
        if self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let wait = CellWait { cell: place.cell, awaiting: awaiting(state.loaded, place) };
            let running = state.activity.iter().filter_map(|activity| activity.0.look().cell());
            print_report(&wait, waited, running);
        }
    }
}

#[cold]
fn print_report(wait: &CellWait, milliseconds: u64, running: impl Iterator<Item = CellId>) {
    const NAMED: usize = 8;
    let running: Vec<String> =
        running.take(NAMED).map(|cell| format!("; {cell} is in its own code")).collect();
    let text = format!(
        "conset: {wait}, for {milliseconds} ms so far{}; it goes on waiting\n",
        running.concat()
    );
    // There is no way to report that standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Watches until all workers have come to their end.
pub(crate) fn monitor<T>(
    state: &SharedState<'_>,
    threads: &[ScopedJoinHandle<'_, T>],
    time_out: Duration,
) {
    let pause = (time_out / 8).clamp(Duration::from_millis(1), Duration::from_millis(10));
    let mut seen: Vec<_> = state.activity.iter().map(|a| (a.0.look(), Instant::now())).collect();
    while !threads.iter().all(ScopedJoinHandle::is_finished) {
        std::thread::park_timeout(pause);
        for (activity, (before, since)) in state.activity.iter().zip(&mut seen) {
            let now = activity.0.look();
            let Some(cell) = now.cell().filter(|_| now == *before) else {
                (*before, *since) = (now, Instant::now());
                continue;
            };
            let error = RunError::TimeOut { cell, time_out };
            if since.elapsed() >= time_out + Patience::ABORT_GRACE.max(time_out) {
                end_process(&error);
            }
            if since.elapsed() >= time_out && !state.shutdown.has_started() {
                state.fail(cell, RunFailure::Known(error));
            }
        }
    }
}
