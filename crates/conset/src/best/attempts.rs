//! What is tried to plan a set, and in which order.
//!
//! The order is fixed by the size of the set and the objective alone. Which attempts are skipped,
//! and when the trying ends, is decided as their results are seen, in [`super`].

use conset_ir::{ConnectionSet, Machine};
use conset_planner::Planner;

use crate::compile::Objective;

/// Connections up to which rounds are searched for although the torus has rounds.
pub(super) const SEARCHED: usize = 1 << 10;

/// Attempts to balance a small set, and connections of all attempts together.
const ATTEMPTS: usize = 8;
/// The same where slots are negotiated too.
const TIMED: usize = 2;
const TRIED: usize = 1 << 13;

/// Large sets with fewer connections a cell than this, such as halos, are hardly slowed by links
/// that are shared: no rounds are searched for, which takes the most of the time.
pub(super) const LARGE: usize = 1 << 12;
const DENSE: usize = 16;

/// Connections above which phases are packed one after the other on machines with timed starts.
const WINDOWED: usize = 1 << 12;

/// Connections up to which slots are negotiated.
const SLOTS: usize = 1 << 17;

/// Negotiations of a set of a few connections.
const NEGOTIATED: u64 = 3;

/// Attempts beyond the usual ones that are made with one effort; then it is doubled.
const SAME_EFFORT: u32 = 8;

/// Doublings at most.
const DOUBLED: u32 = 5;

/// What an attempt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Plans the set.
    Plan(Planner),
    /// Changes the best plan so far.
    Refine,
}

impl Step {
    /// The planner's name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Plan(planner) => planner.name(),
            Step::Refine => "local-search",
        }
    }
}

/// One attempt.
#[derive(Clone, Copy)]
pub(super) struct Try {
    pub(super) step: Step,
    /// Added to the seed.
    pub(super) seed: u64,
    /// Doublings of the effort.
    pub(super) doubled: u32,
}

/// Doublings of the effort after so many attempts beyond the usual ones.
pub(super) fn doubled(more: u64) -> u32 {
    (more / u64::from(SAME_EFFORT)).min(u64::from(DOUBLED)) as u32
}

/// Planners and seeds to try, in this order: those that cost little and may reach the bound first,
/// for a small set the one that is mostly enough. What was found is refined in the end, except
/// where slots were negotiated: nothing was gained behind these (`docs/planners.md`). There the
/// edge coloring, which takes long for large sets without a plan, comes behind negotiated rounds.
pub(super) fn attempts(machine: &Machine, set: &ConnectionSet, objective: Objective) -> Vec<Try> {
    let timed = machine.parameters().has_timed_starts();
    // A set of a few connections leaves little to try.
    let most = if timed { TIMED } else { ATTEMPTS }.min(1 + set.len() / 32);
    let balanced = (TRIED / set.len().max(1)).clamp(1, most) as u64;
    let plan = |planner: Planner, seed: u64| Try { step: Step::Plan(planner), seed, doubled: 0 };
    let once = |planner: Planner| plan(planner, 0);
    let balanced = (0..balanced).map(|again| plan(Planner::LoadAnnealing, again));
    let sparse = set.len() > LARGE && set.len() < DENSE * machine.agent_count();
    let negotiated = if set.len() <= SEARCHED { NEGOTIATED } else { 1 };
    let negotiated = (0..negotiated).map(|again| plan(Planner::RoundPathfinder, again));
    let windowed = (timed && set.len() > WINDOWED).then_some(once(Planner::WindowedPathfinder));
    let slots = (timed && set.len() <= SLOTS).then_some(once(Planner::SlotPathfinder));
    let slots = windowed.into_iter().chain(slots);
    let shifted = timed.then_some(once(Planner::TranslationSlots));
    let torus = [once(Planner::TorusAapc)].into_iter().chain(shifted);
    match objective {
        Objective::Time if sparse => {
            torus.chain([once(Planner::PhasePathfinder)]).chain(slots).chain(balanced).collect()
        }
        Objective::Time => {
            let large = set.len() > SEARCHED;
            let early = usize::from(!large);
            let coloring = [once(Planner::EdgeColoring)].into_iter();
            let phases = [once(Planner::PhasePathfinder)].into_iter();
            let refine = (!timed).then_some(Try { step: Step::Refine, seed: 0, doubled: 0 });
            torus
                .chain(balanced.clone().take(early))
                .chain(coloring.clone().filter(|_| !timed))
                .chain(negotiated)
                .chain(coloring.filter(|_| timed))
                .chain([once(Planner::PreemptiveList)])
                .chain(phases.clone().filter(|_| large))
                .chain(slots)
                .chain(phases.filter(|_| !large))
                .chain(balanced.skip(early))
                .chain(refine)
                .collect()
        }
        Objective::Phases => [once(Planner::TranslationSymmetry)]
            .into_iter()
            .chain(torus)
            .chain(balanced)
            .chain([once(Planner::PhasePathfinder)])
            .collect(),
    }
}
