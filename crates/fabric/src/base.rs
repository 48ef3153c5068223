//! What both machines, of connections and of messages, are built on: the network, the words on its
//! links, the clock with its timers, and the watch for periods.
//!
//! What is in the agents' hands differs between the two and is not here, and neither is who joins
//! channels to pathways.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use conset_ir::{LinkId, Machine};

use crate::lane::{Lane, LaneState};
use crate::network::{Carried, Network, NetworkState};
use crate::period::{Allowed, Watch};

/// Network and time; `T` is what timers say when they go off.
#[derive(Clone, Debug)]
pub(crate) struct Base<T> {
    pub(crate) machine: Arc<Machine>,
    pub(crate) now: u64,
    pub(crate) network: Network,
    pub(crate) links: Lane<Carried>,
    pub(crate) watch: Watch,
    timers: BinaryHeap<Reverse<(u64, T)>>,
    /// The driver's timers that went off and were not told yet.
    pub(crate) rung: Vec<u32>,
}

/// A snapshot to find periods with.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseState {
    network: NetworkState,
    links: LaneState<Carried>,
}

impl<T: Ord> Base<T> {
    /// The machine at clock 0, with no channels.
    pub(crate) fn new(machine: Arc<Machine>) -> Self {
        let parameters = machine.parameters();
        let (link, access) = (parameters.link_clocks_per_word, parameters.access_clocks_per_word);
        Self {
            now: 0,
            network: Network::new(machine.link_count(), parameters.channel_depth),
            links: Lane::new(link),
            watch: Watch::new(link, access),
            timers: BinaryHeap::new(),
            rung: Vec::new(),
            machine,
        }
    }

    /// Words that a link has carried in this context.
    pub(crate) fn link_words(&self, link: LinkId) -> u64 {
        self.network.wires[link.index()].words
    }

    /// In `clocks` clocks `timer` goes off.
    pub(crate) fn set_timer(&mut self, clocks: u64, timer: T) {
        self.timers.push(Reverse((self.now.saturating_add(clocks), timer)));
    }

    /// Forgets the timers of which `keep` says no.
    pub(crate) fn keep_timers(&mut self, keep: impl Fn(&T) -> bool) {
        self.timers.retain(|Reverse((_, timer))| keep(timer));
    }

    /// The timers that have not gone off, in no order.
    pub(crate) fn timers(&self) -> impl Iterator<Item = &T> {
        self.timers.iter().map(|Reverse((_, timer))| timer)
    }

    /// When the first timer goes off.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// The next timer that goes off now.
    pub(crate) fn ring(&mut self) -> Option<T> {
        let due = self.next_timer() == Some(self.now);
        due.then(|| self.timers.pop().map(|Reverse((_, timer))| timer)).flatten()
    }

    /// The driver's timers that went off since the last call.
    pub(crate) fn take_timers(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.rung);
    }

    /// The words that links were given in this clock are under way.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.links.begin(self.now, &mut self.network.begun);
    }

    /// Takes a snapshot, in a settled clock.
    pub(crate) fn save(&self, state: &mut BaseState) {
        self.links.save(self.now, &mut state.links);
        self.network.save(&mut state.network);
    }

    /// Whether everything is as in the snapshot but for the words' numbers.
    pub(crate) fn is_as(&self, state: &BaseState) -> bool {
        self.links.is_as(self.now, &state.links) && self.network.is_as(&state.network)
    }

    /// How many periods can be jumped as far as timers are concerned.
    pub(crate) fn allowed(&self, period: u64) -> Allowed {
        let mut allowed = Allowed::all();
        if let Some(at) = self.next_timer() {
            allowed.before(self.now, period, at);
        }
        allowed
    }

    /// Jumps over so many periods. All that is under way elsewhere must be delayed by as many
    /// clocks as this returns.
    pub(crate) fn jump(&mut self, state: &BaseState, period: u64, periods: u64) -> u64 {
        let clocks = period * periods;
        self.network.jump(&state.network, periods);
        self.links.delay(clocks);
        self.now += clocks;
        clocks
    }
}
