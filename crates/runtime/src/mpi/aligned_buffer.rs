//! Memory at a fixed address that MPI may read and write, aligned to the lines of a cache or to pages.
//!
//! Libraries copy a long message within a node straight from the buffer of the sender to that of the
//! receiver (`process_vm_readv`). On processors with fast string moves this copy takes four times as
//! long where the target lies 1 to 31 bytes after the source, counted within their pages: that was
//! measured on AMD EPYC with every length from 8 kB on. And each page that the source touches takes
//! time: exchanges of 8 kB take 7 % less in two pages than in three. Buffers therefore begin at a line
//! of a cache, those of a page or more at a page, and so do the messages in them ([`alignment`]).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;

/// Bytes of a line of a cache, and of a page.
const LINE: usize = 64;
const PAGE: usize = 1 << 12;

/// A buffer or message of so many bytes begins at a multiple of this.
pub(super) fn alignment(bytes: usize) -> usize {
    if bytes < PAGE { LINE } else { PAGE }
}

/// Memory that nothing but [`AlignedBuffer::free`] frees, so that it can be left to MPI.
pub(super) struct AlignedBuffer {
    start: NonNull<u64>,
    layout: Layout,
}

impl AlignedBuffer {
    /// Memory of so many bytes, rounded up to whole words, all 0, at a multiple of [`alignment`].
    pub(super) fn new(bytes: usize) -> Self {
        let whole = bytes.checked_next_multiple_of(size_of::<u64>());
        let layout = whole.and_then(|whole| Layout::from_size_align(whole, alignment(bytes)).ok());
        let layout = layout.expect("a buffer has fewer bytes than there are addresses");
        if layout.size() == 0 {
            return Self { start: NonNull::dangling(), layout };
        }
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<u64>());
        let Some(start) = start else { handle_alloc_error(layout) };
        Self { start, layout }
    }

    /// Words as they are, without a copy: aligned to words only.
    pub(super) fn from_words(words: Vec<u64>) -> Self {
        let words = Box::leak(words.into_boxed_slice());
        Self { layout: Layout::for_value(words), start: NonNull::from(words).cast() }
    }

    /// Bytes of the buffer.
    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Where some of the bytes are.
    pub(super) fn at(&self, bytes: &Range<usize>) -> *mut u8 {
        assert!(bytes.start <= bytes.end && bytes.end <= self.len());
        self.start.as_ptr().cast::<u8>().wrapping_add(bytes.start)
    }

    /// All words, which MPI does not write at present.
    pub(super) fn words(&self) -> &[u64] {
        // SAFETY: the words were initialised when the buffer was made, and are freed by `free` alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len() / size_of::<u64>()) }
    }

    /// All words, which MPI does not use at present.
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        let words = self.len() / size_of::<u64>();
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), words) }
    }

    /// Frees the memory, which MPI does not use any more. The buffer is empty from then on.
    pub(super) fn free(&mut self) {
        let Self { start, layout } = std::mem::replace(self, Self::new(0));
        if layout.size() > 0 {
            // SAFETY: the memory was allocated with this layout, by `new` or as a box of words;
            // nothing refers to it any more.
            unsafe { dealloc(start.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for bytes in [0, 1, 63, 64, 65, 4095, 4096, 9000] {
            let mut buffer = AlignedBuffer::new(bytes);
            assert_eq!(buffer.words().len(), bytes.div_ceil(8));
            assert!(buffer.at(&(0..bytes)).addr().is_multiple_of(alignment(bytes)) || bytes == 0);
            assert!(buffer.words().iter().all(|&word| word == 0));
            buffer.words_mut().fill(1);
            buffer.free();
            assert_eq!((buffer.len(), buffer.words()), (0, &[][..]));
        }
        let mut words = AlignedBuffer::from_words(vec![1, 2, 3]);
        assert_eq!((words.len(), words.words()), (24, &[1, 2, 3][..]));
        words.free();
        words.free();
        assert_eq!(words.len(), 0);
    }
}
