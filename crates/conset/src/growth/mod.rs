//! Breadth-first growth on a grid: Wolff clusters of the Ising model, and Lee's maze routing.
//!
//! These are the two applications of S. Bae and S. Ranka, A Comparison of Different Message-Passing
//! Paradigms for the Parallelization of Two Irregular Applications. Both grow a set of sites from
//! one site: in every *cycle* each site that is new gives its four neighbours as *candidates*
//! ([`Candidate`]), and a candidate that the rule of the application accepts ([`Growth::accept`])
//! is new in the next cycle. Columns are on cells in stripes ([`Stripes`]), so a candidate of the
//! next column may have to go to another cell, and nobody knows before which.
//!
//! * [`wolff`]: clusters of the Ising model, with a random number for each bond; [`ising`]: the
//!   exact values that they are tested with.
//! * [`lee`]: shortest paths through mazes, and random mazes.
//! * [`random`]: random numbers that are functions of a counter.
//!
//! The kernels know nothing of a transport: `examples` runs them on the cells of the runtime, and
//! [`crate::reproduce::active`] counts what each cell does in a cycle. The same rule with the same
//! random numbers accepts the same sites on any number of cells, in any order of the candidates of
//! a cycle.

pub mod ising;
pub mod lee;
pub mod random;
pub mod wolff;

use conset_ir::convert::{index, to_u32, to_usize};

/// The longest side of a grid: sites and cycles then fit in the words of a [`Candidate`].
pub const MAX_SIDE: u32 = 4096;

/// A grid or a partition that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrowthError {
    /// The side of a grid.
    #[error("a grid of side {side}: expected 2 to {MAX_SIDE}")]
    Side {
        /// The side.
        side: u32,
    },
    /// The cells or the width of the stripes.
    #[error(
        "stripes of {width} columns on {cells} cells: expected at least 1 of each, and at most {MAX_SIDE}"
    )]
    Stripes {
        /// Cells.
        cells: u32,
        /// Columns of a stripe.
        width: u32,
    },
    /// The share of blocked sites.
    #[error("{percent} % of the sites blocked: expected 0 to 90 %")]
    Blocked {
        /// The share in percent.
        percent: u32,
    },
    /// No two free sites at the distance that was asked for.
    #[error(
        "no two free sites at the distance were found in {tries} tries; block fewer sites or use another seed"
    )]
    Ends {
        /// Pairs that were tried.
        tries: u32,
    },
}

/// The direction from a site to its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    /// To the row before.
    North,
    /// To the column after.
    East,
    /// To the row after.
    South,
    /// To the column before.
    West,
}

impl Heading {
    /// All four, in the order in which they decide between equal parents.
    pub const ALL: [Self; 4] = [Self::North, Self::East, Self::South, Self::West];

    /// The way back.
    #[must_use]
    pub fn opposite(self) -> Self {
        Self::ALL[(self.number() + 2) % 4]
    }

    fn number(self) -> usize {
        Self::ALL.iter().position(|&heading| heading == self).unwrap_or(0)
    }
}

/// A site that may become part of what grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Row times side plus column.
    pub site: u32,
    /// The cycle in which it is new; its distance from the first site along the growth.
    pub level: u32,
    /// The direction from its parent to it.
    pub heading: Heading,
    /// Whether the parent's spin was up before (Wolff).
    pub up: bool,
}

impl Candidate {
    /// The words in which it travels.
    #[must_use]
    pub fn words(self) -> [u32; 2] {
        [self.site, self.level << 3 | u32::from(self.up) << 2 | to_u32(self.heading.number())]
    }

    /// The candidate of its words.
    #[must_use]
    pub fn from_words([site, rest]: [u32; 2]) -> Self {
        let heading = Heading::ALL[index(rest & 3)];
        Self { site, level: rest >> 3, heading, up: rest & 4 != 0 }
    }
}

/// A square grid whose columns are on cells in stripes, by turns: the paper's "cyclic column-wise
/// striped partitioning".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripes {
    side: u32,
    cells: u32,
    width: u32,
}

impl Stripes {
    /// A grid of so many rows and columns on so many cells, in stripes of so many columns.
    ///
    /// # Errors
    /// A side out of range, no cell, or stripes without columns.
    pub fn new(side: u32, cells: u32, width: u32) -> Result<Self, GrowthError> {
        if !(2..=MAX_SIDE).contains(&side) {
            return Err(GrowthError::Side { side });
        }
        if !(1..=MAX_SIDE).contains(&cells) || !(1..=MAX_SIDE).contains(&width) {
            return Err(GrowthError::Stripes { cells, width });
        }
        Ok(Self { side, cells, width })
    }

    /// The grid on one cell.
    ///
    /// # Errors
    /// A side out of range.
    pub fn alone(side: u32) -> Result<Self, GrowthError> {
        Self::new(side, 1, side)
    }

    /// Rows, and columns.
    #[must_use]
    pub fn side(&self) -> u32 {
        self.side
    }

    /// Cells.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Columns of a stripe.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Sites.
    #[must_use]
    pub fn sites(&self) -> u32 {
        self.side * self.side
    }

    /// Whether stripes that touch are always on cells whose ranks follow each other, also across
    /// the edge of the grid.
    #[must_use]
    pub fn is_ring(&self) -> bool {
        self.cells == 1 || self.side.is_multiple_of(self.width * self.cells)
    }

    /// The rank of the cell that has a site.
    #[must_use]
    pub fn owner(&self, site: u32) -> u32 {
        site % self.side / self.width % self.cells
    }

    /// The place of a site in the arrays of its owner.
    #[must_use]
    pub fn place(&self, site: u32) -> usize {
        let (row, column) = (site / self.side, site % self.side);
        let local = column % self.width + self.width * (column / (self.width * self.cells));
        to_usize(local * self.side + row)
    }

    /// The sites of a cell in the order of their places.
    pub fn sites_of(&self, rank: u32) -> impl Iterator<Item = u32> {
        let side = self.side;
        let own = move |column: &u32| self.owner(*column) == rank;
        (0..side).filter(own).flat_map(move |column| (0..side).map(move |row| row * side + column))
    }

    /// The neighbour of a site; none beyond the edge, unless the grid is periodic.
    #[must_use]
    pub fn neighbour(&self, site: u32, heading: Heading, periodic: bool) -> Option<u32> {
        let (row, column) = (site / self.side, site % self.side);
        let last = self.side - 1;
        let before =
            |place: u32| if place > 0 { Some(place - 1) } else { periodic.then_some(last) };
        let after = |place: u32| if place < last { Some(place + 1) } else { periodic.then_some(0) };
        Some(match heading {
            Heading::North => before(row)? * self.side + column,
            Heading::South => after(row)? * self.side + column,
            Heading::West => row * self.side + before(column)?,
            Heading::East => row * self.side + after(column)?,
        })
    }
}

/// The part of an application's grid that one cell has, and the rule by which it grows.
pub trait Growth {
    /// The grid and its partition.
    fn stripes(&self) -> &Stripes;

    /// Whether the grid continues at the opposite edge.
    const PERIODIC: bool;

    /// Takes a candidate of a site of this cell into the growth, if it is not yet there and the
    /// rule allows it. An accepted one has to be expanded.
    fn accept(&mut self, candidate: Candidate) -> bool;

    /// Whether an accepted candidate still has to be expanded. It has not if the site was accepted
    /// again with a lower level, because candidates came out of order.
    fn is_current(&self, candidate: Candidate) -> bool;

    /// The neighbours of an accepted site: the candidates of the next cycle.
    fn expand(&self, parent: Candidate) -> [Option<Candidate>; 4] {
        Heading::ALL.map(|heading| {
            let site = self.stripes().neighbour(parent.site, heading, Self::PERIODIC)?;
            Some(Candidate { site, level: parent.level + 1, heading, up: parent.up })
        })
    }
}

/// Grows alone, on the whole grid: `each` gets the new sites of a cycle before they are expanded,
/// and returns whether to go on.
pub fn grow(
    growth: &mut impl Growth,
    first: Candidate,
    mut each: impl FnMut(&[Candidate]) -> bool,
) {
    let (mut front, mut next) = (vec![first], Vec::new());
    while !front.is_empty() && each(&front) {
        for &parent in &front {
            for candidate in growth.expand(parent).into_iter().flatten() {
                if growth.accept(candidate) {
                    next.push(candidate);
                }
            }
        }
        std::mem::swap(&mut front, &mut next);
        next.clear();
    }
}

#[cfg(test)]
mod tests;
