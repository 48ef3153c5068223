//! The cost model for phases that are not made yet.
//!
//! A search that changes a plan a little, again and again, wants to know what a change comes to
//! before channels are numbered and slots are given. A model of a phase is a list of streams in
//! the order in which agents open them, each with the edges (edges of the network) on its way;
//! it runs as [`mod@crate::predict`] would run it, and says when each stream is over.
//!
//! # What it leaves out
//!
//! What the cost model leaves out; and parallel links between two cells are one place with room
//! for all of them, though each stream takes one.

use conset_ir::{ConnectionId, ConnectionSet, Lists, Machine};

use crate::cost::StreamCosts;
use crate::fluid;
use crate::local_index::LocalIndex;
use crate::max_min_share::MaxMinShare;
use crate::precedence::PhasePrecedence;

/// A stream of a phase under construction.
#[derive(Clone, Copy, Debug)]
pub struct ModelStream<'a> {
    /// Whose words it carries.
    pub connection: ConnectionId,
    /// Words, at least 1.
    pub words: u32,
    /// The edges on its way, each once, numbered as their links were given.
    pub edges: &'a [u32],
    /// On a machine with timed starts the clock before which no agent opens it; 0 is at once. A
    /// phase in which all are 0 runs as on any other machine.
    pub start: u64,
}

/// A machine that runs sketches of a set's phases.
#[derive(Debug)]
pub struct PhaseModel<'a> {
    set: &'a ConnectionSet,
    costs: StreamCosts,
    edges: u32,
    ports: usize,
    streams: u32,
    setup: f64,
    timed: bool,
    /// Whether a stream over links never gets more of a link than its agents take: then agents,
    /// which have one stream at a time, share nothing out.
    agents_never_limit: bool,
    rates: MaxMinShare,
    connections: LocalIndex,
}

impl<'a> PhaseModel<'a> {
    /// `links` has the links of each place, at least 1.
    pub fn new(machine: &Machine, set: &'a ConnectionSet, links: &[u32]) -> Self {
        let parameters = machine.parameters();
        let costs = StreamCosts::new(parameters);
        let ports = costs.port_count(machine);
        let link = 1.0 / f64::from(parameters.link_clocks_per_word);
        let access = 1.0 / f64::from(parameters.access_clocks_per_word);
        let mut capacities: Vec<f64> = links.iter().map(|&n| f64::from(n) * link).collect();
        let agents_never_limit = parameters.streams == 1 && capacities.iter().all(|&c| c <= access);
        capacities.resize(links.len() + ports, access);
        Self {
            set,
            costs,
            edges: links.len() as u32,
            ports,
            streams: parameters.streams,
            setup: f64::from(parameters.stream_setup),
            timed: parameters.has_timed_starts(),
            agents_never_limit,
            rates: MaxMinShare::new(capacities, Lists::new(0, [].into_iter())),
            connections: LocalIndex::new(set.len()),
        }
    }

    /// When each stream of a phase is over, in clocks from the phase's beginning, if agents open
    /// their streams in the order of the list. Streams keep the set's order in their list.
    pub fn finish_times<'s>(
        &mut self,
        streams: impl Iterator<Item = ModelStream<'s>> + Clone,
    ) -> Vec<f64> {
        let set = self.set;
        let ports: Vec<[u32; 2]> =
            streams.clone().map(|stream| self.costs.ports(set.get(stream.connection))).collect();
        let first = self.edges;
        let rows = streams.clone().zip(&ports).enumerate();
        let paths = rows.flat_map(|(row, (stream, both))| {
            let free = self.agents_never_limit && !stream.edges.is_empty();
            let ends = both.map(|port| first + port).into_iter().filter(move |_| !free);
            stream.edges.iter().copied().chain(ends).map(move |edge| (row as u32, edge))
        });
        let paths = Lists::new(ports.len(), paths);
        let listed = ports.iter().enumerate().flat_map(|(row, &[from, to])| {
            let other = (from != to).then_some((to, row as u32));
            std::iter::once((from, row as u32)).chain(other)
        });
        let lists = Lists::new(self.ports, listed);
        let connections = streams.clone().map(|stream| stream.connection);
        let ordered = !set.order().is_empty();
        let timed = self.timed && streams.clone().any(|stream| stream.start > 0);
        let latency = |stream: ModelStream<'_>| {
            self.costs.pipeline_latency(stream.edges.len(), set.get(stream.connection)) as f64
        };
        let latencies = streams.clone().filter(|_| ordered || timed).map(latency).collect();
        let starts = streams.clone().filter(|_| timed).map(|stream| stream.start as f64).collect();
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
            links: self.edges,
        };
        self.rates.restart(paths);
        fluid::run(&phase, &mut self.rates).finish_times
    }
}
