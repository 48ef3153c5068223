//! The scheduler's part for messages: letters are handed to the message engine one at a time for
//! each cell, and cells are resumed when theirs have left or come.
//!
//! A cell that exchanges a set sends its letters in the order of the set, the next when the last
//! has left, and a letter not before all those ordered before it were received in this round. It
//! asks for as many letters as it waits for, and for one to spare. Whatever else comes is kept for
//! later, and one more asked for in its place: so letters of the next round do no harm, even to a
//! cell that has received all of its own and is still sending. (Without the spare one they would
//! stand in the network before such cells, and hold the channels that its letters need.)

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use conset_fabric::Stop;
use conset_fabric::messages::{Message, MessageEngine, MessageEvent};
use conset_fabric::trace::StreamSpan;
use conset_ir::{CellId, ConnectionId, Direction, Machine, PhaseId};

use super::{At, Run};
use crate::error::{Awaiting, CellWait, RunError};
use crate::mail::{Mail, Subject};
use crate::waits::follow;

/// The machine's message side, and the exchanges that cells are at.
pub(super) struct Messages {
    pub(super) engine: MessageEngine,
    /// It is at work, and not the engine of connections.
    pub(super) active: bool,
    /// Letters handed to the engine and not received.
    under_way: BTreeSet<u32>,
    /// By place of the cell.
    rounds: Vec<Round>,
    /// By place of the cell: it has asked for one more letter than it waits for.
    spare: Vec<bool>,
    /// Exchanges begun: the set and the first cell; and how many each cell has begun. They are
    /// collective, though cells without a part in one wait for nobody.
    exchanges: Vec<(usize, CellId)>,
    taken_part: Vec<usize>,
    /// For sets with an order: its pairs the other way round, sorted.
    before: BTreeMap<usize, Vec<(ConnectionId, ConnectionId)>>,
    /// For sets with an order: how often each connection was received, by set.
    received: BTreeMap<usize, Vec<u64>>,
    /// How often a cell has begun to exchange a set that has an order.
    begun: BTreeMap<(usize, usize), u64>,
}

/// A cell's exchange of a set.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Letters to be sent, in order, and how many have not left.
    unsent: VecDeque<u32>,
    left: usize,
    awaited: BTreeSet<ConnectionId>,
    /// Which of the cell's exchanges of the set it is, where that has an order.
    number: u64,
}

impl Messages {
    pub(super) fn new(machine: &Arc<Machine>, cells: usize) -> Self {
        Self {
            engine: MessageEngine::new(machine.clone(), true),
            active: true,
            under_way: BTreeSet::new(),
            rounds: vec![Round::default(); cells],
            spare: vec![false; cells],
            exchanges: Vec::new(),
            taken_part: vec![0; cells],
            before: BTreeMap::new(),
            received: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    /// Takes over at a clock, with nothing under way.
    pub(super) fn enter(&mut self, clock: u64) {
        self.active = true;
        if clock > self.engine.now() {
            self.engine.set_timer(clock - self.engine.now(), 0);
            self.engine.run(&mut Mail::default());
            self.engine.take_timers(&mut Vec::new());
        }
    }

    /// A message that was sent and not received.
    pub(super) fn left_over(&self, mail: &Mail) -> Option<RunError> {
        let row = self.under_way.first().copied().or_else(|| mail.unread())?;
        let letter = mail.letter(row);
        let (cell, from, words) = (letter.target, letter.source, mail.words(row));
        Some(RunError::UnreceivedMessage { cell, from, words })
    }
}

impl Run<'_> {
    /// Hands a letter to the engine.
    pub(super) fn send_letter(&mut self, mail: &Mail, row: u32) -> Result<(), RunError> {
        let letter = mail.letter(row);
        let message = Message {
            source: letter.source,
            target: letter.target,
            words: u32::try_from(mail.words(row)).unwrap_or(u32::MAX),
            label: ConnectionId(row),
        };
        self.messages.under_way.insert(row);
        self.messages.engine.send(message).map_err(|kind| self.fault(kind))
    }

    /// A cell asks for a letter.
    pub(super) fn receive_letter(&mut self, mail: &Mail, row: usize, source: CellId) -> At {
        let cell = self.cells[row];
        if mail.has(cell, Subject::Plain, source) {
            return At::Ready;
        }
        self.messages.engine.receive(cell, 1);
        At::Receive(source)
    }

    /// A cell begins to exchange a set.
    pub(super) fn begin_letters(
        &mut self,
        mail: &mut Mail,
        row: usize,
        set: usize,
    ) -> Result<At, RunError> {
        let (cell, loaded) = (self.cells[row], &self.world.loaded);
        let connections = loaded.set(set);
        self.take_part(row, set)?;
        let mut round = Round::default();
        for &connection in loaded.sets[set].inn.of(cell) {
            let source = connections.get(connection).source;
            if !mail.has(cell, Subject::Connection(set, connection), source) {
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
        round.unsent = std::mem::take(&mut mail.posted[cell.index()]).into();
        round.left = round.unsent.len();
        let spare = std::mem::replace(&mut self.messages.spare[row], true);
        let asked = round.awaited.len() as u64 + u64::from(!spare);
        self.messages.engine.receive(cell, asked);
        self.messages.rounds[row] = round;
        self.at[row] = At::Letters(set);
        self.send_next(mail, row, set)?;
        Ok(if self.messages.rounds[row].is_over() { At::Ready } else { At::Letters(set) })
    }

    /// A cell begins an exchange: the same as the other cells.
    fn take_part(&mut self, row: usize, set: usize) -> Result<(), RunError> {
        let (cell, number) = (self.cells[row], self.messages.taken_part[row]);
        self.messages.taken_part[row] += 1;
        match self.messages.exchanges.get(number) {
            None => self.messages.exchanges.push((set, cell)),
            Some(&(other, first)) if other != set => {
                let (phase, other) = (self.exchange_name(other), self.exchange_name(set));
                return Err(RunError::Disagree { first, phase, second: cell, other });
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Whether all cells have begun the same exchanges.
    pub(super) fn check_exchanges(&self) -> Result<(), RunError> {
        let taken_part = &self.messages.taken_part;
        let all = self.messages.exchanges.len();
        let Some(absent) = taken_part.iter().position(|&number| number < all) else {
            return Ok(());
        };
        let (set, waiting) = self.messages.exchanges[taken_part[absent]];
        let phase = self.exchange_name(set);
        Err(RunError::Ended { ended: self.cells[absent], waiting, phase })
    }

    fn exchange_name(&self, set: usize) -> String {
        format!("the exchange of {} by messages", self.world.loaded.set(set).name())
    }

    /// Hands over the next letter of a cell that may be sent.
    fn send_next(&mut self, mail: &Mail, row: usize, set: usize) -> Result<(), RunError> {
        let unsent = &self.messages.rounds[row].unsent;
        let may = |letter: &u32| self.held_by(mail, row, set, *letter).is_none();
        let Some(place) = unsent.iter().position(may) else { return Ok(()) };
        let letter = self.messages.rounds[row].unsent.remove(place);
        letter.map_or(Ok(()), |letter| self.send_letter(mail, letter))
    }

    /// A connection that must be received before a letter is sent.
    fn held_by(&self, mail: &Mail, row: usize, set: usize, letter: u32) -> Option<ConnectionId> {
        let Subject::Connection(_, connection) = mail.letter(letter).subject else { return None };
        let order = self.messages.before.get(&set)?;
        let from = order.partition_point(|pair| pair.0 < connection);
        let before = order[from..].iter().take_while(|pair| pair.0 == connection);
        let number = self.messages.rounds[row].number;
        let counts = self.messages.received.get(&set);
        let count = |x: ConnectionId| counts.map_or(0, |counts| counts[x.index()]);
        before.map(|pair| pair.1).find(|&x| count(x) < number)
    }

    /// Takes note of why the engine stopped; `false` if nothing is under way.
    pub(super) fn heed_messages(&mut self, stop: Stop, mail: &mut Mail) -> Result<bool, RunError> {
        match stop {
            Stop::Idle => return Ok(false),
            Stop::Fault => {}
            Stop::Timer => {
                let mut rows = Vec::new();
                self.messages.engine.take_timers(&mut rows);
                self.heed_timers(rows);
            }
            Stop::Finished => {
                self.work.goes_on();
                let mut events = Vec::new();
                self.messages.engine.take_events(&mut events);
                for event in events {
                    self.trace_letter(mail, &event);
                    match event.direction {
                        Direction::Send => self.has_left(mail, event.message.label.0)?,
                        Direction::Receive => self.has_come(mail, event.message.label.0)?,
                    }
                }
            }
        }
        Ok(true)
    }

    /// A letter has left its source.
    fn has_left(&mut self, mail: &Mail, letter: u32) -> Result<(), RunError> {
        let row = self.place[mail.letter(letter).source.index()] as usize;
        match self.at[row] {
            At::Letter(sent) if sent == letter => self.make_ready(row),
            At::Letters(set) => {
                self.messages.rounds[row].left -= 1;
                self.send_next(mail, row, set)?;
                self.end_round(row);
            }
            _ => {}
        }
        Ok(())
    }

    /// A letter was received.
    fn has_come(&mut self, mail: &mut Mail, letter: u32) -> Result<(), RunError> {
        self.messages.under_way.remove(&letter);
        mail.keep(letter);
        let (source, target) = (mail.letter(letter).source, mail.letter(letter).target);
        let subject = mail.letter(letter).subject;
        let row = self.place[target.index()] as usize;
        let expected = match (self.at[row], subject) {
            (At::Receive(from), Subject::Plain) if from == source => {
                self.make_ready(row);
                true
            }
            (At::Letters(set), Subject::Connection(of, connection)) if set == of => {
                self.messages.rounds[row].awaited.remove(&connection)
            }
            _ => false,
        };
        if !expected && matches!(self.at[row], At::Letters(_) | At::Receive(_)) {
            self.messages.engine.receive(target, 1);
        } else if !expected {
            self.messages.spare[row] = false;
        }
        if let Subject::Connection(set, connection) = subject {
            self.release(mail, set, connection)?;
            if expected {
                self.end_round(row);
            }
        }
        Ok(())
    }

    /// A connection was received: letters that waited for it may be sent.
    fn release(
        &mut self,
        mail: &Mail,
        set: usize,
        connection: ConnectionId,
    ) -> Result<(), RunError> {
        let world = self.world;
        let connections = world.loaded.set(set);
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
            if self.at[row] == At::Letters(set) && self.messages.engine.is_quiet(source) {
                self.send_next(mail, row, set)?;
            }
        }
        Ok(())
    }

    fn end_round(&mut self, row: usize) {
        if matches!(self.at[row], At::Letters(_)) && self.messages.rounds[row].is_over() {
            self.make_ready(row);
        }
    }

    fn trace_letter(&mut self, mail: &Mail, event: &MessageEvent) {
        let close = self.messages.engine.now();
        let subject = mail.letter(event.message.label.0).subject;
        let (Some(trace), Subject::Connection(set, connection)) = (&mut self.report.trace, subject)
        else {
            return;
        };
        let ends = (event.message.source, event.message.target);
        trace.streams.push(StreamSpan {
            set: set as u32,
            phase: PhaseId(0),
            cell: if event.direction == Direction::Send { ends.0 } else { ends.1 },
            direction: event.direction,
            connection,
            words: event.message.words,
            slot: 0,
            open: event.start,
            close,
        });
    }

    /// No message moves any more: who waits for whom.
    pub(super) fn stuck_messages(&self, mail: &Mail) -> RunError {
        let waits = |at: &At| !matches!(at, At::Ended);
        let start = self.at.iter().position(waits).expect("programs wait");
        let wait =
            |row: usize| CellWait { cell: self.cells[row], awaiting: self.awaited(mail, row).0 };
        let next = |row: usize| self.awaited(mail, row).1.and_then(|cell| self.row_of(cell));
        follow(start, wait, next)
    }

    /// The place of a live cell.
    fn row_of(&self, cell: CellId) -> Option<usize> {
        self.cells.binary_search(&cell).ok()
    }

    /// What a cell waits for, and the cell that could change it.
    fn awaited(&self, mail: &Mail, row: usize) -> (Awaiting, Option<CellId>) {
        match self.at[row] {
            At::Switch(context) => self.awaits_all(self.name(context)),
            At::Arrival(_) | At::Testing | At::Computing if self.waits_for_all(row) => {
                let (set, ..) = self.unstarted().expect("it is what the cell waits for");
                self.awaits_all(self.flight_name(set))
            }
            At::Receive(source) => (Awaiting::Message { source }, Some(source)),
            At::Letter(letter) => {
                let target = mail.letter(letter).target;
                (Awaiting::Departure { target }, Some(target))
            }
            At::Letters(set) => self.awaited_in_round(mail, row, set),
            At::Ended => (Awaiting::Ended, None),
            _ => (Awaiting::Running, None),
        }
    }

    fn awaits_all(&self, phase: String) -> (Awaiting, Option<CellId>) {
        (Awaiting::Switch { phase }, self.absent_row().map(|row| self.cells[row]))
    }

    fn awaited_in_round(&self, mail: &Mail, row: usize, set: usize) -> (Awaiting, Option<CellId>) {
        let (cell, connections) = (self.cells[row], self.world.loaded.set(set));
        let name = connections.name().to_owned();
        let mine = self.messages.under_way.iter().map(|&row| mail.letter(row));
        let mut sending = mine.filter(|letter| letter.source == cell);
        if let Some(letter) = sending.next() {
            return (Awaiting::Departure { target: letter.target }, Some(letter.target));
        }
        let round = &self.messages.rounds[row];
        if let Some(&letter) = round.unsent.front()
            && let Some(before) = self.held_by(mail, row, set, letter)
            && let Subject::Connection(_, connection) = mail.letter(letter).subject
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

impl Round {
    fn is_over(&self) -> bool {
        self.left == 0 && self.awaited.is_empty()
    }
}
