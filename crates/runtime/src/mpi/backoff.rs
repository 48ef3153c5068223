//! The waiting strategy of a rank: retry immediately at first, then yield the core between retries,
//! and fail after a time-out.

use conset_ir::convert::to_u64;

use std::time::{Duration, Instant};

/// Tries before the core is given away.
const EAGER: u32 = 64;
/// Tries between two looks at the clock.
const CLOCK: u32 = 64;

/// After this time it is worth to ask why.
const LONG: Duration = Duration::from_millis(200);

/// One wait.
#[derive(Debug)]
pub(super) struct Backoff {
    limit: Duration,
    tries: u32,
    since: Option<Instant>,
}

impl Backoff {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, tries: 0, since: None }
    }

    /// There was progress: restarts the time-out.
    pub(super) fn renew(&mut self) {
        self.tries = 0;
        self.since = None;
    }

    /// WaitState a moment; whether it has been long enough to ask why, which is said at some looks at
    /// the clock; or the milliseconds waited in all, if that was too long.
    #[inline]
    pub(super) fn wait(&mut self) -> Result<bool, u64> {
        self.tries = self.tries.wrapping_add(1);
        if self.tries < EAGER {
            std::hint::spin_loop();
            return Ok(false);
        }
        let long = self.tries.is_multiple_of(CLOCK) && self.look()?;
        std::thread::yield_now();
        Ok(long)
    }

    /// [`Backoff::wait`] of a caller with other work between two tries: each of them looks
    /// at the clock.
    pub(super) fn wait_busy(&mut self) -> Result<bool, u64> {
        let long = self.look()?;
        Ok(self.wait()? || long)
    }

    fn look(&mut self) -> Result<bool, u64> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= self.limit {
            return Err(to_u64(waited.as_millis()));
        }
        Ok(waited >= LONG.min(self.limit / 4))
    }
}
