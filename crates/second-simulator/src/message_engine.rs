//! Messages in the network, and cells under both protocols (rules R2 and M1 to M16).

use std::collections::{BTreeSet, VecDeque};

use conset_ir::convert::index;
use conset_ir::{Duplex, Machine, Parameters, Protocol};

use crate::network::{Channel, Departure, Network};
use crate::routes::Routes;
use crate::wiring::Wiring;
use crate::{Failure, earliest, ended};

/// A message, and when what happened to it. Clocks are 0 until it has happened.
pub(crate) struct Message {
    pub(crate) source: usize,
    pub(crate) target: usize,
    /// Words without the additional ones.
    pub(crate) words: u64,
    /// L of M1.
    length: u64,
    /// T8, between its ends.
    overhead: u64,
    /// The channels of its route, without the launch channel.
    route: Vec<usize>,
    is_announced: bool,
    /// When the software of the source began.
    pub(crate) launched: u64,
    pub(crate) sent: u64,
    /// When the header arrived at the target.
    pub(crate) arrived: u64,
    /// When the software of the target began.
    pub(crate) accepted: u64,
    pub(crate) received: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Idle,
    InSoftware,
    Moving,
    Full,
    Leaving,
    Handed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Idle,
    InSoftware,
    Moving,
    Empty,
}

/// A cell (M7).
struct Cell {
    sender: Sender,
    /// The message that is sent, and the words of it that were put into the launch channel.
    sends: usize,
    put: u64,
    receiver: Receiver,
    /// The message that is received, and the channel that it is received from.
    receives: usize,
    receives_from: usize,
    pending: VecDeque<usize>,
    may_receive: usize,
    may_receive_from: Vec<usize>,
    /// Channels whose headers wait for the receiver.
    headers: VecDeque<usize>,
    announcements: Vec<usize>,
    /// When the last software ended (P3).
    free_since: u64,
}

/// What the driver is told (M13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Sent(usize),
    Received(usize),
    Copied(usize),
}

/// What becomes due at a clock, in the order of M12 step 7.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Launch(usize),
    Reception(usize),
    Copy(usize),
}

/// Who submits messages.
pub(crate) trait Driver {
    /// Clock 0.
    fn start(&mut self, engine: &mut Engine<'_>);
    /// An event has occurred.
    fn handle(&mut self, engine: &mut Engine<'_>, event: Event);
}

pub(crate) struct Engine<'a> {
    parameters: &'a Parameters,
    pub(crate) network: Network,
    pub(crate) messages: Vec<Message>,
    links: usize,
    pools: usize,
    cells: Vec<Cell>,
    /// Clocks between polls (P3), or 0.
    poll: u64,
    /// Per channel of a link: whether it is free, and the channels whose headers wait for it.
    free: Vec<bool>,
    waiting: Vec<VecDeque<usize>>,
    sends: Vec<(u64, usize)>,
    /// Receptions, with whether the word is the tail.
    receptions: Vec<(u64, (usize, bool))>,
    due: BTreeSet<(u64, Due)>,
    space_reports: Vec<usize>,
    tail_reports: Vec<usize>,
    arrival_reports: Vec<usize>,
    events: Vec<Event>,
    copied: Vec<usize>,
}

impl<'a> Engine<'a> {
    /// The machine with messages given by source, target and words.
    pub(crate) fn new(
        machine: &'a Machine,
        list: impl Iterator<Item = (usize, usize, u64)>,
    ) -> Result<Self, Failure> {
        let (parameters, wiring) = (machine.parameters(), Wiring::new(machine));
        let routes = Routes::new(machine, &wiring);
        let (links, pools) = (wiring.links.len(), routes.pools());
        let depth = index(parameters.channel_depth);
        let mut network = Network::new(depth, wiring.link_clocks.clone());
        for channel in 0..links * pools + wiring.agents {
            let fed_by = Some(channel / pools).filter(|&link| link < links);
            network.channels.push(Channel { fed_by, ..Channel::default() });
        }
        network.links.iter_mut().for_each(|link| link.clients = vec![None; pools]);
        let mut messages = Vec::new();
        for (source, target, words) in list {
            let route = routes.route(source, target).ok_or(Failure::NoRoute(source, target))?;
            messages.push(Message {
                source,
                target,
                words,
                length: (words + u64::from(parameters.message_extra_words)).max(1),
                overhead: wiring.overhead(source, target),
                route: route.into_iter().map(|(link, pool)| link * pools + pool).collect(),
                is_announced: false,
                launched: 0,
                sent: 0,
                arrived: 0,
                accepted: 0,
                received: 0,
            });
        }
        let cell = || Cell {
            sender: Sender::Idle,
            sends: 0,
            put: 0,
            receiver: Receiver::Idle,
            receives: 0,
            receives_from: 0,
            pending: VecDeque::new(),
            may_receive: 0,
            may_receive_from: Vec::new(),
            headers: VecDeque::new(),
            announcements: Vec::new(),
            free_since: 0,
        };
        Ok(Self {
            parameters,
            network,
            messages,
            links,
            pools,
            cells: (0..wiring.agents).map(|_| cell()).collect(),
            poll: 0,
            free: vec![true; links * pools],
            waiting: vec![VecDeque::new(); links * pools],
            sends: Vec::new(),
            receptions: Vec::new(),
            due: BTreeSet::new(),
            space_reports: Vec::new(),
            tail_reports: Vec::new(),
            arrival_reports: Vec::new(),
            events: Vec::new(),
            copied: Vec::new(),
        })
    }

    /// M12 and M13, until nothing more happens. Returns the clock.
    pub(crate) fn run(&mut self, driver: &mut dyn Driver) -> u64 {
        driver.start(self);
        self.drive(driver);
        while self.advance() {
            self.drive(driver);
        }
        self.network.now
    }

    /// Settles the clock, and lets the driver handle what has occurred in it (M13).
    fn drive(&mut self, driver: &mut dyn Driver) {
        self.settle();
        loop {
            let mut events = std::mem::take(&mut self.events);
            if events.is_empty() {
                events = std::mem::take(&mut self.copied).into_iter().map(Event::Copied).collect();
            }
            if events.is_empty() {
                return;
            }
            events.into_iter().for_each(|event| driver.handle(self, event));
            self.settle();
        }
    }

    pub(crate) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn is_rendezvous(&self) -> bool {
        self.parameters.protocol == Protocol::Rendezvous
    }

    fn is_half_duplex(&self) -> bool {
        self.parameters.duplex == Duplex::Half
    }

    /// Lets cells poll (P3).
    pub(crate) fn poll(&mut self, clocks: u64) {
        self.poll = clocks;
    }

    /// The next poll of a cell from now on.
    fn next_poll(&self, cell: usize) -> u64 {
        let mut clock = self.cells[cell].free_since;
        while self.poll > 0 && clock < self.network.now {
            clock += self.poll;
        }
        clock.max(self.network.now)
    }

    /// Lets a cell receive that many messages.
    pub(crate) fn may_receive(&mut self, cell: usize, count: usize) {
        self.cells[cell].may_receive = count;
    }

    /// Lets a cell receive a message from this source (rendezvous).
    pub(crate) fn may_receive_from(&mut self, cell: usize, source: usize) {
        self.cells[cell].may_receive_from.push(source);
        self.check_processor(cell);
    }

    /// Appends a message to the pending ones of its source.
    pub(crate) fn submit(&mut self, message: usize) {
        let source = self.messages[message].source;
        self.cells[source].pending.push_back(message);
        self.check_processor(source);
    }

    /// Whether the sender of a cell is idle and no message is pending there.
    pub(crate) fn sends_nothing(&self, cell: usize) -> bool {
        self.cells[cell].sender == Sender::Idle && self.cells[cell].pending.is_empty()
    }

    /// The copy of a message ends after this time (S4).
    pub(crate) fn copy(&mut self, message: usize, clocks: u64) {
        self.due.insert((self.network.now + clocks, Due::Copy(message)));
    }

    fn launch_channel(&self, cell: usize) -> usize {
        self.links * self.pools + cell
    }

    fn first_word(&self, channel: usize) -> (usize, u64) {
        self.network.channels[channel].words[0]
    }

    fn is_tail(&self, word: (usize, u64)) -> bool {
        word.1 + 1 == self.messages[word.0].length
    }

    /// M3.
    fn serve_link(&mut self, link: usize) {
        let Some(departure) = self.network.serve(link) else { return };
        self.report_space(&departure);
        if self.is_tail(departure.word) {
            self.tail_reports.push(departure.channel);
        }
    }

    /// N5 step 4 as far as it concerns senders.
    fn report_space(&mut self, departure: &Departure) {
        if departure.agent_has_space {
            let cell = departure.channel - self.links * self.pools;
            if self.cells[cell].sender == Sender::Full {
                self.space_reports.push(departure.channel);
            }
        }
    }

    /// M4.
    fn arrive(&mut self, channel: usize) {
        if self.network.arrive(channel) {
            self.arrival_reports.push(channel);
        }
    }

    /// M5.
    fn route_header(&mut self, channel: usize) {
        let number = self.first_word(channel).0;
        let route = &self.messages[number].route;
        let hop = route.iter().position(|&c| c == channel).map_or(0, |hop| hop + 1);
        if let Some(&next) = route.get(hop) {
            match self.free[next] {
                true => self.acquire(channel, next),
                false => self.waiting[next].push_back(channel),
            }
            return;
        }
        self.messages[number].arrived = self.network.now;
        let target = self.messages[number].target;
        if self.is_rendezvous() {
            let at = &mut self.cells[target];
            (at.receives, at.receives_from) = (number, channel);
            self.receive_word(target);
        } else {
            self.cells[target].headers.push_back(channel);
            self.check_processor(target);
        }
    }

    fn acquire(&mut self, channel: usize, next: usize) {
        self.free[next] = false;
        self.network.channels[channel].next = Some(next);
        self.network.channels[next].before = Some(channel);
        let link = next / self.pools;
        self.network.links[link].clients[next % self.pools] = Some(channel);
        self.network.queue(link);
    }

    /// M6: the tail of a message has left a channel.
    fn release(&mut self, channel: usize) {
        if let Some(next) = self.network.channels[channel].next.take() {
            self.network.channels[next].before = None;
            self.network.links[next / self.pools].clients[next % self.pools] = None;
        }
        if let Some(cell) = channel.checked_sub(self.links * self.pools) {
            if self.is_rendezvous() {
                self.cells[cell].sender = Sender::Handed;
            } else {
                self.end_of_sending(cell);
                self.check_processor(cell);
            }
            return;
        }
        self.free[channel] = true;
        if let Some(first) = self.waiting[channel].pop_front() {
            self.acquire(first, channel);
        }
    }

    fn end_of_sending(&mut self, cell: usize) {
        let number = self.cells[cell].sends;
        self.cells[cell].sender = Sender::Idle;
        self.messages[number].sent = self.network.now;
        self.events.push(Event::Sent(number));
    }

    /// M9 or M14.
    fn check_processor(&mut self, cell: usize) {
        if self.is_rendezvous() {
            return self.announce(cell);
        }
        let half = self.is_half_duplex();
        let at = &self.cells[cell];
        let can_launch = match at.receiver {
            Receiver::Idle => true,
            Receiver::InSoftware => false,
            Receiver::Moving | Receiver::Empty => !half,
        };
        if at.sender == Sender::Idle && can_launch && !at.pending.is_empty() {
            let number = self.cells[cell].pending.pop_front().expect("it is not empty");
            let message = &self.messages[number];
            let copied = if half { message.words } else { 0 };
            let clocks = u64::from(self.parameters.c_send)
                + message.overhead
                + copied * u64::from(self.parameters.link_clocks_per_word);
            self.launch(number, clocks);
        }
        let at = &mut self.cells[cell];
        let can_receive = at.receiver == Receiver::Idle && at.sender != Sender::InSoftware;
        if can_receive && at.may_receive > 0 && !at.headers.is_empty() {
            at.receives_from = at.headers.pop_front().expect("it is not empty");
            at.may_receive -= 1;
            at.receiver = Receiver::InSoftware;
            let (channel, now) = (at.receives_from, self.network.now);
            let number = self.first_word(channel).0;
            self.cells[cell].receives = number;
            self.messages[number].accepted = now;
            let clocks = u64::from(self.parameters.c_receive) + self.messages[number].overhead;
            let found = self.next_poll(cell);
            self.due.insert((found + clocks, Due::Reception(cell)));
        }
    }

    /// The software of a launch begins.
    fn launch(&mut self, number: usize, clocks: u64) {
        let (source, now) = (self.messages[number].source, self.network.now);
        self.messages[number].launched = now;
        let at = &mut self.cells[source];
        (at.sender, at.sends, at.put) = (Sender::InSoftware, number, 0);
        self.due.insert((now + clocks, Due::Launch(source)));
    }

    /// M14.
    fn announce(&mut self, cell: usize) {
        let first = self.cells[cell].pending.front().copied();
        if let Some(number) = first.filter(|&number| !self.messages[number].is_announced) {
            self.messages[number].is_announced = true;
            let target = self.messages[number].target;
            self.cells[target].announcements.push(number);
        }
        self.meet(cell);
        if let Some(number) = first {
            self.meet(self.messages[number].target);
        }
    }

    /// M15.
    fn meet(&mut self, target: usize) {
        let half = self.is_half_duplex();
        let is_idle = |cell: &Cell, side: bool| match side {
            true => cell.sender == Sender::Idle && (!half || cell.receiver == Receiver::Idle),
            false => cell.receiver == Receiver::Idle && (!half || cell.sender == Sender::Idle),
        };
        let at = &self.cells[target];
        if !is_idle(at, false) {
            return;
        }
        let can_come = |&&number: &&usize| {
            let source = self.messages[number].source;
            let may = at.may_receive > 0 || at.may_receive_from.contains(&source);
            may && is_idle(&self.cells[source], true)
        };
        let Some(&number) = at.announcements.iter().find(can_come) else { return };
        let source = self.messages[number].source;
        self.cells[source].pending.retain(|&m| m != number);
        let at = &mut self.cells[target];
        at.announcements.retain(|&m| m != number);
        match at.may_receive_from.iter().position(|&s| s == source) {
            Some(row) => drop(at.may_receive_from.remove(row)),
            None => at.may_receive -= 1,
        }
        at.receiver = Receiver::InSoftware;
        self.messages[number].accepted = self.network.now;
        let clocks = u64::from(self.parameters.c_send)
            + u64::from(self.parameters.c_receive)
            + 2 * self.messages[number].overhead;
        self.launch(number, clocks);
    }

    /// M10.
    fn send_word(&mut self, cell: usize) {
        let (number, put) = (self.cells[cell].sends, self.cells[cell].put);
        let channel = self.launch_channel(cell);
        let copied = self.is_half_duplex() && !self.is_rendezvous();
        let clocks = match copied {
            true => self.parameters.link_clocks_per_word,
            false => self.parameters.access_clocks_per_word,
        };
        self.cells[cell].sender = if put == self.messages[number].length {
            Sender::Leaving
        } else if self.network.has_space(channel) {
            self.network.put(channel, (number, put));
            self.cells[cell].put += 1;
            self.sends.push((self.network.now + u64::from(clocks), cell));
            Sender::Moving
        } else {
            Sender::Full
        };
    }

    /// M11.
    fn receive_word(&mut self, cell: usize) {
        let channel = self.cells[cell].receives_from;
        if self.network.channels[channel].arrived == 0 {
            self.cells[cell].receiver = Receiver::Empty;
            return;
        }
        self.cells[cell].receiver = Receiver::Moving;
        let departure = self.network.take(channel);
        self.report_space(&departure);
        let is_tail = self.is_tail(departure.word);
        let clocks = u64::from(self.parameters.access_clocks_per_word);
        self.receptions.push((self.network.now + clocks, (cell, is_tail)));
        if is_tail {
            self.release(channel);
        }
    }

    /// The tail of a message was received (M12 step 3, M15).
    fn end_of_reception(&mut self, cell: usize) {
        let number = self.cells[cell].receives;
        self.cells[cell].receiver = Receiver::Idle;
        self.messages[number].received = self.network.now;
        self.events.push(Event::Received(number));
        if self.is_rendezvous() {
            let source = self.messages[number].source;
            self.end_of_sending(source);
            self.check_processor(cell);
            self.check_processor(source);
        } else {
            self.check_processor(cell);
        }
    }

    /// The second part of M12.
    fn settle(&mut self) {
        loop {
            while let Some(link) = self.network.stack.pop() {
                self.serve_link(link);
            }
            while let Some(channel) = self.space_reports.pop() {
                self.send_word(channel - self.links * self.pools);
            }
            for channel in std::mem::take(&mut self.tail_reports) {
                self.release(channel);
            }
            for channel in std::mem::take(&mut self.arrival_reports) {
                self.handle_arrival(channel);
            }
            let reports = self.space_reports.len() + self.arrival_reports.len();
            if self.network.stack.len() + self.tail_reports.len() + reports == 0 {
                return;
            }
        }
    }

    fn handle_arrival(&mut self, channel: usize) {
        if self.network.channels[channel].arrived == 0 {
            return;
        }
        let (number, word) = self.first_word(channel);
        let target = self.messages[number].target;
        if word == 0 {
            self.route_header(channel);
        } else if self.cells[target].receiver == Receiver::Empty {
            assert_eq!(self.cells[target].receives_from, channel, "another message is received");
            self.receive_word(target);
        }
    }

    /// M12. Returns false if nothing can happen any more.
    fn advance(&mut self) -> bool {
        let software = self.due.first().map(|due| due.0);
        let ends =
            [self.network.earliest(), earliest(&self.sends), earliest(&self.receptions), software];
        let Some(now) = ends.into_iter().flatten().min() else { return false };
        self.network.now = now;
        let transfers = self.network.ended_transfers();
        let sends = ended(&mut self.sends, now);
        let receptions = ended(&mut self.receptions, now);
        for &(_, channel) in &transfers {
            self.arrive(channel);
        }
        for &cell in &sends {
            self.arrive(self.launch_channel(cell));
        }
        for &(cell, is_tail) in &receptions {
            if is_tail {
                self.end_of_reception(cell);
            }
        }
        for &(link, _) in &transfers {
            self.serve_link(link);
        }
        for &cell in &sends {
            self.send_word(cell);
        }
        for &(cell, _) in &receptions {
            if self.cells[cell].receiver == Receiver::Moving {
                self.receive_word(cell);
            }
        }
        while let Some(&first) = self.due.first().filter(|due| due.0 == now) {
            self.due.remove(&first);
            match first.1 {
                Due::Launch(cell) => {
                    self.cells[cell].free_since = now;
                    self.send_word(cell);
                    self.check_processor(cell);
                }
                Due::Reception(cell) => {
                    self.cells[cell].free_since = now;
                    self.receive_word(cell);
                    self.check_processor(cell);
                }
                Due::Copy(message) => self.copied.push(message),
            }
        }
        true
    }
}
