//! The cost model for phases that are not made yet.
//!
//! A search that changes a plan a little, again and again, wants to know what a change comes to
//! before channels are numbered and slots are given. A sketch of a phase is a list of streams in
//! the order in which agents open them, each with the places (edges of the network) on its way;
//! it runs as [`mod@crate::predict`] would run it, and says when each stream is over.
//!
//! # What it leaves out
//!
//! What the cost model leaves out; and parallel links between two cells are one place with room
//! for all of them, though each stream takes one.

use conset_ir::{ConnectionId, ConnectionSet, Lists, Machine};

use crate::cost::{Compact, Costs};
use crate::fair::Fair;
use crate::fluid;
use crate::order::PhaseOrder;

/// A stream of a phase under construction.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// Whose words it carries.
    pub connection: ConnectionId,
    /// Words, at least 1.
    pub words: u32,
    /// The places on its way, each once, numbered as their links were given.
    pub places: &'a [u32],
    /// On a machine with timed starts the clock before which no agent opens it; 0 is at once.
    pub start: u64,
}

/// A machine that runs sketches of a set's phases.
#[derive(Debug)]
pub struct Sketch<'a> {
    set: &'a ConnectionSet,
    costs: Costs,
    places: u32,
    ports: usize,
    streams: u32,
    setup: f64,
    timed: bool,
    /// Whether a stream over links never gets more of a link than its agents take: then agents,
    /// which have one stream at a time, share nothing out.
    narrow: bool,
    fair: Fair,
    connections: Compact,
}

impl<'a> Sketch<'a> {
    /// `links` has the links of each place, at least 1.
    pub fn new(machine: &Machine, set: &'a ConnectionSet, links: &[u32]) -> Self {
        let parameters = machine.parameters();
        let costs = Costs::new(parameters);
        let ports = costs.side_count(machine);
        let link = 1.0 / f64::from(parameters.link_clocks_per_word);
        let access = 1.0 / f64::from(parameters.access_clocks_per_word);
        let mut capacities: Vec<f64> = links.iter().map(|&n| f64::from(n) * link).collect();
        let narrow = parameters.streams == 1 && capacities.iter().all(|&c| c <= access);
        capacities.resize(links.len() + ports, access);
        Self {
            set,
            costs,
            places: links.len() as u32,
            ports,
            streams: parameters.streams,
            setup: f64::from(parameters.stream_setup),
            timed: parameters.has_timed_starts(),
            narrow,
            fair: Fair::new(capacities, Lists::new(0, [].into_iter())),
            connections: Compact::new(set.len()),
        }
    }

    /// When each stream of a phase is over, in clocks from the phase's beginning, if agents open
    /// their streams in the order of the list. Streams keep the set's order in their list.
    pub fn ends<'s>(&mut self, streams: impl Iterator<Item = Stream<'s>> + Clone) -> Vec<f64> {
        let set = self.set;
        let ports: Vec<[u32; 2]> =
            streams.clone().map(|stream| self.costs.sides(set.get(stream.connection))).collect();
        let first = self.places;
        let rows = streams.clone().zip(&ports).enumerate();
        let ways = rows.flat_map(|(row, (stream, both))| {
            let free = self.narrow && !stream.places.is_empty();
            let ends = both.map(|port| first + port).into_iter().filter(move |_| !free);
            stream.places.iter().copied().chain(ends).map(move |place| (row as u32, place))
        });
        let ways = Lists::new(ports.len(), ways);
        let listed = ports.iter().enumerate().flat_map(|(row, &[from, to])| {
            let other = (from != to).then_some((to, row as u32));
            std::iter::once((from, row as u32)).chain(other)
        });
        let lists = Lists::new(self.ports, listed);
        let connections = streams.clone().map(|stream| stream.connection);
        let (ordered, timed) = (!set.order().is_empty(), self.timed);
        let flight = |stream: Stream<'_>| {
            self.costs.flight(stream.places.len(), set.get(stream.connection)) as f64
        };
        let flights = streams.clone().filter(|_| ordered || timed).map(flight).collect();
        let starts = streams.clone().filter(|_| timed).map(|stream| stream.start as f64).collect();
        let order = PhaseOrder::among(set, connections, &mut self.connections);
        let phase = fluid::Phase {
            words: streams.map(|stream| stream.words).collect(),
            ports,
            lists,
            order: order.as_ref(),
            flights,
            starts,
            streams: self.streams,
            setup: self.setup,
            links: self.places,
        };
        self.fair.restart(ways);
        fluid::run(&phase, &mut self.fair).ends
    }
}
