//! Explains why a set does not fit into the allowed number of phases, with fixes that make it fit.
//!
//! There are three kinds of fixes: the number of phases that the router finds; a number of channels
//! that is enough (found by routing again, so it is known to work, and the least of those tried);
//! and connections to leave out (all connections of the surplus phases, the smallest phases first,
//! so the remaining set is known to fit).

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId, ConnectionSet, Fix, Infeasible, Machine, Overfull};

use super::RouterOptions;
use crate::bounds;
use crate::explain::NAMED;

/// Connections of a set up to which other channel counts are tried by routing.
const RETRY_LIMIT: usize = 1 << 16;

/// The error for more phases than allowed. `phase_of` is the phase of each connection as the router
/// found it.
pub(super) fn too_many_phases(
    machine: &Machine,
    set: &ConnectionSet,
    options: &RouterOptions,
    most: u32,
    phase_of: &[u32],
) -> Infeasible {
    let found = phase_of.iter().map(|&p| p + 1).max().unwrap_or(0);
    let overfull = overfull_cells(machine, set, most);
    let bound = bounds::bounds(machine, set).map_or(0, |b| b.summary().phases);
    let reason = if most == 0 {
        "no phase is allowed, but the set has connections".to_owned()
    } else if bound > most {
        format!("it needs at least {bound} phases, but the limit is {most}")
    } else {
        format!(
            "the router needs {found} phases, but the limit is {most} (the lower bound is {bound})"
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

/// The most overfull cells: those where more connections end than there are channels in all allowed
/// phases.
fn overfull_cells(machine: &Machine, set: &ConnectionSet, phases: u32) -> Vec<Overfull> {
    let available = u64::from(machine.parameters().channels_per_cell) * u64::from(phases);
    let wanted = bounds::endpoint_counts(machine, set);
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

/// The least number of channels, among those tried, with which the router stays within the phases.
/// Starts at the number that the lower bounds require, increases it in growing steps, then bisects
/// the last step.
fn channels_enough(
    machine: &Machine,
    set: &ConnectionSet,
    options: &RouterOptions,
    most: u32,
) -> Option<u32> {
    if most == 0 || set.len() > RETRY_LIMIT {
        return None;
    }
    let enough = |channels: u32| {
        let mut parameters = machine.parameters().clone();
        parameters.channels_per_cell = channels;
        let machine = machine.with_parameters(parameters).ok()?;
        let options = RouterOptions { max_phases: None, ..options.clone() };
        Some(super::phase_count(&machine, set, &options).ok()? <= most)
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

/// The connections of all phases except the `most` largest ones.
fn smallest_phases(phase_of: &[u32], found: u32, most: u32) -> Vec<ConnectionId> {
    let mut sizes = vec![0u32; index(found)];
    for &phase in phase_of {
        sizes[index(phase)] += 1;
    }
    let mut phases: Vec<u32> = (0..found).collect();
    phases.sort_by_key(|&p| (sizes[index(p)], p));
    let mut drop = vec![false; index(found)];
    for &phase in &phases[..index(found.saturating_sub(most))] {
        drop[index(phase)] = true;
    }
    let dropped = (0..phase_of.len()).filter(|&x| drop[index(phase_of[x])]);
    dropped.map(ConnectionId::from_index).collect()
}
