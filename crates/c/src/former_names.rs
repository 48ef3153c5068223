//! The former names of functions, kept for one release.
//!
//! Each forwards to the function that replaced it.

use std::ffi::{c_char, c_int, c_void};

use crate::cell::{ConsetCell, conset_abort, conset_cell_count};
use crate::exchange::{conset_combine_owned_by, conset_combine_shared_by, conset_exchange_by};
use crate::memory::BY_MESSAGES;
use crate::pending::{
    ConsetPending, conset_start, conset_start_many, conset_start_shared, conset_wait,
    conset_wait_many,
};
use crate::plan::ConsetPlan;
use crate::words::conset_exchange_words_by;

const ADD: c_int = 1; // CONSET_ADD

/// `conset_exchange_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_exchange(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_exchange_by(cell, BY_MESSAGES, plan, operation, number_type, x, words) }
}

/// `conset_combine_shared_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_sum_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_combine_shared_by(cell, BY_MESSAGES, plan, ADD, number_type, x, words) }
}

/// `conset_combine_shared_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_combine_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_combine_shared_by(cell, BY_MESSAGES, plan, operation, number_type, x, words) }
}

/// `conset_combine_owned_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_combine_owned(
    cell: *mut ConsetCell,
    backward: *const ConsetPlan,
    forward: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe {
        conset_combine_owned_by(
            cell,
            BY_MESSAGES,
            backward,
            forward,
            operation,
            number_type,
            x,
            words,
        )
    }
}

/// `conset_exchange_words_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_exchange_words(
    cell: *mut ConsetCell,
    set: u32,
    number_type: c_int,
    outgoing: *const c_void,
    outgoing_words: usize,
    incoming: *mut c_void,
    incoming_words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe {
        conset_exchange_words_by(
            cell,
            BY_MESSAGES,
            set,
            number_type,
            outgoing,
            outgoing_words,
            incoming,
            incoming_words,
        )
    }
}

/// `conset_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_begin(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *const c_void,
    words: usize,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_start(cell, plan, operation, number_type, x, words, pending) }
}

/// `conset_start_shared`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_begin_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *const c_void,
    words: usize,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_start_shared(cell, plan, operation, number_type, x, words, pending) }
}

/// `conset_start_many`.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_begin_many(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    vectors: *const *const c_void,
    words: *const usize,
    count: usize,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_start_many(cell, plan, operation, number_type, vectors, words, count, pending) }
}

/// `conset_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_end(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    pending: *const ConsetPending,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_wait(cell, plan, pending, number_type, x, words) }
}

/// `conset_wait_many`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_end_many(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    pending: *const ConsetPending,
    number_type: c_int,
    vectors: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_wait_many(cell, plan, pending, number_type, vectors, words, count) }
}

/// `conset_abort`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_give_up(cell: *mut ConsetCell, why: *const c_char) -> c_int {
    // SAFETY: the arguments are passed on.
    unsafe { conset_abort(cell, why) }
}

/// `conset_cell_count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_cells(cell: *const ConsetCell) -> usize {
    // SAFETY: the argument is passed on.
    unsafe { conset_cell_count(cell) }
}
