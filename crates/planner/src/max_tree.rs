//! A tree of maxima over the loads of each phase.
//!
//! A row has one load for each place: a port of an agent, or an edge, in one phase. Level by level,
//! the tree stores the maximum of every [`WIDE`] neighbours, up to one number per row. A changed
//! load is propagated only while it exceeds the maximum above it, or was that maximum. The maximum
//! of a phase is therefore known without reading the loads of a million links of which few are in
//! use.

use std::ops::Index;

/// Neighbours of which the greatest is kept.
const WIDE: usize = 16;

/// Loads by row and place: number `row * places + place`.
#[derive(Clone, Debug)]
pub(super) struct MaxTree {
    places: usize,
    loads: Vec<u64>,
    /// Level by level, each shorter than the one below: where a row begins is its number times
    /// the level's width.
    levels: Vec<(usize, Vec<u64>)>,
}

impl MaxTree {
    /// No load anywhere.
    pub(super) fn new(rows: usize, places: usize) -> Self {
        let mut levels = Vec::new();
        let mut width = places;
        while width > 1 {
            width = width.div_ceil(WIDE);
            levels.push((width, vec![0; rows * width]));
        }
        Self { places, loads: vec![0; rows * places], levels }
    }

    /// Sets a load.
    #[inline]
    pub(super) fn set(&mut self, at: usize, load: u64) {
        let was = std::mem::replace(&mut self.loads[at], load);
        let top = self.levels.first().map(|(width, level)| {
            let (row, place) = (at / self.places, at % self.places);
            level[row * width + place / WIDE]
        });
        if let Some(top) = top
            && (load > top || (was == top && load < was))
        {
            self.pass_up(at / self.places, at % self.places, was, load);
        }
    }

    fn pass_up(&mut self, row: usize, mut place: usize, mut was: u64, mut now: u64) {
        let (mut below, mut width) = (&self.loads[..], self.places);
        for (wide, level) in &mut self.levels {
            let block = place / WIDE;
            let top = &mut level[row * *wide + block];
            if now > *top {
                (was, *top) = (*top, now);
            } else if was == *top && now < was {
                let end = width.min((block + 1) * WIDE);
                let these = &below[row * width + block * WIDE..row * width + end];
                now = these.iter().copied().max().unwrap_or(0);
                if now == was {
                    return;
                }
                *top = now;
            } else {
                return;
            }
            (place, width, below) = (block, *wide, &level[..]);
        }
    }

    /// The greatest load of each row.
    pub(super) fn of_rows(&self) -> &[u64] {
        self.levels.last().map_or(&self.loads[..], |(_, level)| level)
    }
}

impl Index<usize> for MaxTree {
    type Output = u64;

    #[inline]
    fn index(&self, at: usize) -> &u64 {
        &self.loads[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_greatest_is_that_of_the_loads(
            places in 0..600usize,
            changes in proptest::collection::vec((any::<usize>(), 0..9u64), 0..300),
        ) {
            let rows = 3;
            let mut loads = MaxTree::new(rows, places);
            for (at, load) in changes {
                if places > 0 {
                    loads.set(at % (rows * places), load);
                }
                for (row, &greatest) in loads.of_rows().iter().enumerate() {
                    let these = (0..places).map(|place| loads[row * places + place]);
                    prop_assert_eq!(these.max(), Some(greatest));
                }
            }
            prop_assert_eq!(loads.of_rows().len(), if places == 0 { 0 } else { rows });
        }
    }
}
