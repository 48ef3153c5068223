//! The phases of a set, worked at on several threads.
//!
//! Each phase is a problem of its own, so what comes out does not depend on who works at which,
//! nor on how many threads there are: results stand in the order of the phases. Scratch memory is
//! made for each run of phases that a thread takes and must not carry anything from one phase to
//! the next. Sets of a few routes are not worth waking threads for.

use conset_ir::{PhaseId, PhaseRoutes, Routing};
use rayon::prelude::*;

/// Routes of all phases up to which one thread does all of them.
const FEW: usize = 1 << 9;

/// Something for each phase, in the order of the phases.
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
