//! Step schedules: programs compiled to messages in steps, with bounds and a predicted time for each
//! set.
//!
//! A step schedule is to machines without tables what a [`Schedule`](crate::Schedule) is to machines
//! with them. Both are a program with a machine, an origin and parts ([`ScheduleOf`]); their sets have
//! nothing in common but the connections, because everything that reads phases reads routes, slots and
//! tables. Bounds and predictions are claims, which the checker proves again; a plan that was written
//! by hand need not state them.

use std::sync::Arc;

use crate::error::ShapeError;
use crate::machine::Machine;
use crate::schedule::{Binding, ScheduleOf, ScheduledSet};
use crate::set::ConnectionSet;
use crate::steps::Steps;
use crate::witness::Witness;

/// Lower bounds of a set that is exchanged by messages.
///
/// A record with public fields, one object of a file. It holds claims, so no combination of values
/// is ruled out; the checker proves or refuses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepBounds {
    /// Every step plan of the set takes at least this many clocks.
    pub clocks: u64,
    /// The bound that determines `clocks`.
    pub clocks_by: Binding,
    /// The proof of `clocks`, if it is by links.
    pub clocks_witness: Option<Witness>,
    /// Every plan that sends each connection in one message from its source to its target takes at
    /// least this many clocks.
    pub direct_clocks: u64,
}

/// A set that is compiled to a step plan.
///
/// A record with public fields, one object of a file: the plan has private fields, the others are
/// claims for the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSteps {
    /// The plan; it holds the set and the machine.
    pub steps: Steps,
    /// Lower bounds of the set.
    pub bounds: StepBounds,
    /// The time of the set according to the cost model, if it was predicted.
    pub predicted_clocks: Option<u64>,
}

impl ScheduledSet for SetSteps {
    fn set(&self) -> &Arc<ConnectionSet> {
        self.steps.set()
    }

    fn machine(&self) -> &Arc<Machine> {
        self.steps.machine()
    }

    fn check(sets: &[Self]) -> Result<(), ShapeError> {
        match sets.is_empty() {
            true => Err(ShapeError::new("sets", "a program of steps has at least one set")),
            false => Ok(()),
        }
    }
}

/// A program compiled to step plans, for one machine.
pub type StepSchedule = ScheduleOf<SetSteps>;
