//! A cell as its program sees it.
//!
//! Every call that takes time suspends the cell's coroutine; the scheduler resumes it at the
//! clock at which what it asked for is done. What a call can know to be wrong without the other
//! cells it says at once.

use std::cell::RefCell;

use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Image, Operation, PhaseId,
};
use corosensei::Yielder;

use crate::error::CellError;
use crate::phase::{PhaseName, PhaseRef, SetRef};
use crate::plan::Flights;
use crate::store::Store;
use crate::word::Word;

/// What a cell's program asks the scheduler for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Wait for all cells, then switch.
    Switch(usize, PhaseId),
    /// One word of a stream; whether it is the first, which opens the stream.
    Element(Operation, bool),
    /// The cell's operation list of the active phase.
    List,
    /// Local work, in clocks.
    Compute(u64),
}

/// The scheduler's answer: go on, or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Aborted,
}

/// The connections of each cell of a set: rows of ids.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    first: Vec<u32>,
    ids: Vec<ConnectionId>,
}

impl Ends {
    pub(crate) fn new(
        cells: usize,
        set: &ConnectionSet,
        end: impl Fn(&Connection) -> CellId,
    ) -> Self {
        let mut first = vec![0u32; cells + 1];
        for connection in set.connections() {
            first[end(connection).index() + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut ids = vec![ConnectionId(0); set.len()];
        for (id, connection) in set.iter() {
            let cell = end(connection).index();
            ids[next[cell] as usize] = id;
            next[cell] += 1;
        }
        Self { first, ids }
    }

    fn of(&self, cell: CellId) -> &[ConnectionId] {
        &self.ids[self.first[cell.index()] as usize..self.first[cell.index() + 1] as usize]
    }
}

/// What all cells and the scheduler share in one run.
#[derive(Debug)]
pub(crate) struct Shared<'w> {
    pub(crate) image: &'w Image,
    /// Per set: the connections by source and by target.
    pub(crate) ends: &'w [(Ends, Ends)],
    /// Per set: why its image must not be executed as a whole.
    pub(crate) broken: &'w [Option<conset_fabric::FaultKind>],
    pub(crate) state: RefCell<State>,
}

/// The part that changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) active: Option<(usize, PhaseId)>,
    pub(crate) clock: u64,
    /// The first error of a cell's call.
    pub(crate) error: Option<(CellId, CellError)>,
    pub(crate) aborted: bool,
}

/// The unwinding with which a program ends that does not heed [`CellError::Aborted`].
pub(crate) struct AbortedProgram;

/// A cell, lent to its program.
pub struct Cell<'w> {
    id: CellId,
    shared: &'w Shared<'w>,
    yielder: &'w Yielder<Answer, Request>,
    /// The program was told that the run has ended.
    told: bool,
    /// Exchanges that were begun and not ended.
    pub(crate) flights: Flights,
}

impl<'w> Cell<'w> {
    pub(crate) fn new(
        id: CellId,
        shared: &'w Shared<'w>,
        yielder: &'w Yielder<Answer, Request>,
    ) -> Self {
        Self { id, shared, yielder, told: false, flights: Flights::new() }
    }

    /// This cell.
    pub fn id(&self) -> CellId {
        self.id
    }

    /// Number of cells of the machine that have an agent, dead ones included; they are numbered
    /// from 0.
    pub fn cells(&self) -> usize {
        self.shared.image.machine().agent_count()
    }

    /// Clocks since the run began.
    pub fn clock(&self) -> u64 {
        self.shared.state.borrow().clock
    }

    /// The image being run.
    pub fn image(&self) -> &'w Image {
        self.shared.image
    }

    /// The connections of a set that start at this cell, in id order: the order of an exchange's
    /// outgoing buffers.
    ///
    /// # Errors
    /// No such set.
    pub fn connections_out(&mut self, set: impl SetRef) -> Result<&'w [ConnectionId], CellError> {
        let set = self.set(&set)?;
        Ok(self.shared.ends[set].0.of(self.id))
    }

    /// The connections of a set that end at this cell, in id order: the order of an exchange's
    /// incoming buffers.
    ///
    /// # Errors
    /// No such set.
    pub fn connections_in(&mut self, set: impl SetRef) -> Result<&'w [ConnectionId], CellError> {
        let set = self.set(&set)?;
        Ok(self.shared.ends[set].1.of(self.id))
    }

    /// Switches to a phase, together with all other cells: waits until every cell has asked for
    /// the same phase and the network has drained. Costs `t_sync + t_phase`. Every connection of
    /// the phase can then carry its words once; a set's order begins anew with the switch to its
    /// first phase, or from another set.
    ///
    /// # Errors
    /// No such phase.
    pub fn instantiate_phase(&mut self, phase: impl PhaseRef) -> Result<(), CellError> {
        self.check_running()?;
        self.arrive_all()?;
        let Some((set, phase)) = phase.find(self.shared.image) else {
            return self.fail(CellError::NoPhase { name: format!("{phase:?}") });
        };
        self.request(Request::Switch(set, phase))
    }

    /// Sends one word; returns when it has entered the network.
    ///
    /// # Errors
    /// No active phase, a connection that is not in it or does not start here, or more words than
    /// the connection has in this phase.
    pub fn send_element(
        &mut self,
        connection: ConnectionId,
        word: impl Word,
    ) -> Result<(), CellError> {
        let (operation, first) = self.next_word(connection, Direction::Send)?;
        {
            let store = &mut self.shared.state.borrow_mut().store;
            store.put(connection, operation.first_word, word.to_bits());
            store.sent[connection.index()] += 1;
        }
        self.request(Request::Element(operation, first))
    }

    /// Receives one word; returns when it is there.
    ///
    /// # Errors
    /// No active phase, a connection that is not in it or does not end here, or more words than
    /// the connection has in this phase.
    pub fn receive_element<W: Word>(&mut self, connection: ConnectionId) -> Result<W, CellError> {
        let (operation, first) = self.next_word(connection, Direction::Receive)?;
        self.shared.state.borrow_mut().store.received[connection.index()] += 1;
        self.request(Request::Element(operation, first))?;
        let bits = self.shared.state.borrow().store.get(connection, operation.first_word);
        Ok(W::from_bits(bits))
    }

    /// Executes a set, together with all other cells: all its phases, by the compiled operation
    /// lists. One outgoing buffer for each of [`Cell::connections_out`], one incoming for each of
    /// [`Cell::connections_in`], each as long as its connection has words.
    ///
    /// # Errors
    /// No such set, buffers that do not fit it, or an image that would not deliver every word
    /// exactly once.
    pub fn exchange<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        set: impl SetRef,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.arrive_all()?;
        let set = self.set(&set)?;
        self.exchange_now(set, outgoing, incoming)
    }

    /// [`Cell::exchange`], without the exchanges that were begun before.
    pub(crate) fn exchange_now<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        set: usize,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.check_running()?;
        if let Some(kind) = &self.shared.broken[set] {
            let name = self.shared.image.sets()[set].set.name().to_owned();
            return self.fail(CellError::Image { set: name, kind: kind.clone() });
        }
        let (out, inn) = (&self.shared.ends[set].0, &self.shared.ends[set].1);
        let (out, inn) = (out.of(self.id), inn.of(self.id));
        let sizes = outgoing.iter().map(|words| words.as_ref().len());
        self.check_buffers(set, Direction::Send, out, sizes)?;
        let sizes: Vec<usize> = incoming.iter_mut().map(|words| words.as_mut().len()).collect();
        self.check_buffers(set, Direction::Receive, inn, sizes.into_iter())?;
        for phase in 0..self.shared.image.sets()[set].phases.len() {
            let phase = PhaseId::from_index(phase);
            self.request(Request::Switch(set, phase))?;
            if phase == PhaseId(0) {
                let store = &mut self.shared.state.borrow_mut().store;
                for (&connection, words) in out.iter().zip(outgoing) {
                    store.fill(connection, words.as_ref().iter().map(|word| word.to_bits()));
                }
            }
            self.use_up(set, phase);
            self.request(Request::List)?;
        }
        let store = &self.shared.state.borrow().store;
        for (&connection, words) in inn.iter().zip(incoming) {
            for (index, word) in words.as_mut().iter_mut().enumerate() {
                *word = W::from_bits(store.get(connection, index as u32));
            }
        }
        Ok(())
    }

    /// Works for a number of clocks.
    ///
    /// # Errors
    /// Only the end of the run.
    pub fn compute(&mut self, clocks: u64) -> Result<(), CellError> {
        self.check_running()?;
        self.request(Request::Compute(clocks))
    }

    /// Counts the words of the cell's operation list as sent and received.
    fn use_up(&self, set: usize, phase: PhaseId) {
        let store = &mut self.shared.state.borrow_mut().store;
        let phase = &self.shared.image.sets()[set].phases[phase.index()];
        for operation in phase.cell(self.id).operations {
            let counts = match operation.direction {
                Direction::Send => &mut store.sent,
                Direction::Receive => &mut store.received,
            };
            let count = &mut counts[operation.connection.index()];
            *count = count.saturating_add(operation.words);
        }
    }

    fn check_buffers(
        &mut self,
        set: usize,
        direction: Direction,
        connections: &[ConnectionId],
        sizes: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), CellError> {
        let wrong = |connection, expected, found| {
            Err(CellError::Buffers { connection, direction, expected, found })
        };
        let mut result = Ok(());
        if sizes.len() != connections.len() {
            result = wrong(None, connections.len(), sizes.len());
        } else {
            let image = self.shared.image;
            for (&connection, found) in connections.iter().zip(sizes) {
                let expected = image.sets()[set].set.get(connection).words as usize;
                if expected != found {
                    result = wrong(Some(connection), expected, found);
                    break;
                }
            }
        }
        result.or_else(|error| self.fail(error))
    }

    /// The operation that moves the next word of a connection, and whether it is the first.
    fn next_word(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
    ) -> Result<(Operation, bool), CellError> {
        self.check_running()?;
        let active = self.shared.state.borrow().active;
        let Some((set, phase)) = active else { return self.fail(CellError::NoActivePhase) };
        let image = &self.shared.image.sets()[set];
        let name = || PhaseName { set: image.set.name(), phase }.to_string();
        let Some(ends) = image.set.connections().get(connection.index()) else {
            return self.fail(CellError::NotInPhase { connection, phase: name() });
        };
        let end = if direction == Direction::Send { ends.source } else { ends.target };
        if end != self.id {
            return self.fail(CellError::WrongEnd { cell: self.id, connection, direction });
        }
        let moved = {
            let store = &self.shared.state.borrow().store;
            match direction {
                Direction::Send => store.sent[connection.index()],
                Direction::Receive => store.received[connection.index()],
            }
        };
        let mut words = 0u64;
        for operation in image.phases[phase.index()].cell(self.id).operations {
            if (operation.connection, operation.direction) != (connection, direction) {
                continue;
            }
            let skip = u64::from(moved) - words;
            if skip < u64::from(operation.words) {
                let first_word = operation.first_word + skip as u32;
                return Ok((Operation { words: 1, first_word, ..*operation }, skip == 0));
            }
            words += u64::from(operation.words);
        }
        self.fail(match words {
            0 => CellError::NotInPhase { connection, phase: name() },
            _ => CellError::TooManyWords { connection, words, phase: name(), direction },
        })
    }

    fn set(&mut self, set: &impl SetRef) -> Result<usize, CellError> {
        match set.find(self.shared.image) {
            Some(set) => Ok(set),
            None => self.fail(CellError::NoSet { name: format!("{set:?}") }),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.shared.state.borrow().aborted
    }

    /// The run goes on. A program that was told that it does not, and calls again, is unwound,
    /// so that no program can keep a run from ending by ignoring errors.
    pub(crate) fn check_running(&mut self) -> Result<(), CellError> {
        if !self.shared.state.borrow().aborted {
            return Ok(());
        }
        if std::mem::replace(&mut self.told, true) {
            std::panic::resume_unwind(Box::new(AbortedProgram));
        }
        Err(CellError::Aborted)
    }

    pub(crate) fn fail<T>(&mut self, error: CellError) -> Result<T, CellError> {
        self.check_running()?;
        let mut state = self.shared.state.borrow_mut();
        state.error.get_or_insert((self.id, error.clone()));
        state.aborted = true;
        self.told = true;
        Err(error)
    }

    fn request(&mut self, request: Request) -> Result<(), CellError> {
        self.check_running()?;
        match self.yielder.suspend(request) {
            Answer::Done => Ok(()),
            Answer::Aborted => self.check_running(),
        }
    }
}

impl std::fmt::Debug for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).finish_non_exhaustive()
    }
}
