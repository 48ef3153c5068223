//! The part that the connection machine and the message machine share: the network, the words on
//! its links, the clock with its timers, and the detection of periods.
//!
//! The agents differ between the two machines and are not here, and neither is the code that
//! connects channels to pathways.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use conset_ir::convert::index;
use conset_ir::{LinkId, Machine};

use crate::delay_queue::{DelayQueue, DelayQueueSnapshot};
use crate::fast_forward::{PeriodDetector, SkipLimit};
use crate::injection::{HeldBack, Injection};
use crate::network::{LinkTransfer, Network, NetworkSnapshot};

pub(crate) mod faults;

/// Network and time; a timer carries a value of type `T`.
#[derive(Clone, Debug)]
pub(crate) struct Base<T> {
    pub(crate) machine: Arc<Machine>,
    pub(crate) now: u64,
    pub(crate) network: Network,
    /// The words on links.
    pub(crate) in_flight: InFlight,
    pub(crate) detector: PeriodDetector,
    timers: BinaryHeap<Reverse<(u64, T)>>,
    /// The driver's timers that expired and were not reported yet.
    pub(crate) expired: Vec<u32>,
    /// Faults of the hardware, if there is a plan.
    pub(crate) injection: Option<Box<Injection>>,
    /// What faults hold back here while another engine of the machine has them.
    held: HeldBack,
}

/// A snapshot for the detection of periods.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseSnapshot {
    network: NetworkSnapshot,
    in_flight: [DelayQueueSnapshot<LinkTransfer>; 2],
}

impl<T: Ord> Base<T> {
    /// The machine at clock 0, with no channels.
    pub(crate) fn new(machine: Arc<Machine>) -> Self {
        let parameters = machine.parameters();
        let links = machine.link_clocks_range();
        Self {
            now: 0,
            network: Network::new(machine.link_count(), parameters.channel_depth),
            in_flight: InFlight::new(&machine),
            detector: PeriodDetector::new(links, parameters.access_clocks_per_word),
            timers: BinaryHeap::new(),
            expired: Vec::new(),
            injection: None,
            held: HeldBack::default(),
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

/// The words on links. Of machines with links of two rates, those on the slower links are in a queue
/// of their own.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    queues: [DelayQueue<LinkTransfer>; 2],
    /// Whether each link is a slower one; empty if all links are alike.
    is_slow: Vec<bool>,
    /// Reused memory.
    slow: Vec<LinkTransfer>,
}

impl InFlight {
    fn new(machine: &Machine) -> Self {
        let [fast, slow] = machine.link_clocks_range();
        let links = if fast < slow { machine.link_count() } else { 0 };
        let is_slow = |row| machine.link_clocks(LinkId::from_index(row)) == slow;
        Self {
            queues: [fast, slow].map(DelayQueue::new),
            is_slow: (0..links).map(is_slow).collect(),
            slow: Vec::new(),
        }
    }

    /// Starts all transfers at clock `now`, and empties the vector.
    #[inline]
    fn start(&mut self, now: u64, transfers: &mut Vec<LinkTransfer>) {
        if !self.is_slow.is_empty() {
            let is_slow = |transfer: &LinkTransfer| self.is_slow[index(transfer.link())];
            self.slow.extend(transfers.iter().copied().filter(is_slow));
            transfers.retain(|transfer| !is_slow(transfer));
            self.queues[1].start(now, &mut self.slow);
        }
        self.queues[0].start(now, transfers);
    }

    /// The clock at which the next transfer ends.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<u64> {
        let [fast, slow] = self.queues.each_ref().map(DelayQueue::next_end);
        match (fast, slow) {
            (Some(fast), Some(slow)) => Some(fast.min(slow)),
            (one, None) | (None, one) => one,
        }
    }

    /// Removes the transfers that end at `now`. The vector is to be returned with
    /// [`InFlight::recycle`].
    #[inline]
    pub(crate) fn take_ended(&mut self, now: u64) -> Vec<LinkTransfer> {
        let mut ended = self.queues[0].take_ended(now);
        if !self.is_slow.is_empty() {
            let slow = self.queues[1].take_ended(now);
            ended.extend_from_slice(&slow);
            self.queues[1].recycle(slow);
        }
        ended
    }

    /// Takes back the memory of ended transfers.
    pub(crate) fn recycle(&mut self, ended: Vec<LinkTransfer>) {
        self.queues[0].recycle(ended);
    }

    /// Drops all transfers.
    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(DelayQueue::clear);
    }

    /// The transfers in progress.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = LinkTransfer> + '_ {
        self.queues.iter().flat_map(DelayQueue::iter)
    }

    fn save(&self, now: u64, snapshots: &mut [DelayQueueSnapshot<LinkTransfer>; 2]) {
        for (queue, snapshot) in self.queues.iter().zip(snapshots) {
            queue.save(now, snapshot);
        }
    }

    fn matches(&self, now: u64, snapshots: &[DelayQueueSnapshot<LinkTransfer>; 2]) -> bool {
        self.queues.iter().zip(snapshots).all(|(queue, snapshot)| queue.matches(now, snapshot))
    }

    fn delay(&mut self, clocks: u64) {
        self.queues.iter_mut().for_each(|queue| queue.delay(clocks));
    }
}
