//! The precedence constraints between connections of one phase.
//!
//! The order of a set says which connections must finish before another starts. The router keeps it
//! between phases, the timetable inside a phase. A connection can have several routes (parts) in a
//! phase. The order holds between all parts of the predecessor and all parts of the successor, so
//! it is stored between *groups*: a group is all the routes of one connection in the phase.

use conset_ir::convert::to_u32;
use conset_ir::{ConnectionId, ConnectionSet, Lists, PhaseRoutes};

use crate::local_index::LocalIndex;

/// The precedence constraints inside one phase.
#[derive(Debug)]
pub(crate) struct PhasePrecedence {
    /// The group of each route.
    pub(crate) group: Vec<u32>,
    /// The routes of each group.
    pub(crate) routes: Lists,
    /// The groups that must finish before each group starts.
    pub(crate) predecessors: Lists,
    /// The groups that wait for each group.
    pub(crate) successors: Lists,
}

impl PhasePrecedence {
    /// The constraints inside a phase, or `None` if no two of its connections are ordered.
    /// `scratch` has a row for each connection of the set and is left clear. Each route costs at
    /// most a binary search in the order of the set.
    pub(crate) fn of(
        set: &ConnectionSet,
        routes: &PhaseRoutes,
        scratch: &mut LocalIndex<ConnectionId>,
    ) -> Option<Self> {
        Self::among(set, routes.iter().map(|route| route.connection), scratch)
    }

    /// The constraints among streams of these connections; see [`PhasePrecedence::of`].
    pub(crate) fn among(
        set: &ConnectionSet,
        connections: impl Iterator<Item = ConnectionId>,
        scratch: &mut LocalIndex<ConnectionId>,
    ) -> Option<Self> {
        let order = set.order();
        if order.is_empty() {
            return None;
        }
        let group: Vec<u32> = connections.map(|x| scratch.index_of(x)).collect();
        let mut pairs = Vec::new();
        for (before, &connection) in scratch.ids().iter().enumerate() {
            let from = order.partition_point(|pair| pair.0 < connection);
            for pair in order[from..].iter().take_while(|pair| pair.0 == connection) {
                if let Some(after) = scratch.get(pair.1) {
                    pairs.push((to_u32(before), after));
                }
            }
        }
        let groups = scratch.ids().len();
        scratch.clear();
        if pairs.is_empty() {
            return None;
        }
        let rows = group.iter().enumerate().map(|(row, &group)| (group, to_u32(row)));
        Some(Self {
            routes: Lists::new(groups, rows),
            predecessors: Lists::new(groups, pairs.iter().map(|&(before, after)| (after, before))),
            successors: Lists::new(groups, pairs.iter().copied()),
            group,
        })
    }
}
