//! Distances between cells, for placement: quick to ask for any pair.
//!
//! Shapes with coordinates and fat-trees have a formula (dead cells and links are not in it);
//! graphs have a table if they are small enough, and else every distance counts 1.

use conset_ir::{Machine, Topology};

use crate::network::{BoundedBfs, Network};

/// Entries a distance table may have: 32 MB.
const TABLE: usize = 1 << 24;

/// How far cells are from one another.
#[derive(Clone, Debug)]
pub(super) enum Metric {
    /// Coordinates, cell by cell, and the size of each dimension where it closes to a ring.
    Grid {
        /// Coordinate `d` of a cell is `at[cell * dimensions + d]`.
        at: Vec<u32>,
        /// Sizes of the dimensions.
        dims: Vec<u32>,
        /// Whether they close.
        wraps: bool,
    },
    /// Leaves by number.
    Tree,
    /// Hops from row to column.
    Table {
        /// All of them.
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
            let mut at = Vec::with_capacity(network.cells * dims.len());
            for cell in 0..network.cells as u32 {
                let mut rest = cell;
                at.extend(dims.iter().map(|&d| {
                    let here = rest % d;
                    rest /= d;
                    here
                }));
            }
            return Metric::Grid { at, dims, wraps: topology.wraps() };
        }
        if let Topology::FatTree { .. } = topology {
            return Metric::Tree;
        }
        let cells = network.cells;
        if cells.saturating_mul(cells) > TABLE {
            return Metric::Unknown;
        }
        let mut ball = BoundedBfs::new(cells);
        let mut hops = Vec::with_capacity(cells * cells);
        for cell in 0..cells as u32 {
            ball.grow(&network.next, cell, |_, _| false);
            hops.extend((0..cells as u32).map(|to| ball.hops(to).min(cells as u32) as u16));
        }
        Metric::Table { hops, cells }
    }

    /// The same without the links that close dimensions to rings.
    pub(super) fn unrolled(&self) -> Self {
        match self.clone() {
            Metric::Grid { at, dims, .. } => Metric::Grid { at, dims, wraps: false },
            other => other,
        }
    }

    /// Hops from one cell to another, about.
    #[inline]
    pub(super) fn hops(&self, a: u32, b: u32) -> i64 {
        match self {
            Metric::Grid { at, dims, wraps } => {
                let n = dims.len();
                let (a, b) = (&at[a as usize * n..][..n], &at[b as usize * n..][..n]);
                // Asked for more than all else: without checks of what cannot overflow, since
                // coordinates are less than sizes and a sum of sizes is small.
                let mut hops = 0u32;
                for ((a, b), size) in a.iter().zip(b).zip(dims) {
                    let apart = a.abs_diff(*b);
                    let round = if *wraps { size.wrapping_sub(apart) } else { apart };
                    hops = hops.wrapping_add(apart.min(round));
                }
                i64::from(hops)
            }
            Metric::Tree => {
                // Up to the smallest group of 4^h leaves that holds both, and down again.
                let differing = 32 - (a ^ b).leading_zeros();
                i64::from(differing.div_ceil(2) * 2)
            }
            Metric::Table { hops, cells } => i64::from(hops[a as usize * cells + b as usize]),
            Metric::Unknown => i64::from(a != b),
        }
    }

    /// The cell (perhaps a dead one) in the middle of the smallest box around some cells, in
    /// shapes with coordinates.
    pub(super) fn middle_of_box(&self, cells: &[u32]) -> Option<u32> {
        let Metric::Grid { at, dims, .. } = self else { return None };
        let n = dims.len();
        let mut stride = 1;
        let mut middle = 0;
        for (d, &size) in dims.iter().enumerate() {
            let along = cells.iter().map(|&cell| at[cell as usize * n + d]);
            let (low, high) = (along.clone().min()?, along.max()?);
            middle += (low + high) / 2 * stride;
            stride = stride.saturating_mul(size);
        }
        Some(middle)
    }
}
