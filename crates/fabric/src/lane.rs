//! Time: things that take a fixed number of clocks end in the order in which they began.
//!
//! Every word over a link takes the same number of clocks, and so does every word through an
//! agent and every opening of a stream. What is under way of one kind is therefore a plain queue,
//! already sorted by its end, and the next thing to happen is at the head of one of three queues.
//! What begins in one clock ends in one clock and is one *batch*, so that all that is done for a
//! single thing is to write its number down. No tick, no wheel: clocks in which nothing happens cost nothing, and no cost needs a common
//! divisor with another.

use std::collections::VecDeque;

/// Things under way that all take the same time.
#[derive(Clone, Debug)]
pub(crate) struct Lane<T> {
    duration: u64,
    /// What ends together, and when.
    batches: VecDeque<(u64, Vec<T>)>,
    /// Emptied batches, to be filled again.
    spare: Vec<Vec<T>>,
}

/// What is under way in a lane, relative to now.
#[derive(Clone, Debug)]
pub(crate) struct LaneState<T> {
    /// Clocks yet to go, and how many things.
    batches: Vec<(u64, usize)>,
    things: Vec<T>,
}

impl<T> Default for LaneState<T> {
    fn default() -> Self {
        Self { batches: Vec::new(), things: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Lane<T> {
    pub(crate) fn new(duration: u32) -> Self {
        Self { duration: u64::from(duration), batches: VecDeque::new(), spare: Vec::new() }
    }

    /// Things begin now, in this order; `things` is empty afterwards.
    pub(crate) fn begin(&mut self, now: u64, things: &mut Vec<T>) {
        if things.is_empty() {
            return;
        }
        let end = now.saturating_add(self.duration);
        match self.batches.back_mut() {
            Some(batch) if batch.0 == end => batch.1.append(things),
            _ => {
                let spare = self.spare.pop().unwrap_or_default();
                self.batches.push_back((end, std::mem::replace(things, spare)));
            }
        }
    }

    /// When the first thing ends.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.0)
    }

    /// Takes out everything that ends at `now`, in the order it began. To be given back with
    /// [`Lane::recycle`].
    pub(crate) fn end(&mut self, now: u64) -> Vec<T> {
        match self.batches.front() {
            Some(batch) if batch.0 == now => self.batches.pop_front().unwrap_or_default().1,
            _ => Vec::new(),
        }
    }

    /// Takes the memory of an ended batch back.
    pub(crate) fn recycle(&mut self, mut ended: Vec<T>) {
        if ended.capacity() > 0 {
            ended.clear();
            self.spare.push(ended);
        }
    }

    /// What is under way.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.batches.iter().flat_map(|batch| batch.1.iter().copied())
    }

    /// Takes a snapshot.
    pub(crate) fn save(&self, now: u64, state: &mut LaneState<T>) {
        state.batches.clear();
        state.things.clear();
        for (end, things) in &self.batches {
            state.batches.push((end - now, things.len()));
            state.things.extend_from_slice(things);
        }
    }

    /// Whether what is under way is as in the snapshot.
    pub(crate) fn is_as(&self, now: u64, state: &LaneState<T>) -> bool {
        let mut then = &state.things[..];
        self.batches.len() == state.batches.len()
            && self.batches.iter().zip(&state.batches).all(|((end, things), &(left, count))| {
                let (these, rest) = then.split_at(count);
                then = rest;
                end - now == left && things[..] == *these
            })
    }

    /// Everything under way ends so much later.
    pub(crate) fn delay(&mut self, clocks: u64) {
        for batch in &mut self.batches {
            batch.0 += clocks;
        }
    }

    /// Forgets everything under way.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_together_ends_together_and_in_order() {
        let mut lane = Lane::new(5);
        for (now, ids) in [(0, vec![7]), (0, vec![3, 4]), (1, vec![]), (2, vec![9])] {
            lane.begin(now, &mut ids.clone());
        }
        assert_eq!(lane.next(), Some(5));
        assert!(lane.end(4).is_empty());
        let ended = lane.end(5);
        assert_eq!(ended, [7, 3, 4]);
        lane.recycle(ended);
        assert_eq!((lane.next(), lane.iter().count()), (Some(7), 1));
    }
}
