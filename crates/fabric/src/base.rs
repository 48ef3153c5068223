//! The part that the connection machine and the message machine share: the network, the words on
//! its links, the clock with its timers, and the detection of periods.
//!
//! The agents differ between the two machines and are not here, and neither is the code that
//! connects channels to pathways.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use conset_ir::{LinkId, Machine};

use crate::delay_queue::{DelayQueue, DelayQueueSnapshot};
use crate::fast_forward::{PeriodDetector, SkipLimit};
use crate::network::{LinkTransfer, Network, NetworkSnapshot};

/// Network and time; a timer carries a value of type `T`.
#[derive(Clone, Debug)]
pub(crate) struct Base<T> {
    pub(crate) machine: Arc<Machine>,
    pub(crate) now: u64,
    pub(crate) network: Network,
    /// The words on links.
    pub(crate) in_flight: DelayQueue<LinkTransfer>,
    pub(crate) detector: PeriodDetector,
    timers: BinaryHeap<Reverse<(u64, T)>>,
    /// The driver's timers that expired and were not reported yet.
    pub(crate) expired: Vec<u32>,
}

/// A snapshot for the detection of periods.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseSnapshot {
    network: NetworkSnapshot,
    in_flight: DelayQueueSnapshot<LinkTransfer>,
}

impl<T: Ord> Base<T> {
    /// The machine at clock 0, with no channels.
    pub(crate) fn new(machine: Arc<Machine>) -> Self {
        let parameters = machine.parameters();
        let (link, access) = (parameters.link_clocks_per_word, parameters.access_clocks_per_word);
        Self {
            now: 0,
            network: Network::new(machine.link_count(), parameters.channel_depth),
            in_flight: DelayQueue::new(link),
            detector: PeriodDetector::new(link, access),
            timers: BinaryHeap::new(),
            expired: Vec::new(),
            machine,
        }
    }

    /// Words that a link has carried in this context.
    pub(crate) fn link_words(&self, link: LinkId) -> u64 {
        self.network.links[link.index()].words
    }

    /// Sets a timer that expires in `clocks` clocks.
    pub(crate) fn set_timer(&mut self, clocks: u64, timer: T) {
        self.timers.push(Reverse((self.now.saturating_add(clocks), timer)));
    }

    /// Removes the timers for which `keep` returns `false`.
    pub(crate) fn retain_timers(&mut self, keep: impl Fn(&T) -> bool) {
        self.timers.retain(|Reverse((_, timer))| keep(timer));
    }

    /// The timers that have not expired, in no particular order.
    pub(crate) fn timers(&self) -> impl Iterator<Item = &T> {
        self.timers.iter().map(|Reverse((_, timer))| timer)
    }

    /// The clock at which the first timer expires.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes a timer that expires now.
    pub(crate) fn pop_expired(&mut self) -> Option<T> {
        let due = self.next_timer() == Some(self.now);
        due.then(|| self.timers.pop().map(|Reverse((_, timer))| timer)).flatten()
    }

    /// Moves the driver's timers that expired since the last call into `into`.
    pub(crate) fn take_timers(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.expired);
    }

    /// Puts the words that links accepted in this clock in flight.
    #[inline]
    pub(crate) fn start_transfers(&mut self) {
        self.in_flight.start(self.now, &mut self.network.started);
    }

    /// Takes a snapshot; the clock must be settled.
    pub(crate) fn save(&self, snapshot: &mut BaseSnapshot) {
        self.in_flight.save(self.now, &mut snapshot.in_flight);
        self.network.save(&mut snapshot.network);
    }

    /// Whether the state equals the snapshot, except for the words' numbers.
    pub(crate) fn matches(&self, snapshot: &BaseSnapshot) -> bool {
        self.in_flight.matches(self.now, &snapshot.in_flight)
            && self.network.matches(&snapshot.network)
    }

    /// How many periods the timers allow to skip.
    pub(crate) fn skip_limit(&self, period: u64) -> SkipLimit {
        let mut limit = SkipLimit::none();
        if let Some(at) = self.next_timer() {
            limit.before(self.now, period, at);
        }
        limit
    }

    /// Skips `periods` periods. The caller must delay all other actions in progress by the number
    /// of clocks returned.
    #[must_use]
    pub(crate) fn skip(&mut self, snapshot: &BaseSnapshot, period: u64, periods: u64) -> u64 {
        let clocks = period * periods;
        self.network.skip(&snapshot.network, periods);
        self.in_flight.delay(clocks);
        self.now += clocks;
        clocks
    }
}
