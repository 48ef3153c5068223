//! In which order each cell sends its messages.
//!
//! A list per cell; by default a cell's connections in the order of the set. Sending everything in
//! one and the same order makes all cells pass on through the same links at the same time, so
//! all-to-all "messages were sent in random order" in the paper (section 5.1.3):
//! [`SendLists::shuffle`].

use conset_ir::{ConnectionId, ConnectionSet};

/// The messages of each cell, in the order of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendLists {
    /// List of cell `c`: `ids[first[c]..first[c + 1]]`.
    first: Vec<u32>,
    ids: Vec<ConnectionId>,
}

impl SendLists {
    /// Each of `cells` cells sends its connections in the order of the set. Connections of other
    /// cells are left out. O(connections + cells).
    pub fn in_order(set: &ConnectionSet, cells: usize) -> Self {
        let mut first = vec![0u32; cells + 1];
        let ours = || set.iter().filter(|(_, c)| c.source.index() < cells);
        for (_, connection) in ours() {
            first[connection.source.index() + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut ids = vec![ConnectionId(0); first[cells] as usize];
        for (id, connection) in ours() {
            let at = &mut next[connection.source.index()];
            ids[*at as usize] = id;
            *at += 1;
        }
        Self { first, ids }
    }

    /// The list of a cell, to look at or to put into another order.
    pub fn of_mut(&mut self, cell: usize) -> &mut [ConnectionId] {
        &mut self.ids[self.first[cell] as usize..self.first[cell + 1] as usize]
    }

    /// The list of a cell.
    pub fn of(&self, cell: usize) -> &[ConnectionId] {
        &self.ids[self.first[cell] as usize..self.first[cell + 1] as usize]
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.first.len() - 1
    }

    /// Puts every list into an order of its own, each as likely as any other. The same seed gives
    /// the same orders.
    pub fn shuffle(&mut self, seed: u64) {
        for cell in 0..self.cells() {
            let mut random = Random(mix(seed ^ mix(cell as u64)));
            let list = self.of_mut(cell);
            for last in (1..list.len()).rev() {
                list.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter, and a mix of it.
struct Random(u64);

impl Random {
    /// An even choice below `count`, but for a share of at most `count` in 2^64.
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mix(self.0)) * u128::from(count)) >> 64) as u64
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    #[test]
    fn lists_hold_each_cells_own_and_shuffling_only_moves_them() {
        let pairs = (0..60u32).map(|i| Connection::new(CellId(i % 3), CellId(i % 5), 1));
        let set = ConnectionSet::new("s", pairs.collect()).unwrap();
        let given = SendLists::in_order(&set, 2);
        assert_eq!(given.of(1)[..3], [ConnectionId(1), ConnectionId(4), ConnectionId(7)]);
        let (mut one, mut other) = (given.clone(), given.clone());
        one.shuffle(7);
        other.shuffle(8);
        assert_ne!(one, other);
        assert_ne!(one, given);
        for cell in 0..2 {
            one.of_mut(cell).sort_unstable();
        }
        assert_eq!(one, given);
    }

    #[test]
    fn every_place_is_equally_likely() {
        let connections = vec![Connection::new(CellId(0), CellId(0), 1); 4];
        let set = ConnectionSet::new("s", connections).unwrap();
        let mut counts = [[0u32; 4]; 4];
        for seed in 0..4000 {
            let mut lists = SendLists::in_order(&set, 1);
            lists.shuffle(seed);
            for (place, id) in lists.of(0).iter().enumerate() {
                counts[place][id.index()] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
