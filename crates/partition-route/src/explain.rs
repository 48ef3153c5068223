//! Errors of sets that cannot be routed, with a witness and the cheapest fixes.
//!
//! A set does not fit for one of these reasons: an endpoint is not a cell of the machine, a
//! connection has no path over live links, a requirement exceeds what any route can provide (module
//! `apr::requirements`), the routes exceed a memory limit, or the allowed phases are too few. The
//! last one has fixes that must be computed by routing again (module `apr::phase_limit`); the
//! others are made here.
//!
//! A set that the router could not fit is not claimed to be impossible unless a lower bound proves
//! it; the reason says which of the two it is.

use conset_ir::{ConnectionId, ConnectionSet, Fix, Infeasible, Machine, ShapeError};

use crate::wide::wide_to_f64;

/// The most connections and cells that a witness names.
pub(crate) const NAMED: usize = 64;

/// A set with an endpoint that is not a live cell of the machine.
pub fn misshapen(set: &ConnectionSet, error: &ShapeError) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!("{}: {}", error.place, error.message),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![Fix::Other(
            "use endpoints that are live cells of the machine, or a larger machine".to_owned(),
        )],
    }
}

/// Connections (by number) whose targets cannot be reached over live links.
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
        fixes.push(Fix::Other(format!("repair one of the {dead} dead cells and links")));
    } else {
        fixes.push(Fix::Other("add links to the machine's graph".to_owned()));
    }
    let named = ids.iter().copied().take(NAMED).collect();
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "no path leads from {} to {} over live links ({})",
            first.source, first.target, ids[0]
        ),
        overfull: Vec::new(),
        connections: named,
        fixes,
    }
}

/// A set that needs more cells in all phases together than the router holds.
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

/// A set whose shortest routes exceed the memory budget.
pub(crate) fn too_long(set: &ConnectionSet, channels: u128, most: u128) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "shortest routes for {} connections take {channels} channels, which exceeds the memory \
             budget of {most} channels for a set of this size on this machine",
            set.len()
        ),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![
            Fix::Other(
                "run the set in batches, or use a smaller machine, where \
                 routes are shorter"
                    .to_owned(),
            ),
            Fix::Other(format!(
                "lift the memory budget (unlimited) if {:.1} GB of memory are available",
                wide_to_f64(channels) * BYTES / 1e9
            )),
        ],
    }
}

/// Approximate memory for each channel of a route during compilation, in bytes: routes, slots,
/// tables.
const BYTES: f64 = 80.0;
