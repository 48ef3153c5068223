//! What is worth trying: which attempts are left out, and when the trying ends.
//!
//! All of it is seen from the plans that were made so far, so it is the same on any machine. The
//! order of attempts is not decided here ([`super::attempts`]).

use conset_planner::Planner;

use super::attempts::{SEARCHED, Step};
use super::price::{PASSED, Priced, channels};
use super::{Ended, Search, Until};
use crate::compile::{Objective, bound_ratio};

/// Connections up to which searches are tried although a plan is good.
pub(super) const SMALL: usize = 1 << 13;

/// Connections up to which windows are filled with parts of them, and how near to the bound a plan
/// is that parts are not tried to improve.
const FILLED: usize = 1 << 12;
const WHOLE: f64 = 1.04;

/// The torus' own rounds over what the bound leaves for them, up to which no search does better.
const RINGED: f64 = 1.05;

/// How near to the bound a plan of a large set is that need not be improved by packing its phases,
/// and after that by anything else.
const UNPACKED: f64 = 1.1;
const PACKED: f64 = 1.6;

/// How near to the bound a plan is that translation slots need not improve.
const SHIFTED: f64 = 1.03;

/// Squares of the hops of all routes together above which a set that has a plan is not balanced:
/// what its searches look at, which takes minutes.
pub(super) const TOO_LONG: u64 = 1 << 26;

/// Channels of all routes above which windows are not filled.
const PARTED: u64 = 1 << 20;

/// Cells that searches look at before a set that has a plan is balanced no more.
const SPENT: u64 = 1 << 26;

/// Connections up to which the best plan is refined, and how far from the bound it is then.
pub(super) const REFINED: usize = 3 << 10;
const REFINABLE: f64 = 1.06;

/// Ordered pairs for each connection up to which it is.
const ORDERED: usize = 16;

impl Search<'_> {
    /// Whether trying ends here, and why.
    pub(super) fn end(&self) -> Option<Ended> {
        let found = self.found.as_ref()?;
        let phases = found.timetable.phases().len() <= self.task.bounds().phases as usize;
        let clocks = found.clocks <= self.task.bounds().clocks;
        if clocks && (phases || self.options.objective == Objective::Time) {
            return Some(Ended::Bound);
        }
        match self.until {
            Until::Good if self.is_good(found) && !self.may_gain_by_shifts(found) => {
                Some(Ended::Enough)
            }
            Until::Attempts(most) if self.made >= most => Some(Ended::Attempts),
            _ => None,
        }
    }

    /// Whether nothing much better can be expected of more attempts.
    ///
    /// A small set is tried until it is near the bound. For a large one that is what a way of
    /// rounds gives. Between them it depends on the torus' own rounds: where they use all that there
    /// is (all-to-all on 8x8: 64 rounds, as many as links allow), what is missing is switches and
    /// words on their way, which no search gets back. Where they do not (6x10: 88 rounds, 75
    /// would do), a negotiation gets some of it: all-to-all of 2048 words 1.12 instead of 1.18
    /// times the bound, in about a second instead of a tenth; two more plans took three times as
    /// long and were no better.
    pub(super) fn is_good(&self, found: &Priced) -> bool {
        let (set, objective) = (self.task.set(), self.options.objective);
        let near = match set.len() {
            0..=SEARCHED if self.is_timed() => 1.015,
            0..=SEARCHED => 1.03,
            _ if set.len() > SMALL => match self.is_packed() {
                None => 1.35,
                Some(false) => UNPACKED,
                Some(true) => PACKED,
            },
            _ => match self.ringed {
                Some(rounds) if rounds < RINGED => 1.2,
                Some(_) => 1.15,
                None => 1.01,
            },
        };
        let few = found.timetable.phases().len() <= self.task.bounds().phases as usize;
        match objective {
            Objective::Time => bound_ratio(found.clocks, self.task.bounds().clocks) < near,
            Objective::Phases if set.len() > SMALL => few || set.len() > PASSED,
            Objective::Phases => few && bound_ratio(found.clocks, self.task.bounds().clocks) < near,
        }
    }

    /// Whether an attempt is left out because routes are long, or searches before it looked at
    /// enough.
    pub(super) fn is_too_much(&self, planner: Planner) -> bool {
        let may = self.options.unlimited || self.found.is_none();
        match planner {
            Planner::LoadAnnealing => {
                !may && self.until == Until::Good && (self.long || self.spent > SPENT)
            }
            Planner::PreemptiveList => {
                let long = |found: &Priced| channels(&found.timetable) > PARTED;
                !may && self.found.as_ref().is_some_and(long)
            }
            _ => false,
        }
    }

    /// Whether the best plan so far is worth refining: far from the bound, of streams that last as
    /// long as a switch, below which it is not sharing of links that rules them.
    pub(super) fn may_gain_by_sharing(&self) -> bool {
        let far = |found: &Priced| bound_ratio(found.clocks, self.task.bounds().clocks) > REFINABLE;
        let far = self.until != Until::Good || self.found.as_ref().is_some_and(far);
        let few = self.task.set().len() <= REFINED
            && self.task.set().order().len() <= ORDERED * self.task.set().len();
        far && few && self.is_long()
    }

    /// Whether the best plan so far is so far from the bound, and the longest connection so long,
    /// that parts of it could do better.
    pub(super) fn may_gain_by_parts(&self) -> bool {
        let far = |found: &Priced| bound_ratio(found.clocks, self.task.bounds().clocks) > WHOLE;
        self.task.set().len() <= FILLED && self.is_long() && self.found.as_ref().is_some_and(far)
    }

    /// Whether translation slots come next and may do better than the best plan.
    fn may_gain_by_shifts(&self, found: &Priced) -> bool {
        let next = self.usual.get(self.next).map(|next| next.step);
        next == Some(Step::Plan(Planner::TranslationSlots))
            && bound_ratio(found.clocks, self.task.bounds().clocks) > SHIFTED
    }

    /// Whether the best plan so far has as many phases as the bound.
    pub(super) fn has_few_phases(&self) -> bool {
        let few =
            |found: &Priced| found.timetable.phases().len() <= self.task.bounds().phases as usize;
        self.found.as_ref().is_some_and(few)
    }

    /// Whether packing its phases has had its turn, if it is to have one.
    fn is_packed(&self) -> Option<bool> {
        let packing = Step::Plan(Planner::WindowedPathfinder);
        let turn = self.usual.iter().position(|attempt| attempt.step == packing)?;
        Some(self.next > turn)
    }

    /// Clocks of the rounds of a plan, without what words take on their way, over the clocks that
    /// the bound leaves beside switches.
    pub(super) fn rounds_over_bound(&self, priced: &Priced) -> Option<f64> {
        let rounds = priced.rounds()?;
        let parameters = self.task.machine().parameters();
        let round = parameters.longest_stream(self.task.set());
        let switches = u64::from(self.task.bounds().phases) * parameters.switch_clocks();
        let left = self.task.bounds().clocks.saturating_sub(switches).max(1);
        Some(u64::from(rounds).saturating_mul(round) as f64 / left as f64)
    }

    /// Whether agents keep planned starts, so that slots were negotiated.
    fn is_timed(&self) -> bool {
        self.task.machine().parameters().has_timed_starts()
    }

    /// Whether the longest connection takes no less time than a switch.
    fn is_long(&self) -> bool {
        let parameters = self.task.machine().parameters();
        let longest = self.task.set().connections().iter().map(|c| c.words).max().unwrap_or(0);
        u64::from(longest) * parameters.word_clocks() >= parameters.switch_clocks()
    }
}

/// Squares of the hops of all routes together.
pub(super) fn squared_hops(priced: &Priced) -> u64 {
    let phases = priced.timetable.routing().phases().iter();
    phases.flat_map(|p| p.iter()).map(|route| (route.hops() as u64).pow(2)).sum()
}
