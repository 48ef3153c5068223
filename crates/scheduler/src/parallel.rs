//! Runs a function on every phase of a set, on all threads.
//!
//! Phases are independent, so the results do not depend on the number of threads; they are returned
//! in the order of the phases. Each thread creates scratch memory for the phases that it processes,
//! which must not carry information from one phase to the next. Sets with few routes are processed
//! by one thread, because waking the others would take longer.

use conset_ir::{PhaseId, PhaseRoutes, Routing};
use rayon::prelude::*;

/// Total number of routes up to which one thread processes all phases.
const FEW: usize = 1 << 9;

/// The results of `make` for each phase, in the order of the phases.
pub(crate) fn phases<S, T: Send>(
    routing: &Routing,
    scratch: impl Fn() -> S + Sync + Send,
    make: impl Fn(&mut S, PhaseId, &PhaseRoutes) -> T + Sync + Send,
) -> Vec<T> {
    let all = routing.phases();
    if all.len() < 2 || all.iter().map(PhaseRoutes::len).sum::<usize>() <= FEW {
        let mut scratch = scratch();
        return routing.iter().map(|(phase, routes)| make(&mut scratch, phase, routes)).collect();
    }
    all.par_iter()
        .enumerate()
        .map_init(scratch, |scratch, (row, routes)| make(scratch, PhaseId::from_index(row), routes))
        .collect()
}
