//! How the arrays of children are combined, and arrays of numbers seen as bytes.

use std::cmp::Ordering;

use crate::lists::{Number, Op, greater, smaller};
use crate::word::{Word, lower_half};

/// Combines words with those of a child, entry by entry.
pub(crate) fn combine_words<W: Number>(op: Op, own: &mut [W], child: &[W]) {
    match op {
        Op::Copy => each(own, child, |_, child| child),
        Op::Add => each(own, child, W::plus),
        Op::Min => each(own, child, smaller),
        Op::Max => each(own, child, greater),
    }
}

/// An operation on arrays of numbers of a type that is known where it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayOp {
    op: Op,
    number_type: usize,
    combine: fn(Op, &mut [u8], &[u8]),
}

impl ArrayOp {
    /// The operation on arrays of `W`.
    pub(crate) fn new<W: Number>(op: Op) -> Self {
        let combine = |op, own: &mut [u8], its: &[u8]| {
            combine_words::<W>(op, words_of_mut(own), words_of(its));
        };
        Self { op, number_type: W::TYPE, combine }
    }

    /// The operation.
    pub(crate) fn op(&self) -> Op {
        self.op
    }

    /// Whether its arrays are of `W`.
    pub(crate) fn is_of<W: Number>(&self) -> bool {
        self.number_type == W::TYPE
    }

    /// Combines the bytes of words with those of a child.
    pub(crate) fn combine(&self, own: &mut [u8], its: &[u8]) {
        (self.combine)(self.op, own, its);
    }
}

#[inline]
fn each<W: Copy>(own: &mut [W], child: &[W], combine: impl Fn(W, W) -> W) {
    for (own, &child) in own.iter_mut().zip(child) {
        *own = combine(*own, child);
    }
}

/// Combines pairs of the bits of a value and a place: the greatest value, and of equal ones the
/// smallest place. What follows a pair is left as it is.
pub(super) fn combine_maxima<W: Number>(own: &mut [u64], child: &[u64]) {
    let ([value, at, ..], [other, other_at, ..]) = (own, child) else { return };
    match order(W::from_bits(*other), W::from_bits(*value)) {
        Ordering::Greater => (*value, *at) = (*other, *other_at),
        Ordering::Equal => *at = (*at).min(*other_at),
        Ordering::Less => {}
    }
}

/// Numbers in order, and beyond them what is none.
pub(super) fn order<W: Number>(a: W, b: W) -> Ordering {
    let is_nan = |x: W| x.partial_cmp(&x).is_none();
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

/// The bytes of numbers, to be replaced by those of others.
pub(crate) fn bytes_of_mut<W: Word>(words: &mut [W]) -> &mut [u8] {
    let bytes = size_of_val(words);
    // SAFETY: the only types of words are numbers, which have no padding, and of which any bits are
    // a number; the bytes are borrowed for as long as the words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), bytes) }
}

/// The numbers of bytes that are aligned to them.
pub(crate) fn words_of<W: Word>(bytes: &[u8]) -> &[W] {
    check_shape::<W>(bytes);
    let start = bytes.as_ptr().cast::<W>();
    // SAFETY: `check_shape` has checked alignment and length; any bits are a number.
    unsafe { std::slice::from_raw_parts(start, bytes.len() / size_of::<W>()) }
}

/// The same, to be written.
pub(crate) fn words_of_mut<W: Word>(bytes: &mut [u8]) -> &mut [W] {
    check_shape::<W>(bytes);
    let start = bytes.as_mut_ptr().cast::<W>();
    // SAFETY: as above, and of a number any bits may be written to the bytes.
    unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<W>()) }
}

fn check_shape<W>(bytes: &[u8]) {
    let whole = bytes.len().is_multiple_of(size_of::<W>());
    assert!(bytes.as_ptr().cast::<W>().is_aligned() && whole, "bytes of words");
}

/// The bits of the words of so many bytes each, 4 or 8, which these bytes are.
pub(crate) fn bits_of(bytes: &[u8], word_bytes: usize) -> impl Iterator<Item = u64> {
    bytes.chunks(word_bytes).map(|word| match word {
        &[a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        word => word.try_into().map_or(0, u64::from_ne_bytes),
    })
}

/// Writes words of so many bytes each, 4 or 8.
pub(crate) fn write_bits(bytes: &mut [u8], word_bytes: usize, bits: &[u64]) {
    for (word, &bits) in bytes.chunks_mut(word_bytes).zip(bits) {
        match word {
            [_, _, _, _] => word.copy_from_slice(&lower_half(bits).to_ne_bytes()),
            _ => word.copy_from_slice(&bits.to_ne_bytes()),
        }
    }
}
