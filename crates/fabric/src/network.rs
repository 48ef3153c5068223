//! Links and logical channels: the part of the machine that moves words without agents.
//!
//! A channel is a queue. Words enter it over the one link that feeds it or from an agent's gate;
//! they leave it over the one link that serves it or are taken out by an agent. The rules (machine
//! model, rules 3 and 5):
//!
//! * A link carries one word at a time. A word that enters a link is in the next queue when the
//!   link is free again.
//! * A queue has space for `depth` words. A word on its way to a queue already occupies space
//!   there; it releases its space in the previous queue in the clock in which it leaves it.
//! * Within one clock everything that can move does: first all words arrive, then free links take
//!   words, and the space that this makes is used at once by the links upstream.
//! * The channels of a link that have a word waiting and space ahead share the link in round-robin
//!   order, word by word.
//!
//! A queued word is only a tag: its stream and its index within the stream. `channel` explains how
//! few numbers represent a queue of tags, and `mixed_streams` what happens where a wrong table
//! mixes streams in one channel.
//!
//! # Performance
//!
//! No queue is polled. Each channel of a link has a bit which says that the channel has a word and
//! that there may be space ahead. The bit is set when a first word arrives and when space becomes
//! free; it is cleared with the last word, and when the word just moved took the last space. A link
//! with no bit set is idle and costs nothing.
//!
//! The network knows neither agents nor operations. It reports to the engine when the first word
//! reaches an empty gate queue (`arrivals`), when there is space again in a full channel (`space`),
//! and when a word arrives where no table row accepts it (`misrouted`).

use std::cmp::Reverse;

mod channel;
mod fast_forward;
mod mixed_streams;
mod word_faults;

use crate::ready_list::ReadyList;
use crate::round_robin::RoundRobin;
use channel::AGENT;
pub(crate) use channel::{Channel, GATE, NONE, Tag, UNMAPPED};
use conset_ir::convert::{index, to_u32, to_u64};
pub(crate) use fast_forward::NetworkSnapshot;
use mixed_streams::MixedStreams;

/// The state of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkState {
    round_robin: RoundRobin,
    /// The link's first client in `Network::clients`.
    first: u32,
    /// It neither carries a word nor is on the ready list.
    idle: bool,
    /// Words carried in this context.
    pub(crate) words: u64,
}

/// A channel that a link serves and the channel ahead of it, side by side so that one lookup finds
/// both.
#[derive(Clone, Copy, Debug)]
struct Client {
    row: u32,
    next: u32,
}

impl Client {
    const NONE: Self = Self { row: NONE, next: NONE };
}

/// A word that is crossing a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkTransfer {
    link: u32,
    /// The channel it goes to.
    to: u32,
}

impl LinkTransfer {
    /// The link that it crosses.
    #[inline]
    pub(crate) fn link(&self) -> u32 {
        self.link
    }

    /// The channel that it enters.
    pub(crate) fn to(&self) -> u32 {
        self.to
    }
}

/// All channels in use and all links of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    depth: u16,
    pub(crate) channels: Vec<Channel>,
    pub(crate) links: Vec<LinkState>,
    /// The links that serve channels in this context; all others have their initial state.
    serving: Vec<u32>,
    /// The channels that each link serves, link by link.
    clients: Vec<Client>,
    /// Idle links that have got a ready channel.
    ready: ReadyList,
    mixed: MixedStreams,
    /// (channel, channel that waits for space in it), beyond the one waiter that a channel records.
    /// Only wrong tables cause any.
    extra_waiters: Vec<(u32, u32)>,
    /// Gate channels whose first word arrived since this vector was last emptied.
    pub(crate) arrivals: Vec<u32>,
    /// Channels that have space again and for which an agent waits.
    pub(crate) space: Vec<u32>,
    /// The first unmapped channel that a word arrived at.
    pub(crate) misrouted: Option<u32>,
    /// Words that links accepted since this vector was last emptied, in order.
    pub(crate) started: Vec<LinkTransfer>,
    /// Channels to which the last word of a pathway is now on its way.
    pub(crate) tails: Vec<u32>,
    /// Words carried over links since clock 0.
    pub(crate) word_hops: u64,
}

impl Network {
    pub(crate) fn new(links: usize, depth: u32) -> Self {
        Self {
            depth: u16::try_from(depth).expect("channel depth is limited"),
            channels: Vec::new(),
            links: vec![LinkState::default(); links],
            serving: Vec::new(),
            clients: Vec::new(),
            ready: ReadyList::new(links),
            mixed: MixedStreams::default(),
            extra_waiters: Vec::new(),
            arrivals: Vec::new(),
            space: Vec::new(),
            misrouted: None,
            started: Vec::new(),
            tails: Vec::new(),
            word_hops: 0,
        }
    }

    /// Replaces the previous context by the channels of a new one. `served` has the links that serve
    /// channels and the number of channels of each; the `slot` of each channel is below that number.
    pub(crate) fn load(
        &mut self,
        channels: Vec<Channel>,
        served: impl IntoIterator<Item = (u32, u32)>,
    ) {
        self.channels = channels;
        for link in self.serving.drain(..) {
            self.links[index(link)] = LinkState::default();
        }
        let mut first = 0;
        for (link, count) in served {
            let round_robin = RoundRobin::new(index(count));
            self.links[index(link)] = LinkState { round_robin, first, idle: true, words: 0 };
            self.serving.push(link);
            first += count;
        }
        self.clients.clear();
        self.clients.resize(index(first), Client::NONE);
        for (row, channel) in self.channels.iter().enumerate() {
            if let Some(state) = self.links.get(index(channel.server)) {
                let client = index(state.first) + index(channel.slot);
                self.clients[client] = Client { row: to_u32(row), next: channel.next };
            }
        }
        self.ready.clear();
        self.mixed.clear();
        self.extra_waiters.clear();
        self.arrivals.clear();
        self.space.clear();
        self.misrouted = None;
        self.started.clear();
        self.tails.clear();
    }

    /// Makes gate channel `row`, in which words wait, forward over `link` to channel `next`, as
    /// client `slot` of the link, up to the word with index `last`.
    pub(crate) fn connect(&mut self, row: u32, (link, slot): (u32, u32), next: u32, last: u32) {
        let client = index(self.links[index(link)].first) + index(slot);
        self.clients[client] = Client { row, next };
        let channel = &mut self.channels[index(row)];
        (channel.server, channel.slot) = (link, slot);
        (channel.next, channel.last) = (next, last);
        self.make_ready(link, slot);
    }

    /// Makes client `slot` of `link` a gate channel again and returns it. The last word must have
    /// left the channel.
    pub(crate) fn disconnect(&mut self, (link, slot): (u32, u32)) -> u32 {
        let client = index(self.links[index(link)].first) + index(slot);
        let Client { row, .. } = std::mem::replace(&mut self.clients[client], Client::NONE);
        let channel = &mut self.channels[index(row)];
        (channel.server, channel.slot) = (GATE, 0);
        (channel.next, channel.last) = (NONE, NONE);
        row
    }

    /// Whether channel `row` has space for a word.
    #[inline]
    pub(crate) fn has_space(&self, row: u32) -> bool {
        self.channels[index(row)].held < self.depth
    }

    /// Number of words that have arrived in channel `row`.
    #[inline]
    pub(crate) fn queued(&self, row: u32) -> u32 {
        u32::from(self.channels[index(row)].queued)
    }

    /// Number of words that occupy space in channel `row`.
    #[cfg(test)]
    pub(crate) fn held(&self, row: u32) -> u32 {
        u32::from(self.channels[index(row)].held)
    }

    /// The word at the head of channel `row`, arrived or on its way.
    pub(crate) fn head(&self, row: u32) -> Option<Tag> {
        let channel = &self.channels[index(row)];
        (channel.held > 0).then_some(channel.head)
    }

    /// The channel that channel `row` forwards to, and the link between them, if it forwards.
    pub(crate) fn ahead(&self, row: u32) -> Option<(u32, u32)> {
        let channel = &self.channels[index(row)];
        (channel.next != NONE).then_some((channel.next, channel.server))
    }

    /// Records that an agent waits for space in channel `row`.
    #[inline]
    pub(crate) fn wait_for_space(&mut self, row: u32) {
        self.channels[index(row)].waiter = AGENT;
    }

    /// Reserves space in channel `row` for a word on its way there; returns whether the channel is
    /// now full.
    #[inline]
    pub(crate) fn put(&mut self, row: u32, tag: Tag) -> bool {
        let channel = &mut self.channels[index(row)];
        let follows = channel.push(tag);
        let full = channel.held == self.depth;
        if !follows | !self.mixed.is_empty() {
            self.push_unordered(row, tag);
        }
        full
    }

    /// A word on its way has arrived in the queue of channel `row`.
    #[inline]
    pub(crate) fn arrive(&mut self, row: u32) {
        let channel = &mut self.channels[index(row)];
        channel.queued = channel.queued.wrapping_add(1);
        if channel.queued > 1 {
            return;
        }
        match channel.server {
            GATE => self.arrivals.push(row),
            UNMAPPED => {
                self.misrouted.get_or_insert(row);
            }
            link => {
                let slot = channel.slot;
                self.make_ready(link, slot);
            }
        }
    }

    /// Removes the first arrived word of channel `row`, which must have one.
    #[inline(always)]
    pub(crate) fn take(&mut self, row: u32) -> Tag {
        let channel = &mut self.channels[index(row)];
        let (tag, waiter) = (channel.head, channel.waiter);
        channel.pop();
        if !self.mixed.is_empty() {
            self.pop_mixed(row);
        }
        if waiter != NONE {
            self.wake(row, waiter);
        }
        tag
    }

    /// Wakes the waiters of channel `row`, which has space again.
    #[inline(always)]
    fn wake(&mut self, row: u32, waiter: u32) {
        if waiter == AGENT {
            self.space.push(row);
        } else {
            self.wake_channel(waiter);
        }
        if !self.extra_waiters.is_empty() {
            self.wake_extra_waiters(row);
        }
    }

    #[inline]
    fn wake_channel(&mut self, row: u32) {
        let Channel { server, slot, .. } = self.channels[index(row)];
        self.make_ready(server, slot);
    }

    #[cold]
    fn wake_extra_waiters(&mut self, row: u32) {
        let waiters = std::mem::take(&mut self.extra_waiters);
        for (channel, waiter) in waiters {
            if channel == row {
                self.wake_channel(waiter);
            } else {
                self.extra_waiters.push((channel, waiter));
            }
        }
    }

    /// Marks client `slot` of a link as able to move a word.
    #[inline]
    fn make_ready(&mut self, link: u32, slot: u32) {
        let state = &mut self.links[index(link)];
        state.round_robin.set(slot);
        self.ready.add_if(link, state.idle);
        state.idle = false;
    }

    /// Lets a link accept no more words; returns whether it would have been served or was idle, so that
    /// [`Network::resume`] must serve it.
    pub(crate) fn stop(&mut self, link: u32) -> bool {
        let listed = self.ready.remove(link);
        std::mem::replace(&mut self.links[index(link)].idle, false) | listed
    }

    /// Serves a link again that was stopped and carries no word.
    pub(crate) fn resume(&mut self, link: u32) {
        self.ready.add_if(link, true);
    }

    /// Serves links until no free link can accept a word.
    pub(crate) fn settle(&mut self) {
        while let Some(link) = self.ready.pop() {
            self.serve(link);
        }
    }

    /// Moves a word of the next ready channel onto the free link `link`, or leaves the link idle.
    #[inline(always)]
    fn serve(&mut self, link: u32) {
        let state = &mut self.links[index(link)];
        loop {
            let Some(slot) = state.round_robin.next() else {
                state.idle = true;
                return;
            };
            let Client { row, next } = self.clients[index(state.first.wrapping_add(slot))];
            let Channel { head: tag, waiter, last, queued, .. } = self.channels[index(row)];
            let ahead = &mut self.channels[index(next)];
            if ahead.held >= self.depth {
                state.round_robin.clear(slot);
                if ahead.waiter == NONE {
                    ahead.waiter = row;
                } else {
                    self.extra_waiters.push((next, row));
                }
                continue;
            }
            let follows = ahead.push(tag);
            // Whether there is another word is unpredictable, so this compiles without branches.
            let more = queued > 1;
            // Nobody waits yet: there was space.
            let waits = more & (ahead.held == self.depth);
            ahead.waiter = if waits { row } else { ahead.waiter };
            state.round_robin.served(slot, !more | waits);
            state.words = state.words.wrapping_add(1);
            self.channels[index(row)].pop();
            self.started.push(LinkTransfer { link, to: next });
            if tag.index() == last {
                self.tails.push(next);
            }
            if !follows | !self.mixed.is_empty() {
                self.push_unordered(next, tag);
                self.pop_mixed(row);
            }
            if waiter != NONE {
                self.wake(row, waiter);
            }
            return;
        }
    }

    /// These words arrive. Their links stay marked as busy, and so off the ready list, until
    /// [`Network::serve_links`].
    pub(crate) fn arrive_all(&mut self, carried: &[LinkTransfer]) {
        self.word_hops += to_u64(carried.len());
        for word in carried {
            self.arrive(word.to);
        }
    }

    /// The links of these words accept their next words.
    pub(crate) fn serve_links(&mut self, carried: &[LinkTransfer]) {
        for word in carried {
            self.serve(word.link);
        }
    }

    /// The links that serve channels in this context.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &LinkState> {
        self.serving.iter().map(|&link| &self.links[index(link)])
    }

    /// The link that has carried the most words in this context; the first one of equals.
    pub(crate) fn busiest_link(&self) -> Option<(u32, u64)> {
        let words = self.serving.iter().map(|&link| (link, self.links[index(link)].words));
        words.filter(|link| link.1 > 0).max_by_key(|&(link, words)| (words, Reverse(link)))
    }

    /// Whether no link has to be served any more in this clock.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.ready.is_empty()
    }

    /// The channels that hold words, and the number of words in each.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rows = self.channels.iter().enumerate();
        rows.filter(|(_, c)| c.held > 0).map(|(row, c)| (to_u32(row), u32::from(c.held)))
    }

    /// Checks the invariants: the runs of mixed streams agree with the counts, no queue is deeper
    /// than `depth`, and a word on a link has space reserved in the next channel.
    #[cfg(test)]
    pub(crate) fn audit(&self, carried: impl Iterator<Item = LinkTransfer>) {
        let mut on_the_way = vec![0u32; self.channels.len()];
        for word in carried.chain(self.started.iter().copied()) {
            on_the_way[index(word.to)] += 1;
        }
        for (row, channel) in self.channels.iter().enumerate() {
            assert!(channel.held <= self.depth, "row {row} is too deep");
            if let Some(words) = self.mixed.words_of(to_u32(row)) {
                assert_eq!(words, channel.held, "row {row}");
            }
            assert!(u32::from(channel.held - channel.queued) >= on_the_way[row], "row {row}");
        }
    }
}
