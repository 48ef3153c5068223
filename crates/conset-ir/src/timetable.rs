//! Timetables: when each connection of a phase starts and how long it takes (paper, 4.4.2).
//!
//! A slot belongs to the route in the same row of the phase. Times are clocks from the phase's
//! start. A timetable is what the scheduler *plans* with full access bandwidth; the runtime keeps
//! its order, and its starts where the machine has timed starts.

use std::sync::Arc;

use crate::error::ShapeError;
use crate::routing::Routing;

/// The booked time of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slot {
    /// Clocks from the start of the phase.
    pub start: u64,
    /// Clocks.
    pub duration: u64,
}

impl Slot {
    /// The first clock after the slot.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

/// The timetable of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// One slot per route of the phase, in the same order.
    pub slots: Vec<Slot>,
    /// The end of the last slot, as claimed by who made the timetable.
    pub makespan: u64,
}

/// A routing with a timetable for each of its phases. Never changes once built, so a clone
/// shares everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    routing: Routing,
    phases: Arc<Vec<PhaseTimes>>,
}

impl Timetable {
    /// Puts times to a routing.
    ///
    /// # Errors
    /// Not one timetable per phase, or not one slot per route.
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

    /// The routing underneath.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// One timetable per phase.
    pub fn phases(&self) -> &[PhaseTimes] {
        &self.phases
    }
}
