//! Timetables whose starts somebody else planned: those of an image, which says when each stream
//! opens and not how long it is booked for. Durations are the scheduler's own.
//!
//! Nothing is moved. Whether the slots fit the agents is for the checker to say.

use conset_ir::{PhaseTimes, Routing, ShapeError, Slot, Timetable};

use crate::cost::Costs;

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
        assert!(with_starts(routing, &[]).is_err());
    }
}
