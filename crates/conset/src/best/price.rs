//! What a plan takes: its timetables, and for each phase the cheapest of them.
//!
//! A price is the cost model's, or for a set with little work what the fabric measures. Phases
//! start on an empty machine, so each is priced by itself, and a phase may take its times from
//! another timetable than its neighbours. A plan of rounds is bettered in the end by joining
//! phases where that saves more than the rounds lose ([`joined`]).
//!
//! Nothing here decides which plans are made.

use std::sync::Arc;

use conset_fabric::run_checked;
use conset_ir::Timetable;
use conset_partition_route::best::{self, Plan};
use conset_scheduler::sketch::{Sketch, Stream};
use conset_scheduler::{best as links, planned, predict};
use rayon::prelude::*;

use crate::compile::CompileError;

/// A timetable and what it takes.
#[derive(Clone)]
pub(super) struct Priced {
    pub(super) timetable: Timetable,
    /// Clocks of all phases and their switches.
    pub(super) clocks: u64,
    /// What each phase takes, without the switch.
    phases: Vec<u64>,
    /// The rounds of a plan that has them.
    rounds: Option<Vec<Vec<u32>>>,
}

impl Priced {
    /// How many rounds a plan has that has them.
    pub(super) fn rounds(&self) -> Option<u32> {
        let last = self.rounds.as_ref()?.iter().flatten().max();
        Some(last.map_or(0, |&last| last + 1))
    }
}

/// Words times links up to which a timetable is priced on the fabric.
const MEASURED: u64 = 1 << 18;

/// The same for plans in which streams follow each other closely: small delays add up there.
const PLANNED: u64 = 1 << 24;

/// Connections up to which timetables are varied.
pub(super) const PASSED: usize = 1 << 17;

/// Passes of the timetable in each phase.
const PASSES: u32 = 64;

/// Timetables of a plan, the cheapest phases of them put together.
///
/// # Errors
/// A bug of a stage.
pub(super) fn price(plan: Plan, seed: u64) -> Result<Priced, CompileError> {
    let bug = |e| CompileError::bug("the scheduler", &e);
    let most = if plan.starts.is_some() { PLANNED } else { MEASURED };
    let tables = match (&plan.rounds, &plan.starts) {
        (Some(rounds), _) => vec![links::in_rounds(plan.routing, rounds).map_err(bug)?],
        (None, Some(starts)) => {
            let bug = |e| CompileError::bug("the router", &e);
            vec![planned::with_starts(plan.routing, starts).map_err(bug)?]
        }
        (None, None) => {
            let passes = if plan.routing.set().len() > PASSED { 0 } else { PASSES };
            links::by_links(plan.routing, passes, seed).map_err(bug)?
        }
    };
    let tables = planned::with_early_starts(tables);
    let prices: Vec<_> = tables.par_iter().map(|table| clocks_of_phases(table, most)).collect();
    let prices = prices.into_iter().collect::<Result<Vec<_>, _>>()?;
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
///
/// # Errors
/// A bug of a stage.
pub(super) fn joined(mut found: Priced, seed: u64) -> Result<Priced, CompileError> {
    if found.timetable.routing().set().len() > JOINED {
        return Ok(found);
    }
    let bug = |e| CompileError::bug("the router", &e);
    let switch = found.timetable.routing().machine().parameters().switch_clocks();
    let mut tried = best::Tried::new();
    for _ in 0..JOINS {
        let Some(rounds) = &found.rounds else { break };
        let routing = found.timetable.routing().clone();
        let plan = Plan { routing, rounds: Some(rounds.clone()), starts: None };
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
        let other = price(Plan { routing, rounds: None, starts: None }, seed)?;
        let tables = [found.timetable.clone(), other.timetable];
        let prices = [found.phases, other.phases];
        let phases = prices[0].iter().zip(&prices[1]).map(|(a, b)| *a.min(b)).collect::<Vec<_>>();
        found.timetable = links::combine(&tables, &prices);
        found.clocks = phases.iter().map(|phase| phase + switch).sum();
        found.phases = phases;
    }
    Ok(found)
}

/// The plan that changes make of one, priced; nothing where none of them gained anything.
///
/// # Errors
/// A bug of a stage.
pub(super) fn refined(
    base: &Priced,
    even: bool,
    steps: u64,
    seed: u64,
) -> Result<Option<Priced>, CompileError> {
    let routing = base.timetable.routing();
    let links = best::links_of_edges(routing.machine());
    let mut sketch = Sketch::new(routing.machine(), routing.set(), &links);
    let mut run = |streams: &[best::Streamed<'_>]| {
        let stream = |&(connection, words, places)| Stream { connection, words, places, start: 0 };
        sketch.ends(streams.iter().map(stream))
    };
    let plan = best::refine(&base.timetable, even, steps, seed, &mut run)
        .map_err(|e| CompileError::bug("the router", &e))?;
    plan.map(|plan| price(plan, seed)).transpose()
}

/// What each phase takes, without the switch.
fn clocks_of_phases(timetable: &Timetable, most: u64) -> Result<Vec<u64>, CompileError> {
    let routing = timetable.routing();
    let hops = |route: conset_ir::RouteRef<'_>| route.hops() as u64 * u64::from(route.words);
    let work: u64 = routing.phases().iter().flat_map(|p| p.iter()).map(hops).sum();
    if work > most {
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
