//! The port of a cell on a worker thread.
//!
//! # Steps
//!
//! The collective calls of a cell are numbered; each is a *step*. At a step a cell first *arrives*:
//! it compares its operation and source location with those that the first cell to arrive has
//! recorded, and the last cell of a worker publishes that all cells of the worker have arrived. A
//! switch of phases waits for all workers, so that all words of the old phase can be counted. An
//! exchange waits only for its neighbours.
//!
//! # Exchanges
//!
//! 1. A cell stores in the slots of its connections where its words are, and publishes the step.
//! 2. It waits for each source in turn, in the order of its connections, and copies from there.
//! 3. It is done with the step, and waits until the cells that it sends to are done.
//!
//! A nonblocking exchange is a step at which no cell waits (module `nonblocking`). Before any other
//! step a cell reads all incoming words of its nonblocking exchanges, so that a cell that is done
//! with a step is done with all before.
//!
//! # Why reading the memory of other cells is sound
//!
//! This is for blocking exchanges; module `nonblocking` has the argument for nonblocking ones.
//!
//! * *The memory is valid.* A source publishes pointers into slices that are borrowed by the call,
//!   and stays in the call until each of its targets is done, or until the run ends early and all
//!   workers have acknowledged that. A cell reads the memory of others only between a check that
//!   the run continues and its next suspension. A worker acknowledges only while none of its cells
//!   runs; afterwards its cells get [`Stopped`] before they read anything. Between publishing and
//!   the end of the call no code of the program runs, so nothing unwinds: slices are erased to
//!   pointers before, and words are numbers. Dropping the panic payload or the result of a program
//!   cannot unwind a worker, and if the runtime itself panics on a worker, the process ends (module
//!   `worker`).
//! * *The slots are those of this step.* Both cells have compared their call with the same entry of
//!   the log before the source publishes, so it has filled the slots of the same set in the same
//!   way. A source cannot be beyond the step while the reader is not done: the reader has completed
//!   the exchanges that it started before (`step`), and is done with later steps only after this
//!   one.
//! * *Nobody writes what is read.* Outgoing rows are shared slices. A vector exchanged by lists is
//!   published only if none of its outgoing positions is written in the exchange
//!   ([`CellLists::is_mixed`]); otherwise a copy is published, which nobody writes in the meantime.
//!   During the call all accesses to the vector use one pointer, and the words that others read are
//!   disjoint from those written.

use std::collections::VecDeque;

use conset_ir::{CellId, ConnectionId, Operation};

use super::combine::{RemoteWords, combine_from};
use super::nonblocking::NonblockingState;
use super::shared_state::{RunFailure, SharedState, WordSlot};
use super::tree_nonblocking::StartedWalk;
use super::worker::{Suspend, WaitCondition, WaitReason, Worker};
use crate::call::{Call, Collective};
use crate::collectives::StartedArray;
use crate::epochs::routing::{Round, RoundResult, TakeLists};
use crate::error::{CellError, RunError};
use crate::executor::Resume;
use crate::lists::{CellLists, Number, Op, VectorMut, each_vector, gather};
use crate::port::{
    ArrivedRows, By, CellPort, CombineFn, Context, DirectPass, PackFn, RawWords, ReadFn, Stopped,
    TreeWalk, UnpackFn, WireBuffers,
};
use crate::sync::{Counter, WINDOW};

/// The port of one cell.
pub(crate) struct ThreadPort<'y, 'b> {
    pub(crate) id: CellId,
    pub(super) state: &'b SharedState<'b>,
    pub(super) worker: &'b Worker,
    pub(super) yielder: &'y (dyn Suspend<'b> + 'y),
    pub(super) step: u64,
    /// Rounds of epochs.
    pub(super) rounds: u64,
    /// The call that is being made.
    call: Call,
    /// The set of which a phase was instantiated; elements may have been sent.
    pub(super) instantiated: Option<usize>,
    /// How often such a phase was left, by set.
    pub(super) times_left: Vec<u32>,
    /// For each connection that starts here, what must have been received before it is sent, as
    /// numbers of words since the run began. Empty where the set has no order, or all of it is
    /// done.
    pub(super) order: Vec<(ConnectionId, ConnectionId, u64)>,
    /// The set whose order that is.
    pub(super) ordered: Option<usize>,
    /// What goes out of a vector that is written in the same exchange.
    wire: Vec<u64>,
    /// Where the words that come in are; kept for its memory.
    arrived: Vec<RawWords>,
    pub(super) nonblocking: NonblockingState,
    pub(super) walks: VecDeque<StartedWalk<'b>>,
}

impl<'y, 'b> ThreadPort<'y, 'b> {
    pub(crate) fn new(
        id: CellId,
        state: &'b SharedState<'b>,
        worker: &'b Worker,
        yielder: &'y (dyn Suspend<'b> + 'y),
    ) -> Self {
        Self {
            id,
            state,
            worker,
            yielder,
            step: 0,
            rounds: 0,
            call: Call::default(),
            instantiated: None,
            times_left: vec![0; state.sets.len()],
            order: Vec::new(),
            ordered: None,
            wire: Vec::new(),
            arrived: Vec::new(),
            nonblocking: NonblockingState::default(),
            walks: VecDeque::new(),
        }
    }

    /// Waits until a counter has reached a value.
    #[inline]
    pub(super) fn wait_for(
        &mut self,
        counter: &'b Counter,
        value: u64,
        reason: WaitReason,
    ) -> Result<(), Stopped> {
        if counter.has_reached(value) {
            return Ok(());
        }
        match self.yielder.suspend(WaitCondition { counter, value, reason, asks: false }) {
            Resume::Continue => Ok(()),
            Resume::Abort => Err(Stopped),
        }
    }

    pub(super) fn check(&self) -> Result<(), Stopped> {
        self.state.activity[self.worker.number].0.call();
        if self.has_stopped() { Err(Stopped) } else { Ok(()) }
    }

    /// Arrives at the next step.
    pub(super) fn arrive_at(&mut self, collective: Collective) -> Result<(), Stopped> {
        self.check()?;
        self.step += 1;
        let (step, what) = (self.step, collective.number(self.state.loaded));
        self.worker.note(self.id, step, what);
        let record = self.worker.record(step);
        if record.step.get() != step && step > WINDOW {
            // The places of this step, here and in the log, are those of an old one. No cell may
            // look for that any more.
            if !self.state.arrived.iter().all(|arrived| arrived.0.has_reached(step - WINDOW)) {
                self.read_in()?;
            }
            for worker in 0..self.state.arrived.len() {
                let arrived = &self.state.arrived[worker].0;
                self.wait_for(arrived, step - WINDOW, WaitReason::Arrival(step - WINDOW))?;
            }
        }
        if record.step.get() != step {
            record.start(step, what, self.call, self.id);
            if !self.state.collective_log.matches(step, what, self.call.mark()) {
                return self.disagree(what);
            }
        }
        if record.what.get() != what || record.mark.get() != self.call.mark() {
            return self.disagree(what);
        }
        if record.count() == self.worker.cells {
            self.state.arrived[self.worker.number].0.publish(step);
        }
        Ok(())
    }

    fn disagree(&mut self, what: u32) -> Result<(), Stopped> {
        let (step, cell, call) = (self.step, self.id, self.call);
        let failure = RunFailure::Disagree { step, cell, what, call };
        self.state.fail(self.id, failure);
        Err(Stopped)
    }

    /// Arrives at the next step and leaves the phase before, if one was instantiated: waits for
    /// all cells, and finds words that were not received. Completes the nonblocking exchanges.
    pub(super) fn step(&mut self, collective: Collective) -> Result<(), Stopped> {
        self.check()?;
        self.read_in()?;
        let Some(set) = self.instantiated.take() else { return self.arrive_at(collective) };
        let times = self.count_sent(set);
        self.arrive_at(collective)?;
        self.barrier()?;
        self.count_received(set, times)
    }

    /// Waits until all cells have arrived at this step.
    pub(super) fn barrier(&mut self) -> Result<(), Stopped> {
        for worker in 0..self.state.arrived.len() {
            self.wait_for(
                &self.state.arrived[worker].0,
                self.step,
                WaitReason::Arrival(self.step),
            )?;
        }
        Ok(())
    }

    /// Publishes the slots or buffers of this step.
    pub(super) fn publish(&self) {
        self.state.published[self.id.index()].0.publish(self.step);
    }

    /// Waits until the source of a connection has published, and gives its slot.
    #[inline]
    pub(super) fn slot_of(
        &mut self,
        set: usize,
        connection: ConnectionId,
    ) -> Result<&'b WordSlot, Stopped> {
        let source = self.state.loaded.set(set).get(connection).source;
        let published = &self.state.published[source.index()].0;
        self.wait_for(published, self.step, WaitReason::Rows(set, connection))?;
        Ok(&self.state.sets[set].slots[connection.index()])
    }

    /// Is done with reading, and waits for those that read here.
    pub(super) fn finish(&mut self, set: usize) -> Result<(), Stopped> {
        self.state.done[self.id.index()].0.publish(self.step);
        let loaded = self.state.loaded;
        let connections = loaded.set(set);
        for &connection in loaded.sets[set].outgoing.of(self.id) {
            let ends = connections.get(connection);
            if ends.words > 0 {
                let done = &self.state.done[ends.target.index()].0;
                self.wait_for(done, self.step, WaitReason::Readers(set, connection))?;
            }
        }
        Ok(())
    }

    fn exchange_vectors<W: Number>(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: &mut [W],
    ) -> Result<(), Stopped> {
        self.step(Collective::VectorExchange(set))?;
        let loaded = self.state.loaded;
        let block = lists.block();
        if lists.is_mixed() {
            self.copy_out(set, lists, vector);
        }
        // From here on the vector is used through this pointer alone.
        let vector = RawWords::of_mut(vector);
        if !lists.is_mixed() {
            let slots = &self.state.sets[set].slots;
            for (place, connection) in loaded.sets[set].outgoing.of(self.id).iter().enumerate() {
                let positions = lists.send().row(place).as_ptr();
                slots[connection.index()].put(vector, positions, block);
            }
        }
        self.publish();
        let inn = loaded.sets[set].incoming.of(self.id);
        for (place, &connection) in inn.iter().enumerate() {
            let positions = lists.receive().row(place);
            if positions.is_empty() {
                continue;
            }
            let (row, there, there_block) = self.slot_of(set, connection)?.get();
            let here = vector.pointer.cast::<W>();
            // SAFETY: the memory is there and nobody writes what is read: see the module. Both
            // ends have checked that their lists have as many positions as the connection has
            // blocks, each of its own size, and stay within their vectors.
            unsafe {
                let there = RemoteWords { row, positions: there, block: there_block };
                self.worker.moved(positions.len() * block);
                combine_from(op, positions, block, &there, here);
            }
        }
        self.finish(set)
    }

    /// Gathers what goes out into the cell's own buffer, and says so in the slots.
    fn copy_out<W: Number>(&mut self, set: usize, lists: &CellLists, vector: &[W]) {
        let send = lists.send();
        let words = send.all().len() * lists.block();
        let room = (words * size_of::<W>()).div_ceil(8);
        if self.wire.len() < room {
            self.wire.resize(room, 0);
        }
        let pointer = self.wire.as_mut_ptr().cast::<W>();
        // SAFETY: the buffer holds as many bytes or more, is aligned to 8 and initialised, and a number
        // may have any bits. It is not touched otherwise until this cell's next exchange.
        let wire = unsafe { std::slice::from_raw_parts_mut(pointer, words) };
        gather(send.all(), lists.block(), vector, wire);
        let slots = &self.state.sets[set].slots;
        let out = self.state.loaded.sets[set].outgoing.of(self.id);
        for (place, connection) in out.iter().enumerate() {
            let words = send.row(place).len() * lists.block();
            let start = send.start(place) * lists.block();
            // SAFETY: the row lies within the buffer.
            let row = unsafe { pointer.add(start) };
            let row = RawWords { pointer: row.cast(), words, size: size_of::<W>() };
            slots[connection.index()].put(row, std::ptr::null(), 1);
        }
    }
}

impl CellPort for ThreadPort<'_, '_> {
    #[inline]
    fn has_stopped(&self) -> bool {
        self.state.shutdown.has_started()
    }

    fn fail(&mut self, error: &CellError) {
        let error = RunError::Cell { cell: self.id, error: error.clone() };
        self.state.fail(self.id, RunFailure::Known(error));
    }

    #[inline]
    fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    fn clock(&self) -> u64 {
        0
    }

    fn compute(&mut self, _: u64) -> Result<(), Stopped> {
        self.check()
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        let collective = match to {
            Context::Messages => Collective::Messages,
            Context::Phase(set, phase) => Collective::Phase(set, phase),
        };
        let met = self.instantiated.is_some();
        self.step(collective)?;
        if !met {
            self.barrier()?;
        }
        if let Some(error) = self.state.inboxes[self.id.index()].unread(self.id) {
            self.state.fail(self.id, RunFailure::Known(error));
            return Err(Stopped);
        }
        self.worker.switched(self.id);
        let Context::Phase(set, phase) = to else {
            self.ordered = None;
            // No cell may send a message before all have checked for unreceived ones.
            self.arrive_at(collective)?;
            return self.barrier();
        };
        if self.ordered != Some(set) || phase.0 == 0 {
            self.start_order(set);
        }
        self.instantiated = Some(set);
        Ok(())
    }

    fn send_word(&mut self, word: &Operation, _: bool, bits: u64) -> Result<(), Stopped> {
        self.check()?;
        let set = self.instantiated.expect("words are of a phase that was instantiated");
        let (state, connection) = (self.state, word.connection);
        let elements = state.sets[set].elements();
        for row in 0..self.order.len() {
            let (after, before, words) = self.order[row];
            if after == connection {
                let received = &elements.received[before.index()];
                self.wait_for(received, words, WaitReason::Order(set, connection, before))?;
            }
        }
        let words = state.loaded.set(set).get(connection).words;
        elements.put(connection, words, word.first_word, bits);
        let sent = &elements.sent[connection.index()];
        sent.publish(sent.value() + 1);
        Ok(())
    }

    fn receive_word(&mut self, word: &Operation, _: bool) -> Result<u64, Stopped> {
        self.check()?;
        let set = self.instantiated.expect("words are of a phase that was instantiated");
        let (state, connection) = (self.state, word.connection);
        let elements = state.sets[set].elements();
        let received = &elements.received[connection.index()];
        let count = received.value() + 1;
        self.wait_for(
            &elements.sent[connection.index()],
            count,
            WaitReason::Word(set, connection),
        )?;
        let bits = elements.get(connection, word.first_word);
        received.publish(count);
        self.worker.moved(1);
        Ok(bits)
    }

    unsafe fn exchange(
        &mut self,
        set: usize,
        by: By,
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped> {
        self.publish_rows(set, by, outgoing.iter().copied())?;
        let loaded = self.state.loaded;
        for (&connection, row) in loaded.sets[set].incoming.of(self.id).iter().zip(incoming) {
            if row.words == 0 {
                continue;
            }
            let (there, ..) = self.slot_of(set, connection)?.get();
            // SAFETY: the memory is there and nobody writes what is read: see the module. Both
            // rows are as long as the connection, which both cells have checked, and the one
            // here overlaps no other.
            unsafe { row.copy_from(&there) };
            self.worker.moved(row.words);
        }
        self.finish(set)
    }

    fn exchange_packed(
        &mut self,
        set: usize,
        by: By,
        buffers: &mut WireBuffers,
        pack: &mut PackFn<'_>,
        read: &mut ReadFn<'_>,
    ) -> Result<(), Stopped> {
        buffers.fill(pack);
        self.publish_rows(set, by, buffers.outgoing.raw())?;
        let mut rows = std::mem::take(&mut self.arrived);
        rows.clear();
        for &connection in self.state.loaded.sets[set].incoming.of(self.id) {
            let words = self.state.loaded.set(set).get(connection).words;
            if words == 0 {
                rows.push(RawWords::of::<u64>(&[]));
                continue;
            }
            let (row, ..) = self.slot_of(set, connection)?.get();
            rows.push(row);
            self.worker.moved(row.words);
        }
        // SAFETY: the memory of all sources is there and nobody writes it before this cell is done:
        // see the module. This cell has not been suspended since it has seen that the last of them has
        // published, and all others have not since: they wait for this cell in the call.
        read(&unsafe { ArrivedRows::new(&rows) });
        self.arrived = rows;
        self.finish(set)
    }

    fn exchange_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: VectorMut<'_>,
    ) -> Result<(), Stopped> {
        self.order_done(set);
        each_vector!(vector, x => self.exchange_vectors(set, lists, op, x))
    }

    fn start(
        &mut self,
        number: u64,
        set: usize,
        mut buffers: WireBuffers,
        pack: &mut PackFn<'_>,
    ) -> Result<(), Stopped> {
        buffers.fill(pack);
        self.start_request(number, set, buffers)
    }

    fn test(&mut self, number: u64) -> Result<bool, Stopped> {
        self.test_request(number)
    }

    fn wait(&mut self, number: u64) -> Result<(), Stopped> {
        self.read_requests(number)
    }

    fn take(&mut self, number: u64) -> WireBuffers {
        self.take_request(number)
    }

    fn read(&mut self, number: u64, unpack: &mut UnpackFn<'_>) -> Result<WireBuffers, Stopped> {
        self.read_in_place(number, unpack)
    }

    fn walks_edges(&self, _: usize) -> bool {
        true
    }

    fn walk(
        &mut self,
        walk: &TreeWalk<'_>,
        array: &mut [u8],
        combine: &CombineFn<'_>,
    ) -> Result<(), Stopped> {
        self.walk_tree(walk, array, combine)
    }

    fn start_walk(
        &mut self,
        number: u64,
        walk: &TreeWalk<'_>,
        array: StartedArray,
    ) -> Result<Option<StartedArray>, Stopped> {
        self.start_tree_walk(number, walk, array)?;
        Ok(None)
    }

    fn test_walk(&mut self, number: u64) -> Result<bool, Stopped> {
        self.test_tree_walk(number)
    }

    fn wait_walk(&mut self, number: u64) -> Result<(), Stopped> {
        self.wait_tree_walks(number)
    }

    fn take_walk(&mut self, number: u64) -> StartedArray {
        self.take_tree_walk(number)
    }

    unsafe fn send_message(&mut self, target: CellId, words: RawWords) -> Result<(), Stopped> {
        // SAFETY: the promise of the caller.
        unsafe { self.put_message(target, words) }
    }

    unsafe fn receive_message(&mut self, source: CellId, into: RawWords) -> Result<usize, Stopped> {
        // SAFETY: the caller says that the row can be written.
        self.receive(source, |words| unsafe { into.write_if_fits(words) })
    }

    fn next_message(
        &mut self,
        source: Option<CellId>,
        wait: bool,
    ) -> Result<Option<(CellId, usize)>, Stopped> {
        self.look_for_message(source, wait)
    }

    unsafe fn pass_directly(&mut self, pass: &DirectPass) -> Result<usize, Stopped> {
        // SAFETY: the promise of the caller.
        unsafe { self.pass_in_place(pass) }
    }

    fn deliver(&mut self, round: Round<'_>, arrived: &mut dyn TakeLists) -> RoundResult {
        self.deliver_round(round, arrived)
    }

    unsafe fn exchange_sized(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        read: &mut UnpackFn<'_>,
    ) -> Result<(), Stopped> {
        // SAFETY: the promise of the caller.
        unsafe { self.exchange_rows_sized(set, outgoing, read) }
    }
}

impl ThreadPort<'_, '_> {
    /// Begins an exchange of a set: says where the words that go out are, and publishes that.
    fn publish_rows(
        &mut self,
        set: usize,
        by: By,
        outgoing: impl Iterator<Item = RawWords>,
    ) -> Result<(), Stopped> {
        match by {
            By::Phases => {
                self.step(Collective::Exchange(set))?;
                self.order_done(set);
            }
            By::Messages => self.step(Collective::MessageExchange(set))?,
        }
        self.publish_slots(set, outgoing);
        Ok(())
    }

    /// Says where the words that go out are, and publishes that.
    pub(super) fn publish_slots(&self, set: usize, outgoing: impl Iterator<Item = RawWords>) {
        let connections = self.state.loaded.sets[set].outgoing.of(self.id);
        for (&connection, row) in connections.iter().zip(outgoing) {
            self.state.sets[set].slots[connection.index()].put(row, std::ptr::null(), 1);
        }
        self.publish();
    }

    /// An exchange of the whole set keeps its order by itself, and leaves nothing of it open.
    pub(super) fn order_done(&mut self, set: usize) {
        self.order.clear();
        self.ordered = Some(set);
    }
}
