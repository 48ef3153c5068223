//! The functions of `shim/conset_mpi.c`. Each returns an MPI error code, 0 for success.

use std::ffi::{c_char, c_int};

/// A duplicate communicator; lives in C.
#[repr(C)]
pub(super) struct RawComm {
    _private: [u8; 0],
}

/// An array of requests; lives in C.
#[repr(C)]
pub(super) struct RawRequests {
    _private: [u8; 0],
}

/// A count or a place for MPI. Callers have compared it with what MPI can count, so it fits.
#[inline]
#[track_caller]
pub(super) fn to_c_int<N: TryInto<c_int>>(number: N) -> c_int {
    number.try_into().unwrap_or_else(|_| panic!("a number does not fit into a C int"))
}

/// A message that is sent by no persistent request: its first byte in the buffer, its words, and
/// where it goes.
#[repr(C)]
pub(super) struct RawMessage {
    pub(super) at: usize,
    pub(super) count: c_int,
    pub(super) peer: c_int,
    pub(super) tag: c_int,
}

unsafe extern "C" {
    pub(super) fn conset_mpi_start(fit: *mut c_int) -> c_int;
    pub(super) fn conset_mpi_fit(fit: *mut c_int) -> c_int;
    pub(super) fn conset_mpi_world(fortran: *mut i32) -> c_int;
    pub(super) fn conset_mpi_self(fortran: *mut i32) -> c_int;
    pub(super) fn conset_comm_duplicate(fortran: i32, out: *mut *mut RawComm) -> c_int;
    pub(super) fn conset_comm_fortran(comm: *mut RawComm) -> i32;
    pub(super) fn conset_comm_ready(
        comm: *mut RawComm,
        ready: *mut c_int,
        rank: *mut c_int,
        size: *mut c_int,
        tags: *mut c_int,
    ) -> c_int;
    pub(super) fn conset_comm_free(comm: *mut RawComm);
    pub(super) fn conset_mpi_abort(comm: *mut RawComm, status: c_int);
    pub(super) fn conset_mpi_error_text(code: c_int, text: *mut c_char, room: c_int);

    pub(super) fn conset_mpi_is_truncation(code: c_int) -> c_int;

    pub(super) fn conset_requests_new(count: c_int) -> *mut RawRequests;
    pub(super) fn conset_requests_free(requests: *mut RawRequests);
    pub(super) fn conset_send_init(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        at: c_int,
        words: *const u8,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_sends_now(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        first: c_int,
        buffer: *const u8,
        messages: *const RawMessage,
        count: c_int,
        bytes: c_int,
        done: *mut c_int,
    ) -> c_int;
    pub(super) fn conset_receive_init(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        at: c_int,
        words: *mut u8,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_requests_start(
        requests: *mut RawRequests,
        first: c_int,
        count: c_int,
    ) -> c_int;
    pub(super) fn conset_requests_cancel(
        requests: *mut RawRequests,
        first: c_int,
        count: c_int,
    ) -> c_int;
    pub(super) fn conset_send_words(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        words: *const u64,
        count: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_receive_words(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        words: *mut u64,
        count: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_send_row(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        at: c_int,
        words: *const u8,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
        done: *mut c_int,
    ) -> c_int;
    pub(super) fn conset_receive_row(
        comm: *mut RawComm,
        requests: *mut RawRequests,
        at: c_int,
        words: *mut u8,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_comm_discard(comm: *mut RawComm) -> c_int;
    pub(super) fn conset_probe(
        comm: *mut RawComm,
        peer: *mut c_int,
        tag: c_int,
        words: *mut c_int,
    ) -> c_int;
    pub(super) fn conset_requests_test(
        requests: *mut RawRequests,
        at: *mut c_int,
        end: c_int,
        tries: c_int,
    ) -> c_int;
    pub(super) fn conset_request_done(
        requests: *mut RawRequests,
        at: c_int,
        done: *mut c_int,
    ) -> c_int;
}
