//! The definition of each pattern.
//!
//! A builder takes its parameters, announces how many connections it will make at most (so that
//! a hopeless request is refused before it costs memory), and sends.

use conset_ir::{CellId, Connection, ConnectionId, Result, limits};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cells::{Cells, Grid, near_square};
use super::spec::Spec;

/// The connections of a pattern under construction.
pub(super) struct Sends {
    pub(super) connections: Vec<Connection>,
    pub(super) order: Vec<(ConnectionId, ConnectionId)>,
    /// Words of the next connection.
    words: u32,
}

impl Sends {
    pub(super) fn new(words: u32) -> Self {
        Self { connections: Vec::new(), order: Vec::new(), words }
    }

    /// Makes room for at most `count` connections, or refuses.
    fn reserve(&mut self, spec: &Spec<'_>, count: usize) -> Result<()> {
        if count > limits::CONNECTIONS {
            return Err(spec.error(format!(
                "{count} connections on this machine, at most {}",
                limits::CONNECTIONS
            )));
        }
        self.connections.reserve_exact(count);
        Ok(())
    }

    /// Adds a connection; `None` from a cell to itself.
    fn send(&mut self, source: CellId, target: CellId) -> Option<ConnectionId> {
        if source == target {
            return None;
        }
        let id = ConnectionId::from_index(self.connections.len());
        self.connections.push(Connection::new(source, target, self.words));
        Some(id)
    }

    /// Adds a connection between two places; `None` also if one of them is dead.
    fn send_places(&mut self, grid: &Grid, source: usize, target: usize) -> Option<ConnectionId> {
        self.send(grid.places[source]?, grid.places[target]?)
    }
}

/// Each place to the next and the previous one in every dimension, around the backloop at the
/// ends, even where the machine has no link there. In a dimension of 2 both neighbours are the
/// same cell: it gets two connections, one for each of the torus's two parallel links. A
/// dimension of 1 has no neighbours. Sends are in the order of the torus's links.
pub(super) fn torus(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = cells.grid_or(spec)?;
    let axes = grid.axes();
    sends.reserve(spec, grid.len() * axes.len() * 2)?;
    for place in 0..grid.len() {
        for &(size, stride) in &axes {
            for step in [1, size - 1] {
                sends.send_places(&grid, place, moved(place, size, stride, step));
            }
        }
    }
    Ok(())
}

/// Each place to the up to 3^d - 1 places whose coordinates differ by at most one, without
/// backloops: the halo of a grid with a nine-point (27-point) stencil.
pub(super) fn stencil(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = cells.grid_or(spec)?;
    let axes = grid.axes();
    // Along one dimension of n places there are 3n - 2 pairs, counting each place with itself.
    let pairs = axes.iter().try_fold(1usize, |all, &(size, _)| all.checked_mul(3 * size - 2));
    sends.reserve(spec, pairs.unwrap_or(usize::MAX) - grid.len())?;
    let mut near = Vec::new();
    for place in 0..grid.len() {
        near.clear();
        near.push(place);
        for &(size, stride) in &axes {
            let at = place / stride % size;
            for i in 0..near.len() {
                let from = near[i];
                if at > 0 {
                    near.push(from - stride);
                }
                if at + 1 < size {
                    near.push(from + stride);
                }
            }
        }
        near.sort_unstable();
        for &target in &near {
            sends.send_places(&grid, place, target);
        }
    }
    Ok(())
}

/// Each cell to every cell at the far end of one of its live links, once, in id order. Switches
/// are no cells: the leaves of a fat-tree have no neighbours, and it is refused.
pub(super) fn nearest(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let machine = cells.machine;
    sends.reserve(spec, cells.live.iter().map(|&cell| machine.outgoing(cell).len()).sum())?;
    let mut targets = Vec::new();
    for &source in &cells.live {
        targets.clear();
        targets.extend(machine.outgoing(source).iter().map(|&link| machine.link(link).target));
        targets.sort_unstable();
        targets.dedup();
        for &target in targets.iter().filter(|&&target| machine.is_endpoint(target)) {
            sends.send(source, target);
        }
    }
    if sends.connections.is_empty() && machine.cell_count() > machine.agent_count() {
        return Err(spec
            .error("no link of this machine joins two cells directly, they all end at switches")
            .help("torus, stencil and ring-shift make neighbours of cells by their numbers"));
    }
    Ok(())
}

/// Each place to the one at a fixed offset, around the backloops.
pub(super) fn shift(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = &cells.grid;
    let mut offsets: Vec<i32> = spec.numbers("offsets", i32::MIN, i32::MAX)?;
    if offsets.is_empty() {
        offsets = (0..grid.dims.len()).map(|axis| i32::from(axis == 0)).collect();
    }
    if offsets.len() != grid.dims.len() {
        return Err(spec.error(format!(
            "expected {} offsets, one for each dimension of the cells, found {}",
            grid.dims.len(),
            offsets.len()
        )));
    }
    sends.reserve(spec, grid.len())?;
    for place in 0..grid.len() {
        let mut target = place;
        let mut stride = 1;
        for (&size, &offset) in grid.dims.iter().zip(&offsets) {
            let step = i64::from(offset).rem_euclid(i64::from(size)) as usize;
            target = moved(target, size as usize, stride, step);
            stride *= size as usize;
        }
        sends.send_places(grid, place, target);
    }
    Ok(())
}

/// Rank r to rank (r + k) modulo the number of live cells.
pub(super) fn ring_shift(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let k: i32 = spec.number("k", 1, i32::MIN, i32::MAX)?;
    let count = cells.live.len();
    let step = i64::from(k).rem_euclid(count as i64) as usize;
    sends.reserve(spec, count)?;
    for rank in 0..count {
        sends.send(cells.live[rank], cells.live[(rank + step) % count]);
    }
    Ok(())
}

/// Each place to the places whose *hypercube number* differs in one bit, lowest bit first: the
/// embedding of a hypercube in a torus behind the paper's 5.1.2 ([Str92] there). The number of a
/// place is, dimension by dimension (the first in the lowest bits), the binary-reflected Gray
/// code of its coordinate, so that neighbours on a ring are neighbours in the hypercube. On a
/// hypercube, and on machines without coordinates, it is the place itself. Every dimension must be
/// a power of two, which is to say that the number of places is.
pub(super) fn hypercube(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    let axes = grid.axes();
    let number = |place| if cells.coordinates { gray_number(place, &axes) } else { place };
    let numbers: Vec<usize> = (0..grid.len()).map(number).collect();
    let mut place_of = vec![0; grid.len()];
    for (place, &number) in numbers.iter().enumerate() {
        place_of[number] = place;
    }
    sends.reserve(spec, grid.len() * bits as usize)?;
    for bit in 0..bits {
        for (place, &number) in numbers.iter().enumerate() {
            sends.send_places(grid, place, place_of[number ^ (1 << bit)]);
        }
    }
    Ok(())
}

/// In stage s each place exchanges with the one whose number differs in bit s. All stages
/// together are ordered: what a cell sends in a stage it sends after its receive of the stage
/// before. Sends are by stage, then by source.
pub(super) fn butterfly(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    let stages = match spec.text("stage") {
        None => 0..bits,
        Some(_) if bits == 0 => return Err(spec.error("one cell has no stages")),
        Some(text) => {
            let stage = spec.parse_number("stage", text, 0, bits - 1)?;
            stage..stage + 1
        }
    };
    sends.reserve(spec, grid.len() * stages.len())?;
    let mut received: Vec<Option<ConnectionId>> = vec![None; grid.len()];
    let mut receives = received.clone();
    for stage in stages {
        for (place, &before) in received.iter().enumerate() {
            let partner = place ^ (1 << stage);
            let sent = sends.send_places(grid, place, partner);
            if let (Some(before), Some(after)) = (before, sent) {
                sends.order.push((before, after));
            }
            receives[partner] = sent;
        }
        std::mem::swap(&mut received, &mut receives);
    }
    Ok(())
}

/// Each place to the one with its log2(places) bits in reverse.
pub(super) fn bit_reversal(
    cells: &Cells<'_>,
    spec: &mut Spec<'_>,
    sends: &mut Sends,
) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    sends.reserve(spec, grid.len())?;
    for place in 0..grid.len() {
        // Shifting out all bits of the only place 0 would overflow.
        let reversed = place.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
        sends.send_places(grid, place, reversed);
    }
    Ok(())
}

/// The places in order fill a matrix row by row; each sends to the place that its number has in
/// the transposed matrix: x + columns * y to y + rows * x. The columns are by default the first
/// dimension of a machine of two dimensions, so that cell (x, y) of a square machine sends to
/// (y, x); else the largest divisor of the number of places that is not above its root. (For a
/// prime number of places the matrix is one column and nothing moves.)
pub(super) fn transpose(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let grid = &cells.grid;
    let count = grid.len();
    let natural = match grid.dims[..] {
        [columns, _] => columns as usize,
        _ => near_square(count),
    };
    let columns: usize = spec.number("columns", natural, 1, count)?;
    if !count.is_multiple_of(columns) {
        return Err(spec.error(format!("columns: {columns} does not divide {count} cells")));
    }
    let rows = count / columns;
    sends.reserve(spec, count)?;
    for place in 0..count {
        sends.send_places(grid, place, place / columns + rows * (place % columns));
    }
    Ok(())
}

/// Every cell to every other, by source, then by target.
pub(super) fn all_to_all(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let count = cells.live.len();
    sends.reserve(spec, count.saturating_mul(count - 1))?;
    for &source in &cells.live {
        for &target in &cells.live {
            sends.send(source, target);
        }
    }
    Ok(())
}

/// The root to every other cell, by target.
pub(super) fn one_to_all(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let root = cells.live[cells.root(spec)?];
    sends.reserve(spec, cells.live.len() - 1)?;
    for &target in &cells.live {
        sends.send(root, target);
    }
    Ok(())
}

/// Every other cell to the root, by source.
pub(super) fn all_to_one(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let root = cells.live[cells.root(spec)?];
    sends.reserve(spec, cells.live.len() - 1)?;
    for &source in &cells.live {
        sends.send(source, root);
    }
    Ok(())
}

/// Parents to children of the binomial tree, the longest edges first. A cell sends after it has
/// received.
pub(super) fn broadcast_tree(
    cells: &Cells<'_>,
    spec: &mut Spec<'_>,
    sends: &mut Sends,
) -> Result<()> {
    let root = cells.root(spec)?;
    let count = cells.live.len();
    sends.reserve(spec, count - 1)?;
    let ranked = |rank: usize| cells.live[(rank + root) % count];
    let mut received: Vec<Option<ConnectionId>> = vec![None; count];
    for (parent, child) in binomial_edges(count) {
        let sent = sends.send(ranked(parent), ranked(child));
        if let (Some(before), Some(after)) = (received[parent], sent) {
            sends.order.push((before, after));
        }
        received[child] = sent;
    }
    Ok(())
}

/// The broadcast tree backwards: children to parents, the shortest edges first. A cell sends
/// after it has received from all its children.
pub(super) fn reduction_tree(
    cells: &Cells<'_>,
    spec: &mut Spec<'_>,
    sends: &mut Sends,
) -> Result<()> {
    let root = cells.root(spec)?;
    let count = cells.live.len();
    sends.reserve(spec, count - 1)?;
    let ranked = |rank: usize| cells.live[(rank + root) % count];
    let mut up: Vec<Option<ConnectionId>> = vec![None; count];
    let mut edges = binomial_edges(count);
    edges.reverse();
    for (parent, child) in edges {
        let sent = sends.send(ranked(child), ranked(parent));
        up[child] = sent;
        // The children of `child` are those whose lowest bit, below its own, was cleared.
        for bit in 0..child.trailing_zeros() {
            let received = up.get(child + (1 << bit)).copied().flatten();
            if let (Some(before), Some(after)) = (received, sent) {
                sends.order.push((before, after));
            }
        }
    }
    Ok(())
}

/// round(density * p * (p - 1)) different ordered pairs of different cells, every choice as
/// likely as any other; each pair carries a number of words drawn evenly from 1 to `words`.
/// By source, then by target.
pub(super) fn random(cells: &Cells<'_>, spec: &mut Spec<'_>, sends: &mut Sends) -> Result<()> {
    let density: f64 = spec.number("density", 0.1, 0.0, 1.0)?;
    let seed: u64 = spec.number("seed", 1, 0, u64::MAX)?;
    let others = cells.live.len() as u64 - 1;
    let pairs = cells.live.len() as u64 * others;
    let count = (density * pairs as f64).round() as u64;
    sends.reserve(spec, count as usize)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let most = sends.words;
    for pair in distinct(&mut rng, pairs, count) {
        let (source, other) = (pair / others, pair % others);
        let target = other + u64::from(other >= source);
        sends.words = rng.random_range(1..=most);
        sends.send(cells.live[source as usize], cells.live[target as usize]);
    }
    Ok(())
}

/// `count` different numbers below `all`, ascending. O(count log count), except where nearly all
/// numbers below a small `all` are wanted.
fn distinct(rng: &mut ChaCha8Rng, all: u64, count: u64) -> Vec<u64> {
    if count > all / 2 {
        // Draw the few that are left out. `count` is limited, so `all` is too.
        let mut left_out = distinct(rng, all, all - count).into_iter().peekable();
        return (0..all).filter(|n| left_out.next_if_eq(n).is_none()).collect();
    }
    let mut drawn: Vec<u64> = Vec::with_capacity(count as usize);
    while drawn.len() < count as usize {
        for _ in drawn.len()..count as usize {
            drawn.push(rng.random_range(0..all));
        }
        drawn.sort_unstable();
        drawn.dedup();
    }
    drawn
}

/// The place `step` further along the dimension of `size` places that are `stride` apart, around
/// the backloop.
fn moved(place: usize, size: usize, stride: usize, step: usize) -> usize {
    let at = place / stride % size;
    place - at * stride + (at + step) % size * stride
}

/// Bits that number the places, whose count must be a power of two.
fn power_of_two(spec: &Spec<'_>, grid: &Grid) -> Result<u32> {
    if !grid.len().is_power_of_two() {
        return Err(spec
            .error(format!("expected a power of two as number of cells, found {}", grid.len()))
            .help("its partners are found by the bits of a cell's number"));
    }
    Ok(grid.len().trailing_zeros())
}

fn gray_number(place: usize, axes: &[(usize, usize)]) -> usize {
    let mut number = 0;
    let mut bits = 0;
    for &(size, stride) in axes {
        let at = place / stride % size;
        number |= (at ^ (at >> 1)) << bits;
        bits += size.trailing_zeros();
    }
    number
}

/// `(parent, child)` of the binomial tree over ranks 0 to count - 1 with root 0, the longest
/// edges first: the parent of a rank is the rank with its lowest bit cleared.
fn binomial_edges(count: usize) -> Vec<(usize, usize)> {
    let mut edges = Vec::with_capacity(count - 1);
    let mut length = count.next_power_of_two() / 2;
    while length > 0 {
        for parent in (0..count).step_by(2 * length) {
            if parent + length < count {
                edges.push((parent, parent + length));
            }
        }
        length /= 2;
    }
    edges
}
