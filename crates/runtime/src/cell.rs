//! A cell: the interface of a program to its transport.
//!
//! A call that waits suspends the coroutine of the cell; its [`CellPort`] resumes it when the
//! request is done. Errors that need no knowledge of other cells are detected here, so that they
//! are the same on all transports.
//!
//! The cell keeps the active phase and the number of its words sent and received: switches are
//! collective, and only the ends of a connection move its words.

mod call_site;

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Image, Operation, PhaseId};

use crate::call::{CallArray, SourceLocation};
use crate::collectives::StartedReductions;
use crate::epochs::{Record, Routing};
use crate::error::{CellError, PlanUse};
use crate::lists::{CellLists, Number, Op};
use crate::loaded_image::{LoadedImage, LoadedSet};
use crate::phase::{PhaseRef, SetRef};
use crate::port::{By, CellPort, Context, PackFn, RawWords, ReadFn, Stopped, WireBuffers};
use crate::requests::Requests;
use crate::stack::StackBounds;
use crate::word::Word;
pub(crate) use call_site::CallContext;

/// The payload that unwinds a program which ignores [`CellError::Aborted`].
pub(crate) struct AbortedProgram;

/// A cell, as a program sees it.
///
/// It stays on the stack and the thread of its program: its calls suspend that stack and no other,
/// so it must not be passed to another thread or to a program that runs inside this one.
///
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<conset_runtime::Cell<'static>>();
/// ```
/// ```compile_fail
/// fn share<T: Sync>() {}
/// share::<conset_runtime::Cell<'static>>();
/// ```
pub struct Cell<'w> {
    id: CellId,
    stack: StackBounds,
    loaded: &'w LoadedImage,
    pub(crate) port: &'w mut (dyn CellPort + 'w),
    active: Option<(usize, PhaseId)>,
    /// Words sent and received by elements in the active phase, in the order of the cell's
    /// connections out and in.
    sent: Vec<u32>,
    received: Vec<u32>,
    /// The buffers of an exchange; kept to reuse their memory.
    outgoing: Vec<RawWords>,
    incoming: Vec<RawWords>,
    /// The program has been informed that the run has ended.
    told: bool,
    /// Nonblocking exchanges in progress.
    pub(crate) requests: Requests,
    /// Nonblocking reductions in progress.
    pub(crate) reductions: StartedReductions,
    /// The source location of the next calls, if the program has set it.
    place: Option<SourceLocation>,
    /// The round of the program.
    round: u64,
    pub(crate) same_places: bool,
    /// The array of the collective that is being made.
    pub(crate) array: Option<CallArray>,
    /// What the cell sends in epochs, if it records that.
    pub(crate) record: Option<Record>,
    /// How items of epochs find their targets.
    pub(crate) routing: Routing,
}

impl<'w> Cell<'w> {
    pub(crate) fn new(
        (id, stack): (CellId, StackBounds),
        loaded: &'w LoadedImage,
        port: &'w mut (dyn CellPort + 'w),
    ) -> Self {
        Self {
            id,
            stack,
            loaded,
            port,
            active: None,
            sent: Vec::new(),
            received: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            told: false,
            requests: Requests::new(),
            reductions: StartedReductions::default(),
            place: None,
            round: 0,
            same_places: true,
            array: None,
            record: None,
            routing: Routing::Auto,
        }
    }

    /// The id of this cell.
    pub fn id(&self) -> CellId {
        self.id
    }

    /// Number of cells of the machine that have an agent, including dead ones; they are numbered from
    /// 0.
    pub fn cell_count(&self) -> usize {
        self.loaded.image.machine().agent_count()
    }

    /// Checks that the program has stayed within its stack and left enough of it for a call, for
    /// interfaces to languages whose compilers do not check this. A program outside its stack ends
    /// the process.
    ///
    /// # Errors
    /// Too little of the stack is left.
    pub fn check_stack(&mut self) -> Result<(), CellError> {
        self.stack.check(self.id).or_else(|error| self.fail(error))
    }

    /// Clocks since the start of the run, on the emulated machine; 0 on other transports.
    pub fn clock(&self) -> u64 {
        self.port.clock()
    }

    /// The image being run.
    pub fn image(&self) -> &'w Image {
        &self.loaded.image
    }

    /// The live cells, by place.
    pub(crate) fn live(&self) -> Arc<[CellId]> {
        Arc::clone(&self.loaded.live)
    }

    /// The connections of a set that start at this cell, in id order: the order of an exchange's
    /// outgoing buffers.
    ///
    /// # Errors
    /// No such set.
    pub fn connections_out(&mut self, set: impl SetRef) -> Result<&'w [ConnectionId], CellError> {
        let set = self.set(&set)?;
        Ok(self.loaded.sets[set].outgoing.of(self.id))
    }

    /// The connections of a set that end at this cell, in id order: the order of an exchange's
    /// incoming buffers.
    ///
    /// # Errors
    /// No such set.
    pub fn connections_in(&mut self, set: impl SetRef) -> Result<&'w [ConnectionId], CellError> {
        let set = self.set(&set)?;
        Ok(self.loaded.sets[set].incoming.of(self.id))
    }

    /// Switches to a phase, together with all other cells: waits until every cell has requested the
    /// same phase and the network has drained. Costs `t_sync + t_phase`. Every connection of the phase
    /// can then carry its words once. The order of a set restarts with the switch to its first phase,
    /// or from another set.
    ///
    /// # Errors
    /// No such phase; sets that are compiled to steps have none.
    #[track_caller]
    pub fn instantiate_phase(&mut self, phase: impl PhaseRef) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        self.at_call(0);
        let Some((set, phase)) = phase.find(&self.loaded.image) else {
            let name = format!("{phase:?}");
            return self.fail(match self.loaded.image.is_steps() {
                true => CellError::OnlySteps { name },
                false => CellError::NoPhase { name },
            });
        };
        self.ask(|port| port.switch(Context::Phase(set, phase)))?;
        self.activate(set, phase);
        Ok(())
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
        let (operation, opens) = self.next_word(connection, Direction::Send)?;
        self.ask(|port| port.send_word(&operation, opens, word.to_bits()))
    }

    /// Receives one word; waits until it has arrived.
    ///
    /// # Errors
    /// No active phase, a connection that is not in it or does not end here, or more words than
    /// the connection has in this phase.
    pub fn receive_element<W: Word>(&mut self, connection: ConnectionId) -> Result<W, CellError> {
        let (operation, opens) = self.next_word(connection, Direction::Receive)?;
        self.ask(|port| port.receive_word(&operation, opens)).map(W::from_bits)
    }

    /// Exchanges a set, together with all other cells: all its phases, or its step plan, by the compiled
    /// operation lists. Takes one outgoing buffer for each of [`Cell::connections_out`] and one incoming buffer
    /// for each of [`Cell::connections_in`], each as long as its connection has words.
    ///
    /// # Errors
    /// No such set, buffers that do not fit it, or an image that would not deliver every word
    /// exactly once. What the incoming buffers contain after an error is unspecified.
    #[track_caller]
    pub fn exchange<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        set: impl SetRef,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.exchange_by(By::Phases, set, outgoing, incoming)
    }

    /// Exchanges a set by its compiled phases or by messages, together with all other cells; the
    /// buffers are those of [`Cell::exchange`]. By messages, each cell sends its connections in
    /// the order of the set, one after the other, and receives messages as they come; from a phase
    /// it switches as [`Cell::instantiate_messages`] does.
    ///
    /// # Errors
    /// As [`Cell::exchange`]. By messages, the image of the set is not used and not checked.
    #[track_caller]
    pub fn exchange_by<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        by: By,
        set: impl SetRef,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        self.exchange_now(by, set, outgoing, incoming)
    }

    /// [`Cell::exchange_by`], after the requests of the cell were completed.
    #[track_caller]
    pub(crate) fn exchange_now<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        by: By,
        set: impl SetRef,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        let set = self.set_by(by, &set)?;
        self.exchange_rows(set, by, outgoing, incoming)
    }

    /// The row of a set that is exchanged now; by messages the machine is switched to these.
    #[track_caller]
    fn set_by(&mut self, by: By, set: &impl SetRef) -> Result<usize, CellError> {
        if by == By::Phases {
            return self.executable(set);
        }
        let set = self.set(set)?;
        if self.active.is_some() {
            self.instantiate_messages()?;
        }
        Ok(set)
    }

    /// Exchanges a set ([`CellPort::exchange_packed`]) in words of so many bytes, after the requests
    /// of the cell were completed; the buffers fit it.
    #[track_caller]
    pub(crate) fn exchange_packed(
        &mut self,
        (by, set, word_bytes): (By, usize, usize),
        buffers: &mut WireBuffers,
        pack: &mut PackFn<'_>,
        read: &mut ReadFn<'_>,
    ) -> Result<(), CellError> {
        let set = self.set_by(by, &set)?;
        self.at_call(word_bytes);
        self.ask(|port| port.exchange_packed(set, by, buffers, pack, read))?;
        if by == By::Phases {
            self.activate_last(set);
        }
        Ok(())
    }

    /// Exchanges a set between vectors by lists of positions ([`crate::lists`]), together with all
    /// other cells. There is a list for each of [`Cell::connections_out`] and for each of
    /// [`Cell::connections_in`]; its length is the number of words of the connection divided by the
    /// words of a position. On threads, words are read in place and nothing is allocated.
    ///
    /// # Errors
    /// No such set, an image that would not deliver every word exactly once, or lists that do not
    /// fit the set or the vector.
    #[track_caller]
    pub fn exchange_lists<W: Number>(
        &mut self,
        set: impl SetRef,
        lists: &CellLists,
        op: Op,
        vector: &mut [W],
    ) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        self.at_call(size_of::<W>());
        let set = self.executable(&set)?;
        self.check_lists(set, lists, vector.len())?;
        self.ask(|port| port.exchange_lists(set, lists, op, W::vector(vector)))?;
        self.activate_last(set);
        Ok(())
    }

    /// Computes for a number of clocks of the emulated machine; does nothing on other transports.
    ///
    /// # Errors
    /// Only the end of the run.
    pub fn compute(&mut self, clocks: u64) -> Result<(), CellError> {
        self.check_running()?;
        self.ask(|port| port.compute(clocks))
    }

    /// Aborts the run for all cells, with a reason of the program, for example that a solver diverges.
    /// Returns the error that the run ends with; return it from the program.
    pub fn abort(&mut self, why: impl Into<String>) -> CellError {
        match self.fail::<std::convert::Infallible>(CellError::Program { message: why.into() }) {
            Err(error) => error,
        }
    }

    /// Switches from phases to messages, together with all other cells; costs as much as a switch to
    /// a phase. A run starts in this mode.
    ///
    /// # Errors
    /// Only the end of the run.
    #[track_caller]
    pub fn instantiate_messages(&mut self) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        self.at_call(0);
        self.ask(|port| port.switch(Context::Messages))?;
        self.active = None;
        Ok(())
    }

    /// Switches to messages if a phase is active, after the requests of the cell were completed.
    #[track_caller]
    pub(crate) fn switch_to_messages(&mut self) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        if self.active.is_some() { self.instantiate_messages() } else { Ok(()) }
    }

    /// Starts an exchange of a set ([`CellPort::start`]), the buffers of which fit it.
    #[track_caller]
    pub(crate) fn start_exchange(
        &mut self,
        number: u64,
        set: usize,
        buffers: WireBuffers,
        pack: &mut PackFn<'_>,
    ) -> Result<(), CellError> {
        let set = self.executable(&set)?;
        self.at_call(buffers.outgoing.size());
        self.ask(|port| port.start(number, set, buffers, pack))?;
        self.activate_last(set);
        Ok(())
    }

    /// Checks that messages may be exchanged with a cell.
    pub(crate) fn check_message(&mut self, other: CellId) -> Result<(), CellError> {
        self.check_messages()?;
        let machine = self.loaded.image.machine();
        if other.index() >= machine.cell_count() || !machine.is_endpoint(other) {
            return self.fail(CellError::NoCell { cell: other });
        }
        Ok(())
    }

    /// Checks that no phase is active, after the requests of the cell were completed.
    pub(crate) fn check_messages(&mut self) -> Result<(), CellError> {
        self.check_running()?;
        self.wait_all()?;
        let Some((set, phase)) = self.active else { return Ok(()) };
        let phase = self.loaded.phase_name(set, phase);
        self.fail(CellError::NotMessages { phase })
    }

    #[track_caller]
    fn exchange_rows<W: Word, S: AsRef<[W]>, R: AsMut<[W]>>(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[S],
        incoming: &mut [R],
    ) -> Result<(), CellError> {
        self.at_call(size_of::<W>());
        self.outgoing.clear();
        self.outgoing.extend(outgoing.iter().map(|words| RawWords::of(words.as_ref())));
        self.incoming.clear();
        self.incoming.extend(incoming.iter_mut().map(|words| RawWords::of_mut(words.as_mut())));
        let result = self.check_rows(set).and_then(|()| {
            // SAFETY: the rows are of slices that `outgoing` and `incoming` lend until this
            // function returns or unwinds, and neither is touched meanwhile. Slices borrowed for
            // writing overlap no others.
            let result = unsafe { self.port.exchange(set, by, &self.outgoing, &self.incoming) };
            result.map_err(|stopped| self.stopped(stopped))
        });
        // No pointer outlives what it points to.
        self.outgoing.clear();
        self.incoming.clear();
        result?;
        if by == By::Phases {
            self.activate_last(set);
        }
        Ok(())
    }

    /// A phase is active, of which no words have gone.
    fn activate(&mut self, set: usize, phase: PhaseId) {
        let loaded = &self.loaded.sets[set];
        for (counts, ends) in
            [(&mut self.sent, &loaded.outgoing), (&mut self.received, &loaded.incoming)]
        {
            counts.clear();
            counts.resize(ends.of(self.id).len(), 0);
        }
        self.active = Some((set, phase));
    }

    /// The last phase of a set is active, and all its words have gone.
    pub(crate) fn activate_last(&mut self, set: usize) {
        let Some(last) = self.loaded.sets[set].last_phase else { return };
        self.active = Some((set, last));
        self.sent.clear();
        self.received.clear();
    }

    /// The set to exchange, if it may be.
    fn executable(&mut self, set: &impl SetRef) -> Result<usize, CellError> {
        self.check_running()?;
        let set = self.set(set)?;
        if let Some(kind) = &self.loaded.sets[set].broken {
            let set = self.loaded.set(set).name().to_owned();
            return self.fail(CellError::Image { set, kind: kind.clone() });
        }
        Ok(set)
    }

    /// Whether the rows are as many and as long as the cell's connections.
    fn check_rows(&mut self, set: usize) -> Result<(), CellError> {
        let loaded = &self.loaded.sets[set];
        let (out, inn) = (loaded.outgoing.of(self.id), loaded.incoming.of(self.id));
        let sizes = self.outgoing.iter().map(|row| row.words);
        let wrong = self.wrong_buffers(set, Direction::Send, out, sizes).or_else(|| {
            let sizes = self.incoming.iter().map(|row| row.words);
            self.wrong_buffers(set, Direction::Receive, inn, sizes)
        });
        wrong.map_or(Ok(()), |error| self.fail(error))
    }

    fn check_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        words: usize,
    ) -> Result<(), CellError> {
        let (id, block) = (self.id, lists.block());
        let LoadedSet { outgoing, incoming, .. } = &self.loaded.sets[set];
        let ends = [
            (Direction::Send, outgoing, lists.send()),
            (Direction::Receive, incoming, lists.receive()),
        ];
        for (direction, connections, rows) in ends {
            if !lists.fit(direction, connections.words_of(id)) {
                let sizes = (0..rows.len()).map(|place| rows.row(place).len());
                let sizes = sizes.map(|list| list.saturating_mul(block));
                let wrong = self.wrong_buffers(set, direction, connections.of(id), sizes);
                return wrong.map_or(Ok(()), |error| self.fail(error));
            }
        }
        match lists.words() {
            Some(needed) if needed <= words => Ok(()),
            needed => self.fail(CellError::Vector {
                set: self.loaded.set(set).name().to_owned(),
                expected: needed.unwrap_or(usize::MAX),
                found: words,
            }),
        }
    }

    fn wrong_buffers(
        &self,
        set: usize,
        direction: Direction,
        connections: &[ConnectionId],
        mut sizes: impl ExactSizeIterator<Item = usize>,
    ) -> Option<CellError> {
        let wrong = |connection, expected, found| CellError::Buffers {
            connection,
            direction,
            expected,
            found,
        };
        if sizes.len() != connections.len() {
            return Some(wrong(None, connections.len(), sizes.len()));
        }
        let set = self.loaded.set(set);
        connections.iter().find_map(|&connection| {
            let (expected, found) = (index(set.get(connection).words), sizes.next()?);
            (expected != found).then(|| wrong(Some(connection), expected, found))
        })
    }

    /// The operation that moves the next word of a connection, and whether it is the first.
    /// Counts the word.
    fn next_word(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
    ) -> Result<(Operation, bool), CellError> {
        self.check_running()?;
        self.wait_all()?;
        let Some((set, phase)) = self.active else { return self.fail(CellError::NoActivePhase) };
        let loaded = self.loaded;
        let name = || loaded.phase_name(set, phase);
        let Some(ends) = loaded.set(set).connections().get(connection.index()) else {
            return self.fail(CellError::NotInPhase { connection, phase: name() });
        };
        let (end, row, counts) = match direction {
            Direction::Send => (ends.source, &loaded.sets[set].outgoing, &mut self.sent),
            Direction::Receive => (ends.target, &loaded.sets[set].incoming, &mut self.received),
        };
        if end != self.id {
            return self.fail(CellError::WrongEnd { cell: self.id, connection, direction });
        }
        let place = row.of(self.id).binary_search(&connection).expect("the cell is its end");
        // Where an exchange used all words up there is no count.
        let moved = counts.get(place).map_or(u64::MAX, |&count| u64::from(count));
        let mut words = 0u64;
        let phases = &loaded.image.sets()[set].phases;
        for operation in phases[phase.index()].cell(self.id).operations {
            if (operation.connection, operation.direction) != (connection, direction) {
                continue;
            }
            let skip = moved.saturating_sub(words);
            if skip < u64::from(operation.words) {
                counts[place] += 1;
                let first_word = operation.first_word + to_u32(skip);
                return Ok((Operation { words: 1, first_word, ..*operation }, skip == 0));
            }
            words += u64::from(operation.words);
        }
        self.fail(match words {
            0 => CellError::NotInPhase { connection, phase: name() },
            _ => CellError::TooManyWords { connection, words, phase: name(), direction },
        })
    }

    pub(crate) fn set(&mut self, set: &impl SetRef) -> Result<usize, CellError> {
        match set.find(&self.loaded.image) {
            Some(set) => Ok(set),
            None => self.fail(CellError::NoSet { name: format!("{set:?}") }),
        }
    }

    /// Waits for all exchanges and reductions that the cell has started.
    pub(crate) fn wait_all(&mut self) -> Result<(), CellError> {
        self.wait_for_reductions()?;
        match self.requests.active.last().map(|request| request.number) {
            None => Ok(()),
            Some(last) => self.ask(|port| port.wait(last)),
        }
    }

    /// Checks that a program that returns has completed its exchanges.
    pub(crate) fn check_completed(&mut self) -> Result<(), CellError> {
        let exchanges = self.requests.active.first().map(|first| {
            (self.requests.active.len(), self.loaded.set(first.set).name().to_owned())
        });
        let Some((count, set)) = exchanges.or_else(|| self.reductions.open()) else {
            return Ok(());
        };
        if !self.is_running() {
            return Ok(());
        }
        self.fail(CellError::Plan(PlanUse::Leaked { count, set }))
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.port.has_stopped()
    }

    /// Checks that the run continues. A program that ignores the error and calls again is unwound, so
    /// that no program can keep a run from ending.
    pub(crate) fn check_running(&mut self) -> Result<(), CellError> {
        if !self.port.has_stopped() {
            return Ok(());
        }
        Err(self.stopped(Stopped))
    }

    fn stopped(&mut self, _: Stopped) -> CellError {
        if std::mem::replace(&mut self.told, true) {
            std::panic::resume_unwind(Box::new(AbortedProgram));
        }
        CellError::Aborted
    }

    pub(crate) fn fail<T>(&mut self, error: CellError) -> Result<T, CellError> {
        self.check_running()?;
        self.port.fail(&error);
        self.told = true;
        Err(error)
    }

    pub(crate) fn ask<T>(
        &mut self,
        call: impl FnOnce(&mut (dyn CellPort + 'w)) -> Result<T, Stopped>,
    ) -> Result<T, CellError> {
        call(self.port).map_err(|stopped| self.stopped(stopped))
    }
}

impl std::fmt::Debug for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).finish_non_exhaustive()
    }
}
