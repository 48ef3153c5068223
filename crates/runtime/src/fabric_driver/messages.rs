//! Messages in the fabric driver: submits the messages of cells to the message engine one at a
//! time, and resumes cells when their messages have left or arrived.
//!
//! A cell that exchanges a set sends its messages in the order of the set, the next one when the
//! previous one has left, and a message only after all messages ordered before it were received in
//! this round. It requests as many messages as it waits for, and one more. Other messages that
//! arrive are kept for later, and one more is requested in their place. Messages of the next round
//! are therefore harmless, even for a cell that has received all its own and is still sending.
//! (Without the additional request they would block the network in front of such cells and hold the
//! channels that their messages need.)

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use conset_fabric::Stop;
use conset_fabric::messages::{Message, MessageEngine, MessageEvent};
use conset_fabric::trace::StreamSpan;
use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ConnectionId, Direction, Machine, PhaseId};

use super::{CellState, FabricDriver};
use crate::deadlock::follow;
use crate::error::{Awaiting, CellWait, RunError};
use crate::fabric_port::FabricState;
use crate::message_queue::{MessageQueue, Subject};
use crate::port::By;

/// The machine's message side, and the exchanges that cells are at.
pub(super) struct MessageDriver {
    pub(super) engine: MessageEngine,
    /// It is at work, and not the engine of connections.
    pub(super) active: bool,
    /// Messages handed to the engine and not received.
    under_way: BTreeSet<u32>,
    /// By place of the cell.
    rounds: Vec<MessageRound>,
    /// By place of the cell: it has asked for one more message than it waits for.
    spare: Vec<bool>,
    /// Exchanges started: the set, the method, and the first cell; and how many each cell has started. They are
    /// collective, though cells without a part in one wait for no cell.
    exchanges: Vec<(usize, By, CellId)>,
    taken_part: Vec<usize>,
    /// For sets with an order: its pairs the other way round, sorted.
    before: BTreeMap<usize, Vec<(ConnectionId, ConnectionId)>>,
    /// For sets with an order: how often each connection was received, by set.
    received: BTreeMap<usize, Vec<u64>>,
    /// How often a cell has started to exchange a set that has an order.
    begun: BTreeMap<(usize, usize), u64>,
}

/// A cell's exchange of a set.
#[derive(Clone, Debug, Default)]
struct MessageRound {
    /// Messages to be sent, in order, and how many have not left.
    unsent: VecDeque<u32>,
    left: usize,
    awaited: BTreeSet<ConnectionId>,
    /// Which of the cell's exchanges of the set it is, where that has an order.
    number: u64,
}

impl MessageDriver {
    pub(super) fn new(machine: &Arc<Machine>, cells: usize) -> Self {
        Self {
            engine: MessageEngine::new(machine.clone(), true),
            active: true,
            under_way: BTreeSet::new(),
            rounds: vec![MessageRound::default(); cells],
            spare: vec![false; cells],
            exchanges: Vec::new(),
            taken_part: vec![0; cells],
            before: BTreeMap::new(),
            received: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    /// Whether a cell has asked for one more message than it waits for; from now on it has.
    pub(super) fn take_spare(&mut self, row: usize) -> bool {
        std::mem::replace(&mut self.spare[row], true)
    }

    /// A message that was sent and not received.
    pub(super) fn left_over(&self, queue: &MessageQueue) -> Option<RunError> {
        let row = self.under_way.first().copied().or_else(|| queue.unread())?;
        let envelope = queue.envelope(row);
        let (cell, from, words) = (envelope.target, envelope.source, queue.words(row));
        Some(RunError::UnreceivedMessage { cell, from, words })
    }
}

impl FabricDriver<'_> {
    /// Hands a message to the engine.
    pub(super) fn send_envelope(&mut self, queue: &MessageQueue, row: u32) -> Result<(), RunError> {
        let envelope = queue.envelope(row);
        let message = Message {
            source: envelope.source,
            target: envelope.target,
            words: u32::try_from(queue.words(row)).unwrap_or(u32::MAX),
            label: ConnectionId(row),
        };
        self.messages.under_way.insert(row);
        self.messages.engine.send(message).map_err(|kind| self.fault(kind))
    }

    /// A cell asks for a message.
    pub(super) fn receive_envelope(
        &mut self,
        queue: &MessageQueue,
        row: usize,
        source: CellId,
        subject: Subject,
    ) -> CellState {
        let cell = self.cells[row];
        if queue.has(cell, subject, source) {
            return CellState::Ready;
        }
        self.messages.engine.receive(cell, 1);
        CellState::Receive(source, subject)
    }

    /// A cell starts to exchange a set.
    pub(super) fn start_message_exchange(
        &mut self,
        queue: &mut MessageQueue,
        row: usize,
        set: usize,
    ) -> Result<CellState, RunError> {
        let (cell, loaded) = (self.cells[row], self.setup.loaded);
        let connections = loaded.set(set);
        self.take_part(row, set, By::Messages)?;
        let mut round = MessageRound::default();
        for &connection in loaded.sets[set].incoming.of(cell) {
            let source = connections.get(connection).source;
            if !queue.has(cell, Subject::Connection(set, connection), source) {
                round.awaited.insert(connection);
            }
        }
        if !connections.order().is_empty() {
            let begun = self.messages.begun.entry((row, set)).or_default();
            *begun += 1;
            round.number = *begun;
            self.messages.before.entry(set).or_insert_with(|| {
                let mut pairs: Vec<_> = connections.order().iter().map(|p| (p.1, p.0)).collect();
                pairs.sort_unstable();
                pairs
            });
        }
        round.unsent = std::mem::take(&mut queue.posted[cell.index()]).into();
        round.left = round.unsent.len();
        let spare = self.messages.take_spare(row);
        let asked = to_u64(round.awaited.len()) + u64::from(!spare);
        self.messages.engine.receive(cell, asked);
        self.messages.rounds[row] = round;
        self.states[row] = CellState::MessageExchange(set);
        self.send_next(queue, row, set)?;
        Ok(if self.messages.rounds[row].is_over() {
            CellState::Ready
        } else {
            CellState::MessageExchange(set)
        })
    }

    /// A cell starts an exchange by messages or steps: the same as the other cells.
    pub(super) fn take_part(&mut self, row: usize, set: usize, by: By) -> Result<(), RunError> {
        let (cell, number) = (self.cells[row], self.messages.taken_part[row]);
        self.messages.taken_part[row] += 1;
        match self.messages.exchanges.get(number) {
            None => self.messages.exchanges.push((set, by, cell)),
            Some(&(other, other_by, first)) if (other, other_by) != (set, by) => {
                let (phase, other) =
                    (self.exchange_name(other, other_by), self.exchange_name(set, by));
                return Err(RunError::Disagree { first, phase, second: cell, other });
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Whether all cells have started the same exchanges.
    pub(super) fn check_exchanges(&self) -> Result<(), RunError> {
        let taken_part = &self.messages.taken_part;
        let all = self.messages.exchanges.len();
        let Some(absent) = taken_part.iter().position(|&number| number < all) else {
            return Ok(());
        };
        let (set, by, waiting) = self.messages.exchanges[taken_part[absent]];
        let phase = self.exchange_name(set, by);
        Err(RunError::Ended { ended: self.cells[absent], waiting, phase })
    }

    fn exchange_name(&self, set: usize, by: By) -> String {
        let by = if by == By::Messages { "messages" } else { "steps" };
        format!("the exchange of {} by {by}", self.setup.loaded.set(set).name())
    }

    /// Hands over the next message of a cell that may be sent.
    fn send_next(&mut self, queue: &MessageQueue, row: usize, set: usize) -> Result<(), RunError> {
        let unsent = &self.messages.rounds[row].unsent;
        let may = |envelope: &u32| self.held_by(queue, row, set, *envelope).is_none();
        let Some(place) = unsent.iter().position(may) else { return Ok(()) };
        let envelope = self.messages.rounds[row].unsent.remove(place);
        envelope.map_or(Ok(()), |envelope| self.send_envelope(queue, envelope))
    }

    /// A connection that must be received before a message is sent.
    fn held_by(
        &self,
        queue: &MessageQueue,
        row: usize,
        set: usize,
        envelope: u32,
    ) -> Option<ConnectionId> {
        let Subject::Connection(_, connection) = queue.envelope(envelope).subject else {
            return None;
        };
        let order = self.messages.before.get(&set)?;
        let from = order.partition_point(|pair| pair.0 < connection);
        let before = order[from..].iter().take_while(|pair| pair.0 == connection);
        let number = self.messages.rounds[row].number;
        let counts = self.messages.received.get(&set);
        let count = |x: ConnectionId| counts.map_or(0, |counts| counts[x.index()]);
        before.map(|pair| pair.1).find(|&x| count(x) < number)
    }

    /// Takes note of why the engine stopped; `false` if nothing is under way.
    pub(super) fn handle_message_stop(
        &mut self,
        stop: Stop,
        state: &mut FabricState,
    ) -> Result<bool, RunError> {
        match stop {
            Stop::Idle => return Ok(false),
            Stop::Fault => return self.message_fault(&state.queue).map_or(Ok(true), Err),
            Stop::Timer => {
                let mut rows = Vec::new();
                self.messages.engine.take_timers(&mut rows);
                self.handle_copy_timers(state, &mut rows)?;
                self.handle_timers(rows);
            }
            Stop::Finished => {
                self.computation.made_progress();
                let mut events = Vec::new();
                self.messages.engine.take_events(&mut events);
                // A message that is received and read makes room for another one, so its sender is
                // looked up in the event.
                events.iter().for_each(|event| self.trace_message(&state.queue, event));
                for event in events {
                    let (source, envelope) = (event.message.source, event.message.label.0);
                    match event.direction {
                        Direction::Send => self.departed(state, source, envelope)?,
                        Direction::Receive => self.arrived(state, envelope)?,
                    }
                }
            }
        }
        Ok(true)
    }

    /// A message has left its source.
    fn departed(
        &mut self,
        state: &mut FabricState,
        source: CellId,
        envelope: u32,
    ) -> Result<(), RunError> {
        let queue = &state.queue;
        let row = index(self.place[source.index()]);
        match self.states[row] {
            CellState::Departure(sent) if sent == envelope => self.make_ready(row),
            CellState::MessageExchange(set) => {
                self.messages.rounds[row].left -= 1;
                self.send_next(queue, row, set)?;
                self.end_round(row);
            }
            CellState::StepExchange(_) => self.step_departed(state, row)?,
            CellState::Direct(pass) => self.pass_departed(row, pass, envelope),
            _ => {}
        }
        Ok(())
    }

    /// A message was received.
    fn arrived(&mut self, state: &mut FabricState, envelope: u32) -> Result<(), RunError> {
        let queue = &mut state.queue;
        self.messages.under_way.remove(&envelope);
        queue.keep(envelope);
        let (source, target) = (queue.envelope(envelope).source, queue.envelope(envelope).target);
        let subject = queue.envelope(envelope).subject;
        let row = index(self.place[target.index()]);
        let expected = match (self.states[row], subject) {
            (CellState::Receive(from, wanted), _) if (from, wanted) == (source, subject) => {
                self.make_ready(row);
                true
            }
            (CellState::ReceiveAny, Subject::Plain) => {
                self.make_ready(row);
                true
            }
            (CellState::Direct(pass), _) => self.pass_arrived(row, pass, (source, subject)),
            (CellState::MessageExchange(set), Subject::Connection(of, connection)) if set == of => {
                self.messages.rounds[row].awaited.remove(&connection)
            }
            (CellState::StepExchange(_), Subject::Step(round, message)) => {
                match self.awaits_step(row, round, message) {
                    Some(set) => return self.step_arrived(state, set, round, message),
                    None => false,
                }
            }
            _ => false,
        };
        if let CellState::StepExchange(set) = self.states[row] {
            self.ask_step_again(row, set, source);
        } else if !expected {
            self.ask_again(queue, row, target);
        }
        if let Subject::Connection(set, connection) = subject {
            self.release(queue, set, connection)?;
            if expected {
                self.end_round(row);
            }
        }
        Ok(())
    }

    /// A cell has received a message that it does not wait for: asks for another one in its place.
    fn ask_again(&mut self, queue: &MessageQueue, row: usize, cell: CellId) {
        match self.states[row] {
            CellState::MessageExchange(_) | CellState::Receive(..) | CellState::ReceiveAny => {
                self.messages.engine.receive(cell, 1);
            }
            CellState::Direct(pass) if pass.awaits_message() => {}
            CellState::Direct(_) => {
                self.messages.spare[row] = false;
                self.keep_spare(row, Subject::Direct);
            }
            state => {
                self.messages.spare[row] = false;
                if let CellState::Departure(own) = state {
                    self.keep_spare(row, queue.envelope(own).subject);
                }
            }
        }
    }

    /// A connection was received: messages that waited for it may be sent.
    fn release(
        &mut self,
        queue: &MessageQueue,
        set: usize,
        connection: ConnectionId,
    ) -> Result<(), RunError> {
        let setup = self.setup;
        let connections = setup.loaded.set(set);
        let order = connections.order();
        if order.is_empty() {
            return Ok(());
        }
        let counts = self.messages.received.entry(set);
        counts.or_insert_with(|| vec![0; connections.len()])[connection.index()] += 1;
        let from = order.partition_point(|pair| pair.0 < connection);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == connection) {
            let source = connections.get(after).source;
            let Some(row) = self.row_of(source) else { continue };
            if self.states[row] == CellState::MessageExchange(set)
                && self.messages.engine.is_quiet(source)
            {
                self.send_next(queue, row, set)?;
            }
        }
        Ok(())
    }

    fn end_round(&mut self, row: usize) {
        if matches!(self.states[row], CellState::MessageExchange(_))
            && self.messages.rounds[row].is_over()
        {
            self.make_ready(row);
        }
    }

    fn trace_message(&mut self, queue: &MessageQueue, event: &MessageEvent) {
        let close = self.messages.engine.now();
        let subject = queue.envelope(event.message.label.0).subject;
        let (set, connection) = match subject {
            Subject::Plain | Subject::Packet | Subject::Direct => return,
            Subject::Connection(set, connection) | Subject::Edge(set, connection) => {
                (set, connection)
            }
            // The trace of a step plan shows the numbers of its messages.
            Subject::Step(round, message) => (self.steps.set_of(round), ConnectionId(message)),
        };
        let Some(trace) = &mut self.report.trace else { return };
        let ends = (event.message.source, event.message.target);
        trace.streams.push(StreamSpan {
            set: to_u32(set),
            phase: PhaseId(0),
            cell: if event.direction == Direction::Send { ends.0 } else { ends.1 },
            direction: event.direction,
            connection,
            first_word: 0,
            words: event.message.words,
            slot: 0,
            open: event.start,
            close,
            arrived: event.arrived,
        });
    }

    /// No message moves any more: which cell waits for which.
    pub(super) fn message_deadlock(&self, queue: &MessageQueue) -> RunError {
        let waits = |states: &CellState| !matches!(states, CellState::Ended);
        let start = self.states.iter().position(waits).expect("programs wait");
        let wait =
            |row: usize| CellWait { cell: self.cells[row], awaiting: self.awaited(queue, row).0 };
        let next = |row: usize| self.awaited(queue, row).1.and_then(|cell| self.row_of(cell));
        follow(start, wait, next)
    }

    /// The place of a live cell.
    fn row_of(&self, cell: CellId) -> Option<usize> {
        self.cells.binary_search(&cell).ok()
    }

    /// What a cell waits for, and the cell that could change it.
    fn awaited(&self, queue: &MessageQueue, row: usize) -> (Awaiting, Option<CellId>) {
        match self.states[row] {
            CellState::Switch(context) => self.awaits_all(self.name(context)),
            CellState::Arrival(_) | CellState::Testing | CellState::Computing
                if self.waits_for_all(row) =>
            {
                let (set, ..) = self.unstarted().expect("it is what the cell waits for");
                self.awaits_all(self.nonblocking_name(set))
            }
            CellState::Receive(source, Subject::Edge(set, connection)) => {
                let set = self.setup.loaded.set(set).name().to_owned();
                (Awaiting::Edge { set, connection }, Some(source))
            }
            CellState::Receive(source, _) => (Awaiting::Message { source }, Some(source)),
            CellState::Departure(envelope) => {
                let target = queue.envelope(envelope).target;
                (Awaiting::Departure { target }, Some(target))
            }
            CellState::ReceiveAny => (Awaiting::AnyMessage, None),
            CellState::Direct(pass) => Self::awaited_in_pass(queue, pass),
            CellState::MessageExchange(set) => self.awaited_in_round(queue, row, set),
            CellState::StepExchange(set) => self.awaited_in_steps(row, set),
            CellState::Round => (Awaiting::Round, self.absent_in_round()),
            CellState::Ended => (Awaiting::Ended, None),
            _ => (Awaiting::Running, None),
        }
    }

    fn awaits_all(&self, phase: String) -> (Awaiting, Option<CellId>) {
        (Awaiting::Switch { phase }, self.absent_row().map(|row| self.cells[row]))
    }

    fn awaited_in_round(
        &self,
        queue: &MessageQueue,
        row: usize,
        set: usize,
    ) -> (Awaiting, Option<CellId>) {
        let (cell, connections) = (self.cells[row], self.setup.loaded.set(set));
        let name = connections.name().to_owned();
        let mine = self.messages.under_way.iter().map(|&row| queue.envelope(row));
        let mut sending = mine.filter(|envelope| envelope.source == cell);
        if let Some(envelope) = sending.next() {
            return (Awaiting::Departure { target: envelope.target }, Some(envelope.target));
        }
        let round = &self.messages.rounds[row];
        if let Some(&envelope) = round.unsent.front()
            && let Some(before) = self.held_by(queue, row, set, envelope)
            && let Subject::Connection(_, connection) = queue.envelope(envelope).subject
        {
            let source = connections.get(before).source;
            return (Awaiting::Order { set: name, connection, before }, Some(source));
        }
        match round.awaited.first() {
            Some(&connection) => {
                let source = connections.get(connection).source;
                (Awaiting::Exchange { set: name, connection }, Some(source))
            }
            None => (Awaiting::Running, None),
        }
    }
}

impl MessageRound {
    fn is_over(&self) -> bool {
        self.left == 0 && self.awaited.is_empty()
    }
}
