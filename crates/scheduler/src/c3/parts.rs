//! Independent parts of a machine: where the messages of a superstep stay within parts, each part is
//! charged with its own p, b and h.
//!
//! Cells that exchange messages, directly or through others, belong together. The *block* of such
//! cells is the smallest part of the network that their messages stay in: in a grid the box around
//! them, in a fat-tree the smallest group. Blocks that overlap are one part. If more than one part is
//! left, they work side by side and do not share a link, and the costliest one counts; a superstep in
//! a single part is charged to the whole machine, since nothing else works beside it.
//!
//! A box in a torus that spans half of a dimension or more takes the whole dimension, since messages
//! within it may go round. Graphs and machines with dead parts have no blocks: a route may go
//! anywhere.

use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use conset_ir::{Machine, Topology};

use super::{C3Machine, C3Message, C3Protocol, C3Units, in_parts, superstep};

/// The parts of a machine, and the parameters of the whole one.
#[derive(Clone, Debug)]
pub struct C3Parts {
    whole: C3Machine,
    network: Network,
    cells: usize,
}

#[derive(Clone, Debug)]
enum Network {
    /// The sizes of the dimensions, and whether they are rings.
    Grid(Vec<u32>, bool),
    /// Per level from the leaves on, the links up of a group.
    FatTree(Vec<usize>),
    /// No part is known to be independent.
    Unknown,
}

/// A part of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    /// The first and the last coordinate in each dimension.
    Box(Vec<[u32; 2]>),
    /// The group of 4^level leaves of this number.
    Group { level: u32, group: usize },
}

impl C3Parts {
    /// The parts of a machine; `whole` has the parameters of all of it.
    pub fn new(machine: &Machine, whole: C3Machine) -> Self {
        let intact = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        let topology = machine.topology();
        let network = match (topology.dims(), topology) {
            _ if !intact => Network::Unknown,
            (Some(dims), _) => Network::Grid(dims, topology.wraps()),
            (None, Topology::FatTree { .. }) => {
                let levels = topology.tree_levels();
                Network::FatTree(levels.iter().map(|level| level.links_up()).collect())
            }
            (None, _) => Network::Unknown,
        };
        Self { whole, network, cells: machine.agent_count() }
    }

    /// The parameters of the whole machine.
    pub fn whole(&self) -> &C3Machine {
        &self.whole
    }

    /// The units of a superstep. O(cells + messages log messages), times the few rounds in which
    /// blocks are joined.
    pub fn superstep(&self, protocol: C3Protocol, messages: &[C3Message]) -> C3Units {
        let parts = self.divide(messages);
        if parts.len() < 2 {
            return superstep(&self.whole, protocol, messages);
        }
        in_parts(protocol, parts.iter().map(|(machine, messages)| (machine, &messages[..])))
    }

    /// The parts that messages stay within, each with its parameters; none if they are unknown.
    fn divide(&self, messages: &[C3Message]) -> Vec<(C3Machine, Vec<C3Message>)> {
        if matches!(self.network, Network::Unknown) {
            return Vec::new();
        }
        let mut groups = DisjointSets::new(self.cells);
        let moved = |m: &&C3Message| m.source != m.target && m.bytes > 0;
        for message in messages.iter().filter(moved) {
            groups.join(message.source.index(), message.target.index());
        }
        let mut blocks: Vec<Option<Block>> = vec![None; self.cells];
        for message in messages.iter().filter(moved) {
            let root = groups.root(message.source.index());
            for end in [message.source, message.target] {
                let block = self.around(blocks[root].take(), end.index());
                blocks[root] = Some(block);
            }
        }
        self.join_overlapping(&mut groups, &mut blocks);
        let roots: Vec<usize> = (0..self.cells).filter(|&c| blocks[c].is_some()).collect();
        if roots.len() < 2 {
            return Vec::new();
        }
        let mut rows = vec![0; self.cells];
        let mut parts = Vec::with_capacity(roots.len());
        for (row, &root) in roots.iter().enumerate() {
            rows[root] = row;
            let block = blocks[root].take();
            parts.push((block.map_or(self.whole, |block| self.parameters(&block)), Vec::new()));
        }
        for &message in messages.iter().filter(moved) {
            parts[rows[groups.root(message.source.index())]].1.push(message);
        }
        parts
    }

    /// The smallest block with a block and a cell.
    fn around(&self, block: Option<Block>, cell: usize) -> Block {
        let own = match &self.network {
            Network::Grid(dims, _) => {
                let mut rest = cell;
                let place = dims.iter().map(|&d| {
                    let at = to_u32(rest % index(d));
                    rest /= index(d);
                    [at, at]
                });
                Block::Box(place.collect())
            }
            _ => Block::Group { level: 0, group: cell },
        };
        match block {
            Some(block) => self.union(block, own),
            None => own,
        }
    }

    /// The smallest block with two blocks.
    fn union(&self, a: Block, b: Block) -> Block {
        match (a, b) {
            (Block::Box(mut a), Block::Box(b)) => {
                let (dims, wraps) = match &self.network {
                    Network::Grid(dims, wraps) => (&dims[..], *wraps),
                    _ => (&[][..], false),
                };
                for ((a, b), &size) in a.iter_mut().zip(b).zip(dims) {
                    *a = [a[0].min(b[0]), a[1].max(b[1])];
                    // On a ring, the shorter way between two cells may be round the other side.
                    if wraps && 2 * (a[1] - a[0]) >= size {
                        *a = [0, size - 1];
                    }
                }
                Block::Box(a)
            }
            (
                Block::Group { level: mut a_level, group: mut a },
                Block::Group { level: mut b_level, group: mut b },
            ) => {
                while (a_level, a) != (b_level, b) {
                    let (level, group) = match a_level <= b_level {
                        true => (&mut a_level, &mut a),
                        false => (&mut b_level, &mut b),
                    };
                    (*level, *group) = (*level + 1, *group / 4);
                }
                Block::Group { level: a_level, group: a }
            }
            (a, _) => a,
        }
    }

    /// Joins blocks until no cell is in two.
    fn join_overlapping(&self, groups: &mut DisjointSets, blocks: &mut [Option<Block>]) {
        const NONE: usize = usize::MAX;
        loop {
            let mut owner = vec![NONE; self.cells];
            let mut joined = Vec::new();
            for (root, block) in blocks.iter().enumerate() {
                let Some(block) = block else { continue };
                for cell in self.cells_of(block) {
                    if owner[cell] != NONE {
                        joined.push((owner[cell], root));
                        break;
                    }
                    owner[cell] = root;
                }
            }
            if joined.is_empty() {
                return;
            }
            for (a, b) in joined {
                let (a, b) = (groups.root(a), groups.root(b));
                if a == b {
                    continue;
                }
                if let (Some(one), Some(other)) = (blocks[a].take(), blocks[b].take()) {
                    let union = self.union(one, other);
                    blocks[groups.join(a, b)] = Some(union);
                }
            }
        }
    }

    /// The cells of a block.
    fn cells_of(&self, block: &Block) -> Box<dyn Iterator<Item = usize> + '_> {
        match (block, &self.network) {
            (Block::Box(sides), Network::Grid(dims, _)) => {
                let sides = sides.clone();
                let count: usize = sides.iter().map(|s| index(s[1] - s[0]) + 1).product();
                Box::new((0..count).map(move |mut row| {
                    let (mut cell, mut stride) = (0, 1);
                    for (side, &size) in sides.iter().zip(dims) {
                        let extent = index(side[1] - side[0]) + 1;
                        cell += (index(side[0]) + row % extent) * stride;
                        row /= extent;
                        stride *= index(size);
                    }
                    cell
                }))
            }
            (Block::Group { level, group }, _) => {
                let size = 4usize.saturating_pow(*level);
                let first = group.saturating_mul(size);
                Box::new(first..first.saturating_add(size).min(self.cells))
            }
            (Block::Box(_), _) => Box::new(std::iter::empty()),
        }
    }

    /// The parameters of a block: its cells, their exact mean distance, a cell with itself included,
    /// and the links between its halves.
    fn parameters(&self, block: &Block) -> C3Machine {
        let whole = self.whole;
        match (block, &self.network) {
            (Block::Box(sides), Network::Grid(dims, wraps)) => {
                let (mut cells, mut latency) = (1.0, 0.0);
                // The longest dimension is cut.
                let (mut longest, mut rings) = (1.0, 1.0);
                for (side, &size) in sides.iter().zip(dims) {
                    let n = f64::from(side[1] - side[0] + 1);
                    let ring = *wraps && side[1] - side[0] + 1 == size;
                    cells *= n;
                    latency += match ring {
                        true => (n * n / 4.0).floor() / n,
                        false => (n * n - 1.0) / (3.0 * n),
                    };
                    if n > longest {
                        (longest, rings) = (n, if ring { 2.0 } else { 1.0 });
                    }
                }
                let bisection = f64::max(cells / longest * rings, 1.0);
                let processors = to_u32(self.cells_of(block).count());
                C3Machine { processors, latency, bisection, ..whole }
            }
            (Block::Group { level, .. }, Network::FatTree(links_up)) => {
                let processors = to_u32(self.cells_of(block).count());
                let mut hops = 0;
                let mut inside = 1;
                for above in 1..=u64::from(*level) {
                    let group = (inside * 4).min(u64::from(processors));
                    hops += (group - inside.min(group)) * 2 * above;
                    inside = group;
                }
                let below = index(*level).checked_sub(1).and_then(|below| links_up.get(below));
                let halves = to_u64(below.copied().unwrap_or(1)) * 2;
                let latency = to_f64(hops) / f64::from(processors.max(1));
                C3Machine { processors, latency, bisection: to_f64(halves), ..whole }
            }
            _ => whole,
        }
    }
}

/// Disjoint sets of cells (union-find with path halving).
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Joins the sets of two cells, and returns the root of both.
    fn join(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.root(a), self.root(b));
        let (root, other) = (a.min(b), a.max(b));
        self.0[other] = root;
        root
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::CellId;

    use super::*;

    fn parts(spec: &str) -> C3Parts {
        let machine = Machine::from_spec(spec).unwrap();
        let whole = C3Machine::of_network(&machine, 512, 8.0).unwrap();
        C3Parts::new(&machine, whole)
    }

    fn messages(pairs: impl IntoIterator<Item = (u32, u32)>) -> Vec<C3Message> {
        let message = |(source, target)| C3Message {
            source: CellId(source),
            target: CellId(target),
            bytes: 512,
        };
        pairs.into_iter().map(message).collect()
    }

    /// p, h and b of the parts.
    fn divided(
        parts: &C3Parts,
        pairs: impl IntoIterator<Item = (u32, u32)>,
    ) -> Vec<(u32, f64, f64)> {
        let parts = parts.divide(&messages(pairs));
        parts.iter().map(|(m, _)| (m.processors, m.latency, m.bisection)).collect()
    }

    #[test]
    fn rows_columns_squares_and_groups_are_independent() {
        let mesh = parts("delta:16x16");
        let ends = |from: u32, step: u32| (from, from + 15 * step);
        assert_eq!(divided(&mesh, (0..16).map(|r| ends(16 * r, 1))), [(16, 5.3125, 1.0); 16]);
        assert_eq!(divided(&mesh, (0..16).map(|c| ends(c, 16))), [(16, 5.3125, 1.0); 16]);
        let corners = (0..16).map(|s| 64 * (s / 4) + 4 * (s % 4)).map(|c| (c, c + 51));
        assert_eq!(divided(&mesh, corners), [(16, 2.5, 4.0); 16]);
        let tree = parts("cm5:64");
        let quarters = (0..4).map(|q| (16 * q, 16 * q + 15));
        let hops = f64::from(3 * 2 + 12 * 4) / 16.0;
        assert_eq!(divided(&tree, quarters), [(16, hops, 8.0); 4]);
    }

    #[test]
    fn overlapping_and_single_blocks_are_not_divided() {
        let mesh = parts("mesh:8x8");
        // The rows of cells that exchange over 4 columns overlap: each row is one part.
        let across = (0..4).flat_map(|x| (0..8).map(move |y| (8 * y + x, 8 * y + x + 4)));
        assert_eq!(divided(&mesh, across).len(), 8);
        // A message across all of the mesh overlaps with all others.
        assert!(divided(&mesh, [(0, 63), (1, 2), (40, 41)]).is_empty());
        assert!(divided(&mesh, [(0, 1)]).is_empty());
        assert!(divided(&mesh, []).is_empty());
        let one = messages([(0, 1)]);
        let whole = superstep(mesh.whole(), C3Protocol::default(), &one);
        assert_eq!(mesh.superstep(C3Protocol::default(), &one), whole);
        // Half of a ring may be crossed either way.
        assert!(divided(&parts("ring:8"), [(0, 4), (6, 7)]).is_empty());
        assert_eq!(divided(&parts("ring:8"), [(0, 3), (4, 7)]).len(), 2);
        // Dead links change routes.
        let machine = Machine::from_spec("ring:8").unwrap();
        let machine = machine.with_dead(&[], &[(CellId(5), CellId(6))]).unwrap();
        let whole = C3Machine::of_network(&machine, 512, 8.0).unwrap();
        assert!(divided(&C3Parts::new(&machine, whole), [(0, 1), (2, 3)]).is_empty());
    }

    #[test]
    fn a_block_of_all_cells_has_the_parameters_of_the_machine() {
        for spec in ["mesh:5x3", "torus:6x4", "torus:5x5x2", "hypercube:4", "ring:7", "cm5:64"] {
            let parts = parts(spec);
            let all = (0..parts.cells).fold(None, |block, c| Some(parts.around(block, c)));
            let machine = parts.parameters(&all.unwrap());
            assert_eq!(machine.processors, parts.whole.processors, "{spec}");
            assert!((machine.latency - parts.whole.latency).abs() < 1e-12, "{spec}: {machine:?}");
            assert_eq!(machine.bisection, parts.whole.bisection, "{spec}");
        }
    }
}
