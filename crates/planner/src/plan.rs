//! Plans: phases of streams with routes and starts, and the earliest starts for a given order.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Machine, Routing, ShapeError};

/// Words of a connection that travel together over one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The connection, by its number in the set.
    pub connection: u32,
    /// Words, all of the connection's or a part of them.
    pub words: u32,
    /// The earliest clock at which its agents open it, counted from the end of the phase's
    /// context switch.
    pub start: u64,
    /// The cells of its route, both ends included.
    pub cells: Vec<u32>,
}

/// Phases of streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The streams of each phase.
    pub phases: Vec<Vec<Stream>>,
    /// Clocks of all phases and their context switches if starts are kept.
    pub clocks: u64,
}

/// What a search found, and what it took.
pub struct Found {
    /// The best plan.
    pub plan: Plan,
    /// Cells, slots or entries of tables that it looked at.
    pub work: u64,
}

impl Plan {
    /// The routing of a plan and the starts of its routes, in the routing's order.
    ///
    /// # Errors
    /// None for a plan made for this machine and set; see [`Routing::new`].
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
