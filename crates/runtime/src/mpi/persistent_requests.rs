//! The exchange of a set over MPI by persistent requests: what the cells of one rank send and
//! receive in each phase ([`super::message_layout`] determines the messages).
//!
//! Between cells of the same rank there is no message: the target reads the buffer of the source.
//!
//! An exchange of a cell is a state machine that never waits. [`PersistentExchange::start`] packs
//! and starts the sends of the first stage. [`PersistentExchange::poll`] starts those of the next
//! stages and returns whether everything was received. [`PersistentExchange::finish`] passes
//! on the arrived words in the order of connection ids, so that sums do not depend on the order of
//! arrival, and starts the receives of the next exchange immediately: nearly every message then
//! finds its receive posted. Waiting in between is up to the caller.
//!
//! Where cells pass on words, these are copied before a stage from the buffer in which they arrived
//! to the one from which they leave. No wait is in the order of a list, and all receives are started
//! before anything is waited for, so nothing depends on how many words MPI buffers.
//!
//! There is an exchange for each size of words in which a set is exchanged, so that words travel in
//! as many bytes as they have.
//!
//! A message begins with its *head*: the number of the collective call of the source and the mark of
//! its location ([`crate::call`]). A cell compares it with its own before it reads
//! a word, so that words of another call are never accepted. The words are packed anyway, so the
//! head takes no additional copy; 24 bits of the number are sent.
//!
//! The words of a long connection can be a message without a head, its *body*, and the head a message of
//! its own. If the words are in rows, bodies leave from the rows and arrive in them
//! ([`PersistentExchange::start_rows`], [`super::body_messages`]). The next exchange is expected to pass them in
//! the same way: if it has rows although the receives of bodies have been started, these arrive in the
//! buffer once. Heads are compared before an exchange returns: if it fails, words of another call may be in the
//! rows.
//!
//! Short messages may still be on their way when an exchange finishes, because MPI has buffered
//! them. A cell that starts its next exchange waits for these sends
//! ([`PersistentExchange::is_ready`]), and for the targets on its own rank to have read the previous
//! words.

use std::cell::RefCell;
use std::ops::Range;

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionId, Direction, Image};

use super::backoff::{Backoff, Waited};
use super::body_messages::Bodies;
use super::cell_exchange::CellExchange;
use super::comm::Comm;
use super::message_layout::{
    ExchangePlan, HEAD_BYTES, LocalOffsets, LocalSource, Peer, SendClass, TagAllocator, WordRun,
    layout_receives, layout_sends, tagged_bundles,
};
use super::rank_map::RankMap;
use super::raw_requests::PersistentRequests;
use super::run::Rank;
use crate::call::{Call, MARK_BITS, describe_mark};
use crate::error::MpiError;
use crate::port::{ArrivedRows, By, RawWords, ReadFn, WireBuffers};
use crate::word::{Word, copy_bytes};

/// A set exchanged in one way, in words of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExchangeKey {
    pub(super) set: usize,
    pub(super) by: By,
    /// Bytes of a word.
    pub(super) size: usize,
}

/// How far a cell is.
#[derive(Clone, Debug, Default)]
struct ExchangeProgress {
    /// Exchanges started, and exchanges finished.
    begun: u64,
    ended: u64,
    /// The call that started the last one.
    call: Numbered,
    /// By stage: exchanges whose words of that stage were sent.
    sent: Vec<u64>,
    /// The stage under way; number of stages if all are done.
    stage: usize,
    /// How far the receives and the sends have been seen done, in their order.
    received: usize,
    left: usize,
    /// The call has rows, and its bodies arrive there.
    has_rows: bool,
    in_rows: bool,
}

/// A collective call, and its number among those of its cell.
pub(super) type Numbered = (u64, Call);

/// The first word of a message.
fn head((number, call): Numbered) -> u64 {
    number << MARK_BITS | call.mark()
}

/// The exchange of a set, for the cells of one rank.
pub(super) struct PersistentExchange {
    /// What the exchange is called, and the cells of the rank.
    name: String,
    own: Vec<CellId>,
    /// Bytes of a word.
    size: usize,
    cells: Vec<CellExchange>,
    requests: Vec<RefCell<PersistentRequests>>,
    /// By row, the bodies that are under way in rows.
    bodies: Vec<RefCell<Bodies>>,
    progress: RefCell<Vec<ExchangeProgress>>,
    comm: Comm,
}

/// The connections of a cell, ascending.
pub(super) type Connections<'a> = &'a dyn Fn(CellId) -> &'a [ConnectionId];

impl PersistentExchange {
    /// Lays out the exchange of a set for the cells of this rank, given the connections that leave a
    /// cell and those that arrive at it. The image must have been checked: in every phase as many
    /// words of a connection are sent as received
    /// ([`super::message_layout::find_unbalanced`]).
    pub(super) fn new(
        comm: &Comm,
        rank_map: &RankMap,
        tags: &mut TagAllocator,
        (image, ExchangeKey { set, by, size }): (&Image, ExchangeKey),
        (out, inn): (Connections<'_>, Connections<'_>),
    ) -> Result<Self, MpiError> {
        let own = comm.rank();
        let cells = rank_map.cells_of(own);
        let plan = ExchangePlan::new(&image.sets()[set], by, size);
        let (set, stages) = (plan.set(), plan.stages());
        let leaving = tagged_bundles(&plan, rank_map, (own, tags), Direction::Send)?;
        let arriving = tagged_bundles(&plan, rank_map, (own, tags), Direction::Receive)?;
        let mut local = LocalOffsets::new();
        let sends: Vec<_> = cells
            .iter()
            .zip(&leaving)
            .map(|(&cell, bundles)| layout_sends(own, &plan, bundles, out(cell), &mut local))
            .collect();
        let mut exchange = Self {
            name: format!("the exchange of {}", set.name()),
            own: cells.to_vec(),
            size,
            cells: Vec::new(),
            requests: Vec::new(),
            bodies: Vec::new(),
            progress: RefCell::default(),
            comm: comm.clone(),
        };
        for ((&cell, bundles), (sends, departures, targets)) in
            cells.iter().zip(&arriving).zip(sends)
        {
            let (receives, arrivals, sources) =
                layout_receives(own, &plan, bundles, inn(cell), &local);
            let requests = PersistentRequests::new(
                comm,
                size,
                (&receives.messages, receives.room),
                (&sends.messages, sends.room),
                &|at| sends.classes[at] == SendClass::Immediate,
            )?;
            exchange.requests.push(RefCell::new(requests));
            exchange.bodies.push(RefCell::default());
            let whole = |id| index(set.get(id).words);
            let cell = CellExchange::new(
                &plan,
                (sends, departures, targets),
                (receives, arrivals, sources),
                inn(cell).len(),
                whole,
            );
            exchange.cells.push(cell);
            let progress =
                ExchangeProgress { sent: vec![0; stages], ..ExchangeProgress::default() };
            exchange.progress.get_mut().push(progress);
        }
        Ok(exchange)
    }

    /// Whether a cell can start: its last exchange has finished, all its sends are done, and the
    /// targets on its rank have read it.
    pub(super) fn is_ready(&self, row: usize) -> Result<bool, MpiError> {
        let progress = &mut *self.progress.borrow_mut();
        let ExchangeProgress { begun, ended, .. } = progress[row];
        let late = |&target: &usize| progress[target].ended < begun;
        if ended < begun || self.cells[row].targets.iter().any(late) {
            return Ok(false);
        }
        self.have_left(row, &mut progress[row].left)
    }

    /// Whether the sends of a cell are done, the first of which that is not known to be is `left`.
    fn have_left(&self, row: usize, left: &mut usize) -> Result<bool, MpiError> {
        let requests = &mut *self.requests[row].borrow_mut();
        if requests.is_sending() {
            if !requests.test(left, requests.count(), 1)? {
                return Ok(false);
            }
            requests.all_sent();
        }
        Ok(true)
    }

    /// Begins an exchange of a cell that is ready. `fill` is called for every run that leaves, in
    /// buffer order.
    pub(super) fn start(
        &self,
        row: usize,
        call: Numbered,
        fill: impl FnMut(&WordRun, &mut [u8]),
    ) -> Result<(), MpiError> {
        self.start_from(row, call, false, fill)
    }

    /// The same with a row for each connection of the cell that leaves it and for each that arrives.
    ///
    /// # Safety
    /// The rows are as long as the connections. Until [`PersistentExchange::poll`] is done, or the
    /// exchange was abandoned, all can be read, and those that arrive can be written and are not used
    /// otherwise.
    pub(super) unsafe fn start_rows(
        &self,
        row: usize,
        call: Numbered,
        (outgoing, incoming): (&[RawWords], &[RawWords]),
    ) -> Result<(), MpiError> {
        let exchange = &self.cells[row];
        let active = self.requests[row].borrow().receiving();
        // Those whose receives have been started arrive in the buffer.
        let in_rows = active <= self.without_bodies(row);
        if exchange.has_bodies() {
            let bodies = &mut *self.bodies[row].borrow_mut();
            // SAFETY: the promise of the caller.
            unsafe {
                if in_rows {
                    bodies.begin(&self.comm, &exchange.arriving_bodies, incoming)?;
                }
                bodies.begin(&self.comm, &exchange.leaving_bodies, outgoing)?;
            }
        }
        self.progress.borrow_mut()[row].in_rows = in_rows;
        self.start_from(row, call, true, |run, wire| {
            if !run.is_body {
                // SAFETY: the row can be read, and the run is a part of it.
                copy_bytes(wire, unsafe { outgoing[run.slot].bytes(&run.words) });
            }
        })
    }

    /// Begins an exchange whose bodies leave from rows, if it has any, or from the buffer.
    fn start_from(
        &self,
        row: usize,
        call: Numbered,
        has_rows: bool,
        mut fill: impl FnMut(&WordRun, &mut [u8]),
    ) -> Result<(), MpiError> {
        let (exchange, size) = (&self.cells[row], self.size);
        self.post(row, has_rows)?;
        let skipped = if has_rows { exchange.leaving_bodies.len() } else { 0 };
        let requests = &mut *self.requests[row].borrow_mut();
        let buffer = requests.outgoing();
        for &at in &exchange.heads {
            head(call).write_to(&mut buffer[at * size..][..HEAD_BYTES]);
        }
        for run in &exchange.departures {
            fill(run, &mut buffer[run.place(size)]);
        }
        let progress = &mut self.progress.borrow_mut()[row];
        progress.begun += 1;
        (progress.call, progress.has_rows) = (call, has_rows);
        (progress.stage, progress.received, progress.left) = (0, 0, requests.receives());
        if let Some(first) = exchange.stages.first() {
            let Range { start, end } = first.sends;
            requests.start_sends(start + skipped..end, first.immediate)?;
            progress.sent[0] = progress.begun;
        }
        Ok(())
    }

    /// Starts the receives of an exchange that have not been started; those of bodies only if it has no
    /// rows.
    fn post(&self, row: usize, has_rows: bool) -> Result<(), MpiError> {
        let requests = &mut *self.requests[row].borrow_mut();
        let active = requests.receiving();
        let end = if has_rows { self.without_bodies(row) } else { requests.receives() };
        requests.start(active..end.max(active))
    }

    /// Number of receives that are not of bodies.
    fn without_bodies(&self, row: usize) -> usize {
        self.cells[row].arriving_heads.len()
    }

    /// Whether the bodies of a cell's exchange, which has rows, arrive there.
    pub(super) fn is_in_rows(&self, row: usize) -> bool {
        self.progress.borrow()[row].in_rows
    }

    /// Goes on with a cell's exchange as far as it can at once; whether everything was received, and
    /// everything sent but for short messages that MPI has. The persistent requests of bodies that are in
    /// rows are inactive, and count as done.
    pub(super) fn poll(&self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let exchange = &self.cells[row];
        let requests = &mut *self.requests[row].borrow_mut();
        let all = &mut *self.progress.borrow_mut();
        let begun = all[row].begun;
        while let Some(stage) = exchange.stages.get(all[row].stage) {
            let own = &mut all[row];
            let done = requests.test(&mut own.received, stage.receives, tries)?
                && requests.test(&mut own.left, stage.urgent, tries)?
                && (!exchange.has_bodies() || self.bodies[row].borrow_mut().test(tries)?);
            let at = own.stage;
            if !done || stage.sources.iter().any(|source| all[source.row].sent[at] < begun) {
                return Ok(false);
            }
            let own = &mut all[row];
            own.stage += 1;
            if let Some(next) = exchange.stages.get(at + 1) {
                self.pass_on((row, at + 1), requests);
                requests.start_sends(next.sends.clone(), next.immediate)?;
                all[row].sent[at + 1] = begun;
            }
        }
        requests.received_all();
        Ok(true)
    }

    /// Copies the words that leave a cell in a stage and have arrived before.
    fn pass_on(&self, (row, stage): (usize, usize), requests: &mut PersistentRequests) {
        let passed = self.cells[row].passed.get(stage);
        for run in passed.into_iter().flatten() {
            match run.from.filter(|&source| source != row) {
                None => requests.pass_on(&run.at, run.to),
                Some(source) => {
                    requests.pass_on_from(&self.requests[source].borrow(), &run.at, run.to);
                }
            }
        }
    }

    /// Ends an exchange of a cell whose [`PersistentExchange::poll`] is done: `read` is called for every run
    /// that has arrived, by connection and first word.
    pub(super) fn finish(
        &self,
        row: usize,
        read: impl FnMut(&WordRun, &[u8]),
    ) -> Result<(), MpiError> {
        self.read(row, read)?;
        self.end(row)
    }

    /// [`PersistentExchange::finish`], with all connections at once. Where one is not in one piece,
    /// all are copied to the buffers. `rows` is kept for its memory.
    pub(super) fn finish_rows(
        &self,
        row: usize,
        (buffers, rows): (&mut WireBuffers, &mut Vec<RawWords>),
        read: &mut ReadFn<'_>,
    ) -> Result<(), MpiError> {
        let (exchange, size) = (&self.cells[row], self.size);
        rows.clear();
        if exchange.whole {
            rows.resize(exchange.incoming, RawWords { size, ..RawWords::of::<u64>(&[]) });
            self.read(row, |run, wire| {
                let (pointer, words) = (wire.as_ptr().cast_mut(), run.words.len());
                rows[run.slot] = RawWords { pointer, words, size };
            })?;
        } else {
            self.read(row, |run, wire| {
                copy_bytes(&mut buffers.incoming.row_mut(run.slot)[run.bytes(size)], wire);
            })?;
            rows.extend(buffers.incoming.raw());
        }
        // SAFETY: the rows are in the buffers of the requests of this rank, none of which is started
        // before `read` returns, or in those of the caller.
        read(&unsafe { ArrivedRows::new(rows) });
        rows.clear();
        self.end(row)
    }

    fn read(&self, row: usize, mut read: impl FnMut(&WordRun, &[u8])) -> Result<(), MpiError> {
        let own = self.requests[row].borrow();
        let arrived = own.incoming();
        self.check_heads(row, arrived)?;
        for run in &self.cells[row].arrivals {
            match run.from {
                None => read(run, &arrived[run.place(self.size)]),
                Some(source) => {
                    read(run, &self.requests[source].borrow().sent()[run.place(self.size)]);
                }
            }
        }
        Ok(())
    }

    fn end(&self, row: usize) -> Result<(), MpiError> {
        let progress = &mut self.progress.borrow_mut()[row];
        progress.ended = progress.begun;
        self.post(row, progress.has_rows)
    }

    /// Forgets the bodies of a cell whose exchange is done, or was never begun. Ends the job if some
    /// are under way.
    pub(super) fn clear_bodies(&self, row: usize) {
        self.bodies[row].borrow_mut().clear();
    }

    /// The run has failed during an exchange of a cell: no words of its program are under way any more.
    pub(super) fn abandon(&self, row: usize, rank: &Rank<'_>) {
        self.bodies[row].borrow_mut().abandon(rank);
    }

    /// What has arrived must be of the call that this cell makes. A source on the same rank has
    /// started no other since: it waits for its readers.
    fn check_heads(&self, row: usize, arrived: &[u8]) -> Result<(), MpiError> {
        let (exchange, progress) = (&self.cells[row], self.progress.borrow());
        let call = progress[row].call;
        let word = |at: usize| u64::read_from(&arrived[at * self.size..][..HEAD_BYTES]);
        let remote = exchange.arriving_heads.iter().map(|&(at, source)| (word(at), source));
        let sources = exchange.stages.iter().flat_map(|stage| &stage.sources);
        let local =
            sources.map(|&LocalSource { row, .. }| (head(progress[row].call), self.own[row]));
        match remote.chain(local).find(|other| other.0 != head(call)) {
            None => Ok(()),
            Some(other) => Err(self.other_call(row, call, other)),
        }
    }

    #[cold]
    fn other_call(&self, row: usize, (number, call): Numbered, other: (u64, CellId)) -> MpiError {
        let (found, source) = other;
        // The number nearest to the own one that has these lower bits.
        let apart =
            ((found >> MARK_BITS).wrapping_sub(number) << MARK_BITS).cast_signed() >> MARK_BITS;
        let other_number = number.wrapping_add_signed(apart);
        let own = call.describe(self.own[row], number, self.name.clone());
        let mark = found & ((1 << MARK_BITS) - 1);
        let other = describe_mark(source, other_number, self.name.clone(), mark);
        MpiError::Mismatch {
            calls: Box::new(if source < self.own[row] { [other, own] } else { [own, other] }),
        }
    }

    /// The run has ended: waits for sends in progress, and cancels the
    /// receives. What cannot be ended is left to MPI.
    pub(super) fn close(&self, backoff: &mut Backoff) -> Result<(), MpiError> {
        for (row, progress) in self.progress.borrow_mut().iter_mut().enumerate() {
            while !self.have_left(row, &mut progress.left)?
                && !matches!(backoff.wait(), Waited::TimedOut(_))
            {}
            // Those of an exchange that has not finished are done up to some.
            let done = if progress.ended < progress.begun { progress.received } else { 0 };
            self.requests[row].borrow_mut().cancel(done)?;
        }
        Ok(())
    }

    /// Whom a cell waits for in its exchange, the first phase first.
    pub(super) fn awaited(&self, row: usize, cells: &[CellId]) -> Vec<Peer> {
        let exchange = &self.cells[row];
        let progress = self.progress.borrow();
        let ExchangeProgress { begun, stage: at, received, left, .. } = progress[row];
        let Some(stage) = exchange.stages.get(at) else { return Vec::new() };
        let requests = self.requests[row].borrow();
        let open = requests.unfinished(received..stage.receives.max(received)).into_iter();
        let open = open.chain(requests.unfinished(left..stage.urgent.max(left)));
        let mut awaited: Vec<Peer> = open.map(|at| exchange.ends[at]).collect();
        awaited.extend(self.bodies[row].borrow().awaited());
        let late = stage.sources.iter().filter(|source| progress[source.row].sent[at] < begun);
        awaited.extend(late.map(|source| Peer {
            direction: Direction::Receive,
            cell: cells[source.row],
            phase: source.phase,
            stage: at,
        }));
        awaited.sort_by_key(|one| one.phase);
        awaited
    }

    /// The cells that have not taken what a cell sent them in its last exchange.
    pub(super) fn readers(&self, row: usize, cells: &[CellId]) -> Vec<CellId> {
        let requests = self.requests[row].borrow();
        let sends = requests.unfinished(requests.receives()..requests.count()).into_iter();
        let remote = sends.map(|at| self.cells[row].ends[at].cell);
        let progress = self.progress.borrow();
        let begun = progress[row].begun;
        let late = self.cells[row].targets.iter().filter(|&&target| progress[target].ended < begun);
        late.map(|&target| cells[target]).chain(remote).collect()
    }
}
