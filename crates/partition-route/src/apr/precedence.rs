//! The order in which connections are routed, and the phases that precedence constraints allow.
//!
//! Connections whose ends are far apart go first, because they need the most channels, with ties
//! broken by the seed; or connections are taken in the order of the set ([`RoutingOrder`]). If the
//! set has an order, a connection comes after all its predecessors, so that the first pass only
//! looks at earlier connections.
//!
//! A pair (before, after) is satisfied if phase(before) <= phase(after). Inside one phase the
//! timetable keeps the order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Lists};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::RoutingOrder;
use super::routing_state::{RoutingState, UNROUTED};
use crate::marks::Marks;

/// Connections that are visited to find the legal phases of one. Beyond this number, no phase is
/// legal.
const PRECEDENCE_BUDGET: usize = 1 << 12;

/// The precedence constraints of a set.
#[derive(Clone, Debug)]
pub(crate) struct Precedence {
    is_ordered: bool,
    predecessors: Lists,
    successors: Lists,
    /// Scratch of the traversal.
    visited: Marks,
    stack: Vec<u32>,
}

impl Precedence {
    /// The constraints of a set.
    pub(crate) fn new(set: &ConnectionSet) -> Self {
        let is_ordered = !set.order().is_empty();
        let count = if is_ordered { set.len() } else { 0 };
        let pairs = set.order().iter().map(|&(before, after)| (before.0, after.0));
        Self {
            is_ordered,
            predecessors: Lists::new(count, pairs.clone().map(|(before, after)| (after, before))),
            successors: Lists::new(count, pairs),
            visited: Marks::new(count),
            stack: Vec::new(),
        }
    }

    /// Whether some connection must wait for this one.
    pub(crate) fn has_successors(&self, connection: u32) -> bool {
        self.is_ordered && !self.successors.of(connection).is_empty()
    }

    /// The connections in the order of routing. `hops` are those of their shortest routes.
    pub(crate) fn routing_sequence(&self, hops: &[u32], kind: RoutingOrder, seed: u64) -> Vec<u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut keys: Vec<(Reverse<u32>, u32, u32)> = (0..to_u32(hops.len()))
            .map(|x| match kind {
                RoutingOrder::FarthestFirst => (Reverse(hops[index(x)]), rng.random(), x),
                RoutingOrder::Given => (Reverse(0), 0, x),
            })
            .collect();
        if !self.is_ordered {
            keys.sort_unstable();
            return keys.into_iter().map(|key| key.2).collect();
        }
        let mut waiting_for: Vec<u32> =
            (0..to_u32(hops.len())).map(|x| to_u32(self.predecessors.of(x).len())).collect();
        let mut ready: BinaryHeap<_> = keys
            .iter()
            .filter(|key| waiting_for[index(key.2)] == 0)
            .map(|&key| Reverse(key))
            .collect();
        let mut sequence = Vec::with_capacity(hops.len());
        while let Some(Reverse((_, _, x))) = ready.pop() {
            sequence.push(x);
            for &after in self.successors.of(x) {
                waiting_for[index(after)] -= 1;
                if waiting_for[index(after)] == 0 {
                    ready.push(Reverse(keys[index(after)]));
                }
            }
        }
        sequence
    }

    /// The legal phases in the first pass, when all predecessors and no successor of the connection
    /// are routed: from the last phase of the predecessors.
    pub(crate) fn phases_after_predecessors(
        &self,
        state: &RoutingState,
        connection: u32,
    ) -> RangeInclusive<u32> {
        if !self.is_ordered {
            return 0..=u32::MAX;
        }
        let predecessors = self.predecessors.of(connection).iter();
        predecessors.map(|&x| state.phase_of[index(x)]).max().unwrap_or(0)..=u32::MAX
    }

    /// The phases that the routed connections allow for an unrouted one, directly or through other
    /// unrouted ones; `None` if too many of those have to be visited.
    pub(crate) fn legal_phases(
        &mut self,
        state: &RoutingState,
        connection: u32,
    ) -> Option<RangeInclusive<u32>> {
        if !self.is_ordered {
            return Some(0..=u32::MAX);
        }
        let mut low = 0;
        self.walk(state, connection, true, |phase| low = low.max(phase))?;
        let mut high = u32::MAX;
        self.walk(state, connection, false, |phase| high = high.min(phase))?;
        Some(low..=high)
    }

    fn walk(
        &mut self,
        state: &RoutingState,
        connection: u32,
        backwards: bool,
        mut visit: impl FnMut(u32),
    ) -> Option<()> {
        self.visited.clear();
        let rows = if backwards { &self.predecessors } else { &self.successors };
        self.stack.clear();
        self.stack.push(connection);
        let mut expanded = 0;
        while let Some(x) = self.stack.pop() {
            for &next in rows.of(x) {
                if !self.visited.insert(next) {
                    continue;
                }
                expanded += 1;
                if expanded > PRECEDENCE_BUDGET {
                    return None;
                }
                match state.phase_of[index(next)] {
                    UNROUTED => self.stack.push(next),
                    phase => visit(phase),
                }
            }
        }
        Some(())
    }
}
