//! Collectives of the live cells of any image, without compiled trees, and reductions with an operator
//! of the program.

use std::ffi::{c_int, c_void};

use conset::ir::CellId;

use crate::cell::{ConsetCell, call};
use crate::memory::{array_mut, read_and_written, typed};
use crate::status::{CallFault, Status};

/// `conset_combine`.
pub type ConsetCombine =
    Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void)>;

/// Gives all live cells the array of one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_broadcast_from(
    cell: *mut ConsetCell,
    root: u32,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_broadcast_from", cell, |cell| {
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), count, "words")?;
                Ok(cell.broadcast_from(CellId(root), words)?)
            })
        })
    }
}

/// Brings the words of all live cells to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_gather(
    cell: *mut ConsetCell,
    root: u32,
    number_type: c_int,
    own: *const c_void,
    own_words: usize,
    all: *mut c_void,
    all_words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_gather", cell, |cell| {
            typed!(number_type, W => {
                let from = (own.cast::<W>(), own_words, "own");
                let (own, all) = read_and_written(from, (all.cast::<W>(), all_words, "all"))?;
                Ok(cell.gather(CellId(root), own, all)?)
            })
        })
    }
}

/// Gives each live cell its words of an array of one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_scatter(
    cell: *mut ConsetCell,
    root: u32,
    number_type: c_int,
    all: *const c_void,
    all_words: usize,
    own: *mut c_void,
    own_words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_scatter", cell, |cell| {
            typed!(number_type, W => {
                let from = (all.cast::<W>(), all_words, "all");
                let (all, own) = read_and_written(from, (own.cast::<W>(), own_words, "own"))?;
                Ok(cell.scatter(CellId(root), all, own)?)
            })
        })
    }
}

/// Combines the arrays of all live cells by an operator of the program.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: an array, its type, and an operator with its data"
)]
pub unsafe extern "C" fn conset_reduce_with(
    cell: *mut ConsetCell,
    root: u32,
    block: usize,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
    combine: ConsetCombine,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`, and gave the operator
    // for arrays of the type.
    unsafe {
        call("conset_reduce_with", cell, |cell| {
            let combine =
                combine.ok_or_else(|| CallFault::new(Status::NullPointer, "combine is null"))?;
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), count, "words")?;
                Ok(cell.reduce_with(CellId(root), block, words, |lower, upper| {
                    let count = lower.len();
                    combine(lower.as_mut_ptr().cast(), upper.as_ptr().cast(), count, data);
                })?)
            })
        })
    }
}
