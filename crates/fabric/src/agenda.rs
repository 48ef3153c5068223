//! What is to be served in this clock: links, or ports.
//!
//! Last come, first served; nobody stands here twice, so the room is known beforehand. Whether
//! something is to be listed is hard to foresee and asked for every word, so listing has no
//! branch: the number is always written, and counted or not.

/// Numbers below a limit, each at most once.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// One more than the limit, for what is written and not counted.
    numbers: Vec<u32>,
    count: usize,
}

impl Agenda {
    pub(crate) fn new(limit: usize) -> Self {
        Self { numbers: vec![0; limit + 1], count: 0 }
    }

    /// Lists `number` if `listed` says so; it must not stand here yet.
    #[inline]
    pub(crate) fn add_if(&mut self, number: u32, listed: bool) {
        self.numbers[self.count] = number;
        self.count += usize::from(listed);
    }

    /// Takes out what was listed last.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        Some(self.numbers[self.count])
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }
}
