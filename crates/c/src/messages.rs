//! Messages between two cells: those that are copied and wait for their receiver, and those whose
//! sender waits.

use std::ffi::{c_int, c_void};

use conset::ir::CellId;

use crate::cell::{ConsetCell, call};
use crate::memory::{array, array_mut, read_and_written, typed, write};

/// Sends a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_send(
    cell: *mut ConsetCell,
    target: u32,
    number_type: c_int,
    words: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_send", cell, |cell| {
            typed!(number_type, W => {
                let words = array(words.cast::<W>(), count, "words")?;
                Ok(cell.msg_send(CellId(target), words)?)
            })
        })
    }
}

/// Receives a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_receive(
    cell: *mut ConsetCell,
    source: u32,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_receive", cell, |cell| {
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), count, "words")?;
                Ok(cell.msg_receive(CellId(source), words)?)
            })
        })
    }
}

/// Receives the next message from a cell if one has come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_try_receive(
    cell: *mut ConsetCell,
    source: u32,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
    found: *mut c_int,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_try_receive", cell, |cell| {
            write(found, "found", 0)?;
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), count, "words")?;
                let has_come = cell.msg_try_receive(CellId(source), words)?;
                write(found, "found", c_int::from(has_come))
            })
        })
    }
}

/// Receives the next message from any cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_receive_any(
    cell: *mut ConsetCell,
    number_type: c_int,
    words: *mut c_void,
    room: usize,
    source: *mut u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_receive_any", cell, |cell| {
            write(source, "source", u32::MAX)?;
            write(count, "count", 0)?;
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), room, "words")?;
                let (from, found) = cell.msg_receive_any(words)?;
                write(source, "source", from.0)?;
                write(count, "count", found)
            })
        })
    }
}

/// Sends words to a cell that asks for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_send(
    cell: *mut ConsetCell,
    target: u32,
    number_type: c_int,
    words: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_send", cell, |cell| {
            typed!(number_type, W => {
                let words = array(words.cast::<W>(), count, "words")?;
                Ok(cell.send(CellId(target), words)?)
            })
        })
    }
}

/// Receives words of a cell that sends them with `conset_send` or `conset_send_receive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_receive(
    cell: *mut ConsetCell,
    source: u32,
    number_type: c_int,
    words: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_receive", cell, |cell| {
            typed!(number_type, W => {
                let words = array_mut(words.cast::<W>(), count, "words")?;
                Ok(cell.receive(CellId(source), words)?)
            })
        })
    }
}

/// Sends to a cell and receives from one at the same time.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_send_receive(
    cell: *mut ConsetCell,
    number_type: c_int,
    target: u32,
    outgoing: *const c_void,
    outgoing_words: usize,
    source: u32,
    incoming: *mut c_void,
    incoming_words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_send_receive", cell, |cell| {
            typed!(number_type, W => {
                let from = (outgoing.cast::<W>(), outgoing_words, "outgoing");
                let into = (incoming.cast::<W>(), incoming_words, "incoming");
                let (outgoing, incoming) = read_and_written(from, into)?;
                Ok(cell.send_receive(CellId(target), outgoing, CellId(source), incoming)?)
            })
        })
    }
}
