//! Why a set does not fit: the witness, and the cheapest fixes.
//!
//! A set does not fit for one of four reasons: its ends are not the machine's, a connection has
//! no way over live links, a requirement is beyond what any route gives (see the router), or the
//! phases allowed are too few. Only the last has fixes that need work: how many phases the router
//! finds, how many channels would be enough (tried by routing again, so the number is one that
//! works, and the least of those tried), and which connections to leave out (those of the phases
//! that are too many, the smallest phases first, so what is left is known to fit).
//!
//! It does not claim that a set which the router could not fit is impossible, unless a lower
//! bound says so; the reason tells which of the two it is.

use conset_ir::{ConnectionId, ConnectionSet, Fix, Infeasible, Machine, ShapeError};

/// Connections and cells that a witness names.
pub(crate) const NAMED: usize = 64;

/// A set whose ends are not the machine's.
pub fn misshapen(set: &ConnectionSet, error: &ShapeError) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!("{}: {}", error.place, error.message),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![Fix::Other(
            "name ends that are live cells of the machine, or take a larger machine".to_owned(),
        )],
    }
}

/// Connections (by number) whose target cannot be reached over live links.
pub(crate) fn unreachable(
    machine: &Machine,
    set: &ConnectionSet,
    cut: impl Iterator<Item = usize>,
) -> Infeasible {
    let ids: Vec<ConnectionId> = cut.map(ConnectionId::from_index).collect();
    let first = set.get(ids[0]);
    let dead = machine.dead_cells().len() + machine.dead_links().len();
    let mut fixes = vec![Fix::Drop(ids.clone())];
    if dead > 0 {
        fixes.push(Fix::Other(format!(
            "repair one of the {dead} dead cells and links that stand in the way"
        )));
    } else {
        fixes.push(Fix::Other("add links to the machine's graph".to_owned()));
    }
    let named = ids.iter().copied().take(NAMED).collect();
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "no way leads from {} to {} over live links ({})",
            first.source, first.target, ids[0]
        ),
        overfull: Vec::new(),
        connections: named,
        fixes,
    }
}

/// A set whose copies of the graph would not fit into memory.
pub(crate) fn too_large(
    set: &ConnectionSet,
    phases: u32,
    cells: usize,
    limit: usize,
) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "the router needs {phases} or more phases of {cells} cells, but holds at most {limit} \
             cells in all phases together"
        ),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![Fix::Other("give each cell more channels, or split the set".to_owned())],
    }
}

/// Routes that are too long in all, however they are chosen.
pub(crate) fn too_long(set: &ConnectionSet, channels: u128, most: u128) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "{} connections take {channels} channels over shortest routes, and {most} is the \
             memory budget of a set of this size on this machine",
            set.len()
        ),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![
            Fix::Other(
                "split the set into several, or take a smaller machine, where routes are shorter"
                    .to_owned(),
            ),
            Fix::Other(format!(
                "lift the budget (unlimited), if there are {:.1} GB of memory",
                channels as f64 * BYTES / 1e9
            )),
        ],
    }
}

/// Bytes for each channel of a route while a set is compiled, about: routes, slots, tables.
const BYTES: f64 = 80.0;
