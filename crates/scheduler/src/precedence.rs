//! The order between connections that meet in one phase.
//!
//! A set's order says which connection is finished before which starts. Between phases the
//! router keeps it; inside a phase the timetable does. A connection can have several routes
//! (parts) in a phase; the order holds between all parts of the one and all parts of the other,
//! so it is kept between *groups*, the connections present, and never spelled out part by part.

use conset_ir::{ConnectionId, ConnectionSet, Lists, PhaseRoutes};

use crate::local_index::LocalIndex;

/// The order inside one phase.
#[derive(Debug)]
pub(crate) struct PhasePrecedence {
    /// The group of each route.
    pub(crate) group: Vec<u32>,
    /// The routes of each group.
    pub(crate) routes: Lists,
    /// The groups that must be finished before each group starts.
    pub(crate) predecessors: Lists,
    /// The groups that wait for each group.
    pub(crate) successors: Lists,
}

impl PhasePrecedence {
    /// The order inside a phase, or `None` where nothing is ordered. `scratch` has a row per
    /// connection of the set and is left clear. Each route costs a binary search in the set's
    /// order at most.
    pub(crate) fn of(
        set: &ConnectionSet,
        routes: &PhaseRoutes,
        scratch: &mut LocalIndex,
    ) -> Option<Self> {
        Self::among(set, routes.iter().map(|route| route.connection), scratch)
    }

    /// The same of streams that carry these connections.
    pub(crate) fn among(
        set: &ConnectionSet,
        connections: impl Iterator<Item = ConnectionId>,
        scratch: &mut LocalIndex,
    ) -> Option<Self> {
        let order = set.order();
        if order.is_empty() {
            return None;
        }
        let group: Vec<u32> = connections.map(|x| scratch.index_of(x.0)).collect();
        let mut pairs = Vec::new();
        for (before, &connection) in scratch.rows().iter().enumerate() {
            let from = order.partition_point(|pair| pair.0.0 < connection);
            for pair in order[from..].iter().take_while(|pair| pair.0.0 == connection) {
                if let Some(after) = scratch.get(pair.1.0) {
                    pairs.push((before as u32, after));
                }
            }
        }
        let groups = scratch.rows().len();
        scratch.clear();
        if pairs.is_empty() {
            return None;
        }
        let rows = group.iter().enumerate().map(|(row, &group)| (group, row as u32));
        Some(Self {
            routes: Lists::new(groups, rows),
            predecessors: Lists::new(groups, pairs.iter().map(|&(before, after)| (after, before))),
            successors: Lists::new(groups, pairs.iter().copied()),
            group,
        })
    }
}
