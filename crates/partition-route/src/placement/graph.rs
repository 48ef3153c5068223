//! Which parts talk to one another, and how much: words both ways, added up.

use conset_ir::ConnectionSet;

/// An undirected graph of parts; row `p` is `rows[first[p]..first[p + 1]]`, ascending.
#[derive(Clone, Debug)]
pub(super) struct PartGraph {
    first: Vec<u32>,
    rows: Vec<(u32, i64)>,
}

impl PartGraph {
    /// The graph of a set whose cells are part numbers below `parts`.
    pub(super) fn new(set: &ConnectionSet, parts: usize) -> Self {
        let mut pairs: Vec<(u32, u32, i64)> = Vec::with_capacity(2 * set.len());
        for connection in set.connections() {
            let (a, b) = (connection.source.0, connection.target.0);
            if a != b {
                pairs.push((a, b, i64::from(connection.words)));
                pairs.push((b, a, i64::from(connection.words)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup_by(|later, kept| {
            let same = (later.0, later.1) == (kept.0, kept.1);
            if same {
                kept.2 += later.2;
            }
            same
        });
        let mut first = vec![0u32; parts + 1];
        for pair in &pairs {
            first[pair.0 as usize + 1] += 1;
        }
        for part in 0..parts {
            first[part + 1] += first[part];
        }
        Self { first, rows: pairs.into_iter().map(|(_, b, words)| (b, words)).collect() }
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.first.len() - 1
    }

    /// A part's partners, with the words to and from each.
    pub(super) fn of(&self, part: u32) -> &[(u32, i64)] {
        &self.rows[self.first[part as usize] as usize..self.first[part as usize + 1] as usize]
    }

    /// Pairs of parts that talk, both ways counted.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
