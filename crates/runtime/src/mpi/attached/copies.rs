//! Combining all copies of a value in the order of the ranks that have them.
//!
//! Every rank performs the same operations on the same values in the same order, `((v0 + v1) + v2) +
//! v3`, with its own value at its own place. Sums have the same bits on all ranks, in every run, and
//! the bits of the callback form ([`crate::Cell::combine_shared`]) with one cell a rank.
//!
//! Most copies have one other. Their values are combined straight from the messages into the vector,
//! one message after the other. Only an entry with copies on several lower ranks needs them all at
//! once.

use conset_ir::convert::{index, to_u32};

use super::field::Positions;
use super::halo::Link;
use crate::lists::Number;

/// How a message of one rank is combined.
#[derive(Clone, Debug)]
enum Stream {
    /// All its entries, one by one.
    Whole,
    /// Some: the entry of the message, and the position.
    Some(Vec<(u32, u32)>),
}

/// The copies of this rank's entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    streams: Vec<Stream>,
    /// Messages of lower ranks come first.
    lower: usize,
    /// Positions with copies on several lower ranks, and where their `slots` begin; one more.
    several: Vec<(u32, u32)>,
    /// Of lower ranks, ascending: the message, and its entry.
    slots: Vec<(u32, u32)>,
}

impl Copies {
    /// `links` are sorted by rank.
    pub(super) fn new(rank: usize, links: &[Link]) -> Self {
        let lower = links.partition_point(|link| link.rank < rank);
        let mut arrivals: Vec<(u32, u32, u32)> = Vec::new();
        for (row, link) in (0u32..).zip(&links[..lower]) {
            let entries = (0u32..).zip(link.positions.iter());
            arrivals.extend(entries.map(|(entry, position)| (position, row, entry)));
        }
        arrivals.sort_unstable();
        let mut this = Self { lower, ..Self::default() };
        let mut alone = vec![Vec::new(); lower];
        for copies in arrivals.chunk_by(|a, b| a.0 == b.0) {
            if let [(position, row, entry)] = *copies {
                alone[index(row)].push((entry, position));
                continue;
            }
            this.several.push((copies[0].0, to_u32(this.slots.len())));
            this.slots.extend(copies.iter().map(|&(_, row, entry)| (row, entry)));
        }
        this.several.push((0, to_u32(this.slots.len())));
        for (link, mut alone) in links.iter().zip(alone) {
            let whole = alone.len() == link.positions.len();
            alone.sort_unstable();
            this.streams.push(if whole { Stream::Whole } else { Stream::Some(alone) });
        }
        this.streams.resize_with(links.len(), || Stream::Whole);
        this
    }

    /// Combines what has arrived with what is there.
    ///
    /// # Safety
    /// Message `i` has `block` numbers at `messages[i]` for each position of link `i`, and the vector
    /// has as many at the position. The numbers of messages need not be aligned.
    pub(super) unsafe fn combine<W: Number>(
        &self,
        links: &[Link],
        messages: &[*mut u8],
        block: usize,
        vector: &mut [W],
        combine: impl Fn(W, W) -> W + Copy,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match block {
                1 => self.combine_blocks::<W, true>(links, messages, 1, vector, combine),
                _ => self.combine_blocks::<W, false>(links, messages, block, vector, combine),
            }
        }
    }

    /// [`Copies::combine`], with a loop of its own for single numbers.
    ///
    /// # Safety
    /// As there; if `SINGLE`, the block is 1.
    unsafe fn combine_blocks<W: Number, const SINGLE: bool>(
        &self,
        links: &[Link],
        messages: &[*mut u8],
        block: usize,
        vector: &mut [W],
        combine: impl Fn(W, W) -> W + Copy,
    ) {
        let block = if SINGLE { 1 } else { block };
        let number = |message: usize, at: usize| -> W {
            // SAFETY: the caller's promise.
            unsafe { messages[message].cast::<W>().add(at).read_unaligned() }
        };
        for pair in self.several.windows(2) {
            let (position, copies) =
                (index(pair[0].0), &self.slots[index(pair[0].1)..index(pair[1].1)]);
            for (offset, value) in vector[position * block..][..block].iter_mut().enumerate() {
                let arrived =
                    |&(row, entry): &(u32, u32)| number(index(row), index(entry) * block + offset);
                let (first, rest) = copies.split_first().expect("there are several");
                let below = rest.iter().fold(arrived(first), |v, slot| combine(v, arrived(slot)));
                *value = combine(below, *value);
            }
        }
        for (row, (stream, link)) in self.streams.iter().zip(links).enumerate() {
            // SAFETY: the caller's promise for this message.
            unsafe {
                if row < self.lower {
                    combine_stream(stream, link, messages[row], block, vector, combine);
                } else {
                    let after = |arrived, own| combine(own, arrived);
                    combine_stream(stream, link, messages[row], block, vector, after);
                }
            }
        }
    }
}

/// Combines one message with what is there: `combine(arrived, own)`.
///
/// # Safety
/// The message has `block` numbers for each position of the link, not necessarily aligned, and so has
/// the vector at these positions.
#[inline(always)]
unsafe fn combine_stream<W: Number>(
    stream: &Stream,
    link: &Link,
    message: *const u8,
    block: usize,
    vector: &mut [W],
    combine: impl Fn(W, W) -> W,
) {
    let (message, own) = (message.cast::<W>(), vector.as_mut_ptr());
    // By addresses: positions are checked at the set-up and the length of the vector at the call, and
    // a test for each number would take as long as the sum.
    let some = |from: usize, to: usize, count: usize| {
        for offset in 0..count {
            // SAFETY: the caller's promise.
            unsafe {
                let value = own.add(to).add(offset);
                *value = combine(message.add(from).add(offset).read_unaligned(), *value);
            }
        }
    };
    match (stream, &link.positions) {
        // Contiguous on both sides: one loop without positions.
        (Stream::Whole, Positions::Run { start, len }) => {
            some(0, index(*start) * block, index(*len) * block);
        }
        (Stream::Whole, Positions::Any(positions)) => {
            for (at, &position) in positions.iter().enumerate() {
                some(at * block, index(position) * block, block);
            }
        }
        (Stream::Some(alone), _) => {
            for &(at, position) in alone {
                some(index(at) * block, index(position) * block, block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Copies;
    use crate::mpi::attached::field::Positions;
    use crate::mpi::attached::halo::Link;

    /// The order of the ranks shows in a product of matrices, or here in text-like numbers: combining
    /// appends a digit.
    #[test]
    fn copies_are_combined_in_the_order_of_ranks() {
        let link =
            |rank, positions: &[u32]| Link { rank, positions: Positions::new(positions.to_vec()) };
        // Rank 5: entry 0 is on all ranks, entry 1 on ranks 2 and 7, entry 2 on rank 7 alone.
        let links = [link(1, &[0]), link(2, &[1, 0]), link(7, &[0, 1, 2]), link(9, &[0])];
        let copies = Copies::new(5, &links);
        let mut messages = [vec![1i64; 2], vec![2; 4], vec![7; 6], vec![9; 2]];
        let mut vector: [i64; 8] = [5; 8];
        let at: Vec<*mut u8> = messages.iter_mut().map(|m| m.as_mut_ptr().cast()).collect();
        let digits = |a: i64, b: i64| a * 10 + b;
        // SAFETY: each message has two numbers for each position.
        unsafe { copies.combine(&links, &at, 2, &mut vector, digits) };
        assert_eq!(vector, [12579, 12579, 257, 257, 57, 57, 5, 5]);
    }
}
