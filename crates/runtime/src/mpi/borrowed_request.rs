//! A message in the memory of a program: MPI sends words from where they are and writes words where
//! they are to be.
//!
//! Whoever begins one completes it before the memory is used otherwise, also if the run fails
//! meanwhile ([`BorrowedRequest::finish`]). A receive can be cancelled; a send cannot. It is waited for
//! until its target has received the message, or has learned of the failure and discards what it was
//! sent ([`Comm::discard`]).

use std::time::{Duration, Instant};

use conset_ir::convert::to_u64;

use super::backoff::Waited;
use super::comm::{Comm, call, lock};
use super::ffi::{self, RawRequests, to_c_int};
use super::message_queue::Address;
use super::raw_requests::{WORDS_MAX, array};
use crate::error::MpiError;
use crate::port::RawWords;

/// The most bytes of a message that are copied into and out of the buffer of a message that is sent
/// anyway. Another message costs about as much as copying so many bytes at both ends, so more are
/// passed in place.
pub(super) const COPIED_MOST: usize = 1 << 14;

/// How long messages have to arrive after the run has failed, before their receives are cancelled.
const GRACE: Duration = Duration::from_millis(500);

/// A message in memory that this does not own.
pub(super) struct BorrowedRequest {
    comm: Comm,
    raw: *mut RawRequests,
    receives: bool,
    done: bool,
}

impl BorrowedRequest {
    fn new(comm: &Comm, receives: bool) -> Result<Self, MpiError> {
        Ok(Self { comm: comm.clone(), raw: array(1)?, receives, done: false })
    }

    fn count(row: RawWords) -> Result<std::ffi::c_int, MpiError> {
        let found = to_u64(row.words);
        if found > WORDS_MAX {
            return Err(MpiError::Limit { what: "words of a message", found, limit: WORDS_MAX });
        }
        Ok(to_c_int(row.words))
    }

    /// Starts to send words.
    ///
    /// # Safety
    /// They can be read until the request is done.
    pub(super) unsafe fn send(comm: &Comm, row: RawWords, to: Address) -> Result<Self, MpiError> {
        let (count, mut request) = (Self::count(row)?, Self::new(comm, false)?);
        let mut done = 0;
        call("send words", || {
            // SAFETY: the array has one request; the caller says the rest.
            unsafe {
                let (comm, raw, rank) = (comm.raw(), request.raw, to_c_int(to.rank));
                let (words, bytes, done) = (row.pointer, to_c_int(row.size), &raw mut done);
                ffi::conset_send_row(comm, raw, 0, words, count, bytes, rank, to.tag, done)
            }
        })?;
        request.done = done != 0;
        Ok(request)
    }

    /// Starts to receive words.
    ///
    /// # Safety
    /// They can be written, and are not read, until the request is done or cancelled.
    pub(super) unsafe fn receive(
        comm: &Comm,
        row: RawWords,
        from: Address,
    ) -> Result<Self, MpiError> {
        let (count, request) = (Self::count(row)?, Self::new(comm, true)?);
        call("receive words", || {
            // SAFETY: the array has one request; the caller says the rest.
            unsafe {
                let (comm, raw, rank) = (comm.raw(), request.raw, to_c_int(from.rank));
                let (words, bytes) = (row.pointer, to_c_int(row.size));
                ffi::conset_receive_row(comm, raw, 0, words, count, bytes, rank, from.tag)
            }
        })?;
        Ok(request)
    }

    /// Whether it was seen done.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn test(&mut self, tries: u32) -> Result<bool, MpiError> {
        if !self.done {
            let mut at = 0;
            call("complete a message", || {
                // SAFETY: the array has one request.
                unsafe { ffi::conset_requests_test(self.raw, &raw mut at, 1, to_c_int(tries)) }
            })?;
            self.done = at == 1;
        }
        Ok(self.done)
    }

    /// The run has failed, of which all ranks have been told at a time: completes the message from or to a
    /// rank, or cancels it.
    pub(super) fn finish(&mut self, other: usize, told: Instant) {
        if let Err(error) = self.try_to_finish(other, told) {
            self.comm.abort_because(&error);
        }
    }

    fn try_to_finish(&mut self, other: usize, told: Instant) -> Result<(), MpiError> {
        let mut backoff = self.comm.backoff();
        while !self.test(1)? {
            if self.receives && told.elapsed() >= GRACE {
                self.done = true;
                return call("cancel a receive", || {
                    // SAFETY: the array has one request, an active receive.
                    unsafe { ffi::conset_requests_cancel(self.raw, 0, 1) }
                });
            }
            // The other rank may wait for that.
            self.comm.discard()?;
            match backoff.wait() {
                Waited::Briefly | Waited::Long => {}
                Waited::Report(time) => self.comm.report_wait(&self.missing(time, other)),
                Waited::TimedOut(time) => return Err(self.missing(time, other)),
            }
        }
        Ok(())
    }

    fn missing(&self, milliseconds: u64, other: usize) -> MpiError {
        MpiError::Missing {
            rank: self.comm.rank(),
            milliseconds,
            place: "a message after the run has failed".to_owned(),
            awaited: vec![other],
        }
    }
}

impl Drop for BorrowedRequest {
    fn drop(&mut self) {
        if !self.done {
            // Only a panic of the runtime comes here. The memory must not be used after it is freed.
            self.comm.abort(101);
        }
        let _lock = lock();
        // SAFETY: it is done, and the array is not used afterwards.
        unsafe { ffi::conset_requests_free(self.raw) };
    }
}
