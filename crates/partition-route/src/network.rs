//! The live part of a machine as a graph: neighbours, edges and distances.
//!
//! Parallel links are one *edge* here, because channels belong to cells (machine model, rule 2);
//! [`crate::channels`] decides which of the links a route uses. Dead cells and links are left out,
//! switches are included. Distances are hops over live links.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Machine, TreeLevel};

use crate::marks::Marks;

/// The hop count of a cell that cannot be reached.
pub const UNREACHABLE: u32 = u32::MAX;

/// A directed graph in compressed sparse row form, with numbered edges: row `c` is
/// `cells[first[c]..first[c + 1]]`, ascending.
#[derive(Clone, Debug)]
pub struct CsrGraph {
    first: Vec<u32>,
    cells: Vec<u32>,
}

impl CsrGraph {
    fn of_cells(cells: usize, of: impl Fn(CellId, &mut Vec<u32>)) -> Self {
        let mut this = Self { first: vec![0], cells: Vec::new() };
        let mut row = Vec::new();
        for cell in 0..cells {
            row.clear();
            of(CellId::from_index(cell), &mut row);
            row.sort_unstable();
            row.dedup();
            this.cells.extend_from_slice(&row);
            this.first.push(to_u32(this.cells.len()));
        }
        this
    }

    /// A graph of `nodes` nodes with the given edges (source, target), which must be sorted and
    /// distinct.
    pub(crate) fn from_sorted(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut this = Self { first: vec![0], cells: Vec::new() };
        for (source, target) in edges {
            this.first.resize(index(source) + 1, to_u32(this.cells.len()));
            this.cells.push(target);
        }
        this.first.resize(nodes + 1, to_u32(this.cells.len()));
        this
    }

    /// Number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.first.len() - 1
    }

    /// The neighbours of a cell, ascending.
    #[inline]
    pub fn of(&self, cell: u32) -> &[u32] {
        &self.cells[self.edges(cell)]
    }

    /// The edges to a cell's neighbours, in the order of [`CsrGraph::of`].
    #[inline]
    pub fn edges(&self, cell: u32) -> std::ops::Range<usize> {
        let cell = index(cell);
        index(self.first[cell])..index(self.first[cell + 1])
    }

    /// The cell that an edge leads to.
    #[inline]
    pub fn head(&self, edge: usize) -> u32 {
        self.cells[edge]
    }

    /// The edge between two neighbours.
    ///
    /// # Panics
    /// If there is none.
    pub fn edge(&self, cell: u32, neighbour: u32) -> usize {
        let row = self.of(cell);
        self.edges(cell).start + row.binary_search(&neighbour).expect("routes go to neighbours")
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.cells.len()
    }
}

/// The live cells of a machine and their neighbours.
#[derive(Clone, Debug)]
pub struct Network {
    /// Number of cells, including dead ones (they have no neighbours).
    pub(crate) cells: usize,
    /// The cells that the links of a cell lead to.
    pub(crate) next: CsrGraph,
    /// The cells from which links lead to a cell.
    pub(crate) back: CsrGraph,
    /// The number of parallel live links of each edge of `next`.
    pub(crate) links: Vec<u32>,
    /// The dimensions of a grid without dead cells or links, and whether they close to rings.
    grid: Option<(Vec<u32>, bool)>,
    /// The levels of a fat-tree or cluster without dead cells or links; else none.
    tree: Vec<TreeLevel>,
}

impl Network {
    /// The network of a machine.
    pub fn new(machine: &Machine) -> Self {
        let cells = machine.cell_count();
        let next = CsrGraph::of_cells(cells, |cell, row| {
            row.extend(machine.outgoing(cell).iter().map(|&l| machine.link(l).target.0));
        });
        let back = CsrGraph::of_cells(cells, |cell, row| {
            row.extend(machine.incoming(cell).iter().map(|&l| machine.link(l).source.0));
        });
        let mut links = vec![0; next.edge_count()];
        for link in machine.cells().flat_map(|cell| machine.outgoing(cell)) {
            let link = machine.link(*link);
            links[next.edge(link.source.0, link.target.0)] += 1;
        }
        let whole = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        let dims = if whole { machine.topology().dims() } else { None };
        let grid = dims.map(|dims| (dims, machine.topology().wraps()));
        let tree = if whole { machine.topology().tree_levels() } else { Vec::new() };
        Self { cells, next, back, links, grid, tree }
    }

    /// Number of cells, including dead ones (they have no neighbours).
    pub fn cell_count(&self) -> usize {
        self.cells
    }

    /// The graph of the cells that the links of each cell lead to.
    #[inline]
    pub fn outgoing(&self) -> &CsrGraph {
        &self.next
    }

    /// The number of parallel live links of each edge of [`Network::outgoing`].
    pub fn link_counts(&self) -> &[u32] {
        &self.links
    }

    /// The grid, on a machine with coordinates and without dead cells or links. It gives hops
    /// without a search.
    pub fn grid(&self) -> Option<Grid> {
        let (dims, wraps) = self.grid.as_ref()?;
        Some(Grid::new(self.cells, dims, *wraps))
    }
}

/// Breadth-first search that can stop early and needs no clearing between two searches.
#[derive(Clone, Debug)]
pub struct BoundedBfs {
    reached: Marks,
    hops: Vec<u32>,
    queue: Vec<u32>,
    radius: u32,
}

impl BoundedBfs {
    /// Scratch memory for a network of `cells` cells.
    pub fn new(cells: usize) -> Self {
        Self {
            reached: Marks::new(cells),
            hops: vec![0; cells],
            queue: Vec::with_capacity(cells.min(1 << 16)),
            radius: UNREACHABLE,
        }
    }

    /// Searches from `start` until `stop(cell, hops)` returns true or all cells are reached. `stop`
    /// is called once for each cell, starting with `start`, in the order of distance. Returns the
    /// number of visited cells.
    pub fn run(
        &mut self,
        graph: &CsrGraph,
        start: u32,
        mut stop: impl FnMut(u32, u32) -> bool,
    ) -> usize {
        self.reached.clear();
        self.queue.clear();
        self.queue.push(start);
        self.reached.insert(start);
        self.hops[index(start)] = 0;
        self.radius = UNREACHABLE;
        let mut head = 0;
        while head < self.queue.len() {
            let cell = self.queue[head];
            head += 1;
            let hops = self.hops[index(cell)];
            if stop(cell, hops) {
                self.radius = hops + 1;
                break;
            }
            for &next in graph.of(cell) {
                if self.reached.insert(next) {
                    self.hops[index(next)] = hops + 1;
                    self.queue.push(next);
                }
            }
        }
        head
    }

    /// Hops between a cell and the start of the last search. Exact up to the distance at which the
    /// search stopped, and a lower bound beyond; [`UNREACHABLE`] if there is no path.
    #[inline]
    pub fn hops(&self, cell: u32) -> u32 {
        if self.reached.contains(cell) { self.hops[index(cell)] } else { self.radius }
    }
}

/// Hops to the targets of a set, for A* searches.
///
/// Small machines have a table with a row for each target. In large grids hops are the sum over the
/// dimensions, in large fat-trees and clusters they follow from the cell numbers. In other large machines each
/// search runs a breadth-first search around its target, up to the distance of its source.
#[derive(Clone, Debug)]
pub struct Distances {
    rows: Vec<u16>,
    row_of: Vec<u32>,
    cells: usize,
    row_start: usize,
    implicit: Option<Implicit>,
}

/// How hops are computed if the table would be too large.
#[derive(Clone, Debug)]
enum Implicit {
    BoundedBfs(BoundedBfs),
    Grid { grid: Grid, target: u32 },
    Tree(TreeHops),
}

/// Hops to leaves of a fat-tree or cluster: up to the smallest group that contains both cells, and
/// down.
#[derive(Clone, Debug)]
pub(crate) struct TreeHops {
    /// By level: its first cell, and the numbers of switches and of leaves of a group.
    levels: Vec<(u32, u32, u32)>,
    target: u32,
}

impl TreeHops {
    fn new(tree: &[TreeLevel]) -> Self {
        let mut first = 0;
        let levels = tree.iter().map(|level| {
            let row = (first, to_u32(level.nodes), to_u32(level.leaves));
            first += to_u32(level.groups * level.nodes);
            row
        });
        Self { levels: levels.collect(), target: 0 }
    }

    fn hops(&self, cell: u32) -> u32 {
        let above = self.levels.partition_point(|&(first, ..)| first <= cell);
        let (first, switches, leaves) = self.levels[above - 1];
        let leaf = (cell - first) / switches * leaves;
        let rows = self.levels[above - 1..].iter();
        // All leaves are in one group of the highest level.
        let up = rows.take_while(|&&(_, _, leaves)| leaf / leaves != self.target / leaves).count();
        2 * to_u32(up) + to_u32(above) - 1
    }
}

/// The coordinates of all cells of a grid, and hops between them without a search. Dead cells and
/// links are ignored.
#[derive(Clone, Debug)]
pub struct Grid {
    dims: Vec<u32>,
    wraps: bool,
    /// Coordinate `d` of a cell is `coordinates[cell * dims.len() + d]`.
    coordinates: Vec<u32>,
}

impl Grid {
    pub(crate) fn new(cells: usize, dims: &[u32], wraps: bool) -> Self {
        let mut coordinates = Vec::with_capacity(cells * dims.len());
        for cell in 0..to_u32(cells) {
            let mut rest = cell;
            for &d in dims {
                coordinates.push(rest % d);
                rest /= d;
            }
        }
        Self { dims: dims.to_vec(), wraps, coordinates }
    }

    /// The size of each dimension.
    pub(crate) fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Whether the dimensions close to rings.
    pub(crate) fn wraps(&self) -> bool {
        self.wraps
    }

    /// The same grid with dimensions that do not close to rings.
    pub(crate) fn unrolled(&self) -> Self {
        Self { wraps: false, ..self.clone() }
    }

    /// The coordinates of a cell, one for each dimension.
    #[inline]
    pub(crate) fn of(&self, cell: u32) -> &[u32] {
        let n = self.dims.len();
        &self.coordinates[index(cell) * n..][..n]
    }

    /// Hops between two cells.
    #[inline]
    pub fn between(&self, a: u32, b: u32) -> u32 {
        // The innermost loop of placement. Overflow checks are left out, since coordinates are less
        // than sizes and the sum of all sizes is small.
        let mut hops = 0u32;
        for ((a, b), size) in self.of(a).iter().zip(self.of(b)).zip(&self.dims) {
            let apart = a.abs_diff(*b);
            let around = if self.wraps { size.wrapping_sub(apart) } else { apart };
            hops = hops.wrapping_add(apart.min(around));
        }
        hops
    }
}

/// The most entries of a distance table: 64 MB.
const TABLE: usize = 1 << 25;

impl Distances {
    /// Prepares the distances to the given targets (in any order, repetitions allowed).
    pub fn new(network: &Network, targets: impl Iterator<Item = u32>) -> Self {
        let cells = network.cells;
        let mut row_of = vec![u32::MAX; cells];
        let mut used = Vec::new();
        for target in targets {
            if row_of[index(target)] == u32::MAX {
                row_of[index(target)] = to_u32(used.len());
                used.push(target);
            }
        }
        let mut bfs = BoundedBfs::new(cells);
        // Below 65535 cells every distance and the mark for unreachable cells fit into a u16.
        if cells >= usize::from(u16::MAX) || used.len().saturating_mul(cells) > TABLE {
            let implicit = match (network.grid(), &network.tree[..]) {
                (Some(grid), _) => Implicit::Grid { grid, target: 0 },
                (None, [_, ..]) => Implicit::Tree(TreeHops::new(&network.tree)),
                (None, []) => Implicit::BoundedBfs(bfs),
            };
            return Self {
                rows: Vec::new(),
                row_of,
                cells,
                row_start: 0,
                implicit: Some(implicit),
            };
        }
        let mut rows = Vec::with_capacity(used.len() * cells);
        for &target in &used {
            bfs.run(&network.back, target, |_, _| false);
            rows.extend(
                (0..to_u32(cells)).map(|cell| u16::try_from(bfs.hops(cell)).unwrap_or(u16::MAX)),
            );
        }
        Self { rows, row_of, cells, row_start: 0, implicit: None }
    }

    /// Hops to a target from every cell, with `u16::MAX` for unreachable; `None` if there is no
    /// table.
    #[inline]
    pub fn row(&self, target: u32) -> Option<&[u16]> {
        let first = index(self.row_of[index(target)]) * self.cells;
        self.rows.get(first..first + self.cells)
    }

    /// Selects the target of [`Distances::to_target`], which must be reached from `source`; returns
    /// the hops between them.
    pub fn aim(&mut self, network: &Network, source: u32, target: u32) -> u32 {
        match &mut self.implicit {
            Some(Implicit::BoundedBfs(bfs)) => {
                bfs.run(&network.back, target, |cell, _| cell == source);
            }
            Some(Implicit::Grid { target: to, .. }) => *to = target,
            Some(Implicit::Tree(tree)) => tree.target = target,
            None => self.row_start = index(self.row_of[index(target)]) * self.cells,
        }
        self.to_target(source)
    }

    /// A lower bound of the hops from a cell to the target, exact for cells no further away than
    /// the source; [`UNREACHABLE`] if there is no path.
    #[inline]
    pub fn to_target(&self, cell: u32) -> u32 {
        match &self.implicit {
            Some(Implicit::BoundedBfs(bfs)) => bfs.hops(cell),
            Some(Implicit::Grid { grid, target }) => grid.between(cell, *target),
            Some(Implicit::Tree(tree)) => tree.hops(cell),
            None => match self.rows[self.row_start + index(cell)] {
                u16::MAX => UNREACHABLE,
                hops => u32::from(hops),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_of_a_tree_are_those_that_a_search_finds() {
        let counts = [1, 2, 4, 5, 16, 17, 64, 100, 300];
        let fat_trees = counts.into_iter().flat_map(|leaves| {
            ["1.2", "2.2.1.3"].map(|parents| format!("fat-tree:{leaves}/{parents}"))
        });
        let clusters = ["1", "7", "1x5", "3x4", "5x3"].map(|sizes| format!("cluster:{sizes}"));
        for spec in fat_trees.chain(clusters) {
            let machine = Machine::from_spec(&spec).unwrap();
            let network = Network::new(&machine);
            let mut tree = TreeHops::new(&network.tree);
            let mut bfs = BoundedBfs::new(network.cells);
            for target in 0..machine.agent_count() as u32 {
                bfs.run(&network.back, target, |_, _| false);
                tree.target = target;
                for cell in 0..network.cells as u32 {
                    assert_eq!(tree.hops(cell), bfs.hops(cell), "{spec}: {cell} to {target}");
                }
            }
        }
    }

    #[test]
    fn hops_of_a_grid_are_those_that_a_search_finds() {
        for spec in ["torus:5x4x3", "torus:2x6", "mesh:4x7", "ring:9", "hypercube:4", "torus:1x3"] {
            let machine = Machine::from_spec(spec).unwrap();
            let network = Network::new(&machine);
            let grid = network.grid().unwrap();
            let mut bfs = BoundedBfs::new(network.cells);
            for target in 0..network.cells as u32 {
                bfs.run(&network.back, target, |_, _| false);
                for cell in 0..network.cells as u32 {
                    assert_eq!(
                        grid.between(cell, target),
                        bfs.hops(cell),
                        "{spec}: {cell} to {target}"
                    );
                }
            }
        }
        assert!(Network::new(&Machine::from_spec("fat-tree:16").unwrap()).grid().is_none());
    }
}
