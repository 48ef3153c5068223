//! From a file's node ids to dense numbers.
//!
//! Files may name nodes by any numbers: with gaps, in any order, as large as 64 bits. The dense
//! number of a node is the rank of its id, whatever the order of the file, so that two files of
//! one mesh give the same numbers. Three ways to look up, the cheapest that fits: subtraction
//! where ids are consecutive, a table where they are nearly so, else binary search. The table is
//! at most a small multiple of the nodes that are really there.

/// Ranks of ids.
pub(crate) struct Numbering {
    /// Ascending.
    ids: Vec<u64>,
    /// Rank of each id, `NONE` for gaps; empty where not used.
    table: Vec<u32>,
    consecutive: bool,
}

const NONE: u32 = u32::MAX;

impl Numbering {
    /// Numbers the ids, which must ascend strictly and be fewer than 2^32 - 1.
    pub(crate) fn new(ids: Vec<u64>) -> Self {
        let (low, high) = (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0));
        let span = high - low;
        let consecutive = span as usize == ids.len().saturating_sub(1);
        let mut table = Vec::new();
        if !consecutive && span < 4 * ids.len() as u64 + 1024 {
            table = vec![NONE; span as usize + 1];
            for (rank, &id) in ids.iter().enumerate() {
                table[(id - low) as usize] = rank as u32;
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
            return (rank < self.ids.len() as u64).then_some(rank as u32);
        }
        if self.table.is_empty() {
            return self.ids.binary_search(&id).ok().map(|rank| rank as u32);
        }
        let at = usize::try_from(id.checked_sub(low)?).ok()?;
        self.table.get(at).copied().filter(|&rank| rank != NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The ids, or none where they are simply 1, 2, 3 and so on.
    pub(crate) fn into_ids(self) -> Vec<u64> {
        if self.consecutive && self.ids.first() == Some(&1) { Vec::new() } else { self.ids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_ways_give_the_rank() {
        for ids in [
            vec![],
            vec![1, 2, 3],
            vec![7],
            vec![0, 5, 6, 900],
            vec![0, u64::MAX],
            vec![3, 1 << 40, 1 << 60],
        ] {
            let numbering = Numbering::new(ids.clone());
            for (rank, &id) in ids.iter().enumerate() {
                assert_eq!(numbering.rank(id), Some(rank as u32));
                let next = id.wrapping_add(1);
                assert_eq!(numbering.rank(next).is_some(), ids.contains(&next));
                if id > 0 {
                    assert_eq!(numbering.rank(id - 1).is_some(), ids.contains(&(id - 1)));
                }
            }
            assert_eq!(numbering.rank(5000), None);
        }
        assert!(Numbering::new(vec![1, 2]).into_ids().is_empty());
        assert_eq!(Numbering::new(vec![2, 3]).into_ids(), [2, 3]);
    }
}
