//! Which parts talk to one another, and how much it matters that they are near: weights both ways,
//! added up. A weight is a connection's words, and perhaps something for its channels.

use super::traffic::Traffic;

/// Words beyond which more make no difference, so that sums of weight times hops stay in range.
const HEAVY: i64 = 1 << 36;

/// An undirected graph of parts; row `p` is `rows[first[p]..first[p + 1]]`, ascending.
#[derive(Clone, Debug)]
pub(super) struct PartGraph {
    first: Vec<u32>,
    rows: Vec<(u32, i64)>,
}

impl PartGraph {
    /// The graph of all flows; each weighs its words and `channel` for each connection.
    pub(super) fn new(talk: &Traffic, channel: i64) -> Self {
        let parts = talk.parts();
        let mut pairs: Vec<(u32, u32, i64)> = Vec::with_capacity(2 * talk.flows.len());
        for flow in &talk.flows {
            let words = i64::try_from(flow.words).unwrap_or(HEAVY).min(HEAVY);
            let weight = words + channel * i64::from(flow.count);
            pairs.push((flow.source, flow.target, weight));
            pairs.push((flow.target, flow.source, weight));
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
        Self { first, rows: pairs.into_iter().map(|(_, b, weight)| (b, weight)).collect() }
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.first.len() - 1
    }

    /// A part's partners, with the weight of each.
    pub(super) fn of(&self, part: u32) -> &[(u32, i64)] {
        &self.rows[self.first[part as usize] as usize..self.first[part as usize + 1] as usize]
    }

    /// Pairs of parts that talk, both ways counted.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
