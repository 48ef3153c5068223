//! Merges pairs of phases where this saves more than a context switch.
//!
//! The scheduler determines how long a phase of several rounds takes, and the fewest phases are
//! seldom the fastest (see `phase_packing`). So [`mergeable`] proposes pairs, the caller prices
//! them merged, and [`merge_phases`] applies those that save time. In an ordered set a phase is
//! merged only with the next one.

use std::collections::BTreeSet;

use conset_ir::Infeasible;
use conset_ir::convert::{index, to_u32};

use crate::portfolio::{Part, Routed, plan_of_parts};

/// Pairs of phases proposed before, each phase identified by its first connection.
pub type TriedPairs = BTreeSet<(u32, u32)>;

/// The maximum number of cells of all phases.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;

/// Pairs of phases that can be merged: the channels of every cell suffice for the routes of both.
///
/// The earlier phase comes first, and no phase occurs twice. Pairs in `tried` are omitted; those
/// returned are added to it. Returns no pairs for plans without rounds and for sets with required
/// bandwidths or latencies.
pub fn mergeable(plan: &Routed, tried: &mut TriedPairs) -> Vec<(u32, u32)> {
    let machine = plan.routing.machine();
    let phases = plan.routing.phases();
    let cells = machine.cell_count();
    if plan.rounds.is_none()
        || plan.routing.set().has_requirements()
        || phases.len().saturating_mul(cells) > TABLE_MEMORY_LIMIT
    {
        return Vec::new();
    }
    let mut taken = vec![0u32; phases.len() * cells];
    let mut names = Vec::with_capacity(phases.len());
    for (phase, routes) in plan.routing.iter() {
        let row = &mut taken[phase.index() * cells..][..cells];
        for route in routes.iter() {
            route.cells.iter().for_each(|cell| row[cell.index()] += 1);
        }
        names.push(routes.iter().map(|route| route.connection.0).min().unwrap_or(u32::MAX));
    }
    let channels = machine.parameters().channels_per_cell;
    let ordered = !plan.routing.set().order().is_empty();
    let fit = |a: usize, b: usize| {
        let (a, b) = (&taken[a * cells..][..cells], &taken[b * cells..][..cells]);
        a.iter().zip(b).all(|(a, b)| a + b <= channels)
    };
    let mut pairs = Vec::new();
    let mut paired = vec![false; phases.len()];
    for a in 0..phases.len() {
        let end = if ordered { (a + 2).min(phases.len()) } else { phases.len() };
        if paired[a] {
            continue;
        }
        let free = |&b: &usize| !paired[b] && !tried.contains(&(names[a], names[b])) && fit(a, b);
        if let Some(b) = (a + 1..end).find(free) {
            paired[b] = true;
            tried.insert((names[a], names[b]));
            pairs.push((to_u32(a), to_u32(b)));
        }
    }
    pairs
}

/// Merges pairs of phases from [`mergeable`]. The merged phase takes the place of the first.
///
/// # Errors
/// None for pairs from [`mergeable`].
pub fn merge_phases(plan: &Routed, pairs: &[(u32, u32)]) -> Result<Routed, Infeasible> {
    let mut phases: Vec<Vec<Part>> = Vec::with_capacity(plan.routing.phases().len());
    for (phase, routes) in plan.routing.iter() {
        let rounds = plan.rounds.as_ref().map(|rounds| &rounds[phase.index()]);
        let part = |(place, route): (usize, conset_ir::RouteRef<'_>)| Part {
            connection: route.connection.0,
            words: route.words,
            round: rounds.map_or(0, |rounds| rounds[place]),
            path: route.cells.iter().map(|cell| cell.0).collect(),
        };
        phases.push(routes.iter().enumerate().map(part).collect());
    }
    for &(a, b) in pairs {
        let more = std::mem::take(&mut phases[index(b)]);
        phases[index(a)].extend(more);
    }
    phases.retain(|parts| !parts.is_empty());
    plan_of_parts(plan.routing.machine(), plan.routing.set(), phases)
}
