//! Execution of one list of sends and receives per cell, with a check of every word.
//!
//! The lists are those of a plan in steps: the k-th send of a cell to another and the k-th receive
//! of that cell from it are one message. A cell executes its list in order, and there is no barrier:
//! it goes on when its own operations are done.
//!
//! * On a half-duplex machine with rendezvous an operation begins when the one before it is done.
//! * Otherwise the cell can send and receive side by side: the operations of one *group* are executed
//!   in their order for each direction, and a group begins when the one before it is done. Unless
//!   the protocol is rendezvous, messages of later groups may arrive earlier; they have a place in
//!   the memory of the cell, as the plan is known, and are received in order of arrival.
//! * An operation is done when its message has left (or, as a rendezvous, was received), or was
//!   received, and the words that it says were copied in the memory of the cell, which takes
//!   `copy_clocks_per_word` for each.
//!
//! Each message carries words of its own, so the check is that every message arrives whole, in order
//! and at the right cell. Which connections' words it stands for is the plan's business.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Duplex, Machine, Protocol,
};

use super::engine::{Message, MessageEngine, MessageEvent};
use super::run::{MessageOptions, MessagePayload, MessagesReport, span};
use crate::engine::Stop;
use crate::fault::{Fault, FaultKind, WaitCause, WaitEdge};
use crate::trace::Trace;

/// A send or receive of a cell's list. A record with public fields; [`run_steps`] refuses what is
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOperation {
    /// Whether the cell sends or receives.
    pub direction: Direction,
    /// The cell at the other end.
    pub peer: CellId,
    /// Words of the message, at least 1; the same at both ends.
    pub words: u32,
    /// Operations of a group may be executed side by side if they have different directions and the
    /// machine allows it. Groups ascend along the list.
    pub group: u32,
    /// Words that the cell copies in its memory after the message, such as the pieces that it
    /// combines for another message.
    pub copied: u32,
}

impl StepOperation {
    /// An operation without copies.
    pub fn new(direction: Direction, peer: CellId, words: u32, group: u32) -> Self {
        Self { direction, peer, words, group, copied: 0 }
    }
}

/// Executes the lists of the machine's cells; `lists[c]` is that of cell `c`, and cells beyond have
/// none. `name` names the exchange in reports and faults; [`MessageOptions::order`] has no effect.
///
/// # Errors
/// Lists that do not fit together ([`FaultKind::Unpaired`]), a message without a live agent or a
/// route, or a deadlock, with its cycle of waits.
///
/// ```
/// use std::sync::Arc;
/// use conset_fabric::messages::{MessageOptions, StepOperation, run_steps};
/// use conset_ir::{CellId, Direction, Machine};
///
/// let cm5 = Arc::new(Machine::from_spec("cm5:32")?);
/// let send = StepOperation::new(Direction::Send, CellId(1), 4, 0);
/// let receive = StepOperation::new(Direction::Receive, CellId(0), 4, 0);
/// let report = run_steps(&cm5, "one", &[vec![send], vec![receive]], &MessageOptions::default())?;
/// // 16 bytes: 73 + 0.112 * 16 = 74.8 us in the paper, in ticks of 10 ns.
/// assert_eq!((report.clocks, report.payload_ok), (7480, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_steps(
    machine: &Arc<Machine>,
    name: &str,
    lists: &[Vec<StepOperation>],
    options: &MessageOptions,
) -> Result<MessagesReport, Fault> {
    let fault = |clock, kind| Fault { set: name.to_owned(), phase: None, clock, kind };
    let (set, operations) = pair(name, machine, lists).map_err(|kind| fault(0, kind))?;
    let mut engine = MessageEngine::new(machine.clone(), options.datelines);
    if !options.skip {
        engine = engine.without_skipping();
    }
    let mut run = StepsRun::new(engine, &set, lists, operations, options);
    match run.execute() {
        Ok(()) => Ok(run.report()),
        Err(kind) => Err(fault(run.engine.now(), kind)),
    }
}

/// The message of each operation, list after list, as a connection of a set; sends are numbered in
/// the order of the lists.
fn pair(
    name: &str,
    machine: &Machine,
    lists: &[Vec<StepOperation>],
) -> Result<(ConnectionSet, Vec<ConnectionId>), FaultKind> {
    let rows = || {
        lists.iter().enumerate().flat_map(|(cell, list)| {
            list.iter().enumerate().map(move |(row, op)| (CellId::from_index(cell), row, op))
        })
    };
    let unpaired = |cell, operation, problem| FaultKind::Unpaired { cell, operation, problem };
    let mut connections = Vec::new();
    // For each pair of cells, the messages that no receive was found for, the last one first.
    let mut sent: HashMap<(CellId, CellId), Vec<ConnectionId>> = HashMap::new();
    for (cell, row, op) in rows() {
        let problem = |problem| unpaired(cell, row, problem);
        if !is_endpoint(machine, cell) || !is_endpoint(machine, op.peer) {
            return Err(problem("one of its ends has no live agent"));
        }
        if row > 0 && lists[cell.index()][row - 1].group > op.group {
            return Err(problem("its group comes before that of the operation before it"));
        }
        if op.direction == Direction::Send {
            let id = ConnectionId::from_index(connections.len());
            connections.push(Connection::new(cell, op.peer, op.words));
            sent.entry((cell, op.peer)).or_default().push(id);
        }
    }
    sent.values_mut().for_each(|ids| ids.reverse());
    let mut next_sent = 0;
    let mut operations = Vec::new();
    for (cell, row, op) in rows() {
        if op.direction == Direction::Send {
            operations.push(ConnectionId::from_index(next_sent));
            next_sent += 1;
            continue;
        }
        let id = match sent.entry((op.peer, cell)) {
            Entry::Occupied(mut ids) => ids.get_mut().pop(),
            Entry::Vacant(_) => None,
        };
        let id = id.ok_or_else(|| unpaired(cell, row, "the other cell does not send it"))?;
        if connections[id.index()].words != op.words {
            return Err(unpaired(cell, row, "the other cell sends another number of words"));
        }
        operations.push(id);
    }
    let left = rows().zip(&operations).find(|((_, _, op), id)| {
        let ends = connections[id.index()].clone();
        op.direction == Direction::Send && sent[&(ends.source, ends.target)].contains(id)
    });
    if let Some(((cell, row, _), _)) = left {
        return Err(unpaired(cell, row, "the other cell does not receive it"));
    }
    let set = ConnectionSet::new(name, connections);
    let set = set.map_err(|error| FaultKind::Steps { problem: error.to_string() })?;
    Ok((set, operations))
}

fn is_endpoint(machine: &Machine, cell: CellId) -> bool {
    cell.index() < machine.cell_count() && machine.is_endpoint(cell)
}

/// A cell's place in its list.
#[derive(Clone, Copy, Default)]
struct Cursor {
    /// Operations before this one are done.
    done: usize,
    /// The next operation of each direction that has not begun: send, receive.
    next: [usize; 2],
}

struct StepsRun<'a> {
    engine: MessageEngine,
    set: &'a ConnectionSet,
    data: MessagePayload<'a>,
    lists: &'a [Vec<StepOperation>],
    /// The first operation of each list in `messages` and `done`.
    first: Vec<usize>,
    /// By operation, its message and whether it is done.
    messages: Vec<ConnectionId>,
    done: Vec<bool>,
    /// By message, its send and its receive as operations.
    ends: Vec<[u32; 2]>,
    cursors: Vec<Cursor>,
    /// Operations of a cell are executed one after the other.
    serial: bool,
    received: usize,
    trace: Option<Trace>,
}

fn side(direction: Direction) -> usize {
    match direction {
        Direction::Send => 0,
        Direction::Receive => 1,
    }
}

impl<'a> StepsRun<'a> {
    fn new(
        engine: MessageEngine,
        set: &'a ConnectionSet,
        lists: &'a [Vec<StepOperation>],
        messages: Vec<ConnectionId>,
        options: &MessageOptions,
    ) -> Self {
        let parameters = engine.machine().parameters();
        let serial =
            parameters.protocol == Protocol::Rendezvous && parameters.duplex == Duplex::Half;
        let trace = options.trace.then(|| Trace {
            clock_hz: parameters.clock_hz,
            sets: vec![set.name().to_owned()],
            ..Trace::default()
        });
        let mut first = vec![0];
        first.extend(lists.iter().scan(0, |end, list| {
            *end += list.len();
            Some(*end)
        }));
        let mut ends = vec![[0; 2]; set.len()];
        for (row, (op, id)) in lists.iter().flatten().zip(&messages).enumerate() {
            ends[id.index()][side(op.direction)] = to_u32(row);
        }
        Self {
            engine,
            set,
            data: MessagePayload::new(set, options.seed),
            lists,
            first,
            done: vec![false; messages.len()],
            messages,
            ends,
            cursors: vec![Cursor::default(); lists.len()],
            serial,
            received: 0,
            trace,
        }
    }

    fn execute(&mut self) -> Result<(), FaultKind> {
        if self.engine.machine().parameters().protocol != Protocol::Rendezvous {
            for (cell, list) in self.lists.iter().enumerate() {
                let receives = list.iter().filter(|op| op.direction == Direction::Receive).count();
                self.engine.receive(CellId::from_index(cell), conset_ir::convert::to_u64(receives));
            }
        }
        for cell in 0..self.lists.len() {
            self.begin(cell)?;
        }
        let (mut events, mut copied) = (Vec::new(), Vec::new());
        loop {
            match self.engine.run(&mut self.data) {
                Stop::Finished => {
                    self.engine.take_events(&mut events);
                    for event in &events {
                        self.event(event)?;
                    }
                }
                Stop::Timer => {
                    self.engine.take_timers(&mut copied);
                    for &operation in &copied {
                        self.finish(index(operation))?;
                    }
                }
                Stop::Idle | Stop::Fault => break,
            }
        }
        match self.engine.explain() {
            Some(fault) => Err(fault),
            None if self.done.contains(&false) => Err(self.waiting()),
            None => Ok(()),
        }
    }

    /// A deadlock in which no message is announced or under way: every cell that is not done waits
    /// for a message of another that is not done either. The waits lead to a cycle.
    fn waiting(&self) -> FaultKind {
        let unfinished = self.done.iter().filter(|done| !**done).count();
        let mut waits: Vec<WaitEdge> = Vec::new();
        let mut cell = self.done.iter().position(|done| !done).map(|row| self.cell_of(row));
        while let Some(at) = cell {
            let from = CellId::from_index(at);
            if let Some(start) = waits.iter().position(|wait| wait.cell == from) {
                waits.drain(..start);
                break;
            }
            let row = self.cursors[at].done;
            let Some(op) = self.lists[at].get(row) else { break };
            let connection = self.messages[self.first[at] + row];
            let cause = WaitCause::Turn { direction: op.direction, connection };
            waits.push(WaitEdge { cell: from, cause });
            cell = Some(op.peer.index()).filter(|&peer| peer < self.lists.len());
        }
        FaultKind::Deadlock { waits, closed: true, unfinished }
    }

    /// The cell of an operation.
    fn cell_of(&self, operation: usize) -> usize {
        self.first.partition_point(|&first| first <= operation) - 1
    }

    /// Begins all operations of a cell that may begin.
    fn begin(&mut self, cell: usize) -> Result<(), FaultKind> {
        let list = &self.lists[cell];
        for direction in [Direction::Send, Direction::Receive] {
            loop {
                let Cursor { done, next } = self.cursors[cell];
                let mut row = next[side(direction)];
                while list.get(row).is_some_and(|op| op.direction != direction) {
                    row += 1;
                }
                self.cursors[cell].next[side(direction)] = row;
                let Some(op) = list.get(row) else { break };
                if if self.serial { row > done } else { op.group > list[done].group } {
                    break;
                }
                self.cursors[cell].next[side(direction)] = row + 1;
                self.submit(cell, row)?;
            }
        }
        Ok(())
    }

    fn submit(&mut self, cell: usize, row: usize) -> Result<(), FaultKind> {
        let op = self.lists[cell][row];
        let (cell, label) = (CellId::from_index(cell), self.messages[self.first[cell] + row]);
        match op.direction {
            Direction::Send => {
                let message = Message { source: cell, target: op.peer, words: op.words, label };
                self.engine.send(message)
            }
            Direction::Receive => {
                if self.engine.machine().parameters().protocol == Protocol::Rendezvous {
                    self.engine.receive_from(cell, op.peer);
                }
                Ok(())
            }
        }
    }

    fn event(&mut self, event: &MessageEvent) -> Result<(), FaultKind> {
        if let Some(trace) = &mut self.trace {
            trace.streams.push(span(event, self.engine.now()));
        }
        self.received += usize::from(event.direction == Direction::Receive);
        let operation = index(self.ends[event.message.label.index()][side(event.direction)]);
        let cell = self.cell_of(operation);
        let copied = self.lists[cell][operation - self.first[cell]].copied;
        let clocks =
            u64::from(copied) * u64::from(self.engine.machine().parameters().copy_clocks_per_word);
        if clocks > 0 {
            self.engine.set_timer(clocks, to_u32(operation));
            return Ok(());
        }
        self.finish(operation)
    }

    /// Records that an operation is done.
    fn finish(&mut self, operation: usize) -> Result<(), FaultKind> {
        self.done[operation] = true;
        let cell = self.cell_of(operation);
        let (first, end) = (self.first[cell], self.first[cell + 1]);
        let before = self.cursors[cell].done;
        let done = self.done[first + before..end].iter().take_while(|done| **done).count();
        self.cursors[cell].done += done;
        if first + before + done == end { Ok(()) } else { self.begin(cell) }
    }

    fn report(self) -> MessagesReport {
        MessagesReport::new(&self.engine, self.set, &self.data, self.received, self.trace)
    }
}
