//! What a change of one route costs: the two phases it touches get new timetables and a new
//! price, all the others keep theirs.
//!
//! A phase that loses its last route is left out and its switch saved. The new timetables are the
//! greedy scheduler's, whoever made the old ones; so a change can come out cheaper because greedy
//! does better than what was there, and says so honestly: that is what applying it gives.

use conset_ir::{PhaseId, PhaseRoutes, PhaseTimes, RouteRef, Routing, ShapeError, Timetable};
use conset_scheduler::{
    PhasePrediction, Prediction, ScheduleError, fixed_starts, greedy, link_aware as links,
};

use super::{Part, Way};

/// What a set takes after a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    /// The phase that takes the route, without its switch.
    pub(super) phase: u64,
    /// All phases, switches included.
    pub(super) set: u64,
}

/// The set after a change: the route of `part` runs in phase `to` over `way`. The two phases that
/// change get greedy timetables, the others keep theirs; a phase without routes is left out.
///
/// # Errors
/// A part, phase or way that is not there or does not fit together, durations beyond 2^63 clocks.
/// Whether the result is right is for the checker.
pub fn apply(
    timetable: &Timetable,
    part: Part,
    to: PhaseId,
    way: &Way,
) -> Result<Timetable, ShapeError> {
    let routing = timetable.routing();
    let row_exists = |p: PhaseId| routing.phases().get(p.index()).map_or(0, PhaseRoutes::len);
    if row_exists(part.phase) <= part.row || to.index() >= routing.phases().len() {
        return Err(ShapeError::new("part", "no such route or phase"));
    }
    let (from_after, to_after) = changed(routing, part, to, way)?;
    let of = |phases| Routing::new(routing.machine().clone(), routing.set().clone(), phases);
    let (times, _) = timed(of(vec![from_after.clone(), to_after.clone()])?)
        .map_err(|e| ShapeError::new("phases", e.to_string()))?;
    let mut phases: Vec<(PhaseRoutes, PhaseTimes)> = Vec::new();
    for ((p, routes), old) in routing.iter().zip(timetable.phases()) {
        if p == to {
            phases.push((to_after.clone(), times.phases()[1].clone()));
        } else if p != part.phase {
            phases.push((routes.clone(), old.clone()));
        } else if !from_after.is_empty() {
            phases.push((from_after.clone(), times.phases()[0].clone()));
        }
    }
    let (routes, times) = phases.into_iter().unzip();
    Timetable::new(of(routes)?, times)
}

/// The two phases of a change: the part's without it, the other with it. Where the phase is the
/// same, only the second counts.
pub(super) fn changed(
    routing: &Routing,
    part: Part,
    to: PhaseId,
    way: &Way,
) -> Result<(PhaseRoutes, PhaseRoutes), ShapeError> {
    let from = &routing.phases()[part.phase.index()];
    let moved = from.get(part.row);
    let push = |phase: &mut PhaseRoutes, r: RouteRef<'_>| {
        phase.push(r.connection, r.words, r.cells, r.links(), r.channels)
    };
    let mut without = PhaseRoutes::new();
    for (_, route) in from.iter().enumerate().filter(|(row, _)| *row != part.row) {
        push(&mut without, route)?;
    }
    let mut with =
        if to == part.phase { without.clone() } else { routing.phases()[to.index()].clone() };
    with.push(moved.connection, moved.words, &way.cells, &way.links, &way.channels)?;
    Ok((without, with))
}

/// Prices phases with the part in them, each given with its number. `None` for those that take
/// more than 2^63 clocks.
pub(super) fn price(
    timetable: &Timetable,
    before: &Prediction,
    part: Part,
    without: &PhaseRoutes,
    trials: &[(PhaseId, PhaseRoutes)],
) -> Vec<Option<Price>> {
    let mut prices = vec![None; trials.len()];
    let mut rows: Vec<usize> = (0..trials.len()).collect();
    let phases = loop {
        let phases = std::iter::once(without).chain(rows.iter().map(|&row| &trials[row].1));
        match predicted(timetable.routing(), phases.cloned().collect()) {
            Ok(phases) => break phases,
            // The first is less than a phase that has a timetable already.
            Err(0) => return prices,
            Err(phase) => drop(rows.remove(phase - 1)),
        }
    };
    let clocks = |p: &PhasePrediction| u128::from(p.switch) + u128::from(p.clocks);
    let all: u128 = before.phases.iter().map(clocks).sum();
    for (&row, phase) in rows.iter().zip(&phases[1..]) {
        let to = trials[row].0;
        let mut set = all - clocks(&before.phases[to.index()]) + clocks(phase);
        if to != part.phase {
            set -= clocks(&before.phases[part.phase.index()]);
            set += if without.is_empty() { 0 } else { clocks(&phases[0]) };
        }
        let set = u64::try_from(set).unwrap_or(u64::MAX);
        prices[row] = Some(Price { phase: phase.clocks, set });
    }
    prices
}

/// Timetables and prices of phases by themselves; the number of one that is too long.
fn predicted(routing: &Routing, phases: Vec<PhaseRoutes>) -> Result<Vec<PhasePrediction>, usize> {
    let routing = Routing::new(routing.machine().clone(), routing.set().clone(), phases)
        .expect("made of routes of the same set and machine");
    let (_, prediction) = timed(routing).map_err(|error| error.phase().index())?;
    Ok(prediction.phases)
}

/// The greedy timetable, with starts kept where that is faster.
fn timed(routing: Routing) -> Result<(Timetable, Prediction), ScheduleError> {
    Ok(links::cheapest(&fixed_starts::with_early_starts(vec![greedy::timetable(routing)?])))
}
