//! Exchanges in two halves: begun, asked for, ended.
//!
//! What was begun is named by numbers that the caller keeps, in a structure of its own.

use std::ffi::{c_int, c_void};

use conset_runtime::{Cell, CellError, Number, Op, Pending, Plan};

use crate::cell::{ConsetCell, call};
use crate::exchange::{Vector, What, on};
use crate::handle::value;
use crate::memory::{array, op, typed, vectors, vectors_mut, write};
use crate::plan::ConsetPlan;
use crate::status::Fault;

/// `conset_pending`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetPending {
    /// The token's numbers.
    pub numbers: [u64; 3],
}

/// What is begun.
#[derive(Clone, Copy)]
enum Half {
    Exchange,
    Shared,
}

impl Half {
    fn begin<W: Number>(
        self,
        cell: &mut Cell<'_>,
        (plan, op): (&Plan, Op),
        vectors: &[&[W]],
    ) -> Result<Pending, CellError> {
        match (self, vectors) {
            (Half::Shared, [x]) => cell.begin_shared(plan, op, x),
            _ => cell.begin_many(plan, op, vectors),
        }
    }
}

/// Begins with one vector.
///
/// # Safety
/// As [`call`]; the rules of `memory` hold for all pointers.
unsafe fn begin(
    function: &str,
    cell: *mut ConsetCell,
    half: Half,
    (plan, operation): (*const ConsetPlan, c_int),
    Vector(number_type, x, words): Vector,
    pending: *mut ConsetPending,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(function, cell, |cell| {
            let how = (&**value(plan, "plan")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let begun = typed!(number_type, W => {
                half.begin(cell, how, &[array(x.cast::<W>().cast_const(), words, "x")?])?
            });
            write(pending, "pending", ConsetPending { numbers: begun.to_numbers() })
        })
    }
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
    let vector = Vector(number_type, x.cast_mut(), words);
    let plan = (plan, operation);
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { begin("conset_begin", cell, Half::Exchange, plan, vector, pending) }
}

/// Begins to make all copies of an entry what all of them together are.
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
    let vector = Vector(number_type, x.cast_mut(), words);
    let plan = (plan, operation);
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { begin("conset_begin_shared", cell, Half::Shared, plan, vector, pending) }
}

/// Begins an exchange of several vectors.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "an interface of C: what to begin, and with what")]
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
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_begin_many", cell, |cell| {
            let how = (&**value(plan, "plan")?, op(operation)?);
            write(pending, "pending", ConsetPending::default())?;
            let begun = typed!(number_type, W => {
                let vectors = self::vectors::<W>(vectors, words, count)?;
                Half::Exchange.begin(cell, how, &vectors)?
            });
            write(pending, "pending", ConsetPending { numbers: begun.to_numbers() })
        })
    }
}

/// # Safety
/// The rules of `memory` hold for the pointer.
unsafe fn token(pending: *const ConsetPending) -> Result<Pending, Fault> {
    // SAFETY: the caller's promise.
    let pending = unsafe { array(pending, 1, "pending")?[0] };
    Ok(Pending::from_numbers(pending.numbers))
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
            let pending = token(pending)?;
            write(done, "done", 0)?;
            write(done, "done", c_int::from(cell.test(&pending)?))
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
            let what = What::End(value(plan, "plan")?, token(pending)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Ends an exchange of several vectors.
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
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_end_many", cell, |cell| {
            let (plan, pending) = (value(plan, "plan")?, token(pending)?);
            typed!(number_type, W => {
                let mut vectors = vectors_mut::<W>(vectors, words, count)?;
                Ok(cell.end_many(plan, pending, &mut vectors)?)
            })
        })
    }
}
