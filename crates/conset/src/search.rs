//! The search for the best plan of a set: a portfolio of planners.
//!
//! Planners make plans and the scheduler prices them; neither knows the other, so the search
//! combines them here. It runs the planners in a fixed order, completes each plan with a timetable,
//! prices it, and keeps the cheapest plan. It ends when no considerable gain is expected, after a
//! given number of plans, or when the caller stops it ([`StopRule`]). In the last two cases it
//! continues after the standard attempts with other seeds and more effort.
//!
//! The price is that of the cost model, or for sets of few words the time measured on the emulated
//! fabric: streams of a few dozen words are dominated by what the model leaves out (pipeline
//! latency, queue depth), and an emulated run of them costs no more than the model. If two prices
//! are close, both plans run on the fabric, so that the model error does not decide.
//!
//! On machines without timed starts, a plan that remains far from its bound is improved by local
//! search, which changes the plan and runs the cost model after each change
//! ([`conset_planner::local_search`]); on machines with timed starts by ejection search, which
//! shortens phases clock by clock ([`conset_planner::ejection_search`]).
//!
//! # Limits
//!
//! Work and memory are proportional to the set and the machine. Planners count their moves and,
//! where routes are long, the cells that a move examines; timetables and merges of phases count the
//! channels of routes. No limit is a time, so the result is the same on every computer. A search
//! that a limit ended says so ([`StopReason::WorkLimit`]), and [`CompileOptions::unlimited`] lifts
//! the limits. A set whose routes would not fit into memory is refused before the search
//! ([`conset_partition_route::bounds::memory_budget`]).
//!
//! # Wrong plans
//!
//! No plan is kept before the checker has accepted it: the checker verifies each plan that would
//! become the best one, once, and each plan that runs on the fabric. If the checker refuses a plan,
//! or a stage cannot price it, that is a bug in conset: the plan is counted ([`SearchStats`]) and
//! dropped, and the search continues. If no plan is left, the paper's algorithm plans the set.
//! Plans of large sets are checked only as the final result, because the check takes time; if that
//! check fails, the set is searched again with [`PlanChecks::Immediate`].
//!
//! # Threads
//!
//! Attempts are independent. A *wave* of them runs in parallel, as many as there are threads, and
//! the results are processed in order as if the attempts had run one after the other; results after
//! the attempt that ends the search are dropped. So the result is that of one thread. Attempts for
//! large sets run one at a time, because of their memory; their phases use the threads.

mod attempts;
mod price;
mod pruning;
mod stats;

use std::sync::Arc;

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Bounds, ConnectionSet, Infeasible, Machine, Timetable};
use conset_planner::ejection_search::improve_timetable;
use conset_planner::{self as planner, Interrupt, Planner, Routed, Task, Work};
use conset_scheduler::{Prediction, predict};

pub use stats::{SearchStats, StopReason, Trial};

use crate::{Clock, CompileError, CompileOptions, Objective, paper_algorithm, parallel};
use attempts::{
    LARGE, SEARCHED, SearchAttempt, SearchStep, doublings, improvement, standard_attempts,
};
use price::{Priced, Pricing, WORK_LIMIT, channels, locally_improved, merged, price};
use pruning::{CHECKED_AT_ONCE, LOCAL_SEARCH, SQUARED_HOPS_LIMIT, squared_hops};

/// Connections above which a wave is one attempt.
const WIDE: usize = 1 << 15;

/// Greatest number of attempts in a wave.
const WAVE: usize = 8;

/// Average channels of a route above which local search runs fewer streams.
const LONG_ROUTE: u64 = 32;

/// Streams that each of the two threads of a local search runs for each connection, as a power of
/// two, and the greatest number of them.
const STREAMS_PER_CONNECTION: u32 = 15;
const STREAMS_LIMIT: u64 = 1 << 21;

/// When a search ends. It always ends if a plan is at the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopRule {
    /// When no considerable gain is expected, or all standard attempts were made.
    Converged,
    /// After a number of plans.
    MaxPlans(u32),
    /// When the caller stops it.
    Stopped,
}

/// Ejection search also improves the best plan whose streams do not meet if it takes at most one in this
/// number of the clocks longer than the best plan.
const NEAR: u64 = 16;

/// When the checker verifies plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanChecks {
    /// Plans of large sets only as the final result, others before they are kept.
    Deferred,
    /// Every plan before it is kept.
    Immediate,
}

/// Makes the plans of one planner ([`planner::plans`]).
type PlanFn =
    fn(&Task<'_>, Planner, &planner::PlannerOptions, &mut Work) -> Result<Vec<Routed>, Infeasible>;

/// The search for one set's plan.
pub(crate) struct PlanSearch<'a> {
    task: Task<'a>,
    options: &'a CompileOptions,
    stop_rule: StopRule,
    /// The bound of clocks with those in which words are on their way, which planners do not aim at.
    least_clocks: u64,
    plans: PlanFn,
    clock: Option<Clock<'a>>,
    pricing: Pricing,
    /// Whether plans are checked before they are kept.
    checks: bool,
    /// The attempts that are made unless the search ends before.
    standard: Vec<SearchAttempt>,
    /// The number of the next attempt, the standard ones first.
    next: usize,
    /// Whether the edge coloring applies to the set.
    colorable: bool,
    /// Clocks of the rounds of the complete exchange over those that the bound leaves for them.
    aapc_ratio: Option<f64>,
    /// Whether routes are too long for load annealing, as the plans before it show.
    long_routes: bool,
    /// The best plan.
    best: Option<Priced>,
    /// The fastest of the plans with the fewest phases.
    fewest_phases: Option<Priced>,
    /// The fastest of the plans whose streams do not meet, on machines with timed starts.
    apart: Option<Priced>,
    made: u32,
    /// Cells that all planners examined.
    work: u64,
    /// The same without the planners that have a budget of their own.
    budgeted_work: u64,
    /// Whether an attempt was cut short or skipped because of its work.
    work_limited: bool,
    refused: u32,
    trials: Vec<Trial>,
    stop_reason: Option<StopReason>,
}

impl<'a> PlanSearch<'a> {
    pub(crate) fn new(
        machine: &'a Arc<Machine>,
        set: &'a Arc<ConnectionSet>,
        bounds: Bounds,
        options: &'a CompileOptions,
        stop_rule: StopRule,
        checks: PlanChecks,
    ) -> Self {
        let work_limit = if options.unlimited { u64::MAX } else { WORK_LIMIT };
        let least_clocks = bounds.clocks;
        Self {
            task: Task::new(machine, set, bounds),
            options,
            stop_rule,
            least_clocks,
            plans: planner::plans,
            clock: None,
            pricing: Pricing::of(machine, set, work_limit),
            checks: checks == PlanChecks::Immediate || set.len() <= CHECKED_AT_ONCE,
            standard: standard_attempts(machine, set, options.objective),
            next: 0,
            colorable: false,
            aapc_ratio: None,
            long_routes: false,
            best: None,
            fewest_phases: None,
            apart: None,
            made: 0,
            work: 0,
            budgeted_work: 0,
            work_limited: false,
            refused: 0,
            trials: Vec::new(),
            stop_reason: None,
        }
    }

    /// Ends planners early when `interrupt` asks for it.
    pub(crate) fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { task: self.task.interrupted_by(interrupt), ..self }
    }

    /// Ends the search at this bound of clocks, too, if a plan takes no more in fact.
    pub(crate) fn with_least_clocks(self, least_clocks: u64) -> Self {
        Self { least_clocks, ..self }
    }

    /// Measures the time of planners with a clock.
    pub(crate) fn with_clock(self, clock: Option<Clock<'a>>) -> Self {
        Self { clock, ..self }
    }

    /// Whether the search has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Whether a time limit may end the search: it has a plan, or refused one, so that the paper's
    /// algorithm can take its place.
    pub(crate) fn can_stop(&self) -> bool {
        self.best.is_some() || self.refused > 0
    }

    /// Ends the search.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        self.stop_reason.get_or_insert(reason);
    }

    /// The number of plans made, and of those to make as far as that is known.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let total = match self.stop_rule {
            StopRule::Converged => to_u64(self.standard.len()),
            StopRule::MaxPlans(most) => u64::from(most),
            StopRule::Stopped => 0,
        };
        (u64::from(self.made), total)
    }

    /// The clocks of the best plan, if there is one, and their bound.
    pub(crate) fn clocks_and_bound(&self) -> Option<(u64, u64)> {
        self.best.as_ref().map(|best| (best.clocks, self.task.bounds().clocks))
    }

    /// The attempt with a number; `None` after the last one.
    fn attempt(&self, row: usize) -> Option<SearchAttempt> {
        if let Some(&attempt) = self.standard.get(row) {
            return Some(attempt);
        }
        let extra = to_u64(row - self.standard.len());
        match self.stop_rule {
            StopRule::Converged => return None,
            // Attempts without a plan are not replaced without limit.
            StopRule::MaxPlans(most) if extra >= u64::from(most) => return None,
            StopRule::MaxPlans(_) | StopRule::Stopped => (),
        }
        let colorable = self.colorable && self.task.set().len() <= SEARCHED;
        let for_time = self.options.objective == Objective::Time;
        let step = match extra % 4 {
            1 if for_time => SearchStep::Plan(Planner::RoundPathfinder),
            2 if for_time => improvement(self.task.machine()),
            3 if colorable => SearchStep::Plan(Planner::EdgeColoring),
            _ => SearchStep::Plan(Planner::LoadAnnealing),
        };
        let seed = to_u64(self.standard.len()) + extra;
        Some(SearchAttempt { step, seed, doublings: doublings(extra) })
    }

    /// Makes the next attempts.
    ///
    /// # Errors
    /// A set that cannot be planned, if there is no plan yet.
    pub(crate) fn next_wave(&mut self) -> Result<(), CompileError> {
        let most =
            if self.task.set().len() > WIDE { 1 } else { rayon::current_num_threads().min(WAVE) };
        let Some(first) = self.attempt(self.next) else {
            self.stop_reason = Some(StopReason::Converged);
            return Ok(());
        };
        // A standard attempt may end the search or show that later ones are useless, and local
        // search needs the best plan; so only attempts of the same planner share a wave.
        let in_wave = |row: usize, one: &SearchAttempt| match (first.step, one.step) {
            (SearchStep::Plan(a), SearchStep::Plan(b)) => row >= self.standard.len() || a == b,
            _ => false,
        };
        let rest = (self.next + 1..self.next + most)
            .map_while(|row| self.attempt(row).filter(|one| in_wave(row, one)));
        let attempts: Vec<SearchAttempt> = std::iter::once(first).chain(rest).collect();
        let this = &*self;
        let run = |&attempt: &SearchAttempt| {
            let start = this.clock.map(|clock| clock());
            let plans = this.run(attempt);
            let end = this.clock.map(|clock| clock());
            let seconds = end.zip(start).map(|(end, start)| (end - start).as_secs_f64());
            plans.map(|plans| (plans, seconds))
        };
        let mut results: Vec<Option<(PlanResult, Option<f64>)>> = if attempts.len() == 1 {
            attempts.iter().map(run).collect()
        } else {
            parallel::map(&attempts, run)
        };
        for (attempt, result) in attempts.iter().zip(&mut results) {
            self.next += 1;
            // Checked again, because earlier attempts of the wave may have used up the work.
            let skipped =
                matches!(attempt.step, SearchStep::Plan(planner) if self.is_too_much(planner));
            self.work_limited |= skipped;
            if let Some((result, seconds)) = result.take().filter(|_| !skipped) {
                self.record(*attempt, result, seconds)?;
            }
            self.stop_reason = self.stop_reason_now();
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Records the plans of an attempt, and keeps the best plan.
    fn record(
        &mut self,
        attempt: SearchAttempt,
        result: PlanResult,
        seconds: Option<f64>,
    ) -> Result<(), CompileError> {
        let candidates = match result {
            Ok(candidates) => candidates,
            // Another planner has succeeded.
            Err(_) if self.best.is_some() => return Ok(()),
            Err(infeasible) => return Err(infeasible.into()),
        };
        let Some(priced) = self.best_of(candidates) else { return Ok(()) };
        self.made += 1;
        self.work_limited |= priced.work_limited;
        self.work = self.work.saturating_add(priced.work);
        if !matches!(attempt.step, SearchStep::Plan(planner) if planner.has_own_budget()) {
            self.budgeted_work = self.budgeted_work.saturating_add(priced.work);
        }
        self.colorable |= attempt.step == SearchStep::Plan(Planner::EdgeColoring);
        if attempt.step == SearchStep::Plan(Planner::Aapc) {
            self.aapc_ratio = self.rounds_over_bound(&priced);
        }
        // Load annealing is excluded, so that its attempts in one wave do not depend on each other.
        self.long_routes |= attempt.step != SearchStep::Plan(Planner::LoadAnnealing)
            && squared_hops(&priced) > SQUARED_HOPS_LIMIT;
        let objective = self.options.objective;
        let size = |priced: &Priced| (priced.timetable.phases().len(), priced.clocks);
        if self.task.set().len() <= LOCAL_SEARCH
            && self.fewest_phases.as_ref().is_none_or(|few| size(&priced) < size(few))
        {
            self.fewest_phases = Some(priced.clone());
        }
        let is_faster = |apart: &Priced| priced.clocks < apart.clocks;
        // A plan of a large set is not copied for what it would seldom be used for.
        if self.ejection_is_standard()
            && self.task.set().len() <= CHECKED_AT_ONCE
            && self.apart.as_ref().is_none_or(is_faster)
            && priced.keeps_streams_apart()
        {
            self.apart = Some(priced.clone());
        }
        let beats = |best: &Priced| priced.beats(best, objective).unwrap_or(false);
        let best = self.best.as_ref().is_none_or(beats);
        let (planner, (phases, clocks)) = (attempt.step.name(), size(&priced));
        self.trials.push(Trial { planner, phases: to_u32(phases), clocks, best, seconds });
        if best {
            self.best = Some(priced);
        }
        Ok(())
    }

    /// The clocks above which a plan is of no use: those of the best plan, if clocks are the objective.
    /// Attempts of a wave do not see each other's plans, so only planners with one attempt may use it.
    fn clocks_to_beat(&self) -> u64 {
        let pruned = self.options.objective == Objective::Time && !self.options.unlimited;
        self.best.as_ref().filter(|_| pruned).map_or(u64::MAX, |best| best.clocks)
    }

    /// Plans and prices; `None` if the planner does not apply or is not worth its time.
    fn run(&self, attempt: SearchAttempt) -> Option<PlanResult> {
        let SearchAttempt { step, seed, doublings } = attempt;
        let planner = match step {
            SearchStep::Plan(planner) => planner,
            SearchStep::LocalSearch => {
                let best = self.best.as_ref().filter(|_| self.may_gain_by_sharing())?;
                return Some(Ok(vec![self.local_search(best, seed, doublings)]));
            }
            SearchStep::EjectionSearch => {
                let best = self.best.as_ref().filter(|_| self.may_gain_by_ejection())?;
                let better = self.ejection_search(best, seed, doublings);
                return (!better.is_empty()).then_some(Ok(better));
            }
        };
        if self.best.is_some() {
            let skipped = match planner {
                Planner::PreemptiveList => !self.may_gain_by_fragments(),
                Planner::LoadAnnealing => !self.may_gain_by_annealing(),
                Planner::PhasePathfinder => {
                    self.options.objective == Objective::Phases && self.has_fewest_phases()
                }
                _ => false,
            };
            if skipped || self.is_too_much(planner) {
                return None;
            }
        }
        let default = planner::PlannerOptions::default();
        let route = planner::PlannerOptions {
            seed: self.options.seed.wrapping_add(seed),
            rip_up_iterations: self.options.rip_up_iterations.unwrap_or(default.rip_up_iterations),
            max_phases: self.options.max_phases,
            doubled: doublings,
            fewest_phases: self.options.objective == Objective::Phases,
            // The first moves of a search gain the most, and a large set has many.
            effort: (default.effort >> u32::from(self.task.set().len() > LARGE)) << doublings,
            best_clocks: self.clocks_to_beat(),
        };
        let mut work = if self.options.unlimited || planner.has_own_budget() {
            Work::unlimited()
        } else {
            Work::of(self.task.set().len(), doublings)
        };
        let allowed = work.left;
        let plans = match (self.plans)(&self.task, planner, &route, &mut work) {
            Ok(plans) if plans.is_empty() => return None,
            Ok(plans) => plans,
            Err(infeasible) => return Some(Err(infeasible)),
        };
        // Of a planner that was interrupted nothing better is expected.
        if self.best.is_some() && self.task.interrupt().is_requested() {
            return None;
        }
        let candidate = |plan| {
            let mut priced = price(plan, route.seed, self.pricing)?;
            priced.work_limited |= work.stopped;
            priced.work = allowed - work.left;
            Ok(priced)
        };
        Some(Ok(plans.into_iter().map(candidate).collect()))
    }

    /// The best of some candidates. A candidate that would become the best plan is kept only if the
    /// checker accepts it, unless checks are deferred. Refused candidates are counted, and so are
    /// those that a stage could not complete.
    fn best_of(&mut self, candidates: Vec<Candidate>) -> Option<Priced> {
        let mut best: Option<Priced> = None;
        for candidate in candidates {
            match candidate.and_then(|new| self.accept(new, best.as_ref())) {
                Ok(Some(new)) => best = Some(new),
                Ok(None) => (),
                Err(_) => self.refused += 1,
            }
        }
        best
    }

    /// A candidate, if it is better than another one.
    fn accept(&self, new: Priced, other: Option<&Priced>) -> Result<Option<Priced>, CompileError> {
        let objective = self.options.objective;
        let beats = |old: Option<&Priced>| old.map_or(Ok(true), |old| new.beats(old, objective));
        if !beats(other)? {
            return Ok(None);
        }
        let first = beats(self.best.as_ref())?;
        if first && self.checks { new.checked().map(Some) } else { Ok(Some(new)) }
    }

    /// Improves the best plan by local search. The first two chains start from the best plan, whose
    /// streams avoid each other, and from one of few phases, in which they share links; the next
    /// two continue with the better result.
    fn local_search(&self, best: &Priced, seed: u64, doublings: u32) -> Candidate {
        let seed = self.options.seed.wrapping_add(seed);
        let connections = to_u64(self.task.set().len());
        let streams = STREAMS_LIMIT.min(connections << STREAMS_PER_CONNECTION) << doublings;
        // To run a stream costs as much as its route is long.
        let length = channels(&best.timetable) / connections.max(1);
        let streams = match self.options.unlimited {
            true => streams,
            false => streams * LONG_ROUTE / length.max(LONG_ROUTE),
        };
        let few = self.fewest_phases.as_ref().unwrap_or(best);
        let first = self.two_chains([(best, false), (few, true)], streams / 4, seed)?;
        let seed = seed.wrapping_add(1 << 32);
        self.two_chains([(&first, false); 2], streams - streams / 4, seed)
    }

    /// Shortens the phases of the best plan, and of the best one whose streams do not meet if it is
    /// near.
    fn ejection_search(&self, best: &Priced, seed: u64, doublings: u32) -> Vec<Candidate> {
        let near = best.clocks + 1..=best.clocks + best.clocks / NEAR;
        let apart = self.apart.as_ref().filter(|apart| near.contains(&apart.clocks));
        let shorter = |base| self.with_shorter_phases(base, seed, doublings).transpose();
        std::iter::once(best).chain(apart).filter_map(shorter).collect()
    }

    /// A plan with shorter phases; `None` if there is none.
    fn with_shorter_phases(
        &self,
        base: &Priced,
        seed: u64,
        doublings: u32,
    ) -> Result<Option<Priced>, CompileError> {
        let seed = self.options.seed.wrapping_add(seed);
        let plan = (&base.timetable, base.clocks);
        let mut work = Work::unlimited();
        let allowed = work.left;
        let better = improve_timetable(&self.task, plan, (seed, doublings), &mut work)
            .map_err(|error| CompileError::bug("ejection search", &error))?;
        let Some(better) = better else { return Ok(None) };
        let mut priced = price(better, seed, self.pricing)?;
        priced.work = allowed - work.left;
        Ok(Some(priced))
    }

    /// Improves two plans by local search with different seeds, and returns the better result.
    fn two_chains(&self, from: [(&Priced, bool); 2], streams: u64, seed: u64) -> Candidate {
        let chain = |(from, even): (&Priced, bool), seed: u64| {
            let base = merged(from.clone(), seed)?;
            Candidate::Ok(
                locally_improved(&base, even, streams, seed, self.task.interrupt())?
                    .unwrap_or(base),
            )
        };
        let [a, b] = from;
        let (a, b) = rayon::join(|| chain(a, seed), || chain(b, seed.wrapping_add(1 << 33)));
        let (a, b) = (a?, b?);
        Ok(if b.beats(&a, self.options.objective)? { b } else { a })
    }

    /// The best plan and the statistics of the search; the plan of the paper's algorithm if every
    /// other plan was refused, or if the search was interrupted before its first plan.
    ///
    /// # Errors
    /// No planner applied, which is a bug; no plan was accepted and the paper's algorithm fails.
    pub(crate) fn finish(mut self) -> Result<(Timetable, Prediction, SearchStats), CompileError> {
        let mut stop_reason = self.stop_reason.unwrap_or(StopReason::Converged);
        let good = self.best.as_ref().is_some_and(|best| self.is_good(best));
        let Some(best) = self.best.take() else {
            if self.refused == 0 && stop_reason != StopReason::Interrupted {
                return Err(CompileError::bug("the router", &"no planner applies"));
            }
            let (machine, set) = (self.task.machine(), self.task.set());
            let (timetable, prediction) =
                paper_algorithm::plan(machine, set, self.options, &mut |_| ())?;
            let stats = SearchStats {
                plans: self.made + 1,
                candidates_refused: self.refused,
                stop_reason,
                work: self.work,
                trials: Vec::new(),
            };
            return Ok((timetable, prediction, stats));
        };
        let best = if best.is_mergeable() {
            let merged = merged(best.clone(), self.options.seed).and_then(Priced::checked);
            merged.unwrap_or_else(|_| {
                self.refused += 1;
                best
            })
        } else {
            best
        };
        let prediction = predict::predict(&best.timetable);
        let limited = (self.work_limited || best.work_limited) && !good;
        if stop_reason == StopReason::Converged && limited {
            stop_reason = StopReason::WorkLimit;
        }
        let stats = SearchStats {
            plans: self.made,
            candidates_refused: self.refused,
            stop_reason,
            work: self.work,
            trials: self.trials,
        };
        Ok((best.timetable, prediction, stats))
    }
}

/// A plan with its price; an error is a bug of a stage.
type Candidate = Result<Priced, CompileError>;

/// The plans of an attempt.
type PlanResult = Result<Vec<Candidate>, Infeasible>;

#[cfg(test)]
mod tests;
