//! Exchanges that cells have begun, and that go on while their programs do something else.
//!
//! A flight keeps the buffers of its exchange, for the cell that began it. It goes out as soon as
//! the last exchange of the same cell and set has arrived, and the targets on its rank have read
//! that; until then it waits its turn, so that exchanges of a set are done in the order in which they were
//! begun. Those of different sets have wires of their own ([`super::wires`]) and can be under way
//! at the same time. What has arrived is copied to the flight's buffers at once: then the next
//! one of the set can start, whenever the program asks for the last.
//!
//! Two copies can be spared. Where an exchange can go out as it is begun it is packed where MPI
//! sends it from ([`super::port`]). And a cell that waits to end its oldest flight *claims* it: what
//! arrives is left where MPI received it, until the cell reads it there ([`Flights::read`]).
//!
//! Nobody works on flights but [`Flights::progress`], which goes over those of all cells of the
//! rank and never waits. It is called whenever a cell begins or tests, and again and again while
//! the rank's cells wait. Between two calls MPI may or may not move messages; what is sent at
//! once it moves.
//!
//! Why nothing waits in a circle: the n-th exchange of a set waits for others' n-th and for
//! earlier ones of the same set only, and every cell begins the same ones in the same order. A
//! cell that waits for anything else has waited for its flights before.
//!
//! What it does not do: own memory that MPI knows of. That is the wires', so that flights can be
//! dropped at any time.

use std::cell::{Cell as Slot, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::error::MpiError;
use super::wires::{Numbered, Wires};
use crate::port::{Buffers, Unpack};

/// An exchange that a cell has begun.
pub(super) struct Flight {
    /// As the cell counts them.
    pub(super) number: u64,
    /// Its number among all that the cell does together with others ([`super::steps`]), and where
    /// it was begun.
    pub(super) call: Numbered,
    pub(super) set: usize,
    pub(super) wires: Rc<Wires>,
    pub(super) buffers: Buffers,
}

/// What is to be known of a flight by others.
pub(super) struct Oldest {
    pub(super) step: u64,
    pub(super) set: usize,
    /// It has gone out.
    pub(super) out: bool,
}

/// A flight that has not arrived.
struct UnderWay {
    flight: Flight,
    /// It has gone out.
    out: bool,
    /// Its cell waits to read it where it arrives.
    claimed: bool,
}

/// The flights of one cell, oldest first.
#[derive(Default)]
struct Row {
    under_way: VecDeque<UnderWay>,
    arrived: Vec<(u64, Buffers)>,
    /// Sets of which a flight was seen to wait for its turn; kept for its memory.
    held: Vec<usize>,
}

/// The flights of a rank's cells.
pub(super) struct Flights {
    rows: RefCell<Vec<Row>>,
    /// Flights of all rows that have not arrived.
    under_way: Slot<usize>,
}

impl Flights {
    pub(super) fn new(cells: usize) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(cells, Row::default);
        Self { rows: RefCell::new(rows), under_way: Slot::new(0) }
    }

    /// Another flight of a cell, with a higher number than its last; whether it has gone out.
    pub(super) fn push(&self, row: usize, flight: Flight, out: bool) {
        let flights = &mut self.rows.borrow_mut()[row];
        flights.under_way.push_back(UnderWay { flight, out, claimed: false });
        // Here, so that how words come does not decide when memory is asked for.
        flights.arrived.reserve(flights.under_way.len());
        flights.held.clear();
        flights.held.reserve(flights.under_way.len());
        self.under_way.set(self.under_way.get() + 1);
    }

    /// Whether a flight of the set waits for its turn, so that no other may go out.
    pub(super) fn has_waiting(&self, row: usize, set: usize) -> bool {
        let rows = self.rows.borrow();
        rows[row].under_way.iter().any(|one| one.flight.set == set && !one.out)
    }

    /// A cell wants its oldest flight that has not arrived for [`Flights::read`].
    pub(super) fn claim(&self, row: usize) {
        if let Some(oldest) = self.rows.borrow_mut()[row].under_way.front_mut() {
            oldest.claimed = true;
        }
    }

    /// Hands over, if it is there, what came in of the flight that a cell has claimed.
    pub(super) fn read(&self, row: usize, unpack: &mut Unpack<'_>) -> Result<bool, MpiError> {
        let flights = &mut self.rows.borrow_mut()[row];
        let Some(oldest) = flights.under_way.front() else { return Ok(false) };
        let wires = &oldest.flight.wires;
        if !oldest.out || !wires.poll(row, 1)? {
            return Ok(false);
        }
        wires.end(row, |run, wire| unpack((run.slot, run.words.start), wire))?;
        if let Some(UnderWay { flight, .. }) = flights.under_way.pop_front() {
            flights.arrived.push((flight.number, flight.buffers));
            self.under_way.set(self.under_way.get() - 1);
        }
        Ok(true)
    }

    /// Does for all flights what can be done at once, with some tries for the oldest of each cell;
    /// whether one went out or arrived.
    #[inline]
    pub(super) fn progress(&self, tries: u32) -> Result<bool, MpiError> {
        if self.under_way.get() == 0 {
            return Ok(false);
        }
        let mut any = false;
        for (row, flights) in self.rows.borrow_mut().iter_mut().enumerate() {
            any |= flights.progress(row, tries)?;
        }
        let lengths = self.rows.borrow().iter().map(|flights| flights.under_way.len()).sum();
        self.under_way.set(lengths);
        Ok(any)
    }

    /// Whether a cell's flight, and all that it began before, have arrived.
    pub(super) fn have_arrived(&self, row: usize, number: u64) -> bool {
        let rows = self.rows.borrow();
        rows[row].under_way.front().is_none_or(|first| first.flight.number > number)
    }

    /// The buffers of a flight that has arrived.
    pub(super) fn take(&self, row: usize, number: u64) -> Buffers {
        let arrived = &mut self.rows.borrow_mut()[row].arrived;
        let at = arrived.iter().position(|flight| flight.0 == number);
        arrived.swap_remove(at.expect("the flight has arrived")).1
    }

    /// A cell's oldest flight that has not arrived.
    pub(super) fn oldest(&self, row: usize) -> Option<Oldest> {
        let rows = self.rows.borrow();
        rows[row].under_way.front().map(|UnderWay { flight, out, .. }| Oldest {
            step: flight.call.0,
            set: flight.set,
            out: *out,
        })
    }
}

impl Row {
    /// As [`Flights::progress`], in their order. Where a flight cannot go out, later ones of its
    /// set are not asked: by then they might, and would overtake it.
    fn progress(&mut self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let (mut at, mut any) = (0, false);
        self.held.clear();
        while let Some(next) = self.under_way.get_mut(at) {
            let was_out = next.out;
            if !was_out && self.held.contains(&next.flight.set) {
                at += 1;
                continue;
            }
            let arrived = next.progress(row, if at == 0 { tries } else { 1 })?;
            any |= arrived || next.out != was_out;
            if !next.out {
                self.held.push(next.flight.set);
            }
            if !arrived {
                at += 1;
            } else if let Some(UnderWay { flight, .. }) = self.under_way.remove(at) {
                self.arrived.push((flight.number, flight.buffers));
            }
        }
        Ok(any)
    }
}

impl UnderWay {
    /// Sends, receives and copies as far as it can be done at once; whether all has arrived.
    fn progress(&mut self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let Flight { wires, buffers, call, .. } = &mut self.flight;
        if !self.out {
            if !wires.is_ready(row)? {
                return Ok(false);
            }
            wires.begin(row, *call, |run, wire| {
                wire.copy_from_slice(&buffers.outgoing[run.slot][run.words.clone()]);
            })?;
            self.out = true;
        }
        if !wires.poll(row, tries)? || self.claimed {
            return Ok(false);
        }
        wires.end(row, |run, wire| {
            buffers.incoming[run.slot][run.words.clone()].copy_from_slice(wire);
        })?;
        Ok(true)
    }
}
