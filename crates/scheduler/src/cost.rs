//! Durations of streams, and the agent ports that they occupy (machine model, rule 4).
//!
//! A *port* carries one stream at a time. With full duplex a cell has two ports, one for sending
//! and one for receiving; with half duplex it has one for both directions. A route occupies the
//! send port of its source and the receive port of its target for its whole duration, which is that
//! of its stream ([`StreamClocks`]). A connection from a cell to itself occupies both ports of the
//! cell with full duplex. With half duplex it occupies the only port for twice as long.
//!
//! Switches have no agent and are never an endpoint.

use conset_ir::convert::index;
use conset_ir::{CellId, Connection, Duplex, Machine, Parameters, RouteRef, StreamClocks};

use crate::local_index::RowId;

/// A port of an agent, numbered as [`Duplex::ports`] does. Ports that are numbered within a phase
/// ([`crate::local_index`]) are plain numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PortId(pub(crate) u32);

impl RowId for PortId {
    #[inline]
    fn row(self) -> usize {
        index(self.0)
    }
}

/// The machine parameters that durations depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCosts {
    /// For streams from one cell to another, and from a cell to itself.
    streams: [StreamClocks; 2],
    duplex: Duplex,
}

impl StreamCosts {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            streams: [false, true].map(|itself| StreamClocks::between(parameters, itself)),
            duplex: parameters.duplex,
        }
    }

    /// The stream clocks of a connection.
    pub(crate) fn stream(&self, connection: &Connection) -> &StreamClocks {
        &self.streams[usize::from(connection.source == connection.target)]
    }

    /// The predicted duration `d_c` of a route of a connection, in clocks.
    pub(crate) fn duration(&self, route: &RouteRef<'_>, connection: &Connection) -> u64 {
        self.stream(connection).of(route.words)
    }

    /// Clocks from when the last word of a stream is sent until it is received over `hops` links.
    pub(crate) fn pipeline_latency(&self, hops: usize, connection: &Connection) -> u64 {
        self.stream(connection).pipeline_latency(hops)
    }

    /// The ports that a connection occupies: of its source, of its target. They are equal for a
    /// connection from a cell to itself with half duplex. Both are below
    /// [`StreamCosts::port_count`].
    pub(crate) fn ports(&self, connection: &Connection) -> [PortId; 2] {
        self.ports_of(connection.source, connection.target)
    }

    /// The ports of a connection with these endpoints; see [`StreamCosts::ports`].
    pub(crate) fn ports_of(&self, source: CellId, target: CellId) -> [PortId; 2] {
        self.duplex.ports(source, target).map(PortId)
    }

    /// Number of ports of a machine.
    pub(crate) fn port_count(&self, machine: &Machine) -> usize {
        self.duplex.port_count(machine.cell_count())
    }
}

/// A route as the greedy scheduler and backfilling see it. Ports are numbered within the phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortTask {
    pub(crate) ports: [u32; 2],
    pub(crate) duration: u64,
    /// Clocks from the end of the slot until the last word is received. Successors wait for it.
    pub(crate) pipeline_latency: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_itself_books_one_port_of_a_half_duplex_cell() {
        let itself = Connection::new(CellId(3), CellId(3), 1);
        assert_eq!(StreamCosts::new(&Parameters::iwarp_fem()).ports(&itself), [3, 3].map(PortId));
        assert_eq!(StreamCosts::new(&Parameters::iwarp()).ports(&itself), [6, 7].map(PortId));
    }
}
