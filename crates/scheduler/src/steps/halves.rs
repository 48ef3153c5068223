//! Halves: a tree of ever smaller parts of the machine, for uneven shares and any number of cells.
//!
//! A part of several cells is cut in two across its longest side, so that a square mesh is cut
//! alternately in both dimensions. The part of the *root* cell keeps the given share of the cells. The
//! other part has a head too, the cell at the place that corresponds to the root's, and is divided
//! around it in the same way (algorithms logp-lev-sq and, with uneven shares, logp-lev-rec of the C3
//! paper, section 4). Cells are numbered such that each part is an interval that begins with its head.
//!
//! A piece at cell `c` goes, in the level of a cut, to the part that has its target: to the cell whose
//! position in that part corresponds to the position of `c` in its own. For equal parts, whose number
//! is a power of two, this is the walk in radices 2, 2, ..; uneven parts are no mixed radix.
//!
//! Machines without coordinates are cut by the ids of their cells.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, Machine};

use super::numbering::positions;

/// The part of the cells, in thousandths, that the source's side of a cut keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share(u32);

impl Share {
    /// Equal halves.
    pub const HALF: Share = Share(500);

    /// Parses a number above 0 and below 1 with at most three digits after the point, such as 0.75.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0.").or_else(|| text.strip_prefix('.'))?;
        if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let thousandths = format!("{digits:0<3}").parse().ok()?;
        (thousandths > 0).then_some(Self(thousandths))
    }

    /// The cells of `count` that the share is, at least one and not all of several.
    fn of(self, count: usize) -> usize {
        let share = (to_u64(count) * u64::from(self.0) + 500) / 1000;
        index(to_u32(share)).clamp(1, count.saturating_sub(1).max(1))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = format!("{:03}", self.0);
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}

/// The parts of cells that are numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct PartTree {
    /// Per depth and number, the first number of the part and the number after its last.
    parts: Vec<Vec<(u32, u32)>>,
}

impl PartTree {
    /// Divides cells around a root, one of them. Returns the cells in the order of their numbers.
    pub(super) fn new(
        machine: &Machine,
        cells: &[CellId],
        root: CellId,
        share: Share,
    ) -> (Self, Vec<CellId>) {
        let positions = positions(machine, cells);
        let mut cells = cells.to_vec();
        let count = cells.len();
        let mut parts = vec![vec![(0, to_u32(count)); count]];
        let mut level = vec![(0..count, root)];
        while level.iter().any(|(part, _)| part.len() > 1) {
            let mut of_number = Vec::with_capacity(count);
            let mut next = Vec::with_capacity(2 * level.len());
            for (part, head) in level {
                let cut = cut(&mut cells[part.clone()], &positions, head, share);
                let middle = part.start + cut.kept;
                let sides = [(part.start..middle, head), (middle..part.end, cut.other_head)];
                for (side, head) in sides.into_iter().filter(|(side, _)| !side.is_empty()) {
                    let ends = (to_u32(side.start), to_u32(side.end));
                    of_number.extend(std::iter::repeat_n(ends, side.len()));
                    next.push((side, head));
                }
            }
            parts.push(of_number);
            level = next;
        }
        (Self { parts }, cells)
    }

    /// The number of levels: of cuts from the whole to the smallest part.
    pub(super) fn levels(&self) -> usize {
        self.parts.len() - 1
    }

    /// Where a piece is before level `level`, or after the last one.
    pub(super) fn place(&self, level: usize, source: u32, target: u32) -> u32 {
        let target = index(target);
        self.parts[1..=level].iter().fold(source, |at, parts| {
            let ((first, end), (new, new_end)) = (parts[index(at)], parts[target]);
            if first == new {
                return at;
            }
            let scaled = u64::from(at - first) * u64::from(new_end - new) / u64::from(end - first);
            new + to_u32(scaled)
        })
    }

    /// For each number, 0 if it is on the head's side of the cut of a level, else 1.
    pub(super) fn digits(&self, level: usize) -> Vec<u32> {
        let (before, after) = (&self.parts[level], &self.parts[level + 1]);
        before.iter().zip(after).map(|(before, after)| u32::from(before.0 != after.0)).collect()
    }
}

struct Cut {
    kept: usize,
    other_head: CellId,
}

/// Cuts a part in two, across its longest side: the head's side comes first.
fn cut(cells: &mut [CellId], positions: &[Vec<u32>], head: CellId, share: Share) -> Cut {
    let count = cells.len();
    if count < 2 {
        return Cut { kept: count, other_head: head };
    }
    let at = |cell: CellId, dimension: usize| positions[cell.index()].get(dimension).copied();
    let extent = |dimension: usize| {
        let along = || cells.iter().filter_map(|&cell| at(cell, dimension));
        along().max().unwrap_or(0) - along().min().unwrap_or(0)
    };
    let dimensions = positions[head.index()].len();
    // Of equal sides, `max_by_key` would take the last.
    let longest = (0..dimensions).rev().max_by_key(|&dimension| extent(dimension)).unwrap_or(0);
    cells.sort_by_key(|&cell| (at(cell, longest), cell));
    let kept = share.of(count);
    let rank = cells.iter().position(|&cell| cell == head).unwrap_or(0);
    // The side of the head is at the end at which it is, or, if it is too small for that, begins there.
    let first = if rank < kept { 0 } else { rank.min(count - kept) };
    // The other side's cells before the head's come after it, in their order.
    cells[..first + kept].rotate_left(first);
    let other = (rank - first) * (count - kept) / kept;
    Cut { kept, other_head: cells[kept + other] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(spec: &str, root: u32, share: &str) -> (PartTree, Vec<u32>) {
        let machine = Machine::from_spec(spec).unwrap();
        let cells: Vec<CellId> = machine.endpoints().collect();
        let share = Share::parse(share).unwrap();
        let (tree, cells) = PartTree::new(&machine, &cells, CellId(root), share);
        (tree, cells.into_iter().map(|cell| cell.0).collect())
    }

    #[test]
    fn a_square_is_cut_alternately() {
        let (tree, cells) = tree("mesh:4x4", 0, "0.5");
        assert_eq!(cells, [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]);
        assert_eq!(tree.levels(), 4);
        // First across x, then y: cell 0 to cell 2, cell 8, cell 1, cell 4.
        let number = |cell| to_u32(cells.iter().position(|&c| c == cell).unwrap());
        let first: Vec<u32> = [2, 8, 1, 4].into_iter().map(number).collect();
        let leaves = |target| (1..=4).find(|&l| tree.place(l, 0, target) == target).unwrap();
        assert_eq!(first.into_iter().map(leaves).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn the_roots_side_keeps_its_share() {
        for (share, root) in [("0.75", 0), ("0.75", 5), ("0.75", 15), ("0.3", 6), ("0.999", 7)] {
            let (tree, cells) = tree("mesh:4x4", root, share);
            assert_eq!(cells[0], root, "the root has number 0");
            let mut sorted = cells.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<_>>());
            let kept = tree.digits(0).iter().filter(|&&digit| digit == 0).count();
            assert_eq!(kept, Share::parse(share).unwrap().of(16));
        }
        let (tree, _) = tree("mesh:4x4", 0, "0.75");
        assert_eq!(tree.digits(0).iter().sum::<u32>(), 4);
        assert!(tree.levels() > 4);
    }

    #[test]
    fn every_piece_arrives() {
        for (spec, share) in
            [("ring:1", "0.5"), ("ring:7", "0.5"), ("fat-tree:13", "0.8"), ("torus:3x5", "0.1")]
        {
            let (tree, cells) = tree(spec, 0, share);
            let count = to_u32(cells.len());
            for (source, target) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                assert_eq!(tree.place(0, source, target), source);
                assert_eq!(tree.place(tree.levels(), source, target), target);
            }
        }
    }

    #[test]
    fn shares_are_read_back() {
        for (text, spelled) in
            [("0.5", "0.5"), (".75", "0.75"), ("0.125", "0.125"), ("0.50", "0.5")]
        {
            assert_eq!(Share::parse(text).unwrap().to_string(), spelled);
        }
        for wrong in ["0", "1", "0.0", "1.5", "0.1234", "", "0.", "-0.5", "0.+5", "half"] {
            assert_eq!(Share::parse(wrong), None, "{wrong}");
        }
    }
}
