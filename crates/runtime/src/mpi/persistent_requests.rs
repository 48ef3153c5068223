//! The exchange of a set over MPI by persistent requests: what the cells of one rank send and
//! receive in each phase ([`super::message_layout`] determines the messages).
//!
//! Between cells of the same rank there is no message: the target reads the buffer of the source.
//!
//! An exchange of a cell is a state machine that never waits. [`PersistentExchange::start`] packs
//! and starts the sends of the first phase. [`PersistentExchange::poll`] starts those of the next
//! phases and returns whether everything was received. [`PersistentExchange::finish`] passes on the
//! arrived words in the order of connection ids, so that sums do not depend on the order of
//! arrival, and starts the receives of the next exchange immediately: nearly every message then
//! finds its receive posted. Waiting in between is up to the caller.
//!
//! The phases of a cell follow each other in the compiled order. All receives are started in
//! advance, so the sends of a phase can start when those of the previous phase have started, except
//! that long ones, for which MPI needs both ends, must be complete first. Only in a set with an
//! order, where a connection may not start before another has been received, a phase waits for all
//! sends and receives of the previous one.
//!
//! The phases of a step plan are its stages. If cells pass on words in it, a phase waits in the same
//! way, and these words are copied from the buffer in which they arrived to the one from which they
//! leave. No wait is in the order of a list, and all receives are started in advance, so nothing
//! depends on how many words MPI buffers.
//!
//! The first word of a message, its *head*, holds the number of the collective call of the source
//! and the mark of its location ([`crate::call`]). A cell compares it with its own before it reads
//! a word, so that words of another call are never accepted. The words are packed anyway, so the
//! head takes no additional copy; 24 bits of the number are sent.
//!
//! Short messages may still be in transit when an exchange finishes, because MPI has buffered them.
//! A cell that starts its next exchange waits for these sends ([`PersistentExchange::is_ready`]),
//! and for the targets on its own rank to have read the previous words.

use std::cell::RefCell;
use std::ops::Range;

use conset_ir::{CellId, ConnectionId, Direction, Image, PhaseId};

use super::backoff::Backoff;
use super::comm::Comm;
use super::message_layout::{
    ExchangePlan, LocalOffsets, Messages, PassedRun, Peer, TagAllocator, WordRun, layout_receives,
    layout_sends, pass_on, tagged_bundles,
};
use super::rank_map::RankMap;
use super::raw_requests::PersistentRequests;
use crate::call::{Call, MARK_BITS, describe_mark};
use crate::error::MpiError;
use crate::port::By;

/// A phase of one cell.
struct CellPhase {
    /// Its sends among the requests; those up to `urgent` must be done before the next phase.
    sends: Range<usize>,
    urgent: usize,
    /// Where the receives end, counted from the first phase on, that must be done before it.
    receives: usize,
    /// Rows of the sources on this rank.
    sources: Vec<usize>,
}

/// The wires of one cell.
struct CellExchange {
    phases: Vec<CellPhase>,
    /// What each request is for: receives first, then sends.
    ends: Vec<Peer>,
    /// Rows of the targets on this rank.
    targets: Vec<usize>,
    /// In buffer order, and by connection and first word.
    departures: Vec<WordRun>,
    arrivals: Vec<WordRun>,
    /// By phase, the words to be copied before its sends; no phases if the cell passes on nothing.
    passed: Vec<Vec<PassedRun>>,
    /// Where the heads of messages are: to be sent, and that arrive, with their sources.
    heads: Vec<usize>,
    arriving_heads: Vec<(usize, CellId)>,
}

/// How far a cell is.
#[derive(Clone, Debug, Default)]
struct ExchangeProgress {
    /// Exchanges started, and exchanges finished.
    begun: u64,
    ended: u64,
    /// The call that started the last one.
    call: Numbered,
    /// By phase: exchanges whose words of that phase were sent.
    sent: Vec<u64>,
    /// The phase under way; number of phases if all are done.
    phase: usize,
    /// How far the receives and the sends have been seen done, in their order.
    received: usize,
    left: usize,
}

/// A collective call, and its number among those of its cell.
pub(super) type Numbered = (u64, Call);

/// The first word of a message.
fn head((number, call): Numbered) -> u64 {
    number << MARK_BITS | call.mark()
}

/// The wires of a set, for the cells of one rank.
pub(super) struct PersistentExchange {
    /// What the exchange is called, and the cells of the rank.
    name: String,
    own: Vec<CellId>,
    cells: Vec<CellExchange>,
    requests: Vec<RefCell<PersistentRequests>>,
    progress: RefCell<Vec<ExchangeProgress>>,
    /// A phase waits for all that is received in the one before.
    strict: bool,
}

/// The connections of a cell, ascending.
pub(super) type Connections<'a> = &'a dyn Fn(CellId) -> &'a [ConnectionId];

impl PersistentExchange {
    /// Lays the wires of a set for the cells of this rank, given the connections that leave a
    /// cell and those that arrive at it. The image must have been checked: in every phase as many
    /// words of a connection are sent as received ([`unsound`]).
    pub(super) fn new(
        comm: &Comm,
        rank_map: &RankMap,
        tags: &mut TagAllocator,
        what: (&Image, usize, By),
        (out, inn): (Connections<'_>, Connections<'_>),
    ) -> Result<Self, MpiError> {
        let own = comm.rank();
        let cells = rank_map.cells_of(own);
        let plan = ExchangePlan::new(&what.0.sets()[what.1], what.2);
        let (set, phases, strict) = (plan.set(), plan.phases(), plan.is_strict());
        let leaving = tagged_bundles(&plan, rank_map, (own, tags), Direction::Send)?;
        let arriving = tagged_bundles(&plan, rank_map, (own, tags), Direction::Receive)?;
        let mut local = LocalOffsets::new();
        let sends: Vec<_> = cells
            .iter()
            .zip(&leaving)
            .map(|(&cell, bundles)| layout_sends(own, bundles, out(cell), &mut local))
            .collect();
        let (requests, progress) = (Vec::new(), RefCell::default());
        let mut exchange = Self {
            name: format!("the exchange of {}", set.name()),
            own: cells.to_vec(),
            cells: Vec::new(),
            requests,
            progress,
            strict,
        };
        for ((&cell, bundles), (sends, departures, targets)) in
            cells.iter().zip(&arriving).zip(sends)
        {
            let (receives, arrivals, sources) =
                layout_receives(own, phases, bundles, inn(cell), &local);
            let requests = PersistentRequests::new(
                comm,
                (&receives.messages, receives.room),
                (&sends.messages, sends.room),
            )?;
            exchange.requests.push(RefCell::new(requests));
            let (departures, arrivals, passed) = match plan.passes_on() {
                true => pass_on(phases, departures, arrivals),
                false => (departures, arrivals, Vec::new()),
            };
            exchange.cells.push(CellExchange {
                phases: cell_phases(strict, &receives, &sends, sources),
                ends: receives.ends.iter().chain(&sends.ends).copied().collect(),
                targets,
                departures,
                arrivals,
                passed,
                heads: sends.heads.iter().map(|head| head.0).collect(),
                arriving_heads: receives.heads,
            });
            let progress =
                ExchangeProgress { sent: vec![0; phases], ..ExchangeProgress::default() };
            exchange.progress.get_mut().push(progress);
        }
        Ok(exchange)
    }

    /// Whether a cell can start: its last exchange has finished, all its sends are done, and the
    /// targets on its rank have read it.
    pub(super) fn is_ready(&self, row: usize) -> Result<bool, MpiError> {
        let ExchangeProgress { begun, ended, .. } = self.progress.borrow()[row];
        if ended < begun || self.has_late_readers(row) {
            return Ok(false);
        }
        self.have_left(row)
    }

    /// Whether the sends of a cell, the exchange of which has ended, are done.
    fn have_left(&self, row: usize) -> Result<bool, MpiError> {
        let requests = &mut *self.requests[row].borrow_mut();
        if !requests.is_sending() {
            return Ok(true);
        }
        let left = &mut self.progress.borrow_mut()[row].left;
        let done = requests.test(left, requests.count(), 1)?;
        if done {
            requests.sent_all();
        }
        Ok(done)
    }

    /// Whether cells on this rank have not read what a cell sent them last.
    fn has_late_readers(&self, row: usize) -> bool {
        let progress = self.progress.borrow();
        let begun = progress[row].begun;
        self.cells[row].targets.iter().any(|&target| progress[target].ended < begun)
    }

    /// Begins an exchange of a cell that is ready. `fill` is called for every run that leaves, in
    /// buffer order.
    pub(super) fn start(
        &self,
        row: usize,
        call: Numbered,
        mut fill: impl FnMut(&WordRun, &mut [u64]),
    ) -> Result<(), MpiError> {
        let exchange = &self.cells[row];
        let requests = &mut *self.requests[row].borrow_mut();
        if !requests.is_receiving() {
            requests.start(0..requests.receives())?;
        }
        let buffer = requests.outgoing();
        exchange.heads.iter().for_each(|&at| buffer[at] = head(call));
        for run in &exchange.departures {
            fill(run, &mut buffer[run.at..run.at + run.words.len()]);
        }
        let progress = &mut self.progress.borrow_mut()[row];
        progress.begun += 1;
        progress.call = call;
        (progress.phase, progress.received, progress.left) = (0, 0, 0);
        if let Some(first) = exchange.phases.first() {
            requests.start(first.sends.clone())?;
            progress.sent[0] = progress.begun;
        }
        Ok(())
    }

    /// Goes on with a cell's exchange as far as it can at once; whether everything was received,
    /// and everything sent but for short messages that MPI has.
    pub(super) fn poll(&self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let exchange = &self.cells[row];
        let requests = &mut *self.requests[row].borrow_mut();
        let all = &mut *self.progress.borrow_mut();
        let begun = all[row].begun;
        let here = |all: &[ExchangeProgress], phase: usize| {
            exchange.phases[phase].sources.iter().all(|&source| all[source].sent[phase] >= begun)
        };
        while let Some(phase) = exchange.phases.get(all[row].phase) {
            let own = &mut all[row];
            own.left = own.left.max(phase.sends.start);
            let done = requests.test(&mut own.left, phase.urgent, tries)?
                && requests.test(&mut own.received, phase.receives, tries)?;
            if !done || self.strict && !here(all, all[row].phase) {
                return Ok(false);
            }
            let own = &mut all[row];
            own.phase += 1;
            if let Some(next) = exchange.phases.get(own.phase) {
                self.pass_on((row, own.phase), requests);
                requests.start(next.sends.clone())?;
                own.sent[own.phase] = begun;
            }
        }
        let done = requests.test(&mut all[row].received, requests.receives(), tries)?;
        if !done || !(0..exchange.phases.len()).all(|phase| here(all, phase)) {
            return Ok(false);
        }
        requests.received_all();
        all[row].left = requests.receives();
        Ok(true)
    }

    /// Copies the words that leave a cell in a phase and have arrived before.
    fn pass_on(&self, (row, phase): (usize, usize), requests: &mut PersistentRequests) {
        let passed = self.cells[row].passed.get(phase);
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
        mut read: impl FnMut(&WordRun, &[u64]),
    ) -> Result<(), MpiError> {
        let own = self.requests[row].borrow();
        let arrived = own.incoming();
        self.check_heads(row, arrived)?;
        for run in &self.cells[row].arrivals {
            let words = run.at..run.at + run.words.len();
            match run.from {
                None => read(run, &arrived[words]),
                Some(source) => read(run, &self.requests[source].borrow().sent()[words]),
            }
        }
        drop(own);
        let progress = &mut self.progress.borrow_mut()[row];
        progress.ended = progress.begun;
        let requests = &mut *self.requests[row].borrow_mut();
        requests.start(0..requests.receives())
    }

    /// What has arrived must be of the call that this cell makes. A source on the same rank has
    /// started no other since: it waits for its readers.
    fn check_heads(&self, row: usize, arrived: &[u64]) -> Result<(), MpiError> {
        let (exchange, progress) = (&self.cells[row], self.progress.borrow());
        let call = progress[row].call;
        let remote = exchange.arriving_heads.iter().map(|&(at, source)| (arrived[at], source));
        let rows = exchange.phases.iter().flat_map(|phase| &phase.sources);
        let local = rows.map(|&source| (head(progress[source].call), self.own[source]));
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
        for (row, requests) in self.requests.iter().enumerate() {
            while !self.have_left(row)? && backoff.wait().is_ok() {}
            requests.borrow_mut().cancel()?;
        }
        Ok(())
    }

    /// Whom a cell waits for in its exchange, the first phase first.
    pub(super) fn awaited(&self, row: usize, cells: &[CellId]) -> Vec<Peer> {
        let exchange = &self.cells[row];
        let progress = self.progress.borrow();
        let ExchangeProgress { begun, phase, .. } = progress[row];
        let requests = self.requests[row].borrow();
        let under_way = exchange.phases.get(phase);
        let receives =
            under_way.filter(|_| self.strict).map_or(requests.receives(), |p| p.receives);
        let sends = under_way.map_or(0..0, |phase| phase.sends.start..phase.urgent);
        let open = requests.unfinished(0..receives).into_iter().chain(requests.unfinished(sends));
        let mut awaited: Vec<Peer> = open.map(|at| exchange.ends[at]).collect();
        let phases = exchange.phases.iter().enumerate();
        for (index, phase) in phases.take(if self.strict { phase + 1 } else { usize::MAX }) {
            let late = phase.sources.iter().filter(|&&source| progress[source].sent[index] < begun);
            awaited.extend(late.map(|&source| Peer {
                direction: Direction::Receive,
                cell: cells[source],
                phase: PhaseId::from_index(index),
            }));
        }
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

/// The phases of a cell.
fn cell_phases(
    strict: bool,
    receives: &Messages,
    sends: &Messages,
    sources: Vec<Vec<usize>>,
) -> Vec<CellPhase> {
    let first = receives.messages.len();
    let phase = |(phase, sources): (usize, Vec<usize>)| {
        let own = sends.of_phase(phase);
        let urgent = if strict { own.end } else { sends.long_of_phase(phase) };
        CellPhase {
            sends: first + own.start..first + own.end,
            urgent: first + urgent,
            receives: if strict { receives.of_phase(phase).end } else { 0 },
            sources,
        }
    };
    sources.into_iter().enumerate().map(phase).collect()
}
