//! The input of the planners, derived once from a machine and a set: the network with its link
//! capacities, the ports of agents and the durations of streams.
//!
//! Parallel links are one edge. The *capacity* of an edge is the number of streams at full rate
//! that it carries at the same time: its number of links, times the clocks per word of an agent
//! divided by the clocks per word of a link.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{
    Bounds, Connection, ConnectionSet, Duplex, Lists, Machine, Parameters, StreamClocks,
};
use conset_partition_route::network::{Distances, Network};

use crate::interrupt::Interrupt;
use crate::plan::{Plan, Stream};

/// The ports that each connection uses: of its source and of its target.
pub(crate) fn ports(machine: &Machine, set: &ConnectionSet) -> Vec<[u32; 2]> {
    let of = |c: &Connection| machine.parameters().duplex.ports(c.source, c.target);
    set.connections().iter().map(of).collect()
}

/// The capacity of each edge, over all its links.
pub(crate) fn capacities(machine: &Machine, network: &Network) -> Vec<u16> {
    let share = machine.parameters().streams_per_link();
    let capacity =
        |&links: &u32| u16::try_from(links.saturating_mul(share)).unwrap_or(u16::MAX).min(1 << 12);
    network.link_counts().iter().map(capacity).collect()
}

/// The use of a resource by a stream: an edge, a port, or the receiving side of a port.
#[derive(Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) resource: u32,
    /// Clocks from the start of the stream until the use begins.
    pub(crate) after: u64,
    /// The duration of the use in clocks.
    pub(crate) clocks: u64,
}

/// Channels of a cell that are not limited by the number of connections.
const CHANNELS: u32 = 1 << 12;

/// The hop count of an unreachable cell.
pub(crate) const UNREACHABLE: u16 = u16::MAX;

/// The edges into each cell: tail and number.
pub(crate) type Incoming = Lists<(u32, u32)>;

/// A set to be planned on a machine, with the data that planners derive from it.
pub struct Problem<'a> {
    pub(crate) machine: &'a Arc<Machine>,
    pub(crate) set: &'a Arc<ConnectionSet>,
    parameters: &'a Parameters,
    pub(crate) bounds: Bounds,
    network: Network,
    /// Streams at full rate that each edge carries at a time.
    pub(crate) capacity: Vec<u16>,
    /// The ports of each connection: of its source, of its target. Equal for a connection of a
    /// cell to itself with half duplex.
    pub(crate) ports: Vec<[u32; 2]>,
    pub(crate) port_count: usize,
    pub(crate) channels: u32,
    pub(crate) word_clocks: u64,
    pub(crate) link_clocks: u64,
    pub(crate) setup: u64,
    pub(crate) switch: u64,
    /// Streams at full rate that one link carries at a time.
    pub(crate) share: u32,
    /// Whether the two directions share an agent.
    pub(crate) half: bool,
    /// Hops to the target of each connection.
    distances: Distances,
    /// Ends the searches for a plan early.
    pub(crate) interrupt: Interrupt,
}

impl<'a> Problem<'a> {
    /// Prepares a set for planning. Returns `None` if a connection has no route, or if the machine
    /// has too many cells for a distance table.
    pub fn new(
        machine: &'a Arc<Machine>,
        set: &'a Arc<ConnectionSet>,
        bounds: Bounds,
    ) -> Option<Self> {
        let parameters = machine.parameters();
        let cells = machine.cell_count();
        let network = Network::new(machine);
        let targets = set.connections().iter().map(|c| c.target.0);
        let this = Self {
            machine,
            set,
            parameters,
            bounds,
            capacity: capacities(machine, &network),
            ports: ports(machine, set),
            port_count: parameters.duplex.port_count(cells),
            // More channels than connections are never used.
            channels: parameters.channels_per_cell.min(to_u32(set.len()).max(CHANNELS)),
            word_clocks: parameters.word_clocks(),
            link_clocks: u64::from(parameters.link_clocks_per_word),
            setup: u64::from(parameters.stream_setup),
            switch: parameters.switch_clocks(),
            share: parameters.streams_per_link(),
            half: parameters.duplex == Duplex::Half,
            distances: Distances::new(&network, targets),
            network,
            interrupt: Interrupt::default(),
        };
        let reachable = |c: &Connection| {
            let row = this.distances.row(c.target.0);
            row.is_some_and(|row| row[c.source.index()] != UNREACHABLE)
        };
        set.connections().iter().all(reachable).then_some(this)
    }

    /// The same, whose searches end when `interrupt` asks for it.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Whether the set has connections, and none with an order or a requirement.
    pub(crate) fn is_plain(&self) -> bool {
        !self.set.is_empty() && self.set.order().is_empty() && !self.set.has_requirements()
    }

    /// The edges that leave a cell.
    #[inline]
    pub(crate) fn edges(&self, cell: u32) -> std::ops::Range<usize> {
        self.network.outgoing().edges(cell)
    }

    /// The edges into each cell, in the order of their numbers.
    pub(crate) fn incoming(&self) -> Incoming {
        let cells = to_u32(self.cell_count());
        let edges = (0..cells)
            .flat_map(|tail| self.edges(tail).map(move |e| (self.head(e), (tail, to_u32(e)))));
        Lists::new(self.cell_count(), edges)
    }

    pub(crate) fn edge_count(&self) -> usize {
        self.capacity.len()
    }

    /// The cell at the head of an edge.
    #[inline]
    pub(crate) fn head(&self, edge: usize) -> u32 {
        self.network.outgoing().head(edge)
    }

    pub(crate) fn cell_count(&self) -> usize {
        self.network.cell_count()
    }

    /// Hops from every cell to a connection's target.
    #[inline]
    pub(crate) fn distances(&self, x: usize) -> &[u16] {
        let row = self.distances.row(self.set.connections()[x].target.0);
        row.expect("there is a table where there is a problem")
    }

    /// Hops between a connection's ends.
    pub(crate) fn hops(&self, x: usize) -> u16 {
        self.distances(x)[self.set.connections()[x].source.index()]
    }

    /// The edge from a cell to a neighbour.
    pub(crate) fn edge(&self, cell: u32, neighbour: u32) -> usize {
        self.network.outgoing().edge(cell, neighbour)
    }

    /// The number of resources of [`Problem::holds`]: edges, ports, and receiving sides of ports.
    pub(crate) fn resource_count(&self) -> usize {
        self.edge_count() + 2 * self.port_count
    }

    /// Clocks from a stream's start until its last word is received.
    pub(crate) fn until_received(&self, stream: &Stream) -> u64 {
        let clocks = self.clocks(index(stream.connection));
        clocks.until_received(stream.words, stream.cells.len() - 1)
    }

    /// Whether targets may open these streams late, when their words arrive, so that streams are
    /// received in the order in which they start. Requires that every stream is longer than the
    /// greatest latency, and that setup takes no time if agents hold several streams.
    pub(crate) fn may_overlap(&self, streams: &[Stream]) -> bool {
        let flight =
            |s: &Stream| self.clocks(index(s.connection)).pipeline_latency(s.cells.len() - 1);
        let farthest = streams.iter().map(flight).max().unwrap_or(0);
        let long = |s: &Stream| self.clocks(index(s.connection)).of(s.words) > farthest;
        let in_time = self.parameters.streams == 1 || self.setup == 0;
        self.parameters.duplex == Duplex::Full && in_time && streams.iter().all(long)
    }

    /// Calls `hold` with every resource that a stream uses and its capacity in streams. The target
    /// is busy while it receives; if streams must not overlap there, also while the source sends.
    pub(crate) fn holds(
        &self,
        stream: &Stream,
        may_overlap: bool,
        mut hold: impl FnMut(Hold, usize),
    ) {
        let x = index(stream.connection);
        let duration = self.clocks(x).of(stream.words);
        self.port_holds((x, stream.words, stream.cells.len() - 1), may_overlap, |of| hold(of, 1));
        for (hop, pair) in stream.cells.windows(2).enumerate() {
            let edge = self.edge(pair[0], pair[1]);
            hold(self.link_hold(to_u32(edge), hop, duration), usize::from(self.capacity[edge]));
        }
    }

    /// The ports that words of a connection use over so many hops, as [`Problem::holds`].
    pub(crate) fn port_holds(
        &self,
        (x, words, hops): (usize, u32, usize),
        may_overlap: bool,
        mut hold: impl FnMut(Hold),
    ) {
        let (edges, ports) = (to_u32(self.edge_count()), to_u32(self.port_count));
        let clocks = self.clocks(x);
        let (slot, flight) = (clocks.of(words), clocks.pipeline_latency(hops));
        let [source, target] = self.ports[x];
        hold(Hold { resource: edges + source, after: 0, clocks: slot });
        hold(Hold { resource: edges + ports + target, after: flight, clocks: slot });
        if !may_overlap && source != target {
            hold(Hold { resource: edges + target, after: 0, clocks: slot });
        }
    }

    /// The use of an edge by a stream of a duration, at a hop of its route.
    pub(crate) fn link_hold(&self, edge: u32, hop: usize, duration: u64) -> Hold {
        let after = to_u64(hop) * self.link_clocks + self.setup;
        Hold { resource: edge, after, clocks: duration - self.setup }
    }

    /// The durations of streams of a connection.
    pub(crate) fn clocks(&self, x: usize) -> StreamClocks {
        StreamClocks::new(self.parameters, &self.set.connections()[x])
    }

    /// The earliest start of a stream after those booked. For each edge, `edges` has the clocks at
    /// which its streams end, relative to the first link of the route. For each port, `ports` has
    /// the clock from which it is free, and the clock at which its last word is delivered.
    pub(crate) fn earliest(&self, stream: &Stream, edges: &[Vec<u64>], ports: &[[u64; 2]]) -> u64 {
        let x = index(stream.connection);
        let [source, target] = self.ports[x];
        let latency = self.clocks(x).pipeline_latency(stream.cells.len() - 1);
        let received = ports[index(target)][1].saturating_sub(latency);
        let mut start = ports[index(source)][0].max(ports[index(target)][0]).max(received);
        for (hop, pair) in stream.cells.windows(2).enumerate() {
            let edge = self.edge(pair[0], pair[1]);
            let through = &edges[edge];
            let capacity = usize::from(self.capacity[edge]);
            if through.len() >= capacity {
                // The streams that are through last hold the capacity; one of them has to end.
                let free = through[through.len() - capacity];
                start = start.max(free.saturating_sub(to_u64(hop) * self.link_clocks + self.setup));
            }
        }
        start
    }

    /// Books a stream and returns the clock at which its last word is delivered.
    pub(crate) fn book(
        &self,
        stream: &Stream,
        edges: &mut [Vec<u64>],
        ports: &mut [[u64; 2]],
    ) -> u64 {
        let x = index(stream.connection);
        let [source, target] = self.ports[x].map(index);
        let clocks = self.clocks(x);
        let end = stream.start + clocks.of(stream.words);
        let delivered = end + clocks.pipeline_latency(stream.cells.len() - 1);
        for (hop, pair) in stream.cells.windows(2).enumerate() {
            let edge = self.edge(pair[0], pair[1]);
            let through = &mut edges[edge];
            let clock = end + to_u64(hop) * self.link_clocks;
            let place = through.partition_point(|&other| other <= clock);
            through.insert(place, clock);
            // More than the capacity of them never matter.
            if through.len() > usize::from(self.capacity[edge]) {
                through.remove(0);
            }
        }
        ports[source][0] = ports[source][0].max(end);
        ports[target][0] = ports[target][0].max(end);
        ports[target][1] = ports[target][1].max(delivered);
        delivered
    }
}

impl Plan {
    /// Gives every stream the earliest start and computes the duration of the plan. Streams of a
    /// phase that share an agent or a link keep the order in which they are listed.
    pub(crate) fn compact(&mut self, problem: &Problem<'_>) {
        let mut edges = vec![Vec::new(); problem.edge_count()];
        let mut ports = vec![[0u64; 2]; problem.port_count];
        self.clocks = 0;
        for phase in &mut self.phases {
            edges.iter_mut().for_each(Vec::clear);
            ports.fill([0; 2]);
            let mut makespan = 0;
            for stream in phase.iter_mut() {
                stream.start = problem.earliest(stream, &edges, &ports);
                makespan = makespan.max(problem.book(stream, &mut edges, &mut ports));
            }
            self.clocks += problem.switch + makespan;
        }
    }
}
