//! Skipping of whole periods where the state of the machine repeats itself.
//!
//! Long streams soon move periodically. As long as no stream opens or ends and no timer expires,
//! the machine is a deterministic automaton. Its state is the queue lengths, the round-robin
//! pointers of links and ports, and the actions in progress with their remaining clocks; *which*
//! words these are does not matter. If the state equals the state one period earlier, the next
//! period repeats the last one with later words: clocks, word-hops, counters and word numbers
//! advance by the same amounts again, and the payload moves that many words at once. The machine
//! skips as many whole periods as end before any stream runs out of words and before any timer
//! expires; from there it is simulated clock by clock again. A run with skipping therefore gives
//! exactly the same numbers as a run without.
//!
//! The period is not known in advance. A snapshot is compared with the state at every multiple of
//! a *window* after it, and replaced by a new one after 1, 2, 4, ... comparisons (Brent's method
//! for finding cycles), so the search costs a constant share of the run however long the machine
//! takes to reach the periodic state. The window is a small whole number of word times. A period
//! that is not a multiple of it is found after as many windows as make up a whole number of
//! periods.
//!
//! Limits: the state of the whole machine is compared, so one part that is not periodic prevents
//! skipping everywhere. Wrong words are never skipped.

use conset_ir::convert::to_u32;

/// Decides when to take a snapshot and when to compare with it. All times are in clocks.
#[derive(Clone, Debug)]
pub(crate) struct PeriodDetector {
    window: u64,
    /// The first clock at which the detector must be called again.
    pub(crate) next: u64,
    /// When the snapshot was taken; `None` if there is no valid one.
    taken: Option<u64>,
    /// Nothing has started or ended since the last check.
    quiet: bool,
    /// Comparisons with this snapshot, and the number after which it is replaced.
    age: u32,
    limit: u32,
}

/// What the engine has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectorAction {
    /// Nothing yet.
    Wait,
    /// Take a snapshot.
    TakeSnapshot,
    /// Compare with the snapshot, which was taken this many clocks ago.
    Compare(u64),
}

impl PeriodDetector {
    /// A detector for a machine with these clocks per word on links and at agents.
    pub(crate) fn new(links: [u32; 2], access: u32) -> Self {
        let [fast, slow] = links.map(u64::from);
        let common = |a: u64, b: u64| (a / gcd(a, b)).saturating_mul(b);
        let window = common(common(fast, slow), u64::from(access)).saturating_mul(SHARES);
        Self { window, next: window, taken: None, quiet: false, age: 0, limit: 1 }
    }

    /// Invalidates the snapshot, because a stream or timer starts or ends.
    #[inline]
    pub(crate) fn reset(&mut self) {
        (self.taken, self.quiet) = (None, false);
    }

    /// Switches the detection off for good.
    pub(crate) fn disable(&mut self) {
        self.next = u64::MAX;
    }

    /// What to do at clock `now`; to be called at the clock `next` or later.
    pub(crate) fn check(&mut self, now: u64) -> DetectorAction {
        let due = std::mem::replace(&mut self.next, now.saturating_add(self.window));
        match self.taken {
            Some(taken) if due == now => DetectorAction::Compare(now - taken),
            _ if self.quiet => {
                (self.age, self.limit) = (0, 1);
                DetectorAction::TakeSnapshot
            }
            // In a busy machine a snapshot is expensive and would be invalid before a comparison.
            _ => {
                self.quiet = true;
                DetectorAction::Wait
            }
        }
    }

    /// Whether to replace the snapshot now, because there is none or the comparison failed.
    pub(crate) fn should_snapshot(&mut self, now: u64) -> bool {
        self.age += 1;
        let take = self.age >= self.limit;
        if take {
            (self.taken, self.age, self.limit) = (Some(now), 0, self.limit.saturating_mul(2));
        }
        take
    }

    /// The machine has skipped to clock `now`; a stream ends or a timer expires within a period.
    pub(crate) fn skipped(&mut self, now: u64, period: u64) {
        self.taken = None;
        self.next = now.saturating_add(period).saturating_add(self.window);
    }
}

/// The window is a multiple of this many word times, so that links shared by two or four streams
/// repeat within one window; a link shared by three repeats after three windows. Of the values 1,
/// 2, 4, 6, 12, 30 and 60, those from 2 to 6 run the paper's patterns fastest, within 3 % of each
/// other; 12 is a tenth slower.
const SHARES: u64 = 4;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The advance, in `periods` periods, of a counter that advances by `step` in each.
/// [`SkipLimit::steps`] ensures that it fits; a counter that stands still does not limit `periods`.
pub(crate) fn steps(step: u32, periods: u64) -> u32 {
    if step == 0 { 0 } else { step * to_u32(periods) }
}

/// The number of whole periods that can be skipped: the minimum over several limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkipLimit(Option<u64>);

impl SkipLimit {
    /// No limit so far.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A counter that advances by `step` in each period may advance by `most` in total.
    #[inline]
    pub(crate) fn steps(&mut self, step: u32, most: u32) {
        if let Some(periods) = most.checked_div(step) {
            self.at_most(u64::from(periods));
        }
    }

    /// The skip must end before `clock`.
    pub(crate) fn before(&mut self, now: u64, period: u64, clock: u64) {
        self.at_most(clock.saturating_sub(now.saturating_add(1)) / period);
    }

    fn at_most(&mut self, periods: u64) {
        self.0 = Some(self.0.map_or(periods, |least| least.min(periods)));
    }

    /// The number of periods; 0 where nothing moves, so that there is nothing to skip.
    pub(crate) fn periods(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detector_that_is_off_stays_off() {
        let mut detector = PeriodDetector::new([2, 3], 1);
        assert_eq!(detector.next, 6 * SHARES);
        detector.disable();
        detector.reset();
        assert_eq!(detector.next, u64::MAX);
    }
}
