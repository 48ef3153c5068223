//! Agents: each cell's interface to the network, which sends and receives streams of words.
//!
//! An agent executes an operation list in order. The rules (machine model, rule 4):
//!
//! * An agent has two *ports* with full duplex, one for sending and one for receiving, and one port
//!   for both with half duplex. A port does one thing at a time: it moves a word, which takes
//!   `access_clocks_per_word`, or opens a stream, which takes `stream_setup`. Opening has priority.
//! * Operations open in list order: with full duplex the sends in their order and the receives in
//!   theirs, with half duplex all in one order. An operation that cannot open yet blocks those
//!   after it.
//! * At most `streams` streams are open on a port; those that can move a word share the port in
//!   round-robin order, word by word. With half duplex `streams` counts both directions: if it is
//!   1, one stream is open at a time, as in the paper's FEM loops, which send and receive
//!   alternately.
//! * With half duplex, the send and the receive of a connection of a cell to itself open together
//!   and alternate, wherever they are in the list, even if `streams` is 1. Otherwise the send would
//!   fill the channel and wait forever for the receive after it.
//! * A gate carries one stream at a time; a second operation on the same channel waits for the
//!   first.
//! * With timed starts an operation does not open before its planned start. The clock at which the
//!   operation at the head of a list may open is an event; the port checks its list again then.
//! * A *held* operation opens only after it is released. This keeps the set's order between cells
//!   (the token that would tell the sender is not priced).
//!
//! A sent word occupies space in its channel as soon as the port takes it, and is in the queue when
//! the port is free again. A received word releases its space when the port takes it, and is
//! delivered when the port is free again.

mod fast_forward;
mod opening;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Duplex, Parameters};

use crate::base::faults::Ports;
use crate::network::{NONE, Network, Tag};
use crate::payload::Payload;
use crate::ready_list::ReadyList;
use crate::round_robin::RoundRobin;
pub(crate) use fast_forward::AgentsSnapshot;

/// How an operation is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The operation does not open before [`crate::Engine::release`].
    pub held: bool,
    /// Opening it costs `stream_setup`; `false` if it continues a stream that was opened before.
    pub costs_setup: bool,
}

impl Submission {
    /// An operation of an operation list.
    pub const LISTED: Self = Self { held: false, costs_setup: true };
}

/// The stage that an operation has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationStage {
    /// In its port's list.
    Listed,
    /// The port opens it, now or next.
    Opening,
    /// Its words move.
    Open,
    /// All its words have moved.
    Finished,
}

/// An operation, from its submission to the end of its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmittedOperation {
    pub(crate) cell: CellId,
    pub(crate) connection: ConnectionId,
    pub(crate) direction: Direction,
    /// The channel of its gate.
    pub(crate) row: u32,
    /// The index in the connection of the first word.
    pub(crate) first: u32,
    pub(crate) words: u32,
    pub(crate) held: bool,
    pub(crate) stage: OperationStage,
    pub(crate) opened: u64,
    pub(crate) slot: u32,
    /// The earliest clock at which it opens.
    start: u64,
    /// Opening it costs `stream_setup`.
    costs_setup: bool,
    /// Opening it also costs the overhead between nodes, which is not 0.
    has_overhead: bool,
    port: u32,
}

impl SubmittedOperation {
    pub(crate) fn new(
        cell: CellId,
        operation: &conset_ir::Operation,
        row: u32,
        start: u64,
        has_overhead: bool,
        submission: Submission,
    ) -> Self {
        Self {
            cell,
            connection: operation.connection,
            direction: operation.direction,
            row,
            first: operation.first_word,
            words: operation.words,
            held: submission.held,
            stage: OperationStage::Listed,
            opened: 0,
            slot: NONE,
            start,
            costs_setup: submission.costs_setup,
            has_overhead,
            port: NONE,
        }
    }
}

/// The words of an open stream.
#[derive(Clone, Copy, Debug)]
struct OpenStream {
    /// The operation; `NONE` in an empty slot.
    operation: u32,
    send: bool,
    row: u32,
    connection: ConnectionId,
    /// The index in the connection of the next word.
    next: u32,
    /// Words that have not started to move.
    left: u32,
}

/// One direction of an agent, or both with half duplex.
#[derive(Clone, Debug)]
struct AgentPort {
    round_robin: RoundRobin,
    slots: Vec<OpenStream>,
    open: u32,
    /// The slot of the stream that the port is busy with.
    moving: u32,
    tag: Tag,
    /// It is neither busy nor on the ready list.
    idle: bool,
    /// An operation may be able to open, because the list or what blocked it has changed.
    check_list: bool,
    words: u64,
    /// Operations were submitted to it in this context.
    used: bool,
}

impl AgentPort {
    fn new() -> Self {
        Self {
            round_robin: RoundRobin::default(),
            slots: Vec::new(),
            open: 0,
            moving: NONE,
            tag: Tag::NONE,
            idle: true,
            check_list: false,
            words: 0,
            used: false,
        }
    }
}

/// The operations of a port that have not opened.
#[derive(Clone, Debug)]
struct PendingOperations {
    /// In list order.
    list: VecDeque<u32>,
    /// Opens next, before the list: the other end of a connection of the cell to itself.
    partner: u32,
    /// The latest clock for which a check of the list was scheduled.
    wake: u64,
}

/// One direction of a channel's gate.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// The operation at the gate, from the start of its opening.
    operation: u32,
    /// The port and slot to notify of words or space; `NONE` while the operation is not open.
    port: u32,
    slot: u32,
}

impl Gate {
    const FREE: Self = Self { operation: NONE, port: NONE, slot: NONE };
}

/// A word that was delivered to an operation that did not expect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongDelivery {
    pub(crate) operation: u32,
    /// The word that the operation expected.
    pub(crate) expected: u32,
    pub(crate) tag: Tag,
}

/// The agents of all cells.
#[derive(Clone, Debug)]
pub(crate) struct Agents {
    full_duplex: bool,
    /// Streams that may be open on a port.
    stream_limit: u32,
    /// Whether opening a stream takes time, without and with the overhead between nodes.
    has_setup: [bool; 2],
    ports: Vec<AgentPort>,
    /// The ports used in this context; all others have their initial state.
    used: Vec<u32>,
    pending: Vec<PendingOperations>,
    pub(crate) operations: Vec<SubmittedOperation>,
    /// The feed gate and the sink gate of each channel.
    feeds: Vec<Gate>,
    sinks: Vec<Gate>,
    /// Free ports that may be able to move a word or open a stream.
    ready: ReadyList,
    /// Ports whose next operation has a planned start in the future, by that start.
    sleeping: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ports that started to move a word, and ports that started to open a stream (without and with
    /// the overhead between nodes), since these vectors were last emptied, in order.
    pub(crate) started: Vec<u32>,
    pub(crate) opening: [Vec<u32>; 2],
    /// Operations finished since this vector was last emptied.
    pub(crate) finished: Vec<u32>,
    pub(crate) unfinished: usize,
    /// Wrong words that were not taken from here yet, in order, and the number of all wrong words.
    pub(crate) wrong: VecDeque<WrongDelivery>,
    pub(crate) wrong_words: u64,
    pub(crate) injected: u64,
    pub(crate) delivered: u64,
}

impl Agents {
    pub(crate) fn new(agents: usize, parameters: &Parameters) -> Self {
        let full_duplex = parameters.duplex == Duplex::Full;
        let ports = if full_duplex { 2 * agents } else { agents };
        Self {
            full_duplex,
            stream_limit: parameters.streams,
            has_setup: [0, parameters.network_overhead]
                .map(|overhead| parameters.stream_setup + overhead > 0),
            ports: vec![AgentPort::new(); ports],
            used: Vec::new(),
            pending: vec![
                PendingOperations { list: VecDeque::new(), partner: NONE, wake: 0 };
                ports
            ],
            operations: Vec::new(),
            feeds: Vec::new(),
            sinks: Vec::new(),
            ready: ReadyList::new(ports),
            sleeping: BinaryHeap::new(),
            started: Vec::new(),
            opening: Default::default(),
            finished: Vec::new(),
            unfinished: 0,
            wrong: VecDeque::new(),
            wrong_words: 0,
            injected: 0,
            delivered: 0,
        }
    }

    /// Removes every operation, for a new context with `channels` channels.
    pub(crate) fn load(&mut self, channels: usize) {
        for number in self.used.drain(..) {
            let port = &mut self.ports[index(number)];
            port.round_robin = RoundRobin::default();
            port.slots.clear();
            (port.open, port.words, port.idle, port.check_list) = (0, 0, true, false);
            port.used = false;
            let pending = &mut self.pending[index(number)];
            pending.list.clear();
            (pending.partner, pending.wake) = (NONE, 0);
        }
        self.sleeping.clear();
        self.operations.clear();
        for gates in [&mut self.feeds, &mut self.sinks] {
            gates.clear();
            gates.resize(channels, Gate::FREE);
        }
        self.ready.clear();
        self.started.clear();
        self.opening.iter_mut().for_each(Vec::clear);
        self.finished.clear();
        self.unfinished = 0;
        self.wrong.clear();
    }

    /// Number of words that a cell's agent has moved in this context.
    pub(crate) fn words_of(&self, cell: CellId) -> u64 {
        let port = index(self.port_of(cell, Direction::Send));
        self.ports[port].words + if self.full_duplex { self.ports[port + 1].words } else { 0 }
    }

    /// The cell whose agent has moved the most words in this context, after all operations have finished; the first one
    /// of equals.
    pub(crate) fn busiest(&self) -> Option<(CellId, u64)> {
        let cell = |&port: &u32| self.cell_of(port);
        let words = self.used.iter().map(cell).map(|cell| (cell, self.words_of(cell)));
        words.max_by_key(|&(cell, words)| (words, Reverse(cell)))
    }

    fn port_of(&self, cell: CellId, direction: Direction) -> u32 {
        if self.full_duplex {
            2 * cell.0 + u32::from(direction == Direction::Receive)
        } else {
            cell.0
        }
    }

    /// Appends an operation to its agent's list and returns its number.
    pub(crate) fn submit(&mut self, mut operation: SubmittedOperation) -> u32 {
        let number = to_u32(self.operations.len());
        operation.port = self.port_of(operation.cell, operation.direction);
        self.operations.push(operation);
        self.unfinished += 1;
        self.pending[index(operation.port)].list.push_back(number);
        let port = &mut self.ports[index(operation.port)];
        port.check_list = true;
        if !std::mem::replace(&mut port.used, true) {
            self.used.push(operation.port);
        }
        self.mark_ready(operation.port);
        number
    }

    /// Allows a held operation to open.
    pub(crate) fn release(&mut self, number: u32) {
        let operation = &mut self.operations[index(number)];
        operation.held = false;
        let port = operation.port;
        self.ports[index(port)].check_list = true;
        self.mark_ready(port);
    }

    /// The cell of a port.
    pub(crate) fn cell_of(&self, port: u32) -> CellId {
        CellId(if self.full_duplex { port / 2 } else { port })
    }

    /// The words of an open operation that have not started to move.
    pub(crate) fn words_left(&self, number: u32) -> u32 {
        let SubmittedOperation { port, slot, .. } = self.operations[index(number)];
        self.ports[index(port)].slots[index(slot)].left
    }

    /// The earliest planned start that a port waits for.
    #[inline]
    pub(crate) fn next_start(&self) -> Option<u64> {
        self.sleeping.peek().map(|Reverse((at, _))| *at)
    }

    /// Makes the ports whose planned start has come check their lists; returns whether there are
    /// any.
    pub(crate) fn wake(&mut self, now: u64) -> bool {
        let mut any = false;
        while self.next_start().is_some_and(|at| at <= now) {
            let Some(Reverse((_, port))) = self.sleeping.pop() else { break };
            self.ports[index(port)].check_list = true;
            self.mark_ready(port);
            any = true;
        }
        any
    }

    #[inline]
    fn mark_ready(&mut self, number: u32) {
        let port = &mut self.ports[index(number)];
        self.ready.add_if(number, port.idle);
        port.idle = false;
    }

    /// Marks the stream in a slot of a port as able to move a word.
    #[inline]
    fn make_stream_ready(&mut self, number: u32, slot: u32) {
        let port = &mut self.ports[index(number)];
        port.round_robin.set(slot);
        self.ready.add_if(number, port.idle);
        port.idle = false;
    }

    /// Handles the reports of the network: space in full channels, first words in empty ones.
    #[inline]
    pub(crate) fn handle_reports(&mut self, network: &mut Network) {
        while let Some(row) = network.space.pop() {
            let Gate { port, slot, .. } = self.feeds[index(row)];
            if port != NONE {
                self.make_stream_ready(port, slot);
            }
        }
        while let Some(row) = network.arrivals.pop() {
            let Gate { port, slot, .. } = self.sinks[index(row)];
            if port != NONE {
                self.make_stream_ready(port, slot);
            }
        }
    }

    /// Serves every port on the ready list.
    pub(crate) fn settle(&mut self, now: u64, network: &mut Network) {
        while let Some(port) = self.ready.pop() {
            self.serve(now, port, network);
        }
    }

    /// Serves ports that have finished an action.
    pub(crate) fn serve_ports(&mut self, now: u64, ports: &[u32], network: &mut Network) {
        for &port in ports {
            self.serve(now, port, network);
        }
    }

    /// Opens a stream or moves a word on a free port, or leaves the port idle.
    #[inline(always)]
    fn serve(&mut self, now: u64, port: u32, network: &mut Network) {
        let check = self.ports[index(port)].check_list;
        if check && self.open_streams(now, port, network) {
            return;
        }
        self.move_word(port, network);
    }

    /// Moves a word of the next ready stream through a free port. A ready stream has a word left, so
    /// no count passes 0: when its last word has moved, it is finished.
    #[inline(always)]
    fn move_word(&mut self, number: u32, network: &mut Network) {
        let port = &mut self.ports[index(number)];
        while let Some(slot) = port.round_robin.next() {
            let stream = &mut port.slots[index(slot)];
            let row = stream.row;
            let left = stream.left.wrapping_sub(1);
            let stops = if stream.send {
                if !network.has_space(row) {
                    port.round_robin.clear(slot);
                    network.wait_for_space(row);
                    continue;
                }
                let full = network.put(row, Tag::new(stream.connection.0, stream.next));
                stream.next = stream.next.wrapping_add(1);
                self.injected = self.injected.wrapping_add(1);
                if full {
                    network.wait_for_space(row);
                }
                full
            } else {
                port.tag = network.take(row);
                network.queued(row) == 0
            };
            stream.left = left;
            port.round_robin.served(slot, stops);
            port.moving = slot;
            port.words = port.words.wrapping_add(1);
            self.started.push(number);
            return;
        }
        port.idle = true;
    }

    /// A port has opened a stream. The caller serves the port afterwards.
    pub(crate) fn end_setup(&mut self, number: u32, network: &Network) {
        let port = &self.ports[index(number)];
        let operation = port.slots[index(port.moving)].operation;
        self.opened(operation, network);
    }

    /// A port has moved a word. The caller serves the port when all words have arrived.
    #[inline]
    pub(crate) fn end_word(&mut self, number: u32, network: &mut Network, data: &mut dyn Payload) {
        let port = &mut self.ports[index(number)];
        let stream = &mut port.slots[index(port.moving)];
        if stream.send {
            network.arrive(stream.row);
        } else {
            let (tag, expected) = (port.tag, stream.next);
            #[cfg(feature = "canary")]
            let tag = canary(tag, port.words);
            stream.next = stream.next.wrapping_add(1);
            self.delivered = self.delivered.wrapping_add(1);
            if tag != Tag::new(stream.connection.0, expected) {
                let operation = stream.operation;
                self.wrong.push_back(WrongDelivery { operation, expected, tag });
                self.wrong_words += 1;
            }
            let from = (ConnectionId(tag.stream()), tag.index());
            data.transfer(from, (stream.connection, expected));
        }
        if stream.left == 0 {
            let operation = stream.operation;
            self.finish(operation);
        }
    }

    #[cold]
    fn finish(&mut self, number: u32) {
        let operation = &mut self.operations[index(number)];
        operation.stage = OperationStage::Finished;
        let SubmittedOperation { direction, row, port, slot, .. } = *operation;
        self.gates(direction)[index(row)] = Gate::FREE;
        let port = &mut self.ports[index(port)];
        port.slots[index(slot)].operation = NONE;
        // Its channel may have words or space by now, which are for the next operation.
        port.round_robin.clear(slot);
        port.open -= 1;
        port.check_list = true;
        self.unfinished -= 1;
        self.finished.push(number);
    }
}

/// A planted bug: one word of some streams arrives as the next one. Only tests that must find it have this
/// feature.
#[cfg(feature = "canary")]
fn canary(tag: Tag, words: u64) -> Tag {
    let hits = tag.stream() % 8 == 5 && tag.index() == 77 && words.is_multiple_of(2);
    if hits { tag.plus(1) } else { tag }
}

impl Ports for Agents {
    fn of_cell(&self, cell: CellId) -> RangeInclusive<u32> {
        let first = self.port_of(cell, Direction::Send);
        first..=self.port_of(cell, Direction::Receive).max(first)
    }

    /// It would have had a turn, too, if it was idle.
    fn stop(&mut self, port: u32) -> bool {
        let listed = self.ready.remove(port);
        std::mem::replace(&mut self.ports[index(port)].idle, false) | listed
    }

    fn resume(&mut self, port: u32) {
        self.ready.add_if(port, true);
    }
}
