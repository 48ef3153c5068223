//! What is tried to plan a set, and in which order.
//!
//! The order is fixed by the size of the set and the objective alone. Which attempts are skipped,
//! and when the trying ends, is decided as their results are seen, in [`super`].

use conset_ir::{ConnectionSet, Machine};
use conset_partition_route::best::Way;

use crate::compile::Objective;

/// Connections up to which rounds are searched for although the torus has rounds.
pub(super) const SEARCHED: usize = 1 << 10;

/// Attempts to balance a small set, and connections of all attempts together.
const ATTEMPTS: usize = 8;
const TRIED: usize = 1 << 13;

/// Large sets with fewer connections a cell than this, such as halos, are hardly slowed by links
/// that are shared: no rounds are searched for, which takes the most of the time.
pub(super) const LARGE: usize = 1 << 12;
const DENSE: usize = 16;

/// Connections above which a machine that keeps starts has its phases packed one by one.
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
    Plan(Way),
    /// Plans the set by negotiation over slots of time, for machines that keep planned starts.
    Slots,
    /// Packs phases one after the other, for large sets on such machines.
    Windowed,
    /// Changes the best plan so far.
    Refine,
}

impl Step {
    /// The planner's name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Slots => "slot-pathfinder",
            Step::Windowed => "windowed-pathfinder",
            Step::Refine => "local-search",
            Step::Plan(Way::RingRounds) => "torus-aapc",
            Step::Plan(Way::Orbits) => "translation-symmetry",
            Step::Plan(Way::SearchedRounds) => "edge-coloring",
            Step::Plan(Way::Negotiated) => "round-pathfinder",
            Step::Plan(Way::Cut { .. }) => "fragments",
            Step::Plan(Way::Windows) => "preemptive-list",
            Step::Plan(Way::Congested) => "phase-pathfinder",
            Step::Plan(Way::Balanced) => "load-annealing",
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

/// The kind of a way, whatever it is tried with.
pub(super) fn kind(way: Way) -> std::mem::Discriminant<Way> {
    std::mem::discriminant(&way)
}

/// Doublings of the effort after so many attempts beyond the usual ones.
pub(super) fn doubled(more: u64) -> u32 {
    (more / u64::from(SAME_EFFORT)).min(u64::from(DOUBLED)) as u32
}

/// Ways and seeds to try, in this order: those that cost little and may be perfect first, for a
/// small set the one that is mostly enough. Rounds and parts are for time, orbits and negotiated
/// congestion for phases. What was found is refined in the end.
pub(super) fn attempts(machine: &Machine, set: &ConnectionSet, objective: Objective) -> Vec<Try> {
    // A set of a few connections leaves little to try.
    let most = ATTEMPTS.min(1 + set.len() / 32);
    let balanced = (TRIED / set.len().max(1)).clamp(1, most) as u64;
    let plan = |way: Way, seed: u64| Try { step: Step::Plan(way), seed, doubled: 0 };
    let once = |way: Way| plan(way, 0);
    let balanced = (0..balanced).map(|again| plan(Way::Balanced, again));
    let sparse = set.len() > LARGE && set.len() < DENSE * machine.agent_count();
    let negotiated = if set.len() <= SEARCHED { NEGOTIATED } else { 1 };
    let timed = machine.parameters().has_timed_starts();
    let step = |step: Step| Try { step, seed: 0, doubled: 0 };
    let windowed = (timed && set.len() > WINDOWED).then(|| step(Step::Windowed));
    let slots = (timed && set.len() <= SLOTS).then(|| step(Step::Slots));
    let slots = windowed.into_iter().chain(slots);
    match objective {
        Objective::Time if sparse => {
            let first = [Way::RingRounds, Way::Orbits].map(once).into_iter().chain(slots);
            first.chain(balanced).collect()
        }
        Objective::Time => {
            let early = if set.len() <= SEARCHED { 1 } else { 0 };
            [once(Way::RingRounds)]
                .into_iter()
                .chain(balanced.clone().take(early))
                .chain(slots)
                .chain([once(Way::SearchedRounds)])
                .chain((0..negotiated).map(|again| plan(Way::Negotiated, again)))
                .chain([once(Way::Orbits)])
                .chain(balanced.skip(early))
                .chain([Way::Windows, Way::Cut { pieces: 2 }, Way::Cut { pieces: 3 }].map(once))
                .chain([Try { step: Step::Refine, seed: 0, doubled: 0 }])
                .collect()
        }
        Objective::Phases => [Way::Orbits, Way::RingRounds]
            .map(once)
            .into_iter()
            .chain(balanced)
            .chain([once(Way::Congested)])
            .collect(),
    }
}
