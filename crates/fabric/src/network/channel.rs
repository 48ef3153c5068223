//! A channel: a queue of words in 32 bytes, half a cache line.
//!
//! A queued word is only a [`Tag`]. A channel normally carries one stream, whose words are
//! consecutive, so the tag of the first word and the number of words determine the whole queue.
//! Where several streams mix ([`super::mixed_streams`]), the record still holds the first word and
//! the number of words.

use conset_ir::convert::to_u32;

/// No channel, stream, operation or connection.
pub(crate) const NONE: u32 = u32::MAX;
/// `Channel::server`: an agent takes the words out.
pub(crate) const GATE: u32 = u32::MAX - 1;
/// `Channel::server`: the cell has no table row for this channel; a word that arrives here was
/// misrouted.
pub(crate) const UNMAPPED: u32 = u32::MAX - 2;
/// `Channel::waiter`: an agent waits for space.
pub(super) const AGENT: u32 = u32::MAX - 1;

/// Identifies a word: its stream (the connection it was sent for, or the message) in the upper 32
/// bits and its index within the stream in the lower 32, so that the tags of consecutive words are
/// consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u64);

impl Tag {
    /// The tag of no word: stream `NONE`, index 0.
    pub(crate) const NONE: Self = Self(0xffff_ffff_0000_0000);

    #[inline]
    pub(crate) fn new(stream: u32, index: u32) -> Self {
        Self(u64::from(stream) << 32 | u64::from(index))
    }

    // The compiler sees that both halves fit, so these conversions cost nothing.

    #[inline]
    pub(crate) fn stream(self) -> u32 {
        to_u32(self.0 >> 32)
    }

    /// The word's index in its stream.
    #[inline]
    pub(crate) fn index(self) -> u32 {
        to_u32(self.0 & 0xffff_ffff)
    }

    /// The tag `words` words later. A stream has less than 2^32 words.
    #[inline]
    pub(crate) const fn plus(self, words: u64) -> Self {
        Self(self.0.wrapping_add(words))
    }

    /// Advances by `periods` times the distance from `then`, in the same stream.
    pub(crate) const fn skip(self, then: Self, periods: u64) -> Self {
        self.plus(self.0.wrapping_sub(then.0).wrapping_mul(periods))
    }
}

/// A channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Channel {
    /// The first word; in an empty channel, the word after the last one removed.
    pub(super) head: Tag,
    /// The channel ahead, where a link serves this one.
    pub(super) next: u32,
    /// The link that serves it, `GATE` or `UNMAPPED`.
    pub(super) server: u32,
    /// The channel, or `AGENT`, that waits for space here.
    pub(super) waiter: u32,
    /// The index of the last word to cross to `next`, which is reported in `Network::tails`; `NONE`
    /// where there is no last word.
    pub(super) last: u32,
    /// Words that occupy space, including those on their way.
    pub(super) held: u16,
    /// Words that have arrived.
    pub(super) queued: u16,
    /// Its number among the clients of the link.
    pub(super) slot: u32,
}

impl Channel {
    /// An empty channel that `server` serves as its client `slot` and that forwards to `next`.
    pub(crate) fn new(server: u32, slot: u32, next: u32) -> Self {
        let (waiter, last, held, queued) = (NONE, NONE, 0, 0);
        Self { head: Tag::NONE, next, server, waiter, last, held, queued, slot }
    }

    /// The channel ahead.
    pub(crate) fn next(&self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }

    /// Removes the first word; the caller must wake the waiter. There is a word, so no count passes
    /// 0: `pop` and `push` check nothing, because they are half of the work of a simulation.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.head = self.head.plus(1);
        self.held = self.held.wrapping_sub(1);
        self.queued = self.queued.wrapping_sub(1);
        self.waiter = NONE;
    }

    /// Reserves space for a word; returns whether it is consecutive to the words before it. If not,
    /// the caller must call `Network::push_unordered`.
    #[inline]
    pub(super) fn push(&mut self, tag: Tag) -> bool {
        let follows = self.head.plus(u64::from(self.held)) == tag;
        self.held = self.held.wrapping_add(1);
        follows
    }
}
