//! Lists of items grouped by row, in compressed sparse row (CSR) form.
//!
//! Links of a cell, routes of an agent, predecessors of a connection: stages group items by a dense
//! id, build the groups once and then only read them. All items are in one array, ordered by row,
//! and a second array has the position of each row. Building is one counting sort; the items of a
//! row keep their order.

use std::ops::Range;

use crate::convert::{index, to_u32};

/// A list of items for each row.
///
/// ```
/// use conset_ir::Lists;
///
/// // Connections by source cell: (cell, connection).
/// let lists = Lists::new(3, [(2, 0), (0, 1), (2, 2)].into_iter());
/// assert_eq!((lists.of(0), lists.of(1), lists.of(2)), (&[1][..], &[][..], &[0, 2][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<T = u32> {
    /// Row `r` is `items[first[r]..first[r + 1]]`.
    first: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    /// No rows.
    fn default() -> Self {
        Self { first: Vec::new(), items: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    /// Groups `(row, item)` pairs by row; the items of a row keep their order. O(rows + pairs).
    ///
    /// # Panics
    /// If a row is not below `rows`, or there are 2^32 pairs or more.
    pub fn new(rows: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut lists = Self::default();
        lists.rebuild(rows, pairs);
        lists
    }

    /// [`Lists::new`] in the memory of these lists.
    ///
    /// # Panics
    /// As [`Lists::new`].
    pub fn rebuild(&mut self, rows: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) {
        self.first.clear();
        self.first.resize(rows + 1, 0);
        self.items.clear();
        let Some((_, filler)) = pairs.clone().next() else { return };
        for (row, _) in pairs.clone() {
            self.first[index(row) + 1] += 1;
        }
        for row in 0..rows {
            self.first[row + 1] += self.first[row];
        }
        self.items.resize(index(self.first[rows]), filler);
        // The start of each row serves as its cursor, and so ends as the start of the next row.
        for (row, item) in pairs {
            let cursor = &mut self.first[index(row)];
            self.items[index(*cursor)] = item;
            *cursor += 1;
        }
        self.first.copy_within(0..rows, 1);
        self.first[0] = 0;
    }

    /// Lists that are given row by row.
    ///
    /// # Panics
    /// If there are 2^32 items or more.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = &'a [T]>) -> Self
    where
        T: 'a,
    {
        let mut this = Self { first: vec![0], items: Vec::new() };
        for row in rows {
            this.items.extend_from_slice(row);
            this.first.push(to_u32(this.items.len()));
        }
        this
    }

    /// The items of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn of(&self, row: u32) -> &[T] {
        &self.items[self.range(row)]
    }

    /// The items of a row, to be reordered.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of_mut(&mut self, row: u32) -> &mut [T] {
        let range = self.range(row);
        &mut self.items[range]
    }

    /// The positions of the items of a row in [`Lists::items`].
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn range(&self, row: u32) -> Range<usize> {
        index(self.first[index(row)])..index(self.first[index(row) + 1])
    }

    /// All items, row by row.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        to_u32(self.first.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_order_of_their_pairs() {
        let pairs = [(2, 7), (0, 1), (2, 3), (0, 0)];
        let mut lists = Lists::new(3, pairs.into_iter());
        assert_eq!((lists.of(0), lists.of(1), lists.of(2)), (&[1, 0][..], &[][..], &[7, 3][..]));
        lists.of_mut(2).sort_unstable();
        assert_eq!((lists.of(2), lists.rows()), (&[3, 7][..], 3));
        assert_eq!(lists, Lists::from_rows([&[1, 0][..], &[], &[3, 7]]));
        lists.rebuild(2, [(1, 5)].into_iter());
        assert_eq!((lists.of(0), lists.of(1), lists.rows()), (&[][..], &[5][..], 2));
        let none = std::iter::empty::<(u32, u32)>();
        assert_eq!((Lists::new(0, none.clone()).rows(), Lists::<u32>::default().rows()), (0, 0));
        lists.rebuild(1, none);
        assert_eq!((lists.of(0), lists.rows()), (&[][..], 1));
    }
}
