//! Time: things that take a fixed number of clocks end in the order in which they began.
//!
//! Every word over a link takes the same number of clocks, and so does every word through an
//! agent and every opening of a stream. What is under way of one kind is therefore a plain queue,
//! already sorted by its end, and the next thing to happen is at the head of one of three queues.
//! No tick, no wheel: clocks in which nothing happens cost nothing, and no cost needs a common
//! divisor with another.

use std::collections::VecDeque;

/// Things under way that all take the same time.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    duration: u64,
    /// When, and how many of `ids` end then.
    batches: VecDeque<(u64, u32)>,
    ids: VecDeque<u32>,
}

impl Lane {
    pub(crate) fn new(duration: u32) -> Self {
        Self { duration: u64::from(duration), batches: VecDeque::new(), ids: VecDeque::new() }
    }

    /// Thing `id` begins now.
    #[inline]
    pub(crate) fn begin(&mut self, now: u64, id: u32) {
        let end = now.saturating_add(self.duration);
        match self.batches.back_mut() {
            Some(batch) if batch.0 == end => batch.1 += 1,
            _ => self.batches.push_back((end, 1)),
        }
        self.ids.push_back(id);
    }

    /// When the first thing ends.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.0)
    }

    /// Moves everything that ends at `now` into `ended`, in the order it began.
    #[inline]
    pub(crate) fn end(&mut self, now: u64, ended: &mut Vec<u32>) {
        ended.clear();
        if let Some(&(end, count)) = self.batches.front()
            && end == now
        {
            self.batches.pop_front();
            ended.extend(self.ids.drain(..count as usize));
        }
    }

    /// Number of things under way.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Forgets everything under way.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
        self.ids.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_together_ends_together_and_in_order() {
        let mut lane = Lane::new(5);
        for (now, id) in [(0, 7), (0, 3), (2, 9)] {
            lane.begin(now, id);
        }
        let mut ended = Vec::new();
        assert_eq!(lane.next(), Some(5));
        lane.end(4, &mut ended);
        assert!(ended.is_empty());
        lane.end(5, &mut ended);
        assert_eq!(ended, [7, 3]);
        assert_eq!((lane.next(), lane.len()), (Some(7), 1));
    }
}
