//! Tori, subgroups of their translations, and dimension-ordered routes.
//!
//! A subgroup has a *step* for each dimension, a divisor of its size: its translations are
//! multiples of the steps. Cells that it maps to each other form a *class*; the cell with the least
//! coordinates is the *representative* of its class. Each translation shifts time modulo a period,
//! such that the shifts of two translations add up (a homomorphism): a step in a dimension shifts
//! by that dimension's *shift*, and all the way round by a multiple of the period. A subgroup is
//! *folded* where shifts are fractions of a slot: it keeps the translations that shift by whole
//! slots, such as those along diagonals, which visit no row or column twice. The *delay* of a cell
//! is the shift of the translation that maps its representative to it.

use conset_ir::Topology;
use conset_ir::convert::{index, to_u32};

use crate::problem::Problem;

/// Dimensions up to which connections are planned here, and choices of directions for those that
/// go just half way round.
const DIMENSIONS: usize = 16;
const DIRECTIONS: u32 = 8;

/// A stretch of a route: a dimension, whether towards larger coordinates, links.
pub(super) type Leg = (usize, bool, u32);

/// A connection as seen from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relative {
    /// The target's coordinates less the source's, as the number of a cell.
    pub(super) offset: u32,
    pub(super) words: u32,
    pub(super) connection: u32,
}

/// A torus without dead parts and the connections of its cells.
pub(super) struct Torus {
    pub(super) sizes: Vec<u32>,
    /// Whether a dimension of two cells has one link each way instead of two.
    one_way: bool,
    /// The connections of each cell, sorted.
    pub(super) lists: Vec<Vec<Relative>>,
    /// The most hops in each dimension.
    pub(super) farthest: Vec<u32>,
}

/// A subgroup of the translations and its shifts of time.
#[derive(Clone, Debug)]
pub(super) struct Subgroup {
    pub(super) classes: u32,
    /// For each cell its class and its delay.
    pub(super) class_of: Vec<u32>,
    pub(super) delay_of: Vec<u32>,
    /// The representative of each class.
    pub(super) cell_of: Vec<u32>,
}

impl Torus {
    /// The torus, ring or hypercube of a problem; `None` for other machines and those with dead
    /// parts.
    pub(super) fn new(problem: &Problem<'_>) -> Option<Self> {
        let machine = problem.machine;
        let topology = machine.topology();
        let one_way = matches!(topology, Topology::Hypercube { .. });
        let is_dead = !machine.dead_cells().is_empty() || !machine.dead_links().is_empty();
        if is_dead || !(topology.wraps() || one_way) {
            return None;
        }
        let sizes = topology.dims()?;
        if sizes.is_empty() || sizes.len() > DIMENSIONS {
            return None;
        }
        let mut lists = vec![Vec::new(); machine.cell_count()];
        let mut this = Self { farthest: vec![0; sizes.len()], sizes, one_way, lists: Vec::new() };
        for (connection, c) in problem.set.iter() {
            let (source, target) = (this.coordinates(c.source.0), this.coordinates(c.target.0));
            let ahead = source.iter().zip(&target).zip(&this.sizes);
            let ahead: Vec<u32> = ahead.map(|((s, t), size)| (t + size - s) % size).collect();
            for ((far, &ahead), &size) in this.farthest.iter_mut().zip(&ahead).zip(&this.sizes) {
                *far = (*far).max(ahead.min(size - ahead));
            }
            let (offset, words) = (this.cell(&ahead), c.words);
            lists[c.source.index()].push(Relative { offset, words, connection: connection.0 });
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        Some(Self { lists, ..this })
    }

    pub(super) fn coordinates(&self, cell: u32) -> Vec<u32> {
        let mut rest = cell;
        let each = |&size: &u32| {
            let at = rest % size;
            rest /= size;
            at
        };
        self.sizes.iter().map(each).collect()
    }

    fn cell(&self, coordinates: &[u32]) -> u32 {
        coordinates.iter().zip(&self.sizes).rev().fold(0, |cell, (at, size)| cell * size + at)
    }

    /// Whether every cell has the connections of its representative.
    pub(super) fn is_invariant(&self, steps: &[u32]) -> bool {
        (0..to_u32(self.lists.len())).all(|cell| {
            let at = self.coordinates(cell);
            let at: Vec<u32> = at.iter().zip(steps).map(|(at, step)| at % step).collect();
            let other = &self.lists[index(self.cell(&at))];
            let list = &self.lists[index(cell)];
            let pairs = list.iter().zip(other);
            list.len() == other.len()
                && pairs.into_iter().all(|(a, b)| (a.offset, a.words) == (b.offset, b.words))
        })
    }

    /// The subgroup of the translations over multiples of some steps whose shifts, modulo `folds`
    /// times the period, are multiples of `folds`; its own shifts are those divided by `folds`.
    /// `None` where not all of the `folds` classes of each cell within the steps have cells.
    pub(super) fn subgroup(
        &self,
        steps: &[u32],
        shifts: &[u32],
        (period, folds): (u32, u32),
    ) -> Option<Subgroup> {
        let classes: u32 = steps.iter().product::<u32>() * folds;
        let mut first: Vec<Option<(u32, u32)>> = vec![None; index(classes)];
        let (mut class_of, mut delay_of) = (Vec::new(), Vec::new());
        for cell in 0..to_u32(self.lists.len()) {
            let (mut class, mut shift) = (0, 0);
            let at = self.coordinates(cell);
            for ((at, step), &each) in at.iter().zip(steps).zip(shifts).rev() {
                class = class * step + at % step;
                shift += u64::from(at / step) * u64::from(each);
            }
            let shift = to_u32(shift % (u64::from(period) * u64::from(folds)));
            let (class, delay) = (class * folds + shift % folds, shift / folds);
            // Delays count from the first cell of a class, its representative.
            let (_, start) = *first[index(class)].get_or_insert((cell, delay));
            class_of.push(class);
            delay_of.push((delay + period - start) % period);
        }
        let cell_of: Option<Vec<u32>> = first.iter().map(|first| Some((*first)?.0)).collect();
        Some(Subgroup { classes, class_of, delay_of, cell_of: cell_of? })
    }

    /// Shortest routes of an offset that cross the dimensions in order, from each dimension on, in
    /// both directions where that is as far.
    pub(super) fn routes(&self, offset: u32) -> Vec<Vec<Leg>> {
        let ahead = self.coordinates(offset);
        let halfway = |d: usize| 2 * ahead[d] == self.sizes[d] && !self.one_way;
        let halves = to_u32((0..ahead.len()).filter(|&d| ahead[d] > 0 && halfway(d)).count());
        let crossed: Vec<usize> = (0..ahead.len()).filter(|&d| ahead[d] > 0).collect();
        let mut routes = Vec::new();
        for directions in 0..(1u32 << halves.min(31)).min(DIRECTIONS) {
            let mut half = 0;
            let leg = |&d: &usize| {
                let (size, ahead) = (self.sizes[d], ahead[d]);
                let forward = if halfway(d) {
                    half += 1;
                    directions >> ((half - 1) % DIRECTIONS.ilog2()) & 1 == 0
                } else {
                    2 * ahead <= size
                };
                (d, forward, if forward { ahead } else { size - ahead })
            };
            let mut legs: Vec<Leg> = crossed.iter().map(leg).collect();
            for _ in 0..legs.len().max(1) {
                routes.push(legs.clone());
                if !legs.is_empty() {
                    legs.rotate_left(1);
                }
            }
        }
        routes
    }

    /// The cell with the opposite coordinates.
    pub(super) fn opposite(&self, cell: u32) -> u32 {
        let at = self.coordinates(cell);
        let at: Vec<u32> =
            at.iter().zip(&self.sizes).map(|(at, size)| (size - at) % size).collect();
        self.cell(&at)
    }

    /// The cell so many links away in a dimension.
    pub(super) fn beyond(&self, cell: u32, dimension: usize, forward: bool, links: u32) -> u32 {
        let mut at = self.coordinates(cell);
        let size = self.sizes[dimension];
        let links = links % size;
        let ahead = if forward { links } else { size - links };
        at[dimension] = (at[dimension] + ahead) % size;
        self.cell(&at)
    }

    /// The cells of a route.
    pub(super) fn cells(&self, source: u32, legs: &[Leg]) -> Vec<u32> {
        let mut cells = vec![source];
        for &(dimension, forward, links) in legs {
            let stride: u32 = self.sizes[..dimension].iter().product();
            let size = self.sizes[dimension];
            for _ in 0..links {
                let cell = cells[cells.len() - 1];
                let at = cell / stride % size;
                let next = if forward { (at + 1) % size } else { (at + size - 1) % size };
                cells.push(cell - at * stride + next * stride);
            }
        }
        cells
    }
}
