//! Combining words of another cell by lists of positions, reading them in place.
//!
//! These loops take most of the time of an exchange. They check nothing: their callers have checked
//! everything.

use conset_ir::convert;

use crate::lists::{Number, Op, greater, smaller};
use crate::port::RawWords;

/// Words to be read at another cell.
pub(super) struct RemoteWords {
    pub(super) row: RawWords,
    /// Null where the words follow each other.
    pub(super) positions: *const u32,
    pub(super) block: usize,
}

/// Combines what is at `there` into the positions.
///
/// # Safety
/// The words can be read, as many as there are positions, times `block`, each as large as a `W`;
/// `here` can be written at the positions; what is written is not read.
pub(super) unsafe fn combine_from<W: Number>(
    op: Op,
    positions: &[u32],
    block: usize,
    there: &RemoteWords,
    here: *mut W,
) {
    // SAFETY: the promise of the caller.
    unsafe {
        match op {
            Op::Copy => with_source(positions, block, there, here, |_, other| other),
            Op::Add => with_source(positions, block, there, here, W::plus),
            Op::Min => with_source(positions, block, there, here, smaller),
            Op::Max => with_source(positions, block, there, here, greater),
        }
    }
}

/// # Safety
/// As [`combine_from`].
#[inline]
unsafe fn with_source<W: Number>(
    positions: &[u32],
    block: usize,
    there: &RemoteWords,
    here: *mut W,
    keep: impl Fn(W, W) -> W,
) {
    let words = there.row.pointer.cast::<W>();
    // SAFETY: positions and places are within both vectors, whose words have the same size, so that
    // a word there has a `W`'s bits.
    unsafe {
        match (there.positions.is_null(), block.max(there.block)) {
            (true, _) => each(positions, block, here, |place| words.add(place).read(), &keep),
            (false, 1) => {
                let at =
                    |place: usize| words.add(convert::index(*there.positions.add(place))).read();
                each(positions, 1, here, at, &keep);
            }
            (false, _) => {
                let at = |place| words.add(there.place(place)).read();
                each(positions, block, here, at, &keep);
            }
        }
    }
}

impl RemoteWords {
    /// Where a word is in the vector.
    ///
    /// # Safety
    /// The source has positions, more than `word / block`.
    #[inline]
    unsafe fn place(&self, word: usize) -> usize {
        // SAFETY: said above.
        let position = convert::index(unsafe { *self.positions.add(word / self.block) });
        position * self.block + word % self.block
    }
}

/// # Safety
/// `here` can be read and written at the positions; `at` can be called for all their words.
#[inline]
unsafe fn each<W: Number>(
    positions: &[u32],
    block: usize,
    here: *mut W,
    at: impl Fn(usize) -> W,
    keep: impl Fn(W, W) -> W,
) {
    if block == 1 {
        for (place, &position) in positions.iter().enumerate() {
            // SAFETY: said above.
            unsafe {
                let word = here.add(convert::index(position));
                word.write(keep(word.read(), at(place)));
            }
        }
        return;
    }
    for (place, &position) in positions.iter().enumerate() {
        for index in 0..block {
            // SAFETY: said above.
            unsafe {
                let word = here.add(convert::index(position) * block + index);
                word.write(keep(word.read(), at(place * block + index)));
            }
        }
    }
}
