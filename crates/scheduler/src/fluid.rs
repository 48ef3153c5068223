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
//!   both its ends are open, at the max-min fair rate ([`crate::fair`]) under these capacities:
//!   a link one word per `link_clocks_per_word`, a port one word per `access_clocks_per_word`.
//! * A stream frees its ports when its words are sent. It is over when the last of them is
//!   received, its *flight* later. Flights are given or are no clocks.
//! * The sender of a connection that comes after another opens it only when all parts of the
//!   other in this phase are over. A port waits for that with what comes later in its list.
//!
//! Events are handled in the order of time, those of one moment together; between events rates
//! are constant. There are at most three events per stream and one per change of a rate.
//!
//! # What this module does not do
//!
//! A queue holds nothing, and the receiver's port goes on as early as the sender's: it meets the
//! words of its next stream, which were on their way meanwhile. A port that opens a stream while
//! others flow through it (`streams` above 1) does not hold them up, as a real one does. Streams that wait for one another in
//! a ring, which no verified timetable has, are opened regardless of order, so that every phase
//! comes to an end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::Lists;

use crate::fair::Fair;
use crate::order::PhaseOrder;

/// A phase to run: streams, resources and ports numbered from 0 within the phase.
pub(crate) struct Phase<'a> {
    /// Words of each stream.
    pub(crate) words: Vec<u32>,
    /// Ports of each stream: of its sender, of its receiver.
    pub(crate) ports: Vec<[u32; 2]>,
    /// The streams of each port in the order in which it opens them.
    pub(crate) lists: Lists,
    /// The order inside the phase.
    pub(crate) order: Option<&'a PhaseOrder>,
    /// Clocks from when the last word of each stream is sent until it is received; of a set
    /// without order empty, which is no clocks.
    pub(crate) flights: Vec<f64>,
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
pub(crate) struct Outcome {
    /// Clocks until the last word arrived.
    pub(crate) clocks: f64,
    /// When each stream was over: its last word received.
    pub(crate) ends: Vec<f64>,
    /// The most streams that flowed over one link at a time.
    pub(crate) sharing: u32,
}

/// Runs a phase. `fair` has no active stream and is left so.
pub(crate) fn run(phase: &Phase<'_>, fair: &mut Fair) -> Outcome {
    let mut run = Run::new(phase, fair);
    run.open_all();
    loop {
        run.settle();
        if run.step() {
            continue;
        }
        if run.over == phase.words.len() {
            return Outcome { clocks: run.now, ends: run.ends, sharing: run.sharing };
        }
        run.give_up_order();
    }
}

#[derive(Clone, Copy, Default)]
struct Stream {
    /// Words left at time `since`.
    left: f64,
    since: f64,
    rate: f64,
    /// Only the event with this number is valid.
    event: u32,
    ends_open: u8,
    /// When the ends opened so far have been set up.
    ready: f64,
    state: State,
}

/// How far a stream is. Its next event brings it to the next state.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Opening,
    Flowing,
    /// All words are sent, the last of them are on their way.
    Landing,
}

#[derive(Clone, Copy, Default)]
struct Port {
    next: u32,
    open: u32,
    /// When the last opening is through.
    idle: f64,
    /// The start for which the port was last told to look again.
    wake: f64,
}

/// A moment as sortable bits: times are never negative and never NaN.
fn moment(time: f64) -> u64 {
    time.to_bits()
}

struct Run<'a> {
    phase: &'a Phase<'a>,
    fair: &'a mut Fair,
    now: f64,
    streams: Vec<Stream>,
    ports: Vec<Port>,
    /// Connections that each group still waits for, and parts of it that are not over.
    waits: Vec<u32>,
    unfinished: Vec<u32>,
    /// Ports to look at again.
    stirred: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Starts to come, and the ports that wait for them.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    changed: Vec<u32>,
    over: usize,
    ends: Vec<f64>,
    sharing: u32,
}

impl<'a> Run<'a> {
    fn new(phase: &'a Phase<'a>, fair: &'a mut Fair) -> Self {
        let (waits, unfinished) = phase.order.map_or_else(Default::default, |order| {
            let groups = 0..order.routes.rows();
            (
                groups.clone().map(|g| order.before.of(g).len() as u32).collect(),
                groups.map(|g| order.routes.of(g).len() as u32).collect(),
            )
        });
        Self {
            fair,
            now: 0.0,
            streams: phase
                .words
                .iter()
                .map(|&words| Stream { left: f64::from(words), ..Stream::default() })
                .collect(),
            ports: vec![Port::default(); phase.lists.rows() as usize],
            waits,
            unfinished,
            stirred: Vec::new(),
            events: BinaryHeap::new(),
            wakes: BinaryHeap::new(),
            changed: Vec::new(),
            over: 0,
            ends: vec![0.0; phase.words.len()],
            sharing: 0,
            phase,
        }
    }

    fn open_all(&mut self) {
        self.stirred.extend(0..self.phase.lists.rows());
        self.open_stirred();
    }

    /// Opens what can be opened at the ports that something happened to.
    fn open_stirred(&mut self) {
        while let Some(port) = self.stirred.pop() {
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
        let Port { next, open, wake, .. } = self.ports[port as usize];
        let stream = *self.phase.lists.of(port).get(next as usize)?;
        let [from, to] = self.phase.ports[stream as usize];
        let ends = if from == to { 2 } else { 1 };
        if open + ends > self.phase.streams.max(ends) {
            return None;
        }
        let start = self.phase.starts.get(stream as usize).copied().unwrap_or(0.0);
        if moment(start) > self.end_of_moment() {
            if wake != start {
                self.ports[port as usize].wake = start;
                self.wakes.push(Reverse((moment(start), port)));
            }
            return None;
        }
        match self.phase.order {
            Some(order) if port == from && self.waits_for(order, stream) => None,
            _ => Some((stream, ends)),
        }
    }

    fn waits_for(&self, order: &PhaseOrder, stream: u32) -> bool {
        self.waits[order.group[stream as usize] as usize] > 0
    }

    /// Replaces a stream's event by one at `time`.
    fn schedule(&mut self, stream: u32, time: f64) {
        let state = &mut self.streams[stream as usize];
        state.event += 1;
        self.events.push(Reverse((moment(time), stream, state.event)));
    }

    /// Makes rates fair and plans the ends of the streams whose rate changed.
    fn settle(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        self.fair.settle(&mut changed);
        for &stream in &changed {
            let rate = self.fair.rate(stream);
            let state = &mut self.streams[stream as usize];
            if state.state != State::Flowing || state.rate == rate {
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
        let end_of_moment = self.end_of_moment();
        while let Some((time, stream)) = event {
            if time > end_of_moment {
                break;
            }
            self.events.pop();
            self.happen(stream);
            event = self.next_event();
        }
        while let Some(&Reverse((time, port))) = self.wakes.peek()
            && time <= end_of_moment
        {
            self.wakes.pop();
            self.stirred.push(port);
        }
        self.open_stirred();
        true
    }

    /// Rates are rounded, so what should be one moment can be several very close ones.
    fn end_of_moment(&self) -> u64 {
        moment(self.now + 1e-7 + self.now * 1e-12)
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
    fn happen(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        state.event += 1;
        match state.state {
            State::Opening => self.begin(stream),
            State::Flowing => self.sent(stream),
            State::Landing => self.end(stream),
        }
    }

    fn begin(&mut self, stream: u32) {
        let state = &mut self.streams[stream as usize];
        state.state = State::Flowing;
        state.since = self.now;
        self.fair.add(stream);
        let links = self.fair.way(stream).iter().filter(|&&r| r < self.phase.links);
        let most = links.map(|&link| self.fair.sharing(link)).max().unwrap_or(0);
        self.sharing = self.sharing.max(most);
    }

    /// All words of a stream are sent: ports and links are free, its last words are on their way.
    fn sent(&mut self, stream: u32) {
        self.streams[stream as usize].state = State::Landing;
        self.fair.remove(stream);
        for port in self.phase.ports[stream as usize] {
            self.ports[port as usize].open -= 1;
            self.stirred.push(port);
        }
        match self.phase.flights.get(stream as usize) {
            Some(&flight) => self.schedule(stream, self.now + flight),
            None => self.end(stream),
        }
    }

    /// The last word of a stream is received.
    fn end(&mut self, stream: u32) {
        self.ends[stream as usize] = self.now;
        self.over += 1;
        if let Some(order) = self.phase.order {
            self.release(order, order.group[stream as usize]);
        }
    }

    /// A part of a connection is over: whoever waited for the last part need not any more.
    fn release(&mut self, order: &PhaseOrder, group: u32) {
        self.unfinished[group as usize] -= 1;
        if self.unfinished[group as usize] > 0 {
            return;
        }
        for &after in order.after.of(group) {
            let waits = &mut self.waits[after as usize];
            *waits = waits.saturating_sub(1);
            if *waits == 0 {
                for &stream in order.routes.of(after) {
                    self.stirred.push(self.phase.ports[stream as usize][0]);
                }
            }
        }
    }

    /// Lets streams that wait for one another in a ring go.
    fn give_up_order(&mut self) {
        self.waits.fill(0);
        self.open_all();
    }
}
