//! The best of several plans.
//!
//! The router has several ways to plan a set and the scheduler prices plans; neither knows the
//! other, so the choice is made here: every way that applies is planned, timetabled and priced,
//! and the best price is taken.

use std::sync::Arc;

use conset_ir::{Bounds, ConnectionSet, Machine, Timetable};
use conset_partition_route::best::{self, Way};
use conset_scheduler::{best as rounds, predict};

use crate::compile::{CompileError, Options, paper};
use crate::{Observer, Progress};

pub(crate) fn best(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    _bounds: &Bounds,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<(Timetable, predict::Prediction), CompileError> {
    let route = best::Options { seed: options.seed, max_phases: options.max_phases };
    observer(Progress::Stage("planning"));
    if let Some(plan) = best::plan(machine, set, Way::RingRounds, &route)? {
        let timetable = rounds::timetable(plan.routing, plan.rounds.as_deref().unwrap_or(&[]))
            .map_err(|e| CompileError::bug("the scheduler", e))?;
        let prediction = predict::predict(&timetable);
        return Ok((timetable, prediction));
    }
    paper(machine, set, options, observer)
}
