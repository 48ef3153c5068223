//! Exchanges that are begun and ended later: what goes out is lent, what comes in is read
//! whenever the cell calls.
//!
//! A *flight* is such an exchange of one cell, from its begin until its buffers are taken back.
//! [`Port::begin`] is a step like every collective call: the cell arrives, *lends* what goes out
//! (module `lent`) and publishes the step. From then on its targets read, whatever the cell does.
//! Whoever ends the first of its flights reads there as well; what comes in is copied when the cell
//! tests, waits for anything else, or begins so much that it must wait.
//!
//! # Order
//!
//! A flight has *arrived* when all of it and of those before was read, so those that have are the
//! first ones of a cell. Sources are read in any order, as soon as they have published; done with
//! a step (`Board::done`) is a cell only when it has read everything up to there.
//!
//! # When a begin waits
//!
//! As a rule it does not. It does where a cell is too far ahead of others: 64 steps
//! ([`WINDOW`]) before the last cell, or before the last reader of what it lent; or where
//! [`KEPT`] exchanges of the set that it has ended already are still being read. *Who waits has
//! read first*: before a begin waits for others, it waits for all flights of its own. So no two
//! cells wait for one another: of those that wait in a begin or for a flight, let the one at the
//! least step wait for words; their source is at no lesser step, and has published them. And if it
//! waits for readers, these are at no lesser step, and are themselves reading or have read.
//!
//! # Memory
//!
//! Whoever ends an exchange gets its buffers back at once. If those that went out are still being
//! read it gets others of the same sizes: of an exchange before, that has been read meanwhile, or
//! new ones. So there are as many as there are flights at a time, and at most [`KEPT`] + 1 more
//! for each set and cell.
//!
//! # Why reading what is lent is sound
//!
//! * *The memory is there.* It belongs to the board, which outlives all cells, and stays where it
//!   is until the owner takes it back.
//! * *It is what belongs to the step.* Both cells have compared what they do at the step with the
//!   same entry of the log, so the source has lent the buffers of this set, one for each
//!   connection, before it published. The reader knows the connection's row among them.
//! * *Nobody writes what is read.* The owner takes the buffers back, to pack them again, only
//!   after it has seen that each target of the set is done with the step; a target is done only
//!   after its last read of it. A place is filled again 64 steps later, after that. This holds
//!   when a run ends early as well: no rule here asks for who has acknowledged the end.

use std::collections::VecDeque;

use conset_ir::ConnectionId;

use super::board::Board;
use super::lent::Outgoing;
use super::port::ThreadPort;
use super::worker::{Answer, Awaited, Why};
use crate::call::Collective;
use crate::port::{Buffers, Stopped, Unpack};
use crate::sync::WINDOW;

/// Exchanges of a set that a cell may have ended while they are still being read.
const KEPT: usize = 3;

/// The exchanges that a cell has begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Those not taken back, in the order of their begin.
    flights: VecDeque<Flight>,
    /// So many of them, the first ones, have arrived.
    arrived: usize,
    /// What was lent and not taken back, in the order of steps.
    loans: VecDeque<Loan>,
    /// What nobody reads, by set.
    spare: Vec<Vec<Outgoing>>,
    /// Lists kept for their memory.
    lists: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Flight {
    number: u64,
    step: u64,
    set: usize,
    incoming: Vec<Vec<u64>>,
    /// Rows of `incoming` that have not been read.
    unread: Vec<u32>,
    /// The begin left a phase of this set, for the so manieth time: its words are to be counted.
    left: Option<(usize, u32)>,
    /// What went out, if it was taken back.
    outgoing: Option<Outgoing>,
}

/// What goes out of a flight.
#[derive(Clone, Copy, Debug)]
struct Loan {
    number: u64,
    step: u64,
    set: usize,
    /// The flight was ended.
    ended: bool,
}

impl Begun {
    /// The row of a flight.
    fn find(&self, number: u64) -> Option<usize> {
        self.flights.binary_search_by_key(&number, |flight| flight.number).ok()
    }

    /// Whether a flight, and all before it, have been read.
    fn has_arrived(&self, number: u64) -> bool {
        self.flights.get(self.arrived).is_none_or(|first| first.number > number)
    }
}

impl<'b> ThreadPort<'_, 'b> {
    /// [`crate::port::Port::begin`].
    pub(super) fn begin_flight(
        &mut self,
        number: u64,
        set: usize,
        buffers: Buffers,
    ) -> Result<(), Stopped> {
        self.check()?;
        self.make_room(set)?;
        let left = self.by_hand.take().map(|set| (set, self.count_sent(set)));
        self.arrive_at(Collective::Begun(set))?;
        self.order_done(set);
        let Buffers { outgoing, incoming } = buffers;
        // SAFETY: the place is the cell's own. What was in it before was taken back, as there is
        // room. The step is published below.
        unsafe { self.board.lent[self.id.index()].put(self.step, outgoing) };
        self.publish();
        let mut unread = self.begun.lists.pop().unwrap_or_default();
        let rows = (0u32..).zip(&incoming).filter(|(_, words)| !words.is_empty());
        unread.extend(rows.map(|(row, _)| row));
        let step = self.step;
        self.begun.loans.push_back(Loan { number, step, set, ended: false });
        let outgoing = None;
        let flight = Flight { number, step, set, incoming, unread, left, outgoing };
        self.begun.flights.push_back(flight);
        Ok(())
    }

    /// [`crate::port::Port::test`]: reads what is there, and lets others go on if that is not all.
    pub(super) fn test_flight(&mut self, number: u64) -> Result<bool, Stopped> {
        if self.board.ending.has_begun() {
            return Err(Stopped);
        }
        self.board.activity[self.worker.number].0.test();
        self.read_what_is_there()?;
        if self.begun.has_arrived(number) {
            return Ok(true);
        }
        let awaited = Awaited { asks: true, ..self.missing(self.begun.arrived) };
        match self.yielder.suspend(awaited) {
            Answer::Done => self.read_what_is_there()?,
            Answer::Aborted => return Err(Stopped),
        }
        Ok(self.begun.has_arrived(number))
    }

    /// [`crate::port::Port::arrive`]: reads all flights up to this one.
    pub(super) fn read_flights(&mut self, last: u64) -> Result<(), Stopped> {
        while !self.begun.has_arrived(last) {
            let row = self.begun.arrived;
            while !self.read(row)? {
                let Awaited { counter, value, why, .. } = self.missing(row);
                self.wait(counter, value, why)?;
            }
            self.arrived();
        }
        Ok(())
    }

    /// [`crate::port::Port::read`]: what has not been copied is read where its source lends it.
    pub(super) fn read_in_place(
        &mut self,
        number: u64,
        unpack: &mut Unpack<'_>,
    ) -> Result<Buffers, Stopped> {
        if let Some(before) = number.checked_sub(1) {
            self.read_flights(before)?;
        }
        let at = self.begun.find(number).expect("the exchange has been begun");
        let (board, id) = (self.board, self.id);
        let Flight { step, set, .. } = self.begun.flights[at];
        for (row, &connection) in board.loaded.sets[set].inn.of(id).iter().enumerate() {
            let flight = &self.begun.flights[at];
            if flight.unread.binary_search(&(row as u32)).is_err() {
                unpack((row, 0), &flight.incoming[row]);
                continue;
            }
            let source = board.loaded.set(set).get(connection).source;
            let published = &board.published[source.index()].0;
            self.wait(published, step, Why::Rows(set, connection))?;
            // SAFETY: as in `read`.
            let words = unsafe { lent_words(board, (step, set), connection) };
            unpack((row, 0), words);
            self.worker.moved(words.len());
        }
        self.begun.flights[at].unread.clear();
        self.read_flights(number)?;
        Ok(self.take_flight(number))
    }

    /// Reads all flights. To be called before anything waits for other cells.
    pub(super) fn read_in(&mut self) -> Result<(), Stopped> {
        match self.begun.flights.back().map(|flight| flight.number) {
            Some(last) => self.read_flights(last),
            None => Ok(()),
        }
    }

    /// [`crate::port::Port::take`].
    pub(super) fn take_flight(&mut self, number: u64) -> Buffers {
        let row = self.begun.find(number).expect("the exchange has been begun");
        let Flight { set, incoming, outgoing, unread, .. } =
            self.begun.flights.remove(row).expect("it was found");
        self.begun.arrived -= 1;
        self.begun.lists.push(unread);
        for loan in self.begun.loans.iter_mut().filter(|loan| loan.number == number) {
            loan.ended = true;
        }
        let outgoing = outgoing.unwrap_or_else(|| self.outgoing_of(set));
        Buffers { outgoing, incoming }
    }

    /// The first of the flights that have not arrived was read.
    fn arrived(&mut self) {
        let flight = &self.begun.flights[self.begun.arrived];
        self.board.done[self.id.index()].0.publish(flight.step);
        self.begun.arrived += 1;
    }

    /// Reads of all flights what can be read without waiting.
    fn read_what_is_there(&mut self) -> Result<(), Stopped> {
        for row in self.begun.arrived..self.begun.flights.len() {
            if self.read(row)? && row == self.begun.arrived {
                self.arrived();
            }
        }
        Ok(())
    }

    /// Reads of a flight what can be read without waiting; whether that is all.
    fn read(&mut self, row: usize) -> Result<bool, Stopped> {
        let (board, id) = (self.board, self.id);
        let Flight { step, set, incoming, unread, left, .. } = &mut self.begun.flights[row];
        let (step, set) = (*step, *set);
        unread.retain(|&row| {
            let connection = board.loaded.sets[set].inn.of(id)[row as usize];
            let source = board.loaded.set(set).get(connection).source;
            if !board.published[source.index()].0.has_reached(step) {
                return true;
            }
            // SAFETY: the source has published the step, at which it lends what goes out, as this
            // cell does. This cell is done with the step when all is read (`arrived`).
            let words = unsafe { lent_words(board, (step, set), connection) };
            incoming[row as usize].copy_from_slice(words);
            self.worker.moved(words.len());
            false
        });
        let Some((phase_of, times)) = *left else { return Ok(unread.is_empty()) };
        if board.arrived.iter().any(|arrived| !arrived.0.has_reached(step)) {
            return Ok(false);
        }
        *left = None;
        let all = unread.is_empty();
        self.count_received(phase_of, times)?;
        Ok(all)
    }

    /// What a flight that is not read waits for.
    fn missing(&self, row: usize) -> Awaited<'b> {
        let (board, flight) = (self.board, &self.begun.flights[row]);
        let (value, asks) = (flight.step, false);
        if let Some(&row) = flight.unread.first() {
            let connection = board.loaded.sets[flight.set].inn.of(self.id)[row as usize];
            let source = board.loaded.set(flight.set).get(connection).source;
            let counter = &board.published[source.index()].0;
            return Awaited { counter, value, why: Why::Rows(flight.set, connection), asks };
        }
        let late = board.arrived.iter().find(|arrived| !arrived.0.has_reached(value));
        let counter = &late.unwrap_or(&board.arrived[0]).0;
        Awaited { counter, value, why: Why::Arrival(value), asks }
    }

    /// Sees to it that another exchange of the set can be begun.
    fn make_room(&mut self, set: usize) -> Result<(), Stopped> {
        let next = self.step + 1;
        while self.begun.loans.front().is_some_and(|loan| loan.step + WINDOW <= next) {
            self.recall(0)?;
        }
        let kept = |loan: &Loan| loan.ended && loan.set == set;
        while self.begun.loans.iter().filter(|loan| kept(loan)).count() > KEPT {
            let first = self.begun.loans.iter().position(kept).expect("there are some");
            self.recall(first)?;
        }
        Ok(())
    }

    /// Takes back what was lent, as soon as it is read.
    fn recall(&mut self, row: usize) -> Result<(), Stopped> {
        let loan = self.begun.loans[row];
        if self.reader_of(loan).is_some() {
            self.read_in()?;
        }
        while let Some((connection, target)) = self.reader_of(loan) {
            let done = &self.board.done[target].0;
            self.wait(done, loan.step, Why::Readers(loan.set, connection))?;
        }
        let outgoing = self.take_back(row);
        match self.begun.find(loan.number) {
            Some(flight) => self.begun.flights[flight].outgoing = Some(outgoing),
            None => self.spare(loan.set).push(outgoing),
        }
        Ok(())
    }

    /// A connection, and the cell at its end, of which the words are still to be read.
    fn reader_of(&self, loan: Loan) -> Option<(ConnectionId, usize)> {
        let (board, connections) = (self.board, self.board.loaded.set(loan.set));
        board.loaded.sets[loan.set].out.of(self.id).iter().find_map(|&connection| {
            let ends = connections.get(connection);
            let target = ends.target.index();
            let reads = ends.words > 0 && !board.done[target].0.has_reached(loan.step);
            reads.then_some((connection, target))
        })
    }

    /// Takes back what was lent and is read.
    fn take_back(&mut self, row: usize) -> Outgoing {
        let loan = self.begun.loans.remove(row).expect("there is such a loan");
        // SAFETY: the place is the cell's own, and all targets are done with the step: whoever
        // calls this has asked `reader_of`.
        unsafe { self.board.lent[self.id.index()].take(loan.step) }
    }

    fn spare(&mut self, set: usize) -> &mut Vec<Outgoing> {
        let spare = &mut self.begun.spare;
        if spare.len() <= set {
            spare.resize_with(set + 1, Vec::new);
        }
        &mut spare[set]
    }

    /// Buffers for what goes out of a set, that nobody reads.
    fn outgoing_of(&mut self, set: usize) -> Outgoing {
        let kept = |loan: &Loan| loan.ended && loan.set == set && self.reader_of(*loan).is_none();
        if let Some(row) = self.begun.loans.iter().position(kept) {
            return self.take_back(row);
        }
        if let Some(outgoing) = self.spare(set).pop() {
            return outgoing;
        }
        let connections = self.board.loaded.set(set);
        let words = |&x: &ConnectionId| vec![0; connections.get(x).words as usize];
        self.board.loaded.sets[set].out.of(self.id).iter().map(words).collect()
    }
}

/// The words of a connection that its source lends at a step, at which this set is exchanged.
///
/// # Safety
/// As [`super::lent::Lent::row`]; the step is that of an exchange of the set at the source as well.
unsafe fn lent_words<'b>(
    board: &'b Board<'_>,
    (step, set): (u64, usize),
    connection: ConnectionId,
) -> &'b [u64] {
    let source = board.loaded.set(set).get(connection).source;
    let row = board.loaded.sets[set].out.of(source).binary_search(&connection);
    // SAFETY: handed on.
    unsafe { board.lent[source.index()].row(step, row.expect("the source is its end")) }
}
