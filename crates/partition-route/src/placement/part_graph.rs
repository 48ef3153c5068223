//! The graph of communicating parts: an undirected graph whose edge weights add up both directions.
//!
//! A weight is the words of the connections between two parts, plus optionally a constant for the
//! channels of each connection.

use super::traffic::Traffic;
use crate::network::CsrGraph;

/// Words beyond which the weight does not grow, so that sums of weight times hops stay in range.
const HEAVY: i64 = 1 << 36;

/// An undirected graph of parts with weighted edges.
#[derive(Clone, Debug)]
pub(super) struct PartGraph {
    graph: CsrGraph,
    /// The weight of each edge of `graph`.
    weights: Vec<i64>,
}

impl PartGraph {
    /// The graph of all flows; each weighs its words plus `channel` for each connection.
    pub(super) fn new(traffic: &Traffic, channel: i64) -> Self {
        let parts = traffic.parts();
        let mut pairs: Vec<(u32, u32, i64)> = Vec::with_capacity(2 * traffic.flows.len());
        for flow in &traffic.flows {
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
        let graph = CsrGraph::from_sorted(parts, pairs.iter().map(|pair| (pair.0, pair.1)));
        Self { graph, weights: pairs.into_iter().map(|pair| pair.2).collect() }
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.graph.node_count()
    }

    /// The partners of a part, ascending, each with its weight.
    #[inline]
    pub(super) fn of(&self, part: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let weights = &self.weights[self.graph.edges(part)];
        self.graph.of(part).iter().copied().zip(weights.iter().copied())
    }

    /// The number of partners of a part.
    pub(super) fn degree(&self, part: u32) -> usize {
        self.graph.of(part).len()
    }

    /// Pairs of communicating parts, counted in both directions.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }
}
