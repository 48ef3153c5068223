//! The order in which connections are routed, and the phases that ordering constraints leave.
//!
//! Connections far apart go first, because they need the most room, ties broken by the seed; or
//! they go in random order, or as the set lists them ([`Sequence`]).
//! Where the set is ordered, a connection comes after all that must be finished before it, so
//! that the first pass only ever looks backwards.
//!
//! A pair (before, after) is kept if phase(before) <= phase(after). In one and the same phase the
//! timetable keeps it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use conset_ir::{ConnectionSet, Lists};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Sequence;
use super::state::{State, UNROUTED};

/// Connections looked at to find the legal phases of one. Beyond, none is legal.
const WALK: usize = 1 << 12;

/// The ordering constraints of a set.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    any: bool,
    before: Lists,
    after: Lists,
    /// Scratch of the walk.
    seen: Vec<u32>,
    now: u32,
    stack: Vec<u32>,
}

impl Order {
    /// The constraints of a set.
    pub(crate) fn new(set: &ConnectionSet) -> Self {
        let any = !set.order().is_empty();
        let count = if any { set.len() } else { 0 };
        let pairs = set.order().iter().map(|&(before, after)| (before.0, after.0));
        Self {
            any,
            before: Lists::new(count, pairs.clone().map(|(before, after)| (after, before))),
            after: Lists::new(count, pairs),
            seen: vec![0; count],
            now: 0,
            stack: Vec::new(),
        }
    }

    /// Whether some connection must wait for this one.
    pub(crate) fn is_awaited(&self, connection: u32) -> bool {
        self.any && !self.after.of(connection).is_empty()
    }

    /// The connections in the order of routing. `hops` are those of their shortest routes.
    pub(crate) fn sequence(&self, hops: &[u32], kind: Sequence, seed: u64) -> Vec<u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut keys: Vec<(Reverse<u32>, u32, u32)> = (0..hops.len() as u32)
            .map(|x| match kind {
                Sequence::FarthestFirst => (Reverse(hops[x as usize]), rng.random(), x),
                Sequence::Given => (Reverse(0), 0, x),
            })
            .collect();
        if !self.any {
            keys.sort_unstable();
            return keys.into_iter().map(|key| key.2).collect();
        }
        let mut waits: Vec<u32> =
            (0..hops.len() as u32).map(|x| self.before.of(x).len() as u32).collect();
        let mut ready: BinaryHeap<_> =
            keys.iter().filter(|key| waits[key.2 as usize] == 0).map(|&key| Reverse(key)).collect();
        let mut sequence = Vec::with_capacity(hops.len());
        while let Some(Reverse((_, _, x))) = ready.pop() {
            sequence.push(x);
            for &after in self.after.of(x) {
                waits[after as usize] -= 1;
                if waits[after as usize] == 0 {
                    ready.push(Reverse(keys[after as usize]));
                }
            }
        }
        sequence
    }

    /// The phases in the first pass, when everything before the connection is routed and
    /// nothing after it: from the last phase of those before it.
    pub(crate) fn first_pass(&self, state: &State, connection: u32) -> RangeInclusive<u32> {
        if !self.any {
            return 0..=u32::MAX;
        }
        let before = self.before.of(connection).iter();
        before.map(|&x| state.phase_of[x as usize]).max().unwrap_or(0)..=u32::MAX
    }

    /// The phases that the routed connections leave to an unrouted one, through other unrouted
    /// ones as well; `None` if there are too many of those to look at.
    pub(crate) fn phases(&mut self, state: &State, connection: u32) -> Option<RangeInclusive<u32>> {
        if !self.any {
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
        state: &State,
        connection: u32,
        backwards: bool,
        mut meet: impl FnMut(u32),
    ) -> Option<()> {
        self.now = self.now.checked_add(1).unwrap_or_else(|| {
            self.seen.fill(0);
            1
        });
        let rows = if backwards { &self.before } else { &self.after };
        self.stack.clear();
        self.stack.push(connection);
        let mut looked_at = 0;
        while let Some(x) = self.stack.pop() {
            for &next in rows.of(x) {
                if self.seen[next as usize] == self.now {
                    continue;
                }
                self.seen[next as usize] = self.now;
                looked_at += 1;
                if looked_at > WALK {
                    return None;
                }
                match state.phase_of[next as usize] {
                    UNROUTED => self.stack.push(next),
                    phase => meet(phase),
                }
            }
        }
        Some(())
    }
}
