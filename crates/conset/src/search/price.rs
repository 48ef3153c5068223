//! Pricing of plans: timetables are built for a plan, and each phase uses the cheapest of them.
//!
//! All plans of a set are priced in the same way: by the cost model, or by a run on the emulated
//! fabric if the set has few words. A plan with timed starts whose length the checker proves needs no
//! run, and its prediction is exact. Phases start on an empty machine, so each is priced by itself,
//! and two phases may come from different timetables. If two plans are so close that the model error
//! could decide, both run on the fabric ([`Priced::beats`]), unless that takes too long. A plan by
//! rounds is finally improved by merging phases where that saves more than the rounds lose
//! ([`merged`]).
//!
//! Which plans are made is decided elsewhere.

use std::sync::{Arc, OnceLock};

use conset_fabric::run_checked;
use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{ConnectionSet, Machine, Timetable};
use conset_partition_route::network::{Distances, Network};
use conset_planner::{self as planner, Interrupt, Routed};
use conset_scheduler::phase_model::{ModelStream, PhaseModel};
use conset_scheduler::{fixed_starts, link_aware as links, predict};

use crate::{CompileError, Objective, parallel};

/// The pricing of a set's plans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pricing {
    /// The limit of work for each plan ([`WORK_LIMIT`]).
    pub(super) work_limit: u64,
    /// Whether prices are measured on the fabric instead of predicted by the cost model.
    on_fabric: bool,
}

impl Pricing {
    /// The pricing of this set's plans.
    pub(super) fn of(machine: &Machine, set: &ConnectionSet, work_limit: u64) -> Self {
        Self { work_limit, on_fabric: shortest_word_hops(machine, set) <= MEASURED_WORD_HOPS }
    }

    /// The measured clocks, if prices are measured.
    fn measured(self, clocks: u64) -> OnceLock<u64> {
        if self.on_fabric { OnceLock::from(clocks) } else { OnceLock::new() }
    }
}

/// Words times the hops of shortest routes, or a number above [`MEASURED_WORD_HOPS`].
fn shortest_word_hops(machine: &Machine, set: &ConnectionSet) -> u64 {
    // A connection of a cell to itself takes no hop; every other one takes at least one.
    let travels = |c: &&conset_ir::Connection| c.source != c.target;
    let words = set.connections().iter().filter(travels).map(|c| u64::from(c.words)).sum::<u64>();
    if words > MEASURED_WORD_HOPS {
        return u64::MAX;
    }
    let network = Network::new(machine);
    let targets = set.connections().iter().map(|c| c.target.0);
    let mut distances = Distances::new(&network, targets);
    let hops = |c: &conset_ir::Connection| distances.aim(&network, c.source.0, c.target.0);
    let hops: Vec<u32> = set.connections().iter().map(hops).collect();
    let each = set.connections().iter().zip(hops);
    each.map(|(c, hops)| u64::from(c.words).saturating_mul(u64::from(hops))).sum()
}

/// A timetable and its price.
#[derive(Clone)]
pub(super) struct Priced {
    pub(super) timetable: Timetable,
    /// Clocks of all phases and their switches, by [`Pricing`].
    pub(super) clocks: u64,
    /// The same on the fabric, once measured.
    measured: OnceLock<u64>,
    /// Clocks of each phase, without the context switch.
    phases: Vec<u64>,
    /// The rounds of a plan by rounds.
    rounds: Option<Vec<Vec<u32>>>,
    pricing: Pricing,
    /// Whether a limit of work was reached.
    pub(super) work_limited: bool,
    /// Cells that the planner examined.
    pub(super) work: u64,
    /// Whether the checker has accepted all phases with their times.
    checked: bool,
}

impl Priced {
    /// The same plan, checked now unless it was when it was priced.
    ///
    /// # Errors
    /// The checker refuses it.
    pub(super) fn checked(self) -> Result<Self, CompileError> {
        if !self.checked {
            conset_verify::check_timetable(&self.timetable).map_err(|e| refused(&e))?;
        }
        Ok(Self { checked: true, ..self })
    }

    /// An unchecked plan with slots that are too short.
    #[cfg(test)]
    pub(super) fn with_empty_slots(self) -> Self {
        let mut phases = self.timetable.phases().to_vec();
        phases.iter_mut().flat_map(|times| &mut times.slots).for_each(|slot| slot.duration = 0);
        let timetable = Timetable::new(self.timetable.routing().clone(), phases).expect("one each");
        let (clocks, measured) = (self.clocks - 1, OnceLock::from(self.clocks - 1));
        Self { timetable, checked: false, clocks, measured, ..self }
    }

    /// Whether it is better than another plan of the set: fewer phases if these are the objective,
    /// fewer clocks otherwise. If the clocks are close, both plans are measured.
    ///
    /// # Errors
    /// This plan cannot run, which is a bug of a stage.
    pub(super) fn beats(&self, other: &Self, objective: Objective) -> Result<bool, CompileError> {
        let phases = |priced: &Self| match objective {
            Objective::Time => 0,
            Objective::Phases => priced.timetable.phases().len(),
        };
        if phases(self) != phases(other) {
            return Ok(phases(self) < phases(other));
        }
        let close = self.clocks.abs_diff(other.clocks) < other.clocks / CLOSE;
        if !close
            || word_hops(&self.timetable).max(word_hops(&other.timetable))
                > CLOSE_MEASURED_WORD_HOPS
        {
            return Ok(self.clocks < other.clocks);
        }
        // The other plan was accepted, so it runs.
        Ok(self.measure()? < other.measure().unwrap_or(other.clocks))
    }

    /// Clocks on the fabric if they can be measured at moderate cost, else the predicted clocks.
    pub(super) fn confirmed_clocks(&self) -> u64 {
        if word_hops(&self.timetable) > CLOSE_MEASURED_WORD_HOPS {
            return self.clocks;
        }
        self.measure().unwrap_or(self.clocks)
    }

    /// Clocks on the fabric.
    fn measure(&self) -> Result<u64, CompileError> {
        if let Some(&clocks) = self.measured.get() {
            return Ok(clocks);
        }
        let switch = self.timetable.routing().machine().parameters().switch_clocks();
        let clocks = total(&measured(&self.timetable)?, switch);
        Ok(*self.measured.get_or_init(|| clocks))
    }

    /// Whether no two streams are on a link or an agent at the same clock, as the checker proves.
    pub(super) fn keeps_streams_apart(&self) -> bool {
        proved(&self.timetable).is_some()
    }

    /// Whether [`merged`] may merge phases of it.
    pub(super) fn is_mergeable(&self) -> bool {
        self.rounds.is_some() && self.timetable.routing().set().len() <= MERGED
    }

    /// The number of rounds of a plan by rounds.
    pub(super) fn rounds(&self) -> Option<u32> {
        let last = self.rounds.as_ref()?.iter().flatten().max();
        Some(last.map_or(0, |&last| last + 1))
    }
}

/// Channels of routes that the timetables of a plan examine in all passes together, and again when
/// phases are merged, with the cells of each phase. Plans whose routes take a million channels or
/// more get fewer passes; those of a third of that get fewer attempts to merge.
pub(super) const WORK_LIMIT: u64 = 1 << 26;

/// Channels of all routes of a timetable.
pub(super) fn channels(timetable: &Timetable) -> u64 {
    let phases = timetable.routing().phases().iter();
    phases.flat_map(|phase| phase.iter()).map(|route| to_u64(route.cells.len())).sum()
}

/// Words times hops up to which the plans of a set are priced on the fabric.
const MEASURED_WORD_HOPS: u64 = 1 << 18;

/// The same for two plans whose clocks differ by less than one part in [`CLOSE`].
const CLOSE_MEASURED_WORD_HOPS: u64 = 1 << 24;
const CLOSE: u64 = 64;

/// Connections up to which several timetables are built for a plan.
pub(super) const TIMETABLE_VARIANTS: usize = 1 << 17;

/// Passes of the timetable search in each phase.
const PASSES: u32 = 64;

/// Builds timetables of a plan and combines the cheapest phases.
///
/// # Errors
/// A bug of a stage.
pub(super) fn price(plan: Routed, seed: u64, pricing: Pricing) -> Result<Priced, CompileError> {
    let mut work_limited = false;
    let bug = |e| CompileError::bug("the scheduler", &e);
    let tables = match (&plan.rounds, &plan.starts) {
        (Some(rounds), _) => vec![links::in_rounds(plan.routing, rounds).map_err(bug)?],
        (None, Some(starts)) => {
            let bug = |e| CompileError::bug("the router", &e);
            vec![fixed_starts::with_starts(plan.routing, starts).map_err(bug)?]
        }
        (None, None) => {
            let most = if plan.routing.set().len() > TIMETABLE_VARIANTS { 0 } else { PASSES };
            let routes = plan.routing.phases().iter().flat_map(|phase| phase.iter());
            let channels: u64 = routes.map(|route| to_u64(route.cells.len())).sum();
            let passes = to_u32(u64::from(most).min(pricing.work_limit / channels.max(1)));
            work_limited = passes < most;
            links::list_schedules(plan.routing, passes, seed).map_err(bug)?
        }
    };
    // The clocks of planned starts that keep all streams apart are exact; those without the starts are
    // predicted, and often too few.
    let exact = plan.starts.is_some().then(|| proved(&tables[0])).flatten();
    let tables = match &exact {
        Some(clocks) if !sharing_may_gain(&tables[0], clocks) => tables,
        _ => fixed_starts::with_early_starts(tables),
    };
    let clocks = |&(row, table): &(usize, &Timetable)| match &exact {
        _ if pricing.on_fabric => measured(table),
        Some(exact) if row == 0 => Ok(exact.clone()),
        Some(exact) => {
            let certain = |(&exact, predicted)| match predicted < certain_gain(exact) {
                true => predicted,
                false => exact,
            };
            Ok(exact.iter().zip(predicted(table)).map(certain).collect())
        }
        None => Ok(predicted(table).collect()),
    };
    let numbered: Vec<_> = tables.iter().enumerate().collect();
    let prices: Vec<Vec<u64>> = parallel::try_map(&numbered, clocks)?;
    let timetable = links::combine(&tables, &prices);
    // Phases start on an empty machine, so their prices do not depend on each other.
    let phases = 0..timetable.phases().len();
    let least = |phase: usize| prices.iter().map(|table| table[phase]).min().unwrap_or(0);
    let phases: Vec<u64> = phases.map(least).collect();
    let switch = timetable.routing().machine().parameters().switch_clocks();
    let clocks = total(&phases, switch);
    Ok(Priced {
        clocks,
        measured: pricing.measured(clocks),
        timetable,
        phases,
        rounds: plan.rounds,
        pricing,
        work_limited,
        work: 0,
        // Phases of checked timetables make a valid timetable.
        checked: pricing.on_fabric,
    })
}

/// The clocks of each phase by the cost model.
fn predicted(table: &Timetable) -> impl Iterator<Item = u64> {
    predict::predict(table).phases.into_iter().map(|phase| phase.clocks)
}

/// The clocks below which a phase in which streams share links is predicted to be shorter, and is:
/// the prediction may be a tenth too short.
fn certain_gain(exact: u64) -> u64 {
    exact - exact / 8
}

/// Whether a phase of a timetable that keeps streams apart may be certainly shorter if they share links:
/// its busiest agent and link take less.
fn sharing_may_gain(table: &Timetable, exact: &[u64]) -> bool {
    let prediction = predict::predict(table);
    prediction.phases.iter().zip(exact).any(|(phase, &exact)| {
        let link = phase.busiest_link.map_or(0, |load| load.clocks);
        let agent = phase.busiest_agent.map_or(0, |load| load.clocks);
        link.max(agent) < certain_gain(exact)
    })
}

/// Clocks of phases with a switch before each.
fn total(phases: &[u64], switch: u64) -> u64 {
    phases.iter().fold(0, |sum, phase| sum.saturating_add(*phase).saturating_add(switch))
}

/// Connections up to which phases are merged, and the greatest number of attempts.
const MERGED: usize = 1 << 13;
const MERGES: usize = 24;

/// The cost of an attempt to merge, in passes of the timetable search.
const MERGE_COST: u64 = 8;

/// Connections up to which phases may use a timetable by links instead of rounds.
const BY_LINKS: usize = 1 << 12;

/// Merges phases of a plan by rounds where that saves more than it costs.
///
/// # Errors
/// A bug of a stage.
pub(super) fn merged(mut found: Priced, seed: u64) -> Result<Priced, CompileError> {
    if !found.is_mergeable() {
        return Ok(found);
    }
    let bug = |e| CompileError::bug("the router", &e);
    let switch = found.timetable.routing().machine().parameters().switch_clocks();
    let mut tried = planner::TriedPairs::new();
    let cells = to_u64(found.timetable.routing().machine().cell_count());
    let each = channels(&found.timetable) + to_u64(found.phases.len()) * cells;
    let most = MERGES.min(
        usize::try_from(found.pricing.work_limit / MERGE_COST / each.max(1)).unwrap_or(MERGES),
    );
    found.work_limited |= most < MERGES && found.rounds.is_some();
    for _ in 0..most {
        let Some(rounds) = &found.rounds else { break };
        let routing = found.timetable.routing().clone();
        let plan = Routed { routing, rounds: Some(rounds.clone()), starts: None };
        let pairs = planner::mergeable(&plan, &mut tried);
        if pairs.is_empty() {
            break;
        }
        let trial = price(planner::merge_phases(&plan, &pairs).map_err(bug)?, seed, found.pricing)?;
        let gains = |&(a, b): &(u32, u32)| {
            let place = index(a) - pairs.iter().filter(|pair| pair.1 < a).count();
            let apart = found.phases[index(a)] + found.phases[index(b)] + switch;
            trial.phases[place] < apart
        };
        let good: Vec<(u32, u32)> = pairs.iter().copied().filter(gains).collect();
        if good.len() == pairs.len() {
            found = trial;
        } else if !good.is_empty() {
            found = price(planner::merge_phases(&plan, &good).map_err(bug)?, seed, found.pricing)?;
        }
    }
    if most > 0 && found.rounds.is_some() && found.timetable.routing().set().len() <= BY_LINKS {
        // A timetable by links is better for some phases of connections of unequal length.
        let routing = found.timetable.routing().clone();
        let other = price(Routed { routing, rounds: None, starts: None }, seed, found.pricing)?;
        let tables = [found.timetable.clone(), other.timetable];
        let prices = [found.phases, other.phases];
        let phases = prices[0].iter().zip(&prices[1]).map(|(a, b)| *a.min(b)).collect::<Vec<_>>();
        found.timetable = links::combine(&tables, &prices);
        found.clocks = total(&phases, switch);
        found.measured = found.pricing.measured(found.clocks);
        found.phases = phases;
        found.checked &= other.checked;
    }
    Ok(found)
}

/// The plan that local search makes of another one, priced; `None` if it gained nothing.
///
/// # Errors
/// A bug of a stage.
pub(super) fn locally_improved(
    base: &Priced,
    even: bool,
    steps: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Option<Priced>, CompileError> {
    let routing = base.timetable.routing();
    let network = Network::new(routing.machine());
    let mut model = PhaseModel::new(routing.machine(), routing.set(), network.link_counts());
    let mut run = |streams: &[planner::Streamed<'_>]| {
        let stream = |&(connection, words, places)| ModelStream {
            connection,
            words,
            edges: places,
            start: 0,
        };
        model.finish_times(streams.iter().map(stream))
    };
    let plan = planner::local_search(&base.timetable, even, steps, seed, interrupt, &mut run)
        .map_err(|e| CompileError::bug("the router", &e))?;
    plan.map(|plan| price(plan, seed, base.pricing)).transpose()
}

/// Words times hops of a timetable's routes.
fn word_hops(timetable: &Timetable) -> u64 {
    let hops = |route: conset_ir::RouteRef<'_>| to_u64(route.hops()) * u64::from(route.words);
    timetable.routing().phases().iter().flat_map(|p| p.iter()).map(hops).sum()
}

fn refused(rejection: &conset_verify::Rejection) -> CompileError {
    CompileError::bug("a stage", rejection)
}

/// The clocks of each phase that the checker proves; `None` unless it proves those of all phases.
fn proved(timetable: &Timetable) -> Option<Vec<u64>> {
    conset_verify::phase_lengths(timetable).into_iter().collect()
}

/// Clocks of each phase on the fabric, without the context switch: as the checker proves them, else
/// measured. The timetable is checked first.
fn measured(timetable: &Timetable) -> Result<Vec<u64>, CompileError> {
    if let Some(clocks) = proved(timetable) {
        conset_verify::check_timetable(timetable).map_err(|e| refused(&e))?;
        return Ok(clocks);
    }
    let verified = conset_verify::timetable(timetable.clone()).map_err(|e| refused(&e))?;
    let image = conset_codegen::image::image(timetable.routing().machine(), &[verified])
        .map_err(|e| CompileError::bug("codegen", &e))?;
    let checked = run_checked(Arc::new(image), 0, 0, false)
        .map_err(|fault| CompileError::bug("the fabric", &fault))?;
    Ok(checked.report.phases.iter().map(|phase| phase.clocks).collect())
}
