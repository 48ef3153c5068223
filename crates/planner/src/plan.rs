//! Plans: the phases, streams, routes and start times that a planner returns.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Machine, Routing, ShapeError};

/// Words of a connection that are sent together over one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The number of the connection in the set.
    pub connection: u32,
    /// The number of words: all of the connection's, or a part of them.
    pub words: u32,
    /// The earliest clock at which its agents open it, relative to the end of the phase's context
    /// switch.
    pub start: u64,
    /// The cells of its route, both ends included.
    pub cells: Vec<u32>,
}

/// A plan: the streams of each phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The streams of each phase.
    pub phases: Vec<Vec<Stream>>,
    /// The duration in clocks of all phases and their context switches, on a machine with timed
    /// starts.
    pub clocks: u64,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best plan.
    pub plan: Plan,
    /// The work done: cells, slots or table entries that the search examined.
    pub work: u64,
}

impl Plan {
    /// The routing of the plan, and the starts of the routes of each phase, in the order of the
    /// routing.
    ///
    /// # Errors
    /// As [`Routing::new`]; none if the plan was made for this machine and set.
    pub fn routing(
        &self,
        machine: &Arc<Machine>,
        set: &Arc<ConnectionSet>,
    ) -> Result<(Routing, Vec<Vec<u64>>), ShapeError> {
        let mut phases: Vec<Vec<&Stream>> =
            self.phases.iter().map(|p| p.iter().collect()).collect();
        for phase in &mut phases {
            phase.sort_by_key(|stream| (stream.connection, stream.start));
        }
        let parts = |phase: u32| {
            phases[index(phase)].iter().map(|s| (s.connection, s.words, s.cells.as_slice()))
        };
        let count = to_u32(phases.len());
        let routing = conset_partition_route::routing_of_paths(machine, set, count, parts)?;
        let starts = phases.iter().map(|p| p.iter().map(|s| s.start).collect()).collect();
        Ok((routing, starts))
    }
}
