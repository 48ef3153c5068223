//! The order of a set: the connections that must be received before others start.
//!
//! Slots and phases are ordered in time, so a pair is satisfied if the last slot of the first
//! connection precedes the first slot of the second. A violated pair is a conflict like any other,
//! and its cost rises with each pass.

use conset_ir::ConnectionSet;
use conset_ir::convert::{index, to_u32};

use super::rows::{Prices, Use};

/// The maximum number of pairs per connection.
const MOST: usize = 16;

/// The pairs of a set, by connection.
pub(super) struct Order {
    pub(super) pairs: Vec<[u32; 2]>,
    /// Pairs of connection `x` are `rows[first[x]..first[x + 1]]`; none where there is no order.
    first: Vec<u32>,
    rows: Vec<u32>,
}

impl Order {
    /// Returns `None` if there are too many pairs.
    pub(super) fn new(set: &ConnectionSet) -> Option<Self> {
        let pairs: Vec<[u32; 2]> = set.order().iter().map(|&(a, b)| [a.0, b.0]).collect();
        if pairs.len() > MOST * set.len() {
            return None;
        }
        let mut of: Vec<(u32, u32)> = Vec::with_capacity(2 * pairs.len());
        for (row, pair) in pairs.iter().enumerate() {
            of.extend(pair.map(|x| (x, to_u32(row))));
        }
        of.sort_unstable();
        let first = |x: u32| to_u32(of.partition_point(|&(other, _)| other < x));
        let first = (0..=to_u32(set.len())).map(first).collect();
        Some(Self { pairs, first, rows: of.into_iter().map(|(_, row)| row).collect() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs that contain a connection.
    pub(super) fn of(&self, x: u32) -> &[u32] {
        &self.rows[index(self.first[index(x)])..index(self.first[index(x) + 1])]
    }
}

/// The cost of violating a pair with this history of violations.
pub(super) fn cost(history: Use, base: u32, prices: &Prices) -> i32 {
    history.surcharge(0, base, prices)
}
