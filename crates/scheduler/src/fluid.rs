//! A phase as flowing streams: when each is open, how fast it flows, when the last is over.
//!
//! * An agent has two *ports*, one for sending and one for receiving (full duplex), or one for
//!   both (half duplex). A port has a list of the streams that go through it, in the order of the
//!   timetable: by (start, connection, part). It opens them in that order, at most `streams` at
//!   a time, the next as soon as one is over; the planned clock plays no role (self-timed), unless
//!   starts are given: then a port begins to open a stream at its start at the earliest.
//! * A connection of a cell to itself with half duplex goes through its one port twice: both
//!   ends open together, even if `streams` is 1.
//! * Opening takes a port `stream_setup` clocks, one stream after the other. A stream flows once
//!   both its ends are open, at the max-min share rate ([`crate::max_min_share`]) under these capacities:
//!   a link one word per `link_clocks_per_word`, a port one word per `access_clocks_per_word`.
//! * A stream frees its ports when its words are sent. It is over when the last of them is
//!   received, its *latency* later. Flights are given or are no clocks.
//! * The sender of a connection that comes after another opens it only when all parts of the
//!   other in this phase are over. A port waits for that with what comes later in its list.
//!
//! Events are handled in the order of time, those of one moment together; between events rates
//! are constant. There are at most three events per stream and one per change of a rate.
//!
//! # What this module does not do
//!
//! A queue holds nothing, and the receiver's port goes on as early as the sender's: it meets the
//! words of its next stream, which were on their path meanwhile. A port that opens a stream while
//! others flow through it (`streams` above 1) does not hold them up, as a real one does. Streams that wait for one another in
//! a ring, which no verified timetable has, are opened regardless of order, so that every phase
//! comes to an end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::Lists;

use crate::max_min_share::MaxMinShare;
use crate::precedence::PhasePrecedence;

/// A phase to run: streams, resources and ports numbered from 0 within the phase.
pub(crate) struct FluidPhase<'a> {
    /// Words of each stream.
    pub(crate) words: Vec<u32>,
    /// Ports of each stream: of its sender, of its receiver.
    pub(crate) ports: Vec<[u32; 2]>,
    /// The streams of each port in the order in which it opens them.
    pub(crate) lists: Lists,
    /// The order inside the phase.
    pub(crate) precedence: Option<&'a PhasePrecedence>,
    /// Clocks from when the last word of each stream is sent until it is received; of a set
    /// without order empty, which is no clocks.
    pub(crate) latencies: Vec<f64>,
    /// The clock before which no port opens each stream; empty where starts are not timed.
    pub(crate) starts: Vec<f64>,
    /// Streams open at a port at most, at least 1.
    pub(crate) streams: u32,
    /// Clocks of opening a stream.
    pub(crate) setup: f64,
    /// The resources before this one are links.
    pub(crate) links: u32,
}

/// What became of a phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FluidOutcome {
    /// Clocks until the last word arrived.
    pub(crate) clocks: f64,
    /// When each stream was over: its last word received.
    pub(crate) finish_times: Vec<f64>,
    /// The most streams that flowed over one link at a time.
    pub(crate) max_sharing: u32,
}

/// Runs a phase. `share` has no active stream and is left so.
pub(crate) fn run(phase: &FluidPhase<'_>, rates: &mut MaxMinShare) -> FluidOutcome {
    let mut run = FluidRun::new(phase, rates);
    run.open_all();
    loop {
        run.settle();
        if run.step() {
            continue;
        }
        if run.finished == phase.words.len() {
            return FluidOutcome {
                clocks: run.now,
                finish_times: run.finish_times,
                max_sharing: run.max_sharing,
            };
        }
        run.ignore_precedence();
    }
}

#[derive(Clone, Copy, Default)]
struct StreamState {
    /// Words left at time `since`.
    left: f64,
    since: f64,
    rate: f64,
    /// Only the event with this number is valid.
    event: u32,
    ends_open: u8,
    /// When the ends opened so far have been set up.
    ready: f64,
    stage: Stage,
}

/// How far a stream is. Its next event brings it to the next state.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Opening,
    Flowing,
    /// All words are sent, the last of them are on their path.
    Draining,
}

#[derive(Clone, Copy, Default)]
struct PortState {
    next: u32,
    open: u32,
    /// When the last opening is through.
    idle: f64,
    /// The start for which the port was last told to look again.
    wake: f64,
}

/// A moment as sortable bits: times are never negative and never NaN.
fn time_key(time: f64) -> u64 {
    time.to_bits()
}

struct FluidRun<'a> {
    phase: &'a FluidPhase<'a>,
    rates: &'a mut MaxMinShare,
    now: f64,
    streams: Vec<StreamState>,
    ports: Vec<PortState>,
    /// Connections that each group still waits for, and parts of it that are not over.
    waits: Vec<u32>,
    unfinished_parts: Vec<u32>,
    /// Ports to look at again.
    pending_ports: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Starts to come, and the ports that wait for them.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    changed: Vec<u32>,
    finished: usize,
    finish_times: Vec<f64>,
    max_sharing: u32,
}

impl<'a> FluidRun<'a> {
    fn new(phase: &'a FluidPhase<'a>, rates: &'a mut MaxMinShare) -> Self {
        let (waits, unfinished_parts) =
            phase.precedence.map_or_else(Default::default, |precedence| {
                let groups = 0..precedence.routes.rows();
                (
                    groups.clone().map(|g| precedence.predecessors.of(g).len() as u32).collect(),
                    groups.map(|g| precedence.routes.of(g).len() as u32).collect(),
                )
            });
        Self {
            rates,
            now: 0.0,
            streams: phase
                .words
                .iter()
                .map(|&words| StreamState { left: f64::from(words), ..StreamState::default() })
                .collect(),
            ports: vec![PortState::default(); phase.lists.rows() as usize],
            waits,
            unfinished_parts,
            pending_ports: Vec::new(),
            events: BinaryHeap::new(),
            wakes: BinaryHeap::new(),
            changed: Vec::new(),
            finished: 0,
            finish_times: vec![0.0; phase.words.len()],
            max_sharing: 0,
            phase,
        }
    }

    fn open_all(&mut self) {
        self.pending_ports.extend(0..self.phase.lists.rows());
        self.process_pending_ports();
    }

    /// Opens what can be opened at the ports that something happened to.
    fn process_pending_ports(&mut self) {
        while let Some(port) = self.pending_ports.pop() {
            while let Some((stream, ends)) = self.openable(port) {
                let state = &mut self.streams[stream as usize];
                let port = &mut self.ports[port as usize];
                port.next += 1;
                port.open += ends;
                port.idle = port.idle.max(self.now) + f64::from(ends) * self.phase.setup;
                state.ends_open += ends as u8;
                state.ready = state.ready.max(port.idle);
                if state.ends_open == 2 {
                    let ready = state.ready;
                    self.schedule(stream, ready);
                }
            }
        }
    }

    /// The next stream in a port's list if it may be opened, and how many of its ends are here.
    fn openable(&mut self, port: u32) -> Option<(u32, u32)> {
        let PortState { next, open, wake, .. } = self.ports[port as usize];
        let stream = *self.phase.lists.of(port).get(next as usize)?;
        let [from, to] = self.phase.ports[stream as usize];
        let ends = if from == to { 2 } else { 1 };
        if open + ends > self.phase.streams.max(ends) {
            return None;
        }
        let start = self.phase.starts.get(stream as usize).copied().unwrap_or(0.0);
        if time_key(start) > self.end_of_instant() {
            if wake != start {
                self.ports[port as usize].wake = start;
                self.wakes.push(Reverse((time_key(start), port)));
            }
            return None;
        }
        match self.phase.precedence {
            Some(precedence) if port == from && self.waits_for(precedence, stream) => None,
            _ => Some((stream, ends)),
        }
    }

    fn waits_for(&self, precedence: &PhasePrecedence, stream: u32) -> bool {
        self.waits[precedence.group[stream as usize] as usize] > 0
    }

    /// Replaces a stream's event by one at `time`.
    fn schedule(&mut self, stream: u32, time: f64) {
        let state = &mut self.streams[stream as usize];
        state.event += 1;
        self.events.push(Reverse((time_key(time), stream, state.event)));
    }

    /// Makes rates share and plans the ends of the streams whose rate changed.
    fn settle(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        self.rates.settle(&mut changed);
        for &stream in &changed {
            let rate = self.rates.rate(stream);
            let state = &mut self.streams[stream as usize];
            if state.stage != Stage::Flowing || state.rate == rate {
                continue;
            }
            state.left = (state.left - (self.now - state.since) * state.rate).max(0.0);
            state.since = self.now;
            state.rate = rate;
            let end = self.now + state.left / rate;
            self.schedule(stream, end);
        }
        self.changed = changed;
    }

    /// Goes to the next moment at which something happens and handles all of it; `false` if
    /// nothing ever will.
    fn step(&mut self) -> bool {
        let mut event = self.next_event();
        let wake = self.wakes.peek().map(|wake| wake.0.0);
        let Some(first) = event.map(|event| event.0).into_iter().chain(wake).min() else {
            return false;
        };
        self.now = self.now.max(f64::from_bits(first));
        let end_of_instant = self.end_of_instant();
        while let Some((time, stream)) = event {
            if time > end_of_instant {
                break;
            }
            self.events.pop();
            self.advance(stream);
            event = self.next_event();
        }
        while let Some(&Reverse((time, port))) = self.wakes.peek()
            && time <= end_of_instant
        {
            self.wakes.pop();
            self.pending_ports.push(port);
        }
        self.process_pending_ports();
        true
    }

    /// Rates are rounded, so what should be one moment can be several very close ones.
    fn end_of_instant(&self) -> u64 {
        time_key(self.now + 1e-7 + self.now * 1e-12)
    }

    /// The next valid event, left in the heap.
    fn next_event(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((time, stream, event))) = self.events.peek() {
            if self.streams[stream as usize].event == event {
                return Some((time, stream));
            }
            self.events.pop();
        }
        None
    }

    /// A stream begins to flow, is sent, or is over.
    fn advance(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        state.event += 1;
        match state.stage {
            Stage::Opening => self.start_flow(stream),
            Stage::Flowing => self.finish_sending(stream),
            Stage::Draining => self.finish(stream),
        }
    }

    fn start_flow(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        state.stage = Stage::Flowing;
        state.since = self.now;
        self.rates.add(stream);
        let links = self.rates.path(stream).iter().filter(|&&r| r < self.phase.links);
        let most = links.map(|&link| self.rates.user_count(link)).max().unwrap_or(0);
        self.max_sharing = self.max_sharing.max(most);
    }

    /// All words of a stream are sent: ports and links are free, its last words are on their path.
    fn finish_sending(&mut self, stream: u32) {
        self.streams[stream as usize].stage = Stage::Draining;
        self.rates.remove(stream);
        for port in self.phase.ports[stream as usize] {
            self.ports[port as usize].open -= 1;
            self.pending_ports.push(port);
        }
        match self.phase.latencies.get(stream as usize) {
            Some(&latency) => self.schedule(stream, self.now + latency),
            None => self.finish(stream),
        }
    }

    /// The last word of a stream is received.
    fn finish(&mut self, stream: u32) {
        self.finish_times[stream as usize] = self.now;
        self.finished += 1;
        if let Some(precedence) = self.phase.precedence {
            self.release(precedence, precedence.group[stream as usize]);
        }
    }

    /// A part of a connection is over: whoever waited for the last part need not any more.
    fn release(&mut self, precedence: &PhasePrecedence, group: u32) {
        self.unfinished_parts[group as usize] -= 1;
        if self.unfinished_parts[group as usize] > 0 {
            return;
        }
        for &after in precedence.successors.of(group) {
            let waits = &mut self.waits[after as usize];
            *waits = waits.saturating_sub(1);
            if *waits == 0 {
                for &stream in precedence.routes.of(after) {
                    self.pending_ports.push(self.phase.ports[stream as usize][0]);
                }
            }
        }
    }

    /// Lets streams that wait for one another in a ring go.
    fn ignore_precedence(&mut self) {
        self.waits.fill(0);
        self.open_all();
    }
}
