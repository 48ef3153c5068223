//! Assigns channel numbers, and one of several parallel links.
//!
//! The routes of a phase hold their channels at the same time. On each cell a route gets the lowest
//! number not in use there, routes in the order of their connections. Of several parallel links a
//! route gets the one with the fewest routes so far, of equal ones the lowest, so that routes are
//! spread evenly.
//!
//! Capacity is not checked here: more routes on a cell than channels would get numbers that do not
//! exist. The router respects the capacity, and the checker verifies it.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, LinkId, Lists, Machine, PhaseRoutes, Routing,
    ShapeError,
};

use crate::network::Network;

/// The live links of each edge of the network.
pub(crate) struct EdgeLinks(Lists);

impl EdgeLinks {
    /// The live links of every edge.
    pub(crate) fn new(machine: &Machine, network: &Network) -> Self {
        let links: Vec<_> = machine
            .cells()
            .flat_map(|cell| machine.outgoing(cell))
            .map(|&link| {
                let ends = machine.link(link);
                (to_u32(network.next.edge(ends.source.0, ends.target.0)), link.0)
            })
            .collect();
        Self(Lists::new(network.next.edge_count(), links.into_iter()))
    }

    /// The link of an edge with the least load, of equal ones the lowest.
    pub(crate) fn least_loaded(&self, edge: usize, load: &[u32]) -> LinkId {
        let links = self.0.of(to_u32(edge)).iter().map(|&link| LinkId(link));
        links.min_by_key(|link| load[link.index()]).expect("an edge stands for at least one link")
    }
}

/// Makes a routing of paths: assigns channels and links. `paths(phase)` gives the connections of a
/// phase with their cells, in the order in which they are numbered.
///
/// # Errors
/// None for paths over live links between the endpoints of the set; see [`Routing::new`].
pub fn number<'a, P>(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    network: &Network,
    phases: u32,
    paths: impl Fn(u32) -> P,
) -> Result<Routing, ShapeError>
where
    P: Iterator<Item = (u32, &'a [u32])>,
{
    number_parts(machine, set, network, phases, |phase| {
        paths(phase).map(|(x, path)| (x, set.get(ConnectionId(x)).words, path))
    })
}

/// As [`number`], for routes that may carry a part of a connection: `parts(phase)` gives
/// connections with words and cells.
///
/// # Errors
/// As [`number`].
pub fn number_parts<'a, P>(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    network: &Network,
    phases: u32,
    parts: impl Fn(u32) -> P,
) -> Result<Routing, ShapeError>
where
    P: Iterator<Item = (u32, u32, &'a [u32])>,
{
    let links = EdgeLinks::new(machine, network);
    let mut next_channel = vec![0u32; network.cells];
    let mut link_load = vec![0u32; machine.link_count()];
    let mut taken: (Vec<CellId>, Vec<LinkId>, Vec<ChannelId>) = Default::default();
    let mut routed = Vec::with_capacity(index(phases));
    for phase in 0..phases {
        let mut routes = PhaseRoutes::new();
        for (connection, words, path) in parts(phase) {
            taken.0.clear();
            taken.1.clear();
            taken.2.clear();
            for &cell in path {
                taken.0.push(CellId(cell));
                taken.2.push(ChannelId(next_channel[index(cell)]));
                next_channel[index(cell)] += 1;
            }
            for pair in path.windows(2) {
                let edge = network.next.edge(pair[0], pair[1]);
                let link = links.least_loaded(edge, &link_load);
                link_load[link.index()] += 1;
                taken.1.push(link);
            }
            routes.push(ConnectionId(connection), words, &taken.0, &taken.1, &taken.2)?;
        }
        for route in routes.iter() {
            route.cells.iter().for_each(|cell| next_channel[cell.index()] = 0);
            route.links().iter().for_each(|link| link_load[link.index()] = 0);
        }
        routed.push(routes);
    }
    Routing::new(machine.clone(), set.clone(), routed)
}
