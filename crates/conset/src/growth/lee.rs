//! Lee's maze routing (1961): the shortest path between two sites of a grid with blocked sites.
//!
//! A wave expands from the source; every site that it reaches is labelled with the direction from
//! which it came. From the destination the labels lead back to the source, and the sites of the
//! path become blocked; then all labels are swept.
//!
//! A site that several parents reach in the same cycle takes the first direction of
//! [`Heading::ALL`], and a site that is reached again with a smaller distance, because candidates
//! came out of order, is corrected. So labels, and the path, do not depend on partition and order.

use std::collections::VecDeque;

use conset_ir::convert::to_usize;

use super::random::Stream;
use super::{Candidate, Growth, GrowthError, Heading, Stripes};

/// The level of a site without a label.
const FREE: u32 = u32::MAX;

/// The sites of a maze that one cell has.
#[derive(Clone, Debug)]
pub struct Maze {
    stripes: Stripes,
    rank: u32,
    blocked: Vec<bool>,
    level: Vec<u32>,
    label: Vec<Heading>,
    /// Places with labels.
    labelled: Vec<usize>,
}

impl Maze {
    /// The part of a cell; `blocked` tells which sites are blocked, row by row.
    #[must_use]
    pub fn new(stripes: Stripes, rank: u32, blocked: &[bool]) -> Self {
        let is_blocked = |site: u32| blocked.get(to_usize(site)).copied().unwrap_or(true);
        let blocked: Vec<bool> = stripes.sites_of(rank).map(is_blocked).collect();
        let (level, label) = (vec![FREE; blocked.len()], vec![Heading::North; blocked.len()]);
        Self { stripes, rank, blocked, level, label, labelled: Vec::new() }
    }

    /// Starts at a source, which it returns if this cell has it and it is free.
    pub fn start(&mut self, source: u32) -> Option<Candidate> {
        let own = self.stripes.owner(source) == self.rank;
        let first = Candidate { site: source, level: 0, heading: Heading::North, up: false };
        (own && self.accept(first)).then_some(first)
    }

    /// Whether the wave has reached a site of this cell.
    #[must_use]
    pub fn is_reached(&self, site: u32) -> bool {
        self.stripes.owner(site) == self.rank && self.level[self.stripes.place(site)] != FREE
    }

    /// Blocks a labelled site of this cell, as part of the path, and returns the one before it;
    /// none if it is the source.
    pub fn trace_back(&mut self, site: u32) -> Option<u32> {
        let place = self.stripes.place(site);
        self.blocked[place] = true;
        if matches!(self.level[place], 0 | FREE) {
            return None;
        }
        self.stripes.neighbour(site, self.label[place].opposite(), Self::PERIODIC)
    }

    /// Removes all labels. Blocked sites stay blocked.
    pub fn sweep(&mut self) {
        for place in self.labelled.drain(..) {
            self.level[place] = FREE;
        }
    }

    /// Which sites are blocked, by place.
    #[must_use]
    pub fn blocked(&self) -> &[bool] {
        &self.blocked
    }

    /// Whether no site has a label.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.level.iter().all(|&level| level == FREE)
    }
}

impl Growth for Maze {
    const PERIODIC: bool = false;

    fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    fn accept(&mut self, candidate: Candidate) -> bool {
        let place = self.stripes.place(candidate.site);
        if self.blocked[place] || candidate.level > self.level[place] {
            return false;
        }
        if candidate.level == self.level[place] {
            self.label[place] = self.label[place].min(candidate.heading);
            return false;
        }
        if self.level[place] == FREE {
            self.labelled.push(place);
        }
        (self.level[place], self.label[place]) = (candidate.level, candidate.heading);
        true
    }

    fn is_current(&self, candidate: Candidate) -> bool {
        self.level[self.stripes.place(candidate.site)] == candidate.level
    }
}

/// Random mazes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacles {
    /// Every site by itself.
    Sites,
    /// Rectangles whose sides are 1 to 2 `mean` - 1 sites, until the share is reached.
    Rectangles {
        /// The mean side.
        mean: u32,
    },
}

impl Obstacles {
    /// Which sites are blocked, row by row: `percent` of all, or a little more with rectangles.
    ///
    /// # Errors
    /// A side out of range, or more than 90 %.
    pub fn blocked(self, side: u32, percent: u32, seed: u64) -> Result<Vec<bool>, GrowthError> {
        let stripes = Stripes::alone(side)?;
        if percent > 90 {
            return Err(GrowthError::Blocked { percent });
        }
        let random = Stream::new(seed, 0);
        let mut blocked = vec![false; to_usize(stripes.sites())];
        let target = to_usize(stripes.sites()) * to_usize(percent) / 100;
        let (mut count, mut draw) = (0, 0);
        let mut next = |limit: u32| {
            draw += 1;
            random.below(draw, limit)
        };
        while count < target {
            let (row, column) = (next(side), next(side));
            let (rows, columns) = match self {
                Self::Sites => (1, 1),
                Self::Rectangles { mean } => {
                    let sides = (2 * mean.min(side)).saturating_sub(1).max(1);
                    (1 + next(sides), 1 + next(sides))
                }
            };
            for row in row..(row + rows).min(side) {
                for column in column..(column + columns).min(side) {
                    let site = &mut blocked[to_usize(row * side + column)];
                    count += usize::from(!*site);
                    *site = true;
                }
            }
        }
        Ok(blocked)
    }
}

/// A source and a destination, both free and at a Manhattan distance in a range. They need not be
/// connected.
///
/// # Errors
/// None was found.
pub fn random_ends(
    side: u32,
    blocked: &[bool],
    distance: std::ops::RangeInclusive<u32>,
    random: Stream,
) -> Result<[u32; 2], GrowthError> {
    const TRIES: u32 = 100_000;
    let free = |site: u32| !blocked.get(to_usize(site)).copied().unwrap_or(true);
    for attempt in 0..u64::from(TRIES) {
        let ends = [0, 1].map(|end| random.below(2 * attempt + end, side.saturating_mul(side)));
        if ends.iter().all(|&site| free(site)) && distance.contains(&manhattan(side, ends)) {
            return Ok(ends);
        }
    }
    Err(GrowthError::Ends { tries: TRIES })
}

/// The distance of two sites along rows and columns.
#[must_use]
pub fn manhattan(side: u32, [a, b]: [u32; 2]) -> u32 {
    let side = side.max(1);
    (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side)
}

/// The distance of two sites by a breadth-first search without labels; none if one of them is
/// blocked or no path connects them.
#[must_use]
pub fn distance(side: u32, blocked: &[bool], [source, destination]: [u32; 2]) -> Option<u32> {
    let stripes = Stripes::alone(side).ok()?;
    let is_free = |site: u32| !blocked.get(to_usize(site)).copied().unwrap_or(true);
    let mut seen = vec![false; blocked.len()];
    let mut queue = VecDeque::new();
    if is_free(source) {
        seen[to_usize(source)] = true;
        queue.push_back((source, 0));
    }
    while let Some((site, distance)) = queue.pop_front() {
        if site == destination {
            return Some(distance);
        }
        let next = |heading| stripes.neighbour(site, heading, Maze::PERIODIC);
        for next in Heading::ALL.into_iter().filter_map(next).filter(|&next| is_free(next)) {
            if !std::mem::replace(&mut seen[to_usize(next)], true) {
                queue.push_back((next, distance + 1));
            }
        }
    }
    None
}
