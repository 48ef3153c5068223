//! Pruning of the search: which attempts are skipped, and when the search ends.
//!
//! All decisions follow from the plans made so far, so they are the same on every computer. The
//! order of the attempts is decided in [`super::attempts`].

use conset_ir::convert::{index, to_f64, to_u64};
use conset_planner::Planner;

use super::attempts::{SEARCHED, SearchStep, has_single_words};
use super::price::{Priced, TIMETABLE_VARIANTS, channels};
use super::{PlanSearch, StopReason, StopRule, Trial, WIDE};
use crate::{Objective, bound_ratio};

/// Connections up to which every plan is checked at once, and up to which the search continues
/// although a plan is good.
pub(super) const CHECKED_AT_ONCE: usize = 1 << 13;

/// Connections up to which a preemptive list schedule is tried, and the ratio to the bound below
/// which it is not.
const FRAGMENTED: usize = 1 << 12;
const FRAGMENTED_ABOVE: f64 = 1.04;

/// Clocks of the rounds of the complete exchange over those that the bound leaves for them, below which no
/// search does better.
const AAPC_GOOD: f64 = 1.05;

/// The same, above which negotiated rounds may be fewer.
const AAPC_AT_BOUND: f64 = 1.01;

/// A plan by rounds is not good if the phases above the bound take more than one in this number of
/// the clocks: other planners may find fewer.
const MANY_PHASES: u64 = 20;

/// The ratio to the bound below which a plan of a large set is good: if no planner packs its phases,
/// before one has, and after that.
const GOOD_LARGE: f64 = 1.35;
const GOOD_UNPACKED: f64 = 1.1;
const GOOD_PACKED: f64 = 1.6;

/// The ratio to the bound below which a plan of single words at single clocks is good.
const GOOD_SINGLE_WORDS: f64 = 1.25;

/// The ratio to the bound below which the windowed pathfinder is not tried for a set of more than
/// [`WIDE`] connections after the dense pathfinder.
const GOOD_DENSE: f64 = 1.3;

/// Connections up to which the windowed pathfinder is tried although the dense pathfinder has had its turn.
const WINDOWED: usize = 1 << 18;

/// The ratio to the bound above which planners for regular sets are tried although a plan is good.
const REGULAR_ABOVE: f64 = 1.03;

/// Sum of the squared hops of all routes above which a set that has a plan is not annealed: load
/// annealing would examine that many cells, which takes minutes.
pub(super) const SQUARED_HOPS_LIMIT: u64 = 1 << 26;

/// Channels of all routes above which a preemptive list schedule is not tried.
const CHANNELS_LIMIT: u64 = 1 << 20;

/// Cells that planners examine before a set that has a plan is no longer annealed.
const ANNEALING_WORK_LIMIT: u64 = 1 << 26;

/// Connections up to which local search is tried, the ratio to the bound above which it is, and
/// the greatest number of ordered pairs per connection.
pub(super) const LOCAL_SEARCH: usize = 3 << 10;
const LOCAL_SEARCH_ABOVE: f64 = 1.06;
const LOCAL_SEARCH_ORDER: usize = 16;

/// The ratio to the bound above which ejection search is tried.
const EJECTION_ABOVE: f64 = 1.01;

impl PlanSearch<'_> {
    /// Why the search ends here; `None` if it continues.
    pub(super) fn stop_reason_now(&self) -> Option<StopReason> {
        let best = self.best.as_ref()?;
        let at_bound = best.clocks <= self.task.bounds().clocks
            || best.clocks <= self.least_clocks && best.confirmed_clocks() <= self.least_clocks;
        if at_bound && (self.has_fewest_phases() || self.options.objective == Objective::Time) {
            return Some(StopReason::Bound);
        }
        match self.stop_rule {
            StopRule::Converged
                if self.is_decided()
                    || self.is_good(best)
                        && !self.regularity_may_gain()
                        && !self.negotiated_rounds_may_gain() =>
            {
                Some(StopReason::Converged)
            }
            StopRule::MaxPlans(most) if self.made >= most => Some(StopReason::MaxPlans),
            _ => None,
        }
    }

    /// Whether nothing is left to choose: the best plan is one phase with the only routes, and agents
    /// do not wait for starts, so that the order of the streams decides, which timetables search for.
    fn is_decided(&self) -> bool {
        self.has_won(Planner::OnePhase) && !self.has_timed_starts()
    }

    /// Whether no considerable gain is expected of more attempts.
    ///
    /// A set is searched until a plan is near the bound, except that:
    ///
    /// - For a large set the plan of a planner by rounds suffices.
    /// - If the rounds of the complete exchange use all links (all-to-all on 8x8: 64 rounds, as many
    ///   as the links allow), the rest of the ratio is context switches and pipeline latency, of
    ///   which a search recovers little unless there are many more phases than necessary, as on
    ///   meshes.
    pub(super) fn is_good(&self, best: &Priced) -> bool {
        let (set, objective) = (self.task.set(), self.options.objective);
        let near = match set.len() {
            0..=SEARCHED if self.has_timed_starts() => 1.015,
            0..=SEARCHED => 1.03,
            _ if self.has_single_word_starts() => GOOD_SINGLE_WORDS,
            _ if set.len() > CHECKED_AT_ONCE => match self.is_packed() {
                None => GOOD_LARGE,
                Some(false) => GOOD_UNPACKED,
                Some(true) => GOOD_PACKED,
            },
            _ => match self.aapc_ratio {
                Some(ratio) if ratio < AAPC_GOOD && !self.phases_above_take(MANY_PHASES) => 1.2,
                _ => 1.02,
            },
        };
        let few = best.timetable.phases().len() <= index(self.task.bounds().phases);
        let ratio = bound_ratio(best.clocks, self.task.bounds().clocks);
        match objective {
            // An optimistic prediction must not end the search of a small set.
            Objective::Time if set.len() <= SEARCHED && self.has_timed_starts() => {
                ratio < near
                    && bound_ratio(best.confirmed_clocks(), self.task.bounds().clocks) < near
            }
            Objective::Time => ratio < near,
            Objective::Phases if set.len() > CHECKED_AT_ONCE => {
                few || set.len() > TIMETABLE_VARIANTS
            }
            Objective::Phases => few && ratio < near,
        }
    }

    /// Whether the best plan starts single words of a translation-invariant set at single clocks, in
    /// as few phases as possible. Then no planner by rounds or slots does better, because these hold
    /// all links of a route at once, and nothing is left to pack.
    fn has_single_word_starts(&self) -> bool {
        self.has_won(Planner::TranslationSlots)
            && self.has_fewest_phases()
            && has_single_words(self.task.set())
    }

    /// Whether an attempt is skipped because routes are long, or because earlier attempts did
    /// enough work.
    pub(super) fn is_too_much(&self, planner: Planner) -> bool {
        let Some(best) = &self.best else { return false };
        match planner {
            _ if self.options.unlimited => false,
            Planner::LoadAnnealing => {
                self.stop_rule == StopRule::Converged
                    && (self.long_routes || self.budgeted_work > ANNEALING_WORK_LIMIT)
            }
            Planner::PreemptiveList => channels(&best.timetable) > CHANNELS_LIMIT,
            _ => false,
        }
    }

    /// Whether load annealing may do better than the plans so far. On machines with timed starts it
    /// does not if slots or phases were negotiated, which it follows for large sets.
    pub(super) fn may_gain_by_annealing(&self) -> bool {
        let planners = [Planner::SlotPathfinder, Planner::PhasePathfinder].map(Planner::name);
        let mut made = self.trials.iter().map(|trial| trial.planner);
        self.stop_rule != StopRule::Converged
            || self.options.unlimited
            || !self.has_timed_starts()
            || !made.any(|planner| planners.contains(&planner))
    }

    /// Whether ejection search is one of the standard attempts.
    pub(super) fn ejection_is_standard(&self) -> bool {
        self.standard.last().is_some_and(|last| last.step == SearchStep::EjectionSearch)
    }

    /// Whether ejection search is worth its time.
    pub(super) fn may_gain_by_ejection(&self) -> bool {
        self.stop_rule != StopRule::Converged || self.is_above(EJECTION_ABOVE)
    }

    /// Whether local search is worth its time: the best plan is far from the bound, and streams
    /// last at least as long as a context switch. For shorter streams link sharing matters little.
    pub(super) fn may_gain_by_sharing(&self) -> bool {
        let far = self.stop_rule != StopRule::Converged || self.is_above(LOCAL_SEARCH_ABOVE);
        let few = self.task.set().len() <= LOCAL_SEARCH
            && self.task.set().order().len() <= LOCAL_SEARCH_ORDER * self.task.set().len();
        far && few && self.has_long_connection()
    }

    /// Whether the best plan is so far from the bound, and the longest connection so long, that
    /// fragments of connections could do better.
    pub(super) fn may_gain_by_fragments(&self) -> bool {
        self.task.set().len() <= FRAGMENTED
            && self.has_long_connection()
            && self.is_above(FRAGMENTED_ABOVE)
    }

    /// Whether the clocks of the best plan are more than `ratio` times the bound.
    fn is_above(&self, ratio: f64) -> bool {
        let above = |best: &Priced| bound_ratio(best.clocks, self.task.bounds().clocks) > ratio;
        self.best.as_ref().is_some_and(above)
    }

    /// Whether translation slots or the edge coloring of a large set come next, which plan regular sets
    /// and take little time for others, and may do better than the best plan.
    fn regularity_may_gain(&self) -> bool {
        let quick_coloring =
            self.comes_next(Planner::EdgeColoring) && self.task.set().len() > SEARCHED;
        (self.comes_next(Planner::TranslationSlots) || quick_coloring)
            && self.is_above(REGULAR_ABOVE)
    }

    /// Whether rounds are negotiated next and may be fewer than those of the complete exchange, which
    /// the best plan has although the bound allows fewer: on meshes whose sides are no multiples of 4.
    fn negotiated_rounds_may_gain(&self) -> bool {
        self.comes_next(Planner::RoundPathfinder)
            && self.has_won(Planner::Aapc)
            && self.aapc_ratio.is_some_and(|ratio| ratio > AAPC_AT_BOUND)
    }

    /// Whether the best plan is of this planner.
    fn has_won(&self, planner: Planner) -> bool {
        let winner = self.trials.iter().rfind(|trial| trial.best);
        winner.is_some_and(|trial| trial.planner == planner.name())
    }

    /// Whether the next standard attempt is of this planner.
    fn comes_next(&self, planner: Planner) -> bool {
        let next = self.standard.get(self.next).map(|next| next.step);
        next == Some(SearchStep::Plan(planner))
    }

    /// Whether the best plan has as few phases as the bound.
    pub(super) fn has_fewest_phases(&self) -> bool {
        let few = |best: &Priced| best.timetable.phases().len() <= index(self.task.bounds().phases);
        self.best.as_ref().is_some_and(few)
    }

    /// Whether the context switches of the phases above the bound take more than one in `part` of the
    /// clocks of the best plan; for the objective `phases`, whether there are any.
    fn phases_above_take(&self, part: u64) -> bool {
        let switch = self.task.machine().parameters().switch_clocks();
        let take = |best: &Priced| {
            let phases = to_u64(best.timetable.phases().len());
            let excess = phases.saturating_sub(self.task.bounds().phases.into());
            match self.options.objective {
                Objective::Phases => excess > 0,
                Objective::Time => excess.saturating_mul(switch) > best.clocks / part,
            }
        };
        self.best.as_ref().is_none_or(take)
    }

    /// Whether a planner for large sets has packed the phases; `None` if there is none among the
    /// standard attempts, or all have declined. If the dense pathfinder declines, that is the windowed
    /// pathfinder, unless the set is very large.
    fn is_packed(&self) -> Option<bool> {
        let packers = match self.task.set().len() {
            0..=WINDOWED => &[Planner::DensePathfinder, Planner::WindowedPathfinder][..],
            _ => &[Planner::DensePathfinder],
        };
        let is_packer = |step: SearchStep| packers.iter().any(|&p| step == SearchStep::Plan(p));
        let turn = self.standard.iter().rposition(|attempt| is_packer(attempt.step))?;
        let bound = self.task.bounds().clocks;
        let mut plans =
            self.trials.iter().filter(|t| packers.iter().any(|p| p.name() == t.planner));
        if self.next > turn {
            return plans.next().map(|_| true);
        }
        let is_good = |trial: &Trial| bound_ratio(trial.clocks, bound) < GOOD_DENSE;
        Some(self.task.set().len() > WIDE && plans.any(is_good))
    }

    /// Clocks of the rounds of a plan, without pipeline latency, over the clocks that the bound
    /// leaves beside context switches.
    pub(super) fn rounds_over_bound(&self, priced: &Priced) -> Option<f64> {
        let rounds = priced.rounds()?;
        let parameters = self.task.machine().parameters();
        let round = parameters.longest_stream(self.task.set());
        let switches = u64::from(self.task.bounds().phases) * parameters.switch_clocks();
        let left = self.task.bounds().clocks.saturating_sub(switches).max(1);
        Some(to_f64(u64::from(rounds).saturating_mul(round)) / to_f64(left))
    }

    /// Whether agents keep planned starts, so that slots are negotiated.
    fn has_timed_starts(&self) -> bool {
        self.task.machine().parameters().has_timed_starts()
    }

    /// Whether the longest connection takes at least as long as a context switch.
    fn has_long_connection(&self) -> bool {
        let parameters = self.task.machine().parameters();
        let longest = self.task.set().connections().iter().map(|c| c.words).max().unwrap_or(0);
        u64::from(longest) * parameters.word_clocks() >= parameters.switch_clocks()
    }
}

/// Sum of the squared hops of all routes.
pub(super) fn squared_hops(priced: &Priced) -> u64 {
    let phases = priced.timetable.routing().phases().iter();
    phases.flat_map(|p| p.iter()).map(|route| to_u64(route.hops()).pow(2)).sum()
}
