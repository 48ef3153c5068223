//! The port of a cell on the emulated machine.
//!
//! Every call that takes time is a request to the fabric driver, which suspends the coroutine until
//! the clock at which the request is done. The driver performs nonblocking exchanges by itself,
//! with the buffers that the port leaves in the state of the run. Those by steps the port performs
//! when the cell waits.

use std::cell::RefCell;
use std::collections::VecDeque;

use conset_ir::{CellId, Operation, PhaseId};
use corosensei::Yielder;

use crate::call::{Call, CallLog, Collective};
use crate::collectives::{StartedArray, WalkDirection, bits_of, bytes_of_mut, write_bits};
use crate::epochs::routing::{PacketPort, Packing, Round, RoundResult, TakeLists, unpack};
use crate::error::{CellError, RunError};
use crate::executor::Resume;
use crate::fabric_driver::RoundBoard;
use crate::lists::{CellLists, Op, VectorMut};
use crate::loaded_image::LoadedImage;
use crate::message_queue::{MessageQueue, Subject};
use crate::port::{
    By, CellPort, CombineFn, Context, DirectPass, PackFn, RawWords, Stopped, TreeWalk, UnpackFn,
    WireBuffers, exchange_packed,
};
use crate::store::{PackedExchanges, StepStore, WordStore};

/// What a cell asks the scheduler for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FabricRequest {
    /// Wait for all cells, then switch.
    Switch(Context),
    /// One word of a stream; whether it is the first, which opens the stream.
    Element(Operation, bool),
    /// The cell's operation list of the active phase.
    List,
    /// Local work, in clocks.
    Compute(u64),
    /// Send a message.
    Send(u32),
    /// Receive a message of a cell.
    Receive(CellId, Subject),
    /// Wait for a message of any cell.
    ReceiveAny,
    /// Ask whether a message has come.
    TestMessage,
    /// Send a message, receive one of a cell, or both.
    Direct(Option<u32>, Option<CellId>),
    /// The cell's posted messages for a set, and all that come for it.
    ExchangeMessages(usize),
    /// The cell's operation list of a set's step plan.
    ExchangeSteps(usize),
    /// Take part in a round by active messages.
    Round,
    /// Begin an exchange of a set, the cell's next.
    Start(usize),
    /// Test a nonblocking exchange that has not arrived.
    Test,
    /// Wait for a nonblocking exchange.
    Arrival(u64),
}

/// What all cells and the scheduler share in one run.
#[derive(Debug, Default)]
pub(crate) struct FabricState {
    pub(crate) store: WordStore,
    pub(crate) packed: PackedExchanges,
    pub(crate) queue: MessageQueue,
    pub(crate) steps: StepStore,
    pub(crate) board: RoundBoard,
    pub(crate) clock: u64,
    pub(crate) calls: CallLog,
    /// The first error of a cell's call.
    pub(crate) error: Option<RunError>,
    pub(crate) aborted: bool,
}

/// The port of one cell.
pub(crate) struct FabricPort<'w> {
    pub(crate) id: CellId,
    pub(crate) loaded: &'w LoadedImage,
    pub(crate) state: &'w RefCell<FabricState>,
    pub(crate) yielder: &'w Yielder<Resume, FabricRequest>,
    /// The call that is being made.
    pub(crate) call: Call,
    /// Cells of the run.
    pub(crate) cells: usize,
    /// Nonblocking exchanges by steps: those not performed, in order, and those performed.
    pub(crate) deferred: DeferredExchanges,
}

/// Nonblocking exchanges by steps, which the cell performs when it waits for one or tests it: the
/// software of messages is the cell's own, so they do not go on while its program computes.
#[derive(Debug, Default)]
pub(crate) struct DeferredExchanges {
    /// Number, set, buffers.
    waiting: VecDeque<(u64, usize, WireBuffers)>,
    performed: Vec<(u64, WireBuffers)>,
}

impl FabricPort<'_> {
    fn request(&mut self, request: FabricRequest) -> Result<(), Stopped> {
        match self.yielder.suspend(request) {
            Resume::Continue if !self.has_stopped() => Ok(()),
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

    /// Exchanges a set by its step plan.
    ///
    /// # Safety
    /// As [`CellPort::exchange`].
    unsafe fn exchange_steps(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped> {
        let ends = &self.loaded.sets[set];
        let round = {
            let steps = &mut self.state.borrow_mut().steps;
            let round = (steps.start(self.id), self.id);
            for (&connection, row) in ends.outgoing.of(self.id).iter().zip(outgoing) {
                // SAFETY: the caller says that the rows can be read.
                steps.put(round, connection, (0..row.words).map(|i| unsafe { row.get(i) }));
            }
            round
        };
        self.request(FabricRequest::ExchangeSteps(set))?;
        let steps = &mut self.state.borrow_mut().steps;
        for (&connection, row) in ends.incoming.of(self.id).iter().zip(incoming) {
            let words = steps.take(round, connection);
            for (index, &bits) in words.iter().enumerate().take(row.words) {
                // SAFETY: the caller says that incoming rows can be written.
                unsafe { row.set(index, bits) };
            }
        }
        Ok(())
    }

    /// Performs the deferred exchanges up to this one.
    fn perform_deferred(&mut self, last: u64) -> Result<(), Stopped> {
        let waits = |front: &(u64, usize, WireBuffers)| front.0 <= last;
        while self.deferred.waiting.front().is_some_and(waits) {
            let Some((number, set, mut buffers)) = self.deferred.waiting.pop_front() else { break };
            let out: Vec<RawWords> = buffers.outgoing.raw().collect();
            let into: Vec<RawWords> = buffers.incoming.raw().collect();
            // SAFETY: the rows are those of vectors that are not touched before the call returns
            // or unwinds, and that overlap no others.
            unsafe { self.exchange_steps(set, &out, &into)? };
            self.deferred.performed.push((number, buffers));
        }
        Ok(())
    }

    fn is_steps(&self, set: usize) -> bool {
        self.loaded.sets[set].steps.is_some()
    }

    fn has_arrived(&self, number: u64) -> bool {
        self.state.borrow().packed.has_arrived(self.id, number)
    }

    /// Sends an array over the edge to a neighbour in a tree.
    fn send_edge(
        &mut self,
        walk: &TreeWalk<'_>,
        target: CellId,
        array: &[u8],
    ) -> Result<(), Stopped> {
        let connection = walk.edge(self.loaded, self.id, target);
        let subject = Subject::Edge(walk.set, connection);
        let bits = bits_of(array, walk.word_bytes);
        let envelope = self.state.borrow_mut().queue.post((self.id, target), subject, bits);
        self.request(FabricRequest::Send(envelope))
    }

    /// Receives the array of a neighbour in a tree; of other lengths what there is room for, as calls
    /// with other lengths are found when they are made.
    fn receive_edge(
        &mut self,
        walk: &TreeWalk<'_>,
        source: CellId,
        array: &mut [u8],
    ) -> Result<(), Stopped> {
        let connection = walk.edge(self.loaded, source, self.id);
        let subject = Subject::Edge(walk.set, connection);
        self.request(FabricRequest::Receive(source, subject))?;
        let queue = &mut self.state.borrow_mut().queue;
        queue.read(self.id, subject, source, |bits| write_bits(array, walk.word_bytes, bits));
        Ok(())
    }

    /// Posts a message for each connection of a set that starts here.
    ///
    /// # Safety
    /// The rows can be read.
    unsafe fn post_rows(&self, set: usize, outgoing: &[RawWords]) {
        let connections = self.loaded.set(set);
        let queue = &mut self.state.borrow_mut().queue;
        let out = self.loaded.sets[set].outgoing.of(self.id);
        for (&connection, row) in out.iter().zip(outgoing) {
            // SAFETY: the caller says that the rows can be read.
            let words = (0..row.words).map(|index| unsafe { row.get(index) });
            let ways = (self.id, connections.get(connection).target);
            let envelope = queue.post(ways, Subject::Connection(set, connection), words);
            queue.posted[self.id.index()].push(envelope);
        }
    }

    /// Exchanges a set by messages.
    ///
    /// # Safety
    /// As [`CellPort::exchange`].
    unsafe fn exchange_messages(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped> {
        let (ends, connections) = (&self.loaded.sets[set], self.loaded.set(set));
        // SAFETY: the promise of the caller.
        unsafe { self.post_rows(set, outgoing) };
        self.request(FabricRequest::ExchangeMessages(set))?;
        let queue = &mut self.state.borrow_mut().queue;
        for (&connection, row) in ends.incoming.of(self.id).iter().zip(incoming) {
            let source = connections.get(connection).source;
            queue.read(self.id, Subject::Connection(set, connection), source, |words| {
                for (index, &bits) in words.iter().enumerate().take(row.words) {
                    // SAFETY: the caller says that incoming rows can be written.
                    unsafe { row.set(index, bits) };
                }
            });
        }
        Ok(())
    }
}

impl CellPort for FabricPort<'_> {
    fn has_stopped(&self) -> bool {
        self.state.borrow().aborted
    }

    fn fail(&mut self, error: &CellError) {
        self.end(RunError::Cell { cell: self.id, error: error.clone() });
    }

    #[inline]
    fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    fn clock(&self) -> u64 {
        self.state.borrow().clock
    }

    fn compute(&mut self, clocks: u64) -> Result<(), Stopped> {
        self.request(FabricRequest::Compute(clocks))
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        self.make(match to {
            Context::Messages => Collective::Messages,
            Context::Phase(set, phase) => Collective::Phase(set, phase),
        })?;
        self.request(FabricRequest::Switch(to))
    }

    fn send_word(&mut self, word: &Operation, opens: bool, bits: u64) -> Result<(), Stopped> {
        self.state.borrow_mut().store.put(word.connection, word.first_word, bits);
        self.request(FabricRequest::Element(*word, opens))
    }

    fn receive_word(&mut self, word: &Operation, opens: bool) -> Result<u64, Stopped> {
        self.request(FabricRequest::Element(*word, opens))?;
        Ok(self.state.borrow().store.get(word.connection, word.first_word))
    }

    unsafe fn exchange(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped> {
        if by == By::Messages {
            self.make(Collective::MessageExchange(set))?;
            // SAFETY: the promise of the caller.
            return unsafe { self.exchange_messages(set, outgoing, incoming) };
        }
        if self.is_steps(set) {
            self.make(Collective::MessageExchange(set))?;
            // SAFETY: the promise of the caller.
            return unsafe { self.exchange_steps(set, outgoing, incoming) };
        }
        let ends = &self.loaded.sets[set];
        for phase in 0..self.loaded.image.sets()[set].phases.len() {
            let phase = PhaseId::from_index(phase);
            self.switch(Context::Phase(set, phase))?;
            if phase == PhaseId(0) {
                let store = &mut self.state.borrow_mut().store;
                for (&connection, row) in ends.outgoing.of(self.id).iter().zip(outgoing) {
                    // SAFETY: the caller says that the rows can be read.
                    let words = (0..row.words).map(|index| unsafe { row.get(index) });
                    store.fill(connection, words);
                }
            }
            self.request(FabricRequest::List)?;
        }
        let store = &self.state.borrow().store;
        for (&connection, row) in ends.incoming.of(self.id).iter().zip(incoming) {
            for (index, bits) in store.received(connection, row.words).enumerate() {
                // SAFETY: the caller says that incoming rows can be written.
                unsafe { row.set(index, bits) };
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

    fn start(
        &mut self,
        number: u64,
        set: usize,
        mut buffers: WireBuffers,
        pack: &mut PackFn<'_>,
    ) -> Result<(), Stopped> {
        self.make(Collective::Nonblocking(set))?;
        buffers.fill(pack);
        if self.is_steps(set) {
            self.deferred.waiting.push_back((number, set, buffers));
            return Ok(());
        }
        let empty = self.loaded.image.sets()[set].phases.is_empty();
        self.state.borrow_mut().packed.put(self.id, number, empty, buffers);
        self.request(FabricRequest::Start(set))
    }

    fn test(&mut self, number: u64) -> Result<bool, Stopped> {
        if self.loaded.image.is_steps() {
            return self.perform_deferred(number).map(|()| true);
        }
        if !self.has_arrived(number) {
            self.request(FabricRequest::Test)?;
        }
        Ok(self.has_arrived(number))
    }

    fn wait(&mut self, number: u64) -> Result<(), Stopped> {
        if self.loaded.image.is_steps() {
            return self.perform_deferred(number);
        }
        if self.has_arrived(number) {
            return Ok(());
        }
        self.request(FabricRequest::Arrival(number))
    }

    fn take(&mut self, number: u64) -> WireBuffers {
        if self.loaded.image.is_steps() {
            let performed = &mut self.deferred.performed;
            let at = performed.iter().position(|exchange| exchange.0 == number);
            return performed.swap_remove(at.expect("the exchange has been performed")).1;
        }
        self.state.borrow_mut().packed.take(self.id, number)
    }

    fn walks_edges(&self, set: usize) -> bool {
        self.is_steps(set)
    }

    fn walk(
        &mut self,
        walk: &TreeWalk<'_>,
        array: &mut [u8],
        combine: &CombineFn<'_>,
    ) -> Result<(), Stopped> {
        self.make(Collective::Walk(walk.set))?;
        let (parent, children) = (walk.tree.parent_of(self.id), walk.tree.children(self.id));
        if walk.way != WalkDirection::Down {
            let mut words = vec![0u64; array.len().div_ceil(8)];
            let received = &mut bytes_of_mut(&mut words)[..array.len()];
            for (place, &child) in children.iter().enumerate() {
                self.receive_edge(walk, child, received)?;
                combine(self.id, place, array, received);
            }
            if let Some(parent) = parent {
                self.send_edge(walk, parent, array)?;
            }
        }
        if walk.way == WalkDirection::Up {
            return Ok(());
        }
        if let Some(parent) = parent {
            self.receive_edge(walk, parent, array)?;
        }
        children.iter().try_for_each(|&child| self.send_edge(walk, child, array))
    }

    fn start_walk(
        &mut self,
        _: u64,
        _: &TreeWalk<'_>,
        array: StartedArray,
    ) -> Result<Option<StartedArray>, Stopped> {
        // The cells of the machine combine words in their programs.
        Ok(Some(array))
    }

    fn test_walk(&mut self, _: u64) -> Result<bool, Stopped> {
        unreachable!("no walk is started by itself")
    }

    fn wait_walk(&mut self, _: u64) -> Result<(), Stopped> {
        unreachable!("no walk is started by itself")
    }

    fn take_walk(&mut self, _: u64) -> StartedArray {
        unreachable!("no walk is started by itself")
    }

    unsafe fn send_message(&mut self, target: CellId, words: RawWords) -> Result<(), Stopped> {
        // SAFETY: the caller says that the row can be read.
        let bits = (0..words.words).map(|index| unsafe { words.get(index) });
        let envelope = self.state.borrow_mut().queue.post((self.id, target), Subject::Plain, bits);
        self.request(FabricRequest::Send(envelope))
    }

    unsafe fn receive_message(&mut self, source: CellId, into: RawWords) -> Result<usize, Stopped> {
        self.request(FabricRequest::Receive(source, Subject::Plain))?;
        let queue = &mut self.state.borrow_mut().queue;
        // SAFETY: the caller says that the row can be written.
        let read = |words: &[u64]| unsafe { into.write_if_fits(words) };
        let read = queue.read(self.id, Subject::Plain, source, read);
        Ok(read.expect("the cell is resumed when the envelope is there"))
    }

    fn next_message(
        &mut self,
        source: Option<CellId>,
        wait: bool,
    ) -> Result<Option<(CellId, usize)>, Stopped> {
        let found = self.state.borrow().queue.first_plain(self.id, source);
        if found.is_some() {
            return Ok(found);
        }
        self.request(match (wait, source) {
            (false, _) => FabricRequest::TestMessage,
            (true, None) => FabricRequest::ReceiveAny,
            (true, Some(source)) => FabricRequest::Receive(source, Subject::Plain),
        })?;
        Ok(self.state.borrow().queue.first_plain(self.id, source))
    }

    unsafe fn pass_directly(&mut self, pass: &DirectPass) -> Result<usize, Stopped> {
        let (id, row_in) = (self.id, pass.incoming.map(|(_, row)| row));
        if let (Some((target, out)), Some((source, into))) = (pass.outgoing, pass.incoming)
            && (target, source) == (id, id)
        {
            // SAFETY: the promise of the caller.
            return Ok(unsafe { into.copy_if_fits(&out) });
        }
        let sends = pass.outgoing.map(|(target, row)| {
            // SAFETY: the caller says that the row can be read.
            let bits = (0..row.words).map(|index| unsafe { row.get(index) });
            self.state.borrow_mut().queue.post((id, target), Subject::Direct, bits)
        });
        let source = pass.incoming.map(|(source, _)| source);
        self.request(FabricRequest::Direct(sends, source))?;
        let (Some(source), Some(into)) = (source, row_in) else { return Ok(0) };
        // SAFETY: the caller says that the row can be written.
        let read = |words: &[u64]| unsafe { into.write_if_fits(words) };
        let read = self.state.borrow_mut().queue.read(id, Subject::Direct, source, read);
        Ok(read.expect("the cell is resumed when the envelope is there"))
    }

    fn deliver(&mut self, round: Round<'_>, arrived: &mut dyn TakeLists) -> RoundResult {
        self.make(Collective::Round)?;
        if self.loaded.image.machine().parameters().active_words == 0 {
            return round.route(self, Packing::WordByWord, arrived);
        }
        let own = round.own;
        self.state.borrow_mut().board.post(round);
        self.request(FabricRequest::Round)?;
        let outcome = self.state.borrow_mut().board.take(own);
        Ok(outcome.map(|(lists, first)| {
            lists.into_iter().for_each(|(source, bytes)| arrived.take(source, bytes.into()));
            first
        }))
    }

    unsafe fn exchange_sized(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        read: &mut UnpackFn<'_>,
    ) -> Result<(), Stopped> {
        self.make(Collective::SizedExchange(set))?;
        // SAFETY: the promise of the caller.
        unsafe { self.post_rows(set, outgoing) };
        self.request(FabricRequest::ExchangeMessages(set))?;
        let connections = self.loaded.set(set);
        let queue = &mut self.state.borrow_mut().queue;
        let size = self.call.word_bytes();
        for (row, &connection) in self.loaded.sets[set].incoming.of(self.id).iter().enumerate() {
            let source = connections.get(connection).source;
            queue.read(self.id, Subject::Connection(set, connection), source, |words| {
                read((row, 0), &unpack(words, size, words.len() * size));
            });
        }
        Ok(())
    }
}

impl PacketPort for FabricPort<'_> {
    fn pass_packet<T>(
        &mut self,
        (target, packet): (CellId, Vec<u64>),
        source: CellId,
        receive_first: bool,
        open: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        if !receive_first {
            self.send_packet(target, &packet)?;
        }
        self.request(FabricRequest::Receive(source, Subject::Packet))?;
        let read = self.state.borrow_mut().queue.read(self.id, Subject::Packet, source, open);
        if receive_first {
            self.send_packet(target, &packet)?;
        }
        Ok(read.expect("the cell is resumed when the envelope is there"))
    }
}

impl FabricPort<'_> {
    fn send_packet(&mut self, target: CellId, packet: &[u64]) -> Result<(), Stopped> {
        let ends = (self.id, target);
        let words = packet.iter().copied();
        let envelope = self.state.borrow_mut().queue.post(ends, Subject::Packet, words);
        self.request(FabricRequest::Send(envelope))
    }
}
