//! Routes of pieces: the places at which a piece is before and after each level.
//!
//! A [`PieceRoute`] gives the number of a cell for each source, target and level. Whatever these cells
//! are, a plan delivers every piece, as its first place is its source and its last one its target; so
//! routes differ only in which pieces travel together, and how far.
//!
//! With *digits*, cell number `c` has the digits `c1, ..., ck` in the radices `r1, ..., rk`, the first
//! the most significant, and a [`Place`] takes each of its digits from the source `s` or the target
//! `d`. By default, level `i` replaces digit `i` of the source by that of the target: `s1 s2 s3`,
//! `d1 s2 s3`, `d1 d2 s3`, `d1 d2 d3`. Other places give other algorithms. With tiles as first digits,
//! `s1 s2`, `s1 d1`, `d1 s1`, `d1 d2` is an all-to-all in squares, then one message between each pair
//! of squares, then an all-to-all in squares (2-lev-sq of the C3 paper). A digit is taken modulo the
//! radix of its position. If a cell does not exist, the last cell `p - 1` stands for it. By default
//! that agrees with the target in all digits so far: all numbers with the digits `d1 .. di` are an
//! interval that has `d`, which exists, and the number that does not, so `p - 1` is in it too.
//!
//! With *halves*, a part of the machine is cut in two, and a piece goes to the part that has its target
//! (module `halves`).
//!
//! With *nodes*, the words between two nodes of a cluster are gathered, sent in one message and
//! scattered (module `nodes`).
//!
//! The *inverse* of a route has its levels in the opposite order, with sources and targets exchanged:
//! what is sent from one cell to all by a route is sent from all to one by its inverse.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ConnectionSet, Machine, ShapeError};

use super::halves::{PartTree, Share};
use super::nodes::NodeLeaders;

/// How pieces travel from their sources to their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PieceRoute {
    /// By the digits of the numbers of cells in a mixed radix.
    Digits {
        /// The radices, the first of the most significant digit.
        radices: Vec<u32>,
        /// The places between the source and the target; one per level but the last.
        places: Vec<Place>,
    },
    /// By ever smaller parts of the machine, of which that of the busiest cell keeps a share.
    Halves(Share),
    /// By the nodes of a cluster: words between two nodes in one message.
    Nodes,
}

/// A place of a route by digits: where each digit of the cell's number comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub Vec<PlaceDigit>);

/// A digit of a source or a target. Digits are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceDigit {
    /// Of the source of the connection.
    Source(usize),
    /// Of the target.
    Target(usize),
}

impl PieceRoute {
    /// The route that replaces one digit after the other, the first first.
    ///
    /// # Errors
    /// Radices below 2, or whose product is above 2^32.
    pub fn digits(radices: &[u32]) -> Result<Self, ShapeError> {
        let levels = radices.len();
        let place = |level: usize| {
            let target = (0..level).map(PlaceDigit::Target);
            Place(target.chain((level..levels).map(PlaceDigit::Source)).collect())
        };
        Self::places(radices, (1..levels).map(place).collect())
    }

    /// The route over places.
    ///
    /// # Errors
    /// As [`PieceRoute::digits`], or a place with more or fewer digits than there are radices, or with
    /// digits that do not exist.
    pub fn places(radices: &[u32], places: Vec<Place>) -> Result<Self, ShapeError> {
        let route = Self::Digits { radices: radices.to_vec(), places };
        route.check()?;
        Ok(route)
    }

    pub(super) fn check(&self) -> Result<(), ShapeError> {
        let PieceRoute::Digits { radices, places } = self else { return Ok(()) };
        let product = radices.iter().try_fold(1u64, |product, &radix| {
            product.checked_mul(radix.into()).filter(|&p| radix >= 2 && p <= 1 << 32)
        });
        if product.is_none() {
            let message = "every radix is at least 2, and their product at most 2^32";
            return Err(ShapeError::new("radices", message));
        }
        let exists = |digit: &PlaceDigit| match *digit {
            PlaceDigit::Source(at) | PlaceDigit::Target(at) => at < radices.len(),
        };
        for place in places {
            if place.0.len() != radices.len() || !place.0.iter().all(exists) {
                let digits = radices.len();
                return Err(ShapeError::new(
                    "places",
                    format!(
                        "`{place}`: expected {digits} digits of `s` or `d`, from 1 to {digits}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The product of the radices; none for halves and nodes, which fit any number of cells.
    pub(super) fn cells(&self) -> Option<u64> {
        match self {
            PieceRoute::Digits { radices, .. } => {
                Some(radices.iter().map(|&r| u64::from(r)).product())
            }
            PieceRoute::Halves(_) | PieceRoute::Nodes => None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|digit| match digit {
            PlaceDigit::Source(at) => write!(f, "s{}", at + 1),
            PlaceDigit::Target(at) => write!(f, "d{}", at + 1),
        })
    }
}

impl Place {
    /// Parses the digits of a place, such as `s1d1`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = Vec::new();
        let mut rest = text;
        while let Some(end) = rest.chars().next() {
            rest = &rest[end.len_utf8()..];
            let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let at: usize = rest[..length].parse().ok().filter(|&at| at > 0)?;
            digits.push(match end {
                's' => PlaceDigit::Source(at - 1),
                'd' => PlaceDigit::Target(at - 1),
                _ => return None,
            });
            rest = &rest[length..];
        }
        (!digits.is_empty()).then_some(Self(digits))
    }
}

/// A route for the cells of a machine, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct NumberedRoute {
    kind: RouteKind,
    inverse: bool,
    /// The greatest number of a cell.
    last: u64,
}

#[derive(Clone, Debug)]
enum RouteKind {
    /// Per place, what the source and the target contribute to the number; and the digits of levels.
    Digits {
        places: Vec<[Vec<u64>; 2]>,
        levels: Vec<LevelDigits>,
    },
    Halves(PartTree),
    Nodes(NodeLeaders),
}

/// The digits in which a level changes the numbers of cells, as one digit.
#[derive(Clone, Debug)]
pub(super) struct LevelDigits {
    pub(super) radix: u64,
    pub(super) of: Vec<u32>,
}

impl NumberedRoute {
    /// A route over the given cells for a set, and the cells in the order of their numbers.
    pub(super) fn new(
        route: &PieceRoute,
        inverse: bool,
        machine: &Machine,
        cells: &[CellId],
        set: &ConnectionSet,
    ) -> (Self, Vec<CellId>) {
        let last = to_u64(cells.len()).saturating_sub(1);
        let (kind, cells) = match route {
            PieceRoute::Digits { radices, places } => {
                (by_digits(radices, places, to_u32(cells.len())), cells.to_vec())
            }
            PieceRoute::Halves(share) => {
                let root = busiest(machine, cells, set);
                let (tree, cells) = PartTree::new(machine, cells, root, *share);
                (RouteKind::Halves(tree), cells)
            }
            PieceRoute::Nodes => {
                (RouteKind::Nodes(NodeLeaders::new(machine, cells, set)), cells.to_vec())
            }
        };
        (Self { kind, inverse, last }, cells)
    }

    pub(super) fn levels(&self) -> usize {
        match &self.kind {
            RouteKind::Digits { levels, .. } => levels.len(),
            RouteKind::Halves(tree) => tree.levels(),
            RouteKind::Nodes(_) => NodeLeaders::LEVELS,
        }
    }

    /// Where a piece is before a level, or after the last one.
    pub(super) fn place(&self, level: usize, source: u32, target: u32) -> u32 {
        let (level, source, target) = match self.inverse {
            true => (self.levels() - level, target, source),
            false => (level, source, target),
        };
        match &self.kind {
            RouteKind::Digits { places, .. } => {
                let [of_source, of_target] = &places[level];
                to_u32((of_source[index(source)] + of_target[index(target)]).min(self.last))
            }
            RouteKind::Halves(tree) => tree.place(level, source, target),
            RouteKind::Nodes(leaders) => leaders.place(level, source, target),
        }
    }

    /// The digits of the cells in a level.
    pub(super) fn digits(&self, level: usize) -> LevelDigits {
        let level = if self.inverse { self.levels() - 1 - level } else { level };
        match &self.kind {
            RouteKind::Digits { levels, .. } => levels[level].clone(),
            RouteKind::Halves(tree) => LevelDigits { radix: 2, of: tree.digits(level) },
            RouteKind::Nodes(leaders) => {
                let (radix, of) = leaders.digits(level);
                LevelDigits { radix, of }
            }
        }
    }
}

fn by_digits(radices: &[u32], between: &[Place], cells: u32) -> RouteKind {
    // The product of the radices after each digit.
    let mut weights = vec![1u64; radices.len()];
    for at in (1..radices.len()).rev() {
        weights[at - 1] = weights[at] * u64::from(radices[at]);
    }
    let digit = |number: u32, at: usize| u64::from(number) / weights[at] % u64::from(radices[at]);
    let source = Place((0..radices.len()).map(PlaceDigit::Source).collect());
    let target = Place((0..radices.len()).map(PlaceDigit::Target).collect());
    let all: Vec<&Place> =
        std::iter::once(&source).chain(between).chain(std::iter::once(&target)).collect();
    let places = all.iter().map(|place| {
        let sum = |number: u32, is_source: bool| {
            let digits = place.0.iter().enumerate();
            let parts = digits.filter_map(|(position, end)| {
                let at = match *end {
                    PlaceDigit::Source(at) if is_source => at,
                    PlaceDigit::Target(at) if !is_source => at,
                    _ => return None,
                };
                Some(digit(number, at) % u64::from(radices[position]) * weights[position])
            });
            parts.sum::<u64>()
        };
        [true, false].map(|is_source| (0..cells).map(|number| sum(number, is_source)).collect())
    });
    let levels = all.windows(2).map(|pair| {
        let changed: Vec<usize> = pair[0]
            .0
            .iter()
            .zip(&pair[1].0)
            .enumerate()
            .filter(|(_, (before, after))| before != after)
            .map(|(at, _)| at)
            .collect();
        let number = |cell: u32| {
            changed.iter().fold(0u64, |sum, &at| sum * u64::from(radices[at]) + digit(cell, at))
        };
        LevelDigits {
            radix: changed.iter().map(|&at| u64::from(radices[at])).product(),
            of: (0..cells).map(|cell| to_u32(number(cell))).collect(),
        }
    });
    RouteKind::Digits { places: places.collect(), levels: levels.collect() }
}

/// The cell that sends and receives the most words; the first of several.
fn busiest(machine: &Machine, cells: &[CellId], set: &ConnectionSet) -> CellId {
    let mut words = vec![0u64; machine.cell_count()];
    for connection in set.connections().iter().filter(|c| c.source != c.target) {
        for end in [connection.source, connection.target] {
            if let Some(sum) = words.get_mut(end.index()) {
                *sum += u64::from(connection.words);
            }
        }
    }
    // Of equal ones, `max_by_key` would take the last.
    let busiest = cells.iter().rev().max_by_key(|cell| words[cell.index()]);
    busiest.copied().unwrap_or(CellId(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_back() {
        for text in ["s1d1", "d1s1", "d2s12d3"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "s", "s0d1", "x1", "1s", "s1 d1", "sd"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
        let place = |text| Place::parse(text).unwrap();
        assert!(PieceRoute::places(&[4, 4], vec![place("s1d1"), place("d1s1")]).is_ok());
        for wrong in ["s1", "s1d3", "s1d1d2"] {
            assert!(PieceRoute::places(&[4, 4], vec![place(wrong)]).is_err(), "{wrong}");
        }
    }
}
