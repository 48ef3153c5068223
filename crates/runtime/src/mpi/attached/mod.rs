//! conset inside an MPI program: halos and collectives of one cell a rank, without a callback.
//!
//! ```no_run
//! use conset_runtime::Op;
//! use conset_runtime::mpi::{Attached, Comm, HaloError};
//!
//! # fn main() -> Result<(), HaloError> {
//! # let (first, end, ghosts) = (0, 0, []);
//! let attached = Attached::new(&Comm::world()?)?;
//! let mut halo = attached.owned_halo(first..end, &ghosts)?;
//! let mut x = vec![1.0; halo.entries()];
//! halo.exchange(&mut x, 1)?;
//! let mut sums = [x[0], x[0] * x[0]];
//! attached.allreduce(Op::Add, &mut sums)?;
//! # Ok(())
//! # }
//! ```
//!
//! A rank is one cell and runs on its own stack: no coroutines, no panic hook, and errors are values
//! wherever the job can go on. Halos are made from what a rank has (global ids, a range and ghosts,
//! rows of a matrix), at any time, and dropped at any time. A rank's part of the set-up and of a halo
//! is in proportion to its own entries and neighbours.
//!
//! **And the compiler?** On a machine on which no channel, link or agent is scarce there is nothing
//! to plan: all connections of a halo are in one phase, and the schedule is one message to each
//! neighbour. That is what a halo is here, and it needs no machine and no compilation. Sets with an
//! order, sets in phases or steps, and several cells on a rank are run by the callback form
//! ([`crate::World`]); a compiled image cannot be run here. Sums of shared entries and reductions
//! have the same bits in both forms, with one cell a rank.
//!
//! **What is detected.** A rank that makes another set-up call, or gives invalid ids: an error on all
//! ranks. A message of another size than expected (another block, another type of another size,
//! forward and backward lists of different length): an error on the rank that receives it, which
//! takes no word of it. A rank that exchanges another halo, or does not exchange: its messages have
//! another tag, so nothing is delivered, and the wait for them reports which rank it awaits. Not
//! detected: two calls on the same halo whose messages have the same size, such as `exchange` and
//! `reduce` between ranks with equally long lists, or `f64` on one rank and `i64` on another.
//!
//! Modules, bottom up: `ffi` (the C shim); `operation` (reductions, messages to ranks that do not
//! expect them), `wire` (messages between neighbours), `field` (vectors as bytes); `rendezvous` and
//! `ranges` (who has which id), `setup`; `halo`, `copies` and `exchange`; `collective` (walks of
//! [`super::tree`]).

mod collective;
mod copies;
mod error;
mod exchange;
mod ffi;
mod field;
mod halo;
mod operation;
mod ranges;
mod rendezvous;
mod setup;
mod wire;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conset_ir::convert::to_u64;

pub use collective::PendingReduction;
pub use error::{HaloError, SetupFault};
pub use exchange::PendingExchange;
pub use field::{Field, Pod};
pub use halo::Halo;
pub use operation::set_up_messages;
pub use setup::AttachedRows;

use super::comm::{Comm, Occupied};
use operation::{Combine, HALO_TAGS, reduce_all};

/// A communicator whose ranks make the calls of this module, each as one cell. Cheap to clone: all
/// clones are the same.
///
/// No run of a [`crate::World`] and no other `Attached` can use the communicator's duplicate
/// meanwhile, nor afterwards if a call failed whose messages may still come; attach to several
/// [`Comm`]s to have several at once. Calls come from one thread at a time.
#[derive(Clone)]
pub struct Attached {
    inner: Arc<Inner>,
}

struct Inner {
    comm: Comm,
    state: Mutex<State>,
    /// Reductions that are not done.
    walking: AtomicUsize,
    /// Keeps runs away from the communicator.
    occupied: Option<Occupied>,
}

struct State {
    /// Sparse exchanges that were made.
    rounds: u64,
    /// The number of the next halo, unless it is in use.
    next: u64,
    /// Numbers of halos that exist.
    live: BTreeSet<u64>,
    reductions: collective::Reductions,
    /// Messages of a call that failed may come at any time: of a collective call, or of a halo.
    lost: bool,
    lost_halos: bool,
}

impl Attached {
    /// Attaches to a communicator. Collective.
    ///
    /// # Errors
    /// The communicator is in use, an error of MPI, or a rank that does not come.
    pub fn new(comm: &Comm) -> Result<Self, HaloError> {
        let occupied = comm.occupy()?;
        // Nobody goes on while others still complete calls of an earlier attachment.
        reduce_all(comm, Combine::Min, vec![0], "attaching to a communicator")?;
        let reductions = collective::Reductions::new(comm)?;
        let state = State {
            rounds: 0,
            next: 0,
            live: BTreeSet::new(),
            reductions,
            lost: false,
            lost_halos: false,
        };
        let (state, walking) = (Mutex::new(state), AtomicUsize::new(0));
        let inner = Inner { comm: comm.clone(), state, walking, occupied: Some(occupied) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs the body of a set-up or collective call, after all reductions that were started. If it
    /// fails in the middle, messages may be left, and later calls are refused.
    fn collective<T>(&self, body: impl FnOnce() -> Result<T, HaloError>) -> Result<T, HaloError> {
        self.check_usable()?;
        self.settle_reductions()?;
        // One of them may have failed.
        self.check_usable()?;
        let result = body();
        if let Err(HaloError::Mpi(_) | HaloError::Mismatch { .. }) = result {
            self.inner.state().lost = true;
        }
        result
    }

    fn check_usable(&self) -> Result<(), HaloError> {
        if self.inner.state().lost { Err(HaloError::Lost) } else { Ok(()) }
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.inner.comm.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.inner.comm.size()
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("comm", &self.inner.comm).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.lost || state.lost_halos || !state.reductions.is_idle() {
            // The communicator stays occupied.
            std::mem::forget(self.occupied.take());
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is kept there that a panic could leave half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with the reductions that were started. To be called while the rank waits for anything
    /// else.
    fn advance_reductions(&self, tries: u32) {
        if self.walking.load(Ordering::Relaxed) > 0 {
            let mut state = self.state();
            let (left, failed) = state.reductions.advance(tries);
            state.lost |= failed;
            self.walking.store(left, Ordering::Relaxed);
        }
    }

    /// Counts sparse exchanges.
    fn next_round(&self) -> u64 {
        let mut state = self.state();
        state.rounds += 1;
        state.rounds
    }

    /// Tags that halos can have.
    fn tags(&self) -> u64 {
        to_u64(self.comm.tags() - HALO_TAGS + 1)
    }

    /// The first number from `least` on whose tag no halo has; the greatest number if there is none.
    fn free_number(&self, least: u64) -> u64 {
        let (state, tags) = (self.state(), self.tags());
        let first = state.next.max(least);
        let used: BTreeSet<u64> = state.live.iter().map(|number| number % tags).collect();
        let mut numbers = first..first.saturating_add(tags);
        numbers.find(|number| !used.contains(&(number % tags))).unwrap_or(u64::MAX)
    }
}

/// The number of a halo on its communicator. Its tag is free again when this is dropped.
struct HaloNumber {
    inner: Arc<Inner>,
    number: u64,
    kept: bool,
}

impl HaloNumber {
    /// Takes a number that all ranks have found free.
    fn take(inner: &Arc<Inner>, number: u64) -> Result<Self, SetupFault> {
        let mut state = inner.state();
        if number == u64::MAX {
            let halos = to_u64(state.live.len());
            return Err(SetupFault::Halos { halos, limit: inner.tags() });
        }
        state.live.insert(number);
        state.next = number + 1;
        drop(state);
        Ok(Self { inner: inner.clone(), number, kept: false })
    }

    fn comm(&self) -> &Comm {
        &self.inner.comm
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn tag(&self) -> i32 {
        let tag = self.number % self.inner.tags();
        HALO_TAGS + i32::try_from(tag).unwrap_or_default()
    }

    /// The tag stays in use.
    fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for HaloNumber {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        if self.kept {
            state.lost_halos = true;
        } else {
            state.live.remove(&self.number);
        }
    }
}
