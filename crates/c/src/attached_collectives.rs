//! Collectives of an MPI program that calls conset, without a callback.
//!
//! Without the feature `mpi` the functions are there, and return an error.

#![cfg_attr(
    not(feature = "mpi"),
    allow(unused_variables, unused_imports, reason = "every call is an error")
)]

use std::ffi::{c_int, c_void};

use crate::attached::{ConsetAttached, with_mpi};
use crate::entry::enter;
use crate::handle::value;

#[cfg(feature = "mpi")]
use crate::memory::{array, array_mut, op, typed, write};

/// Combines arrays of all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_allreduce(
    attached: *const ConsetAttached,
    operation: c_int,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    enter("conset_attached_allreduce", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                typed!(number_type, W => {
                    let (attached, operation) = (&value(attached, "attached")?.attached, op(operation)?);
                    Ok(attached.allreduce(operation, array_mut(words.cast::<W>(), count, "words")?)?)
                })
            }
        }
    })
}

/// The array of one rank, for all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_broadcast(
    attached: *const ConsetAttached,
    root: c_int,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    enter("conset_attached_broadcast", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                typed!(number_type, W => {
                    let attached = &value(attached, "attached")?.attached;
                    let root = usize::try_from(root).unwrap_or(usize::MAX);
                    Ok(attached.broadcast(root, array_mut(words.cast::<W>(), count, "words")?)?)
                })
            }
        }
    })
}

/// Waits for all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_barrier(attached: *const ConsetAttached) -> c_int {
    enter("conset_attached_barrier", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                Ok(value(attached, "attached")?.attached.barrier()?)
            }
        }
    })
}

/// Starts to combine arrays of all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_start_allreduce(
    attached: *const ConsetAttached,
    operation: c_int,
    number_type: c_int,
    words: *const c_void,
    count: usize,
    reduction: *mut u64,
) -> c_int {
    enter("conset_attached_start_allreduce", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let (attached, operation) = (&value(attached, "attached")?.attached, op(operation)?);
                write(reduction, "reduction", u64::MAX)?;
                let started = typed!(number_type, W => {
                    attached.start_allreduce(operation, array(words.cast::<W>(), count, "words")?)?
                });
                write(reduction, "reduction", started.number())
            }
        }
    })
}

/// Whether a reduction can be completed without waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_test(
    attached: *const ConsetAttached,
    reduction: u64,
    done: *mut c_int,
) -> c_int {
    enter("conset_attached_test", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let attached = &value(attached, "attached")?.attached;
                let pending = attached.pending_reduction(reduction);
                write(done, "done", c_int::from(attached.test_allreduce(&pending)?))
            }
        }
    })
}

/// Completes a reduction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attached_wait(
    attached: *const ConsetAttached,
    reduction: u64,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    enter("conset_attached_wait", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                typed!(number_type, W => {
                    let attached = &value(attached, "attached")?.attached;
                    let pending = attached.pending_reduction(reduction);
                    Ok(attached.wait_allreduce(pending, array_mut(words.cast::<W>(), count, "words")?)?)
                })
            }
        }
    })
}
