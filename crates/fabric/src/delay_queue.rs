//! An event queue for actions that all take the same number of clocks.
//!
//! Every word takes the same number of clocks over a link, every word the same number through an
//! agent's port, and every stream the same number to open. Actions of one kind therefore end in
//! the order in which they start: a plain queue is sorted by end time, and the next event of the
//! machine is at the head of one of three queues. Actions that start in the same clock end in the
//! same clock and form one *batch*, so starting an action only appends its number to a vector.
//! Clocks in which nothing ends cost nothing, and the durations need no common divisor.

use std::collections::VecDeque;

/// Actions in progress that all take `duration` clocks.
#[derive(Clone, Debug)]
pub(crate) struct DelayQueue<T> {
    duration: u64,
    /// The end time of each batch, ascending, and its actions.
    batches: VecDeque<(u64, Vec<T>)>,
    /// Empty vectors for later batches.
    spare: Vec<Vec<T>>,
}

/// The contents of a queue, with times relative to the clock of the snapshot.
#[derive(Clone, Debug)]
pub(crate) struct DelayQueueSnapshot<T> {
    /// Remaining clocks and number of actions of each batch.
    batches: Vec<(u64, usize)>,
    actions: Vec<T>,
}

impl<T> Default for DelayQueueSnapshot<T> {
    fn default() -> Self {
        Self { batches: Vec::new(), actions: Vec::new() }
    }
}

impl<T: Copy + PartialEq> DelayQueue<T> {
    pub(crate) fn new(duration: u32) -> Self {
        Self { duration: u64::from(duration), batches: VecDeque::new(), spare: Vec::new() }
    }

    /// Starts all `actions` at clock `now`, in their order, and empties the vector.
    pub(crate) fn start(&mut self, now: u64, actions: &mut Vec<T>) {
        if actions.is_empty() {
            return;
        }
        let end = now.saturating_add(self.duration);
        match self.batches.back_mut() {
            Some(batch) if batch.0 == end => batch.1.append(actions),
            _ => {
                let spare = self.spare.pop().unwrap_or_default();
                self.batches.push_back((end, std::mem::replace(actions, spare)));
            }
        }
    }

    /// The clock at which the next action ends.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.0)
    }

    /// Removes the actions that end at `now`, in the order in which they started. The vector is to
    /// be returned with [`DelayQueue::recycle`].
    pub(crate) fn take_ended(&mut self, now: u64) -> Vec<T> {
        match self.batches.front() {
            Some(batch) if batch.0 == now => self.batches.pop_front().unwrap_or_default().1,
            _ => Vec::new(),
        }
    }

    /// Takes back the memory of a batch.
    pub(crate) fn recycle(&mut self, mut ended: Vec<T>) {
        if ended.capacity() > 0 {
            ended.clear();
            self.spare.push(ended);
        }
    }

    /// The actions in progress.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.batches.iter().flat_map(|batch| batch.1.iter().copied())
    }

    /// Takes a snapshot.
    pub(crate) fn save(&self, now: u64, snapshot: &mut DelayQueueSnapshot<T>) {
        snapshot.batches.clear();
        snapshot.actions.clear();
        for (end, actions) in &self.batches {
            snapshot.batches.push((end - now, actions.len()));
            snapshot.actions.extend_from_slice(actions);
        }
    }

    /// Whether the same actions are in progress as in the snapshot, with the same remaining times.
    pub(crate) fn matches(&self, now: u64, snapshot: &DelayQueueSnapshot<T>) -> bool {
        let mut then = &snapshot.actions[..];
        self.batches.len() == snapshot.batches.len()
            && self.batches.iter().zip(&snapshot.batches).all(|((end, actions), &(left, count))| {
                let (these, rest) = then.split_at(count);
                then = rest;
                end - now == left && actions[..] == *these
            })
    }

    /// Delays the end of every action by `clocks`.
    pub(crate) fn delay(&mut self, clocks: u64) {
        for batch in &mut self.batches {
            batch.0 += clocks;
        }
    }

    /// Removes every action.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_that_start_together_end_together_and_in_order() {
        let mut queue = DelayQueue::new(5);
        for (now, ids) in [(0, vec![7]), (0, vec![3, 4]), (1, vec![]), (2, vec![9])] {
            queue.start(now, &mut ids.clone());
        }
        assert_eq!(queue.next_end(), Some(5));
        assert!(queue.take_ended(4).is_empty());
        let ended = queue.take_ended(5);
        assert_eq!(ended, [7, 3, 4]);
        queue.recycle(ended);
        assert_eq!((queue.next_end(), queue.iter().count()), (Some(7), 1));
    }

    #[test]
    fn a_snapshot_matches_the_same_actions_with_the_same_remaining_times() {
        let queue = |now: [u64; 2], ids: [&[u32]; 2]| {
            let mut queue = DelayQueue::new(5);
            now.into_iter().zip(ids).for_each(|(now, ids)| queue.start(now, &mut ids.to_vec()));
            queue
        };
        let mut saved = queue([10, 12], [&[1, 2], &[3]]);
        let mut snapshot = DelayQueueSnapshot::default();
        saved.save(13, &mut snapshot);
        assert!(queue([110, 112], [&[1, 2], &[3]]).matches(113, &snapshot));
        for (now, ids) in [
            ([110, 113], [&[1, 2][..], &[3][..]]),
            ([110, 112], [&[1, 2], &[4]]),
            ([110, 112], [&[1], &[2, 3]]),
            ([110, 112], [&[1, 2], &[]]),
        ] {
            assert!(!queue(now, ids).matches(113, &snapshot), "{now:?} {ids:?}");
        }
        saved.clear();
        assert_eq!((saved.next_end(), saved.iter().count()), (None, 0));
    }
}
