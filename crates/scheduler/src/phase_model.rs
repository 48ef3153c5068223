//! The cost model for phases under construction.
//!
//! A search that changes a plan in small steps needs the cost of each step before channels are
//! numbered and slots are assigned. Here a phase is a list of streams in the order in which agents
//! open them, each with the network edges on its path. The model simulates it as
//! [`mod@crate::predict`] would, and returns when each stream ends.
//!
//! # What it leaves out
//!
//! What the cost model leaves out. Also, parallel links between two cells are one edge with the
//! capacity of all of them, although each stream uses one link.

use conset_ir::convert::{to_f64, to_u32};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Lists, Machine};

use crate::cost::StreamCosts;
use crate::fluid;
use crate::local_index::LocalIndex;
use crate::max_min_share::MaxMinShare;
use crate::precedence::PhasePrecedence;

/// A stream of a phase under construction.
#[derive(Clone, Copy, Debug)]
pub struct ModelStream<'a> {
    /// The connection whose words it carries.
    pub connection: ConnectionId,
    /// Words, at least 1.
    pub words: u32,
    /// The edges on its path, each once, numbered as in [`PhaseModel::new`].
    pub edges: &'a [u32],
    /// On a machine with timed starts, the earliest clock at which an agent opens it. A phase in
    /// which all starts are 0 runs as on any other machine.
    pub start: u64,
}

/// Simulates phases of a set on a machine.
#[derive(Debug)]
pub struct PhaseModel<'a> {
    set: &'a ConnectionSet,
    costs: StreamCosts,
    edges: u32,
    ports: usize,
    streams: u32,
    setup: f64,
    timed: bool,
    /// Whether the links on its path limit every stream at least as much as its agents do: then
    /// agents, which have one stream at a time, need not be resources.
    agents_never_limit: bool,
    rates: MaxMinShare,
    connections: LocalIndex<ConnectionId>,
}

impl<'a> PhaseModel<'a> {
    /// A model of the set's phases. `links` has the number of parallel links of each edge, at least
    /// 1.
    pub fn new(machine: &Machine, set: &'a ConnectionSet, links: &[u32]) -> Self {
        let parameters = machine.parameters();
        let costs = StreamCosts::new(machine);
        let ports = costs.port_count(machine);
        let access = 1.0 / f64::from(parameters.access_clocks_per_word);
        let rate = |clocks: u32| 1.0 / f64::from(clocks);
        let mut capacities: Vec<f64> = match machine.link_clocks_range() {
            [least, most] if least < most => edge_clocks(machine)
                .zip(links)
                .map(|(clocks, &n)| f64::from(n) * rate(clocks))
                .collect(),
            [clocks, _] => links.iter().map(|&n| f64::from(n) * rate(clocks)).collect(),
        };
        let agents_never_limit = parameters.streams == 1 && capacities.iter().all(|&c| c <= access);
        capacities.resize(links.len() + ports, access);
        Self {
            set,
            costs,
            edges: to_u32(links.len()),
            ports,
            streams: parameters.streams,
            setup: f64::from(parameters.stream_setup),
            timed: parameters.has_timed_starts(),
            agents_never_limit,
            rates: MaxMinShare::new(capacities, Lists::new(0, [].into_iter())),
            connections: LocalIndex::new(set.len()),
        }
    }

    /// When each stream of a phase ends, in clocks from the start of the phase, if agents open
    /// their streams in the order of the list. The list must respect the order of the set.
    pub fn finish_times<'s>(
        &mut self,
        streams: impl Iterator<Item = ModelStream<'s>> + Clone,
    ) -> Vec<f64> {
        let set = self.set;
        // All ports of the machine take part, so their ids are their numbers.
        let ports_of = |connection| self.costs.ports(set.get(connection)).map(|port| port.0);
        let ports: Vec<[u32; 2]> =
            streams.clone().map(|stream| ports_of(stream.connection)).collect();
        let first = self.edges;
        let rows = streams.clone().zip(&ports).enumerate();
        let paths = rows.flat_map(|(row, (stream, both))| {
            let free = self.agents_never_limit && !stream.edges.is_empty();
            let ends = both.map(|port| first + port).into_iter().filter(move |_| !free);
            stream.edges.iter().copied().chain(ends).map(move |edge| (to_u32(row), edge))
        });
        let paths = Lists::new(ports.len(), paths);
        let listed = ports.iter().enumerate().flat_map(|(row, &[from, to])| {
            let other = (from != to).then_some((to, to_u32(row)));
            std::iter::once((from, to_u32(row))).chain(other)
        });
        let lists = Lists::new(self.ports, listed);
        let connections = streams.clone().map(|stream| stream.connection);
        let ordered = !set.order().is_empty();
        let timed = self.timed && streams.clone().any(|stream| stream.start > 0);
        let latency = |stream: ModelStream<'_>| {
            to_f64(self.costs.pipeline_latency(stream.edges.len(), set.get(stream.connection)))
        };
        let latencies = streams.clone().filter(|_| ordered || timed).map(latency).collect();
        let starts = streams.clone().filter(|_| timed).map(|stream| to_f64(stream.start)).collect();
        let overheads = match self.costs.has_overhead() {
            true => connections
                .clone()
                .map(|connection| to_f64(self.costs.overhead(set.get(connection))))
                .collect(),
            false => Vec::new(),
        };
        let precedence = PhasePrecedence::among(set, connections, &mut self.connections);
        let phase = fluid::FluidPhase {
            words: streams.map(|stream| stream.words).collect(),
            ports,
            lists,
            precedence: precedence.as_ref(),
            latencies,
            starts,
            streams: self.streams,
            setup: self.setup,
            overheads,
            links: self.edges,
        };
        self.rates.restart(paths);
        fluid::run(&phase, &mut self.rates).finish_times
    }
}

/// The clocks per word of the links of each edge. Edges are numbered by source and target.
fn edge_clocks(machine: &Machine) -> impl Iterator<Item = u32> + '_ {
    machine.cells().flat_map(|cell| {
        let links = machine.outgoing(cell).iter();
        let mut edges: Vec<(CellId, u32)> =
            links.map(|&link| (machine.link(link).target, machine.link_clocks(link))).collect();
        edges.sort_unstable();
        edges.dedup_by_key(|edge| edge.0);
        edges.into_iter().map(|edge| edge.1)
    })
}
