//! Clusters of the Ising model (U. Wolff, 1989) on a periodic square lattice.
//!
//! A *sweep* picks a site at random, flips its spin, and grows a cluster from it: a neighbour whose
//! spin was the parent's joins with probability 1 - exp(-2 beta) and is flipped too. All sites of a
//! cluster had the same spin, so a site that has joined is told by its spin, and needs no mark.
//!
//! Each bond has one random number in a sweep, of a counter ([`Stream`]): the cluster is
//! what these numbers connect, whichever cells have the sites and in whichever order candidates
//! come. The paper draws a number for each candidate and a seed for each processor, so that its
//! clusters change with the partition.

use super::random::Stream;
use super::{Candidate, Growth, GrowthError, Heading, Stripes};

/// The inverse temperature of the phase transition, ln(1 + sqrt 2) / 2.
pub const CRITICAL: f64 = 0.440_686_793_509_771_5;

/// The spins of one cell.
#[derive(Clone, Debug)]
pub struct Spins {
    stripes: Stripes,
    rank: u32,
    up: Vec<bool>,
    probability: f64,
    seed: u64,
    random: Stream,
}

impl Spins {
    /// The spins of a cell, all up, at an inverse temperature.
    #[must_use]
    pub fn new(stripes: Stripes, rank: u32, beta: f64, seed: u64) -> Self {
        let up = vec![true; stripes.sites_of(rank).count()];
        let probability = 1.0 - (-2.0 * beta).exp();
        Self { stripes, rank, up, probability, seed, random: Stream::new(seed, 0) }
    }

    /// The spins of the whole lattice on one cell.
    ///
    /// # Errors
    /// A side out of range.
    pub fn alone(side: u32, beta: f64, seed: u64) -> Result<Self, GrowthError> {
        Ok(Self::new(Stripes::alone(side)?, 0, beta, seed))
    }

    /// Starts sweep `number`: flips the first site, which it returns if this cell has it. All cells
    /// draw the same site, so that nobody has to send it.
    pub fn start(&mut self, number: u64) -> Option<Candidate> {
        self.random = Stream::new(self.seed, number);
        let sites = self.stripes.sites();
        // The numbers before are those of the bonds.
        let site = self.random.below(2 * u64::from(sites), sites);
        if self.stripes.owner(site) != self.rank {
            return None;
        }
        let up = self.is_up(site);
        self.flip(site);
        Some(Candidate { site, level: 0, heading: Heading::North, up })
    }

    /// Whether a spin of this cell is up.
    #[must_use]
    pub fn is_up(&self, site: u32) -> bool {
        self.up[self.stripes.place(site)]
    }

    fn flip(&mut self, site: u32) {
        let place = self.stripes.place(site);
        self.up[place] = !self.up[place];
    }

    /// The spins by place.
    #[must_use]
    pub fn spins(&self) -> &[bool] {
        &self.up
    }

    /// The number of the bond from a site's parent to it. Bonds are those from a site to the east
    /// and to the south, two for each site; on a lattice of side 2 there are two between
    /// neighbours.
    fn bond(&self, candidate: Candidate) -> Option<u64> {
        let parent =
            || self.stripes.neighbour(candidate.site, candidate.heading.opposite(), Self::PERIODIC);
        Some(match candidate.heading {
            Heading::East => 2 * u64::from(parent()?),
            Heading::South => 2 * u64::from(parent()?) + 1,
            Heading::West => 2 * u64::from(candidate.site),
            Heading::North => 2 * u64::from(candidate.site) + 1,
        })
    }

    /// The sum of all spins, up 1 and down -1.
    #[must_use]
    pub fn magnetisation(&self) -> i64 {
        self.up.iter().map(|&up| if up { 1 } else { -1 }).sum()
    }

    /// The energy of the whole lattice: minus the sum, over bonds, of the product of two spins. To
    /// be called with all sites on one cell.
    #[must_use]
    pub fn energy(&self) -> i64 {
        let bond = |site: u32, heading| {
            let other = self.stripes.neighbour(site, heading, Self::PERIODIC);
            other.map_or(0, |other| if self.is_up(site) == self.is_up(other) { -1 } else { 1 })
        };
        (0..self.stripes.sites())
            .map(|site| bond(site, Heading::East) + bond(site, Heading::South))
            .sum()
    }
}

impl Growth for Spins {
    const PERIODIC: bool = true;

    fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    fn accept(&mut self, candidate: Candidate) -> bool {
        if self.is_up(candidate.site) != candidate.up {
            return false;
        }
        let Some(bond) = self.bond(candidate) else { return false };
        let joins = self.random.uniform(bond) < self.probability;
        if joins {
            self.flip(candidate.site);
        }
        joins
    }

    fn is_current(&self, _candidate: Candidate) -> bool {
        true
    }
}
