//! Worms: standing messages, whose headers take one channel of their route after the other.
//!
//! A message of `n` words (its header is the first) is spread over the channels that it holds, each
//! with a queue of `depth` words. Channel 0 is the launch queue of its source. Let `T_m` be the clock
//! at which the header leaves channel `m`, because it takes the next one, or at the last channel
//! because the receiver takes it. As queues are full while the header waits, word `k depth` leaves
//! channel `i` no earlier than the header leaves channel `i + k`, and the words after it follow one by
//! one. So the tail leaves channel `i` at
//!
//! ```text
//! max over m >= i with (m - i) depth < n  of  T_m + (n - 1 - (m - i) depth) x clocks of a word
//! ```
//!
//! and no earlier than it arrives there. It is known as soon as the header has come so far that the
//! rest of the message fits behind it, so a short message gives back its first channels, and lets its
//! source launch the next message, while it waits in the network.
//!
//! A channel is given to the headers that wait for it in the order of their arrival. On rings every
//! link has two channels: the second one is for the links of a dimension from the dateline on, without
//! which messages that wait for each other could be a cycle. Messages in the two channels of a link
//! share it; this is not modelled.

use std::collections::VecDeque;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{LinkId, Machine};

use super::MessageCosts;

/// The channels of a machine, and the messages in them.
pub(super) struct Worms {
    depth: u64,
    costs: MessageCosts,
    /// Sizes of the dimensions, if they are rings; else nothing.
    rings: Vec<usize>,
    /// Per channel, from when on it is free; [`HELD`] while that is not known.
    free_from: Vec<u64>,
    /// Per channel, the messages whose headers wait for it.
    waiting: Vec<VecDeque<u32>>,
    /// Per message, its place in `worms` while it is under way.
    place: Vec<u32>,
    worms: Vec<Worm>,
    spare: Vec<u32>,
}

/// The clock from which a channel is free whose message may still wait.
const HELD: u64 = u64::MAX;

/// A message that is under way.
#[derive(Clone, Debug, Default)]
struct Worm {
    /// Words, the header included.
    length: u64,
    /// Clocks for each word.
    rate: u64,
    /// The channels after the launch queue.
    route: Vec<u32>,
    /// When the header left the launch queue and each channel after it.
    left: Vec<u64>,
    /// Channels, the launch queue included, that are given back or have a time for it.
    settled: usize,
    /// When the tail leaves the last of them.
    tail: u64,
}

/// What is given back to somebody who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Its source, which may launch the next message.
    Source,
    /// A channel, to the first header that waits for it.
    Channel(u32),
}

impl Worms {
    pub(super) fn new(machine: &Machine, costs: MessageCosts, messages: usize) -> Self {
        let topology = machine.topology();
        let intact = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        let rings = topology.dims().filter(|_| topology.wraps() && intact).unwrap_or_default();
        let rings: Vec<usize> = rings.into_iter().map(index).collect();
        let channels = machine.link_count() * if rings.is_empty() { 1 } else { 2 };
        Self {
            depth: u64::from(machine.parameters().channel_depth).max(1),
            costs,
            rings,
            free_from: vec![0; channels],
            waiting: vec![VecDeque::new(); channels],
            place: vec![u32::MAX; messages],
            worms: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Adds a message whose header is in the launch queue: its words, and clocks for each of them.
    pub(super) fn launch(
        &mut self,
        row: u32,
        (words, rate): (u64, u64),
        machine: &Machine,
        links: &[LinkId],
    ) {
        let at = self.spare.pop().unwrap_or_else(|| {
            self.worms.push(Worm::default());
            to_u32(self.worms.len() - 1)
        });
        self.place[index(row)] = at;
        let worm = &mut self.worms[index(at)];
        worm.length = (words + self.costs.extra_words).max(1);
        worm.rate = rate;
        worm.route.clear();
        worm.left.clear();
        (worm.settled, worm.tail) = (0, 0);
        if self.rings.is_empty() {
            worm.route.extend(links.iter().map(|link| link.0));
            return;
        }
        // The dimension of the last link, and the channel in it.
        let (mut last, mut second) = (usize::MAX, 0);
        for &id in links {
            let link = machine.link(id);
            let (mut a, mut b) = (link.source.index(), link.target.index());
            for (dimension, &size) in self.rings.iter().enumerate() {
                if a % size != b % size {
                    if dimension != last {
                        (last, second) = (dimension, 0);
                    }
                    if size > 2 && (a % size).abs_diff(b % size) == size - 1 {
                        second = 1;
                    }
                    break;
                }
                (a, b) = (a / size, b / size);
            }
            worm.route.push(2 * id.0 + second);
        }
    }

    /// Lets a header take the next channel, or wait for it. `None` if it is at its target, else
    /// whether it has moved on. Adds to `out` what is given back, and when.
    pub(super) fn advance(
        &mut self,
        row: u32,
        now: u64,
        out: &mut Vec<(u64, Release)>,
    ) -> Option<bool> {
        let worm = &self.worms[index(self.place[index(row)])];
        let next = *worm.route.get(worm.left.len())?;
        let (free_from, waiting) =
            (&mut self.free_from[index(next)], &mut self.waiting[index(next)]);
        if *free_from > now {
            waiting.push_back(row);
            if *free_from != HELD && waiting.len() == 1 {
                out.push((*free_from, Release::Channel(next)));
            }
            return Some(false);
        }
        *free_from = HELD;
        self.header_leaves(row, now, out);
        Some(true)
    }

    /// Gives a channel to the first header that waits for it, which is returned.
    pub(super) fn release(
        &mut self,
        channel: u32,
        now: u64,
        out: &mut Vec<(u64, Release)>,
    ) -> Option<u32> {
        let row = self.waiting[index(channel)].pop_front()?;
        self.free_from[index(channel)] = HELD;
        self.header_leaves(row, now, out);
        Some(row)
    }

    /// Lets the receiver take a message from a clock on; returns when it has the last word.
    pub(super) fn receive(&mut self, row: u32, now: u64, out: &mut Vec<(u64, Release)>) -> u64 {
        self.header_leaves(row, now, out);
        let at = self.place[index(row)];
        self.spare.push(at);
        let worm = &self.worms[index(at)];
        // Words that stand in the queues are taken at the rate of the agent.
        let taken = now + worm.length * self.costs.access;
        taken.max(worm.tail + self.costs.access)
    }

    /// The header leaves the channel that it is in, which determines when the tail leaves all channels
    /// that the rest of the message does not need.
    fn header_leaves(&mut self, row: u32, now: u64, out: &mut Vec<(u64, Release)>) {
        let (depth, link) = (self.depth, self.costs.link);
        let worm = &mut self.worms[index(self.place[index(row)])];
        let rate = worm.rate;
        worm.left.push(now);
        let (last, rest) = (worm.left.len() - 1, worm.length - 1);
        while worm.settled <= last {
            let ahead = to_u64(last - worm.settled);
            if last < worm.route.len() && ahead < rest / depth {
                return;
            }
            let follows = |(k, &clock): (u64, &u64)| clock + rest.saturating_sub(k * depth) * rate;
            let queues = (0..=rest / depth).zip(&worm.left[worm.settled..]);
            let tail = queues.map(follows).max().unwrap_or(now);
            // The tail arrives from the channel before, and then over the next link.
            worm.tail = tail.max(if worm.settled == 0 { 0 } else { worm.tail + link });
            let clock = worm.tail.max(now);
            match worm.settled.checked_sub(1).map(|before| worm.route[before]) {
                None => out.push((clock, Release::Source)),
                Some(channel) => {
                    self.free_from[index(channel)] = clock;
                    if !self.waiting[index(channel)].is_empty() {
                        out.push((clock, Release::Channel(channel)));
                    }
                }
            }
            worm.settled += 1;
        }
    }
}
