//! The algorithm of the ConSet paper: APR, then greedy timetables.

use std::sync::Arc;

use conset_ir::convert::to_u64;
use conset_ir::{ConnectionSet, Machine, Timetable};
use conset_partition_route::apr;
use conset_scheduler::{Prediction, fixed_starts, greedy, link_aware as links};

use crate::{CompileError, CompileOptions, Observer, Progress};

/// Plans a set by APR (section 4.4.1) and the MIN_TIME greedy timetable (section 4.4.2).
///
/// # Errors
/// A set that the router cannot route; a bug of a stage.
pub(crate) fn plan(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &CompileOptions,
    observer: &mut Observer<'_>,
) -> Result<(Timetable, Prediction), CompileError> {
    let paper = apr::RouterOptions::paper();
    let routing = apr::route(
        machine,
        set,
        &apr::RouterOptions {
            seed: options.seed,
            rip_up_iterations: options.rip_up_iterations.unwrap_or(paper.rip_up_iterations),
            max_phases: options.max_phases,
            ..paper
        },
        &mut |at| {
            observer(Progress::Done { done: to_u64(at.routed), total: to_u64(at.total) });
        },
    )?;
    observer(Progress::Stage("building timetables"));
    let timetable =
        greedy::timetable(routing).map_err(|e| CompileError::bug("the scheduler", &e))?;
    Ok(links::cheapest(&fixed_starts::with_early_starts(vec![timetable])))
}
