//! Which connection of one set is which of another.
//!
//! A name tells; where it does not, the ends do: first connections without a name on both sides,
//! then a named one with an unnamed one. Two different names are two different connections.
//! Among connections with the same ends the k-th left goes with the k-th left.

use conset_ir::{ConnectionId, ConnectionSet};

/// The pairs, looked up from either side.
pub(crate) struct Pairs {
    in_b: Vec<Option<ConnectionId>>,
    in_a: Vec<Option<ConnectionId>>,
}

impl Pairs {
    /// Pairs the connections of two sets. O(n log n).
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

    /// The partner of a connection of the first set.
    pub(crate) fn in_b(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.in_b[id.index()]
    }

    /// The partner of a connection of the second set.
    pub(crate) fn in_a(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.in_a[id.index()]
    }

    /// Pairs equal keys, the k-th with the k-th.
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

/// The connections without a partner that have a name or have not, by their ends.
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
    fn names_tell_then_ends_then_occurrence() {
        let a = set(&[(0, 1, "left"), (0, 1, ""), (0, 1, ""), (2, 3, "gone"), (4, 5, "")]);
        let b = set(&[(0, 1, ""), (9, 8, "left"), (2, 3, "new"), (0, 1, ""), (4, 5, "named")]);
        let pairs = Pairs::of(&a, &b);
        let found: Vec<Option<u32>> =
            (0..5).map(|x| pairs.in_b(ConnectionId(x)).map(|id| id.0)).collect();
        assert_eq!(found, [Some(1), Some(0), Some(3), None, Some(4)]);
        assert_eq!(pairs.in_a(ConnectionId(1)), Some(ConnectionId(0)));
        assert_eq!(pairs.in_a(ConnectionId(2)), None);
    }
}
