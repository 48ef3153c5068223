//! Timetables: the planned start and duration of each route of a phase (paper, 4.4.2).
//!
//! The slot in row `i` of a phase belongs to route `i`. Times are clocks from the start of the
//! phase. A timetable is a *plan* that assumes full access bandwidth. The runtime observes its
//! order, and its starts if the machine has timed starts.

use std::sync::Arc;

use crate::error::ShapeError;
use crate::routing::Routing;

/// The planned time of a route. A record with public fields; the checker decides whether the
/// duration suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slot {
    /// The first clock, counted from the start of the phase.
    pub start: u64,
    /// The number of clocks.
    pub duration: u64,
}

impl Slot {
    /// The first clock after the slot.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

/// The timetable of one phase. A record with public fields: [`Timetable::new`] checks the number of
/// slots, and the checker compares the makespan with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// One slot per route of the phase, in the same order.
    pub slots: Vec<Slot>,
    /// The end of the last slot, as claimed by the planner.
    pub makespan: u64,
}

/// A routing with a timetable for each of its phases. It is immutable, so a clone shares all data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    routing: Routing,
    phases: Arc<Vec<PhaseTimes>>,
}

impl Timetable {
    /// Combines a routing with its times.
    ///
    /// # Errors
    /// Another number of timetables than phases, or of slots than routes.
    pub fn new(routing: Routing, phases: Vec<PhaseTimes>) -> Result<Self, ShapeError> {
        if phases.len() != routing.phases().len() {
            return Err(ShapeError::new(
                "phases",
                format!("{} timetables for {} phases", phases.len(), routing.phases().len()),
            ));
        }
        for (p, (times, routes)) in phases.iter().zip(routing.phases()).enumerate() {
            if times.slots.len() != routes.len() {
                return Err(ShapeError::new(
                    format!("phases[{p}].timetable"),
                    format!("{} slots for {} routes", times.slots.len(), routes.len()),
                ));
            }
        }
        Ok(Self { routing, phases: Arc::new(phases) })
    }

    /// The routing.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// One timetable per phase.
    pub fn phases(&self) -> &[PhaseTimes] {
        &self.phases
    }
}
