//! The functions of `shim/attached.c`. Each returns an MPI error code, 0 for success.

use std::ffi::{c_char, c_int, c_void};

use crate::mpi::ffi::RawComm;

/// Messages with neighbours that are repeated; lives in C.
#[repr(C)]
pub(super) struct RawWire {
    _private: [u8; 0],
}

/// A request; lives in C.
#[repr(C)]
pub(super) struct RawOperation {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn conset_wire_new(
        comm: *mut RawComm,
        tag: c_int,
        receives: c_int,
        sends: c_int,
        peers: *const c_int,
        bytes: *const c_int,
    ) -> *mut RawWire;
    pub(super) fn conset_wire_buffer(wire: *mut RawWire, message: c_int) -> *mut c_char;
    pub(super) fn conset_wire_receive(
        wire: *mut RawWire,
        base: *mut c_char,
        at: *const i64,
        entry: usize,
    ) -> c_int;
    pub(super) fn conset_wire_send(wire: *mut RawWire, send: c_int) -> c_int;
    pub(super) fn conset_wire_test(
        wire: *mut RawWire,
        at: *mut c_int,
        tries: c_int,
        wrong: *mut c_int,
        found: *mut i64,
    ) -> c_int;
    pub(super) fn conset_wire_done(wire: *mut RawWire, message: c_int, done: *mut c_int) -> c_int;
    pub(super) fn conset_wire_cancel(wire: *mut RawWire, at: c_int, sent: *mut c_int) -> c_int;
    pub(super) fn conset_wire_free(wire: *mut RawWire, freed: *mut c_int);

    pub(super) fn conset_operation_new() -> *mut RawOperation;
    pub(super) fn conset_operation_free(operation: *mut RawOperation);
    pub(super) fn conset_operation_test(operation: *mut RawOperation, done: *mut c_int) -> c_int;
    pub(super) fn conset_synchronous_send(
        comm: *mut RawComm,
        operation: *mut RawOperation,
        words: *const c_void,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
    pub(super) fn conset_enter_barrier(comm: *mut RawComm, operation: *mut RawOperation) -> c_int;
    pub(super) fn conset_reduce_all(
        comm: *mut RawComm,
        operation: *mut RawOperation,
        sum: c_int,
        words: *mut u64,
        count: c_int,
    ) -> c_int;
    pub(super) fn conset_broadcast_words(
        comm: *mut RawComm,
        operation: *mut RawOperation,
        words: *mut u64,
        count: c_int,
        root: c_int,
    ) -> c_int;
    pub(super) fn conset_look(
        comm: *mut RawComm,
        from: c_int,
        tag: c_int,
        bytes: c_int,
        peer: *mut c_int,
        words: *mut c_int,
    ) -> c_int;
    pub(super) fn conset_take(
        comm: *mut RawComm,
        words: *mut c_void,
        count: c_int,
        bytes: c_int,
        peer: c_int,
        tag: c_int,
    ) -> c_int;
}
