//! How long a run waits for a cell or rank that does not answer: for ever, with reports on standard
//! error, unless the program or `CONSET_TIMEOUT` sets a time-out.
//!
//! A run cannot tell a lost rank from one that computes for a long time, so it only ends by itself
//! if it is certain that nothing can continue (a deadlock, calls that do not match).

use std::time::Duration;

use crate::error::RunError;

/// The environment variable that sets the time-out of runs whose program sets none.
pub(crate) const TIME_OUT_VARIABLE: &str = "CONSET_TIMEOUT";

/// The time after which a wait is first reported, unless the program sets another.
pub(crate) const REPORT_AFTER: Duration = Duration::from_secs(10);

/// How a wait ends that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// When it is reported first; then after twice as long, and so on.
    pub(crate) report_after: Duration,
    /// When it fails, if ever.
    pub(crate) time_out: Option<Duration>,
}

impl Patience {
    /// The least time from the end of a run to the end of the process, for a cell that makes no call.
    pub(crate) const ABORT_GRACE: Duration = Duration::from_secs(10);

    /// As the environment says.
    pub(crate) fn of_environment() -> Result<Self, RunError> {
        let time_out =
            time_out_of_environment().map_err(|value| RunError::TimeOutSetting { value })?;
        Ok(Self { report_after: REPORT_AFTER, time_out })
    }

    /// Of a wait that may rightly take `factor` times as long.
    #[cfg(feature = "mpi")]
    pub(crate) fn times(self, factor: u32) -> Self {
        Self {
            report_after: self.report_after.saturating_mul(factor),
            time_out: self.time_out.map(|limit| limit.saturating_mul(factor)),
        }
    }
}

/// The time-out that the environment asks for, in seconds; 0 for none. The error is the value that
/// is no such number.
pub(crate) fn time_out_of_environment() -> Result<Option<Duration>, String> {
    let Some(value) = std::env::var_os(TIME_OUT_VARIABLE) else { return Ok(None) };
    let value = value.to_string_lossy();
    parse_seconds(&value).ok_or_else(|| value.into_owned())
}

/// Ends the process for a cell that makes no call after the run has ended.
#[allow(clippy::print_stderr, reason = "there is nobody left to return an error to")]
pub(crate) fn end_process(error: &RunError) -> ! {
    eprintln!("conset: {error}, and does not end with the run");
    std::process::abort();
}

fn parse_seconds(text: &str) -> Option<Option<Duration>> {
    let seconds: f64 = text.trim().parse().ok()?;
    let time_out = Duration::try_from_secs_f64(seconds).ok()?;
    Some((!time_out.is_zero()).then_some(time_out))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read() {
        assert_eq!(parse_seconds("2.5"), Some(Some(Duration::from_millis(2500))));
        assert_eq!(parse_seconds(" 0 "), Some(None));
        for wrong in ["", "ten", "-1", "NaN", "inf", "1e300", "5 s"] {
            assert_eq!(parse_seconds(wrong), None, "{wrong}");
        }
    }
}
