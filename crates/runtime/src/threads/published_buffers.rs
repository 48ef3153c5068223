//! The outgoing words of nonblocking exchanges, owned by the shared state, which outlives all
//! cells.
//!
//! A cell that starts a nonblocking exchange cannot stay in a call until all targets have read its
//! words. It therefore hands over the buffers: they are moved to the place of the step of the
//! exchange, of which there are [`WINDOW`] for each cell, and returned when the targets are done
//! with the step. If the run or the program ends before, they stay; the shared state is dropped
//! when all workers have ended. However a cell ends, nothing that others read is freed.
//!
//! The places do not know their readers; the rules are those of the callers (module `nonblocking`).

use std::cell::UnsafeCell;
use std::sync::OnceLock;

use conset_ir::convert::to_usize;

use crate::port::WireRows;
use crate::sync::WINDOW;

/// A row for each connection that starts at a cell, in id order.
pub(crate) type Outgoing = WireRows;

/// The places of one cell; made at its first nonblocking exchange.
#[derive(Debug, Default)]
pub(crate) struct PublishedBuffers {
    places: OnceLock<Box<[StepBuffers]>>,
}

#[derive(Debug, Default)]
struct StepBuffers(UnsafeCell<Outgoing>);

// SAFETY: the buffers are numbers. That nobody reads a place while its owner puts something there
// or takes it away is what `put`, `take` and `row` ask of those who call them.
unsafe impl Sync for StepBuffers {}

impl PublishedBuffers {
    /// Lends what goes out at a step.
    ///
    /// # Safety
    /// Only the owner calls it. No cell reads this place: the buffers of [`WINDOW`] steps before was
    /// taken back, and this step is published later.
    pub(crate) unsafe fn put(&self, step: u64, outgoing: Outgoing) {
        let places =
            self.places.get_or_init(|| (0..WINDOW).map(|_| StepBuffers::default()).collect());
        // SAFETY: no other cell accesses the place, as the caller says.
        unsafe { *places[to_usize(step % WINDOW)].0.get() = outgoing };
    }

    /// Takes back what went out at a step.
    ///
    /// # Safety
    /// Only the owner calls it, and all targets are done with the step.
    pub(crate) unsafe fn take(&self, step: u64) -> Outgoing {
        let place = self.places.get().map(|places| &places[to_usize(step % WINDOW)]);
        // SAFETY: no other cell accesses the place, as the caller says.
        place.map_or_else(Outgoing::default, |place| std::mem::take(unsafe { &mut *place.0.get() }))
    }

    /// What goes out at a step by the connection in this row.
    ///
    /// # Safety
    /// The caller has seen that the owner published the step with what goes out at it, and is not
    /// done with the step for as long as it uses what it gets.
    pub(crate) unsafe fn row(&self, step: u64, row: usize) -> &[u8] {
        let places = self.places.get().expect("the step is published");
        // SAFETY: the owner put it there before it published, and does not touch it before the
        // caller is done.
        unsafe { (&*places[to_usize(step % WINDOW)].0.get()).row(row) }
    }
}
