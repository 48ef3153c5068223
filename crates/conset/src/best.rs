//! The best of several plans.
//!
//! The router has several ways to plan a set and the scheduler prices plans; neither knows the
//! other, so the choice is made here: ways are tried in turn, each plan is timetabled and priced,
//! and the cheapest is kept. Trying ends when nothing much better can be expected.
//!
//! A price is what the cost model says, or for small sets what the fabric measures: streams of
//! a few dozen words are ruled by what the model leaves out (words on their way, the depth of
//! queues), and a run of them costs no more than the model does.

use std::sync::Arc;

use conset_fabric::run_checked;
use conset_ir::{Bounds, ConnectionSet, Machine, Timetable};
use conset_partition_route::best::{self, Plan, Way};
use conset_scheduler::{best as links, predict};

use crate::compile::{CompileError, Objective, Options, gap};
use crate::{Observer, Progress};

/// A timetable and what it takes.
struct Priced {
    timetable: Timetable,
    clocks: u64,
    /// What each phase takes, without the switch.
    phases: Vec<u64>,
    /// The rounds of a plan that has them.
    rounds: Option<Vec<Vec<u32>>>,
}

/// Connections up to which searches are tried although a plan is good.
const SMALL: usize = 1 << 13;

/// Connections up to which rounds are searched for although the torus has rounds.
const SEARCHED: usize = 1 << 10;

/// Words times links up to which a timetable is priced on the fabric.
const MEASURED: u64 = 1 << 18;

/// Attempts to balance a small set, and connections of all attempts together.
const ATTEMPTS: usize = 8;
const TRIED: usize = 1 << 13;

/// Negotiations of a set of a few connections.
const NEGOTIATED: u64 = 3;

/// Connections up to which timetables are varied.
const PASSED: usize = 1 << 17;

/// Passes of the timetable in each phase.
const PASSES: u32 = 64;

/// Compiles one set: of all plans the one that is best for the objective.
pub(crate) fn best(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bounds: &Bounds,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<(Timetable, predict::Prediction), CompileError> {
    observer(Progress::Stage("planning"));
    let ways: Vec<(Way, u64)> = attempts(set, options.objective).collect();
    let mut found: Option<Priced> = None;
    for (done, &(way, attempt)) in ways.iter().enumerate() {
        if found.as_ref().is_some_and(|found| is_good(found, set, bounds, options.objective)) {
            break;
        }
        if way == Way::SearchedRounds && found.is_some() && set.len() > SEARCHED {
            continue;
        }
        observer(Progress::Done { done: done as u64, total: ways.len() as u64 });
        let default = best::Options::default();
        let route = best::Options {
            seed: options.seed.wrapping_add(attempt),
            reroutes: options.reroutes.unwrap_or(default.reroutes),
            max_phases: options.max_phases,
            ..default
        };
        let plans = match best::plans(machine, set, way, &route) {
            Ok(plans) => plans,
            // What one way cannot do another has done.
            Err(_) if found.is_some() => continue,
            Err(infeasible) => return Err(infeasible.into()),
        };
        for plan in plans {
            let priced = price(plan, route.seed)?;
            if found.as_ref().is_none_or(|found| is_better(&priced, found, options.objective)) {
                found = Some(priced);
            }
        }
    }
    let found = found.ok_or_else(|| CompileError::bug("the router", &"no way to plan applies"))?;
    let found = joined(found, options.seed)?;
    let prediction = predict::predict(&found.timetable);
    Ok((found.timetable, prediction))
}

/// Ways and seeds to try, in this order: those that cost little and may be perfect first. Rounds
/// are for time, orbits for phases.
fn attempts(set: &ConnectionSet, objective: Objective) -> impl Iterator<Item = (Way, u64)> {
    // A set of a few connections leaves little to try.
    let most = ATTEMPTS.min(1 + set.len() / 32);
    let balanced = (TRIED / set.len().max(1)).clamp(1, most) as u64;
    let first: &[Way] = match objective {
        Objective::Time => &[Way::RingRounds, Way::SearchedRounds, Way::Negotiated, Way::Orbits],
        Objective::Phases => &[Way::Orbits, Way::RingRounds],
    };
    let negotiated = if set.len() <= SEARCHED { NEGOTIATED } else { 1 };
    let times = move |way: Way| if way == Way::Negotiated { negotiated } else { 1 };
    let first = first.iter().flat_map(move |&way| (0..times(way)).map(move |again| (way, again)));
    first.chain((0..balanced).map(|attempt| (Way::Balanced, attempt)))
}

/// Whether nothing much better can be expected of more attempts: for a large set that is what a
/// way of rounds gives, for a small one a price near the bound.
fn is_good(found: &Priced, set: &ConnectionSet, bounds: &Bounds, objective: Objective) -> bool {
    let near = if set.len() > SMALL { 1.35 } else { 1.01 };
    let few = found.timetable.phases().len() <= bounds.phases as usize;
    match objective {
        Objective::Time => gap(found.clocks, bounds.clocks) < near,
        Objective::Phases if set.len() > SMALL => few || set.len() > PASSED,
        Objective::Phases => few && gap(found.clocks, bounds.clocks) < near,
    }
}

fn is_better(new: &Priced, old: &Priced, objective: Objective) -> bool {
    let key = |priced: &Priced| match objective {
        Objective::Time => (0, priced.clocks),
        Objective::Phases => (priced.timetable.phases().len(), priced.clocks),
    };
    key(new) < key(old)
}

fn price(plan: Plan, seed: u64) -> Result<Priced, CompileError> {
    let bug = |e| CompileError::bug("the scheduler", &e);
    let tables = match &plan.rounds {
        Some(rounds) => vec![links::in_rounds(plan.routing, rounds).map_err(bug)?],
        None => {
            let passes = if plan.routing.set().len() > PASSED { 0 } else { PASSES };
            links::by_links(plan.routing, passes, seed).map_err(bug)?
        }
    };
    let prices = tables.iter().map(clocks_of_phases).collect::<Result<Vec<_>, _>>()?;
    let timetable = links::combine(&tables, &prices);
    // Phases start on an empty machine, so their prices do not depend on each other.
    let phases = 0..timetable.phases().len();
    let least = |phase: usize| prices.iter().map(|table| table[phase]).min().unwrap_or(0);
    let phases: Vec<u64> = phases.map(least).collect();
    let switch = timetable.routing().machine().parameters().switch_clocks();
    let clocks = phases.iter().map(|phase| switch.saturating_add(*phase));
    let clocks = clocks.fold(0, u64::saturating_add);
    Ok(Priced { clocks, timetable, phases, rounds: plan.rounds })
}

/// Connections up to which phases are joined, and attempts at it.
const JOINED: usize = 1 << 13;
const JOINS: usize = 24;

/// Connections up to which rounds are given up where links alone do better.
const POLISHED: usize = 1 << 12;

/// Joins phases of a plan of rounds where that saves more than it costs.
fn joined(mut found: Priced, seed: u64) -> Result<Priced, CompileError> {
    if found.timetable.routing().set().len() > JOINED {
        return Ok(found);
    }
    let bug = |e| CompileError::bug("the router", &e);
    let switch = found.timetable.routing().machine().parameters().switch_clocks();
    let mut tried = best::Tried::new();
    for _ in 0..JOINS {
        let Some(rounds) = &found.rounds else { break };
        let routing = found.timetable.routing().clone();
        let plan = Plan { routing, rounds: Some(rounds.clone()) };
        let pairs = best::joinable(&plan, &mut tried);
        if pairs.is_empty() {
            break;
        }
        let trial = price(best::join(&plan, &pairs).map_err(bug)?, seed)?;
        let gains = |&(a, b): &(u32, u32)| {
            let place = a as usize - pairs.iter().filter(|pair| pair.1 < a).count();
            let apart = found.phases[a as usize] + found.phases[b as usize] + switch;
            trial.phases[place] < apart
        };
        let good: Vec<(u32, u32)> = pairs.iter().copied().filter(gains).collect();
        if good.len() == pairs.len() {
            found = trial;
        } else if !good.is_empty() {
            found = price(best::join(&plan, &good).map_err(bug)?, seed)?;
        }
    }
    if found.rounds.is_some() && found.timetable.routing().set().len() <= POLISHED {
        // The routes by links instead of by rounds: better for some phases of unequal words.
        let routing = found.timetable.routing().clone();
        let other = price(Plan { routing, rounds: None }, seed)?;
        let tables = [found.timetable.clone(), other.timetable];
        let prices = [found.phases, other.phases];
        let phases = prices[0].iter().zip(&prices[1]).map(|(a, b)| *a.min(b)).collect::<Vec<_>>();
        found.timetable = links::combine(&tables, &prices);
        found.clocks = phases.iter().map(|phase| phase + switch).sum();
        found.phases = phases;
    }
    Ok(found)
}

/// What each phase takes, without the switch.
fn clocks_of_phases(timetable: &Timetable) -> Result<Vec<u64>, CompileError> {
    let routing = timetable.routing();
    let hops = |route: conset_ir::RouteRef<'_>| route.hops() as u64 * u64::from(route.words);
    let work: u64 = routing.phases().iter().flat_map(|p| p.iter()).map(hops).sum();
    if work > MEASURED {
        return Ok(predict::predict(timetable).phases.iter().map(|phase| phase.clocks).collect());
    }
    let verified = conset_verify::timetable(timetable.clone())
        .map_err(|rejection| CompileError::bug("a stage", &rejection))?;
    let image = conset_codegen::image::image(routing.machine(), &[verified])
        .map_err(|e| CompileError::bug("codegen", &e))?;
    let checked = run_checked(Arc::new(image), 0, 0, false)
        .map_err(|fault| CompileError::bug("the fabric", &fault))?;
    Ok(checked.report.phases.iter().map(|phase| phase.clocks).collect())
}
