//! The port of a cell over MPI.

use conset_ir::{CellId, ConnectionId, Direction, Operation, PhaseId};
use corosensei::Yielder;

use super::flights::Flight;
use super::lay::Run;
use super::mail::{Address, Letter};
use super::run::{Rank, Waits};
use super::steps::Together;
use super::wires::Wires;
use crate::call::Call;
use crate::error::{Awaiting, CellError, CellWait, RunError};
use crate::lists::{CellLists, Number, Op, VectorMut};
use crate::port::{Buffers, By, Context, Pack, Port, Row, Stopped, Unpack};

/// Tries to complete an exchange before other cells of the rank have their turn, and before the
/// rank does what else there is to do if there are no others.
const TRIES: u32 = 2;
const TRIES_ALONE: u32 = 32;

/// The port of one cell.
pub(super) struct MpiPort<'r> {
    pub(super) rank: &'r Rank<'r>,
    pub(super) id: CellId,
    /// The cell's place among those of the rank.
    pub(super) row: usize,
    pub(super) yielder: &'r Yielder<(), ()>,
    /// The call that is being made.
    pub(super) call: Call,
    /// The set of the active phase.
    pub(super) active: usize,
    /// For connections of it that start here: what must have been received before, and how many
    /// words that lacks.
    pub(super) order: Vec<(ConnectionId, ConnectionId, u32)>,
}

impl MpiPort<'_> {
    /// Lets the other cells of the rank have their turns until something is there.
    fn wait<T>(
        &self,
        what: Waits,
        mut look: impl FnMut() -> Result<Option<T>, RunError>,
    ) -> Result<T, Stopped> {
        self.set(what);
        loop {
            if self.rank.has_stopped() {
                return Err(Stopped);
            }
            if let Some(found) = self.noted(look())? {
                self.set(Waits::Nothing);
                self.rank.went_on();
                return Ok(found);
            }
            self.yielder.suspend(());
        }
    }

    /// How often to look for what is not there yet before others have their turn.
    fn tries(&self) -> u32 {
        let alone = self.rank.waits.borrow().len() == 1;
        if alone { TRIES_ALONE } else { TRIES }
    }

    fn set(&self, what: Waits) {
        self.rank.waits.borrow_mut()[self.row] = what;
    }

    /// Ends the run if something failed.
    fn noted<T, E: Into<RunError>>(&self, result: Result<T, E>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.rank.stop(error);
            Stopped
        })
    }

    /// One exchange of a set: `fill` packs what leaves, `read` takes what arrived.
    fn exchange_by(
        &self,
        set: usize,
        by: By,
        fill: impl FnMut(&Run, &mut [u64]),
        read: impl FnMut(&Run, &[u64]),
    ) -> Result<(), Stopped> {
        let step = self.rank.count_step(self.row, Together::Exchange(set, by), self.call);
        let wires = self.noted(self.rank.wires(set, by))?;
        let row = self.row;
        if !self.noted(wires.is_ready(row))? {
            self.wait(Waits::Readers(set, by), || Ok(wires.is_ready(row)?.then_some(())))?;
        }
        self.noted(wires.begin(row, (step, self.call), fill))?;
        let tries = self.tries();
        let poll = |wires: &Wires| Ok(wires.poll(row, tries)?.then_some(()));
        self.wait(Waits::Exchange(set, by), || poll(&wires))?;
        self.noted(wires.end(row, read))
    }

    fn exchange_vector<W: Number>(
        &self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: &mut [W],
    ) -> Result<(), Stopped> {
        let vector = std::cell::RefCell::new(vector);
        let fill = |run: &Run, wire: &mut [u64]| {
            lists.pack((run.slot, run.words.start), &vector.borrow(), wire);
        };
        let read = |run: &Run, wire: &[u64]| {
            lists.unpack((run.slot, run.words.start), op, wire, &mut vector.borrow_mut());
        };
        self.exchange_by(set, By::Phases, fill, read)
    }

    /// What must be received before the cell's connections of a set, from now on.
    fn begin_order(&mut self, set: usize) {
        let set = self.rank.loaded.set(set);
        let own = set.order().iter().filter(|(_, after)| set.get(*after).source == self.id);
        self.order.clear();
        self.order.extend(own.map(|&(before, after)| (after, before, set.get(before).words)));
    }

    fn next_letter(&self, from: Address, what: Waits) -> Result<usize, Stopped> {
        self.wait(what, || Ok(self.rank.mail.look(from)?))
    }

    /// The words of the next piece of mail, which has come.
    fn open<T>(
        &self,
        from: Address,
        words: usize,
        what: Waits,
        read: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        let mut letter: Letter = self.noted(self.rank.mail.take(from, words))?;
        self.wait(what, || Ok(letter.open()?.map(&read)))
    }
}

impl Port for MpiPort<'_> {
    fn has_stopped(&self) -> bool {
        self.rank.has_stopped()
    }

    fn fail(&mut self, error: &CellError) {
        self.rank.stop(RunError::Cell { cell: self.id, error: error.clone() });
    }

    fn at(&mut self, call: Call) {
        self.call = call;
    }

    fn clock(&self) -> u64 {
        0
    }

    fn compute(&mut self, _clocks: u64) -> Result<(), Stopped> {
        Ok(())
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        self.rank.count_step(self.row, Together::Switch(to), self.call);
        let before = self.rank.switches.get();
        let switched = || Ok((self.rank.switches.get() > before).then_some(()));
        self.wait(Waits::Switch(to), switched)?;
        let Context::Phase(set, phase) = to else {
            self.active = usize::MAX;
            return Ok(());
        };
        if set != self.active || phase == PhaseId(0) {
            self.begin_order(set);
        }
        self.active = set;
        Ok(())
    }

    fn send_word(&mut self, word: &Operation, _opens: bool, bits: u64) -> Result<(), Stopped> {
        let mut order = self.order.iter();
        let lacking = order.find(|(after, _, lacks)| *after == word.connection && *lacks > 0);
        if let Some(&(connection, before, _)) = lacking {
            // It waits for itself.
            let set = self.rank.loaded.set(self.active).name().to_owned();
            let awaiting = Awaiting::Order { set, connection, before };
            let waits = vec![CellWait { cell: self.id, awaiting }];
            return self.noted(Err(RunError::Stuck { waits, closed: true }));
        }
        let to = self.rank.element(word, self.active);
        self.noted(self.rank.mail.send(to, vec![bits]))
    }

    fn receive_word(&mut self, word: &Operation, _opens: bool) -> Result<u64, Stopped> {
        let from = self.rank.element(word, self.active);
        let what = Waits::Word(self.active, word.connection);
        let words = self.next_letter(from, what)?;
        let bits = self.open(from, words, what, |words| words[0])?;
        for (_, before, lacks) in &mut self.order {
            if *before == word.connection {
                *lacks = lacks.saturating_sub(1);
            }
        }
        Ok(bits)
    }

    unsafe fn exchange(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[Row],
        incoming: &[Row],
    ) -> Result<(), Stopped> {
        let fill = |run: &Run, wire: &mut [u64]| {
            let row = &outgoing[run.slot];
            if row.size == size_of::<u64>() {
                let begin = row.pointer.cast::<u64>().cast_const().wrapping_add(run.words.start);
                // SAFETY: the caller says that the row can be read, and is as long as its
                // connection, of which the run is a part; it is of words of 8 bytes.
                let words = unsafe { std::slice::from_raw_parts(begin, wire.len()) };
                wire.copy_from_slice(words);
                return;
            }
            for (word, index) in wire.iter_mut().zip(run.words.clone()) {
                // SAFETY: as above, with words of another size.
                *word = unsafe { row.get(index) };
            }
        };
        let read = |run: &Run, wire: &[u64]| {
            let row = &incoming[run.slot];
            for (word, index) in wire.iter().zip(run.words.clone()) {
                // SAFETY: as above, and incoming rows can be written.
                unsafe { row.set(index, *word) };
            }
        };
        self.exchange_by(set, by, fill, read)
    }

    fn begin(
        &mut self,
        number: u64,
        set: usize,
        mut buffers: Buffers,
        pack: &mut Pack<'_>,
    ) -> Result<(), Stopped> {
        let call = self.call;
        let step = self.rank.count_step(self.row, Together::Exchange(set, By::Phases), call);
        let wires = self.noted(self.rank.wires(set, By::Phases))?;
        let (row, flights) = (self.row, &self.rank.flights);
        let out = !flights.has_waiting(row, set) && self.noted(wires.is_ready(row))?;
        if out {
            let fill = |run: &Run, wire: &mut [u64]| pack((run.slot, run.words.start), wire);
            self.noted(wires.begin(row, (step, call), fill))?;
            self.rank.went_on();
        } else {
            buffers.fill(pack);
        }
        flights.push(row, Flight { number, call: (step, call), set, wires, buffers }, out);
        self.noted(self.rank.progress(1))
    }

    fn test(&mut self, number: u64) -> Result<bool, Stopped> {
        self.noted(self.rank.progress(1))?;
        if self.rank.flights.have_arrived(self.row, number) {
            return Ok(true);
        }
        // One turn for the others, in which the rank looks at all flights, and at the clock.
        self.set(Waits::Flights);
        self.rank.tested.set(true);
        self.yielder.suspend(());
        self.set(Waits::Nothing);
        if self.rank.has_stopped() {
            return Err(Stopped);
        }
        Ok(self.rank.flights.have_arrived(self.row, number))
    }

    fn arrive(&mut self, number: u64) -> Result<(), Stopped> {
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        if rank.flights.have_arrived(row, number) {
            return Ok(());
        }
        self.wait(Waits::Flights, || {
            rank.progress(tries)?;
            Ok(rank.flights.have_arrived(row, number).then_some(()))
        })
    }

    fn take(&mut self, number: u64) -> Buffers {
        self.rank.flights.take(self.row, number)
    }

    fn read(&mut self, number: u64, unpack: &mut Unpack<'_>) -> Result<Buffers, Stopped> {
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        if let Some(before) = number.checked_sub(1) {
            self.arrive(before)?;
        }
        if !rank.flights.have_arrived(row, number) {
            rank.flights.claim(row);
            self.wait(Waits::Flights, || {
                rank.progress(tries)?;
                Ok(rank.flights.read(row, unpack)?.then_some(()))
            })?;
            return Ok(self.take(number));
        }
        let buffers = self.take(number);
        buffers.hand_over(unpack);
        Ok(buffers)
    }

    unsafe fn send_message(&mut self, target: CellId, words: Row) -> Result<(), Stopped> {
        // SAFETY: the caller says that the row can be read.
        let bits = (0..words.words).map(|index| unsafe { words.get(index) }).collect();
        let to = self.rank.message(self.id, target, Direction::Send);
        self.noted(self.rank.mail.send(to, bits))
    }

    unsafe fn receive_message(&mut self, source: CellId, into: Row) -> Result<usize, Stopped> {
        let from = self.rank.message(source, self.id, Direction::Receive);
        let what = Waits::Message(source);
        let words = self.next_letter(from, what)?;
        self.open(from, words, what, |words| {
            if words.len() == into.words {
                // SAFETY: the caller says that the row can be written.
                words.iter().enumerate().for_each(|(i, &bits)| unsafe { into.set(i, bits) });
            }
            words.len()
        })
    }

    fn exchange_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: VectorMut<'_>,
    ) -> Result<(), Stopped> {
        match vector {
            VectorMut::F64(vector) => self.exchange_vector(set, lists, op, vector),
            VectorMut::F32(vector) => self.exchange_vector(set, lists, op, vector),
            VectorMut::U64(vector) => self.exchange_vector(set, lists, op, vector),
            VectorMut::I64(vector) => self.exchange_vector(set, lists, op, vector),
            VectorMut::U32(vector) => self.exchange_vector(set, lists, op, vector),
            VectorMut::I32(vector) => self.exchange_vector(set, lists, op, vector),
        }
    }
}
