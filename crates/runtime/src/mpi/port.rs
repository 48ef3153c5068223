//! The port of a cell over MPI.

use std::rc::Rc;

use conset_ir::{CellId, ConnectionId, Direction, Operation, PhaseId};
use corosensei::Yielder;

use super::direct_rounds::DirectRounds;
use super::live_tree::LiveTree;
use super::message_layout::WordRun;
use super::message_queue::{Address, IncomingMessage};
use super::mismatch::CollectiveStep;
use super::nonblocking::MpiRequest;
use super::persistent_requests::{ExchangeKey, Numbered, PersistentExchange};
use super::run::{Rank, WaitState};
use super::started_walks::WalkRequest;
use crate::call::Call;
use crate::collectives::{StartedArray, WalkDirection};
use crate::epochs::routing::{Round, RoundResult, TakeLists};
use crate::error::{Awaiting, CellError, CellWait, MpiError, RunError};
use crate::lists::{CellLists, Number, Op, VectorMut, each_vector};
use crate::port::{
    By, CellPort, CombineFn, Context, DirectPass, OtherArray, PackFn, RawWords, ReadFn,
    ShortReduction, Stopped, TreeWalk, UnpackFn, WireBuffers,
};
use crate::word::copy_bytes;

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
    /// Where the words that came in are; kept for its memory.
    pub(super) arrived: Vec<RawWords>,
    /// What direct rounds of epochs use; made by the first.
    pub(super) rounds: Option<DirectRounds>,
    /// The cell in the tree of all live cells; made by the first reduction over it.
    pub(super) tree: Option<LiveTree>,
}

/// Clears the bodies of a cell, also if its coroutine is unwound: none is under way when the rows are
/// used otherwise.
struct ClearBodies<'e> {
    exchange: &'e PersistentExchange,
    row: usize,
}

impl Drop for ClearBodies<'_> {
    fn drop(&mut self) {
        self.exchange.clear_bodies(self.row);
    }
}

impl MpiPort<'_> {
    /// Lets the other cells of the rank have their turns until something is there.
    pub(super) fn wait_for<T>(
        &self,
        what: WaitState,
        mut look: impl FnMut() -> Result<Option<T>, RunError>,
    ) -> Result<T, Stopped> {
        self.set(what);
        loop {
            if self.rank.has_stopped() {
                return Err(Stopped);
            }
            if let Some(found) = self.noted(look())? {
                self.set(WaitState::Nothing);
                self.rank.made_progress();
                return Ok(found);
            }
            self.yielder.suspend(());
        }
    }

    /// How often to look for what is not there yet before others have their turn.
    pub(super) fn tries(&self) -> u32 {
        let alone = self.rank.waits.borrow().len() == 1;
        if alone { TRIES_ALONE } else { TRIES }
    }

    pub(super) fn set(&self, what: WaitState) {
        self.rank.waits.borrow_mut()[self.row] = what;
    }

    /// Ends the run if something failed.
    pub(super) fn noted<T, E: Into<RunError>>(&self, result: Result<T, E>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.rank.stop(error);
            Stopped
        })
    }

    /// Whether something is done that proceeds by itself.
    fn test_until(
        &self,
        what: WaitState,
        done: impl Fn(&Rank<'_>, usize) -> bool,
    ) -> Result<bool, Stopped> {
        let (rank, row) = (self.rank, self.row);
        self.noted(rank.progress(1))?;
        if done(rank, row) {
            return Ok(true);
        }
        // One turn for the others, in which the rank looks at all requests, and at the clock.
        self.set(what);
        rank.tested.set(true);
        self.yielder.suspend(());
        self.set(WaitState::Nothing);
        if rank.has_stopped() { Err(Stopped) } else { Ok(done(rank, row)) }
    }

    /// Performs an exchange of a set until all has arrived: `fill` packs what leaves.
    fn exchange_until_done(
        &self,
        set: usize,
        by: By,
        fill: impl FnMut(&WordRun, &mut [u8]),
    ) -> Result<Rc<PersistentExchange>, Stopped> {
        let row = self.row;
        self.started_until_done(set, by, |exchange, call| exchange.start(row, call, fill))
    }

    /// The same with a function that starts the exchange, perhaps with bodies in rows; these are not
    /// under way any more when it returns or unwinds.
    fn started_until_done(
        &self,
        set: usize,
        by: By,
        start: impl FnOnce(&PersistentExchange, Numbered) -> Result<(), MpiError>,
    ) -> Result<Rc<PersistentExchange>, Stopped> {
        let step = self.rank.count_step(self.row, CollectiveStep::Exchange(set, by), self.call);
        let key = self.key(set, by);
        let exchange = self.noted(self.rank.exchange(key))?;
        let row = self.row;
        if !self.noted(exchange.is_ready(row))? {
            let ready = || Ok(exchange.is_ready(row)?.then_some(()));
            self.wait_for(WaitState::Readers(key), ready)?;
        }
        let in_rows = ClearBodies { exchange: &exchange, row };
        let tries = self.tries();
        let poll = || Ok(exchange.poll(row, tries)?.then_some(()));
        let started = self.noted(start(&exchange, (step, self.call)));
        let done = started.and_then(|()| self.wait_for(WaitState::Exchange(key), poll));
        if done.is_err() {
            exchange.abandon(row, self.rank);
        }
        drop(in_rows);
        done.map(|()| exchange)
    }

    /// How a set is exchanged by the call that is being made.
    fn key(&self, set: usize, by: By) -> ExchangeKey {
        ExchangeKey { set, by, size: self.call.word_bytes() }
    }

    fn exchange_vector<W: Number>(
        &self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: &mut [W],
    ) -> Result<(), Stopped> {
        let exchange = self.exchange_until_done(set, By::Phases, |run, wire| {
            lists.pack((run.slot, run.words.start), vector, wire);
        })?;
        self.noted(exchange.finish(self.row, |run, wire| {
            lists.unpack((run.slot, run.words.start), op, wire, vector);
        }))
    }

    /// What must be received before the cell's connections of a set, from now on.
    fn start_order(&mut self, set: usize) {
        let set = self.rank.loaded.set(set);
        let own = set.order().iter().filter(|(_, after)| set.get(*after).source == self.id);
        self.order.clear();
        self.order.extend(own.map(|&(before, after)| (after, before, set.get(before).words)));
    }

    pub(super) fn next_envelope(&self, from: Address, what: WaitState) -> Result<usize, Stopped> {
        self.wait_for(what, || Ok(self.rank.messages.look(from)?))
    }

    /// The words of the next message, which has arrived.
    pub(super) fn open<T>(
        &self,
        from: Address,
        words: usize,
        what: WaitState,
        read: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        let mut envelope: IncomingMessage = self.noted(self.rank.messages.take(from, words))?;
        self.wait_for(what, || Ok(envelope.open()?.map(&read)))
    }
}

impl CellPort for MpiPort<'_> {
    fn has_stopped(&self) -> bool {
        self.rank.has_stopped()
    }

    fn fail(&mut self, error: &CellError) {
        self.rank.stop(RunError::Cell { cell: self.id, error: error.clone() });
    }

    #[inline]
    fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    fn clock(&self) -> u64 {
        0
    }

    fn compute(&mut self, _clocks: u64) -> Result<(), Stopped> {
        Ok(())
    }

    fn switch(&mut self, to: Context) -> Result<(), Stopped> {
        self.rank.count_step(self.row, CollectiveStep::Switch(to), self.call);
        let before = self.rank.switches.get();
        let switched = || Ok((self.rank.switches.get() > before).then_some(()));
        self.wait_for(WaitState::Switch(to), switched)?;
        let Context::Phase(set, phase) = to else {
            self.active = usize::MAX;
            return Ok(());
        };
        if set != self.active || phase == PhaseId(0) {
            self.start_order(set);
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
            return self.noted(Err(RunError::Deadlock { waits, closed: true }));
        }
        let to = self.rank.element(word, self.active);
        self.noted(self.rank.messages.send(to, vec![bits]))
    }

    fn receive_word(&mut self, word: &Operation, _opens: bool) -> Result<u64, Stopped> {
        let from = self.rank.element(word, self.active);
        let what = WaitState::Word(self.active, word.connection);
        let words = self.next_envelope(from, what)?;
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
        outgoing: &[RawWords],
        incoming: &[RawWords],
    ) -> Result<(), Stopped> {
        let row = self.row;
        let exchange = self.started_until_done(set, by, |exchange, call| {
            // SAFETY: the caller says that the rows can be read and written, and `check_rows` of the
            // cell that they are as long as their connections. Both hold until this function returns
            // or unwinds, before which no bodies are under way any more.
            unsafe { exchange.start_rows(row, call, (outgoing, incoming)) }
        })?;
        let in_rows = exchange.is_in_rows(row);
        self.noted(exchange.finish(row, |run, wire| {
            if !(run.is_body && in_rows) {
                // SAFETY: the caller says that the row can be written and overlaps no others, and is
                // as long as its connection, of which the run is a part.
                copy_bytes(unsafe { incoming[run.slot].bytes_mut(&run.words) }, wire);
            }
        }))
    }

    fn exchange_packed(
        &mut self,
        set: usize,
        by: By,
        buffers: &mut WireBuffers,
        pack: &mut PackFn<'_>,
        read: &mut ReadFn<'_>,
    ) -> Result<(), Stopped> {
        let exchange = self.exchange_until_done(set, by, |run, wire| {
            pack((run.slot, run.words.start), wire);
        })?;
        let mut rows = std::mem::take(&mut self.arrived);
        let finished = exchange.finish_rows(self.row, (buffers, &mut rows), read);
        self.arrived = rows;
        self.noted(finished)
    }

    fn start(
        &mut self,
        number: u64,
        set: usize,
        mut buffers: WireBuffers,
        pack: &mut PackFn<'_>,
    ) -> Result<(), Stopped> {
        let call = self.call;
        let step = self.rank.count_step(self.row, CollectiveStep::Exchange(set, By::Phases), call);
        let key = self.key(set, By::Phases);
        let exchange = self.noted(self.rank.exchange(key))?;
        let (row, requests) = (self.row, &self.rank.requests);
        let out = !requests.has_waiting(row, key) && self.noted(exchange.is_ready(row))?;
        if out {
            let fill = |run: &WordRun, wire: &mut [u8]| pack((run.slot, run.words.start), wire);
            self.noted(exchange.start(row, (step, call), fill))?;
            self.rank.made_progress();
        } else {
            buffers.fill(pack);
        }
        requests.push(row, MpiRequest { number, call: (step, call), key, exchange, buffers }, out);
        self.noted(self.rank.progress(1))
    }

    fn test(&mut self, number: u64) -> Result<bool, Stopped> {
        self.test_until(WaitState::Requests, |rank, row| rank.requests.have_arrived(row, number))
    }

    fn wait(&mut self, number: u64) -> Result<(), Stopped> {
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        if rank.requests.have_arrived(row, number) {
            return Ok(());
        }
        self.wait_for(WaitState::Requests, || {
            rank.progress(tries)?;
            Ok(rank.requests.have_arrived(row, number).then_some(()))
        })
    }

    fn take(&mut self, number: u64) -> WireBuffers {
        self.rank.requests.take(self.row, number)
    }

    fn read(&mut self, number: u64, unpack: &mut UnpackFn<'_>) -> Result<WireBuffers, Stopped> {
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        if let Some(before) = number.checked_sub(1) {
            CellPort::wait(self, before)?;
        }
        if !rank.requests.have_arrived(row, number) {
            rank.requests.claim(row);
            self.wait_for(WaitState::Requests, || {
                rank.progress(tries)?;
                Ok(rank.requests.read(row, unpack)?.then_some(()))
            })?;
            return Ok(self.take(number));
        }
        let buffers = self.take(number);
        buffers.unpack_all(unpack);
        Ok(buffers)
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
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        let number = rank.count_step(row, CollectiveStep::Walk(walk.set), self.call);
        let call = (number, self.call);
        let tree = self.noted(rank.tree(walk))?;
        self.noted(tree.start(row, walk.way, call, array.len()))?;
        let key = (walk.set, walk.way == WalkDirection::Down);
        self.wait_for(WaitState::Walk(key), || {
            Ok(tree.poll((row, tries), call, array, combine)?.then_some(()))
        })
    }

    fn start_walk(
        &mut self,
        number: u64,
        walk: &TreeWalk<'_>,
        array: StartedArray,
    ) -> Result<Option<StartedArray>, Stopped> {
        let rank = self.rank;
        let step = rank.count_step(self.row, CollectiveStep::Walk(walk.set), self.call);
        let tree = self.noted(rank.tree(walk))?;
        let key = (walk.set, false);
        let call = (step, self.call);
        rank.walks.push(self.row, WalkRequest { number, call, key, tree, array });
        self.noted(rank.progress(1))?;
        Ok(None)
    }

    fn test_walk(&mut self, number: u64) -> Result<bool, Stopped> {
        self.test_until(WaitState::Walks, |rank, row| rank.walks.are_done(row, number))
    }

    fn wait_walk(&mut self, number: u64) -> Result<(), Stopped> {
        let (rank, row, tries) = (self.rank, self.row, self.tries());
        if rank.walks.are_done(row, number) {
            return Ok(());
        }
        self.wait_for(WaitState::Walks, || {
            rank.progress(tries)?;
            Ok(rank.walks.are_done(row, number).then_some(()))
        })
    }

    fn take_walk(&mut self, number: u64) -> StartedArray {
        self.rank.walks.take(self.row, number)
    }

    unsafe fn send_message(&mut self, target: CellId, words: RawWords) -> Result<(), Stopped> {
        // SAFETY: the caller says that the row can be read.
        let bits = (0..words.words).map(|index| unsafe { words.get(index) }).collect();
        let to = self.rank.message(self.id, target, Direction::Send);
        self.noted(self.rank.messages.send(to, bits))
    }

    unsafe fn receive_message(&mut self, source: CellId, into: RawWords) -> Result<usize, Stopped> {
        let from = self.rank.message(source, self.id, Direction::Receive);
        let what = WaitState::MessageSpec(source);
        let words = self.next_envelope(from, what)?;
        // SAFETY: the caller says that the row can be written.
        self.open(from, words, what, |words| unsafe { into.write_if_fits(words) })
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
        unsafe { self.pass_over_ranks(pass) }
    }

    fn shares_cores(&self) -> bool {
        self.rank.shares_cores.get()
    }

    fn reduce_short(
        &mut self,
        reduction: ShortReduction<'_>,
    ) -> Result<Option<Result<(), OtherArray>>, Stopped> {
        self.reduce_over_tree(reduction)
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

    fn exchange_lists(
        &mut self,
        set: usize,
        lists: &CellLists,
        op: Op,
        vector: VectorMut<'_>,
    ) -> Result<(), Stopped> {
        each_vector!(vector, x => self.exchange_vector(set, lists, op, x))
    }
}
