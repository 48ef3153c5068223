//! Timetables that mind links.
//!
//! The paper's greedy timetable ([`mod@crate::greedy`]) plans as if links had no end. This one
//! keeps streams off each other's links:
//!
//! * Where the router knows *rounds* (routes that share no agent and no link), a phase's rounds
//!   run one after the other, each as long as its longest route.
//!
//! # What this module does not do
//!
//! It never changes a route. Ordered phases are left to the greedy timetable.

use conset_ir::{PhaseId, PhaseRoutes, PhaseTimes, Routing, Slot, Timetable};

use crate::ScheduleError;
use crate::cost::Costs;

/// Gives every route of every phase a slot. `rounds` has, for each phase, the round of each
/// route, in the order of the routes.
///
/// # Errors
/// A phase whose durations add up to 2^63 clocks or more.
///
/// # Panics
/// Where `rounds` has not one number for each route.
pub fn timetable(routing: Routing, rounds: &[Vec<u32>]) -> Result<Timetable, ScheduleError> {
    let costs = Costs::new(routing.machine().parameters());
    let mut free = vec![0u64; costs.side_count(routing.machine())];
    let mut phases = Vec::with_capacity(routing.phases().len());
    for ((phase, routes), rounds) in routing.iter().zip(rounds) {
        phases.push(in_rounds(&routing, phase, routes, rounds, &costs, &mut free)?);
    }
    Ok(Timetable::new(routing, phases).expect("one slot was made for each route"))
}

fn in_rounds(
    routing: &Routing,
    phase: PhaseId,
    routes: &PhaseRoutes,
    rounds: &[u32],
    costs: &Costs,
    free: &mut [u64],
) -> Result<PhaseTimes, ScheduleError> {
    assert_eq!(rounds.len(), routes.len(), "a round for each route");
    let mut rows: Vec<u32> = (0..routes.len() as u32).collect();
    rows.sort_by_key(|&row| rounds[row as usize]);
    free.fill(0);
    let mut slots = vec![Slot::default(); routes.len()];
    let (mut base, mut end, mut total) = (0u64, 0u64, 0u128);
    let mut round = None;
    for row in rows {
        if round != Some(rounds[row as usize]) {
            round = Some(rounds[row as usize]);
            base = end;
        }
        let route = routes.get(row as usize);
        let connection = routing.set().get(route.connection);
        let duration = costs.duration(&route, connection);
        total += u128::from(duration);
        if total >= 1 << 63 {
            return Err(ScheduleError::TooLong { phase });
        }
        let [a, b] = costs.sides(connection).map(|side| side as usize);
        let slot = Slot { start: base.max(free[a]).max(free[b]), duration };
        (free[a], free[b]) = (slot.end(), slot.end());
        end = end.max(slot.end());
        slots[row as usize] = slot;
    }
    Ok(PhaseTimes { slots, makespan: end })
}
