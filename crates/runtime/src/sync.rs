//! Synchronisation primitives of worker threads: counters, shutdown, and deadlock detection.
//!
//! Everything that a cell waits for is a [`Counter`] that has to reach a value. Counters only grow,
//! so a worker checks its waiting cells by loading numbers, and a wait that is over stays over.
//!
//! * [`Counter`]: a thread that sees the value sees everything written before it was published.
//! * [`CollectiveLog`]: all cells make the same collective calls in the same order. The first cell
//!   at a step records its call; the others compare theirs.
//! * [`Shutdown`]: the early end of a run. A worker *acknowledges* while none of its cells runs,
//!   and afterwards resumes them only to end them. When all workers have acknowledged, no cell
//!   reads the memory of another any more, so cells may leave calls in which others were to read
//!   their memory.
//! * [`IdleDetector`]: the run is deadlocked if every worker has checked all its waiting cells,
//!   found none that can continue, and no cell has run since the first of these checks. Workers
//!   vote for the *version* that they checked; a worker raises the version before it runs a cell
//!   again.
//!
//! Loom checks all of this over all interleavings of a few threads (`cfg(loom)`). Coroutines and
//! the copies between cells are outside this module, and so is waiting: callers spin, yield or do
//! something else.

use conset_ir::convert::to_usize;

use crate::call::MARK_BITS;
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A value on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// A number that only grows, and has one writer at a time.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Counter {
    /// Raises the counter; what was written before is seen by every thread that sees the value.
    #[inline]
    pub(crate) fn publish(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_reached(&self, value: u64) -> bool {
        self.value() >= value
    }

    #[inline]
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Whether a counter will never reach a value, as its writer has ended. A writer raises `ended` to
/// 1 after all else, so what it has not raised by then stays as it is: that it has ended is read
/// first.
pub(crate) fn never_reaches(counter: &Counter, value: u64, ended: &Counter) -> bool {
    ended.has_reached(1) && !counter.has_reached(value)
}

/// Steps that cells may be apart.
#[cfg(not(loom))]
pub(crate) const WINDOW: u64 = 64;
#[cfg(loom)]
pub(crate) const WINDOW: u64 = 2;

/// What all cells do at each of the last [`WINDOW`] steps, and where. Steps begin with 1.
#[derive(Debug)]
pub(crate) struct CollectiveLog {
    /// The step in the upper half, what is done in the lower.
    log: Vec<AtomicU64>,
    /// The step in the upper 24 bits, the mark of the call in the lower 40.
    marks: Vec<AtomicU64>,
}

impl CollectiveLog {
    pub(crate) fn new() -> Self {
        let places = || (0..WINDOW).map(|_| AtomicU64::new(0)).collect();
        Self { log: places(), marks: places() }
    }

    /// Somebody does `what` at `step` by a call with this mark of 40 bits; whether that is what the
    /// first to come did. To be called only when all are past step `step - WINDOW`, whose place it
    /// takes.
    ///
    /// The two are written down one after the other, by the first to come to each: of those who do
    /// not do the same, all but one at most hear of it.
    pub(crate) fn matches(&self, step: u64, what: u32, mark: u64) -> bool {
        let place = to_usize(step % WINDOW);
        Self::compare(&self.log[place], step << 32 | u64::from(what), 32)
            && Self::compare(&self.marks[place], step << MARK_BITS | mark, MARK_BITS)
    }

    /// Compares with what was said at the step above so many bits, or says it. Of the step's number
    /// 24 bits are enough: what else can be there is of the step `WINDOW` before.
    fn compare(place: &AtomicU64, mine: u64, bits: u32) -> bool {
        let said = place.load(Ordering::Relaxed);
        if said >> bits == mine >> bits {
            return said == mine;
        }
        // Of several that find the old step one writes, and the others find what it wrote.
        match place.compare_exchange(said, mine, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(said) => said == mine,
        }
    }
}

/// The early end of a run.
#[derive(Debug)]
pub(crate) struct Shutdown {
    begun: AtomicBool,
    acknowledged: AtomicUsize,
    workers: usize,
}

impl Shutdown {
    pub(crate) fn new(workers: usize) -> Self {
        Self { begun: AtomicBool::new(false), acknowledged: AtomicUsize::new(0), workers }
    }

    pub(crate) fn start(&self) {
        self.begun.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_started(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// A worker runs no cell from now on but to end it. Once per worker.
    pub(crate) fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether all workers have acknowledged: what their cells did happened before.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acknowledged.load(Ordering::Acquire) == self.workers
    }
}

/// Finds out that no cell of any worker can ever go on.
#[derive(Debug)]
pub(crate) struct IdleDetector {
    /// Workers that run cells.
    running: AtomicUsize,
    /// Raised before a worker runs cells again.
    version: AtomicU64,
    /// The version that each worker looked at, plus 1.
    votes: Vec<AtomicU64>,
}

/// The vote of a worker whose cells have all ended.
const ALWAYS: u64 = u64::MAX;

impl IdleDetector {
    /// All workers run cells.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            running: AtomicUsize::new(workers),
            version: AtomicU64::new(0),
            votes: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A worker stops running cells: it found none that can go on.
    pub(crate) fn rest(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// A worker that rested runs cells again. It counts as running first: who sees the new
    /// version and nobody running must see what this worker then published.
    pub(crate) fn rise(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// All cells of a worker have ended; it never runs any again.
    pub(crate) fn retire(&self, worker: usize) {
        self.votes[worker].store(ALWAYS, Ordering::SeqCst);
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// A resting worker looks, with `can_go_on`, whether one of its cells can go on.
    ///
    /// Why the last answer is right: let `v` be the version that all have voted for and that is
    /// still the version. A worker that ran cells after the first of these votes would have
    /// raised the version to more than `v` before, as nobody ran when that vote was cast. So no
    /// counter has changed since, and each worker looked at counters as they now are: that nobody
    /// ran it read from the last worker that stopped, after all that was published. A worker
    /// whose cells have all ended casts its vote for good before it stops.
    pub(crate) fn look(&self, worker: usize, mut can_go_on: impl FnMut() -> bool) -> IdleState {
        let version = self.version.load(Ordering::SeqCst);
        let nobody_runs = self.running.load(Ordering::SeqCst) == 0;
        if can_go_on() {
            return IdleState::Runnable;
        }
        if !nobody_runs {
            return IdleState::Waiting;
        }
        self.votes[worker].store(version + 1, Ordering::SeqCst);
        let all = self.votes.iter().map(|vote| vote.load(Ordering::SeqCst));
        let all_agree = all.into_iter().all(|vote| vote == version + 1 || vote == ALWAYS);
        if all_agree && self.version.load(Ordering::SeqCst) == version {
            return IdleState::Deadlock;
        }
        IdleState::Waiting
    }
}

/// What a worker saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleState {
    /// One of its cells can go on.
    Runnable,
    /// None can; others may change that.
    Waiting,
    /// No cell of any worker can ever go on.
    Deadlock,
}

#[cfg(test)]
mod tests;
