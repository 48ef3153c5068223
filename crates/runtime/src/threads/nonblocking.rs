//! Nonblocking exchanges on threads: outgoing words are published at the start, and targets read
//! them whenever they make a call.
//!
//! A *request* is such an exchange of one cell, from its start until its buffers are returned.
//! [`CellPort::start`] is a step like every collective call: the cell arrives, *publishes* its
//! outgoing words (module `published_buffers`) and the step. From then on its targets can read,
//! whatever the cell does. A cell that completes its oldest request reads in place; otherwise
//! incoming words are copied when the cell tests, waits for anything else, or starts so many
//! exchanges that it must wait.
//!
//! # Order
//!
//! A request has *arrived* when it and all before it were read, so the arrived requests are the
//! oldest of a cell. Sources are read in any order, as soon as they have published. A cell is done
//! with a step (`SharedState::done`) only when it has read everything up to that step.
//!
//! # When a start waits
//!
//! Usually it does not. It waits if a cell is too far ahead of others: 64 steps ([`WINDOW`]) before
//! the last cell, or before the last reader of its published words; or if [`MAX_UNRETURNED`]
//! completed exchanges of the set are still being read. *A cell that waits has read first*: before
//! a start waits for others, it waits for all requests of its own. So no two cells wait for each
//! other: among those that wait in a start or for a request, consider the one at the least step. If
//! it waits for words, their source is at no lesser step and has published them. If it waits for
//! readers, these are at no lesser step, and are reading or have read.
//!
//! # Memory
//!
//! Completing an exchange returns its buffers at once. If the outgoing ones are still being read,
//! it returns others of the same sizes: those of an earlier exchange that has been read in the
//! meantime, or new ones. There are as many buffers as requests at a time, and at most
//! [`MAX_UNRETURNED`] + 1 more for each set and cell.
//!
//! # Why reading published words is sound
//!
//! * *The memory is valid.* It belongs to the shared state, which outlives all cells, and stays
//!   where it is until the owner takes it back.
//! * *It belongs to the step.* Both cells have compared their call with the same entry of the log,
//!   so the source has published the buffers of this set, one for each connection, before it
//!   published the step. The reader knows the row of the connection among them.
//! * *Nobody writes what is read.* The owner takes the buffers back, to pack them again, only after
//!   each target of the set is done with the step; a target is done only after its last read. A
//!   place is filled again 64 steps later, after that. This holds when a run ends early, too: none
//!   of these rules depends on the acknowledgement of a shutdown.

use std::collections::VecDeque;

use conset_ir::ConnectionId;
use conset_ir::convert::{index, to_u32};

use super::port::ThreadPort;
use super::published_buffers::Outgoing;
use super::shared_state::SharedState;
use super::worker::{WaitCondition, WaitReason};
use crate::call::Collective;
use crate::executor::Resume;
use crate::port::{Stopped, UnpackFn, WireBuffers, WireRows};
use crate::sync::WINDOW;
use crate::word::copy_bytes;

/// Exchanges of a set that a cell may have ended while they are still being read.
const MAX_UNRETURNED: usize = 3;

/// The nonblocking exchanges of a cell.
#[derive(Debug, Default)]
pub(super) struct NonblockingState {
    /// Those not taken back, in the order in which they were started.
    requests: VecDeque<ThreadRequest>,
    /// So many of them, the first ones, have arrived.
    arrived: usize,
    /// Published buffers that were not taken back, in the order of steps.
    unreturned: VecDeque<PublishedExchange>,
    /// Buffers that no cell reads, by set.
    spare: Vec<Vec<Outgoing>>,
    /// Lists kept for their memory.
    lists: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct ThreadRequest {
    number: u64,
    step: u64,
    set: usize,
    incoming: WireRows,
    /// Rows of `incoming` that have not been read.
    unread: Vec<u32>,
    /// The set of the phase that the start left, and how often it was left: its words are still to be counted.
    left: Option<(usize, u32)>,
    /// What went out, if it was taken back.
    outgoing: Option<Outgoing>,
}

/// What goes out of a request.
#[derive(Clone, Copy, Debug)]
struct PublishedExchange {
    number: u64,
    step: u64,
    set: usize,
    /// The request was ended.
    ended: bool,
}

impl NonblockingState {
    /// The row of a request.
    fn find(&self, number: u64) -> Option<usize> {
        self.requests.binary_search_by_key(&number, |request| request.number).ok()
    }

    /// Whether a request, and all before it, have been read.
    fn has_arrived(&self, number: u64) -> bool {
        self.requests.get(self.arrived).is_none_or(|first| first.number > number)
    }
}

impl<'b> ThreadPort<'_, 'b> {
    /// [`crate::port::CellPort::start`].
    pub(super) fn start_request(
        &mut self,
        number: u64,
        set: usize,
        buffers: WireBuffers,
    ) -> Result<(), Stopped> {
        self.check()?;
        self.make_room(set)?;
        let left = self.instantiated.take().map(|set| (set, self.count_sent(set)));
        self.arrive_at(Collective::Nonblocking(set))?;
        self.order_done(set);
        let WireBuffers { outgoing, incoming } = buffers;
        // SAFETY: the place is the cell's own. What was in it before was taken back, as there is
        // room. The step is published below.
        unsafe { self.state.buffers[self.id.index()].put(self.step, outgoing) };
        self.publish();
        let mut unread = self.nonblocking.lists.pop().unwrap_or_default();
        let rows = (0u32..).zip(incoming.iter()).filter(|(_, words)| !words.is_empty());
        unread.extend(rows.map(|(row, _)| row));
        let step = self.step;
        self.nonblocking.unreturned.push_back(PublishedExchange {
            number,
            step,
            set,
            ended: false,
        });
        let outgoing = None;
        let request = ThreadRequest { number, step, set, incoming, unread, left, outgoing };
        self.nonblocking.requests.push_back(request);
        Ok(())
    }

    /// [`crate::port::CellPort::test`]: reads what is there, and lets others go on if that is not all.
    pub(super) fn test_request(&mut self, number: u64) -> Result<bool, Stopped> {
        if self.state.shutdown.has_started() {
            return Err(Stopped);
        }
        self.state.activity[self.worker.number].0.test();
        self.read_what_is_there()?;
        if self.nonblocking.has_arrived(number) {
            return Ok(true);
        }
        let condition = WaitCondition { asks: true, ..self.missing(self.nonblocking.arrived) };
        match self.yielder.suspend(condition) {
            Resume::Continue => self.read_what_is_there()?,
            Resume::Abort => return Err(Stopped),
        }
        Ok(self.nonblocking.has_arrived(number))
    }

    /// [`crate::port::CellPort::wait`]: reads all requests up to this one.
    pub(super) fn read_requests(&mut self, last: u64) -> Result<(), Stopped> {
        while !self.nonblocking.has_arrived(last) {
            let row = self.nonblocking.arrived;
            while !self.read(row)? {
                let WaitCondition { counter, value, reason, .. } = self.missing(row);
                self.wait_for(counter, value, reason)?;
            }
            self.arrived();
        }
        Ok(())
    }

    /// [`crate::port::CellPort::read`]: words that were not copied are read in place.
    pub(super) fn read_in_place(
        &mut self,
        number: u64,
        unpack: &mut UnpackFn<'_>,
    ) -> Result<WireBuffers, Stopped> {
        if let Some(before) = number.checked_sub(1) {
            self.read_requests(before)?;
        }
        let at = self.nonblocking.find(number).expect("the exchange has been nonblocking");
        let (state, id) = (self.state, self.id);
        let ThreadRequest { step, set, .. } = self.nonblocking.requests[at];
        for (row, &connection) in state.loaded.sets[set].incoming.of(id).iter().enumerate() {
            let request = &self.nonblocking.requests[at];
            if request.unread.binary_search(&to_u32(row)).is_err() {
                unpack((row, 0), request.incoming.row(row));
                continue;
            }
            let source = state.loaded.set(set).get(connection).source;
            let published = &state.published[source.index()].0;
            self.wait_for(published, step, WaitReason::Rows(set, connection))?;
            // SAFETY: as in `read`.
            let words = unsafe { published_words(state, (step, set), connection) };
            unpack((row, 0), words);
            self.worker.moved(words.len() / self.nonblocking.requests[at].incoming.size());
        }
        self.nonblocking.requests[at].unread.clear();
        self.read_requests(number)?;
        Ok(self.take_request(number))
    }

    /// Reads all requests. To be called before anything waits for other cells.
    pub(super) fn read_in(&mut self) -> Result<(), Stopped> {
        match self.nonblocking.requests.back().map(|request| request.number) {
            Some(last) => self.read_requests(last),
            None => Ok(()),
        }
    }

    /// [`crate::port::CellPort::take`].
    pub(super) fn take_request(&mut self, number: u64) -> WireBuffers {
        let row = self.nonblocking.find(number).expect("the exchange has been nonblocking");
        let ThreadRequest { set, incoming, outgoing, unread, .. } =
            self.nonblocking.requests.remove(row).expect("it was found");
        self.nonblocking.arrived -= 1;
        self.nonblocking.lists.push(unread);
        for published in
            self.nonblocking.unreturned.iter_mut().filter(|published| published.number == number)
        {
            published.ended = true;
        }
        let outgoing = outgoing.unwrap_or_else(|| self.outgoing_of(set, incoming.size()));
        WireBuffers { outgoing, incoming }
    }

    /// The first of the requests that have not arrived was read.
    fn arrived(&mut self) {
        let request = &self.nonblocking.requests[self.nonblocking.arrived];
        self.state.done[self.id.index()].0.publish(request.step);
        self.nonblocking.arrived += 1;
    }

    /// Reads of all requests what can be read without waiting.
    fn read_what_is_there(&mut self) -> Result<(), Stopped> {
        for row in self.nonblocking.arrived..self.nonblocking.requests.len() {
            if self.read(row)? && row == self.nonblocking.arrived {
                self.arrived();
            }
        }
        Ok(())
    }

    /// Reads of a request what can be read without waiting; whether that is all.
    fn read(&mut self, row: usize) -> Result<bool, Stopped> {
        let (state, id) = (self.state, self.id);
        let ThreadRequest { step, set, incoming, unread, left, .. } =
            &mut self.nonblocking.requests[row];
        let (step, set) = (*step, *set);
        unread.retain(|&row| {
            let connection = state.loaded.sets[set].incoming.of(id)[index(row)];
            let source = state.loaded.set(set).get(connection).source;
            if !state.published[source.index()].0.has_reached(step) {
                return true;
            }
            // SAFETY: the source has published the step, at which it publishes its outgoing words, as this
            // cell does. This cell is done with the step when all is read (`arrived`).
            let words = unsafe { published_words(state, (step, set), connection) };
            copy_bytes(incoming.row_mut(index(row)), words);
            self.worker.moved(words.len() / incoming.size());
            false
        });
        let Some((phase_of, times)) = *left else { return Ok(unread.is_empty()) };
        if state.arrived.iter().any(|arrived| !arrived.0.has_reached(step)) {
            return Ok(false);
        }
        *left = None;
        let all = unread.is_empty();
        self.count_received(phase_of, times)?;
        Ok(all)
    }

    /// What a request that is not read waits for.
    fn missing(&self, row: usize) -> WaitCondition<'b> {
        let (state, request) = (self.state, &self.nonblocking.requests[row]);
        let (value, asks) = (request.step, false);
        if let Some(&row) = request.unread.first() {
            let connection = state.loaded.sets[request.set].incoming.of(self.id)[index(row)];
            let source = state.loaded.set(request.set).get(connection).source;
            let counter = &state.published[source.index()].0;
            return WaitCondition {
                counter,
                value,
                reason: WaitReason::Rows(request.set, connection),
                asks,
            };
        }
        let late = state.arrived.iter().find(|arrived| !arrived.0.has_reached(value));
        let counter = &late.unwrap_or(&state.arrived[0]).0;
        WaitCondition { counter, value, reason: WaitReason::Arrival(value), asks }
    }

    /// Waits until another exchange of the set can be started.
    fn make_room(&mut self, set: usize) -> Result<(), Stopped> {
        let next = self.step + 1;
        while self
            .nonblocking
            .unreturned
            .front()
            .is_some_and(|published| published.step + WINDOW <= next)
        {
            self.recall(0)?;
        }
        let kept = |published: &PublishedExchange| published.ended && published.set == set;
        while self.nonblocking.unreturned.iter().filter(|published| kept(published)).count()
            > MAX_UNRETURNED
        {
            let first = self.nonblocking.unreturned.iter().position(kept).expect("there are some");
            self.recall(first)?;
        }
        Ok(())
    }

    /// Takes back published buffers as soon as they are read.
    fn recall(&mut self, row: usize) -> Result<(), Stopped> {
        let published = self.nonblocking.unreturned[row];
        if self.reader_of(published).is_some() {
            self.read_in()?;
        }
        while let Some((connection, target)) = self.reader_of(published) {
            let done = &self.state.done[target].0;
            self.wait_for(done, published.step, WaitReason::Readers(published.set, connection))?;
        }
        let outgoing = self.take_back(row);
        match self.nonblocking.find(published.number) {
            Some(request) => self.nonblocking.requests[request].outgoing = Some(outgoing),
            None => self.spare(published.set).push(outgoing),
        }
        Ok(())
    }

    /// A connection, and the cell at its end, of which the words are still to be read.
    fn reader_of(&self, published: PublishedExchange) -> Option<(ConnectionId, usize)> {
        let (state, connections) = (self.state, self.state.loaded.set(published.set));
        state.loaded.sets[published.set].outgoing.of(self.id).iter().find_map(|&connection| {
            let ends = connections.get(connection);
            let target = ends.target.index();
            let reads = ends.words > 0 && !state.done[target].0.has_reached(published.step);
            reads.then_some((connection, target))
        })
    }

    /// Takes back published buffers that are read.
    fn take_back(&mut self, row: usize) -> Outgoing {
        let published = self.nonblocking.unreturned.remove(row).expect("there is such a published");
        // SAFETY: the place is the cell's own, and all targets are done with the step: whoever
        // calls this has asked `reader_of`.
        unsafe { self.state.buffers[self.id.index()].take(published.step) }
    }

    fn spare(&mut self, set: usize) -> &mut Vec<Outgoing> {
        let spare = &mut self.nonblocking.spare;
        if spare.len() <= set {
            spare.resize_with(set + 1, Vec::new);
        }
        &mut spare[set]
    }

    /// Buffers for the outgoing words of a set, of so many bytes each, that no cell reads.
    fn outgoing_of(&mut self, set: usize, size: usize) -> Outgoing {
        let kept = |published: &PublishedExchange| {
            published.ended && published.set == set && self.reader_of(*published).is_none()
        };
        let read = match self.nonblocking.unreturned.iter().position(kept) {
            Some(row) => Some(self.take_back(row)),
            None => self.spare(set).pop(),
        };
        if let Some(mut outgoing) = read {
            outgoing.set_size(size);
            return outgoing;
        }
        let connections = self.state.loaded.set(set);
        let words = |&x: &ConnectionId| index(connections.get(x).words);
        Outgoing::new(self.state.loaded.sets[set].outgoing.of(self.id).iter().map(words), size)
    }
}

/// The words of a connection that its source published at a step, at which this set is exchanged.
///
/// # Safety
/// As [`super::published_buffers::PublishedBuffers::row`]; the step is that of an exchange of the set at the source as well.
unsafe fn published_words<'b>(
    state: &'b SharedState<'_>,
    (step, set): (u64, usize),
    connection: ConnectionId,
) -> &'b [u8] {
    let source = state.loaded.set(set).get(connection).source;
    let row = state.loaded.sets[set].outgoing.of(source).binary_search(&connection);
    // SAFETY: the promise of the caller.
    unsafe { state.buffers[source.index()].row(step, row.expect("the source is its end")) }
}
