//! Timetables whose starts somebody else planned: those of an image, which says when each stream
//! opens and not how long it is booked for. Durations are the scheduler's own.
//!
//! Or those of a compile of which most still stands: some routes have a start and the others are
//! put into what the agents have left.
//!
//! Nothing is moved. Whether the slots fit the agents is for the checker to say.

use std::cmp::Reverse;

use conset_ir::{PhaseTimes, Routing, ShapeError, Slot, Timetable};

use crate::cost::{Compact, Costs};
use crate::gaps::Gaps;

/// The timetable of a routing with given starts, one list per phase and one start per route, in
/// clocks from the phase's start.
///
/// # Errors
/// Not one start for each route.
pub fn with_starts(routing: Routing, starts: &[Vec<u64>]) -> Result<Timetable, ShapeError> {
    let costs = Costs::new(routing.machine().parameters());
    let set = routing.set().clone();
    let times = routing
        .phases()
        .iter()
        .zip(starts)
        .map(|(routes, starts)| {
            let slots: Vec<Slot> = routes
                .iter()
                .zip(starts)
                .map(|(route, &start)| Slot {
                    start,
                    duration: costs.duration(&route, set.get(route.connection)),
                })
                .collect();
            let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
            PhaseTimes { slots, makespan }
        })
        .collect();
    Timetable::new(routing, times)
}

/// The timetable of a routing in which some routes have a start, in clocks from the phase's start,
/// one list per phase and one entry per route. The others, long ones first, get the first start at
/// which both their agents are free. Order between connections is not looked at.
///
/// # Errors
/// Not one entry for each route, or starts at which an agent would be booked twice.
///
/// # Panics
/// A phase whose durations and starts add up to 2^64 clocks or more.
pub fn filled(routing: Routing, starts: &[Vec<Option<u64>>]) -> Result<Timetable, ShapeError> {
    let costs = Costs::new(routing.machine().parameters());
    let set = routing.set().clone();
    let mut numbers = Compact::new(costs.side_count(routing.machine()));
    let mut phases = Vec::with_capacity(starts.len());
    for ((phase, routes), starts) in routing.iter().zip(starts) {
        let mut gaps: Vec<Gaps> = Vec::new();
        let mut jobs = Vec::with_capacity(routes.len());
        for (route, &start) in routes.iter().zip(starts) {
            let connection = set.get(route.connection);
            let sides = costs.sides(connection).map(|side| numbers.meet(side) as usize);
            jobs.push((sides, costs.duration(&route, connection), start));
        }
        gaps.resize(numbers.used().len(), Gaps::new());
        numbers.clear();
        // What has a start comes first, in its order, so that gaps stay few.
        let mut rows: Vec<usize> = (0..jobs.len()).collect();
        rows.sort_by_key(|&row| match jobs[row] {
            (_, _, Some(start)) => (0, start, Reverse(0)),
            (_, duration, None) => (1, 0, Reverse(duration)),
        });
        let mut slots = vec![Slot::default(); jobs.len()];
        for row in rows {
            let ([a, b], duration, start) = jobs[row];
            let first = gaps[a].first_common(&gaps[b], start.unwrap_or(0), duration);
            if start.is_some_and(|start| start != first) {
                return Err(ShapeError::new(
                    format!("{phase}, route {row}"),
                    "an agent is booked at this start already",
                ));
            }
            slots[row] = Slot { start: first, duration };
            gaps[a].book(first, slots[row].end());
            if a != b {
                gaps[b].book(first, slots[row].end());
            }
        }
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        phases.push(PhaseTimes { slots, makespan });
    }
    Timetable::new(routing, phases)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{CellId, ChannelId, Connection, ConnectionId, ConnectionSet};
    use conset_ir::{LinkId, Machine, PhaseRoutes};

    use super::*;

    #[test]
    fn starts_are_kept_and_durations_added() {
        let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
        let connection = Connection::new(CellId(0), CellId(1), 133);
        let set = Arc::new(ConnectionSet::new("s", vec![connection]).unwrap());
        let mut phase = PhaseRoutes::new();
        let cells = [CellId(0), CellId(1)];
        phase.push(ConnectionId(0), 133, &cells, &[LinkId(0)], &[ChannelId(0); 2]).unwrap();
        let routing = Routing::new(machine, set, vec![phase]).unwrap();
        let timetable = with_starts(routing.clone(), &[vec![10]]).unwrap();
        assert_eq!(timetable.phases()[0].slots, [Slot { start: 10, duration: 266 }]);
        assert_eq!(timetable.phases()[0].makespan, 276);
        assert!(with_starts(routing.clone(), &[vec![]]).is_err());
        assert_eq!(filled(routing.clone(), &[vec![Some(10)]]).unwrap(), timetable);
        let slot = filled(routing.clone(), &[vec![None]]).unwrap().phases()[0].slots[0];
        assert_eq!(slot, Slot { start: 0, duration: 266 });
        assert!(filled(routing.clone(), &[vec![]]).is_err());
        assert!(with_starts(routing, &[]).is_err());
    }
}
