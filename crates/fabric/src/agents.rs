//! Agents: a cell's own end of the network, where streams of words are sent and received.
//!
//! An operation list is executed in order. The rules (machine model, rule 4):
//!
//! * An agent has two *ports*, one for sending and one for receiving (full duplex), or one for
//!   both (half). A port does one thing at a time: it moves a word, which takes
//!   `access_clocks_per_word`, or opens a stream, which takes `stream_setup`. Opening goes first.
//! * Operations open in the order of the list: with full duplex the sends in their order and the
//!   receives in theirs, with half duplex all in one order. An operation that may not open yet
//!   holds up those behind it.
//! * At most `streams` are open on a port; open streams that can move a word take turns, word by
//!   word. With half duplex `streams` counts both directions: one stream is open at a time where
//!   `streams` is 1, as in the paper's FEM loops, which send and receive in turn.
//! * A connection of a cell to itself, with half duplex: its send and its receive open together
//!   and alternate, wherever they stand in the list, even if `streams` is 1. Otherwise the send
//!   would fill the channel and wait for ever for the receive behind it.
//! * A gate carries one stream at a time; a second operation on the same channel waits its turn.
//! * With timed starts an operation does not open before its planned start. Nobody ticks: the clock
//!   at which the head of a list may open is an event, after which its port looks again.
//! * An operation can be *held*: it opens only when it is released. That is how the set's order
//!   is kept between cells (the token that tells the sender is not priced).
//!
//! A word sent occupies room in its channel from when the port takes it, and is in the queue when
//! the port is free again; a word received gives up its room when the port takes it, and is
//! delivered when the port is free again.

mod opening;
mod period;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use conset_ir::{CellId, ConnectionId, Direction, Duplex, Parameters};

use crate::agenda::Agenda;
use crate::engine::{Payload, Submission};
use crate::network::{NONE, Network, Tag};
use crate::turns::Turns;
pub(crate) use period::AgentsState;

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In its port's list.
    Listed,
    /// The port is opening it, or will next.
    Opening,
    /// Words move.
    Open,
    /// All words have moved.
    Finished,
}

/// An operation, from when it is submitted to the end of its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) cell: CellId,
    pub(crate) connection: ConnectionId,
    pub(crate) direction: Direction,
    /// The channel behind its gate.
    pub(crate) row: u32,
    /// The place in the connection of the first word.
    pub(crate) first: u32,
    pub(crate) words: u32,
    pub(crate) held: bool,
    pub(crate) state: State,
    pub(crate) opened: u64,
    pub(crate) slot: u32,
    /// The clock before which it does not open.
    start: u64,
    /// Opening it costs `stream_setup`.
    costs: bool,
    port: u32,
}

impl Stream {
    pub(crate) fn new(
        cell: CellId,
        operation: &conset_ir::Operation,
        row: u32,
        start: u64,
        how: Submission,
    ) -> Self {
        Self {
            cell,
            connection: operation.connection,
            direction: operation.direction,
            row,
            first: operation.first_word,
            words: operation.words,
            held: how.held,
            state: State::Listed,
            opened: 0,
            slot: NONE,
            start,
            costs: how.costs_setup,
            port: NONE,
        }
    }
}

/// An open stream, as far as words are concerned.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The operation; `NONE` in an empty slot.
    stream: u32,
    send: bool,
    row: u32,
    connection: ConnectionId,
    /// The place in the connection of the next word.
    next: u32,
    /// Words that have not begun to move.
    left: u32,
}

/// One side of an agent, or with half duplex all of it.
#[derive(Clone, Debug)]
struct Port {
    turns: Turns,
    slots: Vec<Flow>,
    open: u32,
    /// The slot of the stream that the port is busy with.
    moving: u32,
    tag: Tag,
    /// Neither busy nor listed to be served.
    idle: bool,
    /// Something may open: the list, or what was in its way, has changed.
    look: bool,
    words: u64,
    /// Operations were submitted to it in this context.
    used: bool,
}

impl Port {
    fn new() -> Self {
        Self {
            turns: Turns::default(),
            slots: Vec::new(),
            open: 0,
            moving: NONE,
            tag: Tag::NOTHING,
            idle: true,
            look: false,
            words: 0,
            used: false,
        }
    }
}

/// Operations of a port that are not open.
#[derive(Clone, Debug)]
struct Waiting {
    /// In order.
    list: VecDeque<u32>,
    /// Opens next, whatever the list says: the other half of a connection to itself.
    partner: u32,
    /// The last clock at which the port was to look again.
    wake: u64,
}

/// A side of a channel's gate.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// The operation at it, from when its opening begins.
    stream: u32,
    /// Where that is told that words or room have come; no port, `NONE`, while it is not open.
    port: u32,
    slot: u32,
}

impl Gate {
    const FREE: Self = Self { stream: NONE, port: NONE, slot: NONE };
}

/// A word that was delivered to an operation it was not sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) stream: u32,
    /// The word that the operation expected.
    pub(crate) expected: u32,
    pub(crate) tag: Tag,
}

/// The agents of all cells.
#[derive(Clone, Debug)]
pub(crate) struct Agents {
    full: bool,
    limit: u32,
    setup: bool,
    ports: Vec<Port>,
    /// The ports that are used in this context: all others are as they were made.
    used: Vec<u32>,
    waiting: Vec<Waiting>,
    pub(crate) streams: Vec<Stream>,
    /// The feed gate and the sink gate of each channel.
    feeds: Vec<Gate>,
    sinks: Vec<Gate>,
    /// Free ports that may have something to do.
    ready: Agenda,
    /// Ports whose next operation has a planned start that has not come, and when it comes.
    sleeping: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ports that began to move a word, and ports that began to open a stream, since these were
    /// last emptied, in order.
    pub(crate) begun: Vec<u32>,
    pub(crate) opening: Vec<u32>,
    /// Streams finished since this was last emptied.
    pub(crate) finished: Vec<u32>,
    pub(crate) unfinished: usize,
    /// The first wrong word since this was last emptied, and the number of wrong words.
    pub(crate) wrong: Option<Wrong>,
    pub(crate) wrong_words: u64,
    pub(crate) injected: u64,
    pub(crate) delivered: u64,
}

impl Agents {
    pub(crate) fn new(agents: usize, parameters: &Parameters) -> Self {
        let full = parameters.duplex == Duplex::Full;
        let ports = if full { 2 * agents } else { agents };
        Self {
            full,
            limit: parameters.streams,
            setup: parameters.stream_setup > 0,
            ports: vec![Port::new(); ports],
            used: Vec::new(),
            waiting: vec![Waiting { list: VecDeque::new(), partner: NONE, wake: 0 }; ports],
            streams: Vec::new(),
            feeds: Vec::new(),
            sinks: Vec::new(),
            ready: Agenda::new(ports),
            sleeping: BinaryHeap::new(),
            begun: Vec::new(),
            opening: Vec::new(),
            finished: Vec::new(),
            unfinished: 0,
            wrong: None,
            wrong_words: 0,
            injected: 0,
            delivered: 0,
        }
    }

    /// Forgets every operation; a new context has `channels` channels.
    pub(crate) fn load(&mut self, channels: usize) {
        for number in self.used.drain(..) {
            let port = &mut self.ports[number as usize];
            port.turns = Turns::default();
            port.slots.clear();
            (port.open, port.words, port.idle, port.look) = (0, 0, true, false);
            port.used = false;
            let waiting = &mut self.waiting[number as usize];
            waiting.list.clear();
            (waiting.partner, waiting.wake) = (NONE, 0);
        }
        self.sleeping.clear();
        self.streams.clear();
        for gates in [&mut self.feeds, &mut self.sinks] {
            gates.clear();
            gates.resize(channels, Gate::FREE);
        }
        self.ready.clear();
        self.begun.clear();
        self.opening.clear();
        self.finished.clear();
        self.unfinished = 0;
        self.wrong = None;
    }

    /// Words that a cell's agent has moved in this phase.
    pub(crate) fn words_of(&self, cell: CellId) -> u64 {
        let port = self.port_of(cell, Direction::Send) as usize;
        self.ports[port].words + if self.full { self.ports[port + 1].words } else { 0 }
    }

    /// The cell whose agent has moved most words in this phase, of several the first.
    pub(crate) fn busiest(&self) -> Option<(CellId, u64)> {
        let cell = |&port: &u32| CellId(if self.full { port / 2 } else { port });
        let words = self.used.iter().map(cell).map(|cell| (cell, self.words_of(cell)));
        words.filter(|cell| cell.1 > 0).max_by_key(|&(cell, words)| (words, Reverse(cell)))
    }

    fn port_of(&self, cell: CellId, direction: Direction) -> u32 {
        if self.full { 2 * cell.0 + u32::from(direction == Direction::Receive) } else { cell.0 }
    }

    /// Appends an operation to its agent's list and returns its number.
    pub(crate) fn submit(&mut self, mut stream: Stream) -> u32 {
        let number = self.streams.len() as u32;
        stream.port = self.port_of(stream.cell, stream.direction);
        self.streams.push(stream);
        self.unfinished += 1;
        self.waiting[stream.port as usize].list.push_back(number);
        let port = &mut self.ports[stream.port as usize];
        port.look = true;
        if !std::mem::replace(&mut port.used, true) {
            self.used.push(stream.port);
        }
        self.list(stream.port);
        number
    }

    /// Lets a held operation open.
    pub(crate) fn release(&mut self, number: u32) {
        let stream = &mut self.streams[number as usize];
        stream.held = false;
        let port = stream.port;
        self.ports[port as usize].look = true;
        self.list(port);
    }

    /// When the first planned start comes that a port waits for.
    #[inline]
    pub(crate) fn next_start(&self) -> Option<u64> {
        self.sleeping.peek().map(|Reverse((at, _))| *at)
    }

    /// Lets ports look whose planned start has come; whether there are any.
    pub(crate) fn wake(&mut self, now: u64) -> bool {
        let mut any = false;
        while self.next_start().is_some_and(|at| at <= now) {
            let Some(Reverse((_, port))) = self.sleeping.pop() else { break };
            self.ports[port as usize].look = true;
            self.list(port);
            any = true;
        }
        any
    }

    #[inline]
    fn list(&mut self, number: u32) {
        let port = &mut self.ports[number as usize];
        self.ready.add_if(number, port.idle);
        port.idle = false;
    }

    /// Whether no port waits to be served in this clock.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.ready.is_empty()
    }

    /// The stream in this slot of a port can move a word.
    #[inline]
    fn make_ready(&mut self, number: u32, slot: u32) {
        let port = &mut self.ports[number as usize];
        port.turns.set(slot);
        self.ready.add_if(number, port.idle);
        port.idle = false;
    }

    /// Hears what the network has to say: room where there was none, first words.
    #[inline]
    pub(crate) fn listen(&mut self, network: &mut Network) {
        while let Some(row) = network.room.pop() {
            let Gate { port, slot, .. } = self.feeds[row as usize];
            if port != NONE {
                self.make_ready(port, slot);
            }
        }
        while let Some(row) = network.words.pop() {
            let Gate { port, slot, .. } = self.sinks[row as usize];
            if port != NONE {
                self.make_ready(port, slot);
            }
        }
    }

    /// Gives every listed port something to do.
    pub(crate) fn settle(&mut self, now: u64, network: &mut Network) {
        while let Some(port) = self.ready.pop() {
            self.serve(now, port, network);
        }
    }

    /// These ports have moved their words and take the next.
    pub(crate) fn free(&mut self, now: u64, ports: &[u32], network: &mut Network) {
        for &port in ports {
            self.serve(now, port, network);
        }
    }

    /// Gives a port that does nothing something to do, or leaves it idle.
    #[inline(always)]
    fn serve(&mut self, now: u64, port: u32, network: &mut Network) {
        let look = self.ports[port as usize].look;
        if look && self.open_streams(now, port, network) {
            return;
        }
        self.move_word(port, network);
    }

    /// Moves a word of the stream whose turn it is through a free port. That its bit is set says
    /// that it has a word left, so no count passes 0.
    #[inline(always)]
    fn move_word(&mut self, number: u32, network: &mut Network) {
        let port = &mut self.ports[number as usize];
        while let Some(slot) = port.turns.next() {
            let flow = &mut port.slots[slot as usize];
            let row = flow.row;
            let left = flow.left.wrapping_sub(1);
            let stops = if flow.send {
                if !network.has_room(row) {
                    port.turns.clear(slot);
                    network.wait_for_room(row);
                    continue;
                }
                let full = network.put(row, Tag::new(flow.connection.0, flow.next));
                flow.next = flow.next.wrapping_add(1);
                self.injected = self.injected.wrapping_add(1);
                if full & (left > 0) {
                    network.wait_for_room(row);
                }
                full
            } else {
                port.tag = network.take(row);
                network.queued(row) == 0
            };
            flow.left = left;
            port.turns.served(slot, stops | (left == 0));
            port.moving = slot;
            port.words = port.words.wrapping_add(1);
            self.begun.push(number);
            return;
        }
        port.idle = true;
    }

    /// A port has opened the stream it was busy with; it is to be freed then.
    pub(crate) fn end_setup(&mut self, number: u32, network: &Network) {
        let port = &self.ports[number as usize];
        let stream = port.slots[port.moving as usize].stream;
        self.opened(stream, network);
    }

    /// A port has moved its word; it is to be freed when all words have arrived.
    #[inline]
    pub(crate) fn end_word(&mut self, number: u32, network: &mut Network, data: &mut dyn Payload) {
        let port = &mut self.ports[number as usize];
        let flow = &mut port.slots[port.moving as usize];
        if flow.send {
            network.arrive(flow.row);
        } else {
            let (tag, expected) = (port.tag, flow.next);
            flow.next = flow.next.wrapping_add(1);
            self.delivered = self.delivered.wrapping_add(1);
            if tag != Tag::new(flow.connection.0, expected) {
                self.wrong.get_or_insert(Wrong { stream: flow.stream, expected, tag });
                self.wrong_words += 1;
            }
            let from = (ConnectionId(tag.stream()), tag.index());
            data.transfer(from, (flow.connection, expected));
        }
        if flow.left == 0 {
            let stream = flow.stream;
            self.finish(stream);
        }
    }

    #[cold]
    fn finish(&mut self, number: u32) {
        let stream = &mut self.streams[number as usize];
        stream.state = State::Finished;
        let Stream { direction, row, port, slot, .. } = *stream;
        self.gates(direction)[row as usize] = Gate::FREE;
        let port = &mut self.ports[port as usize];
        port.slots[slot as usize].stream = NONE;
        // Its channel may have got words or room meanwhile, for who comes next.
        port.turns.clear(slot);
        port.open -= 1;
        port.look = true;
        self.unfinished -= 1;
        self.finished.push(number);
    }
}
