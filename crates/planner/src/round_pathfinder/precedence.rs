//! The precedence graph of a set: predecessors, critical paths and topological sequences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::ConnectionSet;
use conset_ir::convert::{index, to_u32};

/// What must be finished before each connection, and how much comes after it.
pub(super) struct PrecedenceGraph {
    first: Vec<u32>,
    ids: Vec<u32>,
    /// Words of the longest chain from each connection on, itself included.
    pub(super) critical_path: Vec<u64>,
    pub(super) any: bool,
}

impl PrecedenceGraph {
    pub(super) fn new(set: &ConnectionSet) -> Self {
        let count = set.len();
        let mut first = vec![0u32; count + 1];
        for &(_, after) in set.order() {
            first[after.index() + 1] += 1;
        }
        for row in 0..count {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut ids = vec![0; set.order().len()];
        let mut waiting = vec![0u32; count];
        for &(before, after) in set.order() {
            ids[index(next[after.index()])] = before.0;
            next[after.index()] += 1;
            waiting[before.index()] += 1;
        }
        let words = |x: usize| u64::from(set.connections()[x].words);
        let mut this =
            Self { first, ids, critical_path: (0..count).map(words).collect(), any: false };
        this.any = !set.order().is_empty();
        // From the ends of the chains to their beginnings.
        let mut ready: Vec<u32> = (0..to_u32(count)).filter(|&x| waiting[index(x)] == 0).collect();
        while let Some(x) = ready.pop() {
            for row in this.first[index(x)]..this.first[index(x) + 1] {
                let before = index(this.ids[index(row)]);
                let path = words(before) + this.critical_path[index(x)];
                this.critical_path[before] = this.critical_path[before].max(path);
                waiting[before] -= 1;
                if waiting[before] == 0 {
                    ready.push(to_u32(before));
                }
            }
        }
        this
    }

    pub(super) fn of(&self, x: usize) -> &[u32] {
        &self.ids[index(self.first[x])..index(self.first[x + 1])]
    }

    /// Connections such that each comes after all that are before it, of those that could come
    /// next the one with the least key first.
    pub(super) fn sorted(&self, key: &[(u64, u32)]) -> Vec<u32> {
        let count = key.len();
        if !self.any {
            let mut sequence: Vec<u32> = (0..to_u32(count)).collect();
            sequence.sort_unstable_by_key(|&x| (key[index(x)], x));
            return sequence;
        }
        let mut waits = vec![0u32; count];
        let mut after: Vec<(u32, u32)> = Vec::with_capacity(self.ids.len());
        for (x, waits) in waits.iter_mut().enumerate() {
            *waits = to_u32(self.of(x).len());
            after.extend(self.of(x).iter().map(|&before| (before, to_u32(x))));
        }
        after.sort_unstable();
        let mut heap: BinaryHeap<Reverse<((u64, u32), u32)>> =
            (0..count).filter(|&x| waits[x] == 0).map(|x| Reverse((key[x], to_u32(x)))).collect();
        let mut sequence = Vec::with_capacity(count);
        while let Some(Reverse((_, x))) = heap.pop() {
            sequence.push(x);
            let from = after.partition_point(|pair| pair.0 < x);
            for &(_, next) in after[from..].iter().take_while(|pair| pair.0 == x) {
                waits[index(next)] -= 1;
                if waits[index(next)] == 0 {
                    heap.push(Reverse((key[index(next)], next)));
                }
            }
        }
        sequence
    }
}
