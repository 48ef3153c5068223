//! A stack of the links or ports to serve in the present clock.
//!
//! The last number added is served first. A number is never on the stack twice, so the capacity is
//! known when the stack is made. Whether a number is to be added is decided once per word and is
//! hard to predict, so `add_if` has no branch: it always writes the number and then counts it or
//! not.

/// Numbers below a limit, each at most once.
#[derive(Clone, Debug)]
pub(crate) struct ReadyList {
    /// One entry more than the limit, for a number that is written but not counted.
    numbers: Vec<u32>,
    count: usize,
}

impl ReadyList {
    pub(crate) fn new(limit: usize) -> Self {
        Self { numbers: vec![0; limit + 1], count: 0 }
    }

    /// Adds `number` if `condition` holds; it must not be in the list already.
    #[inline]
    pub(crate) fn add_if(&mut self, number: u32, condition: bool) {
        self.numbers[self.count] = number;
        self.count += usize::from(condition);
    }

    /// Removes the number that was added last.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        Some(self.numbers[self.count])
    }

    /// Removes a number; returns whether it was in the list.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let Some(at) = self.numbers[..self.count].iter().position(|&other| other == number) else {
            return false;
        };
        self.numbers.copy_within(at + 1..self.count, at);
        self.count -= 1;
        true
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_number_keeps_the_others_in_their_order() {
        let mut list = ReadyList::new(4);
        for (number, condition) in [(3, true), (0, true), (2, false), (1, true)] {
            list.add_if(number, condition);
        }
        assert_eq!([list.remove(0), list.remove(2), list.remove(0)], [true, false, false]);
        assert!(!list.is_empty());
        assert_eq!([list.pop(), list.pop(), list.pop()], [Some(1), Some(3), None]);
        assert!(list.is_empty());
    }
}
