//! The time of a step plan with standing messages, as the emulated fabric passes them: a simulation
//! of cells, which launch in the order of their lists and receive in the order of arrival.
//!
//! * **Launch:** the processor of the cell runs `c_send` clocks (with half duplex it also copies the
//!   words, at the rate of a link); then the words leave in the background. The next launch waits
//!   until the tail has left, and for what it passes on.
//! * **Way:** the header takes one channel of its route after the other, and waits for those that other
//!   messages hold ([`super::worms`]).
//! * **Reception:** `c_receive` clocks of the processor, then the words; with half duplex the
//!   processor takes the words itself. If a cell can do either, a launch is first. Until then the
//!   message stands in the network.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use conset_ir::convert::index;
use conset_ir::{CellId, Lists, Protocol, StepWaits, Steps};

use super::worms::{Release, Worms};
use super::{MessageCosts, MessageRoute, MessageTimes};

/// When each message is sent and received.
pub(super) fn times(steps: &Steps, route: &mut MessageRoute<'_>) -> Vec<MessageTimes> {
    let mut run = StandingRun::new(steps);
    for cell in 0..run.sends.rows() {
        run.advance(cell);
    }
    run.run(route);
    run.times
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The last word of a message was received.
    End,
    /// The target has copied what it passes on.
    Copied,
    /// The tail of a message left its source.
    Left,
    /// A processor is free.
    Free,
    /// A channel is given to the first header that waits for it.
    Release,
    /// The header of a message has arrived in the next channel of its route.
    Header,
    /// The header of a message enters the launch queue.
    Launch,
}

#[derive(Clone, Debug, Default)]
struct CellState {
    /// Messages of its list that were launched.
    launched: u32,
    /// When the processor is free.
    processor: u64,
    sending: bool,
    receiving: bool,
    arrivals: VecDeque<u32>,
}

struct StandingRun<'a> {
    steps: &'a Steps,
    costs: MessageCosts,
    sends: Lists<u32>,
    waits: StepWaits<'a>,
    cells: Vec<CellState>,
    worms: Worms,
    /// What messages give back, until there are events for it.
    released: Vec<(u64, Release)>,
    events: BinaryHeap<Reverse<(u64, Event, u32)>>,
    now: u64,
    times: Vec<MessageTimes>,
}

impl<'a> StandingRun<'a> {
    fn new(steps: &'a Steps) -> Self {
        let machine = steps.machine();
        let costs = MessageCosts::new(machine, Protocol::Standing);
        let sources = steps.messages().iter().zip(0..).map(|(m, row)| (m.source.0, row));
        Self {
            steps,
            costs,
            sends: Lists::new(machine.agent_count(), sources),
            waits: StepWaits::new(steps),
            cells: vec![CellState::default(); machine.agent_count()],
            worms: Worms::new(machine, costs, steps.messages().len()),
            released: Vec::new(),
            events: BinaryHeap::new(),
            now: 0,
            times: vec![MessageTimes::default(); steps.messages().len()],
        }
    }

    fn run(&mut self, route: &mut MessageRoute<'_>) {
        let (mut ready, mut links) = (Vec::new(), Vec::new());
        while let Some(Reverse((now, event, of))) = self.events.pop() {
            self.now = now;
            match event {
                Event::Free => self.advance(of),
                Event::Launch => {
                    let [source, target] = self.ends(of);
                    links.clear();
                    route(source, target, &mut links);
                    let words = self.words(of);
                    let rate = self.costs.rate_of(source, target);
                    self.worms.launch(of, (words, rate), self.steps.machine(), &links);
                    self.move_header(of);
                }
                Event::Header => self.move_header(of),
                Event::Release => {
                    let taken_by = self.worms.release(of, now, &mut self.released);
                    if let Some(row) = taken_by {
                        self.moved(row);
                    }
                }
                Event::Left => {
                    self.times[index(of)].sent = now;
                    let source = self.ends(of)[0];
                    self.cells[source.index()].sending = false;
                    self.advance(source.0);
                }
                Event::End => {
                    self.times[index(of)].received = now;
                    let target = self.ends(of)[1];
                    self.cells[target.index()].receiving = false;
                    self.advance(target.0);
                    let copied = now + self.steps.copy_clocks(index(of));
                    self.at(copied, Event::Copied, of);
                }
                Event::Copied => {
                    self.waits.received(of, &mut ready);
                    for row in std::mem::take(&mut ready) {
                        let source = self.ends(row)[0];
                        self.advance(source.0);
                    }
                }
            }
        }
    }

    fn ends(&self, row: u32) -> [CellId; 2] {
        let message = self.steps.messages().get(index(row));
        [message.source, message.target]
    }

    fn words(&self, row: u32) -> u64 {
        self.steps.messages().get(index(row)).words()
    }

    fn overhead(&self, row: u32) -> u64 {
        let [source, target] = self.ends(row);
        self.costs.overhead(source, target)
    }

    fn at(&mut self, clock: u64, event: Event, of: u32) {
        self.events.push(Reverse((clock, event, of)));
    }

    /// Starts what a cell can start now: a launch, else a reception.
    fn advance(&mut self, cell: u32) {
        let (now, costs) = (self.now, self.costs);
        let state = &mut self.cells[index(cell)];
        if state.processor > now {
            return;
        }
        let next = self.sends.of(cell).get(index(state.launched)).copied();
        if let Some(row) = next.filter(|&row| !state.sending && self.waits.is_ready(row)) {
            state.launched += 1;
            state.sending = true;
            self.times[index(row)].send_open = now;
            let (words, overhead) = (self.words(row), self.overhead(row));
            let copies = if costs.half_duplex { words * costs.link } else { 0 };
            let free = now + costs.send + overhead + copies;
            self.cells[index(cell)].processor = free;
            self.at(free, Event::Free, cell);
            self.at(free + costs.access, Event::Launch, row);
        } else if !state.receiving
            && let Some(row) = state.arrivals.pop_front()
        {
            state.receiving = true;
            self.times[index(row)].receive_open = now;
            let software = costs.receive + self.overhead(row);
            let end = self.worms.receive(row, now + software, &mut self.released);
            self.schedule_releases(row);
            let state = &mut self.cells[index(cell)];
            state.processor = if costs.half_duplex { end } else { now + software };
            let free = state.processor;
            self.at(end, Event::End, row);
            self.at(free, Event::Free, cell);
        }
    }

    /// Moves a header on that is in a channel of its route.
    fn move_header(&mut self, row: u32) {
        match self.worms.advance(row, self.now, &mut self.released) {
            Some(true) => self.moved(row),
            Some(false) => self.schedule_releases(row),
            None => {
                self.times[index(row)].arrived = self.now;
                let target = self.ends(row)[1];
                self.cells[target.index()].arrivals.push_back(row);
                self.advance(target.0);
            }
        }
    }

    /// A header has taken the next channel.
    fn moved(&mut self, row: u32) {
        self.schedule_releases(row);
        self.at(self.now + self.costs.link, Event::Header, row);
    }

    fn schedule_releases(&mut self, row: u32) {
        let mut released = std::mem::take(&mut self.released);
        for (clock, release) in released.drain(..) {
            match release {
                Release::Source => self.at(clock, Event::Left, row),
                Release::Channel(channel) => self.at(clock, Event::Release, channel),
            }
        }
        self.released = released;
    }
}
