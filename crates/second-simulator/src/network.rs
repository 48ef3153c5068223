//! Channels and links (rules N1 to N6), for connections and for messages.
//!
//! Agents are not known here: what they must be told is returned to the caller.

use std::collections::VecDeque;

use crate::{earliest, ended};

/// A word: the connection or message that it belongs to, and its number there.
pub(crate) type Word = (usize, u64);

/// A channel (N1): its words, those that have arrived first.
#[derive(Default)]
pub(crate) struct Channel {
    pub(crate) words: VecDeque<Word>,
    pub(crate) arrived: usize,
    /// The link that words come over; `None` if an agent puts them in.
    pub(crate) fed_by: Option<usize>,
    /// The channel that words come from over this link.
    pub(crate) before: Option<usize>,
    /// The channel that words are forwarded to, over the link that feeds it.
    pub(crate) next: Option<usize>,
}

/// The state of a link (N4) or of a port (A1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Idle,
    Queued,
    Busy,
}

/// A link (N4).
pub(crate) struct Link {
    pub(crate) state: State,
    pub(crate) pointer: usize,
    pub(crate) clients: Vec<Option<usize>>,
    /// Words carried so far.
    pub(crate) words: u64,
}

/// A word that has left a channel.
pub(crate) struct Departure {
    pub(crate) channel: usize,
    pub(crate) word: Word,
    /// Whether the channel had no space before, and an agent feeds it.
    pub(crate) agent_has_space: bool,
}

pub(crate) struct Network {
    pub(crate) now: u64,
    pub(crate) channels: Vec<Channel>,
    pub(crate) links: Vec<Link>,
    /// The stack of links.
    pub(crate) stack: Vec<usize>,
    channel_depth: usize,
    /// Clocks for a word to cross each link.
    link_clocks: Vec<u64>,
    /// Links that a word crosses, with the channel that it enters, by the clock of the end.
    transfers: Vec<(u64, (usize, usize))>,
}

impl Network {
    pub(crate) fn new(channel_depth: usize, link_clocks: Vec<u64>) -> Self {
        let idle = |_| Link { state: State::Idle, pointer: 0, clients: Vec::new(), words: 0 };
        Self {
            now: 0,
            channels: Vec::new(),
            links: (0..link_clocks.len()).map(idle).collect(),
            stack: Vec::new(),
            channel_depth,
            link_clocks,
            transfers: Vec::new(),
        }
    }

    pub(crate) fn has_space(&self, channel: usize) -> bool {
        self.channels[channel].words.len() < self.channel_depth
    }

    /// Puts a word into a channel, as a word on its way.
    pub(crate) fn put(&mut self, channel: usize, word: Word) {
        assert!(self.has_space(channel), "a word is put into a full channel");
        self.channels[channel].words.push_back(word);
    }

    /// Takes an arrived word out of a channel, with N5 step 4 as far as it concerns links.
    pub(crate) fn take(&mut self, channel: usize) -> Departure {
        let was_full = !self.has_space(channel);
        let at = &mut self.channels[channel];
        assert!(at.arrived > 0, "a word is taken that has not arrived");
        at.arrived -= 1;
        let word = at.words.pop_front().expect("it has arrived words");
        let (fed_by, before) = (at.fed_by, at.before);
        let supplied = before.is_some_and(|before| self.channels[before].arrived > 0);
        if let Some(link) = fed_by.filter(|_| was_full && supplied) {
            self.queue(link);
        }
        Departure { channel, word, agent_has_space: was_full && fed_by.is_none() }
    }

    /// Puts a link onto the stack if it is idle.
    pub(crate) fn queue(&mut self, link: usize) {
        if self.links[link].state == State::Idle {
            self.links[link].state = State::Queued;
            self.stack.push(link);
        }
    }

    /// The link that a channel forwards over.
    fn link_from(&self, channel: usize) -> Option<usize> {
        self.channels[channel].next.and_then(|next| self.channels[next].fed_by)
    }

    /// N3.
    fn is_ready(&self, client: usize) -> bool {
        let channel = &self.channels[client];
        channel.arrived > 0 && channel.next.is_some_and(|next| self.has_space(next))
    }

    /// N5. The word that crosses the link now, if there is one.
    pub(crate) fn serve(&mut self, number: usize) -> Option<Departure> {
        let link = &self.links[number];
        let count = link.clients.len();
        let mut turns = (0..count).map(|turn| (link.pointer + turn) % count);
        let ready = |k: &usize| link.clients[*k].is_some_and(|client| self.is_ready(client));
        let Some(k) = turns.find(ready) else {
            self.links[number].state = State::Idle;
            return None;
        };
        let link = &mut self.links[number];
        link.pointer = (k + 1) % count;
        link.state = State::Busy;
        link.words += 1;
        let client = link.clients[k].expect("it is ready");
        let next = self.channels[client].next.expect("it is ready");
        let departure = self.take(client);
        self.put(next, departure.word);
        self.transfers.push((self.now + self.link_clocks[number], (number, next)));
        Some(departure)
    }

    /// The links and channels of the transfers that end now: those over links of fewer clocks first,
    /// and in the order of their starts.
    pub(crate) fn ended_transfers(&mut self) -> Vec<(usize, usize)> {
        let mut transfers = ended(&mut self.transfers, self.now);
        transfers.sort_by_key(|&(link, _)| self.link_clocks[link]);
        transfers
    }

    /// When the first transfer ends.
    pub(crate) fn earliest(&self) -> Option<u64> {
        earliest(&self.transfers)
    }

    /// N6: a word on its way has arrived. Returns whether there was none before and the channel
    /// forwards to no other one.
    pub(crate) fn arrive(&mut self, channel: usize) -> bool {
        self.channels[channel].arrived += 1;
        if self.channels[channel].arrived > 1 {
            return false;
        }
        match self.link_from(channel) {
            Some(link) => self.queue(link),
            None => return true,
        }
        false
    }
}
