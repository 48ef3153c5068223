//! The waiting strategy of a rank: retry immediately at first, then yield the core between retries.
//! A long wait is reported now and then, and fails only after a time-out that was asked for.

use conset_ir::convert::to_u64;

use std::time::{Duration, Instant};

use crate::patience::Patience;

/// Tries before the core is given away.
const EAGER: u32 = 64;
/// Tries between two looks at the clock.
const CLOCK: u32 = 64;

/// After this time it is worth asking why.
const LONG: Duration = Duration::from_millis(200);

/// What a wait has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Briefly,
    /// Long enough to ask why; returned at some looks at the clock.
    Long,
    /// So many milliseconds, which is to be reported; the wait goes on.
    Report(u64),
    /// So many milliseconds, the time-out.
    TimedOut(u64),
}

/// One wait, or several one after the other.
#[derive(Debug)]
pub(super) struct Backoff {
    patience: Patience,
    tries: u32,
    since: Option<Instant>,
    /// The length of a wait that is reported next; doubled by each report, of all waits together.
    report_at: Duration,
}

impl Backoff {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, tries: 0, since: None, report_at: patience.report_after }
    }

    /// There was progress: another wait begins.
    pub(super) fn renew(&mut self) {
        self.tries = 0;
        self.since = None;
    }

    /// Waits a moment.
    #[inline]
    pub(super) fn wait(&mut self) -> Waited {
        self.tries = self.tries.wrapping_add(1);
        if self.tries < EAGER {
            std::hint::spin_loop();
            return Waited::Briefly;
        }
        let waited = if self.tries.is_multiple_of(CLOCK) { self.look() } else { Waited::Briefly };
        std::thread::yield_now();
        waited
    }

    /// [`Backoff::wait`] of a caller with other work between two tries: each of them looks
    /// at the clock.
    pub(super) fn wait_busy(&mut self) -> Waited {
        match self.look() {
            Waited::Briefly => self.wait(),
            waited => waited,
        }
    }

    fn look(&mut self) -> Waited {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = self.patience.time_out;
        if limit.is_some_and(|limit| waited >= limit) {
            return Waited::TimedOut(to_u64(waited.as_millis()));
        }
        if waited >= self.report_at {
            self.report_at = self.report_at.max(waited).saturating_mul(2);
            return Waited::Report(to_u64(waited.as_millis()));
        }
        let long = limit.map_or(LONG, |limit| LONG.min(limit / 4));
        if waited >= long { Waited::Long } else { Waited::Briefly }
    }
}
