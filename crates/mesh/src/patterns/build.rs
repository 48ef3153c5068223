//! The definitions of the patterns.
//!
//! Each pattern function takes its parameters, reserves space for its connections (so that a request
//! above the limit is rejected before it uses memory), and adds them. A *position* is a position in
//! the grid of cells (`cells`).

use std::cmp::Reverse;

use conset_ir::convert::{index, to_f64, to_i64, to_u64, to_usize, truncate};
use conset_ir::{CellId, Connection, ConnectionId, Result, binomial, limits};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cells::{CellGrid, PatternCells, near_square};
use super::spec::Spec;

/// Collects the connections of a pattern.
pub(super) struct PatternBuilder {
    pub(super) connections: Vec<Connection>,
    pub(super) order: Vec<(ConnectionId, ConnectionId)>,
    /// Words of the next connection.
    words: u32,
}

impl PatternBuilder {
    pub(super) fn new(words: u32) -> Self {
        Self { connections: Vec::new(), order: Vec::new(), words }
    }

    /// Reserves space for at most `count` connections.
    ///
    /// # Errors
    /// More than [`limits::CONNECTIONS`].
    fn reserve(&mut self, spec: &Spec<'_>, count: usize) -> Result<()> {
        if count > limits::CONNECTIONS {
            return Err(spec.error(format!(
                "{count} connections on this machine; the limit is {}",
                limits::CONNECTIONS
            )));
        }
        self.connections.reserve_exact(count);
        Ok(())
    }

    /// Adds a connection; returns `None` and adds nothing from a cell to itself.
    fn send(&mut self, source: CellId, target: CellId) -> Option<ConnectionId> {
        if source == target {
            return None;
        }
        let id = ConnectionId::from_index(self.connections.len());
        self.connections.push(Connection::new(source, target, self.words));
        Some(id)
    }

    /// Adds a connection between two positions; returns `None` also if one of the cells is dead.
    fn send_between(
        &mut self,
        grid: &CellGrid,
        source: usize,
        target: usize,
    ) -> Option<ConnectionId> {
        self.send(grid.positions[source]?, grid.positions[target]?)
    }
}

/// Each position to the next and the previous one in every dimension, cyclically, even where the
/// machine has no wrap-around link. In a dimension of 2 both neighbours are the same cell: it gets
/// two connections, one for each of the two parallel links of a torus. A dimension of 1 has no
/// neighbours. The connections are in the order of the links of a torus.
pub(super) fn torus(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = cells.grid_or(spec)?;
    let axes = grid.axes();
    builder.reserve(spec, grid.len() * axes.len() * 2)?;
    for position in 0..grid.len() {
        for &(size, stride) in &axes {
            for step in [1, size - 1] {
                builder.send_between(&grid, position, moved(position, size, stride, step));
            }
        }
    }
    Ok(())
}

/// Each position to the up to 3^d - 1 positions whose coordinates differ by at most one, without
/// wrap-around: the halo of a grid with a nine-point (27-point) stencil.
pub(super) fn stencil(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = cells.grid_or(spec)?;
    let axes = grid.axes();
    // Along one dimension of n positions there are 3n - 2 pairs, counting each position with itself.
    let pairs = axes.iter().try_fold(1usize, |all, &(size, _)| all.checked_mul(3 * size - 2));
    builder.reserve(spec, pairs.unwrap_or(usize::MAX) - grid.len())?;
    let mut near = Vec::new();
    for position in 0..grid.len() {
        near.clear();
        near.push(position);
        for &(size, stride) in &axes {
            let at = position / stride % size;
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
            builder.send_between(&grid, position, target);
        }
    }
    Ok(())
}

/// Each cell to every cell that one of its live links leads to, once, in id order. Switches do not
/// count as cells: the leaves of a fat-tree have no neighbours, so a fat-tree is rejected.
pub(super) fn nearest(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let machine = cells.machine;
    builder.reserve(spec, cells.live.iter().map(|&cell| machine.outgoing(cell).len()).sum())?;
    let mut targets = Vec::new();
    for &source in &cells.live {
        targets.clear();
        targets.extend(machine.outgoing(source).iter().map(|&link| machine.link(link).target));
        targets.sort_unstable();
        targets.dedup();
        for &target in targets.iter().filter(|&&target| machine.is_endpoint(target)) {
            builder.send(source, target);
        }
    }
    if builder.connections.is_empty() && machine.cell_count() > machine.agent_count() {
        return Err(spec
            .error("no link of this machine connects two cells directly; all links end at switches")
            .help("torus, stencil and ring-shift define neighbours by cell numbers instead"));
    }
    Ok(())
}

/// Each position to the one at a fixed offset, cyclically.
pub(super) fn shift(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
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
    builder.reserve(spec, grid.len())?;
    for position in 0..grid.len() {
        let mut target = position;
        let mut stride = 1;
        for (&size, &offset) in grid.dims.iter().zip(&offsets) {
            let step = to_usize(i64::from(offset).rem_euclid(i64::from(size)));
            target = moved(target, index(size), stride, step);
            stride *= index(size);
        }
        builder.send_between(grid, position, target);
    }
    Ok(())
}

/// Rank r to rank (r + k) modulo the number of live cells.
pub(super) fn ring_shift(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let k: i32 = spec.number("k", 1, i32::MIN, i32::MAX)?;
    let count = cells.live.len();
    let step = to_usize(i64::from(k).rem_euclid(to_i64(count)));
    builder.reserve(spec, count)?;
    for rank in 0..count {
        builder.send(cells.live[rank], cells.live[(rank + step) % count]);
    }
    Ok(())
}

/// Each position to the positions whose *hypercube number* differs in one bit, lowest bit first: the
/// embedding of a hypercube in a torus of section 5.1.2 of the paper ([Str92] there). The number of a
/// position consists, dimension by dimension (the first in the lowest bits), of the binary-reflected
/// Gray code of its coordinate, so that neighbours on a ring are neighbours in the hypercube. On a
/// hypercube, and on machines without coordinates, it is the position itself. The number of positions,
/// and so the size of each dimension, must be a power of two.
pub(super) fn hypercube(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    let axes = grid.axes();
    let number = |position| if cells.coordinates { gray_number(position, &axes) } else { position };
    let numbers: Vec<usize> = (0..grid.len()).map(number).collect();
    let mut position_of = vec![0; grid.len()];
    for (position, &number) in numbers.iter().enumerate() {
        position_of[number] = position;
    }
    builder.reserve(spec, grid.len() * index(bits))?;
    for bit in 0..bits {
        for (position, &number) in numbers.iter().enumerate() {
            builder.send_between(grid, position, position_of[number ^ (1 << bit)]);
        }
    }
    Ok(())
}

/// In stage s each position exchanges with the one whose number differs in bit s. The stages are
/// ordered: a cell sends in a stage after its receive of the previous stage. Connections are in the
/// order of stage, then source.
pub(super) fn butterfly(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    let stages = match spec.text("stage") {
        None => 0..bits,
        Some(_) if bits == 0 => return Err(spec.error("a machine with one cell has no stages")),
        Some(text) => {
            let stage = spec.parse_number("stage", text, 0, bits - 1)?;
            stage..stage + 1
        }
    };
    builder.reserve(spec, grid.len() * stages.len())?;
    let mut received: Vec<Option<ConnectionId>> = vec![None; grid.len()];
    let mut receives = received.clone();
    for stage in stages {
        for (position, &before) in received.iter().enumerate() {
            let partner = position ^ (1 << stage);
            let sent = builder.send_between(grid, position, partner);
            if let (Some(before), Some(after)) = (before, sent) {
                builder.order.push((before, after));
            }
            receives[partner] = sent;
        }
        std::mem::swap(&mut received, &mut receives);
    }
    Ok(())
}

/// Each position to the one whose log2(positions) bits are reversed.
pub(super) fn bit_reversal(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = &cells.grid;
    let bits = power_of_two(spec, grid)?;
    builder.reserve(spec, grid.len())?;
    for position in 0..grid.len() {
        // With one position, all bits would be shifted out, which overflows.
        let reversed = position.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
        builder.send_between(grid, position, reversed);
    }
    Ok(())
}

/// The positions fill a matrix row by row; each sends to its position in the transposed matrix:
/// x + columns * y to y + rows * x. On a machine of two dimensions the default number of columns is
/// the first dimension, so that cell (x, y) of a square machine sends to (y, x). On other machines it
/// is the largest divisor of the number of positions that is not above its square root. (For a prime
/// number of positions the matrix has one column, and no cell sends.)
pub(super) fn transpose(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let grid = &cells.grid;
    let count = grid.len();
    let natural = match grid.dims[..] {
        [columns, _] => index(columns),
        _ => near_square(count),
    };
    let columns: usize = spec.number("columns", natural, 1, count)?;
    if !count.is_multiple_of(columns) {
        return Err(spec.error(format!("columns: {columns} does not divide {count} cells")));
    }
    let rows = count / columns;
    builder.reserve(spec, count)?;
    for position in 0..count {
        builder.send_between(grid, position, position / columns + rows * (position % columns));
    }
    Ok(())
}

/// Every cell to every other, by source, then by target.
pub(super) fn all_to_all(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let count = cells.live.len();
    builder.reserve(spec, count.saturating_mul(count - 1))?;
    for &source in &cells.live {
        for &target in &cells.live {
            builder.send(source, target);
        }
    }
    Ok(())
}

/// The root to every other cell, by target.
pub(super) fn one_to_all(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let root = cells.live[cells.root(spec)?];
    builder.reserve(spec, cells.live.len() - 1)?;
    for &target in &cells.live {
        builder.send(root, target);
    }
    Ok(())
}

/// Every other cell to the root, by source.
pub(super) fn all_to_one(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let root = cells.live[cells.root(spec)?];
    builder.reserve(spec, cells.live.len() - 1)?;
    for &source in &cells.live {
        builder.send(source, root);
    }
    Ok(())
}

/// Parents to children of the binomial tree, the longest edges first. A cell sends after it has
/// received.
pub(super) fn broadcast_tree(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let root = cells.root(spec)?;
    let count = cells.live.len();
    builder.reserve(spec, count - 1)?;
    let ranked = |rank: usize| cells.live[(rank + root) % count];
    let mut received: Vec<Option<ConnectionId>> = vec![None; count];
    for (parent, child) in binomial_edges(count) {
        let sent = builder.send(ranked(parent), ranked(child));
        if let (Some(before), Some(after)) = (received[parent], sent) {
            builder.order.push((before, after));
        }
        received[child] = sent;
    }
    Ok(())
}

/// The reverse of the broadcast tree: children to parents, the shortest edges first. A cell sends
/// after it has received from all its children.
pub(super) fn reduction_tree(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let root = cells.root(spec)?;
    let count = cells.live.len();
    builder.reserve(spec, count - 1)?;
    let ranked = |rank: usize| cells.live[(rank + root) % count];
    let mut up: Vec<Option<ConnectionId>> = vec![None; count];
    let mut edges = binomial_edges(count);
    edges.reverse();
    for (parent, child) in edges {
        let sent = builder.send(ranked(child), ranked(parent));
        up[child] = sent;
        for below in binomial::children(child, count) {
            if let (Some(before), Some(after)) = (up[below], sent) {
                builder.order.push((before, after));
            }
        }
    }
    Ok(())
}

/// round(density * p * (p - 1)) distinct ordered pairs of different cells, drawn uniformly; the number
/// of words of each pair is uniform from 1 to `words`, or equal to it. By source, then by target.
pub(super) fn random(
    cells: &PatternCells<'_>,
    spec: &mut Spec<'_>,
    builder: &mut PatternBuilder,
) -> Result<()> {
    let density: f64 = spec.number("density", 0.1, 0.0, 1.0)?;
    let seed: u64 = spec.number("seed", 1, 0, u64::MAX)?;
    let equal = spec.number("equal", 0u8, 0, 1)? == 1;
    let others = to_u64(cells.live.len()) - 1;
    let pairs = to_u64(cells.live.len()) * others;
    let count = truncate((density * to_f64(pairs)).round());
    builder.reserve(spec, to_usize(count))?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let most = builder.words;
    for pair in distinct(&mut rng, pairs, count) {
        let (source, other) = (pair / others, pair % others);
        let target = other + u64::from(other >= source);
        builder.words = if equal { most } else { rng.random_range(1..=most) };
        builder.send(cells.live[to_usize(source)], cells.live[to_usize(target)]);
    }
    Ok(())
}

/// `count` distinct random numbers below `all`, ascending. O(count log count); if `count` is more than
/// half of `all`, O(all log all).
fn distinct(rng: &mut ChaCha8Rng, all: u64, count: u64) -> Vec<u64> {
    if count > all / 2 {
        // Draws the numbers to omit. `count` is limited, so `all` is too.
        let mut omitted = distinct(rng, all, all - count).into_iter().peekable();
        return (0..all).filter(|n| omitted.next_if_eq(n).is_none()).collect();
    }
    let count = to_usize(count);
    let mut drawn: Vec<u64> = Vec::with_capacity(count);
    while drawn.len() < count {
        for _ in drawn.len()..count {
            drawn.push(rng.random_range(0..all));
        }
        drawn.sort_unstable();
        drawn.dedup();
    }
    drawn
}

/// The position `step` further along a dimension of `size` positions that are `stride` apart,
/// cyclically.
fn moved(position: usize, size: usize, stride: usize, step: usize) -> usize {
    let at = position / stride % size;
    position - at * stride + (at + step) % size * stride
}

/// The base-2 logarithm of the number of positions.
///
/// # Errors
/// The number is not a power of two.
fn power_of_two(spec: &Spec<'_>, grid: &CellGrid) -> Result<u32> {
    if !grid.len().is_power_of_two() {
        return Err(spec
            .error(format!("expected a power of two as number of cells, found {}", grid.len()))
            .help("the pattern pairs cells by the bits of their numbers"));
    }
    Ok(grid.len().trailing_zeros())
}

/// The hypercube number of a position.
fn gray_number(position: usize, axes: &[(usize, usize)]) -> usize {
    let mut number = 0;
    let mut bits = 0;
    for &(size, stride) in axes {
        let at = position / stride % size;
        number |= (at ^ (at >> 1)) << bits;
        bits += size.trailing_zeros();
    }
    number
}

/// The edges `(parent, child)` of the binomial tree over ranks 0 to count - 1 with root 0, the longest
/// edges first.
fn binomial_edges(count: usize) -> Vec<(usize, usize)> {
    let edge = |child| binomial::parent(child).map(|parent| (parent, child));
    let mut edges: Vec<(usize, usize)> = (0..count).filter_map(edge).collect();
    edges.sort_by_key(|&(parent, child)| Reverse(child - parent));
    edges
}
