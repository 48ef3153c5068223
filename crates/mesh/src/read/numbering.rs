//! Conversion of a file's node ids to dense node numbers.
//!
//! Node ids may be any 64-bit numbers, with gaps and in any order. The dense number of a node is the
//! rank of its id, independent of the order in the file, so two files of the same mesh give the same
//! numbers. The lookup uses the cheapest method that applies: subtraction if the ids are
//! consecutive, a table if they are nearly consecutive, otherwise binary search. The table is at
//! most a small multiple of the number of nodes.

use conset_ir::convert::{to_u32, to_u64, to_usize};

/// Ranks of ids.
pub(crate) struct NodeNumbering {
    /// Strictly ascending.
    ids: Vec<u64>,
    /// The rank of each id, `NONE` for gaps; empty if the lookup does not use a table.
    table: Vec<u32>,
    consecutive: bool,
}

const NONE: u32 = u32::MAX;

impl NodeNumbering {
    /// Numbers the ids, which must be strictly ascending and fewer than 2^32 - 1.
    pub(crate) fn new(ids: Vec<u64>) -> Self {
        let (low, high) = (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0));
        let span = high - low;
        let consecutive = span == to_u64(ids.len().saturating_sub(1));
        let mut table = Vec::new();
        if !consecutive && span < 4 * to_u64(ids.len()) + 1024 {
            table = vec![NONE; to_usize(span) + 1];
            for (rank, &id) in (0..).zip(&ids) {
                table[to_usize(id - low)] = rank;
            }
        }
        Self { ids, table, consecutive }
    }

    /// The rank of `id`.
    #[inline]
    pub(crate) fn rank(&self, id: u64) -> Option<u32> {
        let low = *self.ids.first()?;
        if self.consecutive {
            let rank = id.checked_sub(low)?;
            return (rank < to_u64(self.ids.len())).then(|| to_u32(rank));
        }
        if self.table.is_empty() {
            return self.ids.binary_search(&id).ok().map(to_u32);
        }
        let at = usize::try_from(id.checked_sub(low)?).ok()?;
        self.table.get(at).copied().filter(|&rank| rank != NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The ids; empty if they are 1, 2, 3 and so on.
    pub(crate) fn into_ids(self) -> Vec<u64> {
        if self.is_in_order() { Vec::new() } else { self.ids }
    }

    /// [`NodeNumbering::into_ids`] of a numbering that is still needed.
    pub(crate) fn ids(&self) -> Vec<u64> {
        if self.is_in_order() { Vec::new() } else { self.ids.clone() }
    }

    fn is_in_order(&self) -> bool {
        self.consecutive && self.ids.first() == Some(&1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_methods_give_the_rank() {
        for ids in [
            vec![],
            vec![1, 2, 3],
            vec![7],
            vec![0, 5, 6, 900],
            vec![0, u64::MAX],
            vec![3, 1 << 40, 1 << 60],
        ] {
            let numbering = NodeNumbering::new(ids.clone());
            for (rank, &id) in ids.iter().enumerate() {
                assert_eq!(numbering.rank(id), Some(to_u32(rank)));
                let next = id.wrapping_add(1);
                assert_eq!(numbering.rank(next).is_some(), ids.contains(&next));
                if id > 0 {
                    assert_eq!(numbering.rank(id - 1).is_some(), ids.contains(&(id - 1)));
                }
            }
            assert_eq!(numbering.rank(5000), None);
        }
        assert!(NodeNumbering::new(vec![1, 2]).into_ids().is_empty());
        assert_eq!(NodeNumbering::new(vec![2, 3]).into_ids(), [2, 3]);
    }
}
