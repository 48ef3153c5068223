//! Guaranteed bandwidth and latency during routing.
//!
//! Streams share a link in turns of one word (machine model, rule 3). So a route that shares its
//! links with at most `n - 1` others is guaranteed `1000 / (n * link_clocks)` words per 1000
//! clocks, and a latency of two accesses plus `n * link_clocks` for each link. A requirement is
//! therefore translated into two whole numbers: the greatest sharing `n` of any link on the route,
//! and (for a latency) the greatest number of links. The search keeps both, so its routes are
//! correct: an edge is closed to a route if the route itself, or another one there, would exceed
//! its sharing.
//!
//! The routes of an edge of several parallel links are divided evenly among the links, rounded up;
//! [`crate::channels`] assigns links so that this holds.
//!
//! The sharing that a latency permits is the same for all links of a route. A route could share one
//! link more if it shared another one less, but this is not used.
//!
//! Sets without requirements skip all of this at no cost.

use conset_ir::convert::{index, to_u32};
use conset_ir::{Connection, ConnectionId, ConnectionSet, Fix, Infeasible, Machine};

use crate::network::Network;

/// No limit.
pub(crate) const ANY: u32 = u32::MAX;

/// The limits of one connection's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    /// Routes on any of its links, including itself.
    pub(crate) sharing: u32,
    /// Links.
    pub(crate) hops: u32,
}

impl Requirement {
    const NONE: Requirement = Requirement { sharing: ANY, hops: ANY };

    /// The limits of a connection, given the hops of its shortest route.
    ///
    /// # Errors
    /// A message that says what is possible at best, and the fix.
    fn of(connection: &Connection, hops: u32, machine: &Machine) -> Result<Self, (String, Fix)> {
        let parameters = machine.parameters();
        // A route may need the slowest link.
        let [_, link] = machine.link_clocks_range().map(u64::from);
        let access = u64::from(parameters.access_clocks_per_word);
        let mut requirement = Requirement::NONE;
        if let Some(bandwidth) = connection.min_bandwidth {
            let clocks = if hops == 0 { access } else { access.max(link) };
            if u64::from(bandwidth) * clocks > 1000 {
                let best = 1000 / clocks;
                return Err((
                    format!(
                        "requires {bandwidth} words per 1000 clocks, but at most {best} are \
                         possible (one word every {clocks} clocks)"
                    ),
                    Fix::Other(match best {
                        0 => "remove the bandwidth requirement: the machine is slower than one \
                              word per 1000 clocks"
                            .to_owned(),
                        best => format!("require at most {best} words per 1000 clocks"),
                    }),
                ));
            }
            requirement.sharing =
                to_u32((1000 / (u64::from(bandwidth) * link)).min(u64::from(ANY)));
        }
        if let Some(latency) = connection.max_latency {
            let left = u64::from(latency).checked_sub(2 * access);
            let needed = link * u64::from(hops);
            let Some(left) = left.filter(|&left| left >= needed) else {
                let best = 2 * access + needed;
                return Err((
                    format!(
                        "requires a latency of {latency} clocks, but {best} clocks over {hops} \
                         links are the least possible"
                    ),
                    Fix::Other(format!("require a latency of {best} clocks or more")),
                ));
            };
            if let Some(turns) = left.checked_div(needed) {
                requirement.sharing = requirement.sharing.min(to_u32(turns.min(u64::from(ANY))));
                let each = link * u64::from(requirement.sharing);
                requirement.hops = to_u32((left / each).min(u64::from(ANY)));
            } else {
                requirement.hops = 0;
            }
        }
        Ok(requirement)
    }
}

/// The limits of all connections of a set, and the use of the edges in each phase.
#[derive(Clone, Debug)]
pub struct Requirements {
    requirements: Vec<Requirement>,
    edge_count: usize,
    /// Parallel links of each edge.
    links: Vec<u32>,
    /// Number of routes, by phase and edge.
    routes: Vec<u32>,
    /// The most routes allowed, by phase and edge: the limit of the strictest route there.
    limits: Vec<u32>,
}

impl Requirements {
    /// The requirements of a set, if it has any. `hops` are those of the shortest routes.
    ///
    /// # Errors
    /// A connection whose requirement no route can meet, with what is possible and the fix.
    pub fn new(
        machine: &Machine,
        network: &Network,
        set: &ConnectionSet,
        hops: &[u32],
    ) -> Result<Option<Self>, Infeasible> {
        if !set.has_requirements() {
            return Ok(None);
        }
        let mut requirements = Vec::with_capacity(set.len());
        for (id, connection) in set.iter() {
            match Requirement::of(connection, hops[id.index()], machine) {
                Ok(requirement) => requirements.push(requirement),
                Err((reason, fix)) => return Err(refused(set, id, &reason, fix)),
            }
        }
        let links = network.links.clone();
        Ok(Some(Self {
            requirements,
            edge_count: links.len(),
            links,
            routes: Vec::new(),
            limits: Vec::new(),
        }))
    }

    /// The limits of a connection.
    pub(crate) fn of(&self, connection: u32) -> Requirement {
        self.requirements[index(connection)]
    }

    /// The most routes on an edge that the requirement of a connection allows.
    pub fn most(&self, edge: usize, connection: u32) -> u32 {
        self.links[edge].saturating_mul(self.requirements[index(connection)].sharing)
    }

    /// Adds a phase at the end.
    pub(crate) fn open_phase(&mut self) {
        self.routes.resize(self.routes.len() + self.edge_count, 0);
        self.limits.resize(self.limits.len() + self.edge_count, ANY);
    }

    /// Removes an empty phase; later phases move up.
    pub(crate) fn close_phase(&mut self, phase: u32) {
        let range = index(phase) * self.edge_count..(index(phase) + 1) * self.edge_count;
        self.routes.drain(range.clone());
        self.limits.drain(range);
    }

    /// Whether one more route, with a sharing limit of its own, may use an edge.
    #[inline]
    pub(crate) fn is_open(&self, phase: u32, edge: usize, sharing: u32) -> bool {
        let at = index(phase) * self.edge_count + edge;
        self.routes[at] < self.limits[at].min(self.links[edge].saturating_mul(sharing))
    }

    /// Whether no edge has more routes than its strictest route allows, and none has parallel
    /// links.
    pub(crate) fn are_met(&self) -> bool {
        let shared = self.routes.iter().zip(&self.limits);
        self.links.iter().all(|&links| links <= 1) && shared.into_iter().all(|(u, m)| u <= m)
    }

    /// Records that a connection's route is now in a phase.
    pub(crate) fn insert(&mut self, network: &Network, phase: u32, connection: u32, route: &[u32]) {
        let sharing = self.requirements[index(connection)].sharing;
        for pair in route.windows(2) {
            let edge = network.next.edge(pair[0], pair[1]);
            let at = index(phase) * self.edge_count + edge;
            self.routes[at] += 1;
            self.limits[at] = self.limits[at].min(self.links[edge].saturating_mul(sharing));
        }
    }

    /// Records that a connection's route is no longer in a phase. `others` are the connections that
    /// remain, with their routes.
    pub(crate) fn remove<'a>(
        &mut self,
        network: &Network,
        phase: u32,
        connection: u32,
        route: &[u32],
        others: impl Iterator<Item = (u32, &'a [u32])>,
    ) {
        let base = index(phase) * self.edge_count;
        for pair in route.windows(2) {
            self.routes[base + network.next.edge(pair[0], pair[1])] -= 1;
        }
        if self.requirements[index(connection)].sharing == ANY {
            return;
        }
        // The limits of the strictest remaining routes are computed again.
        self.limits[base..base + self.edge_count].fill(ANY);
        for (other, route) in others {
            let sharing = self.requirements[index(other)].sharing;
            if sharing == ANY {
                continue;
            }
            for pair in route.windows(2) {
                let edge = network.next.edge(pair[0], pair[1]);
                let most = &mut self.limits[base + edge];
                *most = (*most).min(self.links[edge].saturating_mul(sharing));
            }
        }
    }
}

/// The error for a requirement that cannot be met.
fn refused(set: &ConnectionSet, id: ConnectionId, reason: &str, fix: Fix) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!("{id} {reason}"),
        overfull: Vec::new(),
        connections: vec![id],
        fixes: vec![fix, Fix::Drop(vec![id])],
    }
}
