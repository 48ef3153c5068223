//! Ending a search early, from another thread or a signal handler.
//!
//! A search that takes minutes must end within a moment when its user has seen enough. Its loops ask
//! an [`Interrupt`] where they ask for their work budget; a planner that is interrupted returns what
//! it has, which may be nothing, and the search above it keeps the best plan that it had before.
//! The result depends on the moment of the request; without a request it does not depend on the
//! interrupt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end a search, shared by all clones.
///
/// ```
/// let interrupt = conset_planner::Interrupt::default();
/// let handler = interrupt.clone();
/// handler.request();
/// assert!(interrupt.is_requested());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks every search with a clone of this interrupt to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the searches are to end.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
