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
use conset_planner::{self as planner, Routed};
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
    /// What may be looked at to price it ([`WORK`]).
    work: u64,
    /// Whether less was tried for that.
    pub(super) stopped: bool,
    /// Cells that the search for the plan looked at.
    pub(super) spent: u64,
    /// Whether the checker has seen all phases with their times.
    checked: bool,
}

impl Priced {
    /// The same, seen by the checker, now or when it was priced.
    ///
    /// # Errors
    /// What the checker refuses.
    pub(super) fn checked(self) -> Result<Self, CompileError> {
        if !self.checked {
            conset_verify::check_timetable(&self.timetable).map_err(|e| refused(&e))?;
        }
        Ok(Self { checked: true, ..self })
    }

    /// The same as if it had not been checked, with slots that are too short.
    #[cfg(test)]
    pub(super) fn with_slots_of_nothing(self) -> Self {
        let mut phases = self.timetable.phases().to_vec();
        phases.iter_mut().flat_map(|times| &mut times.slots).for_each(|slot| slot.duration = 0);
        let timetable = Timetable::new(self.timetable.routing().clone(), phases).expect("one each");
        Self { timetable, checked: false, clocks: self.clocks - 1, ..self }
    }

    /// Whether it has phases that [`joined`] may join.
    pub(super) fn is_joinable(&self) -> bool {
        self.rounds.is_some() && self.timetable.routing().set().len() <= JOINED
    }

    /// How many rounds a plan has that has them.
    pub(super) fn rounds(&self) -> Option<u32> {
        let last = self.rounds.as_ref()?.iter().flatten().max();
        Some(last.map_or(0, |&last| last + 1))
    }
}

/// Channels of routes that the timetables of a plan look at, all passes together, and again when
/// phases are joined, with the cells of each phase. Plans in which routes take a million channels
/// or more get fewer passes by it, those of a third of that fewer attempts to join.
pub(super) const WORK: u64 = 1 << 26;

/// Channels that all routes of a timetable take.
pub(super) fn channels(timetable: &Timetable) -> u64 {
    let phases = timetable.routing().phases().iter();
    phases.flat_map(|phase| phase.iter()).map(|route| route.cells.len() as u64).sum()
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
pub(super) fn price(plan: Routed, seed: u64, work: u64) -> Result<Priced, CompileError> {
    let mut stopped = false;
    let bug = |e| CompileError::bug("the scheduler", &e);
    let most = if plan.starts.is_some() { PLANNED } else { MEASURED };
    let tables = match (&plan.rounds, &plan.starts) {
        (Some(rounds), _) => vec![links::in_rounds(plan.routing, rounds).map_err(bug)?],
        (None, Some(starts)) => {
            let bug = |e| CompileError::bug("the router", &e);
            vec![planned::with_starts(plan.routing, starts).map_err(bug)?]
        }
        (None, None) => {
            let most = if plan.routing.set().len() > PASSED { 0 } else { PASSES };
            let routes = plan.routing.phases().iter().flat_map(|phase| phase.iter());
            let channels: u64 = routes.map(|route| route.cells.len() as u64).sum();
            let passes = u64::from(most).min(work / channels.max(1)) as u32;
            stopped = passes < most;
            links::by_links(plan.routing, passes, seed).map_err(bug)?
        }
    };
    let tables = planned::with_early_starts(tables);
    // Timetables of one routing, so all of them are run on the fabric or none.
    let checked = word_hops(&tables[0]) <= most;
    let clocks = |table: &Timetable| match checked {
        true => measured(table),
        false => Ok(predict::predict(table).phases.iter().map(|phase| phase.clocks).collect()),
    };
    let prices: Vec<_> = tables.par_iter().map(clocks).collect();
    let prices = prices.into_iter().collect::<Result<Vec<_>, _>>()?;
    let timetable = links::combine(&tables, &prices);
    // Phases start on an empty machine, so their prices do not depend on each other.
    let phases = 0..timetable.phases().len();
    let least = |phase: usize| prices.iter().map(|table| table[phase]).min().unwrap_or(0);
    let phases: Vec<u64> = phases.map(least).collect();
    let switch = timetable.routing().machine().parameters().switch_clocks();
    let clocks = phases.iter().map(|phase| switch.saturating_add(*phase));
    let clocks = clocks.fold(0, u64::saturating_add);
    // Phases of timetables that were checked make one that need not be.
    let rounds = plan.rounds;
    Ok(Priced { clocks, timetable, phases, rounds, work, stopped, spent: 0, checked })
}

/// Connections up to which phases are joined, and attempts at it.
const JOINED: usize = 1 << 13;
const JOINS: usize = 24;

/// What an attempt to join costs, in passes of a timetable.
const TRIED: u64 = 8;

/// Connections up to which rounds are given up where links alone do better.
const POLISHED: usize = 1 << 12;

/// Joins phases of a plan of rounds where that saves more than it costs.
///
/// # Errors
/// A bug of a stage.
pub(super) fn joined(mut found: Priced, seed: u64) -> Result<Priced, CompileError> {
    if !found.is_joinable() {
        return Ok(found);
    }
    let bug = |e| CompileError::bug("the router", &e);
    let switch = found.timetable.routing().machine().parameters().switch_clocks();
    let mut tried = planner::Tried::new();
    let cells = found.timetable.routing().machine().cell_count() as u64;
    let each = channels(&found.timetable) + found.phases.len() as u64 * cells;
    let most = JOINS.min(usize::try_from(found.work / TRIED / each.max(1)).unwrap_or(JOINS));
    found.stopped |= most < JOINS && found.rounds.is_some();
    for _ in 0..most {
        let Some(rounds) = &found.rounds else { break };
        let routing = found.timetable.routing().clone();
        let plan = Routed { routing, rounds: Some(rounds.clone()), starts: None };
        let pairs = planner::joinable(&plan, &mut tried);
        if pairs.is_empty() {
            break;
        }
        let trial = price(planner::join(&plan, &pairs).map_err(bug)?, seed, found.work)?;
        let gains = |&(a, b): &(u32, u32)| {
            let place = a as usize - pairs.iter().filter(|pair| pair.1 < a).count();
            let apart = found.phases[a as usize] + found.phases[b as usize] + switch;
            trial.phases[place] < apart
        };
        let good: Vec<(u32, u32)> = pairs.iter().copied().filter(gains).collect();
        if good.len() == pairs.len() {
            found = trial;
        } else if !good.is_empty() {
            found = price(planner::join(&plan, &good).map_err(bug)?, seed, found.work)?;
        }
    }
    if most > 0 && found.rounds.is_some() && found.timetable.routing().set().len() <= POLISHED {
        // The routes by links instead of by rounds: better for some phases of unequal words.
        let routing = found.timetable.routing().clone();
        let other = price(Routed { routing, rounds: None, starts: None }, seed, found.work)?;
        let tables = [found.timetable.clone(), other.timetable];
        let prices = [found.phases, other.phases];
        let phases = prices[0].iter().zip(&prices[1]).map(|(a, b)| *a.min(b)).collect::<Vec<_>>();
        found.timetable = links::combine(&tables, &prices);
        found.clocks = phases.iter().map(|phase| phase + switch).sum();
        found.phases = phases;
        found.checked &= other.checked;
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
    let links = planner::links_of_edges(routing.machine());
    let mut sketch = Sketch::new(routing.machine(), routing.set(), &links);
    let mut run = |streams: &[planner::Streamed<'_>]| {
        let stream = |&(connection, words, places)| Stream { connection, words, places, start: 0 };
        sketch.ends(streams.iter().map(stream))
    };
    let plan = planner::refine(&base.timetable, even, steps, seed, &mut run)
        .map_err(|e| CompileError::bug("the router", &e))?;
    plan.map(|plan| price(plan, seed, base.work)).transpose()
}

/// Words times links of a timetable's routes.
fn word_hops(timetable: &Timetable) -> u64 {
    let hops = |route: conset_ir::RouteRef<'_>| route.hops() as u64 * u64::from(route.words);
    timetable.routing().phases().iter().flat_map(|p| p.iter()).map(hops).sum()
}

fn refused(rejection: &conset_verify::Rejection) -> CompileError {
    CompileError::bug("a stage", rejection)
}

/// What each phase takes, without the switch, as the fabric runs it. The checker sees it before.
fn measured(timetable: &Timetable) -> Result<Vec<u64>, CompileError> {
    let verified = conset_verify::timetable(timetable.clone()).map_err(|e| refused(&e))?;
    let image = conset_codegen::image::image(timetable.routing().machine(), &[verified])
        .map_err(|e| CompileError::bug("codegen", &e))?;
    let checked = run_checked(Arc::new(image), 0, 0, false)
        .map_err(|fault| CompileError::bug("the fabric", &fault))?;
    Ok(checked.report.phases.iter().map(|phase| phase.clocks).collect())
}
