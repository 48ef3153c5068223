//! The cells to use if there are fewer parts than cells: a compact region.
//!
//! The region is a block of the grid, the first leaves of a fat-tree or cluster, or the neighbourhood of a
//! cell in other graphs. The search may still move a part to a free cell beside it.

use conset_ir::convert::index;
use conset_ir::{CellId, Machine, Topology};

use crate::network::{BoundedBfs, Network};

/// Neighbourhoods tried in a graph without coordinates.
const STARTS: usize = 16;

/// As many cells as parts, close together.
pub(super) fn region(machine: &Machine, network: &Network, parts: usize) -> Vec<u32> {
    let homes = machine.endpoints().map(|cell| cell.0);
    match machine.topology() {
        Topology::FatTree { .. } | Topology::Cluster { .. } => homes.take(parts).collect(),
        Topology::Graph { .. } => neighbourhood(&homes.collect::<Vec<_>>(), network, parts),
        topology => match topology.dims() {
            Some(dims) => block(machine, &dims, parts),
            None => homes.take(parts).collect(),
        },
    }
}

/// The live cells of a block of the grid whose dimensions are as equal as the grid allows.
fn block(machine: &Machine, dims: &[u32], parts: usize) -> Vec<u32> {
    let inside = |cell: CellId, size: &[u32]| {
        let mut rest = cell.0;
        dims.iter().zip(size).all(|(&d, &s)| {
            let at = rest % d;
            rest /= d;
            at < s
        })
    };
    let mut size = vec![1u32; dims.len()];
    loop {
        let volume = size.iter().fold(1usize, |v, &s| v.saturating_mul(index(s)));
        if volume >= parts || size == dims {
            let cells = machine.endpoints().filter(|&cell| inside(cell, &size));
            let cells: Vec<u32> = cells.map(|cell| cell.0).take(parts).collect();
            if cells.len() == parts {
                return cells;
            }
        }
        let open = (0..dims.len()).filter(|&d| size[d] < dims[d]);
        // The whole grid holds all endpoints, of which there are enough.
        let Some(shortest) = open.min_by_key(|&d| size[d]) else { return Vec::new() };
        size[shortest] += 1;
    }
}

/// The endpoints nearest to one endpoint, for the best of several that are tried.
fn neighbourhood(homes: &[u32], network: &Network, parts: usize) -> Vec<u32> {
    if parts == homes.len() {
        return homes.to_vec();
    }
    let mut is_home = vec![false; network.cells];
    for &home in homes {
        is_home[index(home)] = true;
    }
    let mut bfs = BoundedBfs::new(network.cells);
    let mut best: Option<(std::cmp::Reverse<usize>, u64, Vec<u32>)> = None;
    for &start in homes.iter().step_by(homes.len().div_ceil(STARTS).max(1)) {
        let mut found = Vec::with_capacity(parts);
        let mut hops = 0;
        bfs.run(&network.next, start, |cell, distance| {
            if is_home[index(cell)] && found.len() < parts {
                found.push(cell);
                hops += u64::from(distance);
            }
            found.len() == parts
        });
        let key = (std::cmp::Reverse(found.len()), hops, found);
        if best.as_ref().is_none_or(|b| (key.0, key.1) < (b.0, b.1)) {
            best = Some(key);
        }
    }
    let mut cells = best.map_or_else(Vec::new, |b| b.2);
    // In a disconnected graph the rest comes from anywhere.
    for &cell in &cells {
        is_home[index(cell)] = false;
    }
    let rest = homes.iter().copied().filter(|&home| is_home[index(home)]);
    let missing = parts - cells.len();
    cells.extend(rest.take(missing));
    cells
}
