//! A message of bytes in a list that is handed to MPI and taken back: what is sent leaves from where
//! the program has put it, and what is received stays where it has arrived.

use conset_ir::convert::{to_u64, to_usize};

use super::comm::{Comm, call, lock};
use super::ffi::{self, RawRequests, to_c_int};
use super::message_queue::Address;
use super::raw_requests::{WORDS_MAX, array};
use crate::error::MpiError;

/// A message that is under way, or done. If it is dropped before it is done, its bytes stay.
pub(super) struct OwnedBytes {
    raw: *mut RawRequests,
    /// Of a receive, memory without bytes until it is done.
    bytes: Vec<u8>,
    length: usize,
    done: bool,
}

impl OwnedBytes {
    fn new(bytes: Vec<u8>, length: usize) -> Result<Self, MpiError> {
        if to_u64(length) > WORDS_MAX {
            let (found, limit) = (to_u64(length), WORDS_MAX);
            return Err(MpiError::Limit { what: "bytes of a message", found, limit });
        }
        Ok(Self { raw: array(1)?, bytes, length, done: false })
    }

    /// Begins to send bytes.
    pub(super) fn send(comm: &Comm, bytes: Vec<u8>, to: Address) -> Result<Self, MpiError> {
        let length = bytes.len();
        let mut message = Self::new(bytes, length)?;
        let mut done = 0;
        call("send bytes", || {
            // SAFETY: the array has one request; the bytes are kept, unchanged, until it is done.
            unsafe {
                let (start, count, peer) =
                    (message.bytes.as_ptr(), to_c_int(length), to_c_int(to.rank));
                let (comm, raw) = (comm.raw(), message.raw);
                ffi::conset_send_bytes(comm, raw, 0, start, count, peer, to.tag, &raw mut done)
            }
        })?;
        message.done = done != 0;
        Ok(message)
    }

    /// Begins to receive so many bytes, into the memory of a list, which is emptied.
    pub(super) fn receive(
        comm: &Comm,
        mut memory: Vec<u8>,
        length: usize,
        from: Address,
    ) -> Result<Self, MpiError> {
        memory.clear();
        memory.reserve_exact(length);
        let mut message = Self::new(memory, length)?;
        call("receive bytes", || {
            // SAFETY: the array has one request; there is room for so many bytes, which are neither
            // read nor freed before it is done.
            unsafe {
                let (start, count, peer) =
                    (message.bytes.as_mut_ptr(), to_c_int(length), to_c_int(from.rank));
                ffi::conset_receive_bytes(comm.raw(), message.raw, 0, start, count, peer, from.tag)
            }
        })?;
        Ok(message)
    }

    /// Tries so often to complete it; whether it is done.
    pub(super) fn test(&mut self, tries: u32) -> Result<bool, MpiError> {
        if !self.done {
            let mut at = 0;
            call("complete a message of bytes", || {
                // SAFETY: the array has one request.
                unsafe { ffi::conset_requests_test(self.raw, &raw mut at, 1, to_c_int(tries)) }
            })?;
            self.done = to_usize(at) == 1;
        }
        Ok(self.done)
    }

    /// The bytes, after the message is done.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        assert!(self.done, "MPI still uses the bytes");
        let mut bytes = std::mem::take(&mut self.bytes);
        // SAFETY: there is room for so many, and they were there before, or MPI has written them: the
        // receive is done, and its message was announced with this length by a cell of the same run.
        unsafe { bytes.set_len(self.length) };
        bytes
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        if self.done {
            let _lock = lock();
            // SAFETY: it is done, and the array is not used afterwards.
            unsafe { ffi::conset_requests_free(self.raw) };
        } else {
            // MPI may still read or write them.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}
