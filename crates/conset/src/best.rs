//! The best of several plans.
//!
//! The router has several ways to plan a set and the scheduler prices plans; neither knows the
//! other, so the choice is made here: every way that applies is planned, timetabled and priced,
//! and the best price is taken.

use std::sync::Arc;

use conset_ir::{Bounds, ConnectionSet, Machine, Timetable};
use conset_partition_route::best::{self, Plan, Way};
use conset_scheduler::{best as links, predict};

use crate::compile::{CompileError, Options, gap};
use crate::{Observer, Progress};

/// A priced timetable.
type Priced = (Timetable, predict::Prediction);

/// Connections up to which searches are tried although a plan is good.
const SMALL: usize = 1 << 13;

/// Passes of the timetable in each phase.
const PASSES: u32 = 64;

pub(crate) fn best(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<Priced, CompileError> {
    let route = best::Options {
        seed: options.seed,
        reroutes: options.reroutes,
        max_phases: options.max_phases,
        ..best::Options::default()
    };
    observer(Progress::Stage("planning"));
    let mut found: Option<Priced> = None;
    for way in [Way::RingRounds, Way::SearchedRounds, Way::Balanced] {
        if let Some((_, prediction)) = &found {
            let good = gap(prediction.clocks, bounds.clocks) < 1.05;
            if good || set.len() > SMALL {
                break;
            }
        }
        let Some(plan) = best::plan(machine, set, way, &route)? else { continue };
        let priced = price(plan, options.seed)?;
        if found.as_ref().is_none_or(|(_, least)| priced.1.clocks < least.clocks) {
            found = Some(priced);
        }
    }
    found.ok_or_else(|| CompileError::bug("the router", "no way to plan applies"))
}

fn price(plan: Plan, seed: u64) -> Result<Priced, CompileError> {
    let bug = |e| CompileError::bug("the scheduler", e);
    match plan.rounds {
        Some(rounds) => {
            let timetable = links::in_rounds(plan.routing, &rounds).map_err(bug)?;
            let prediction = predict::predict(&timetable);
            Ok((timetable, prediction))
        }
        None => links::by_links(plan.routing, PASSES, seed).map_err(bug),
    }
}
