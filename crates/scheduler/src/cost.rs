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
use conset_ir::{CellId, Connection, Duplex, Machine, RouteRef, StreamClocks, Topology};

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
    /// For streams from one cell to another, from a cell to itself, and between two nodes.
    streams: [StreamClocks; 3],
    /// Clocks to open a stream between two nodes beyond those of others.
    overhead: u64,
    /// The cells of a node, if nodes matter.
    cells_per_node: Option<u32>,
    duplex: Duplex,
}

impl StreamCosts {
    pub(crate) fn new(machine: &Machine) -> Self {
        let parameters = machine.parameters();
        let overhead = u64::from(parameters.network_overhead);
        let [fastest, slowest] = machine.link_clocks_range();
        let [other, itself] = [false, true].map(|same| StreamClocks::between(parameters, same));
        Self {
            streams: [other, itself, other.between_nodes(overhead, slowest.into())],
            overhead,
            cells_per_node: match machine.topology() {
                Topology::Cluster { cells_per_node, .. } if overhead > 0 || fastest < slowest => {
                    Some(*cells_per_node)
                }
                _ => None,
            },
            duplex: parameters.duplex,
        }
    }

    /// The stream clocks of a connection.
    pub(crate) fn stream(&self, connection: &Connection) -> &StreamClocks {
        if self.is_between_nodes(connection) {
            return &self.streams[2];
        }
        &self.streams[usize::from(connection.source == connection.target)]
    }

    /// Clocks to open a stream of a connection beyond `stream_setup`.
    pub(crate) fn overhead(&self, connection: &Connection) -> u64 {
        if self.is_between_nodes(connection) { self.overhead } else { 0 }
    }

    /// Whether a connection is between two nodes, and that matters.
    fn is_between_nodes(&self, connection: &Connection) -> bool {
        let apart = |cells| connection.source.0 / cells != connection.target.0 / cells;
        self.cells_per_node.is_some_and(apart)
    }

    /// Whether streams between two nodes take longer to open than others.
    pub(crate) fn has_overhead(&self) -> bool {
        self.cells_per_node.is_some() && self.overhead > 0
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
        let ports = |spec| StreamCosts::new(&Machine::from_spec(spec).unwrap()).ports(&itself);
        assert_eq!(ports("iwarp-fem"), [3, 3].map(PortId));
        assert_eq!(ports("iwarp"), [6, 7].map(PortId));
    }

    #[test]
    fn streams_between_nodes_take_longer_to_open() {
        let machine = Machine::from_spec("cluster:2x3").unwrap();
        let (costs, p) = (StreamCosts::new(&machine), machine.parameters());
        let clocks = |a, b| costs.stream(&Connection::new(CellId(a), CellId(b), 1)).of(10);
        let inside = u64::from(p.stream_setup + 10 * p.access_clocks_per_word);
        assert_eq!([clocks(0, 2), clocks(2, 0), clocks(4, 3)], [inside; 3]);
        assert_eq!([clocks(0, 3), clocks(5, 2)], [inside + u64::from(p.network_overhead); 2]);
    }

    #[test]
    fn only_nodes_have_software_to_wait_for() {
        let has_overhead = |spec, clocks| {
            let machine = Machine::from_spec(spec).unwrap();
            let mut parameters = machine.parameters().clone();
            (parameters.network_overhead, parameters.network_clocks_per_word) = (clocks, 9);
            StreamCosts::new(&machine.with_parameters(parameters).unwrap()).has_overhead()
        };
        // The links between the nodes of the cluster are slow, so nodes matter without it, too.
        let cases = [("cluster:2x3", 9), ("cluster:2x3", 0), ("iwarp", 9)];
        assert_eq!(cases.map(|(spec, clocks)| has_overhead(spec, clocks)), [true, false, false]);
    }
}
