//! How a schedule belongs to the mesh, graph or matrix that it was compiled from: the cell of each
//! part, and the file's own number of each node.
//!
//! A schedule names cells and nodes that count from 0. A program that reads the file itself knows
//! parts and the numbers of the file; with this map and the part of each item it needs nothing else.

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::CellId;
use crate::limits;

/// The largest number that the file's numbers may start from.
const FIRST_NUMBER_MAX: u64 = 1 << 62;

/// The cell of each part, and the file's own numbers of nodes.
///
/// ```
/// use conset_ir::{CellId, PartMap};
///
/// // Two parts, on the cells 3 and 2. Nodes count from 1 in the file; node 7 is number 100 there.
/// let map = PartMap::new(vec![CellId(3), CellId(2)], 1, vec![(7, 100)])?;
/// assert_eq!((map.cells()[0], map.number(6), map.number(7)), (CellId(3), 7, 100));
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartMap {
    cells: Vec<CellId>,
    first_number: u64,
    numbers: Vec<(u32, u64)>,
    /// The rows of `numbers` in the order of the numbers.
    by_number: Vec<u32>,
}

impl PartMap {
    /// A map from parts to `cells`. The file's number of a node is that in `numbers`, which ascend by
    /// node, else the node plus `first_number`.
    ///
    /// # Errors
    /// Too many parts, two parts on a cell, nodes that do not ascend, a first number above 2^62.
    pub fn new(
        cells: Vec<CellId>,
        first_number: u64,
        numbers: Vec<(u32, u64)>,
    ) -> Result<Self, ShapeError> {
        if cells.len() > limits::PARTS {
            let message = format!("{} parts, at most {}", cells.len(), limits::PARTS);
            return Err(ShapeError::new("parts", message));
        }
        let mut sorted = cells.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ShapeError::new("parts", format!("two parts on {}", pair[0])));
        }
        if first_number > FIRST_NUMBER_MAX {
            let message = format!("the first number is {first_number}, at most {FIRST_NUMBER_MAX}");
            return Err(ShapeError::new("node_numbers", message));
        }
        if let Some(row) = numbers.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            let message = format!("node {} is not above the one before it", numbers[row + 1].0);
            return Err(ShapeError::new("node_numbers", message));
        }
        if numbers.len() > limits::NODES {
            let message = format!("more than {}", limits::NODES);
            return Err(ShapeError::new("node_numbers", message));
        }
        let mut by_number: Vec<u32> = (0..to_u32(numbers.len())).collect();
        by_number.sort_by_key(|&row| numbers[index(row)].1);
        Ok(Self { cells, first_number, numbers, by_number })
    }

    /// The cell of each part.
    pub fn cells(&self) -> &[CellId] {
        &self.cells
    }

    /// The part of each cell of `count`; `None` for those without a part.
    pub fn parts_of(&self, count: usize) -> Vec<Option<u32>> {
        let mut parts = vec![None; count];
        for (part, cell) in (0u32..).zip(&self.cells) {
            if let Some(place) = parts.get_mut(cell.index()) {
                *place = Some(part);
            }
        }
        parts
    }

    /// The file's own number of a node.
    pub fn number(&self, node: u32) -> u64 {
        match self.numbers.binary_search_by_key(&node, |row| row.0) {
            Ok(row) => self.numbers[row].1,
            Err(_) => u64::from(node) + self.first_number,
        }
    }

    /// The node with a number of the file; `None` if no list has it. A node that no list has may
    /// be found nevertheless.
    pub fn node(&self, number: u64) -> Option<u32> {
        let number_of = |&row: &u32| self.numbers[index(row)].1;
        if let Ok(at) = self.by_number.binary_search_by_key(&number, number_of) {
            return Some(self.numbers[index(self.by_number[at])].0);
        }
        // A node that is listed has another number than this one.
        let node = u32::try_from(number.checked_sub(self.first_number)?).ok()?;
        self.numbers.binary_search_by_key(&node, |row| row.0).is_err().then_some(node)
    }

    /// What is added to a node whose number is not listed.
    pub fn first_number(&self) -> u64 {
        self.first_number
    }

    /// The nodes with another number, ascending, each with its number.
    pub fn numbers(&self) -> &[(u32, u64)] {
        &self.numbers
    }

    /// The map with the numbers of `nodes` (in any order, also repeatedly) as `number` tells them.
    ///
    /// # Errors
    /// As [`PartMap::new`].
    pub fn of_nodes(
        cells: Vec<CellId>,
        first_number: u64,
        mut nodes: Vec<u32>,
        number: impl Fn(u32) -> u64,
    ) -> Result<Self, ShapeError> {
        nodes.retain(|&node| number(node) != u64::from(node) + first_number);
        nodes.sort_unstable();
        nodes.dedup();
        let numbers = nodes.into_iter().map(|node| (node, number(node))).collect();
        Self::new(cells, first_number, numbers)
    }

    /// Checks the cells.
    pub(crate) fn check(&self, agents: usize) -> Result<(), ShapeError> {
        if let Some(part) = self.cells.iter().position(|cell| cell.index() >= agents) {
            let message = format!("{} of {agents} cells", self.cells[part]);
            return Err(ShapeError::new(format!("parts[{part}]"), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_maps_are_refused() {
        let map = |cells: &[u32], first, numbers: &[(u32, u64)]| {
            PartMap::new(cells.iter().copied().map(CellId).collect(), first, numbers.to_vec())
        };
        assert!(map(&[3, 1, 2], 0, &[(1, 7), (2, 7)]).is_ok());
        assert!(map(&[3, 1, 3], 0, &[]).is_err());
        assert!(map(&[], u64::MAX, &[]).is_err());
        assert!(map(&[], 0, &[(2, 0), (2, 1)]).is_err());
        assert!(map(&[4], 0, &[]).unwrap().check(4).is_err());
    }

    #[test]
    fn only_other_numbers_are_listed() {
        let ids = [5u64, 2, 3, 9];
        let number = |node: u32| ids[node as usize];
        let map = PartMap::of_nodes(vec![CellId(1)], 1, vec![3, 0, 1, 2, 3], number).unwrap();
        assert_eq!(map.numbers(), [(0, 5), (3, 9)]);
        assert!((0..4).all(|node| map.number(node) == number(node)));
        assert!((0..4).all(|node| map.node(number(node)) == Some(node)));
        // Number 1 would be node 0 and number 4 node 3, which have others.
        assert_eq!(
            (map.node(1), map.node(4), map.node(0), map.node(7)),
            (None, None, None, Some(6))
        );
        assert_eq!(map.parts_of(3), [None, Some(0), None]);
    }
}
