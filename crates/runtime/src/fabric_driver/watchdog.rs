//! The watchdog of the emulated machine, for cells that keep a run from going on.
//!
//! The driver resumes one cell at a time, on one thread. A program that makes no call keeps this thread,
//! and a program that does nothing but compute or test is resumed without end. A second thread
//! samples who runs. If nothing happened but this for long, it reports the cell on standard error, each time
//! after twice as long. With a time-out (`CONSET_TIMEOUT`) such a cell ends the run at its next call, with
//! [`RunError::TimeOut`]; if it makes none for as long again, the process is aborted, because a cell in its own
//! code cannot be interrupted.
//!
//! The time in which the machine moves words does not count, however long it is.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use conset_ir::CellId;

use crate::error::RunError;
use crate::patience::{Patience, end_process};

/// What the driver is at: written by its thread, read by the watchdog.
#[derive(Debug)]
pub(super) struct Activity {
    patience: Patience,
    /// The cell that was resumed last.
    cell: AtomicU32,
    /// Whether it still runs.
    runs: AtomicBool,
    /// How often cells were resumed.
    resumes: AtomicU64,
    /// How often something happened besides computing and testing.
    happened: AtomicU64,
    /// Whether a cell had more time than the time-out.
    expired: AtomicBool,
    /// Whether the run has ended.
    ended: AtomicBool,
}

impl Activity {
    pub(super) fn new(patience: Patience) -> Self {
        let [resumes, happened] = [(); 2].map(|()| AtomicU64::new(0));
        let [runs, expired, ended] = [(); 3].map(|()| AtomicBool::new(false));
        Self { patience, cell: AtomicU32::new(0), runs, resumes, happened, expired, ended }
    }

    /// A cell is resumed; `happened` counts what happened in the run so far.
    pub(super) fn enter(&self, cell: CellId, happened: u64) {
        self.cell.store(cell.0, Ordering::Relaxed);
        self.happened.store(happened, Ordering::Relaxed);
        self.resumes.fetch_add(1, Ordering::Relaxed);
        self.runs.store(true, Ordering::Relaxed);
    }

    /// The cell has made a call, or has ended.
    ///
    /// # Errors
    /// It had more time than the time-out.
    pub(super) fn leave(&self) -> Result<(), RunError> {
        self.runs.store(false, Ordering::Relaxed);
        match self.patience.time_out.filter(|_| self.expired.load(Ordering::Relaxed)) {
            Some(time_out) => Err(RunError::TimeOut { cell: self.cell(), time_out }),
            None => Ok(()),
        }
    }

    fn cell(&self) -> CellId {
        CellId(self.cell.load(Ordering::Relaxed))
    }

    /// The run has ended.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The longest time between two samples.
const PAUSE: Duration = Duration::from_millis(50);

/// Samples the driver until its run has ended. The thread that ends the run unparks this one.
pub(super) fn monitor(activity: &Activity) {
    let Patience { report_after, time_out } = activity.patience;
    let pause = (time_out.unwrap_or(report_after).min(report_after) / 8)
        .clamp(Duration::from_millis(1), PAUSE);
    let (mut stuck, mut next_report) = (Duration::ZERO, report_after);
    let (mut resumes, mut happened) = (0, 0);
    while !activity.ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(pause);
        let cell = activity.cell();
        let before = std::mem::replace(&mut resumes, activity.resumes.load(Ordering::Relaxed));
        let runs = activity.runs.load(Ordering::Relaxed);
        let now = activity.happened.load(Ordering::Relaxed);
        if std::mem::replace(&mut happened, now) != now {
            (stuck, next_report) = (Duration::ZERO, report_after);
        } else if runs || resumes != before {
            // A pause may last longer than it should; that does not count, as the driver may have been kept
            // from its work as well.
            stuck += pause;
        }
        if stuck >= next_report {
            report(cell, stuck, runs && resumes == before);
            next_report *= 2;
        }
        if let Some(time_out) = time_out.filter(|&time_out| stuck >= time_out) {
            activity.expired.store(true, Ordering::Relaxed);
            if runs && resumes == before && stuck >= time_out + Patience::ABORT_GRACE.max(time_out)
            {
                end_process(&RunError::TimeOut { cell, time_out });
            }
        }
    }
}

#[cold]
fn report(cell: CellId, stuck: Duration, own_code: bool) {
    let what =
        if own_code { "has been in its own code" } else { "has done nothing but compute or test" };
    let text = format!("conset: {cell} {what} for {} ms so far; it goes on\n", stuck.as_millis());
    // There is no way to report that standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Calls `step` until the watchdog says that the cell had too much time.
    fn until_expired(activity: &Activity, mut step: impl FnMut()) -> RunError {
        std::thread::scope(|scope| {
            let watchdog = scope.spawn(|| monitor(activity));
            let error = loop {
                step();
                if activity.expired.load(Ordering::Relaxed) {
                    break activity.leave().expect_err("it has expired");
                }
                std::thread::yield_now();
            };
            activity.end();
            watchdog.thread().unpark();
            error
        })
    }

    #[test]
    fn cells_that_make_no_call_and_cells_that_only_compute_are_found() {
        let millisecond = Duration::from_millis(1);
        let patience =
            Patience { report_after: 1000 * millisecond, time_out: Some(8 * millisecond) };
        let expected = |cell| format!("{cell} has been in its own code for more than 8ms");
        let activity = Activity::new(patience);
        activity.enter(CellId(3), 0);
        let error = until_expired(&activity, || ());
        assert_eq!(error.to_string(), expected(CellId(3)));
        let activity = Activity::new(patience);
        let error = until_expired(&activity, || {
            activity.enter(CellId(1), 7);
            activity.runs.store(false, Ordering::Relaxed);
        });
        assert_eq!(error.to_string(), expected(CellId(1)));
    }
}
