//! Exchanges of vectors by plans, and collectives.

use std::ffi::{c_int, c_void};

use conset::ir::CellId;
use conset_runtime::Pending;

use crate::cell::{ConsetCell, call};
use crate::memory::{array, array_mut, op, typed, value, vectors, write};
use crate::plan::{ConsetPlan, ConsetTrees};

/// Exchanges a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.exchange_nodes(plan, op, x)?)
            })
        })
    }
}

/// Exchanges a vector by messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_exchange(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_exchange", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.msg_exchange_nodes(plan, op, x)?)
            })
        })
    }
}

/// Exchanges several vectors at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange_many(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    vectors: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_many", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            typed!(number_type, W => {
                let mut vectors = self::vectors::<W>(vectors, words, count)?;
                Ok(cell.exchange_many(plan, op, &mut vectors)?)
            })
        })
    }
}

/// Makes all copies of an entry what all of them together are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_combine_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_combine_shared", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.combine_shared(plan, op, x)?)
            })
        })
    }
}

/// Adds up all copies of an entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_sum_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_sum_shared", cell, |cell| {
            let plan = value(plan, "plan")?;
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.sum_shared(plan, x)?)
            })
        })
    }
}

/// `conset_pending`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetPending {
    /// The token's numbers.
    pub numbers: [u64; 3],
}

/// Begins an exchange.
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
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_begin", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let token = typed!(number_type, W => {
                cell.begin(plan, op, array(x.cast::<W>(), words, "x")?)?
            });
            write(pending, "pending", ConsetPending { numbers: token.to_numbers() })
        })
    }
}

/// Whether an exchange can be ended without waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_test(
    cell: *mut ConsetCell,
    pending: *const ConsetPending,
    done: *mut c_int,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_test", cell, |cell| {
            let pending = array(pending, 1, "pending")?[0];
            write(done, "done", 0)?;
            let is_done = cell.test(&Pending::from_numbers(pending.numbers))?;
            write(done, "done", c_int::from(is_done))
        })
    }
}

/// Ends an exchange.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_end(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    pending: *const ConsetPending,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_end", cell, |cell| {
            let plan = value(plan, "plan")?;
            let pending = Pending::from_numbers(array(pending, 1, "pending")?[0].numbers);
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.end(plan, pending, x)?)
            })
        })
    }
}

/// Combines the arrays of all cells; every cell has the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_allreduce(
    cell: *mut ConsetCell,
    trees: *const ConsetTrees,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_allreduce", cell, |cell| {
            let (trees, op) = (value(trees, "trees")?, op(operation)?);
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.allreduce(trees, op, x)?)
            })
        })
    }
}

/// Gives all cells the array of one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_broadcast(
    cell: *mut ConsetCell,
    trees: *const ConsetTrees,
    from: u32,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_broadcast", cell, |cell| {
            let trees = value(trees, "trees")?;
            typed!(number_type, W => {
                let x = array_mut(x.cast::<W>(), words, "x")?;
                Ok(cell.broadcast(trees, CellId(from), x)?)
            })
        })
    }
}

/// Returns when all cells have called it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_barrier(cell: *mut ConsetCell, trees: *const ConsetTrees) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { call("conset_barrier", cell, |cell| Ok(cell.barrier(value(trees, "trees")?)?)) }
}
