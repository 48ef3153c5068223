//! Messages between a rank and its neighbours that are repeated, each of a fixed size.
//!
//! The requests and buffers live in C ([`super::ffi`]), so no reference of Rust ever leads to memory
//! that MPI uses. If a wire is dropped while messages are under way, receives are cancelled; a send
//! that nobody has taken keeps the wire's memory for ever.

use std::ffi::c_int;

use conset_ir::convert::{to_u64, to_usize};

use super::ffi::{self, RawWire};
use crate::error::MpiError;
use crate::mpi::comm::{Comm, call, lock};
use crate::mpi::ffi::to_c_int;

/// One message: the other rank, and how many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rank: usize,
    pub(super) bytes: usize,
}

/// A message of another size than expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrongSize {
    pub(super) rank: usize,
    pub(super) found: Option<u64>,
    pub(super) expected: u64,
}

/// Where messages are received in a vector of the caller.
pub(super) struct InPlace<'a> {
    pub(super) base: *mut u8,
    /// Bytes of an entry.
    pub(super) entry: usize,
    /// For each message the entry at which it arrives; negative: in the buffer.
    pub(super) at: &'a [i64],
}

pub(super) struct Wire {
    raw: *mut RawWire,
    shapes: Vec<Shape>,
    /// Where each message is packed, or arrives.
    buffers: Vec<*mut u8>,
    receives: usize,
    /// Messages before this one are done, receives first.
    at: c_int,
    started: bool,
    wrong: Option<WrongSize>,
}

// SAFETY: the pointer is only handed to the shim, under the lock of `call`, by the owner of the wire.
unsafe impl Send for Wire {}
// SAFETY: shared references reach nothing but addresses.
unsafe impl Sync for Wire {}

impl Wire {
    pub(super) fn new(
        comm: &Comm,
        tag: i32,
        receives: Vec<Shape>,
        sends: Vec<Shape>,
    ) -> Result<Self, MpiError> {
        let count = receives.len();
        let shapes = [receives, sends].concat();
        let limit = to_u64(c_int::MAX);
        let most = shapes.iter().map(|shape| shape.bytes).max().unwrap_or(0).max(shapes.len());
        if to_u64(most) > limit {
            return Err(MpiError::Limit { what: "bytes of a message", found: to_u64(most), limit });
        }
        let peers: Vec<c_int> = shapes.iter().map(|shape| to_c_int(shape.rank)).collect();
        let bytes: Vec<c_int> = shapes.iter().map(|shape| to_c_int(shape.bytes)).collect();
        let _lock = lock();
        // SAFETY: both arrays have an element for each message, and are copied.
        let raw = unsafe {
            ffi::conset_wire_new(
                comm.raw(),
                tag,
                to_c_int(count),
                to_c_int(shapes.len() - count),
                peers.as_ptr(),
                bytes.as_ptr(),
            )
        };
        if raw.is_null() {
            let text = "no memory".to_owned();
            return Err(MpiError::Call { what: "set up messages", code: -1, text });
        }
        // SAFETY: the messages exist.
        let buffer = |at| unsafe { ffi::conset_wire_buffer(raw, to_c_int(at)) }.cast();
        let buffers = (0..shapes.len()).map(buffer).collect();
        Ok(Self { raw, shapes, buffers, receives: count, at: 0, started: false, wrong: None })
    }

    /// Where a message is to be packed: as many bytes as its shape says.
    pub(super) fn outgoing(&self, send: usize) -> *mut u8 {
        self.buffers[self.receives + send]
    }

    /// Where messages arrive, unless they are received in place.
    pub(super) fn incoming(&self) -> &[*mut u8] {
        &self.buffers[..self.receives]
    }

    /// Starts the receives. Every send must be started after that, before [`Wire::test`].
    ///
    /// # Safety
    /// What is received in place has room, and nobody uses it until [`Wire::test`] has returned that
    /// all is done, or [`Wire::cancel`] has returned.
    pub(super) unsafe fn receive(&mut self, place: Option<&InPlace<'_>>) -> Result<(), MpiError> {
        assert!(!self.started, "messages are under way");
        (self.started, self.at, self.wrong) = (true, 0, None);
        let (base, at, entry) = match place {
            Some(place) => {
                assert_eq!(place.at.len(), self.receives);
                (place.base.cast(), place.at.as_ptr(), place.entry)
            }
            None => (std::ptr::null_mut(), std::ptr::null(), 0),
        };
        call("start a receive", || {
            // SAFETY: the caller's promise; the array has a place for each receive.
            unsafe { ffi::conset_wire_receive(self.raw, base, at, entry) }
        })
    }

    /// Sends a message that has been packed.
    pub(super) fn send(&mut self, send: usize) -> Result<(), MpiError> {
        assert!(self.started && send < self.shapes.len() - self.receives);
        call("start a send", || {
            // SAFETY: the message exists, and its last one is done, as receives were started anew.
            unsafe { ffi::conset_wire_send(self.raw, to_c_int(send)) }
        })
    }

    /// Tries a few times to complete what is under way; whether all is.
    pub(super) fn test(&mut self, tries: u32) -> Result<bool, MpiError> {
        if !self.started {
            return Ok(true);
        }
        let (mut at, mut wrong, mut found) = (self.at, -1, 0);
        let result = call("complete an exchange", || {
            // SAFETY: the shim writes three numbers.
            unsafe {
                let tries = to_c_int(tries);
                let (at, wrong, found) = (&raw mut at, &raw mut wrong, &raw mut found);
                ffi::conset_wire_test(self.raw, at, tries, wrong, found)
            }
        });
        self.at = at;
        if let Some(&Shape { rank, bytes }) =
            usize::try_from(wrong).ok().and_then(|wrong| self.shapes.get(wrong))
        {
            let found = u64::try_from(found).ok();
            self.wrong = Some(WrongSize { rank, found, expected: to_u64(bytes) });
        }
        result?;
        self.started = to_usize(at) < self.shapes.len();
        Ok(!self.started)
    }

    /// A message of the last exchange that had another size than expected.
    pub(super) fn wrong(&self) -> Option<WrongSize> {
        self.wrong
    }

    /// The ranks of messages that are not done.
    pub(super) fn awaited(&self) -> Vec<usize> {
        let _lock = lock();
        let open = |message: &usize| {
            let mut done = 0;
            // SAFETY: the message exists, and was started.
            let code =
                unsafe { ffi::conset_wire_done(self.raw, to_c_int(*message), &raw mut done) };
            code != 0 || done == 0
        };
        let open = (to_usize(self.at)..self.shapes.len()).filter(open);
        let mut ranks: Vec<usize> = open.map(|message| self.shapes[message].rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Gives up what is under way: afterwards MPI uses no memory of the caller.
    pub(super) fn cancel(&mut self) {
        if self.started {
            let mut sent = 0;
            // If that fails MPI is of no use any more, and neither is the error.
            let _ = call("cancel a receive", || {
                // SAFETY: the receives from `at` on are under way.
                unsafe { ffi::conset_wire_cancel(self.raw, self.at, &raw mut sent) }
            });
            self.started = false;
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cancel();
        let _lock = lock();
        let mut freed = 0;
        // SAFETY: no receive is under way, and the wire is not used afterwards. If a send is, the
        // shim keeps all.
        unsafe { ffi::conset_wire_free(self.raw, &raw mut freed) };
    }
}
