//! The port of a cell over MPI.

use conset_ir::{CellId, Operation};
use corosensei::Yielder;

use super::mail::{Address, Letter};
use super::run::{Rank, Waits};
use super::wires::{Run, Wires};
use crate::error::{CellError, RunError};
use crate::lists::{CellLists, Number, Op, VectorMut};
use crate::port::{By, Context, Port, Row, Stopped};
use crate::word::Word;

/// Tries to complete an exchange before other cells of the rank have their turn.
const TRIES: u32 = 4;

/// The port of one cell.
pub(super) struct MpiPort<'r> {
    pub(super) rank: &'r Rank<'r>,
    pub(super) id: CellId,
    /// The cell's place among those of the rank.
    pub(super) row: usize,
    pub(super) yielder: &'r Yielder<(), ()>,
    /// The set of the active phase.
    pub(super) active: usize,
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
        let wires = self.noted(self.rank.wires(set, by))?;
        let row = self.row;
        if !wires.free(row) {
            self.wait(Waits::Reader, || Ok(wires.free(row).then_some(())))?;
        }
        self.noted(wires.begin(row, fill))?;
        let poll = |wires: &Wires| Ok(wires.poll(row, TRIES)?.then_some(()));
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
            pack(lists, run, &**vector.borrow(), wire);
        };
        let read = |run: &Run, wire: &[u64]| {
            unpack(lists, run, op, wire, &mut **vector.borrow_mut());
        };
        self.exchange_by(set, By::Phases, fill, read)
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

    fn clock(&self) -> u64 {
        0
    }

    fn compute(&mut self, _clocks: u64) -> Result<(), Stopped> {
        Ok(())
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        let before = self.rank.switches.get();
        let switched = || Ok((self.rank.switches.get() > before).then_some(()));
        self.wait(Waits::Switch(to), switched)?;
        let Context::Phase(set, _) = to;
        self.active = set;
        Ok(())
    }

    fn send_word(&mut self, word: &Operation, _opens: bool, bits: u64) -> Result<(), Stopped> {
        let to = self.rank.element(word, self.active);
        self.noted(self.rank.mail.send(to, vec![bits]))
    }

    fn receive_word(&mut self, word: &Operation, _opens: bool) -> Result<u64, Stopped> {
        let from = self.rank.element(word, self.active);
        let what = Waits::Word(self.active, word.connection);
        let words = self.next_letter(from, what)?;
        self.open(from, words, what, |words| words[0])
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
            for (word, index) in wire.iter_mut().zip(run.words.clone()) {
                // SAFETY: the caller says that the row can be read, and is as long as its
                // connection, of which the run is a part.
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

/// Gathers a run's words from the positions of its connection.
fn pack<W: Word>(lists: &CellLists, run: &Run, vector: &[W], wire: &mut [u64]) {
    let (positions, block) = (lists.send().row(run.slot), lists.block());
    if block == 1 {
        for (word, &position) in wire.iter_mut().zip(&positions[run.words.clone()]) {
            *word = vector[position as usize].to_bits();
        }
        return;
    }
    for (word, index) in wire.iter_mut().zip(run.words.clone()) {
        *word = vector[positions[index / block] as usize * block + index % block].to_bits();
    }
}

/// Combines a run's words into the positions of its connection.
fn unpack<W: Number>(lists: &CellLists, run: &Run, op: Op, wire: &[u64], vector: &mut [W]) {
    let (positions, block) = (lists.receive().row(run.slot), lists.block());
    let at = |index: usize| positions[index / block] as usize * block + index % block;
    match (op, block) {
        // What nearly all exchanges are, without a look at `op` for every word.
        (Op::Copy, 1) => {
            for (&word, &position) in wire.iter().zip(&positions[run.words.clone()]) {
                vector[position as usize] = W::from_bits(word);
            }
        }
        (Op::Add, 1) => {
            for (&word, &position) in wire.iter().zip(&positions[run.words.clone()]) {
                let here = &mut vector[position as usize];
                *here = here.plus(W::from_bits(word));
            }
        }
        _ => {
            for (&word, index) in wire.iter().zip(run.words.clone()) {
                let here = &mut vector[at(index)];
                *here = op.apply(*here, W::from_bits(word));
            }
        }
    }
}
