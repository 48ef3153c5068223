//! Links and logical channels: the part of the machine that moves words on its own.
//!
//! A channel is a queue. Words enter it over the one link it is fed from, or from outside (an
//! agent's gate); they leave it over the one link that serves it, or are taken outside. The rules
//! (machine model, rules 3 and 5):
//!
//! * A link carries one word at a time. A word that enters a link is in the next queue when the
//!   link is free again.
//! * A queue has room for `depth` words; a word on its way to a queue already occupies room
//!   there, and gives up its room in the queue behind the moment it leaves it.
//! * Within one clock everything that can move does: first all words arrive, then free links
//!   take words, and room that this makes is used at once by the links behind.
//! * Among the channels of a link with a word waiting and room ahead, turns are taken word by
//!   word.
//!
//! A queued word is only a tag (stream, index within the stream); `channel` says how few numbers a
//! queue of them takes, `mixed` what becomes of it where a wrong table lets streams mix.
//!
//! # How it is made fast
//!
//! What can move is known without asking: a bit for each channel of a link says that it has a word
//! and that there may be room ahead. The bit is set when a first word arrives and when room is
//! made, and cleared with the last word and when the word just moved took the last room. A link
//! without a bit is idle and not looked at until it gets one.
//!
//! The network knows neither agents nor operations. Whoever stands outside is told when the first
//! word reaches an empty gate queue (`words`), when there is room again where there was none
//! (`room`), and when a word ends where no table sends it on (`stray`).

use std::cmp::Reverse;

mod channel;
mod mixed;
mod period;

use crate::agenda::Agenda;
use crate::turns::Turns;
use channel::OUTSIDE;
pub(crate) use channel::{Channel, GATE, NONE, Tag, VOID};
use mixed::Mixed;
pub(crate) use period::NetworkState;

/// A link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    turns: Turns,
    /// The link's first client in `Network::clients`.
    first: u32,
    /// Neither carries a word nor is listed to be given one.
    idle: bool,
    /// Words carried in this phase.
    pub(crate) words: u64,
}

/// A channel that a link serves, and the one ahead of it, so that both are looked up at once.
#[derive(Clone, Copy, Debug)]
struct Client {
    row: u32,
    next: u32,
}

impl Client {
    const NOBODY: Self = Self { row: NONE, next: NONE };
}

/// A word on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    link: u32,
    /// The channel it goes to.
    to: u32,
}

/// All channels in use and all links of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    depth: u16,
    pub(crate) channels: Vec<Channel>,
    pub(crate) wires: Vec<Wire>,
    /// The links that serve channels in this context: all others are as they were made.
    serving: Vec<u32>,
    /// The channels each link serves, link by link.
    clients: Vec<Client>,
    /// Links that got a ready channel when they were idle.
    ready: Agenda,
    mixed: Mixed,
    /// Further waiters: (channel, who waits for room there). Only wrong tables have any.
    crowd: Vec<(u32, u32)>,
    /// Gate channels whose first word arrived since this was last emptied.
    pub(crate) words: Vec<u32>,
    /// Channels that have room again for who waits outside.
    pub(crate) room: Vec<u32>,
    /// The first void that a word arrived at.
    pub(crate) stray: Option<u32>,
    /// Links that were given a word since this was last emptied, in order.
    pub(crate) begun: Vec<Carried>,
    /// Channels to which the last word of what was connected is now on its way.
    pub(crate) tails: Vec<u32>,
    /// Words carried over links since the machine was started.
    pub(crate) word_hops: u64,
}

impl Network {
    pub(crate) fn new(links: usize, depth: u32) -> Self {
        Self {
            depth: u16::try_from(depth).expect("channel depth is limited"),
            channels: Vec::new(),
            wires: vec![Wire::default(); links],
            serving: Vec::new(),
            clients: Vec::new(),
            ready: Agenda::new(links),
            mixed: Mixed::default(),
            crowd: Vec::new(),
            words: Vec::new(),
            room: Vec::new(),
            stray: None,
            begun: Vec::new(),
            tails: Vec::new(),
            word_hops: 0,
        }
    }

    /// Takes over the channels of a new context; `served` says which links serve channels, and
    /// how many, and each channel's `slot` is below that. Nothing of the last context is left.
    pub(crate) fn load(
        &mut self,
        channels: Vec<Channel>,
        served: impl IntoIterator<Item = (u32, u32)>,
    ) {
        self.channels = channels;
        for link in self.serving.drain(..) {
            self.wires[link as usize] = Wire::default();
        }
        let mut first = 0;
        for (link, count) in served {
            let turns = Turns::new(count as usize);
            self.wires[link as usize] = Wire { turns, first, idle: true, words: 0 };
            self.serving.push(link);
            first += count;
        }
        self.clients.clear();
        self.clients.resize(first as usize, Client::NOBODY);
        for (row, channel) in self.channels.iter().enumerate() {
            if let Some(wire) = self.wires.get(channel.server as usize) {
                let client = wire.first as usize + usize::from(channel.slot);
                self.clients[client] = Client { row: row as u32, next: channel.next };
            }
        }
        self.ready.clear();
        self.mixed.clear();
        self.crowd.clear();
        self.words.clear();
        self.room.clear();
        self.stray = None;
        self.begun.clear();
        self.tails.clear();
    }

    /// From now on gate channel `row`, in which words wait, forwards over `link` to channel
    /// `next`, as client `slot` of the link, up to the word at place `last`.
    pub(crate) fn connect(&mut self, row: u32, (link, slot): (u32, u16), next: u32, last: u32) {
        let client = self.wires[link as usize].first as usize + usize::from(slot);
        self.clients[client] = Client { row, next };
        let channel = &mut self.channels[row as usize];
        (channel.server, channel.slot) = (link, slot);
        (channel.next, channel.last) = (next, last);
        self.make_ready(link, u32::from(slot));
    }

    /// Takes a connection down: client `slot` of `link` is a gate channel again. Its last word
    /// must have left it. Returns the channel.
    pub(crate) fn disconnect(&mut self, (link, slot): (u32, u16)) -> u32 {
        let client = self.wires[link as usize].first as usize + usize::from(slot);
        let Client { row, .. } = std::mem::replace(&mut self.clients[client], Client::NOBODY);
        let channel = &mut self.channels[row as usize];
        (channel.server, channel.slot) = (GATE, 0);
        (channel.next, channel.last) = (NONE, NONE);
        row
    }

    /// Whether a word could be put into channel `row` now.
    #[inline]
    pub(crate) fn has_room(&self, row: u32) -> bool {
        self.channels[row as usize].held < self.depth
    }

    /// Words in channel `row` that have arrived.
    #[inline]
    pub(crate) fn queued(&self, row: u32) -> u32 {
        u32::from(self.channels[row as usize].queued)
    }

    /// Words that occupy room in channel `row`.
    #[cfg(test)]
    pub(crate) fn held(&self, row: u32) -> u32 {
        u32::from(self.channels[row as usize].held)
    }

    /// The word at the head of channel `row`, arrived or on its way.
    pub(crate) fn head(&self, row: u32) -> Option<Tag> {
        let channel = &self.channels[row as usize];
        (channel.held > 0).then_some(channel.head)
    }

    /// The channel that channel `row` forwards to and the link between, where there is one.
    pub(crate) fn ahead(&self, row: u32) -> Option<(u32, u32)> {
        let channel = &self.channels[row as usize];
        (channel.next != NONE).then_some((channel.next, channel.server))
    }

    /// Notes that an agent waits for room in channel `row`.
    #[inline]
    pub(crate) fn wait_for_room(&mut self, row: u32) {
        self.channels[row as usize].waiter = OUTSIDE;
    }

    /// Occupies room in channel `row` with a word that is on its way there; whether it was the
    /// last room.
    #[inline]
    pub(crate) fn put(&mut self, row: u32, tag: Tag) -> bool {
        let channel = &mut self.channels[row as usize];
        let follows = channel.push(tag);
        let full = channel.held == self.depth;
        if !follows | !self.mixed.is_empty() {
            self.no_follower(row, tag);
        }
        full
    }

    /// A word that was on its way is now in the queue of channel `row`.
    #[inline]
    pub(crate) fn arrive(&mut self, row: u32) {
        let channel = &mut self.channels[row as usize];
        channel.queued = channel.queued.wrapping_add(1);
        if channel.queued > 1 {
            return;
        }
        match channel.server {
            GATE => self.words.push(row),
            VOID => {
                self.stray.get_or_insert(row);
            }
            link => {
                let slot = u32::from(channel.slot);
                self.make_ready(link, slot);
            }
        }
    }

    /// Takes the first arrived word out of channel `row`, which must have one.
    #[inline(always)]
    pub(crate) fn take(&mut self, row: u32) -> Tag {
        let channel = &mut self.channels[row as usize];
        let (tag, waiter) = (channel.head, channel.waiter);
        channel.pop();
        if !self.mixed.is_empty() {
            self.popped_mixed(row);
        }
        if waiter != NONE {
            self.wake(row, waiter);
        }
        tag
    }

    /// There is room in channel `row` for who waited.
    #[inline(always)]
    fn wake(&mut self, row: u32, waiter: u32) {
        if waiter == OUTSIDE {
            self.room.push(row);
        } else {
            self.wake_channel(waiter);
        }
        if !self.crowd.is_empty() {
            self.wake_crowd(row);
        }
    }

    #[inline]
    fn wake_channel(&mut self, row: u32) {
        let Channel { server, slot, .. } = self.channels[row as usize];
        self.make_ready(server, u32::from(slot));
    }

    #[cold]
    fn wake_crowd(&mut self, row: u32) {
        let crowd = std::mem::take(&mut self.crowd);
        for (channel, waiter) in crowd {
            if channel == row {
                self.wake_channel(waiter);
            } else {
                self.crowd.push((channel, waiter));
            }
        }
    }

    /// Client `slot` of a link can move a word.
    #[inline]
    fn make_ready(&mut self, link: u32, slot: u32) {
        let wire = &mut self.wires[link as usize];
        wire.turns.set(slot);
        self.ready.add_if(link, wire.idle);
        wire.idle = false;
    }

    /// Gives every free link a word, as long as there are any to give.
    pub(crate) fn settle(&mut self) {
        while let Some(link) = self.ready.pop() {
            self.serve(link);
        }
    }

    /// Gives free link `link` a word of the channel whose turn it is.
    #[inline(always)]
    fn serve(&mut self, link: u32) {
        let wire = &mut self.wires[link as usize];
        loop {
            let Some(slot) = wire.turns.next() else {
                wire.idle = true;
                return;
            };
            let Client { row, next } = self.clients[wire.first.wrapping_add(slot) as usize];
            let Channel { head: tag, waiter, last, queued, .. } = self.channels[row as usize];
            let ahead = &mut self.channels[next as usize];
            if ahead.held >= self.depth {
                wire.turns.clear(slot);
                if ahead.waiter == NONE {
                    ahead.waiter = row;
                } else {
                    self.crowd.push((next, row));
                }
                continue;
            }
            let follows = ahead.push(tag);
            // Whether it has another word is a coin toss, so this is done without branches.
            let more = queued > 1;
            let waits = more & (ahead.held == self.depth) & (ahead.waiter == NONE);
            ahead.waiter = if waits { row } else { ahead.waiter };
            wire.turns.served(slot, !more | waits);
            wire.words = wire.words.wrapping_add(1);
            self.channels[row as usize].pop();
            self.begun.push(Carried { link, to: next });
            if tag.index() == last {
                self.tails.push(next);
            }
            if !follows | !self.mixed.is_empty() {
                self.no_follower(next, tag);
                self.popped_mixed(row);
            }
            if waiter != NONE {
                self.wake(row, waiter);
            }
            return;
        }
    }

    /// These words arrive. Their links are not idle, so that nobody lists them, until they take
    /// their next words ([`Network::free`]).
    pub(crate) fn end(&mut self, carried: &[Carried]) {
        self.word_hops += carried.len() as u64;
        for word in carried {
            self.arrive(word.to);
        }
    }

    /// The links of these words take their next.
    pub(crate) fn free(&mut self, carried: &[Carried]) {
        for word in carried {
            self.serve(word.link);
        }
    }

    /// The links that serve channels in this context.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Wire> {
        self.serving.iter().map(|&link| &self.wires[link as usize])
    }

    /// The link that has carried most words in this context, of several the first.
    pub(crate) fn busiest_link(&self) -> Option<(u32, u64)> {
        let words = self.serving.iter().map(|&link| (link, self.wires[link as usize].words));
        words.filter(|link| link.1 > 0).max_by_key(|&(link, words)| (words, Reverse(link)))
    }

    /// Whether links wait to be given a word in this clock.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.ready.is_empty()
    }

    /// Channels that hold words, with their numbers of words.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rows = self.channels.iter().enumerate();
        rows.filter(|(_, c)| c.held > 0).map(|(row, c)| (row as u32, u32::from(c.held)))
    }

    /// Checks what must hold at every moment: runs of mixed streams agree with counts, no queue is deeper than
    /// it can be, and a link carries only into a channel with a word on its way.
    #[cfg(test)]
    pub(crate) fn audit(&self, carried: impl Iterator<Item = Carried>) {
        let mut on_the_way = vec![0u32; self.channels.len()];
        for word in carried.chain(self.begun.iter().copied()) {
            on_the_way[word.to as usize] += 1;
        }
        for (row, channel) in self.channels.iter().enumerate() {
            assert!(channel.held <= self.depth, "row {row} is too deep");
            if let Some(words) = self.mixed.words_of(row as u32) {
                assert_eq!(words, channel.held, "row {row}");
            }
            assert!(u32::from(channel.held - channel.queued) >= on_the_way[row], "row {row}");
        }
    }
}
