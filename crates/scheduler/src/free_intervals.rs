//! The unfilled time regions of a port (paper, section 4.4.2).
//!
//! They are a sorted vector of disjoint intervals, the last of which has no end. Slots are booked
//! first-fit, so booked time merges and the vector stays short.

/// The free time of one port, in clocks from the start of the phase.
#[derive(Clone, Debug)]
pub(crate) struct FreeIntervals {
    /// `(first free clock, first clock after)`, sorted; the last reaches to `u64::MAX`.
    free: Vec<(u64, u64)>,
}

impl FreeIntervals {
    pub(crate) fn new() -> Self {
        Self { free: vec![(0, u64::MAX)] }
    }

    pub(crate) fn clear(&mut self) {
        self.free.clear();
        self.free.push((0, u64::MAX));
    }

    /// The first start, not before `from`, at which both ports are free for `duration` clocks.
    /// `from + duration` and everything booked together must stay below `u64::MAX`.
    pub(crate) fn first_common(&self, other: &Self, from: u64, duration: u64) -> u64 {
        let (mut i, mut j) = (self.after(from), other.after(from));
        loop {
            let (mine, theirs) = (self.free[i], other.free[j]);
            let start = from.max(mine.0).max(theirs.0);
            let end = mine.1.min(theirs.1);
            // The last intervals have no end, so the loop stops there at the latest.
            if end == u64::MAX || start.saturating_add(duration) <= end {
                return start;
            }
            if mine.1 <= theirs.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
    }

    /// Books `start..end`, which must lie inside one free interval.
    pub(crate) fn book(&mut self, start: u64, end: u64) {
        if start == end {
            return;
        }
        let row = self.after(start);
        let gap = self.free[row];
        debug_assert!(gap.0 <= start && end <= gap.1, "{start}..{end} is not free");
        match (gap.0 < start, end < gap.1) {
            (false, false) => {
                self.free.remove(row);
            }
            (false, true) => self.free[row].0 = end,
            (true, false) => self.free[row].1 = start,
            (true, true) => {
                self.free[row].0 = end;
                self.free.insert(row, (gap.0, start));
            }
        }
    }

    /// The first free interval that ends after `time`.
    fn after(&self, time: u64) -> usize {
        self.free.partition_point(|gap| gap.1 <= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_fit_fills_holes_on_both_sides() {
        let (mut a, mut b) = (FreeIntervals::new(), FreeIntervals::new());
        a.book(10, 20);
        b.book(25, 30);
        assert_eq!(a.first_common(&b, 0, 10), 0);
        assert_eq!(a.first_common(&b, 0, 11), 30);
        assert_eq!(a.first_common(&b, 0, 5), 0);
        assert_eq!(a.first_common(&b, 6, 5), 20);
        assert_eq!(a.first_common(&b, 21, 5), 30);
        a.book(0, 10);
        assert_eq!(a.free, [(20, u64::MAX)]);
        a.book(22, 23);
        a.book(20, 22);
        assert_eq!(a.free, [(23, u64::MAX)]);
        a.book(40, 50);
        a.book(30, 40);
        assert_eq!(a.free, [(23, 30), (50, u64::MAX)]);
    }
}
