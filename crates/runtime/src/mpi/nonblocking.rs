//! Nonblocking exchanges over MPI, which proceed while their programs compute.
//!
//! A request owns the buffers of its exchange, on behalf of its cell. It is started as soon as the
//! previous exchange of the same cell and set, in words of the same size, has arrived and the targets
//! on its rank have read that; until then it waits, so that they are performed in the order in which
//! they were started. Others have their own persistent requests
//! ([`super::persistent_requests`]) and can be active at the same time. Arrived words are copied to
//! the buffers of the request at once, so that the next one of the set can start whenever the
//! program asks for the previous one.
//!
//! Two copies can be avoided. If an exchange can start immediately, its words are packed where MPI
//! sends them from ([`super::port`]). And a cell that waits to complete its oldest request *claims*
//! it: the words stay where MPI received them until the cell reads them there
//! ([`MpiRequestQueue::read`]).
//!
//! Only [`MpiRequestQueue::progress`] advances requests; it handles those of all cells of the rank and
//! never waits. It is called whenever a cell starts or tests an exchange, and repeatedly while the
//! cells of the rank wait. Between two calls MPI may or may not progress; it does progress messages
//! that are sent at once.
//!
//! There is no circular wait: the n-th exchange of a set waits only for the n-th and earlier ones
//! of other cells of the same set, and every cell starts the same ones in the same order. A cell
//! that waits for anything else has completed its requests before.
//!
//! The memory that MPI accesses belongs to the persistent requests, so requests can be dropped at
//! any time.

use std::cell::{Cell as Slot, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::persistent_requests::{ExchangeKey, Numbered, PersistentExchange};
use crate::error::MpiError;
use crate::port::{UnpackFn, WireBuffers};
use crate::word::copy_bytes;

/// A nonblocking exchange of a cell.
pub(super) struct MpiRequest {
    /// As the cell counts them.
    pub(super) number: u64,
    /// Its number among all that the cell does together with others ([`super::mismatch`]), and where
    /// it was started.
    pub(super) call: Numbered,
    pub(super) key: ExchangeKey,
    pub(super) exchange: Rc<PersistentExchange>,
    pub(super) buffers: WireBuffers,
}

/// What is to be known of a request by others.
pub(super) struct OldestRequest {
    pub(super) step: u64,
    pub(super) key: ExchangeKey,
    /// It has gone out.
    pub(super) started: bool,
}

/// A request that has not arrived.
struct ActiveRequest {
    request: MpiRequest,
    /// It has gone out.
    started: bool,
    /// Its cell waits to read it where it arrives.
    claimed: bool,
}

/// The requests of one cell, oldest first.
#[derive(Default)]
struct CellRequests {
    active: VecDeque<ActiveRequest>,
    arrived: Vec<(u64, WireBuffers)>,
    /// Exchanges of which a request was seen to wait for its turn; kept for its memory.
    held: Vec<ExchangeKey>,
}

/// The requests of a rank's cells.
pub(super) struct MpiRequestQueue {
    rows: RefCell<Vec<CellRequests>>,
    /// MpiRequestQueue of all rows that have not arrived.
    active: Slot<usize>,
}

impl MpiRequestQueue {
    pub(super) fn new(cells: usize) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(cells, CellRequests::default);
        Self { rows: RefCell::new(rows), active: Slot::new(0) }
    }

    /// Another request of a cell, with a higher number than its last; whether it has gone out.
    pub(super) fn push(&self, row: usize, request: MpiRequest, started: bool) {
        let requests = &mut self.rows.borrow_mut()[row];
        requests.active.push_back(ActiveRequest { request, started, claimed: false });
        // Here, so that how words come does not decide when memory is asked for.
        requests.arrived.reserve(requests.active.len());
        requests.held.clear();
        requests.held.reserve(requests.active.len());
        self.active.set(self.active.get() + 1);
    }

    /// Whether a request of the exchange waits for its turn, so that no other may go out.
    pub(super) fn has_waiting(&self, row: usize, key: ExchangeKey) -> bool {
        let rows = self.rows.borrow();
        rows[row].active.iter().any(|one| one.request.key == key && !one.started)
    }

    /// A cell wants its oldest request that has not arrived for [`MpiRequestQueue::read`].
    pub(super) fn claim(&self, row: usize) {
        if let Some(oldest) = self.rows.borrow_mut()[row].active.front_mut() {
            oldest.claimed = true;
        }
    }

    /// Hands over, if it is there, what came in of the request that a cell has claimed.
    pub(super) fn read(&self, row: usize, unpack: &mut UnpackFn<'_>) -> Result<bool, MpiError> {
        let requests = &mut self.rows.borrow_mut()[row];
        let Some(oldest) = requests.active.front() else { return Ok(false) };
        let exchange = &oldest.request.exchange;
        if !oldest.started || !exchange.poll(row, 1)? {
            return Ok(false);
        }
        exchange.finish(row, |run, wire| unpack((run.slot, run.words.start), wire))?;
        if let Some(ActiveRequest { request, .. }) = requests.active.pop_front() {
            requests.arrived.push((request.number, request.buffers));
            self.active.set(self.active.get() - 1);
        }
        Ok(true)
    }

    /// Does for all requests what can be done at once, with some tries for the oldest of each cell;
    /// whether one went out or arrived.
    #[inline]
    pub(super) fn progress(&self, tries: u32) -> Result<bool, MpiError> {
        if self.active.get() == 0 {
            return Ok(false);
        }
        let mut any = false;
        for (row, requests) in self.rows.borrow_mut().iter_mut().enumerate() {
            any |= requests.progress(row, tries)?;
        }
        let lengths = self.rows.borrow().iter().map(|requests| requests.active.len()).sum();
        self.active.set(lengths);
        Ok(any)
    }

    /// Whether a cell's request, and all that it began before, have arrived.
    pub(super) fn have_arrived(&self, row: usize, number: u64) -> bool {
        let rows = self.rows.borrow();
        rows[row].active.front().is_none_or(|first| first.request.number > number)
    }

    /// The buffers of a request that has arrived.
    pub(super) fn take(&self, row: usize, number: u64) -> WireBuffers {
        let arrived = &mut self.rows.borrow_mut()[row].arrived;
        let at = arrived.iter().position(|request| request.0 == number);
        arrived.swap_remove(at.expect("the request has arrived")).1
    }

    /// A cell's oldest request that has not arrived.
    pub(super) fn oldest(&self, row: usize) -> Option<OldestRequest> {
        let rows = self.rows.borrow();
        rows[row].active.front().map(|ActiveRequest { request, started, .. }| OldestRequest {
            step: request.call.0,
            key: request.key,
            started: *started,
        })
    }
}

impl CellRequests {
    /// As [`MpiRequestQueue::progress`], in their order. Where a request cannot go out, later ones of its
    /// set are not asked: by then they might, and would overtake it.
    fn progress(&mut self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let (mut at, mut any) = (0, false);
        self.held.clear();
        while let Some(next) = self.active.get_mut(at) {
            let was_started = next.started;
            if !was_started && self.held.contains(&next.request.key) {
                at += 1;
                continue;
            }
            let arrived = next.progress(row, if at == 0 { tries } else { 1 })?;
            any |= arrived || next.started != was_started;
            if !next.started {
                self.held.push(next.request.key);
            }
            if !arrived {
                at += 1;
            } else if let Some(ActiveRequest { request, .. }) = self.active.remove(at) {
                self.arrived.push((request.number, request.buffers));
            }
        }
        Ok(any)
    }
}

impl ActiveRequest {
    /// Sends, receives and copies as far as it can be done at once; whether all has arrived.
    fn progress(&mut self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let MpiRequest { exchange, buffers, call, .. } = &mut self.request;
        if !self.started {
            if !exchange.is_ready(row)? {
                return Ok(false);
            }
            let size = buffers.outgoing.size();
            exchange.start(row, *call, |run, wire| {
                copy_bytes(wire, &buffers.outgoing.row(run.slot)[run.bytes(size)]);
            })?;
            self.started = true;
        }
        if !exchange.poll(row, tries)? || self.claimed {
            return Ok(false);
        }
        let size = buffers.incoming.size();
        exchange.finish(row, |run, wire| {
            copy_bytes(&mut buffers.incoming.row_mut(run.slot)[run.bytes(size)], wire);
        })?;
        Ok(true)
    }
}
