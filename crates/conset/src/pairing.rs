//! Matching the connections of two sets, by name or by ends.
//!
//! Connections with the same name match. The others match by their ends: first unnamed ones with
//! unnamed ones, then a named one with an unnamed one. Connections with two different names never
//! match. If several connections have the same ends, the k-th remaining one of one set matches the
//! k-th remaining one of the other.

use conset_ir::{ConnectionId, ConnectionSet};

/// The matching connections of two sets `a` and `b`.
pub(crate) struct ConnectionPairs {
    in_b: Vec<Option<ConnectionId>>,
    in_a: Vec<Option<ConnectionId>>,
}

impl ConnectionPairs {
    /// Matches the connections of two sets. O(n log n).
    pub(crate) fn of(a: &ConnectionSet, b: &ConnectionSet) -> Self {
        let mut pairs = Self { in_b: vec![None; a.len()], in_a: vec![None; b.len()] };
        pairs.merge(keys(a, |c| c.name.as_deref()), keys(b, |c| c.name.as_deref()));
        for (named_a, named_b) in [(false, false), (false, true), (true, false)] {
            let left_a = ends(a, named_a, &pairs.in_b);
            let left_b = ends(b, named_b, &pairs.in_a);
            pairs.merge(left_a, left_b);
        }
        pairs
    }

    /// The connection of `b` that matches a connection of `a`.
    pub(crate) fn in_b(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.in_b[id.index()]
    }

    /// The connection of `a` that matches a connection of `b`.
    pub(crate) fn in_a(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.in_a[id.index()]
    }

    /// Matches equal keys, the k-th with the k-th.
    fn merge<K: Ord>(&mut self, mut a: Vec<(K, ConnectionId)>, mut b: Vec<(K, ConnectionId)>) {
        a.sort_unstable();
        b.sort_unstable();
        let (mut i, mut j) = (0, 0);
        while let (Some((key_a, id_a)), Some((key_b, id_b))) = (a.get(i), b.get(j)) {
            let order = key_a.cmp(key_b);
            if order.is_eq() {
                self.in_b[id_a.index()] = Some(*id_b);
                self.in_a[id_b.index()] = Some(*id_a);
            }
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
        }
    }
}

fn keys<'a, K>(
    set: &'a ConnectionSet,
    key: impl Fn(&'a conset_ir::Connection) -> Option<K>,
) -> Vec<(K, ConnectionId)> {
    set.iter().filter_map(|(id, connection)| Some((key(connection)?, id))).collect()
}

/// The unmatched connections with a name, or those without one, by their ends.
fn ends(
    set: &ConnectionSet,
    named: bool,
    partner: &[Option<ConnectionId>],
) -> Vec<((u32, u32), ConnectionId)> {
    set.iter()
        .filter(|(id, c)| partner[id.index()].is_none() && c.name.is_some() == named)
        .map(|(id, c)| ((c.source.0, c.target.0), id))
        .collect()
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, Connection};

    use super::*;

    fn set(rows: &[(u32, u32, &str)]) -> ConnectionSet {
        let connection = |&(source, target, name): &(u32, u32, &str)| {
            let mut c = Connection::new(CellId(source), CellId(target), 1);
            c.name = (!name.is_empty()).then(|| name.into());
            c
        };
        ConnectionSet::new("s", rows.iter().map(connection).collect()).unwrap()
    }

    #[test]
    fn connections_match_by_name_then_ends_then_occurrence() {
        let a = set(&[(0, 1, "left"), (0, 1, ""), (0, 1, ""), (2, 3, "gone"), (4, 5, "")]);
        let b = set(&[(0, 1, ""), (9, 8, "left"), (2, 3, "new"), (0, 1, ""), (4, 5, "named")]);
        let pairs = ConnectionPairs::of(&a, &b);
        let found: Vec<Option<u32>> =
            (0..5).map(|x| pairs.in_b(ConnectionId(x)).map(|id| id.0)).collect();
        assert_eq!(found, [Some(1), Some(0), Some(3), None, Some(4)]);
        assert_eq!(pairs.in_a(ConnectionId(1)), Some(ConnectionId(0)));
        assert_eq!(pairs.in_a(ConnectionId(2)), None);
    }
}
