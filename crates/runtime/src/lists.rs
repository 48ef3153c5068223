//! Exchange between vectors by lists of positions: gather, transfer, combine.
//!
//! For each connection that starts at a cell, a list states which positions of its vector are sent;
//! for each that ends there, a list states where the words are received. A position stands for
//! `block` contiguous words. Received words are copied, added, or combined by minimum or maximum,
//! connections in the order of their ids and each list from front to back, so that sums have the
//! same bits on every transport.
//!
//! The values sent are those at the time of the call. If some position is both sent and received
//! ([`CellLists::is_mixed`]), the outgoing words are gathered before anything is received;
//! otherwise receivers may read them in place.

use std::ops::Range;

use conset_ir::Direction;
use conset_ir::convert::index;

use crate::word::Word;

/// How words that come in meet those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Replace.
    Copy,
    /// Add; integers wrap round.
    Add,
    /// Keep the smaller; the one that is there where neither is smaller.
    Min,
    /// Keep the greater; the one that is there where neither is greater.
    Max,
}

/// A word that can be added and compared.
pub trait Number: Word + PartialOrd {
    /// The sum; integers wrap round.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn vector(words: &mut [Self]) -> VectorMut<'_>;
}

/// Numbers of one of the types there are.
#[derive(Debug)]
pub enum VectorMut<'a> {
    /// `f64`.
    F64(&'a mut [f64]),
    /// `f32`.
    F32(&'a mut [f32]),
    /// `u64`.
    U64(&'a mut [u64]),
    /// `i64`.
    I64(&'a mut [i64]),
    /// `u32`.
    U32(&'a mut [u32]),
    /// `i32`.
    I32(&'a mut [i32]),
    /// `u16`.
    U16(&'a mut [u16]),
    /// `i16`.
    I16(&'a mut [i16]),
    /// `u8`.
    U8(&'a mut [u8]),
    /// `i8`.
    I8(&'a mut [i8]),
}

/// Evaluates an expression with the numbers of a [`VectorMut`], whatever their type.
macro_rules! each_vector {
    ($vector:expr, $x:ident => $then:expr) => {
        match $vector {
            $crate::lists::VectorMut::F64($x) => $then,
            $crate::lists::VectorMut::F32($x) => $then,
            $crate::lists::VectorMut::U64($x) => $then,
            $crate::lists::VectorMut::I64($x) => $then,
            $crate::lists::VectorMut::U32($x) => $then,
            $crate::lists::VectorMut::I32($x) => $then,
            $crate::lists::VectorMut::U16($x) => $then,
            $crate::lists::VectorMut::I16($x) => $then,
            $crate::lists::VectorMut::U8($x) => $then,
            $crate::lists::VectorMut::I8($x) => $then,
        }
    };
}
pub(crate) use each_vector;

macro_rules! number {
    ($($number:ty: $plus:expr, $variant:ident;)*) => {$(
        impl Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                let plus: fn($number, $number) -> $number = $plus;
                plus(self, other)
            }
            fn vector(words: &mut [Self]) -> VectorMut<'_> {
                VectorMut::$variant(words)
            }
        }
    )*};
}

number! {
    f64: |a, b| a + b, F64;
    f32: |a, b| a + b, F32;
    u64: u64::wrapping_add, U64;
    i64: i64::wrapping_add, I64;
    u32: u32::wrapping_add, U32;
    i32: i32::wrapping_add, I32;
    u16: u16::wrapping_add, U16;
    i16: i16::wrapping_add, I16;
    u8: u8::wrapping_add, U8;
    i8: i8::wrapping_add, I8;
}

impl Op {
    /// The word that is kept of the one that is there and the one that comes in.
    #[inline]
    pub fn apply<W: Number>(self, here: W, other: W) -> W {
        match self {
            Op::Copy => other,
            Op::Add => here.plus(other),
            Op::Min => smaller(here, other),
            Op::Max => greater(here, other),
        }
    }
}

#[inline]
pub(crate) fn smaller<W: Number>(here: W, other: W) -> W {
    if other < here { other } else { here }
}

#[inline]
pub(crate) fn greater<W: Number>(here: W, other: W) -> W {
    if other > here { other } else { here }
}

/// Lists of positions, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    first: Vec<u32>,
    positions: Vec<u32>,
}

impl Positions {
    /// A list for each connection.
    ///
    /// # Panics
    /// If there are 2^32 positions or more.
    pub fn new<L: AsRef<[u32]>>(lists: impl IntoIterator<Item = L>) -> Self {
        let (mut first, mut positions) = (vec![0u32], Vec::new());
        for list in lists {
            positions.extend_from_slice(list.as_ref());
            first.push(u32::try_from(positions.len()).expect("positions are numbered by u32"));
        }
        Self { first, positions }
    }

    /// Number of lists.
    #[allow(clippy::len_without_is_empty, reason = "it is asked how many")]
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// The list of the connection in this place.
    #[inline]
    pub fn row(&self, place: usize) -> &[u32] {
        &self.positions[index(self.first[place])..index(self.first[place + 1])]
    }

    /// The words of each list with `block` for a position, unless a connection cannot have so many.
    fn words(&self, block: usize) -> Option<Box<[u32]>> {
        let block = u32::try_from(block).ok();
        let words = |list: u32| if list == 0 { Some(0) } else { list.checked_mul(block?) };
        self.first.windows(2).map(|ends| words(ends[1] - ends[0])).collect()
    }

    /// All lists together.
    pub fn all(&self) -> &[u32] {
        &self.positions
    }

    /// The position of the first entry of a list in [`Self::all`].
    pub fn start(&self, place: usize) -> usize {
        index(self.first[place])
    }
}

/// What a cell sends and receives, by positions in its vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellLists {
    send: Positions,
    receive: Positions,
    block: usize,
    /// Words of each list, as they are compared with connections; none where some are too many for one.
    sent: Option<Box<[u32]>>,
    received: Option<Box<[u32]>>,
    /// Positions that the vector has to have.
    extent: usize,
    mixed: bool,
}

impl CellLists {
    /// Lists of the connections that start at the cell and of those that end at it, both in id
    /// order; each position is `block` words. O(n log n) in the positions.
    pub fn new(send: Positions, receive: Positions, block: usize) -> Self {
        let all = send.all().iter().chain(receive.all());
        let extent = all.max().map_or(0, |&last| index(last) + 1);
        let mut sent = send.all().to_vec();
        sent.sort_unstable();
        let mixed = receive.all().iter().any(|position| sent.binary_search(position).is_ok());
        let (sent, received) = (send.words(block), receive.words(block));
        Self { send, receive, block, sent, received, extent, mixed }
    }

    /// What goes out.
    pub fn send(&self) -> &Positions {
        &self.send
    }

    /// Where it comes in.
    pub fn receive(&self) -> &Positions {
        &self.receive
    }

    /// Words of a position.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Words that the vector has to have; `None` if there are no such vectors.
    pub fn words(&self) -> Option<usize> {
        self.extent.checked_mul(self.block)
    }

    /// Whether there is a list for each connection, of as many words as it has: of those that start
    /// here, and of those that end here.
    #[inline]
    pub(crate) fn fit(&self, direction: Direction, words: &[u32]) -> bool {
        let own = match direction {
            Direction::Send => &self.sent,
            Direction::Receive => &self.received,
        };
        own.as_deref() == Some(words)
    }

    /// Whether a position both goes out and comes in.
    pub fn is_mixed(&self) -> bool {
        self.mixed
    }
}

/// Between a vector and the wire, which has the bytes of its numbers. What is on the wire is
/// a stretch of a connection's words: the connection's row among those that start here or end here,
/// and the first of the words. The loops have no checks of their own: every position was
/// compared with the vector's length before.
impl CellLists {
    /// Puts a stretch of the words that go out on the wire.
    ///
    /// # Panics
    /// If the vector is shorter than [`CellLists::words`].
    pub(crate) fn pack<W: Word>(
        &self,
        (row, first): (usize, usize),
        vector: &[W],
        wire: &mut [u8],
    ) {
        self.check_extent(vector.len());
        // SAFETY: places are those of positions of these lists.
        let word = |place: usize| *unsafe { vector.get_unchecked(place) };
        let positions = self.send.row(row);
        let mut wire = wire.chunks_exact_mut(size_of::<W>());
        if self.block == 1 {
            for (wire, &position) in wire.zip(&positions[first..]) {
                word(index(position)).write_to(wire);
            }
            return;
        }
        let words = first..first + wire.len();
        each_item(positions, self.block, words, |words, position, offset| {
            let place = position * self.block + offset;
            wire.by_ref()
                .take(words.len())
                .zip(place..)
                .for_each(|(wire, at)| word(at).write_to(wire));
        });
    }

    /// Combines a stretch of the words that came in with what is there.
    ///
    /// # Panics
    /// As [`CellLists::pack`].
    pub(crate) fn unpack<W: Number>(
        &self,
        (row, first): (usize, usize),
        op: Op,
        wire: &[u8],
        vector: &mut [W],
    ) {
        let at = (row, first);
        // A loop for each operation, so that none is chosen within.
        match op {
            Op::Copy => self.unpack_by(at, wire, vector, |_, other| other),
            Op::Add => self.unpack_by(at, wire, vector, W::plus),
            Op::Min => self.unpack_by(at, wire, vector, smaller),
            Op::Max => self.unpack_by(at, wire, vector, greater),
        }
    }

    fn unpack_by<W: Number>(
        &self,
        (row, first): (usize, usize),
        wire: &[u8],
        vector: &mut [W],
        keep: impl Fn(W, W) -> W,
    ) {
        self.check_extent(vector.len());
        let mut take = |place: usize, word: &[u8]| {
            // SAFETY: places are those of positions of these lists.
            let here = unsafe { vector.get_unchecked_mut(place) };
            *here = keep(*here, W::read_from(word));
        };
        let positions = self.receive.row(row);
        let mut wire = wire.chunks_exact(size_of::<W>());
        if self.block == 1 {
            for (word, &position) in wire.zip(&positions[first..]) {
                take(index(position), word);
            }
            return;
        }
        let words = first..first + wire.len();
        each_item(positions, self.block, words, |words, position, offset| {
            let place = position * self.block + offset;
            wire.by_ref().take(words.len()).zip(place..).for_each(|(word, at)| take(at, word));
        });
    }

    /// Every position is in a vector of so many words.
    fn check_extent(&self, words: usize) {
        assert!(self.words().is_some_and(|needed| needed <= words), "the cell has checked that");
    }
}

/// Calls `visit` for each position of which there are words among `words`: which of these they are,
/// the position, and where in its block the first is. All words are of a position in the list.
#[inline(always)]
pub(crate) fn each_item(
    positions: &[u32],
    block: usize,
    words: Range<usize>,
    mut visit: impl FnMut(Range<usize>, usize, usize),
) {
    let (mut from, mut offset) = (0, words.start % block);
    for &position in &positions[words.start / block..words.end.div_ceil(block)] {
        let to = (from + block - offset).min(words.len());
        visit(from..to, index(position), offset);
        (from, offset) = (to, 0);
    }
}

/// Gathers the words at the positions, one after the other.
pub(crate) fn gather<W: Word>(positions: &[u32], block: usize, vector: &[W], into: &mut [W]) {
    if block == 1 {
        for (word, &position) in into.iter_mut().zip(positions) {
            *word = vector[index(position)];
        }
        return;
    }
    for (words, &position) in into.chunks_exact_mut(block.max(1)).zip(positions) {
        let start = index(position) * block;
        words.copy_from_slice(&vector[start..start + block]);
    }
}

/// Combines words, one after the other, into those at the positions.
pub(crate) fn combine<W: Number>(
    positions: &[u32],
    block: usize,
    op: Op,
    words: &[W],
    vector: &mut [W],
) {
    for (words, &position) in words.chunks_exact(block.max(1)).zip(positions) {
        let start = index(position) * block;
        for (here, &other) in vector[start..start + block].iter_mut().zip(words) {
            *here = op.apply(*here, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(send: &[&[u32]], receive: &[&[u32]], block: usize) -> CellLists {
        CellLists::new(Positions::new(send), Positions::new(receive), block)
    }

    #[test]
    fn lists_know_what_they_need() {
        let l = lists(&[&[3, 1], &[]], &[&[7]], 2);
        assert_eq!((l.words(), l.is_mixed(), l.send().len()), (Some(16), false, 2));
        assert_eq!((l.send().row(0), l.send().row(1)), (&[3, 1][..], &[][..]));
        assert!(l.fit(Direction::Send, &[4, 0]) && l.fit(Direction::Receive, &[2]));
        assert!([&[4][..], &[2, 0], &[4, 2], &[]].iter().all(|&w| !l.fit(Direction::Send, w)));
        for block in [usize::MAX, 1 << 31, 1 << 32] {
            let wide = lists(&[&[3, 1], &[]], &[&[]], block);
            assert!(!wide.fit(Direction::Send, &[2, 0]) && !wide.fit(Direction::Send, &[0, 0]));
            assert!(wide.fit(Direction::Receive, &[0]));
        }
        assert!(lists(&[&[3, 1]], &[&[1]], 1).is_mixed());
        assert_eq!(lists(&[], &[], 5).words(), Some(0));
    }

    #[test]
    fn blocks_are_gathered_and_combined() {
        let vector = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let mut words = [0.0; 4];
        gather(&[2, 0], 2, &vector, &mut words);
        assert_eq!(words, [4.0, 5.0, 0.0, 1.0]);
        let mut sums = vector;
        combine(&[0, 0], 2, Op::Add, &words, &mut sums);
        assert_eq!(sums, [4.0, 7.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn stretches_together_are_the_whole() {
        for block in [1, 2, 3, 5] {
            let own = lists(&[&[9], &[4, 0, 7, 2]], &[&[], &[1, 3, 8, 1]], block);
            let vector: Vec<f32> = (0..10 * block as u16).map(f32::from).collect();
            let words = 4 * block;
            const SIZE: usize = size_of::<f32>();
            let mut whole = vec![0; words * SIZE];
            own.pack((1, 0), &vector, &mut whole);
            let places = [4, 0, 7, 2].iter().flat_map(|&item| item * block..(item + 1) * block);
            assert!(places.map(|place| vector[place]).eq(whole.chunks(SIZE).map(f32::read_from)));
            let mut all = vector.clone();
            own.unpack((1, 0), Op::Add, &whole, &mut all);
            for cut in 0..=words {
                let (mut parts, mut sums) = (vec![0; words * SIZE], vector.clone());
                for (first, part) in
                    [0, cut].into_iter().zip(<[_; 2]>::from(parts.split_at_mut(cut * SIZE)))
                {
                    own.pack((1, first), &vector, part);
                    own.unpack((1, first), Op::Add, part, &mut sums);
                }
                assert_eq!((parts, &sums), (whole.clone(), &all), "block {block}, cut at {cut}");
            }
        }
    }

    #[test]
    fn operations_keep_what_is_there_where_nothing_is_better() {
        assert_eq!(Op::Add.apply(i32::MAX, 1), i32::MIN);
        assert!(Op::Min.apply(0.0f64, -0.0).is_sign_positive());
        assert_eq!(Op::Max.apply(1.0f32, f32::NAN), 1.0);
        assert_eq!(Op::Copy.apply(1u64, 2), 2);
    }
}
