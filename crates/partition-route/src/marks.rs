//! Marks on cells or connections that a search sets, and that the next search removes all at once.

use conset_ir::convert::index;

/// A set of numbers below a limit. It is emptied in constant time, so that a search that visits few
/// cells of a large machine need not clear the memory of all.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The generation in which each number was inserted last.
    generations: Vec<u32>,
    now: u32,
}

impl Marks {
    /// No marks on the numbers below `limit`.
    pub fn new(limit: usize) -> Self {
        Self { generations: vec![0; limit], now: 1 }
    }

    /// Removes all marks.
    pub fn clear(&mut self) {
        self.now = self.now.checked_add(1).unwrap_or_else(|| {
            self.generations.fill(0);
            1
        });
    }

    /// Marks a number. Returns whether it had no mark.
    #[inline]
    pub fn insert(&mut self, number: u32) -> bool {
        std::mem::replace(&mut self.generations[index(number)], self.now) != self.now
    }

    /// Whether a number has a mark.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.generations[index(number)] == self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_earlier_generations_do_not_count() {
        let mut marks = Marks::new(2);
        let marked = |marks: &Marks| [0, 1].map(|number| marks.contains(number));
        assert_eq!(marked(&marks), [false, false]);
        assert!(marks.insert(1));
        assert!(!marks.insert(1));
        assert_eq!(marked(&marks), [false, true]);
        marks.clear();
        assert_eq!(marked(&marks), [false, false]);
        assert!(marks.insert(1));
        // Generation 1 comes again after the last one.
        marks.insert(0);
        marks.now = u32::MAX;
        marks.clear();
        assert_eq!((marks.now, marked(&marks)), (1, [false, false]));
    }
}
