//! The attempts to plan a set, and their order.
//!
//! The order depends only on the size of the set, the machine and the objective. The search decides
//! from the results which attempts are skipped and when it ends ([`super::pruning`]).

use conset_ir::convert::to_u64;
use conset_ir::{ConnectionSet, Machine};
use conset_planner::{MAX_ANNEALED_CONNECTIONS, Planner};

use super::pruning::CHECKED_AT_ONCE;
use crate::Objective;

/// Connections up to which a set is small, and its edge coloring is annealed.
pub(super) const SEARCHED: usize = MAX_ANNEALED_CONNECTIONS;

/// Attempts of load annealing for a small set.
const ANNEALINGS: usize = 8;
/// The same on machines with timed starts, where slots are negotiated too.
const ANNEALINGS_TIMED: usize = 1;
/// Connections of all attempts of load annealing together.
const ANNEALED_CONNECTIONS: usize = 1 << 13;

/// Connections above which a set is large. A large set with fewer than [`DENSE`] connections per
/// cell, such as a halo, loses little by shared links, so no rounds are negotiated, which takes the most
/// time.
pub(super) const LARGE: usize = 1 << 12;
const DENSE: usize = 16;

/// Connections above which the planners for large sets are tried: the dense pathfinder on all machines, the
/// windowed one on those with timed starts.
const PACKED: usize = 1 << 12;

/// Connections up to which slots are negotiated.
const SLOTS: usize = 1 << 17;

/// Attempts of the round pathfinder for a small set.
const NEGOTIATIONS: u64 = 3;

/// Attempts after the standard ones with the same effort; then the effort is doubled.
const SAME_EFFORT: u32 = 8;

/// Greatest number of doublings of the effort.
const MAX_DOUBLINGS: u32 = 5;

/// What an attempt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    /// Plans the set.
    Plan(Planner),
    /// Improves the best plan so far by local search; streams may share links.
    LocalSearch,
    /// Improves the best plan so far by ejection search, on machines with timed starts.
    EjectionSearch,
}

impl SearchStep {
    /// The planner's name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            SearchStep::Plan(planner) => planner.name(),
            SearchStep::LocalSearch => "local-search",
            SearchStep::EjectionSearch => "ejection-search",
        }
    }
}

/// One attempt.
#[derive(Clone, Copy)]
pub(super) struct SearchAttempt {
    pub(super) step: SearchStep,
    /// Added to the seed of the options.
    pub(super) seed: u64,
    /// Doublings of the effort.
    pub(super) doublings: u32,
}

/// Doublings of the effort after a number of attempts beyond the standard ones.
pub(super) fn doublings(extra: u64) -> u32 {
    let doublings = extra / u64::from(SAME_EFFORT);
    u32::try_from(doublings).unwrap_or(MAX_DOUBLINGS).min(MAX_DOUBLINGS)
}

/// Whether every connection is one word.
pub(super) fn has_single_words(set: &ConnectionSet) -> bool {
    set.connections().iter().all(|connection| connection.words == 1)
}

/// The search that improves plans for a machine.
pub(super) fn improvement(machine: &Machine) -> SearchStep {
    match machine.parameters().has_timed_starts() {
        true => SearchStep::EjectionSearch,
        false => SearchStep::LocalSearch,
    }
}

/// The standard attempts in their order: first the planners that are cheap and may reach the bound,
/// for a small set the one that usually suffices. Translation slots precede the rounds of the complete
/// exchange if all connections are single words. The edge coloring of a large set, which is not
/// annealed, is quick; that of a small one follows the round pathfinder on machines with timed
/// starts. On others the dense pathfinder precedes the phase pathfinder, which takes longer and
/// seldom does better for large sets. The best plan is improved last.
pub(super) fn standard_attempts(
    machine: &Machine,
    set: &ConnectionSet,
    objective: Objective,
) -> Vec<SearchAttempt> {
    let timed = machine.parameters().has_timed_starts();
    // A set of a few connections has few different plans.
    let most = if timed { ANNEALINGS_TIMED } else { ANNEALINGS }.min(1 + set.len() / 32);
    let annealings = to_u64((ANNEALED_CONNECTIONS / set.len().max(1)).clamp(1, most));
    let plan = |planner: Planner, seed: u64| SearchAttempt {
        step: SearchStep::Plan(planner),
        seed,
        doublings: 0,
    };
    let once = |planner: Planner| plan(planner, 0);
    let annealings = (0..annealings).map(|seed| plan(Planner::LoadAnnealing, seed));
    let sparse = set.len() > LARGE && set.len() < DENSE * machine.agent_count();
    let negotiations = if set.len() <= SEARCHED { NEGOTIATIONS } else { 1 };
    let negotiations = (0..negotiations).map(|seed| plan(Planner::RoundPathfinder, seed));
    let slots = (timed && set.len() <= SLOTS).then_some(once(Planner::SlotPathfinder));
    let packed = set.len() > PACKED;
    let dense = packed.then_some(once(Planner::DensePathfinder));
    let windowed = (timed && packed).then_some(once(Planner::WindowedPathfinder));
    let (late_dense, early_dense) = if timed { (dense, None) } else { (None, dense) };
    // The phase pathfinder takes the most time, and less if it knows a good plan; but the search for a
    // large set may end with the windowed pathfinder.
    let phases_first = set.len() > CHECKED_AT_ONCE;
    let phases = |now: bool| now.then_some(once(Planner::PhasePathfinder)).into_iter();
    let packings = late_dense.into_iter().chain(windowed).chain(slots);
    let negotiated = phases(phases_first).chain(packings).chain(phases(!phases_first));
    let translation = timed.then_some(once(Planner::TranslationSlots));
    let aapc = Some(once(Planner::Aapc));
    let large = set.len() > SEARCHED;
    let coloring = Some(once(Planner::EdgeColoring));
    let (quick_coloring, coloring) = if large { (coloring, None) } else { (None, coloring) };
    // Single words need no rounds: translation slots start them at single clocks.
    let regular = match has_single_words(set) {
        true => [translation, aapc, quick_coloring],
        false => [aapc, quick_coloring, translation],
    };
    let one_phase = [once(Planner::OnePhase)].into_iter();
    let regular = one_phase.chain(regular.into_iter().flatten());
    let improved = SearchAttempt { step: improvement(machine), seed: 0, doublings: 0 };
    match objective {
        Objective::Time if sparse => {
            let improved = timed.then_some(improved);
            let planned = regular.chain(early_dense).chain(negotiated).chain(annealings);
            planned.chain(improved).collect()
        }
        Objective::Time => {
            let early = usize::from(!large);
            regular
                .chain(annealings.clone().take(early))
                .chain(coloring.filter(|_| !timed))
                .chain(negotiations)
                .chain(coloring.filter(|_| timed))
                .chain([once(Planner::PreemptiveList)])
                .chain(early_dense)
                .chain(negotiated)
                .chain(annealings.skip(early))
                .chain([improved])
                .collect()
        }
        Objective::Phases => [once(Planner::TranslationSymmetry)]
            .into_iter()
            .chain(regular)
            .chain(annealings)
            .chain([once(Planner::PhasePathfinder)])
            .collect(),
    }
}
