//! The time of a step plan by rendezvous: a simulation of messages, whose links are held as by
//! wormholes.
//!
//! A message starts when it is next in the lists of both its cells and what it waits for was
//! received; then `c_send + c_receive` clocks of software run at both. It takes all links of its
//! route at the first clock at which all are free, and holds them until its tail has arrived:
//! `hops x link + words x access` later. Until then both cells are busy, and the target until it has
//! copied the words that it passes on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_u64};
use conset_ir::{Lists, Protocol, StepWaits, Steps};

use super::links::LinkQueues;
use super::{MessageCosts, MessageRoute, MessageTimes};

/// When each message is sent and received.
pub(super) fn times(steps: &Steps, route: &mut MessageRoute<'_>) -> Vec<MessageTimes> {
    let mut run = RendezvousRun::new(steps);
    run.run(route);
    run.times
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A message gives back its links and its source.
    End,
    /// The target has copied what it passes on.
    Copied,
    /// The software of a message has run.
    Launch,
}

struct RendezvousRun<'a> {
    steps: &'a Steps,
    costs: MessageCosts,
    lists: Lists<u32>,
    /// Per cell, the number of operations of its list that are complete.
    done: Vec<u32>,
    waits: StepWaits<'a>,
    links: LinkQueues,
    events: BinaryHeap<Reverse<(u64, Event, u32)>>,
    now: u64,
    times: Vec<MessageTimes>,
}

impl<'a> RendezvousRun<'a> {
    fn new(steps: &'a Steps) -> Self {
        let machine = steps.machine();
        Self {
            steps,
            costs: MessageCosts::new(machine, Protocol::Rendezvous),
            lists: steps.lists(),
            done: vec![0; machine.agent_count()],
            waits: StepWaits::new(steps),
            links: LinkQueues::new(machine.link_count()),
            events: BinaryHeap::new(),
            now: 0,
            times: vec![MessageTimes::default(); steps.messages().len()],
        }
    }

    fn run(&mut self, route: &mut MessageRoute<'_>) {
        for cell in 0..self.lists.rows() {
            if let Some(row) = self.next_of(cell)
                && self.steps.messages().get(index(row)).source.0 == cell
            {
                self.start(row);
            }
        }
        let (mut ready, mut retried) = (Vec::new(), Vec::new());
        while let Some(Reverse((now, event, row))) = self.events.pop() {
            self.now = now;
            match event {
                Event::Launch => self.launch(row, route),
                Event::End => {
                    let times = &mut self.times[index(row)];
                    (times.sent, times.received) = (now, now);
                    self.links.release(row, &mut retried);
                    for row in retried.drain(..) {
                        self.launch(row, route);
                    }
                    let copied = now + self.steps.copy_clocks(index(row));
                    self.events.push(Reverse((copied, Event::Copied, row)));
                    let source = self.steps.messages().get(index(row)).source;
                    self.end_operation(source.0);
                }
                Event::Copied => {
                    self.waits.received(row, &mut ready);
                    let target = self.steps.messages().get(index(row)).target;
                    let started = self.end_operation(target.0);
                    for row in std::mem::take(&mut ready) {
                        if Some(row) != started {
                            self.start(row);
                        }
                    }
                }
            }
        }
    }

    /// Ends the operation of a cell, and starts its next message, which is returned.
    fn end_operation(&mut self, cell: u32) -> Option<u32> {
        self.done[index(cell)] += 1;
        let next = self.next_of(cell);
        next.into_iter().for_each(|row| self.start(row));
        next
    }

    /// The next message of a cell's list.
    fn next_of(&self, cell: u32) -> Option<u32> {
        self.lists.of(cell).get(index(self.done[index(cell)])).copied()
    }

    /// Starts a message if it is next at both its cells and waits for nothing.
    fn start(&mut self, row: u32) {
        let message = self.steps.messages().get(index(row));
        let next = [message.source, message.target].map(|cell| self.next_of(cell.0));
        if next == [Some(row); 2] && self.waits.is_ready(row) {
            let times = &mut self.times[index(row)];
            (times.send_open, times.receive_open) = (self.now, self.now);
            let software = self.costs.software_of(message.source, message.target);
            self.events.push(Reverse((self.now + software, Event::Launch, row)));
        }
    }

    /// Takes the links of a message, or waits for the first one that is in use.
    fn launch(&mut self, row: u32, route: &mut MessageRoute<'_>) {
        let message = self.steps.messages().get(index(row));
        if let Some(hops) = self.links.take(row, message.source, message.target, route) {
            let way = to_u64(hops) * self.costs.link;
            self.times[index(row)].arrived = self.now + way;
            let words = self.costs.words_of(message.source, message.target, message.words());
            let end = self.now + way + words;
            self.events.push(Reverse((end, Event::End, row)));
        }
    }
}
