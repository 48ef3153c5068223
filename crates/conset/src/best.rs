//! The best of several plans.
//!
//! The router has several ways to plan a set and the scheduler prices plans; neither knows the
//! other, so the choice is made here: ways are tried in turn, each plan is timetabled and priced,
//! and the cheapest is kept. Trying ends when nothing much better can be expected, or after so
//! many attempts, or when whoever waits has had enough ([`Until`]); in the last two cases it goes
//! on beyond that with other seeds and more effort.
//!
//! A price is what the cost model says, or for sets of few words what the fabric measures: streams
//! of a few dozen words are ruled by what the model leaves out (words on their way, the depth of
//! queues), and a run of them costs no more than the model does. Plans whose prices are close are
//! run on the fabric, so that the better one wins and not the one that the model favours.
//!
//! What is found in the end may still be far from the bound, where links are short and streams at
//! full rate leave too much of them idle. Then it is *refined*: changed a little, again and again,
//! and run each time by the cost model ([`conset_planner::refine`]).
//!
//! # Budgets
//!
//! Work and memory are in proportion to the set and the machine. Searches count their moves, and
//! where routes are long also what a move looks at; timetables and joins count the channels of
//! routes; none of them looks at a clock, so the result is the same on any machine. What was
//! stopped by that is said ([`Ended::Work`]), and [`Options::unlimited`] lifts it. A set whose
//! routes would not fit into memory is refused before
//! ([`conset_partition_route::bounds::memory_budget`]).
//!
//! # Plans that are wrong
//!
//! No plan is kept before the checker has seen it: it looks at those that would become the best
//! found, each once (and at those that are run on the fabric to be priced). What it refuses, and
//! what a stage cannot price for a fault of its own, is a bug of ours and no reason to give up: the
//! plan is counted ([`Attempts`]), dropped, and the next one is taken. If none is left the set is
//! planned as in the paper. A plan of a large set is checked only as the result, for the time it
//! takes; if that is refused, the set is searched again with [`Care::Great`].
//!
//! # Threads
//!
//! Attempts do not know of each other. A *wave* of them is made at once, as many as there are
//! threads, and looked at in their order as if they had been made one after the other: what comes
//! after the one that ends the trying is thrown away. So the result is that of one thread. Large
//! sets are tried one at a time, for the memory; their phases use the threads.

mod attempts;
mod price;
mod worth;

use std::sync::Arc;
use std::time::Duration;

use conset_ir::{Bounds, ConnectionSet, Infeasible, Machine, Timetable};
use conset_planner::{self as planner, Planner, Routed, Task, Work};
use conset_scheduler::predict;
use rayon::prelude::*;
use serde::Serialize;

use crate::compile::{Care, CompileError, Objective, Options, paper};
use attempts::{LARGE, SEARCHED, Step, Try, attempts, doubled};
use price::{Priced, Pricing, WORK, channels, joined, price, refined};
use worth::{REFINED, SMALL, TOO_LONG, squared_hops};

/// Connections above which a wave is one attempt.
const WIDE: usize = 1 << 15;

/// Attempts of a wave at most.
const WAVE: usize = 8;

/// Channels of a route on the average above which refining runs fewer streams.
const FAR: u64 = 32;

/// Streams that are run for that by each thread of two, and for each connection as a power of two.
const EACH: u32 = 15;
const STEPS: u64 = 1 << 21;

/// When trying ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// When nothing much better can be expected.
    Good,
    /// After so many attempts, or at the bound.
    Attempts(u32),
    /// When somebody says so, or at the bound.
    Stopped,
}

/// What ended the trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Nothing much better was to be expected, or all usual attempts were made.
    Enough,
    /// The result is the bound: nothing is better.
    Bound,
    /// As many attempts as were asked for were made.
    Attempts,
    /// A budget of work was used up: [`Options::unlimited`] lifts it.
    Work,
    /// Time was up: another machine makes more or fewer attempts, and other bytes.
    Time,
}

/// A plan that was made: by which planner, and at what price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The planner's name.
    pub planner: &'static str,
    /// Its phases.
    pub phases: u32,
    /// Its clocks, context switches included.
    pub clocks: u64,
    /// Whether it was the best plan when it was made. The last of these is the result.
    pub best: bool,
    /// Seconds that planning and pricing took, where a clock was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// How a set's plan was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempts {
    /// Plans that were made and priced.
    pub made: u32,
    /// Plans that were dropped, because the checker refused them or a stage could not price them.
    /// Anything but 0 is a bug of conset.
    pub candidates_refused: u32,
    /// Why no more were.
    pub ended: Ended,
    /// Cells that the searches for plans looked at: the same on any machine.
    pub work: u64,
    /// Every plan that was made and not refused, in order.
    pub trials: Vec<Trial>,
}

impl Attempts {
    /// The planner whose plan is the result; none where that is the paper's.
    pub fn winner(&self) -> Option<&Trial> {
        self.trials.iter().rfind(|trial| trial.best)
    }

    /// The best plan of the planners that did not win.
    pub fn runner_up(&self) -> Option<&Trial> {
        let winner = self.winner()?;
        let others = self.trials.iter().filter(|trial| trial.planner != winner.planner);
        others.min_by_key(|trial| (trial.clocks, trial.phases))
    }
}

/// Tells the time that has passed since some moment. Only how long planners took is told with it.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// Makes the plans of one planner ([`planner::plans`]).
type Plans =
    fn(&Task<'_>, Planner, &planner::Options, &mut Work) -> Result<Vec<Routed>, Infeasible>;

/// The search for one set's plan.
pub(crate) struct Search<'a> {
    task: Task<'a>,
    options: &'a Options,
    until: Until,
    plans: Plans,
    clock: Option<Clock<'a>>,
    pricing: Pricing,
    /// Whether plans are checked before they are kept.
    checks: bool,
    /// Those that are made in any case, unless the trying ends before.
    usual: Vec<Try>,
    /// The next attempt, counted over the usual ones and those after them.
    next: usize,
    /// Whether rounds could be searched for.
    searched: bool,
    /// How long the torus' own rounds last, over what the bound leaves for them.
    ringed: Option<f64>,
    /// Whether routes are too long for balancing, as the plans before it tell.
    long: bool,
    /// The best plan.
    found: Option<Priced>,
    /// Of the plans with the fewest phases the fastest.
    fewest: Option<Priced>,
    made: u32,
    /// Cells that all searches looked at.
    work: u64,
    /// The same without the searches over slots, which have a budget of their own.
    spent: u64,
    /// Whether something was left out for its work.
    stopped: bool,
    refused: u32,
    trials: Vec<Trial>,
    ended: Option<Ended>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        machine: &'a Arc<Machine>,
        set: &'a Arc<ConnectionSet>,
        bounds: Bounds,
        options: &'a Options,
        until: Until,
        care: Care,
    ) -> Self {
        let usual = attempts(machine, set, options.objective);
        Self {
            task: Task::new(machine, set, bounds),
            options,
            until,
            plans: planner::plans,
            clock: None,
            pricing: Pricing::of(machine, set, if options.unlimited { u64::MAX } else { WORK }),
            checks: care == Care::Great || set.len() <= SMALL,
            usual,
            next: 0,
            searched: false,
            ringed: None,
            long: false,
            found: None,
            fewest: None,
            made: 0,
            work: 0,
            spent: 0,
            stopped: false,
            refused: 0,
            trials: Vec::new(),
            ended: None,
        }
    }

    /// Times planners by a clock.
    pub(crate) fn timed_by(self, clock: Option<Clock<'a>>) -> Self {
        Self { clock, ..self }
    }

    /// Whether trying is over.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether it may be stopped: there is a plan already, or there was one that was refused and
    /// the paper's will do.
    pub(crate) fn can_stop(&self) -> bool {
        self.found.is_some() || self.refused > 0
    }

    /// Ends the trying, because time is up.
    pub(crate) fn stop(&mut self) {
        self.ended.get_or_insert(Ended::Time);
    }

    /// Attempts made, and how many there will be as far as that is known.
    pub(crate) fn done(&self) -> (u64, u64) {
        let total = match self.until {
            Until::Good => self.usual.len() as u64,
            Until::Attempts(most) => u64::from(most),
            Until::Stopped => 0,
        };
        (u64::from(self.made), total)
    }

    /// The clocks of the best plan, if there is one, and the bound.
    pub(crate) fn clocks(&self) -> Option<(u64, u64)> {
        self.found.as_ref().map(|found| (found.clocks, self.task.bounds().clocks))
    }

    /// The attempt of a number; `None` after the last one.
    fn attempt(&self, row: usize) -> Option<Try> {
        if let Some(&usual) = self.usual.get(row) {
            return Some(usual);
        }
        let more = (row - self.usual.len()) as u64;
        match self.until {
            Until::Good => return None,
            // Attempts that come to nothing are not made up for for ever.
            Until::Attempts(most) if more >= u64::from(most) => return None,
            Until::Attempts(_) | Until::Stopped => (),
        }
        let searched = self.searched && self.task.set().len() <= SEARCHED;
        let timed = self.options.objective == Objective::Time;
        let step = match more % 4 {
            1 if timed => Step::Plan(Planner::RoundPathfinder),
            2 if timed => Step::Refine,
            3 if searched => Step::Plan(Planner::EdgeColoring),
            _ => Step::Plan(Planner::LoadAnnealing),
        };
        Some(Try { step, seed: self.usual.len() as u64 + more, doubled: doubled(more) })
    }

    /// Makes some attempts.
    ///
    /// # Errors
    /// A set that cannot be planned, where there is no plan yet.
    pub(crate) fn wave(&mut self) -> Result<(), CompileError> {
        let most =
            if self.task.set().len() > WIDE { 1 } else { rayon::current_num_threads().min(WAVE) };
        let Some(first) = self.attempt(self.next) else {
            self.ended = Some(Ended::Enough);
            return Ok(());
        };
        // Ways that come first may end the trying, or tell what is not worth while behind them;
        // what changes the best plan needs to know it.
        let goes_along = |row: usize, one: &Try| match (first.step, one.step) {
            (Step::Plan(a), Step::Plan(b)) => row >= self.usual.len() || a == b,
            _ => false,
        };
        let rest = (self.next + 1..self.next + most)
            .map_while(|row| self.attempt(row).filter(|one| goes_along(row, one)));
        let tries: Vec<Try> = std::iter::once(first).chain(rest).collect();
        let this = &*self;
        let make = |&attempt: &Try| {
            let start = this.clock.map(|clock| clock());
            let made = this.make(attempt);
            let end = this.clock.map(|clock| clock());
            made.map(|made| (made, end.zip(start).map(|(end, start)| (end - start).as_secs_f64())))
        };
        let mut made: Vec<Option<(Outcome, Option<f64>)>> = if tries.len() == 1 {
            tries.iter().map(make).collect()
        } else {
            tries.par_iter().map(make).collect()
        };
        for (attempt, outcome) in tries.iter().zip(&mut made) {
            self.next += 1;
            // Seen here again, as those before it in the wave may have spent the work.
            let left_out = matches!(attempt.step, Step::Plan(planner) if self.is_too_much(planner));
            self.stopped |= left_out;
            if let Some((outcome, seconds)) = outcome.take().filter(|_| !left_out) {
                self.look_at(*attempt, outcome, seconds)?;
            }
            self.ended = self.end();
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        attempt: Try,
        outcome: Outcome,
        seconds: Option<f64>,
    ) -> Result<(), CompileError> {
        let candidates = match outcome {
            Ok(candidates) => candidates,
            // What one way cannot do another has done.
            Err(_) if self.found.is_some() => return Ok(()),
            Err(infeasible) => return Err(infeasible.into()),
        };
        let Some(priced) = self.best_of(candidates) else { return Ok(()) };
        self.made += 1;
        self.stopped |= priced.stopped;
        self.work = self.work.saturating_add(priced.spent);
        if !matches!(attempt.step, Step::Plan(planner) if planner.has_own_budget()) {
            self.spent = self.spent.saturating_add(priced.spent);
        }
        self.searched |= attempt.step == Step::Plan(Planner::EdgeColoring);
        if attempt.step == Step::Plan(Planner::TorusAapc) {
            self.ringed = self.rounds_over_bound(&priced);
        }
        // Plans of a wave must not change what the others of it do.
        self.long |=
            attempt.step != Step::Plan(Planner::LoadAnnealing) && squared_hops(&priced) > TOO_LONG;
        let objective = self.options.objective;
        let size = |priced: &Priced| (priced.timetable.phases().len(), priced.clocks);
        if self.task.set().len() <= REFINED
            && self.fewest.as_ref().is_none_or(|few| size(&priced) < size(few))
        {
            self.fewest = Some(priced.clone());
        }
        let beats = |found: &Priced| priced.beats(found, objective).unwrap_or(false);
        let best = self.found.as_ref().is_none_or(beats);
        let (planner, (phases, clocks)) = (attempt.step.name(), size(&priced));
        self.trials.push(Trial { planner, phases: phases as u32, clocks, best, seconds });
        if best {
            self.found = Some(priced);
        }
        Ok(())
    }

    /// Plans and prices; nothing where the way does not apply or is not worth its time.
    fn make(&self, attempt: Try) -> Option<Outcome> {
        let Try { step, seed, doubled } = attempt;
        let Step::Plan(planner) = step else {
            let found = self.found.as_ref().filter(|_| self.may_gain_by_sharing())?;
            let refined = self.refine(found, seed, doubled);
            return Some(Ok(vec![refined]));
        };
        if self.found.is_some() {
            let skipped = match planner {
                Planner::EdgeColoring => self.task.set().len() > SEARCHED,
                Planner::PreemptiveList => !self.may_gain_by_parts(),
                // A small set with as few phases as can be has nothing to gain.
                Planner::PhasePathfinder => {
                    self.task.set().len() <= SEARCHED && self.has_few_phases()
                }
                _ => false,
            };
            if skipped || self.is_too_much(planner) {
                return None;
            }
        }
        let default = planner::Options::default();
        let route = planner::Options {
            seed: self.options.seed.wrapping_add(seed),
            reroutes: self.options.reroutes.unwrap_or(default.reroutes),
            max_phases: self.options.max_phases,
            doubled,
            fewest_phases: self.options.objective == Objective::Phases,
            // The first moves of a search gain the most, and a large set has many.
            effort: (default.effort >> u32::from(self.task.set().len() > LARGE)) << doubled,
        };
        let mut work = if self.options.unlimited || planner.has_own_budget() {
            Work::unlimited()
        } else {
            Work::of(self.task.set().len(), doubled)
        };
        let allowed = work.left;
        let plans = match (self.plans)(&self.task, planner, &route, &mut work) {
            Ok(plans) if plans.is_empty() => return None,
            Ok(plans) => plans,
            Err(infeasible) => return Some(Err(infeasible)),
        };
        let candidate = |plan| {
            let mut priced = price(plan, route.seed, self.pricing)?;
            priced.stopped |= work.stopped;
            priced.spent = allowed - work.left;
            Ok(priced)
        };
        Some(Ok(plans.into_iter().map(candidate).collect()))
    }

    /// The best of some candidates. One that would be the best found is only taken if the checker
    /// accepts it, unless that has to wait; what it refuses is counted, and so is what a stage
    /// failed to make.
    fn best_of(&mut self, candidates: Vec<Candidate>) -> Option<Priced> {
        let mut best: Option<Priced> = None;
        for candidate in candidates {
            match candidate.and_then(|new| self.accepted(new, best.as_ref())) {
                Ok(Some(new)) => best = Some(new),
                Ok(None) => (),
                Err(_) => self.refused += 1,
            }
        }
        best
    }

    /// A candidate that is better than another one, if there is one.
    fn accepted(
        &self,
        new: Priced,
        other: Option<&Priced>,
    ) -> Result<Option<Priced>, CompileError> {
        let objective = self.options.objective;
        let beats = |old: Option<&Priced>| old.map_or(Ok(true), |old| new.beats(old, objective));
        if !beats(other)? {
            return Ok(None);
        }
        let first = beats(self.found.as_ref())?;
        if first && self.checks { new.checked().map(Some) } else { Ok(Some(new)) }
    }

    /// Changes the best plan so far. The first chains start from the best plan, whose streams keep
    /// off each other, and from one of few phases, in which they share; the others go on from the
    /// better of the two results.
    fn refine(&self, found: &Priced, seed: u64, doubled: u32) -> Candidate {
        let seed = self.options.seed.wrapping_add(seed);
        let steps = STEPS.min((self.task.set().len() as u64) << EACH) << doubled;
        // A stream that is run costs what its route is long.
        let far = channels(&found.timetable) / self.task.set().len().max(1) as u64;
        let steps = if self.options.unlimited { steps } else { steps * FAR / far.max(FAR) };
        let few = self.fewest.as_ref().unwrap_or(found);
        let first = self.chains([(found, false), (few, true)], steps / 4, seed)?;
        self.chains([(&first, false); 2], steps - steps / 4, seed.wrapping_add(1 << 32))
    }

    /// Refines two plans, the seed of the second being another; the better result.
    fn chains(&self, from: [(&Priced, bool); 2], steps: u64, seed: u64) -> Candidate {
        let chain = |(from, even): (&Priced, bool), seed: u64| {
            let base = joined(from.clone(), seed)?;
            Candidate::Ok(refined(&base, even, steps, seed)?.unwrap_or(base))
        };
        let [a, b] = from;
        let (a, b) = rayon::join(|| chain(a, seed), || chain(b, seed.wrapping_add(1 << 33)));
        let (a, b) = (a?, b?);
        Ok(if b.beats(&a, self.options.objective)? { b } else { a })
    }

    /// The best plan that was found, and how; the paper's plan if every other was refused.
    ///
    /// # Errors
    /// No way applied, which is a bug; no plan was accepted and the paper's cannot be made.
    pub(crate) fn finish(
        mut self,
    ) -> Result<(Timetable, predict::Prediction, Attempts), CompileError> {
        let ended = self.ended.unwrap_or(Ended::Enough);
        let good = self.found.as_ref().is_some_and(|found| self.is_good(found));
        let Some(found) = self.found.take() else {
            if self.refused == 0 {
                return Err(CompileError::bug("the router", &"no way to plan applies"));
            }
            let (timetable, prediction) =
                paper(self.task.machine(), self.task.set(), self.options, &mut |_| ())?;
            let (made, candidates_refused) = (self.made + 1, self.refused);
            let trials = Vec::new();
            let attempts = Attempts { made, candidates_refused, ended, work: self.work, trials };
            return Ok((timetable, prediction, attempts));
        };
        let found = if found.is_joinable() {
            let joined = joined(found.clone(), self.options.seed).and_then(Priced::checked);
            joined.unwrap_or_else(|_| {
                self.refused += 1;
                found
            })
        } else {
            found
        };
        let prediction = predict::predict(&found.timetable);
        let ended = match ended {
            Ended::Enough if (self.stopped || found.stopped) && !good => Ended::Work,
            ended => ended,
        };
        let (made, candidates_refused) = (self.made, self.refused);
        let (work, trials) = (self.work, self.trials);
        let attempts = Attempts { made, candidates_refused, ended, work, trials };
        Ok((found.timetable, prediction, attempts))
    }
}

/// A plan with its price, or why there is none: a bug of a stage.
type Candidate = Result<Priced, CompileError>;

/// What an attempt made.
type Outcome = Result<Vec<Candidate>, Infeasible>;

#[cfg(test)]
mod tests;
