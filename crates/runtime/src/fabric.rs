//! The port of a cell on the emulated machine.
//!
//! Every call that takes time is a request to the scheduler, for which the coroutine is
//! suspended until the clock at which it is done. Exchanges that are begun the scheduler does by
//! itself, with the buffers that the port leaves in the run's state.

use std::cell::RefCell;

use conset_ir::{CellId, Operation, PhaseId};
use corosensei::Yielder;

use crate::call::{Call, CallLog, Collective};
use crate::error::{CellError, RunError};
use crate::lists::{CellLists, Op, VectorMut};
use crate::loaded::Loaded;
use crate::mail::{Mail, Subject};
use crate::port::{Buffers, By, Context, Pack, Port, Row, Stopped, exchange_packed};
use crate::store::{Packs, Store};

/// What a cell asks the scheduler for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Wait for all cells, then switch.
    Switch(Context),
    /// One word of a stream; whether it is the first, which opens the stream.
    Element(Operation, bool),
    /// The cell's operation list of the active phase.
    List,
    /// Local work, in clocks.
    Compute(u64),
    /// Send a letter.
    Letter(u32),
    /// Receive a letter of a cell.
    Receive(CellId),
    /// The cell's posted letters for a set, and all that come for it.
    Letters(usize),
    /// Begin an exchange of a set, the cell's next.
    Begin(usize),
    /// Look whether an exchange that was begun has arrived, which has not yet.
    Test,
    /// Wait until an exchange that was begun has arrived.
    Arrival(u64),
}

/// The scheduler's answer: go on, or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Aborted,
}

/// What all cells and the scheduler share in one run.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) packs: Packs,
    pub(crate) mail: Mail,
    pub(crate) clock: u64,
    pub(crate) calls: CallLog,
    /// The first error of a cell's call.
    pub(crate) error: Option<RunError>,
    pub(crate) aborted: bool,
}

/// The port of one cell.
pub(crate) struct FabricPort<'w> {
    pub(crate) id: CellId,
    pub(crate) loaded: &'w Loaded,
    pub(crate) state: &'w RefCell<State>,
    pub(crate) yielder: &'w Yielder<Answer, Request>,
    /// The call that is being made.
    pub(crate) call: Call,
    /// Cells of the run.
    pub(crate) cells: usize,
}

impl FabricPort<'_> {
    fn request(&mut self, request: Request) -> Result<(), Stopped> {
        match self.yielder.suspend(request) {
            Answer::Done if !self.has_stopped() => Ok(()),
            _ => Err(Stopped),
        }
    }

    /// Ends the run; the first error is kept.
    fn end(&self, error: RunError) {
        let mut state = self.state.borrow_mut();
        state.error.get_or_insert(error);
        state.aborted = true;
    }

    /// Makes a collective call, which must be the one that the others make.
    fn make(&self, what: Collective) -> Result<(), Stopped> {
        let own = (self.id, self.cells);
        let found = self.state.borrow_mut().calls.make(own, what, self.call, self.loaded);
        let Some(error) = found else { return Ok(()) };
        self.end(error);
        Err(Stopped)
    }

    fn has_arrived(&self, number: u64) -> bool {
        self.state.borrow().packs.has_arrived(self.id, number)
    }

    /// Exchanges a set by messages.
    ///
    /// # Safety
    /// As [`Port::exchange`].
    unsafe fn exchange_letters(
        &mut self,
        set: usize,
        outgoing: &[Row],
        incoming: &[Row],
    ) -> Result<(), Stopped> {
        let (ends, connections) = (&self.loaded.sets[set], self.loaded.set(set));
        {
            let mail = &mut self.state.borrow_mut().mail;
            for (&connection, row) in ends.out.of(self.id).iter().zip(outgoing) {
                // SAFETY: the caller says that the rows can be read.
                let words = (0..row.words).map(|index| unsafe { row.get(index) });
                let ways = (self.id, connections.get(connection).target);
                let letter = mail.post(ways, Subject::Connection(set, connection), words);
                mail.posted[self.id.index()].push(letter);
            }
        }
        self.request(Request::Letters(set))?;
        let mail = &mut self.state.borrow_mut().mail;
        for (&connection, row) in ends.inn.of(self.id).iter().zip(incoming) {
            let source = connections.get(connection).source;
            mail.read(self.id, Subject::Connection(set, connection), source, |words| {
                for (index, &bits) in words.iter().enumerate().take(row.words) {
                    // SAFETY: the caller says that incoming rows can be written.
                    unsafe { row.set(index, bits) };
                }
            });
        }
        Ok(())
    }
}

impl Port for FabricPort<'_> {
    fn has_stopped(&self) -> bool {
        self.state.borrow().aborted
    }

    fn fail(&mut self, error: &CellError) {
        self.end(RunError::Cell { cell: self.id, error: error.clone() });
    }

    fn at(&mut self, call: Call) {
        self.call = call;
    }

    fn clock(&self) -> u64 {
        self.state.borrow().clock
    }

    fn compute(&mut self, clocks: u64) -> Result<(), Stopped> {
        self.request(Request::Compute(clocks))
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        self.make(match to {
            Context::Messages => Collective::Messages,
            Context::Phase(set, phase) => Collective::Phase(set, phase),
        })?;
        self.request(Request::Switch(to))
    }

    fn send_word(&mut self, word: &Operation, opens: bool, bits: u64) -> Result<(), Stopped> {
        self.state.borrow_mut().store.put(word.connection, word.first_word, bits);
        self.request(Request::Element(*word, opens))
    }

    fn receive_word(&mut self, word: &Operation, opens: bool) -> Result<u64, Stopped> {
        self.request(Request::Element(*word, opens))?;
        Ok(self.state.borrow().store.get(word.connection, word.first_word))
    }

    unsafe fn exchange(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[Row],
        incoming: &[Row],
    ) -> Result<(), Stopped> {
        if by == By::Messages {
            self.make(Collective::Letters(set))?;
            // SAFETY: handed on.
            return unsafe { self.exchange_letters(set, outgoing, incoming) };
        }
        let ends = &self.loaded.sets[set];
        for phase in 0..self.loaded.image.sets()[set].phases.len() {
            let phase = PhaseId::from_index(phase);
            self.switch(Context::Phase(set, phase))?;
            if phase == PhaseId(0) {
                let store = &mut self.state.borrow_mut().store;
                for (&connection, row) in ends.out.of(self.id).iter().zip(outgoing) {
                    // SAFETY: the caller says that the rows can be read.
                    let words = (0..row.words).map(|index| unsafe { row.get(index) });
                    store.fill(connection, words);
                }
            }
            self.request(Request::List)?;
        }
        let store = &self.state.borrow().store;
        for (&connection, row) in ends.inn.of(self.id).iter().zip(incoming) {
            for index in 0..row.words {
                // SAFETY: the caller says that incoming rows can be written.
                unsafe { row.set(index, store.get(connection, index as u32)) };
            }
        }
        Ok(())
    }

    fn exchange_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: VectorMut<'_>,
    ) -> Result<(), Stopped> {
        exchange_packed(self, set, lists, op, vector)
    }

    fn begin(
        &mut self,
        number: u64,
        set: usize,
        mut buffers: Buffers,
        pack: &mut Pack<'_>,
    ) -> Result<(), Stopped> {
        self.make(Collective::Begun(set))?;
        buffers.fill(pack);
        let empty = self.loaded.image.sets()[set].phases.is_empty();
        self.state.borrow_mut().packs.put(self.id, number, empty, buffers);
        self.request(Request::Begin(set))
    }

    fn test(&mut self, number: u64) -> Result<bool, Stopped> {
        if !self.has_arrived(number) {
            self.request(Request::Test)?;
        }
        Ok(self.has_arrived(number))
    }

    fn arrive(&mut self, number: u64) -> Result<(), Stopped> {
        if self.has_arrived(number) {
            return Ok(());
        }
        self.request(Request::Arrival(number))
    }

    fn take(&mut self, number: u64) -> Buffers {
        self.state.borrow_mut().packs.take(self.id, number)
    }

    unsafe fn send_message(&mut self, target: CellId, words: Row) -> Result<(), Stopped> {
        // SAFETY: the caller says that the row can be read.
        let bits = (0..words.words).map(|index| unsafe { words.get(index) });
        let letter = self.state.borrow_mut().mail.post((self.id, target), Subject::Plain, bits);
        self.request(Request::Letter(letter))
    }

    unsafe fn receive_message(&mut self, source: CellId, into: Row) -> Result<usize, Stopped> {
        self.request(Request::Receive(source))?;
        let mail = &mut self.state.borrow_mut().mail;
        let read = mail.read(self.id, Subject::Plain, source, |words| {
            if words.len() == into.words {
                // SAFETY: the caller says that the row can be written.
                words.iter().enumerate().for_each(|(i, &bits)| unsafe { into.set(i, bits) });
            }
            words.len()
        });
        Ok(read.expect("the cell is resumed when the letter is there"))
    }
}
