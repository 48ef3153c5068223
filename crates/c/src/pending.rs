//! Nonblocking exchanges and reductions: start, test, wait.
//!
//! The caller keeps the token of a started exchange, which is plain numbers, in a structure of its
//! own.

use std::ffi::{c_int, c_void};

use conset_runtime::{Cell, CellError, Number, Op, Pending, Plan};

use crate::cell::{ConsetCell, call};
use crate::exchange::{Vector, What, on};
use crate::handle::value;
use crate::memory::{array, array_mut, op, typed, vectors, vectors_mut, write};
use crate::plan::{ConsetPlan, ConsetTrees};
use crate::status::CallFault;

/// `conset_pending`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetPending {
    /// The token's numbers.
    pub numbers: [u64; 3],
}

/// The kind of exchange to start.
#[derive(Clone, Copy)]
enum Start {
    Exchange,
    Shared,
}

impl Start {
    fn start<W: Number>(
        self,
        cell: &mut Cell<'_>,
        (plan, op): (&Plan, Op),
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        match (self, vectors) {
            (Start::Shared, [x]) => cell.start_shared(plan, op, x),
            _ => cell.start_many(plan, op, vectors),
        }
    }
}

/// Starts an exchange of one vector.
///
/// # Safety
/// As [`call`]; the rules of `memory` hold for all pointers.
unsafe fn start(
    function: &str,
    cell: *mut ConsetCell,
    kind: Start,
    (plan, operation): (*const ConsetPlan, c_int),
    Vector(number_type, x, words): Vector,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(function, cell, |cell| {
            let how = (&**value(plan, "plan")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let started = typed!(number_type, W => {
                kind.start(cell, how, &[array(x.cast::<W>().cast_const(), words, "x")?])?
            });
            write(pending, "pending", ConsetPending { numbers: started.to_numbers() })
        })
    }
}

/// Starts an exchange.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_start(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *const c_void,
    words: usize,
    pending: *mut ConsetPending,
) -> c_int {
    let vector = Vector(number_type, x.cast_mut(), words);
    let plan = (plan, operation);
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { start("conset_start", cell, Start::Exchange, plan, vector, pending) }
}

/// Starts to combine all copies of each entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_start_shared(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *const c_void,
    words: usize,
    pending: *mut ConsetPending,
) -> c_int {
    let vector = Vector(number_type, x.cast_mut(), words);
    let plan = (plan, operation);
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { start("conset_start_shared", cell, Start::Shared, plan, vector, pending) }
}

/// Starts an exchange of several vectors.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_start_many(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    vectors: *const *const c_void,
    words: *const usize,
    count: usize,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_start_many", cell, |cell| {
            let how = (&**value(plan, "plan")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let started = typed!(number_type, W => {
                let vectors = self::vectors::<W>(vectors, words, count)?;
                Start::Exchange.start(cell, how, &vectors)?
            });
            write(pending, "pending", ConsetPending { numbers: started.to_numbers() })
        })
    }
}

/// Starts to combine the arrays of all cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_start_allreduce(
    cell: *mut ConsetCell,
    trees: *const ConsetTrees,
    operation: c_int,
    number_type: c_int,
    x: *const c_void,
    words: usize,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_start_allreduce", cell, |cell| {
            let (trees, operation) = (value(trees, "trees")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let started = typed!(number_type, W => {
                cell.start_allreduce(trees, operation, array(x.cast::<W>(), words, "x")?)?
            });
            write(pending, "pending", ConsetPending { numbers: started.to_numbers() })
        })
    }
}

/// Completes a reduction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_wait_allreduce(
    cell: *mut ConsetCell,
    pending: *const ConsetPending,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_wait_allreduce", cell, |cell| {
            let pending = token(pending)?;
            typed!(number_type, W => {
                Ok(cell.wait_allreduce(pending, array_mut(x.cast::<W>(), words, "x")?)?)
            })
        })
    }
}

/// # Safety
/// The rules of `memory` hold for the pointer.
unsafe fn token(pending: *const ConsetPending) -> Result<Pending, CallFault> {
    // SAFETY: the caller's promise.
    let pending = unsafe { array(pending, 1, "pending")?[0] };
    Ok(Pending::from_numbers(pending.numbers))
}

/// Whether an exchange can be completed without waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_test(
    cell: *mut ConsetCell,
    pending: *const ConsetPending,
    done: *mut c_int,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_test", cell, |cell| {
            let pending = token(pending)?;
            write(done, "done", 0)?;
            write(done, "done", c_int::from(cell.test(&pending)?))
        })
    }
}

/// Completes an exchange.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_wait(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    pending: *const ConsetPending,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_wait", cell, |cell| {
            let what = What::Wait(value(plan, "plan")?, token(pending)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Completes an exchange of several vectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_wait_many(
    cell: *mut ConsetCell,
    plan: *const ConsetPlan,
    pending: *const ConsetPending,
    number_type: c_int,
    vectors: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_wait_many", cell, |cell| {
            let (plan, pending) = (value(plan, "plan")?, token(pending)?);
            typed!(number_type, W => {
                let mut vectors = vectors_mut::<W>(vectors, words, count)?;
                Ok(cell.wait_many(plan, pending, &mut vectors)?)
            })
        })
    }
}
