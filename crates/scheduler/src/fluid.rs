//! Simulates a phase as fluid streams: when each opens, at what rate it flows, when it ends.
//!
//! * An agent has one *port* for sending and one for receiving (full duplex), or one for both (half
//!   duplex). A port has a list of its streams in the order of the timetable: by (start,
//!   connection, part). It opens them in this order, at most `streams` at a time, the next one as
//!   soon as one ends. The planned starts play no role (self-timed agents) unless they are given;
//!   then a port opens a stream at its start at the earliest.
//! * A connection from a cell to itself with half duplex uses its one port twice. Both ends open
//!   together, even if `streams` is 1.
//! * Opening takes a port `stream_setup` clocks, and `network_overhead` more between two nodes, one stream
//!   after the other. A stream flows once
//!   both its ends are open, at the max-min fair rate ([`crate::max_min_share`]) under these
//!   capacities: a link carries one word per `link_clocks_per_word`, a port one word per
//!   `access_clocks_per_word`.
//! * A stream frees its ports when its words are sent. It ends when the last word is received, its
//!   *pipeline latency* later. Latencies are given, or are 0.
//! * The sender of a connection with predecessors opens it only when all parts of the predecessors
//!   in this phase have ended. The later streams in the list of the port wait too.
//!
//! Events are processed in the order of time, simultaneous events together; rates are constant in
//! between. There are at most three events per stream and one per change of a rate.
//!
//! # What this module does not do
//!
//! Queues hold no words, and the port of the receiver becomes free together with that of the
//! sender: by the time the receiver opens its next stream, words of that stream are already on the
//! way. A port that opens a stream does not delay other streams that flow through it (`streams`
//! above 1), as a real one does. Streams that wait for one another in a cycle, which no verified
//! timetable contains, are opened regardless of precedence, so that every phase ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::Lists;
use conset_ir::convert::{index, to_u32};

use crate::max_min_share::MaxMinShare;
use crate::precedence::PhasePrecedence;

/// A phase to simulate: streams, resources and ports are numbered from 0 within the phase.
pub(crate) struct FluidPhase<'a> {
    /// Words of each stream.
    pub(crate) words: Vec<u32>,
    /// The ports of each stream: of its sender, of its receiver.
    pub(crate) ports: Vec<[u32; 2]>,
    /// The streams of each port in the order in which it opens them.
    pub(crate) lists: Lists,
    /// The precedence constraints inside the phase.
    pub(crate) precedence: Option<&'a PhasePrecedence>,
    /// Clocks from when the last word of each stream is sent until it is received; empty for 0.
    pub(crate) latencies: Vec<f64>,
    /// The earliest clock at which a port opens each stream; empty if starts are not timed.
    pub(crate) starts: Vec<f64>,
    /// The most streams that a port holds open, at least 1.
    pub(crate) streams: u32,
    /// Clocks to open a stream.
    pub(crate) setup: f64,
    /// Clocks to open each stream beyond these; empty for 0.
    pub(crate) overheads: Vec<f64>,
    /// Resources below this number are links.
    pub(crate) links: u32,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FluidOutcome {
    /// Clocks until the last word arrived.
    pub(crate) clocks: f64,
    /// When the sender and the receiver of each stream began to open it.
    pub(crate) opened: Vec<[f64; 2]>,
    /// When the last word of each stream was sent, and its ports were free.
    pub(crate) sent: Vec<f64>,
    /// When the last word of each stream was received.
    pub(crate) finish_times: Vec<f64>,
    /// The most streams that flowed over one link at a time.
    pub(crate) max_sharing: u32,
}

/// Simulates a phase. `rates` must have no active stream, and has none afterwards.
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
                opened: run.opened,
                sent: run.sent,
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
    ends_open: u32,
    /// When the ends that are open so far have been set up.
    ready: f64,
    stage: StreamStage,
}

/// The stage of a stream. Its next event brings it to the next stage.
#[derive(Clone, Copy, Default)]
enum StreamStage {
    #[default]
    Opening,
    Flowing,
    /// All words are sent, the last ones are still on their way.
    Draining,
}

#[derive(Clone, Copy, Default)]
struct PortProgress {
    next: u32,
    open: u32,
    /// When the last opening is complete.
    idle: f64,
    /// The start for which the port has a wake-up event.
    wake: f64,
}

/// A time as sortable bits. Times are never negative and never NaN.
fn time_key(time: f64) -> u64 {
    time.to_bits()
}

struct FluidRun<'a> {
    phase: &'a FluidPhase<'a>,
    rates: &'a mut MaxMinShare,
    now: f64,
    streams: Vec<StreamState>,
    ports: Vec<PortProgress>,
    /// Predecessors that each group still waits for, and parts of each group that have not ended.
    waits: Vec<u32>,
    unfinished_parts: Vec<u32>,
    /// Ports to examine again.
    pending_ports: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Starts to come, and the ports that wait for them.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    changed: Vec<u32>,
    finished: usize,
    opened: Vec<[f64; 2]>,
    sent: Vec<f64>,
    finish_times: Vec<f64>,
    max_sharing: u32,
}

impl<'a> FluidRun<'a> {
    fn new(phase: &'a FluidPhase<'a>, rates: &'a mut MaxMinShare) -> Self {
        let (waits, unfinished_parts) =
            phase.precedence.map_or_else(Default::default, |precedence| {
                let groups = 0..precedence.routes.rows();
                (
                    groups.clone().map(|g| to_u32(precedence.predecessors.of(g).len())).collect(),
                    groups.map(|g| to_u32(precedence.routes.of(g).len())).collect(),
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
            ports: vec![PortProgress::default(); index(phase.lists.rows())],
            waits,
            unfinished_parts,
            pending_ports: Vec::new(),
            events: BinaryHeap::new(),
            wakes: BinaryHeap::new(),
            changed: Vec::new(),
            finished: 0,
            opened: vec![[0.0; 2]; phase.words.len()],
            sent: vec![0.0; phase.words.len()],
            finish_times: vec![0.0; phase.words.len()],
            max_sharing: 0,
            phase,
        }
    }

    fn open_all(&mut self) {
        self.pending_ports.extend(0..self.phase.lists.rows());
        self.process_pending_ports();
    }

    /// Opens the streams that can be opened at the pending ports.
    fn process_pending_ports(&mut self) {
        while let Some(number) = self.pending_ports.pop() {
            while let Some((stream, ends)) = self.openable(number) {
                let overhead = self.phase.overheads.get(index(stream)).copied().unwrap_or(0.0);
                let setup = self.phase.setup + overhead;
                let state = &mut self.streams[index(stream)];
                let port = &mut self.ports[index(number)];
                port.next += 1;
                port.open += ends;
                let mut open = port.idle.max(self.now);
                for end in 0..2 {
                    if self.phase.ports[index(stream)][end] == number {
                        self.opened[index(stream)][end] = open;
                        open += setup;
                    }
                }
                port.idle = port.idle.max(self.now) + f64::from(ends) * setup;
                state.ends_open += ends;
                state.ready = state.ready.max(port.idle);
                if state.ends_open == 2 {
                    let ready = state.ready;
                    self.schedule(stream, ready);
                }
            }
        }
    }

    /// The next stream in the list of a port if it can be opened, and how many of its ends are
    /// there.
    fn openable(&mut self, port: u32) -> Option<(u32, u32)> {
        let PortProgress { next, open, wake, .. } = self.ports[index(port)];
        let stream = *self.phase.lists.of(port).get(index(next))?;
        let [from, to] = self.phase.ports[index(stream)];
        let ends = if from == to { 2 } else { 1 };
        if open + ends > self.phase.streams.max(ends) {
            return None;
        }
        let start = self.phase.starts.get(index(stream)).copied().unwrap_or(0.0);
        if time_key(start) > self.end_of_instant() {
            if wake != start {
                self.ports[index(port)].wake = start;
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
        self.waits[index(precedence.group[index(stream)])] > 0
    }

    /// Replaces the event of a stream by one at `time`.
    fn schedule(&mut self, stream: u32, time: f64) {
        let state = &mut self.streams[index(stream)];
        state.event += 1;
        self.events.push(Reverse((time_key(time), stream, state.event)));
    }

    /// Updates the rates, and schedules the ends of the streams whose rate changed.
    fn settle(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        self.rates.settle(&mut changed);
        for &stream in &changed {
            let rate = self.rates.rate(stream);
            let state = &mut self.streams[index(stream)];
            if state.rate == rate {
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

    /// Advances to the next time at which something happens and processes all events of that time;
    /// `false` if there is none.
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

    /// The end of the time span that counts as simultaneous. Rates are rounded, so events of one
    /// time may be slightly apart.
    fn end_of_instant(&self) -> u64 {
        time_key(self.now + 1e-7 + self.now * 1e-12)
    }

    /// The next valid event, left in the heap.
    fn next_event(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((time, stream, event))) = self.events.peek() {
            if self.streams[index(stream)].event == event {
                return Some((time, stream));
            }
            self.events.pop();
        }
        None
    }

    /// Moves a stream to its next stage.
    fn advance(&mut self, stream: u32) {
        match self.streams[index(stream)].stage {
            StreamStage::Opening => self.start_flow(stream),
            StreamStage::Flowing => self.finish_sending(stream),
            StreamStage::Draining => self.finish(stream),
        }
    }

    fn start_flow(&mut self, stream: u32) {
        let state = &mut self.streams[index(stream)];
        state.stage = StreamStage::Flowing;
        state.since = self.now;
        self.rates.add(stream);
        let links = self.rates.path(stream).iter().filter(|&&r| r < self.phase.links);
        let most = links.map(|&link| self.rates.user_count(link)).max().unwrap_or(0);
        self.max_sharing = self.max_sharing.max(most);
    }

    /// All words of a stream are sent: its ports and links are free, its last words are on their
    /// way.
    fn finish_sending(&mut self, stream: u32) {
        self.streams[index(stream)].stage = StreamStage::Draining;
        self.sent[index(stream)] = self.now;
        self.rates.remove(stream);
        for port in self.phase.ports[index(stream)] {
            self.ports[index(port)].open -= 1;
            self.pending_ports.push(port);
        }
        match self.phase.latencies.get(index(stream)) {
            Some(&latency) => self.schedule(stream, self.now + latency),
            None => self.finish(stream),
        }
    }

    /// The last word of a stream is received.
    fn finish(&mut self, stream: u32) {
        self.finish_times[index(stream)] = self.now;
        self.finished += 1;
        if let Some(precedence) = self.phase.precedence {
            self.release(precedence, precedence.group[index(stream)]);
        }
    }

    /// A part of a connection has ended. After the last part its successors no longer wait for it.
    fn release(&mut self, precedence: &PhasePrecedence, group: u32) {
        self.unfinished_parts[index(group)] -= 1;
        if self.unfinished_parts[index(group)] > 0 {
            return;
        }
        for &after in precedence.successors.of(group) {
            let waits = &mut self.waits[index(after)];
            *waits = waits.saturating_sub(1);
            if *waits == 0 {
                for &stream in precedence.routes.of(after) {
                    self.pending_ports.push(self.phase.ports[index(stream)][0]);
                }
            }
        }
    }

    /// Releases streams that wait for one another in a cycle.
    fn ignore_precedence(&mut self) {
        self.waits.fill(0);
        self.open_all();
    }
}
