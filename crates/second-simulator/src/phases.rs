//! Agents, and the exchange of a set in phases (rules A1 to A7, C1 to C3, X1 to X5).

use std::collections::{BTreeSet, HashMap, VecDeque};

use conset_ir::convert::index;
use conset_ir::{ConnectionSet, Direction, Duplex, Feed, Image, Parameters, PhaseImage, Sink};

use crate::network::{Channel, Departure, Network, State};
use crate::wiring::Wiring;
use crate::{Failure, earliest, ended};

/// The exchange of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRun {
    /// Clocks of all phases and switches.
    pub clocks: u64,
    /// The phases.
    pub phases: Vec<PhaseRun>,
    /// The words that each connection delivered, by their position in the connection, in the order
    /// in which they were received.
    pub delivered: Vec<Vec<u64>>,
}

/// The execution of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRun {
    /// Clocks of the context switch.
    pub switch: u64,
    /// Clocks from the end of the switch to the last close clock.
    pub clocks: u64,
    /// The operations, in the order in which they finished.
    pub operations: Vec<OperationRun>,
    /// Words over each link.
    pub link_words: Vec<u64>,
}

/// The execution of an operation. Clocks are counted from the beginning of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationRun {
    /// The cell.
    pub cell: usize,
    /// The direction.
    pub direction: Direction,
    /// The connection.
    pub connection: usize,
    /// The position of its first word in the connection.
    pub first_word: u64,
    /// The words.
    pub words: u64,
    /// The slot that the stream took.
    pub slot: usize,
    /// The open clock (A3).
    pub open: u64,
    /// The close clock (A6).
    pub close: u64,
}

/// Simulates the exchange of set number `row` of an image with phases.
///
/// # Errors
/// [`Failure::Stuck`], which a valid image never is.
///
/// # Panics
/// An image that the checker would refuse.
pub fn run_set(image: &Image, row: usize) -> Result<SetRun, Failure> {
    let machine = image.machine();
    let (set, wiring) = (&image.sets()[row].set, Wiring::new(machine));
    let mut progress = Progress::new(set);
    let (mut now, mut phases) = (0, Vec::new());
    for phase in &image.sets()[row].phases {
        // X2.
        let switch = machine.parameters().switch_clocks();
        now += switch;
        let mut simulator = Phase::load(phase, &wiring, machine.parameters(), now, &mut progress);
        simulator.run()?;
        let operations = simulator.log;
        let end = operations.last().map_or(now, |last| last.close);
        let link_words = simulator.network.links.iter().map(|link| link.words).collect();
        phases.push(PhaseRun { switch, clocks: end - now, operations, link_words });
        now = end;
    }
    Ok(SetRun { clocks: now, phases, delivered: progress.delivered })
}

/// What is known of a set over all phases.
struct Progress<'a> {
    set: &'a ConnectionSet,
    /// Per connection, the reasons to hold its sends: connections before it that are incomplete.
    reasons: Vec<usize>,
    delivered: Vec<Vec<u64>>,
    /// Per connection, words whose receives are closed.
    received: Vec<u64>,
}

impl<'a> Progress<'a> {
    fn new(set: &'a ConnectionSet) -> Self {
        let mut reasons = vec![0; set.len()];
        set.order().iter().for_each(|(_, after)| reasons[after.index()] += 1);
        Self { set, reasons, delivered: vec![Vec::new(); set.len()], received: vec![0; set.len()] }
    }
}

struct Operation {
    cell: usize,
    direction: Direction,
    connection: usize,
    first_word: u64,
    words: u64,
    channel: usize,
    /// Clocks of its set-up beyond `stream_setup`.
    overhead: u64,
    /// The planned start, counted from the beginning of the set.
    start: u64,
    port: usize,
}

struct Stream {
    operation: usize,
    left: u64,
    /// The set-up is over.
    is_open: bool,
    /// Of a sending stream: it has not filled its channel (A4).
    has_space: bool,
    open_clock: u64,
}

/// A port (A2).
struct Port {
    state: State,
    /// Operations that are not opened.
    list: VecDeque<usize>,
    /// The other end of an operation that was opened with it, and is the next to be opened (A3).
    partner: Option<usize>,
    slots: Vec<Option<Stream>>,
    pointer: usize,
    check: bool,
}

/// A phase under execution.
struct Phase<'a, 'b> {
    parameters: &'a Parameters,
    progress: &'b mut Progress<'a>,
    network: Network,
    operations: Vec<Operation>,
    ports: Vec<Port>,
    /// Ports that move a word, with the slot.
    moves: Vec<(u64, (usize, usize))>,
    /// Ports that open a stream, with the slot.
    setups: Vec<(u64, (usize, usize))>,
    /// Clocks at which a port stops sleeping, with the port.
    sleeps: BTreeSet<(u64, usize)>,
    port_stack: Vec<usize>,
    space_reports: Vec<usize>,
    arrival_reports: Vec<usize>,
    /// Operations that finished at the present clock.
    finished: Vec<usize>,
    log: Vec<OperationRun>,
}

impl<'a, 'b> Phase<'a, 'b> {
    /// The tables and operation lists of a phase whose switch ends at clock `now`.
    fn load(
        phase: &PhaseImage,
        wiring: &Wiring,
        parameters: &'a Parameters,
        now: u64,
        progress: &'b mut Progress<'a>,
    ) -> Self {
        let depth = index(parameters.channel_depth);
        let mut network = Network::new(depth, wiring.link_clocks.clone());
        network.now = now;
        let tables = || phase.cells().map(|(cell, context)| (cell.index(), context));
        let entries =
            || tables().flat_map(|(cell, context)| context.entries.iter().map(move |e| (cell, e)));
        let numbers: HashMap<(usize, u32), usize> = entries()
            .enumerate()
            .map(|(number, (cell, e))| ((cell, e.channel.0), number))
            .collect();
        for (_, entry) in entries() {
            let fed_by = match entry.feed {
                Feed::Gate(_) => None,
                Feed::Link(link) => Some(link.index()),
            };
            network.channels.push(Channel { fed_by, ..Channel::default() });
        }
        for (number, (_, entry)) in entries().enumerate() {
            if let Sink::Forward { link, channel } = entry.sink {
                let next = numbers[&(wiring.links[link.index()].1, channel.0)];
                network.channels[number].next = Some(next);
                network.channels[next].before = Some(number);
                network.links[link.index()].clients.push(Some(number));
            }
        }
        let half = parameters.duplex == Duplex::Half;
        let mut operations = Vec::new();
        for (cell, context) in tables() {
            for operation in context.operations {
                let port = match operation.direction {
                    _ if half => cell,
                    Direction::Send => 2 * cell,
                    Direction::Receive => 2 * cell + 1,
                };
                let ends = progress.set.get(operation.connection);
                operations.push(Operation {
                    cell,
                    direction: operation.direction,
                    connection: operation.connection.index(),
                    first_word: operation.first_word.into(),
                    words: operation.words.into(),
                    channel: numbers[&(cell, operation.channel.0)],
                    overhead: wiring.overhead(ends.source.index(), ends.target.index()),
                    start: now + operation.start,
                    port,
                });
            }
        }
        let port = || Port {
            state: State::Idle,
            list: VecDeque::new(),
            partner: None,
            slots: Vec::new(),
            pointer: 0,
            check: false,
        };
        Self {
            parameters,
            progress,
            network,
            operations,
            ports: (0..2 * wiring.agents).map(|_| port()).collect(),
            moves: Vec::new(),
            setups: Vec::new(),
            sleeps: BTreeSet::new(),
            port_stack: Vec::new(),
            space_reports: Vec::new(),
            arrival_reports: Vec::new(),
            finished: Vec::new(),
            log: Vec::new(),
        }
    }

    /// X3, then clock by clock.
    fn run(&mut self) -> Result<(), Failure> {
        for number in 0..self.operations.len() {
            let port = self.operations[number].port;
            self.ports[port].list.push_back(number);
            self.ports[port].check = true;
            self.mark(port);
        }
        self.settle();
        while self.advance() {
            self.settle();
            self.release();
            self.settle();
        }
        match self.log.len() == self.operations.len() {
            true => Ok(()),
            false => Err(Failure::Stuck(self.network.now)),
        }
    }

    /// C1. Returns false at the end of the phase.
    fn advance(&mut self) -> bool {
        let wakes = self.sleeps.first().map(|sleep| sleep.0);
        let ends = [self.network.earliest(), earliest(&self.moves), earliest(&self.setups), wakes];
        let Some(now) = ends.into_iter().flatten().min() else { return false };
        self.network.now = now;
        let transfers = self.network.ended_transfers();
        let moves = ended(&mut self.moves, now);
        let mut setups = ended(&mut self.setups, now);
        // Those within a node first.
        setups.sort_by_key(|&(port, slot)| {
            let stream = self.ports[port].slots[slot].as_ref().expect("it is being opened");
            self.operations[stream.operation].overhead
        });
        for &(_, channel) in &transfers {
            self.arrive(channel);
        }
        for &(port, slot) in &moves {
            self.end_move(port, slot);
        }
        for &(port, slot) in &setups {
            let stream = self.ports[port].slots[slot].as_mut().expect("it is being opened");
            stream.is_open = true;
        }
        for &(link, _) in &transfers {
            self.serve_link(link);
        }
        self.handle_reports();
        for &(port, _) in moves.iter().chain(&setups) {
            self.serve_port(port);
        }
        // A port that is served before the start that it sleeps for may sleep for the next one too.
        while let Some(&(_, port)) = self.sleeps.first().filter(|sleep| sleep.0 == now) {
            self.sleeps.pop_first();
            self.ports[port].check = true;
            self.mark(port);
        }
        true
    }

    /// C2.
    fn handle_reports(&mut self) {
        while let Some(channel) = self.space_reports.pop() {
            if let Some((port, slot)) = self.open_stream(channel, Direction::Send) {
                let stream = self.ports[port].slots[slot].as_mut().expect("it is open");
                stream.has_space = true;
                self.mark(port);
            }
        }
        while let Some(channel) = self.arrival_reports.pop() {
            if let Some((port, _)) = self.open_stream(channel, Direction::Receive) {
                self.mark(port);
            }
        }
    }

    /// C3.
    fn settle(&mut self) {
        loop {
            while let Some(link) = self.network.stack.pop() {
                self.serve_link(link);
            }
            self.handle_reports();
            while let Some(port) = self.port_stack.pop() {
                self.serve_port(port);
            }
            let reports = self.space_reports.len() + self.arrival_reports.len();
            if self.network.stack.len() + reports == 0 {
                return;
            }
        }
    }

    /// X4.
    fn release(&mut self) {
        for number in std::mem::take(&mut self.finished) {
            let done = &self.operations[number];
            if done.direction == Direction::Send {
                continue;
            }
            let x = done.connection;
            self.progress.received[x] += done.words;
            if self.progress.received[x] < self.progress.set.connections()[x].words.into() {
                continue;
            }
            for &(before, after) in self.progress.set.order() {
                if before.index() == x {
                    self.progress.reasons[after.index()] -= 1;
                    if self.progress.reasons[after.index()] == 0 {
                        self.release_sends(after.index());
                    }
                }
            }
        }
    }

    /// The sends of connection `y` are no longer held.
    fn release_sends(&mut self, y: usize) {
        for number in 0..self.operations.len() {
            let operation = &self.operations[number];
            if operation.connection == y && operation.direction == Direction::Send {
                let port = operation.port;
                self.ports[port].check = true;
                self.mark(port);
            }
        }
    }

    /// A7.
    fn mark(&mut self, port: usize) {
        if self.ports[port].state == State::Idle {
            self.ports[port].state = State::Queued;
            self.port_stack.push(port);
        }
    }

    fn arrive(&mut self, channel: usize) {
        if self.network.arrive(channel) {
            self.arrival_reports.push(channel);
        }
    }

    fn serve_link(&mut self, link: usize) {
        if let Some(departure) = self.network.serve(link) {
            self.report_space(&departure);
        }
    }

    /// N5 step 4 as far as it concerns agents.
    fn report_space(&mut self, departure: &Departure) {
        if !departure.agent_has_space {
            return;
        }
        let Some((port, slot)) = self.open_stream(departure.channel, Direction::Send) else {
            return;
        };
        let stream = self.ports[port].slots[slot].as_ref().expect("it is open");
        if stream.left > 0 {
            self.space_reports.push(departure.channel);
        }
    }

    /// The port and slot of the open stream that sends into, or receives from, a channel.
    fn open_stream(&self, channel: usize, direction: Direction) -> Option<(usize, usize)> {
        let fits = |stream: &Stream| {
            let operation = &self.operations[stream.operation];
            stream.is_open && operation.channel == channel && operation.direction == direction
        };
        let mut ends =
            self.operations.iter().filter(|o| o.channel == channel && o.direction == direction);
        let port = ends.next()?.port;
        let mut slots = self.ports[port].slots.iter();
        Some((port, slots.position(|slot| slot.as_ref().is_some_and(fits))?))
    }

    /// Whether an operation is held (X3).
    fn is_held(&self, number: usize) -> bool {
        let operation = &self.operations[number];
        operation.direction == Direction::Send && self.progress.reasons[operation.connection] > 0
    }

    /// A3: removes the operation from the list that the port can open now.
    fn next_to_open(&mut self, number: usize) -> Option<usize> {
        let port = &mut self.ports[number];
        if let Some(partner) = port.partner.take() {
            return Some(partner);
        }
        let port = &self.ports[number];
        let first = *port.list.front()?;
        // Both ends of a connection of the cell to itself use the same channel.
        let other_end = |&&other: &&usize| {
            let (a, b) = (&self.operations[first], &self.operations[other]);
            a.channel == b.channel && a.direction != b.direction
        };
        let partner = port.list.iter().find(other_end).copied();
        let ends = || std::iter::once(first).chain(partner);
        let used = port.slots.iter().flatten().count();
        let streams = index(self.parameters.streams);
        let has_room = match partner {
            None => used < streams,
            Some(_) => used + 2 <= streams.max(2),
        };
        if ends().any(|end| self.is_held(end)) || !has_room {
            return None;
        }
        let start = ends().map(|end| self.operations[end].start).max().expect("there is an end");
        if self.parameters.has_timed_starts() && start > self.network.now {
            self.sleeps.insert((start, number));
            return None;
        }
        let port = &mut self.ports[number];
        port.list.retain(|&operation| operation != first && Some(operation) != partner);
        port.partner = partner;
        Some(first)
    }

    /// A3. Returns whether the port is busy with a set-up now.
    fn open(&mut self, number: usize) -> bool {
        while let Some(operation) = self.next_to_open(number) {
            let overhead = self.operations[operation].overhead;
            let setup = u64::from(self.parameters.stream_setup) + overhead;
            let left = self.operations[operation].words;
            let open_clock = self.network.now;
            let stream =
                Stream { operation, left, is_open: setup == 0, has_space: true, open_clock };
            let port = &mut self.ports[number];
            let slot = port.slots.iter().position(Option::is_none).unwrap_or_else(|| {
                port.slots.push(None);
                port.slots.len() - 1
            });
            port.slots[slot] = Some(stream);
            if setup > 0 {
                port.state = State::Busy;
                self.setups.push((open_clock + setup, (number, slot)));
                return true;
            }
        }
        self.ports[number].check = false;
        false
    }

    /// A4.
    fn is_ready(&self, stream: &Stream) -> bool {
        let operation = &self.operations[stream.operation];
        let can_move = match operation.direction {
            Direction::Send => stream.has_space,
            Direction::Receive => self.network.channels[operation.channel].arrived > 0,
        };
        stream.is_open && stream.left > 0 && can_move
    }

    /// A5.
    fn serve_port(&mut self, number: usize) {
        if self.ports[number].check && self.open(number) {
            return;
        }
        let port = &self.ports[number];
        let is_ready = |k: &usize| port.slots[*k].as_ref().is_some_and(|s| self.is_ready(s));
        let count = port.slots.len();
        let mut turns = (port.pointer..count).chain(0..port.pointer.min(count));
        let Some(k) = turns.find(is_ready) else {
            self.ports[number].state = State::Idle;
            return;
        };
        let port = &mut self.ports[number];
        port.state = State::Busy;
        port.pointer = k + 1;
        let stream = port.slots[k].as_mut().expect("it is ready");
        let operation = &self.operations[stream.operation];
        let (channel, connection) = (operation.channel, operation.connection);
        let word = operation.first_word + operation.words - stream.left;
        stream.left -= 1;
        match operation.direction {
            Direction::Send => {
                self.network.put(channel, (connection, word));
                stream.has_space = self.network.has_space(channel);
            }
            Direction::Receive => {
                let departure = self.network.take(channel);
                assert_eq!(departure.word, (connection, word), "another word was expected");
                self.progress.delivered[connection].push(word);
                self.report_space(&departure);
            }
        }
        let access = u64::from(self.parameters.access_clocks_per_word);
        self.moves.push((self.network.now + access, (number, k)));
    }

    /// A6.
    fn end_move(&mut self, number: usize, slot: usize) {
        let port = &mut self.ports[number];
        let stream = port.slots[slot].as_ref().expect("it moved a word");
        let (left, open) = (stream.left, stream.open_clock);
        let operation_number = stream.operation;
        let operation = &self.operations[operation_number];
        if left == 0 {
            port.slots[slot] = None;
            port.check = true;
            self.finished.push(operation_number);
            self.log.push(OperationRun {
                cell: operation.cell,
                direction: operation.direction,
                connection: operation.connection,
                first_word: operation.first_word,
                words: operation.words,
                slot,
                open,
                close: self.network.now,
            });
        }
        if operation.direction == Direction::Send {
            self.arrive(operation.channel);
        }
    }
}
