//! What each cell does in each cycle of a growth: counted on one cell, for any partition.
//!
//! The sites that are new in a cycle do not depend on the partition, so a growth runs once, on the
//! whole grid, and its cycles are counted for each partition.

use conset_ir::convert::{index, to_u64, to_usize};

use crate::growth::{Candidate, Growth, Heading, Stripes};

/// What a cell does in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Sites that it expands.
    pub expanded: u32,
    /// Those of them that came from another cell.
    pub from_others: u32,
    /// Candidates for the cell of the stripes to the left.
    pub left: u32,
    /// Candidates for the cell of the stripes to the right.
    pub right: u32,
}

/// The cycles of a growth on the cells of a partition.
#[derive(Clone, Debug)]
pub struct Trace {
    stripes: Stripes,
    periodic: bool,
    loads: Vec<Load>,
}

impl Trace {
    /// Of a growth that has not begun.
    #[must_use]
    pub fn new<G: Growth>(stripes: Stripes) -> Self {
        Self { stripes, periodic: G::PERIODIC, loads: Vec::new() }
    }

    /// Cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        index(self.stripes.cells())
    }

    /// Columns of a stripe.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.stripes.width()
    }

    /// The loads of the cells, cycle by cycle.
    pub fn cycles(&self) -> impl Iterator<Item = &[Load]> {
        self.loads.chunks(self.cells())
    }

    /// Adds the cycle in which these sites are expanded. A site counts as one from another cell if
    /// the parent that was first is there.
    pub fn add(&mut self, front: &[Candidate]) {
        let (cells, stripes) = (self.cells(), self.stripes);
        let start = self.loads.len();
        self.loads.resize(start + cells, Load::default());
        for candidate in front {
            let owner = stripes.owner(candidate.site);
            let load = &mut self.loads[start + to_usize(owner)];
            load.expanded += 1;
            let elsewhere = |heading| {
                let near = stripes.neighbour(candidate.site, heading, self.periodic);
                u32::from(near.is_some_and(|near| stripes.owner(near) != owner))
            };
            let (left, right) = (elsewhere(Heading::West), elsewhere(Heading::East));
            load.left += left;
            load.right += right;
            load.from_others += match candidate.heading {
                Heading::East => left,
                Heading::West => right,
                Heading::North | Heading::South => 0,
            };
        }
    }

    /// The packets of two candidates each that every cell sends, to the left and to the right.
    #[must_use]
    pub fn packets(&self) -> Vec<[u64; 2]> {
        let mut packets = vec![[0; 2]; self.cells()];
        for loads in self.cycles() {
            for (sum, load) in packets.iter_mut().zip(loads) {
                sum[0] += to_u64(load.left.div_ceil(2));
                sum[1] += to_u64(load.right.div_ceil(2));
            }
        }
        packets
    }
}
