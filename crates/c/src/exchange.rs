//! Exchanges of vectors by plans and by lists of positions, and collectives.
//!
//! One function, `on`, performs every operation on a vector; the functions of the interface check
//! their arguments and call it.

use std::ffi::{c_int, c_void};

use conset::ir::CellId;
use conset::ir::convert::index;
use conset_runtime::lists::CellLists;
use conset_runtime::{By, Cell, Collectives, Op, Pending, Plan};

use crate::cell::{ConsetCell, call};
use crate::handle::value;
use crate::lists::ConsetLists;
use crate::memory::{array, array_mut, by_of, op, typed, vectors_mut, write};
use crate::plan::{ConsetPlan, ConsetTrees};
use crate::status::CallFault;

/// An operation on a vector.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    Exchange(By, &'a Plan, Op),
    ExchangeLists(usize, &'a CellLists, Op),
    CombineShared(By, &'a Plan, Op),
    CombineOwned(By, &'a Plan, &'a Plan, Op),
    Wait(&'a Plan, Pending),
    Allreduce(&'a Collectives, Op),
    Reduce(&'a Collectives, Op),
    Broadcast(&'a Collectives, CellId),
}

/// A vector of the caller: the type of its numbers, its address, its length.
#[derive(Clone, Copy)]
pub(crate) struct Vector(pub(crate) c_int, pub(crate) *mut c_void, pub(crate) usize);

/// Performs an operation on a vector.
///
/// # Safety
/// The rules of `memory` hold for the vector.
pub(crate) unsafe fn on(
    cell: &mut Cell<'_>,
    what: What<'_>,
    vector: Vector,
) -> Result<(), CallFault> {
    let Vector(number_type, x, words) = vector;
    typed!(number_type, W => {
        // SAFETY: the caller's promise.
        let x = unsafe { array_mut(x.cast::<W>(), words, "x")? };
        match what {
            What::Exchange(by, plan, op) => cell.exchange_nodes_by(by, plan, op, x),
            What::ExchangeLists(set, lists, op) => cell.exchange_lists(set, lists, op, x),
            What::CombineShared(by, plan, op) => cell.combine_shared_by(by, plan, op, x),
            What::CombineOwned(by, back, forth, op) => {
                cell.combine_owned_by(by, back, forth, op, x)
            }
            What::Wait(plan, pending) => cell.wait(plan, pending, x),
            What::Allreduce(trees, op) => cell.allreduce(trees, op, x),
            What::Reduce(trees, op) => cell.reduce(trees, op, x),
            What::Broadcast(trees, from) => cell.broadcast(trees, from, x),
        }?;
        Ok(())
    })
}

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
            let what = What::Exchange(By::Phases, value(plan, "plan")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Exchanges a vector by phases or by messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange_by(
    cell: *mut ConsetCell,
    by: c_int,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_by", cell, |cell| {
            let what = What::Exchange(by_of(by)?, value(plan, "plan")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Exchanges a set by lists of positions in a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange_lists(
    cell: *mut ConsetCell,
    set: u32,
    lists: *const ConsetLists,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_lists", cell, |cell| {
            let what = What::ExchangeLists(index(set), value(lists, "lists")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Combines all copies of each entry.
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
            let what = What::CombineShared(By::Phases, value(plan, "plan")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Combines all copies of each entry, by phases or by messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_combine_shared_by(
    cell: *mut ConsetCell,
    by: c_int,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_combine_shared_by", cell, |cell| {
            let what = What::CombineShared(by_of(by)?, value(plan, "plan")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Sums all copies of each entry.
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
            let what = What::CombineShared(By::Phases, value(plan, "plan")?, Op::Add);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Combines ghosts with the values of their owners and returns the results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_combine_owned(
    cell: *mut ConsetCell,
    backward: *const ConsetPlan,
    forward: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_combine_owned", cell, |cell| {
            let what = What::CombineOwned(
                By::Phases,
                value(backward, "backward")?,
                value(forward, "forward")?,
                op(operation)?,
            );
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Combines ghosts with the values of their owners, by phases or by messages.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_combine_owned_by(
    cell: *mut ConsetCell,
    by: c_int,
    backward: *const ConsetPlan,
    forward: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_combine_owned_by", cell, |cell| {
            let what = What::CombineOwned(
                by_of(by)?,
                value(backward, "backward")?,
                value(forward, "forward")?,
                op(operation)?,
            );
            on(cell, what, Vector(number_type, x, words))
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
                let mut vectors = vectors_mut::<W>(vectors, words, count)?;
                Ok(cell.exchange_many_by(By::Phases, plan, op, &mut vectors)?)
            })
        })
    }
}

/// Exchanges several vectors at a time, by phases or by messages.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_exchange_many_by(
    cell: *mut ConsetCell,
    by: c_int,
    plan: *const ConsetPlan,
    operation: c_int,
    number_type: c_int,
    vectors: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_many_by", cell, |cell| {
            let (plan, op) = (value(plan, "plan")?, op(operation)?);
            let by = by_of(by)?;
            typed!(number_type, W => {
                let mut vectors = vectors_mut::<W>(vectors, words, count)?;
                Ok(cell.exchange_many_by(by, plan, op, &mut vectors)?)
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
            let what = What::Allreduce(value(trees, "trees")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// Combines the arrays of all cells; the root of the trees has the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_reduce(
    cell: *mut ConsetCell,
    trees: *const ConsetTrees,
    operation: c_int,
    number_type: c_int,
    x: *mut c_void,
    words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_reduce", cell, |cell| {
            let what = What::Reduce(value(trees, "trees")?, op(operation)?);
            on(cell, what, Vector(number_type, x, words))
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
            let what = What::Broadcast(value(trees, "trees")?, CellId(from));
            on(cell, what, Vector(number_type, x, words))
        })
    }
}

/// The greatest of all cells' values, and where it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_allreduce_max_at(
    cell: *mut ConsetCell,
    trees: *const ConsetTrees,
    number_type: c_int,
    greatest: *mut c_void,
    at: *mut u64,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_allreduce_max_at", cell, |cell| {
            let trees = value(trees, "trees")?;
            let own_at = array(at, 1, "at")?[0];
            typed!(number_type, W => {
                let own = array(greatest.cast::<W>(), 1, "greatest")?[0];
                let (most, most_at) = cell.allreduce_max_at(trees, own, own_at)?;
                write(greatest.cast::<W>(), "greatest", most)?;
                write(at, "at", most_at)
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
