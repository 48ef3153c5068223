//! The order in which each cell sends its messages.
//!
//! There is one list per cell; by default it has the cell's connections in the order of the set. If
//! all cells send in the same order, they use the same links at the same time. For all-to-all,
//! "messages were sent in random order" in the paper (section 5.1.3): [`SendLists::shuffle`].
//! Which order is best depends on the set, so a fair comparison tries them all.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u64, to_usize};
use conset_ir::{ConnectionId, ConnectionSet};

use super::run::{MessageOptions, MessageOrder};

/// The messages of each cell, in the order of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendLists {
    /// The list of cell `c` is `ids[first[c]..first[c + 1]]`.
    first: Vec<u32>,
    ids: Vec<ConnectionId>,
}

impl SendLists {
    /// The lists of the first `cells` cells, each in the order of the set. Connections of other cells
    /// are omitted. O(connections + cells).
    pub fn in_order(set: &ConnectionSet, cells: usize) -> Self {
        let mut first = vec![0u32; cells + 1];
        let included = || set.iter().filter(|(_, c)| c.source.index() < cells);
        for (_, connection) in included() {
            first[connection.source.index() + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut ids = vec![ConnectionId(0); index(first[cells])];
        for (id, connection) in included() {
            let at = &mut next[connection.source.index()];
            ids[index(*at)] = id;
            *at += 1;
        }
        Self { first, ids }
    }

    /// The lists of the first `cells` cells in the order of the options.
    pub fn of_set(set: &ConnectionSet, cells: usize, options: &MessageOptions) -> Self {
        let mut lists = Self::in_order(set, cells);
        match options.order {
            MessageOrder::Given => {}
            MessageOrder::LongestFirst => lists.longest_first(set),
            MessageOrder::Staggered => lists.stagger(set),
            MessageOrder::Random => lists.shuffle(options.seed),
        }
        lists
    }

    /// The list of a cell, for reordering.
    pub fn of_mut(&mut self, cell: usize) -> &mut [ConnectionId] {
        &mut self.ids[index(self.first[cell])..index(self.first[cell + 1])]
    }

    /// The list of a cell.
    pub fn of(&self, cell: usize) -> &[ConnectionId] {
        &self.ids[index(self.first[cell])..index(self.first[cell + 1])]
    }

    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Sorts every list by words, the most first; messages of equal length keep their order.
    pub fn longest_first(&mut self, set: &ConnectionSet) {
        for cell in 0..self.cell_count() {
            self.of_mut(cell).sort_by_key(|&id| Reverse(set.get(id).words));
        }
    }

    /// Sorts every list by target, beginning with the cell after the sender; messages to the same
    /// target keep their order.
    pub fn stagger(&mut self, set: &ConnectionSet) {
        for cell in 0..self.cell_count() {
            let distance = |id: ConnectionId| {
                let target = set.get(id).target.index();
                (target <= cell, target)
            };
            self.of_mut(cell).sort_by_key(|&id| distance(id));
        }
    }

    /// Shuffles every list independently; all orders are equally likely. The same seed gives the same
    /// orders.
    pub fn shuffle(&mut self, seed: u64) {
        for cell in 0..self.cell_count() {
            let mut random = Random(mix(seed ^ mix(to_u64(cell))));
            let list = self.of_mut(cell);
            for last in (1..list.len()).rev() {
                list.swap(last, random.below(last + 1));
            }
        }
    }
}

/// The SplitMix64 generator (Steele, Lea and Flood, 2014): a hash of a counter.
struct Random(u64);

impl Random {
    /// A random number below `count`, uniform up to a bias of at most `count` in 2^64.
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        to_usize((u128::from(mix(self.0)) * u128::from(to_u64(count))) >> 64)
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
    fn lists_are_sorted_by_words_or_by_target() {
        let rows = [(2, 3), (0, 9), (1, 9), (3, 1)];
        let set = rows.map(|(target, words)| Connection::new(CellId(1), CellId(target), words));
        let set = ConnectionSet::new("s", set.to_vec()).unwrap();
        let given = SendLists::in_order(&set, 4);
        let ids = |lists: &SendLists| lists.of(1).iter().map(|id| id.0).collect::<Vec<_>>();
        let (mut longest, mut staggered) = (given.clone(), given);
        longest.longest_first(&set);
        staggered.stagger(&set);
        assert_eq!((ids(&longest), ids(&staggered)), (vec![1, 2, 0, 3], vec![0, 3, 1, 2]));
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

    /// Runs with a seed are reproducible only if these orders stay.
    #[test]
    fn the_orders_of_a_seed_never_change() {
        let connection = Connection::new(CellId(0), CellId(1), 1);
        let other = Connection::new(CellId(1), CellId(0), 1);
        let all = [vec![connection; 8], vec![other; 4]].concat();
        let mut lists = SendLists::in_order(&ConnectionSet::new("s", all).unwrap(), 2);
        lists.shuffle(0x1234_5678_9abc_def0);
        let order = |cell: usize| lists.of(cell).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(order(0), [1, 3, 4, 2, 5, 6, 7, 0]);
        assert_eq!(order(1), [10, 11, 8, 9]);
    }
}
