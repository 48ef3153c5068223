//! Rows of small numbers in two flat arrays: how stages group things by a dense id.
//!
//! Routes by agent, links by route, what comes before a connection: each is a list per row, made
//! once from pairs and then only read. One counting sort makes them; a list keeps the order of
//! its pairs. Nothing is checked beyond the bounds of the arrays, and no stage's meaning is here.

/// Lists of small numbers, one for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Row `r` is `items[first[r]..first[r + 1]]`.
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Sorts pairs `(row, item)` into lists; a list keeps the order of its pairs.
    ///
    /// # Panics
    /// A row that is not below `rows`.
    pub fn new(rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0u32; rows + 1];
        for (row, _) in pairs.clone() {
            first[row as usize + 1] += 1;
        }
        for row in 0..rows {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut items = vec![0; first[rows] as usize];
        for (row, item) in pairs {
            items[next[row as usize] as usize] = item;
            next[row as usize] += 1;
        }
        Self { first, items }
    }

    /// The list of a row.
    #[inline]
    pub fn of(&self, row: u32) -> &[u32] {
        &self.items[self.first[row as usize] as usize..self.first[row as usize + 1] as usize]
    }

    /// The list of a row, to be put into another order.
    pub fn of_mut(&mut self, row: u32) -> &mut [u32] {
        &mut self.items[self.first[row as usize] as usize..self.first[row as usize + 1] as usize]
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.first.len().saturating_sub(1) as u32
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
        assert_eq!((Lists::new(0, [].into_iter()).rows(), Lists::default().rows()), (0, 0));
    }
}
