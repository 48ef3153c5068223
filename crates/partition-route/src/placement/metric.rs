//! Distances between cells for placement, cheap to compute for any pair.
//!
//! Shapes with coordinates, fat-trees and clusters have a formula (which ignores dead cells and links).
//! Graphs have a table if they are small enough; otherwise every distance counts 1.

use conset_ir::convert::{index, to_u32};
use conset_ir::{Machine, Topology};

use crate::network::{BoundedBfs, Grid, Network};

/// The most entries of a distance table: 32 MB.
const TABLE_LIMIT: usize = 1 << 24;

/// The distances between cells.
#[derive(Clone, Debug)]
pub(super) enum Metric {
    /// Shapes with coordinates.
    Grid(Grid),
    /// Fat-trees and clusters; leaves by number. The leaves of a group of each level but the highest.
    Tree(Vec<u32>),
    /// A graph with a table of hops.
    Table {
        /// Hops from row to column.
        hops: Vec<u16>,
        /// Cells of the machine.
        cells: usize,
    },
    /// A graph too large for a table.
    Unknown,
}

impl Metric {
    /// The distances of a machine.
    pub(super) fn new(machine: &Machine, network: &Network) -> Self {
        let topology = machine.topology();
        if let Some(dims) = topology.dims() {
            return Metric::Grid(Grid::new(network.cells, &dims, topology.wraps()));
        }
        if let Topology::FatTree { .. } | Topology::Cluster { .. } = topology {
            let mut levels = topology.tree_levels();
            levels.pop();
            return Metric::Tree(levels.iter().map(|level| to_u32(level.leaves)).collect());
        }
        let cells = network.cells;
        if cells.saturating_mul(cells) > TABLE_LIMIT {
            return Metric::Unknown;
        }
        let mut bfs = BoundedBfs::new(cells);
        let most = to_u32(cells);
        let mut hops = Vec::with_capacity(cells * cells);
        for cell in 0..to_u32(cells) {
            bfs.run(&network.next, cell, |_, _| false);
            hops.extend(
                (0..to_u32(cells))
                    .map(|to| u16::try_from(bfs.hops(to).min(most)).unwrap_or(u16::MAX)),
            );
        }
        Metric::Table { hops, cells }
    }

    /// The metric without the links that close dimensions to rings.
    pub(super) fn unrolled(&self) -> Self {
        match self {
            Metric::Grid(grid) => Metric::Grid(grid.unrolled()),
            other => other.clone(),
        }
    }

    /// Approximate hops from one cell to another.
    #[inline]
    pub(super) fn hops(&self, a: u32, b: u32) -> u32 {
        match self {
            Metric::Grid(grid) => grid.between(a, b),
            // Up to the smallest group that contains both, and down again.
            Metric::Tree(leaves) => 2 * to_u32(levels_up(leaves, a, b)),
            Metric::Table { hops, cells } => u32::from(hops[index(a) * cells + index(b)]),
            Metric::Unknown => u32::from(a != b),
        }
    }

    /// The cell (possibly a dead one) in the middle of the smallest box around some cells, in
    /// shapes with coordinates.
    pub(super) fn middle_of_box(&self, cells: &[u32]) -> Option<u32> {
        let Metric::Grid(grid) = self else { return None };
        let mut stride = 1;
        let mut middle = 0;
        for (d, &size) in grid.dims().iter().enumerate() {
            let along = cells.iter().map(|&cell| grid.of(cell)[d]);
            let (low, high) = (along.clone().min()?, along.max()?);
            middle += (low + high) / 2 * stride;
            stride = stride.saturating_mul(size);
        }
        Some(middle)
    }
}

/// The level of the smallest group that has two leaves, by the leaves of the groups of each level.
#[inline]
pub(super) fn levels_up(leaves: &[u32], a: u32, b: u32) -> usize {
    leaves.iter().take_while(|&&leaves| a / leaves != b / leaves).count()
}
