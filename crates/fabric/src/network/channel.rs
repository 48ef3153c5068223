//! One channel: a queue of words, in half a cache line.
//!
//! A queued word is only a [`Tag`]. A channel normally carries one stream, whose words follow each
//! other, so the tag of the first word and the number of words say all: the words behind it have
//! the tags that follow. Where they do not ([`super::mixed`]), the record says the first word and
//! the number still.

/// No channel, stream, operation or connection.
pub(crate) const NONE: u32 = u32::MAX;
/// `Channel::server`: words are taken out by an agent.
pub(crate) const GATE: u32 = u32::MAX - 1;
/// `Channel::server`: nothing is here; a word that arrives has gone astray.
pub(crate) const VOID: u32 = u32::MAX - 2;
/// `Channel::waiter`: an agent waits for room.
pub(super) const OUTSIDE: u32 = u32::MAX - 1;

/// What a queue remembers of a word: its stream (the connection that the sender meant, or the
/// message) and its place there, as one number, so that the word that follows has the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u64);

impl Tag {
    /// The tag of no word.
    pub(crate) const NOTHING: Self = Self::new(NONE, 0);

    pub(crate) const fn new(stream: u32, index: u32) -> Self {
        Self((stream as u64) << 32 | index as u64)
    }

    #[inline]
    pub(crate) const fn stream(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The word's place in its stream.
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.0 as u32
    }

    /// The tag of the word so many places on. A stream has less than 2^32 words.
    #[inline]
    pub(crate) const fn on(self, words: u64) -> Self {
        Self(self.0.wrapping_add(words))
    }

    /// `periods` times as far on again as it has come since `then`, in the same stream.
    pub(crate) const fn jump(self, then: Self, periods: u64) -> Self {
        self.on(self.0.wrapping_sub(then.0).wrapping_mul(periods))
    }
}

/// A channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Channel {
    /// The first word; of an empty channel, the word that follows the last one.
    pub(super) head: Tag,
    /// The channel ahead, where a link serves this one.
    pub(super) next: u32,
    /// The link that serves it, `GATE` or `VOID`.
    pub(super) server: u32,
    /// Who waits for room here.
    pub(super) waiter: u32,
    /// The place of the last word to cross to `next`, which is told in `Network::tails`; `NONE`
    /// where words follow without end.
    pub(super) last: u32,
    /// Words that occupy room, those on their way included.
    pub(super) held: u16,
    /// Words that have arrived.
    pub(super) queued: u16,
    /// Its number among the link's channels.
    pub(super) slot: u16,
}

impl Channel {
    /// An empty channel served by `server` as its client `slot`, forwarding to `next`.
    pub(crate) fn new(server: u32, slot: u16, next: u32) -> Self {
        let (waiter, last, held, queued) = (NONE, NONE, 0, 0);
        Self { head: Tag::NOTHING, next, server, waiter, last, held, queued, slot }
    }

    /// The channel ahead.
    pub(crate) fn next(&self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }

    /// Takes the first word out; its waiter is to be woken. There is a word, so no count passes 0:
    /// nothing is checked here and in `push`, which are half of all that the fabric does.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.head = self.head.on(1);
        self.held = self.held.wrapping_sub(1);
        self.queued = self.queued.wrapping_sub(1);
        self.waiter = NONE;
    }

    /// Occupies room with a word; whether it follows the words before it. If not,
    /// `Network::no_follower` must be told.
    #[inline]
    pub(super) fn push(&mut self, tag: Tag) -> bool {
        let follows = self.head.on(u64::from(self.held)) == tag;
        self.held = self.held.wrapping_add(1);
        follows
    }
}
