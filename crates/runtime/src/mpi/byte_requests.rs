//! Requests for messages of bytes, each of which serves once at a time, and the buffers that they
//! read and write.
//!
//! The buffers belong to [`ByteRequests`], which keeps a list of the active requests: bytes that MPI
//! may write are not read, and bytes that it may read are not written. If the requests are dropped
//! while some are active, they and their buffers are leaked, so that there is no use after free.

use std::ops::Range;

use conset_ir::convert::to_u64;

use super::aligned_buffer::AlignedBuffer;
use super::comm::{Comm, call, lock};
use super::ffi::{self, RawRequests, to_c_int};
use super::raw_requests::WORDS_MAX;
use crate::error::MpiError;

/// What an active request transfers.
struct Transfer {
    request: usize,
    buffer: usize,
    bytes: Range<usize>,
    /// It is a receive, which writes the bytes.
    writes: bool,
}

impl Transfer {
    fn overlaps(&self, buffer: usize, bytes: &Range<usize>) -> bool {
        self.buffer == buffer && self.bytes.start < bytes.end && bytes.start < self.bytes.end
    }
}

/// A part of a buffer: the number of the buffer, and the bytes in it.
pub(super) type Part = (usize, Range<usize>);

/// Where a message goes or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) rank: usize,
    pub(super) tag: i32,
}

/// A fixed number of requests, and buffers.
pub(super) struct ByteRequests {
    comm: Comm,
    raw: *mut RawRequests,
    count: usize,
    buffers: Vec<AlignedBuffer>,
    active: Vec<Transfer>,
}

impl ByteRequests {
    /// So many requests, none of them active, and so many buffers, which are empty.
    pub(super) fn new(comm: &Comm, count: usize, buffers: usize) -> Result<Self, MpiError> {
        if to_u64(count) > WORDS_MAX {
            let (found, limit) = (to_u64(count), WORDS_MAX);
            return Err(MpiError::Limit { what: "requests of a cell", found, limit });
        }
        // SAFETY: allocates, and nothing else.
        let raw = unsafe { ffi::conset_requests_new(to_c_int(count)) };
        if raw.is_null() {
            let text = "no memory".to_owned();
            return Err(MpiError::Call { what: "make requests", code: -1, text });
        }
        let buffers = (0..buffers).map(|_| AlignedBuffer::new(0)).collect();
        Ok(Self { comm: comm.clone(), raw, count, buffers, active: Vec::with_capacity(count) })
    }

    /// Makes a buffer, of which no request is active, at least so long. What was in it is lost if it
    /// grows.
    pub(super) fn reserve(&mut self, buffer: usize, bytes: usize) {
        if self.buffers[buffer].len() < bytes {
            assert!(self.active.iter().all(|one| one.buffer != buffer), "MPI uses the buffer");
            let mut old = std::mem::replace(&mut self.buffers[buffer], AlignedBuffer::new(bytes));
            old.free();
        }
    }

    /// Bytes that MPI does not write at present.
    pub(super) fn read(&self, (buffer, bytes): &Part) -> &[u8] {
        let busy = self.active.iter().any(|one| one.writes && one.overlaps(*buffer, bytes));
        assert!(!busy, "MPI still writes the bytes");
        let start = self.buffers[*buffer].at(bytes).cast_const();
        // SAFETY: the bytes lie in the buffer, as `at` has checked, and are initialised. MPI does not
        // write them while they are borrowed, as starting a receive borrows `self` for writing.
        unsafe { std::slice::from_raw_parts(start, bytes.len()) }
    }

    /// Bytes that MPI does not use at present.
    pub(super) fn write(&mut self, (buffer, bytes): &Part) -> &mut [u8] {
        let busy = self.active.iter().any(|one| one.overlaps(*buffer, bytes));
        assert!(!busy, "MPI still uses the bytes");
        let start = self.buffers[*buffer].at(bytes);
        // SAFETY: as in `read`, and nothing else refers to them while `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(start, bytes.len()) }
    }

    /// Bytes to write, and bytes of another buffer to read.
    pub(super) fn write_and_read(&mut self, write: &Part, read: &Part) -> (&mut [u8], &[u8]) {
        assert_ne!(write.0, read.0, "two buffers");
        let _checked = self.read(read);
        let start = self.buffers[read.0].at(&read.1).cast_const();
        // SAFETY: as in `read`; the bytes to be written are in another buffer.
        let read = unsafe { std::slice::from_raw_parts(start, read.1.len()) };
        (self.write(write), read)
    }

    /// Starts to send bytes with a request that is not active; short messages are done at once.
    pub(super) fn send(&mut self, request: usize, part: Part, to: Remote) -> Result<(), MpiError> {
        self.check(request, &part);
        let start = self.read(&part).as_ptr();
        let (buffer, bytes) = part;
        let (raw, at, count) = (self.raw, to_c_int(request), to_c_int(bytes.len()));
        let mut done = 0;
        self.active.push(Transfer { request, buffer, bytes, writes: false });
        call("send bytes", || {
            // SAFETY: the request is one of the array and not active; the bytes are kept, and not
            // written, until it is seen done.
            unsafe {
                let (comm, rank) = (self.comm.raw(), to_c_int(to.rank));
                let done = &raw mut done;
                ffi::conset_send_row(comm, raw, at, start, count, 1, rank, to.tag, done)
            }
        })?;
        if done != 0 {
            self.active.pop();
        }
        Ok(())
    }

    /// Starts to receive bytes with a request that is not active.
    pub(super) fn receive(
        &mut self,
        request: usize,
        part: Part,
        from: Remote,
    ) -> Result<(), MpiError> {
        self.check(request, &part);
        let start = self.write(&part).as_mut_ptr();
        let (buffer, bytes) = part;
        let (raw, at, count) = (self.raw, to_c_int(request), to_c_int(bytes.len()));
        self.active.push(Transfer { request, buffer, bytes, writes: true });
        call("receive bytes", || {
            // SAFETY: as above, and the bytes are not read either.
            unsafe {
                let (comm, rank) = (self.comm.raw(), to_c_int(from.rank));
                ffi::conset_receive_row(comm, raw, at, start, count, 1, rank, from.tag)
            }
        })
    }

    fn check(&self, request: usize, part: &Part) {
        assert!(request < self.count && to_u64(part.1.len()) <= WORDS_MAX);
        assert!(self.active.iter().all(|one| one.request != request), "the request is active");
    }

    /// Whether no request is active.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Tries a few times to complete a request; whether it is not active any more.
    pub(super) fn test(&mut self, request: usize, tries: u32) -> Result<bool, MpiError> {
        let Some(row) = self.active.iter().position(|one| one.request == request) else {
            return Ok(true);
        };
        let (mut at, end) = (to_c_int(request), to_c_int(request + 1));
        call("complete a message of bytes", || {
            // SAFETY: the request is one of the array.
            unsafe { ffi::conset_requests_test(self.raw, &raw mut at, end, to_c_int(tries)) }
        })?;
        let done = at == end;
        if done {
            self.active.swap_remove(row);
        }
        Ok(done)
    }

    /// Cancels the receives that are active, for which nothing was sent.
    pub(super) fn cancel_receives(&mut self) -> Result<(), MpiError> {
        while let Some(row) = self.active.iter().position(|one| one.writes) {
            let request = to_c_int(self.active[row].request);
            call("cancel a receive", || {
                // SAFETY: the request is an active receive of the array.
                unsafe { ffi::conset_requests_cancel(self.raw, request, 1) }
            })?;
            self.active.swap_remove(row);
        }
        Ok(())
    }
}

impl Drop for ByteRequests {
    fn drop(&mut self) {
        if self.is_idle() {
            let _lock = lock();
            // SAFETY: none is active, and the array is not used afterwards.
            unsafe { ffi::conset_requests_free(self.raw) };
            self.buffers.iter_mut().for_each(AlignedBuffer::free);
        }
    }
}
