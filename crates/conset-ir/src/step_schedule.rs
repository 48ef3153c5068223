//! Step schedules: programs compiled to messages in steps, with bounds and a predicted time for each
//! set.
//!
//! A step schedule is to machines without tables what a [`Schedule`](crate::Schedule) is to machines
//! with them. It is a type of its own, because the two have nothing in common but the program:
//! a schedule has phases, routes, slots and tables, and everything that reads one reads these. Bounds
//! and predictions are claims, which the checker proves again; a plan that was written by hand need
//! not state them.

use std::sync::Arc;

use crate::digest::digest;
use crate::error::ShapeError;
use crate::machine::Machine;
use crate::part_map::PartMap;
use crate::schedule::{Binding, Origin};
use crate::set::Program;
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

/// A program compiled to step plans, for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSchedule {
    machine: Arc<Machine>,
    sets: Vec<SetSteps>,
    origin: Option<Origin>,
    digest: Option<u64>,
    part_map: Option<PartMap>,
}

impl StepSchedule {
    /// Combines compiled sets.
    ///
    /// # Errors
    /// No sets, a set that was compiled for another machine, two sets of the same name, too many sets, or an
    /// origin with a text that is too long or has control characters.
    pub fn new(
        machine: Arc<Machine>,
        sets: Vec<SetSteps>,
        origin: Option<Origin>,
    ) -> Result<Self, ShapeError> {
        if sets.is_empty() {
            return Err(ShapeError::new("sets", "a program of steps has at least one set"));
        }
        origin.iter().try_for_each(Origin::check)?;
        for (row, set) in sets.iter().enumerate() {
            let own = set.steps.machine();
            if !Arc::ptr_eq(own, &machine) && *own != machine {
                return Err(ShapeError::new(
                    format!("sets[{row}]"),
                    "compiled for another machine than the schedule's",
                ));
            }
        }
        // This checks the names and the number of sets.
        Program::new(sets.iter().map(|s| s.steps.set().clone()).collect())?;
        Ok(Self { machine, sets, origin, digest: None, part_map: None })
    }

    /// The same schedule with the digest of its program.
    #[must_use]
    pub fn with_digest(self) -> Self {
        let digest = self.recomputed_digest();
        self.with_stated_digest(Some(digest))
    }

    /// The same schedule with a given digest, which the checker compares with
    /// [`StepSchedule::recomputed_digest`].
    #[must_use]
    pub fn with_stated_digest(self, digest: Option<u64>) -> Self {
        Self { digest, ..self }
    }

    /// The stated digest of the program that was compiled, if any.
    pub fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// The digest of the program in this schedule.
    pub fn recomputed_digest(&self) -> u64 {
        digest(&self.machine, self.sets.iter().map(|s| &**s.steps.set()))
    }

    /// The same schedule with the parts and node numbers of the input that it was compiled from.
    ///
    /// # Errors
    /// A part on a cell that is not a cell with an agent.
    pub fn with_part_map(self, part_map: Option<PartMap>) -> Result<Self, ShapeError> {
        if let Some(map) = &part_map {
            map.check(self.machine.agent_count())?;
        }
        Ok(Self { part_map, ..self })
    }

    /// The parts and node numbers of the input, if it was divided into parts.
    pub fn part_map(&self) -> Option<&PartMap> {
        self.part_map.as_ref()
    }

    /// The machine of the schedule.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The compiled sets, in the order of execution.
    pub fn sets(&self) -> &[SetSteps] {
        &self.sets
    }

    /// The program, algorithm and seed that produced it, if known.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The program without its compilation: the connection sets.
    pub fn program(&self) -> Program {
        Program::new(self.sets.iter().map(|s| s.steps.set().clone()).collect())
            .expect("names were checked when the schedule was built")
    }
}
