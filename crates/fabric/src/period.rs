//! Skipping: where the machine repeats itself, whole periods are jumped over.
//!
//! Long streams soon run in a fixed rhythm. As long as nothing opens, ends or rings, the machine is
//! a deterministic automaton whose state is the counts of its queues, the turns of its links and
//! ports, and what is under way with the clocks it still takes. *Which* words these are does not
//! matter to it. So where that state is the same as it was a period ago, the next period will do
//! exactly what the last one did, only with later words: clocks, word-hops, counters and word
//! numbers advance by the same amounts again, and the payload moves that many words in one piece.
//! The jump goes so many whole periods that the last of them ends before any stream runs out and
//! any timer rings; there the ordinary way of one clock after another takes over. A run with
//! skipping therefore gives the same numbers as one without, to the clock.
//!
//! The period is not known beforehand. A snapshot is compared with the state at every multiple of a
//! *window* after it, and replaced by a new one after 1, 2, 4, ... comparisons (Brent's method for
//! finding cycles): however long the machine takes to settle down, the search costs a constant
//! share. The window is a small whole number of word times. Other rhythms are found after as many
//! windows as it takes to make up a whole number of them.
//!
//! What it does not do: it looks at the whole machine, so one part that is in motion keeps the
//! steady rest from being skipped. Words that went wrong are never skipped.

/// When to look for a period. All times are in clocks.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    window: u64,
    /// Nothing is looked at before this.
    pub(crate) next: u64,
    /// When the snapshot was taken; `None` if there is no valid one.
    taken: Option<u64>,
    /// Nothing has begun or ended since the last look.
    quiet: bool,
    /// Comparisons with this snapshot, and after how many it is replaced.
    age: u32,
    limit: u32,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing yet.
    Wait,
    /// Take a snapshot.
    Take,
    /// Compare with the snapshot, which is so many clocks old.
    Compare(u64),
}

impl Watch {
    /// A watch over a machine in which words take the given times.
    pub(crate) fn new(link: u32, access: u32) -> Self {
        let (link, access) = (u64::from(link), u64::from(access));
        let window = link / gcd(link, access) * access * SHARES;
        Self { window, next: window, taken: None, quiet: false, age: 0, limit: 1 }
    }

    /// Something begins or ends: whatever was seen before is of no use.
    #[inline]
    pub(crate) fn disturb(&mut self) {
        (self.taken, self.quiet) = (None, false);
    }

    /// Nothing is ever looked at.
    pub(crate) fn switch_off(&mut self) {
        self.next = u64::MAX;
    }

    /// To be asked at the clock `next` or after it.
    pub(crate) fn look(&mut self, now: u64) -> Look {
        let due = std::mem::replace(&mut self.next, now.saturating_add(self.window));
        match self.taken {
            Some(taken) if due == now => Look::Compare(now - taken),
            _ if self.quiet => {
                (self.age, self.limit) = (0, 1);
                Look::Take
            }
            // In a busy machine a snapshot would cost and not live to be compared.
            _ => {
                self.quiet = true;
                Look::Wait
            }
        }
    }

    /// The state was not that of the snapshot, or there is none: whether to take one now.
    pub(crate) fn is_to_take(&mut self, now: u64) -> bool {
        self.age += 1;
        let take = self.age >= self.limit;
        if take {
            (self.taken, self.age, self.limit) = (Some(now), 0, self.limit.saturating_mul(2));
        }
        take
    }

    /// The machine has jumped to `now`, and will be at the end of something within a period.
    pub(crate) fn jumped(&mut self, now: u64, period: u64) {
        self.taken = None;
        self.next = now.saturating_add(period).saturating_add(self.window);
    }
}

/// Shares of a link that the window is a multiple of: halves and quarters. A rhythm of thirds is
/// found after three windows. Of 1, 2, 4, 6, 12, 30 and 60, those from 2 to 6 let the patterns of
/// the paper run soonest, within 3 % of each other; 12 costs a tenth more.
const SHARES: u64 = 4;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How many whole periods can be jumped: the least of what several things allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed(Option<u64>);

impl Allowed {
    /// Nothing has set a limit yet.
    pub(crate) fn all() -> Self {
        Self(None)
    }

    /// Something that moved `step` in the last period may move `most` in all.
    #[inline]
    pub(crate) fn steps(&mut self, step: u32, most: u32) {
        if let Some(periods) = most.checked_div(step) {
            self.at_most(u64::from(periods));
        }
    }

    /// `clock` must not be reached.
    pub(crate) fn before(&mut self, now: u64, period: u64, clock: u64) {
        self.at_most(clock.saturating_sub(now.saturating_add(1)) / period);
    }

    fn at_most(&mut self, periods: u64) {
        self.0 = Some(self.0.map_or(periods, |least| least.min(periods)));
    }

    /// The number of periods; 0 where nothing moves, and there is nothing to skip.
    pub(crate) fn periods(self) -> u64 {
        self.0.unwrap_or(0)
    }
}
