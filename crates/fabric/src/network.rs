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
//! A queued word is only a tag (stream, index within the stream). A channel normally carries one
//! stream, whose words follow each other, so a queue is a *run*: stream, first index, length. A
//! wrong table can mix streams in a channel; the runs behind the first one then go to a map on
//! the side, so that the tags stay exact and the record stays 32 bytes.
//!
//! The network knows neither agents nor operations. Whoever stands outside is told when the first
//! word reaches an empty gate queue (`words`), when there is room again where there was none
//! (`room`), and when a word ends where no table sends it on (`stray`).

mod period;

use std::collections::{BTreeMap, VecDeque};

use crate::lane::Lane;
use crate::turns::Turns;
pub(crate) use period::NetworkState;

/// No channel, stream, operation or connection.
pub(crate) const NONE: u32 = u32::MAX;
/// `Channel::server`: words are taken out by an agent.
pub(crate) const GATE: u32 = u32::MAX - 1;
/// `Channel::server`: nothing is here; a word that arrives has gone astray.
pub(crate) const VOID: u32 = u32::MAX - 2;
/// `Channel::waiter`: an agent waits for room.
const OUTSIDE: u32 = u32::MAX - 1;

/// What a queue remembers of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The stream: the connection that the sender meant.
    pub(crate) stream: u32,
    /// The word's place in the connection.
    pub(crate) index: u32,
}

/// A channel, in half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Channel {
    /// The first run of words: stream, index of the first word, length.
    stream: u32,
    index: u32,
    run: u32,
    /// The channel ahead, where a link serves this one.
    next: u32,
    /// The link that serves it, `GATE` or `VOID`.
    server: u32,
    /// Who waits for room here.
    waiter: u32,
    /// Words that occupy room, those on their way included.
    held: u16,
    /// Words that have arrived.
    queued: u16,
    /// Its number among the link's channels.
    slot: u16,
}

impl Channel {
    /// An empty channel served by `server` as its client `slot`, forwarding to `next`.
    pub(crate) fn new(server: u32, slot: u16, next: u32) -> Self {
        let (stream, index, run, waiter, held, queued) = (NONE, 0, 0, NONE, 0, 0);
        Self { stream, index, run, next, server, waiter, held, queued, slot }
    }

    /// The channel ahead.
    pub(crate) fn next(&self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }

    /// Takes the first word out. The counts cannot pass 0, as there is a word: nothing is
    /// checked, here and in `push`, because these two are half of all that the fabric does.
    #[inline]
    fn pop(&mut self) -> Tag {
        let tag = Tag { stream: self.stream, index: self.index };
        self.index = self.index.wrapping_add(1);
        self.run = self.run.wrapping_sub(1);
        self.held = self.held.wrapping_sub(1);
        self.queued = self.queued.wrapping_sub(1);
        tag
    }

    /// Occupies room with a word; whether it follows the words before it, and is in the run.
    #[inline]
    fn push(&mut self, tag: Tag) -> bool {
        // An empty channel's run is 0 long, so that one rule extends or begins the run. Without
        // branches: whether a channel is empty is a coin toss that costs more than the sums.
        let follows = (self.stream == tag.stream)
            & (self.run == u32::from(self.held))
            & (self.index.wrapping_add(self.run) == tag.index);
        let in_run = follows | (self.held == 0);
        self.held = self.held.wrapping_add(1);
        if in_run {
            self.stream = tag.stream;
            self.index = tag.index.wrapping_sub(self.run);
            self.run = self.run.wrapping_add(1);
        }
        in_run
    }
}

/// A link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    turns: Turns,
    /// The link's first client in `Network::clients`.
    first: u32,
    /// The channel that the word under way goes to, if there is one.
    moving: u32,
    /// Neither carries a word nor is listed to be given one.
    idle: bool,
    /// Words carried in this phase.
    pub(crate) words: u64,
}

/// A channel that a link serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Client {
    /// The channel, and the one ahead of it.
    row: u32,
    next: u32,
    /// The place of the last word to cross, which is told in `Network::tails`; `NONE` where words
    /// follow without end.
    last: u32,
}

impl Client {
    const NOBODY: Self = Self { row: NONE, next: NONE, last: NONE };
}

/// All channels in use and all links of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    depth: u16,
    pub(crate) channels: Vec<Channel>,
    pub(crate) wires: Vec<Wire>,
    /// The channels each link serves, link by link.
    clients: Vec<Client>,
    /// Links that got a ready channel when they were idle.
    ready: Vec<u32>,
    /// The runs behind the first, of channels in which streams mix.
    mixed: BTreeMap<u32, VecDeque<(Tag, u32)>>,
    /// Further waiters: (channel, who waits for room there). Only wrong tables have any.
    crowd: Vec<(u32, u32)>,
    /// Gate channels whose first word arrived since this was last emptied.
    pub(crate) words: Vec<u32>,
    /// Channels that have room again for who waits outside.
    pub(crate) room: Vec<u32>,
    /// The first void that a word arrived at.
    pub(crate) stray: Option<u32>,
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
            clients: Vec::new(),
            ready: Vec::new(),
            mixed: BTreeMap::new(),
            crowd: Vec::new(),
            words: Vec::new(),
            room: Vec::new(),
            stray: None,
            tails: Vec::new(),
            word_hops: 0,
        }
    }

    /// Takes over the channels of a new context; `counts` says how many channels each link
    /// serves, and each channel's `slot` is below that. Nothing of the last context is left.
    pub(crate) fn load(&mut self, channels: Vec<Channel>, counts: &[u32]) {
        self.channels = channels;
        let mut first = 0;
        for (wire, &count) in self.wires.iter_mut().zip(counts) {
            *wire = Wire {
                turns: Turns::new(count as usize),
                first,
                moving: NONE,
                idle: true,
                words: 0,
            };
            first += count;
        }
        self.clients.clear();
        self.clients.resize(first as usize, Client::NOBODY);
        for (row, channel) in self.channels.iter().enumerate() {
            if let Some(wire) = self.wires.get(channel.server as usize) {
                let client = wire.first as usize + usize::from(channel.slot);
                self.clients[client] = Client { row: row as u32, next: channel.next, last: NONE };
            }
        }
        self.ready.clear();
        self.mixed.clear();
        self.crowd.clear();
        self.words.clear();
        self.room.clear();
        self.stray = None;
        self.tails.clear();
    }

    /// From now on gate channel `row`, in which words wait, forwards over `link` to channel
    /// `next`, as client `slot` of the link, up to the word at place `last`.
    pub(crate) fn connect(&mut self, row: u32, (link, slot): (u32, u16), next: u32, last: u32) {
        let client = self.wires[link as usize].first as usize + usize::from(slot);
        self.clients[client] = Client { row, next, last };
        let channel = &mut self.channels[row as usize];
        (channel.server, channel.slot, channel.next) = (link, slot, next);
        self.make_ready(link, u32::from(slot));
    }

    /// Takes a connection down: client `slot` of `link` is a gate channel again. Its last word
    /// must have left it. Returns the channel.
    pub(crate) fn disconnect(&mut self, (link, slot): (u32, u16)) -> u32 {
        let client = self.wires[link as usize].first as usize + usize::from(slot);
        let row = std::mem::replace(&mut self.clients[client], Client::NOBODY).row;
        let channel = &mut self.channels[row as usize];
        (channel.server, channel.slot, channel.next) = (GATE, 0, NONE);
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
        (channel.held > 0).then_some(Tag { stream: channel.stream, index: channel.index })
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

    /// Occupies room in channel `row` with a word that is on its way there.
    #[inline]
    pub(crate) fn put(&mut self, row: u32, tag: Tag) {
        if !self.channels[row as usize].push(tag) {
            self.mix(row, tag);
        }
    }

    #[cold]
    fn mix(&mut self, row: u32, tag: Tag) {
        let runs = self.mixed.entry(row).or_default();
        match runs.back_mut() {
            Some((last, count))
                if last.stream == tag.stream && last.index.wrapping_add(*count) == tag.index =>
            {
                *count += 1;
            }
            _ => runs.push_back((tag, 1)),
        }
    }

    /// A word that was on its way is now in the queue of channel `row`.
    #[inline]
    pub(crate) fn arrive(&mut self, row: u32) {
        let channel = &mut self.channels[row as usize];
        channel.queued += 1;
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
    #[inline]
    pub(crate) fn take(&mut self, row: u32) -> Tag {
        let channel = &mut self.channels[row as usize];
        let tag = channel.pop();
        let waiter = channel.waiter;
        if channel.run == 0 && channel.held > 0 {
            self.next_run(row);
        }
        if waiter != NONE {
            self.wake(row, waiter);
        }
        tag
    }

    #[cold]
    fn next_run(&mut self, row: u32) {
        let runs = self.mixed.get_mut(&row).expect("words behind the run are in the map");
        let (tag, count) = runs.pop_front().expect("words behind the run are in the map");
        if runs.is_empty() {
            self.mixed.remove(&row);
        }
        let channel = &mut self.channels[row as usize];
        (channel.stream, channel.index, channel.run) = (tag.stream, tag.index, count);
    }

    #[inline]
    fn wake(&mut self, row: u32, waiter: u32) {
        self.channels[row as usize].waiter = NONE;
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

    #[inline]
    fn make_ready(&mut self, link: u32, slot: u32) {
        let wire = &mut self.wires[link as usize];
        wire.turns.set(slot);
        if wire.idle {
            wire.idle = false;
            self.ready.push(link);
        }
    }

    /// Gives every free link a word, as long as there are any to give.
    pub(crate) fn settle(&mut self, now: u64, lane: &mut Lane) {
        while let Some(link) = self.ready.pop() {
            self.serve(now, link, lane);
        }
    }

    /// Gives free link `link` a word of the channel whose turn it is.
    #[inline]
    fn serve(&mut self, now: u64, link: u32, lane: &mut Lane) {
        let wire = &mut self.wires[link as usize];
        let channels = &mut self.channels[..];
        let (row, next, end, slot) = loop {
            let Some(slot) = wire.turns.next() else {
                wire.idle = true;
                wire.moving = NONE;
                return;
            };
            let Client { row, next, last } = self.clients[(wire.first.wrapping_add(slot)) as usize];
            let ahead = &mut channels[next as usize];
            if ahead.held < self.depth {
                break (row, next, last, slot);
            }
            wire.turns.clear(slot);
            if ahead.waiter == NONE {
                ahead.waiter = row;
            } else {
                self.crowd.push((next, row));
            }
        };
        wire.moving = next;
        wire.words = wire.words.wrapping_add(1);
        lane.begin(now, link);
        let channel = &mut channels[row as usize];
        let last = channel.queued == 1;
        let tag = channel.pop();
        let waiter = channel.waiter;
        let mixed = channel.run == 0 && channel.held > 0;
        wire.turns.served(slot, last);
        let in_run = channels[next as usize].push(tag);
        if tag.index == end {
            self.tails.push(next);
        }
        if mixed | !in_run {
            self.serve_mixed(row, mixed, next, tag, in_run);
        }
        if waiter != NONE {
            self.wake(row, waiter);
        }
    }

    /// The part of `serve` for channels in which streams mix.
    #[cold]
    fn serve_mixed(&mut self, row: u32, mixed: bool, next: u32, tag: Tag, in_run: bool) {
        if mixed {
            self.next_run(row);
        }
        if !in_run {
            self.mix(next, tag);
        }
    }

    /// The words under way on these links arrive. The links are not idle, so that nobody lists
    /// them, until they take their next words ([`Network::free`]).
    pub(crate) fn end(&mut self, links: &[u32]) {
        self.word_hops += links.len() as u64;
        for &link in links {
            let row = self.wires[link as usize].moving;
            self.arrive(row);
        }
    }

    /// These links take their next words.
    pub(crate) fn free(&mut self, now: u64, links: &[u32], lane: &mut Lane) {
        for &link in links {
            self.serve(now, link, lane);
        }
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

    /// Checks what must hold at every moment: runs agree with counts, no queue is deeper than
    /// it can be, and a link carries only into a channel with a word on its way.
    #[cfg(test)]
    pub(crate) fn audit(&self) {
        let mut on_the_way = vec![0u32; self.channels.len()];
        for wire in self.wires.iter().filter(|wire| wire.moving != NONE) {
            on_the_way[wire.moving as usize] += 1;
        }
        for (row, channel) in self.channels.iter().enumerate() {
            let behind: u32 =
                self.mixed.get(&(row as u32)).map_or(0, |runs| runs.iter().map(|r| r.1).sum());
            assert!(channel.held <= self.depth, "row {row} is too deep");
            assert_eq!(channel.run + behind, u32::from(channel.held), "row {row}");
            assert!(u32::from(channel.held - channel.queued) >= on_the_way[row], "row {row}");
        }
    }
}
