//! The connections that have no phase yet, by source and target.

use conset_ir::Connection;
use conset_ir::convert::index;

const NONE: u32 = u32::MAX;

/// Stands in `next` for a connection that is not in the pool.
const ABSENT: u32 = u32::MAX - 1;

/// Lists of a pool in all, and of one source, at most.
const LISTS: usize = 1 << 22;
const LISTS_OF_SOURCE: usize = 1 << 10;

/// Connections in lists by source and target; flat, so that a million of them take megabytes.
pub(super) struct Pool<'a> {
    connections: &'a [Connection],
    /// The first connection of each list: row of the source, column of the target's low bits.
    heads: Vec<u32>,
    /// The next one of the same list.
    next: Vec<u32>,
    /// A list's number is `source * lists + target % lists`.
    lists: usize,
}

impl<'a> Pool<'a> {
    pub(super) fn new(connections: &'a [Connection], cells: usize) -> Self {
        let most = cells.next_power_of_two().min(LISTS_OF_SOURCE);
        let per_source = (LISTS / cells.max(1)).max(1);
        let lists = most.min(1 << per_source.ilog2());
        let heads = vec![NONE; cells * lists];
        Self { connections, heads, next: vec![ABSENT; connections.len()], lists }
    }

    pub(super) fn contains(&self, x: u32) -> bool {
        self.next[index(x)] != ABSENT
    }

    fn list(&self, source: u32, target: u32) -> usize {
        index(source) * self.lists + (index(target) & (self.lists - 1))
    }

    pub(super) fn add(&mut self, x: u32) {
        let connection = &self.connections[index(x)];
        let list = self.list(connection.source.0, connection.target.0);
        self.next[index(x)] = std::mem::replace(&mut self.heads[list], x);
    }

    /// A connection between two cells.
    #[inline]
    pub(super) fn find(&self, source: u32, target: u32) -> Option<u32> {
        let mut x = self.heads[self.list(source, target)];
        while x != NONE {
            let connection = &self.connections[index(x)];
            if connection.target.0 == target && connection.source.0 == source {
                return Some(x);
            }
            x = self.next[index(x)];
        }
        None
    }

    pub(super) fn take(&mut self, x: u32) {
        let connection = &self.connections[index(x)];
        let list = self.list(connection.source.0, connection.target.0);
        let after = std::mem::replace(&mut self.next[index(x)], ABSENT);
        if self.heads[list] == x {
            self.heads[list] = after;
            return;
        }
        let mut before = self.heads[list];
        while self.next[index(before)] != x {
            before = self.next[index(before)];
        }
        self.next[index(before)] = after;
    }
}
