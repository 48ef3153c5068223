//! Placement: which cell each part of the program lives on.
//!
//! Routes are short where parts that talk much are near each other, so the aim is few word-hops
//! (words times distance). Cells and parts are bisected together, over and over: the cells where
//! the machine is longest, the parts into two halves of matching sizes with few words between
//! them (sweeps and greedy growing, then Fiduccia-Mattheyses passes), where a part is
//! also drawn towards its partners in other regions. A bounded search then swaps neighbours while
//! that saves word-hops. Small programs get several tries. One more begins with part `i` on the
//! `i`-th live cell, which is best for patterns that are numbered like the machine.
//!
//! Fewer parts than cells get a compact region: a block of the grid, the first leaves of a
//! fat-tree, the neighbourhood of a cell in other graphs. Dead cells and switches hold no part.
//!
//! It looks at distances in the intact machine where that has coordinates (dead links may make
//! ways longer) and does not look at phases or channels.

mod bisect;
mod graph;
mod metric;
mod swap;

use conset_ir::{CellId, ConnectionSet, Fix, Infeasible, Machine, Topology};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::explain;
use crate::network::{Ball, Network};
use graph::PartGraph;
use metric::Metric;

/// Bisections tried, with other random choices, where they are cheap.
const TRIES: usize = 4;
/// Pairs of parts that talk, in all tries together, before those are cut down.
const WORK: usize = 1 << 15;
/// Pairs of parts that talk, beyond which one try has to do.
const LARGE: usize = 1 << 18;
/// Neighbourhoods tried for a region in a graph without coordinates.
const STARTS: usize = 16;

/// A cell for each part: `place[part]`. The set's cells are part numbers, from 0 to `parts`.
///
/// # Errors
/// More parts than live cells with an agent; a connection of a part that is not there.
pub fn place(
    machine: &Machine,
    set: &ConnectionSet,
    parts: usize,
    seed: u64,
) -> Result<Vec<CellId>, Infeasible> {
    let homes = machine.endpoints().count();
    if parts > homes {
        return Err(too_many_parts(set, parts, homes));
    }
    let stray = |c: &&conset_ir::Connection| c.source.index().max(c.target.index()) >= parts;
    if let Some(stray) = set.connections().iter().find(stray) {
        return Err(Infeasible {
            set: set.name().to_owned(),
            reason: format!(
                "a connection from part {} to part {}, but there are {parts} parts",
                stray.source.0, stray.target.0
            ),
            overfull: Vec::new(),
            connections: Vec::new(),
            fixes: vec![Fix::Other("give the number of parts that the set has".to_owned())],
        });
    }
    let network = Network::new(machine);
    let metric = Metric::new(machine, &network);
    let unrolled = metric.unrolled();
    let graph = PartGraph::new(set, parts);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let identity: Vec<u32> = machine.endpoints().take(parts).map(|cell| cell.0).collect();
    let cells = region(machine, &network, parts);
    let swaps = swap::Swaps::new(machine, &network);
    let finished = |mut place: Vec<u32>| {
        swaps.improve(&metric, &graph, &mut place);
        (swap::word_hops(&graph, &metric, &place), place)
    };
    let mut best = finished(identity);
    let least = if graph.len() > LARGE { 1 } else { 2 };
    let tries = (WORK / (graph.len() + parts).max(1)).clamp(least, TRIES);
    for turn in 0..tries {
        // Few programs are rings. On a torus as it is, the two sides of a region are equally far
        // from the region across, and parts can be led to either.
        let flat = if turn % 2 == 0 { &unrolled } else { &metric };
        let bisected = bisect::assign(machine, &network, flat, &graph, cells.clone(), &mut rng);
        let next = finished(bisected);
        if next.0 < best.0 {
            best = next;
        }
    }
    let place = best.1;
    Ok(place.into_iter().map(CellId).collect())
}

/// Words times distance of a set whose cells are cells of the machine, over live links.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way.
pub fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    crate::bounds::word_hops(machine, set)
}

fn too_many_parts(set: &ConnectionSet, parts: usize, homes: usize) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason: format!("{parts} parts do not fit on {homes} live cells, one to each"),
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes: vec![
            Fix::Other(format!("make at most {homes} parts (--parts {homes})")),
            Fix::Other(format!("take a machine of {parts} cells or more (--machine)")),
        ],
    }
}

/// The cells that get the parts: as many, close together.
fn region(machine: &Machine, network: &Network, parts: usize) -> Vec<u32> {
    let homes = machine.endpoints().map(|cell| cell.0);
    match machine.topology() {
        Topology::FatTree { .. } => homes.take(parts).collect(),
        Topology::Graph { .. } => neighbourhood(&homes.collect::<Vec<_>>(), network, parts),
        topology => match topology.dims() {
            Some(dims) => block(machine, &dims, parts),
            None => homes.take(parts).collect(),
        },
    }
}

/// The live cells of a block of the grid that is as long in each dimension as in the others,
/// where the grid allows.
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
        let volume = size.iter().fold(1usize, |v, &s| v.saturating_mul(s as usize));
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

/// The endpoints nearest to one of them, the one with the nearest of several tried.
fn neighbourhood(homes: &[u32], network: &Network, parts: usize) -> Vec<u32> {
    if parts == homes.len() {
        return homes.to_vec();
    }
    let mut is_home = vec![false; network.cells];
    for &home in homes {
        is_home[home as usize] = true;
    }
    let mut ball = Ball::new(network.cells);
    let mut best: Option<(std::cmp::Reverse<usize>, u64, Vec<u32>)> = None;
    for &start in homes.iter().step_by(homes.len().div_ceil(STARTS).max(1)) {
        let mut found = Vec::with_capacity(parts);
        let mut hops = 0;
        ball.grow(&network.next, start, |cell, distance| {
            if is_home[cell as usize] && found.len() < parts {
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
    // A graph in pieces: what is missing comes from anywhere.
    for &cell in &cells {
        is_home[cell as usize] = false;
    }
    let rest = homes.iter().copied().filter(|&home| is_home[home as usize]);
    let missing = parts - cells.len();
    cells.extend(rest.take(missing));
    cells
}

#[cfg(test)]
mod tests;
