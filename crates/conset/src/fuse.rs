//! Merging several sets into one, so that they share phases and context switches.
//!
//! A program that exchanges two sets one after the other switches contexts for each. If what the
//! second set sends does not depend on what the first one receives, both can be exchanged at the
//! same time, as one set whose connections use the channels that either set alone leaves free. The
//! caller says which sets may be merged, because their dependences are in the program and not in
//! the sets; the compiler merges them if that is faster ([`crate::Compiler::fuse`]).
//!
//! The name of the merged set joins the names of its members by dots. Its connections are those of
//! the first member in their order, then those of the second, and so on, with their names, order
//! and requirements; a name that two members use is prefixed with the name of its set. Lists of
//! nodes are kept if all members have them. The merged set takes the place of its first member.

use std::collections::HashSet;

use conset_ir::convert::to_u32;
use conset_ir::{At, ConnectionId, ConnectionSet, InputError, NodeLists, Program, ShapeError};

/// The decision about one group of sets that could be merged.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Fusion {
    /// The names of the sets.
    pub sets: Vec<String>,
    /// Whether the sets were merged, because that is faster.
    pub fused: bool,
    /// Phases of the separate sets together.
    pub phases_apart: usize,
    /// Phases of the merged set.
    pub phases_fused: usize,
    /// Predicted clocks of the separate sets together.
    pub clocks_apart: u64,
    /// Predicted clocks of the merged set.
    pub clocks_fused: u64,
}

/// An error about the groups.
pub(crate) fn error(message: String) -> InputError {
    InputError::new("<fuse>", At::Whole, message)
}

/// The rows of the sets of each group, ascending.
///
/// # Errors
/// A group of fewer than two sets; a name that no set has or that occurs twice.
pub(crate) fn members(
    program: &Program,
    groups: &[Vec<String>],
) -> Result<Vec<Vec<usize>>, InputError> {
    let mut used = HashSet::new();
    let mut all = Vec::new();
    for group in groups {
        let mut rows = Vec::new();
        for name in group {
            let row = program.sets().iter().position(|set| set.name() == name);
            let row = row.ok_or_else(|| {
                let names: Vec<&str> = program.sets().iter().map(|set| set.name()).collect();
                error(format!("there is no set `{name}`"))
                    .help(format!("the sets are {}", names.join(", ")))
            })?;
            if !used.insert(row) {
                return Err(error(format!("set `{name}` is named twice")));
            }
            rows.push(row);
        }
        if rows.len() < 2 {
            return Err(error("one set alone cannot be merged; name two or more".into()));
        }
        rows.sort_unstable();
        all.push(rows);
    }
    Ok(all)
}

/// The merged set of a group.
///
/// # Errors
/// A set beyond the limits.
pub(crate) fn merge(program: &Program, rows: &[usize]) -> Result<ConnectionSet, InputError> {
    let sets = || rows.iter().map(|&row| &program.sets()[row]);
    let mut names = HashSet::new();
    let all = || sets().flat_map(|set| set.connections()).filter_map(|c| c.name.as_deref());
    let duplicates: HashSet<&str> = all().filter(|name| !names.insert(*name)).collect();
    let mut connections = Vec::new();
    let mut order = Vec::new();
    for set in sets() {
        let first = to_u32(connections.len());
        let shifted = |id: ConnectionId| ConnectionId(first + id.0);
        order.extend(set.order().iter().map(|&(a, b)| (shifted(a), shifted(b))));
        connections.extend(set.connections().iter().cloned().map(|mut connection| {
            if let Some(name) = connection.name.as_deref().filter(|name| duplicates.contains(name))
            {
                connection.name = Some(format!("{}.{name}", set.name()).into());
            }
            connection
        }));
    }
    let beyond = |e: ShapeError| error(format!("{}: {}", e.place, e.message));
    let name: Vec<&str> = sets().map(|set| set.name()).collect();
    let merged = ConnectionSet::new(name.join("."), connections).map_err(beyond)?;
    let merged = merged.with_order(order).map_err(beyond)?;
    if sets().all(|set| set.is_empty() || set.nodes().is_some()) {
        let lists = sets().filter_map(|set| Some((set, set.nodes()?)));
        let lists = lists.flat_map(|(set, nodes)| set.iter().map(|(id, _)| nodes.of(id)));
        return merged.with_nodes(NodeLists::from_lists(lists)).map_err(beyond);
    }
    Ok(merged)
}
