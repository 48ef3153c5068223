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

use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Fix, Infeasible, Machine, Overfull, ShapeError,
};

use crate::apr::{self, Options};
use crate::bounds;

/// Connections and cells that a witness names.
const NAMED: usize = 64;
/// Connections of a set up to which other channel counts are tried by routing.
const TRIED: usize = 1 << 16;

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
pub(crate) fn too_large(set: &ConnectionSet, phases: u32, cells: usize) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!(
            "{phases} phases or more over {cells} cells are beyond what the router holds \
             ({} cells in all phases together)",
            apr::COPIED_CELLS
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

/// More phases than allowed. `phase_of` is the phase of each connection as the router found them.
pub(crate) fn too_many_phases(
    machine: &Machine,
    set: &ConnectionSet,
    options: &Options,
    most: u32,
    phase_of: &[u32],
) -> Infeasible {
    let found = phase_of.iter().map(|&p| p + 1).max().unwrap_or(0);
    let overfull = overfull_cells(machine, set, most);
    let bound = bounds::bounds(machine, set).map_or(0, |b| b.summary().phases);
    let reason = if most == 0 {
        "no phase is allowed, and the set has connections".to_owned()
    } else if bound > most {
        format!("it needs at least {bound} phases, and {most} are allowed")
    } else {
        format!(
            "the router needs {found} phases, and {most} are allowed (no fewer than {bound} are \
             possible)"
        )
    };
    let mut fixes = vec![Fix::Phases(found)];
    if let Some(channels) = channels_enough(machine, set, options, most) {
        fixes.push(Fix::ChannelsPerCell(channels));
    }
    let drop = smallest_phases(phase_of, found, most);
    let named = drop.iter().copied().take(NAMED).collect();
    fixes.push(Fix::Drop(drop));
    Infeasible { set: set.name().to_owned(), reason, overfull, connections: named, fixes }
}

/// Cells where more connections end than there are channels in all phases allowed, the worst
/// first.
fn overfull_cells(machine: &Machine, set: &ConnectionSet, phases: u32) -> Vec<Overfull> {
    let available = u64::from(machine.parameters().channels_per_cell) * u64::from(phases);
    let mut wanted = vec![0u64; machine.cell_count()];
    for connection in set.connections() {
        wanted[connection.source.index()] += 1;
        if connection.source != connection.target {
            wanted[connection.target.index()] += 1;
        }
    }
    let mut cells: Vec<usize> = (0..wanted.len()).filter(|&c| wanted[c] > available).collect();
    cells.sort_by_key(|&c| (std::cmp::Reverse(wanted[c]), c));
    cells.truncate(NAMED);
    cells
        .into_iter()
        .map(|cell| {
            let id = CellId::from_index(cell);
            let touching = set.iter().filter(|(_, c)| c.source == id || c.target == id);
            Overfull {
                cell: id,
                needed: wanted[cell],
                phases,
                channels_per_cell: machine.parameters().channels_per_cell,
                connections: touching.map(|(id, _)| id).take(NAMED).collect(),
            }
        })
        .collect()
}

/// The least number of channels, among those tried, with which the router keeps to the phases:
/// upwards from what the lower bounds ask for, in growing steps, then halving the last step.
fn channels_enough(
    machine: &Machine,
    set: &ConnectionSet,
    options: &Options,
    most: u32,
) -> Option<u32> {
    if most == 0 || set.len() > TRIED {
        return None;
    }
    let enough = |channels: u32| {
        let mut parameters = machine.parameters().clone();
        parameters.channels_per_cell = channels;
        let machine = machine.with_parameters(parameters).ok()?;
        let options = Options { max_phases: None, ..options.clone() };
        Some(apr::phases_needed(&machine, set, &options).ok()? <= most)
    };
    let now = machine.parameters().channels_per_cell;
    let least = bounds::fewest_channels(machine, set, most).ok()?.max(u64::from(now) + 1);
    let mut low = u32::try_from(least).ok()?;
    let mut step = 1;
    let mut high = low;
    while !enough(high)? {
        low = high + 1;
        high = high.checked_add(step)?;
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// The connections of the phases with the fewest, all but `most` of them.
fn smallest_phases(phase_of: &[u32], found: u32, most: u32) -> Vec<ConnectionId> {
    let mut sizes = vec![0u32; found as usize];
    for &phase in phase_of {
        sizes[phase as usize] += 1;
    }
    let mut phases: Vec<u32> = (0..found).collect();
    phases.sort_by_key(|&p| (sizes[p as usize], p));
    let mut drop = vec![false; found as usize];
    for &phase in &phases[..found.saturating_sub(most) as usize] {
        drop[phase as usize] = true;
    }
    let dropped = (0..phase_of.len()).filter(|&x| drop[phase_of[x] as usize]);
    dropped.map(ConnectionId::from_index).collect()
}
