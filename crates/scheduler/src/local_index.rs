//! Dense numbers for the rows of a large table that one phase uses.

use conset_ir::convert::{index, to_u32};

/// A map from rows of a large table to dense numbers, assigned from 0 in the order of first use.
/// Clearing takes time in proportion to the rows in use, not to the size of the table, so a phase
/// of ten routes costs the same on any machine.
#[derive(Debug)]
pub(crate) struct LocalIndex {
    local_of: Vec<u32>,
    rows: Vec<u32>,
}

impl LocalIndex {
    const UNUSED: u32 = u32::MAX;

    pub(crate) fn new(rows: usize) -> Self {
        Self { local_of: vec![Self::UNUSED; rows], rows: Vec::new() }
    }

    /// The number of a row. Assigns the next number if the row has none.
    pub(crate) fn index_of(&mut self, row: u32) -> u32 {
        let local = &mut self.local_of[index(row)];
        if *local == Self::UNUSED {
            *local = to_u32(self.rows.len());
            self.rows.push(row);
        }
        *local
    }

    /// The number of a row, if it has one.
    pub(crate) fn get(&self, row: u32) -> Option<u32> {
        let local = self.local_of[index(row)];
        (local != Self::UNUSED).then_some(local)
    }

    /// The rows in use, by their numbers.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    pub(crate) fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.local_of[index(row)] = Self::UNUSED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_numbers_are_dense_and_forgotten() {
        let mut index = LocalIndex::new(10);
        assert_eq!((index.index_of(7), index.index_of(2), index.index_of(7)), (0, 1, 0));
        assert_eq!(index.rows(), [7, 2]);
        index.clear();
        assert_eq!((index.get(7), index.index_of(2)), (None, 0));
    }
}
