//! The cost of moving one part of a connection: the two affected phases get new timetables and
//! prices, all other phases keep theirs.
//!
//! A phase that loses its last route is removed, which saves its context switch. The new timetables
//! are made by the greedy scheduler, even if the present ones are not. So a move can be cheaper
//! because the greedy timetable is better than the present one; the reported price is what [`apply`]
//! gives.

use conset_ir::{PhaseId, PhaseRoutes, PhaseTimes, RouteRef, Routing, ShapeError, Timetable};
use conset_scheduler::{
    PhasePrediction, Prediction, ScheduleError, fixed_starts, greedy, link_aware as links,
};

use super::{AlternativeRoute, PartPosition};

/// Predicted clocks after a move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    /// The phase with the moved part, without its context switch.
    pub(super) phase: u64,
    /// All phases, context switches included.
    pub(super) set: u64,
}

/// Moves a part to phase `to` over `route`. The two phases that change get greedy timetables, the
/// others keep theirs; a phase without routes is removed.
///
/// # Errors
/// A part, phase or route that does not exist or does not fit, or durations beyond 2^63 clocks. The
/// result is not checked.
pub fn apply(
    timetable: &Timetable,
    part: PartPosition,
    to: PhaseId,
    route: &AlternativeRoute,
) -> Result<Timetable, ShapeError> {
    let routing = timetable.routing();
    let row_exists = |p: PhaseId| routing.phases().get(p.index()).map_or(0, PhaseRoutes::len);
    if row_exists(part.phase) <= part.row || to.index() >= routing.phases().len() {
        return Err(ShapeError::new("part", "no such route or phase"));
    }
    let (from_after, to_after) = changed(routing, part, to, route)?;
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

/// The two phases of a move: that of the part without it, and the other one with it. If they are the
/// same phase, only the second one counts.
pub(super) fn changed(
    routing: &Routing,
    part: PartPosition,
    to: PhaseId,
    route: &AlternativeRoute,
) -> Result<(PhaseRoutes, PhaseRoutes), ShapeError> {
    let from = &routing.phases()[part.phase.index()];
    let moved = from.get(part.row);
    let push = |phase: &mut PhaseRoutes, r: RouteRef<'_>| {
        phase.push(r.connection, r.words, r.cells, r.links(), r.channels)
    };
    let mut without = PhaseRoutes::new();
    for (_, kept) in from.iter().enumerate().filter(|(row, _)| *row != part.row) {
        push(&mut without, kept)?;
    }
    let mut with =
        if to == part.phase { without.clone() } else { routing.phases()[to.index()].clone() };
    with.push(moved.connection, moved.words, &route.cells, &route.links, &route.channels)?;
    Ok((without, with))
}

/// Prices phases with the part in them, each given with its number; `None` for a phase that takes
/// more than 2^63 clocks.
pub(super) fn price(
    timetable: &Timetable,
    before: &Prediction,
    part: PartPosition,
    without: &PhaseRoutes,
    trials: &[(PhaseId, PhaseRoutes)],
) -> Vec<Option<Price>> {
    let mut prices = vec![None; trials.len()];
    let mut rows: Vec<usize> = (0..trials.len()).collect();
    let phases = loop {
        let phases = std::iter::once(without).chain(rows.iter().map(|&row| &trials[row].1));
        match predicted(timetable.routing(), phases.cloned().collect()) {
            Ok(phases) => break phases,
            // The first is a part of a phase that has a timetable, so it cannot be too long.
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

/// The predictions of single phases; the error is the number of a phase that is too long.
fn predicted(routing: &Routing, phases: Vec<PhaseRoutes>) -> Result<Vec<PhasePrediction>, usize> {
    let routing = Routing::new(routing.machine().clone(), routing.set().clone(), phases)
        .expect("made of routes of the same set and machine");
    let (_, prediction) = timed(routing).map_err(|error| error.phase().index())?;
    Ok(prediction.phases)
}

/// The greedy timetable, with or without planned starts, whichever is faster.
fn timed(routing: Routing) -> Result<(Timetable, Prediction), ScheduleError> {
    Ok(links::cheapest(&fixed_starts::with_early_starts(vec![greedy::timetable(routing)?])))
}
