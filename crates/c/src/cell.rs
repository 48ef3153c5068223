//! Cells: handles that are valid within a callback, one pointer for each.
//!
//! A cell may be used only by its own callback, while that runs and no call of it is in progress.
//! Each thread knows the cell whose callback it executes, and rejects calls with another pointer
//! before it dereferences the pointer. A cell that a callback passes to another callback, to a
//! thread, or to a run inside its run, or that is kept until after the run, is therefore an error,
//! and neither a race nor a crash.
//!
//! A call that fails aborts the run, whether the runtime or the check of the arguments found the
//! error.

use std::cell::Cell as Slot;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use conset::ir::convert::index;
use conset::ir::{ConnectionId, PhaseId};
use conset_runtime::Cell;

use crate::entry::{enter, enter_for};
use crate::epoch::OpenEpochs;
use crate::handle::{self, Handle, Tagged};
use crate::memory::{array, array_mut, check_pointer, text, typed, write};
use crate::status::{CallFault, Status};

/// A cell while a callback has it. Its own lifetime is not known here.
#[derive(Debug)]
pub struct Lent {
    cell: *mut Cell<'static>,
    epochs: OpenEpochs,
}

/// `conset_cell`.
pub type ConsetCell = Handle<Lent>;

impl Tagged for Lent {
    const TAG: [u8; 8] = *b"cscell_1";
    const NAME: &'static str = "conset_cell";
}

thread_local! {
    /// The cell whose callback's own code this thread is executing.
    static CURRENT: Slot<*const ConsetCell> = const { Slot::new(ptr::null()) };
}

/// For as long as it lives this thread executes the code of other callbacks, or of none;
/// afterwards that of the one that was there before.
pub(crate) struct Turn(*const ConsetCell);

impl Turn {
    /// Nobody's: calls that wait let other callbacks run on this thread, and so do runs.
    pub(crate) fn of_none() -> Self {
        Self(CURRENT.replace(ptr::null()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Lends a cell to a callback.
pub(crate) fn lend(cell: &mut Cell<'_>, callback: impl FnOnce(*mut ConsetCell) -> c_int) -> c_int {
    let pointer = ptr::from_mut(cell).cast::<Cell<'static>>();
    let mut lent = handle::handle(Lent { cell: pointer, epochs: OpenEpochs::default() });
    let lent = &raw mut lent;
    // Others may have run on this thread since the cell was lent, and none is to be current when it
    // is given back: whoever goes on then goes on at the end of a call, and says so itself.
    CURRENT.set(lent);
    let status = callback(lent);
    CURRENT.set(ptr::null());
    // SAFETY: the handle is of this function, and the callback, which had the cell, has returned.
    if let Ok(Lent { cell, epochs }) = unsafe { handle::value(lent, "cell") } {
        // SAFETY: as above.
        epochs.close_all(unsafe { &mut **cell });
    }
    status
}

/// The cell whose callback's own code this thread executes; null if there is none.
pub(crate) fn current() -> *mut ConsetCell {
    CURRENT.get().cast_mut()
}

/// Does something with a cell.
///
/// # Safety
/// None of the pointer; `body` must do with any lifetime of the cell.
unsafe fn with<T>(
    pointer: *const ConsetCell,
    body: impl FnOnce(&mut Cell<'_>) -> Result<T, CallFault>,
) -> Result<T, CallFault> {
    // SAFETY: the caller's promise.
    unsafe { with_epochs(pointer, |cell, _| body(cell)) }
}

/// Does something with a cell and the epochs that it has open.
///
/// # Safety
/// As [`with`].
unsafe fn with_epochs<T>(
    pointer: *const ConsetCell,
    body: impl FnOnce(&mut Cell<'_>, &OpenEpochs) -> Result<T, CallFault>,
) -> Result<T, CallFault> {
    check_pointer(pointer, "cell")?;
    if pointer != CURRENT.get() {
        let message = match CURRENT.get().is_null() {
            true => "no callback has this cell on this thread",
            false => "this cell is not the callback's own",
        };
        return Err(CallFault::new(Status::BadHandle, message));
    }
    let _turn = Turn::of_none();
    // SAFETY: this thread executes the callback that has this cell, so it is alive.
    let Lent { cell, epochs } = unsafe { handle::value(pointer, "cell")? };
    // SAFETY: `lend` borrowed the cell for as long as the callback runs and does not touch it
    // meanwhile; the turn keeps other calls away.
    let cell = unsafe { &mut **cell };
    cell.check_stack()?;
    body(cell, epochs)
}

/// The body of a call: what fails before the runtime could look at it ends the run, too.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn call(
    function: &str,
    pointer: *mut ConsetCell,
    body: impl FnOnce(&mut Cell<'_>) -> Result<(), CallFault>,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call_with_epochs(function, pointer, |cell, _| body(cell)) }
}

/// [`call`], with the epochs that the cell has open.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn call_with_epochs(
    function: &str,
    pointer: *mut ConsetCell,
    body: impl FnOnce(&mut Cell<'_>, &OpenEpochs) -> Result<(), CallFault>,
) -> c_int {
    enter(function, || {
        // SAFETY: the caller's promise.
        unsafe {
            with_epochs(pointer, |cell, epochs| {
                body(cell, epochs).inspect_err(|fault| {
                    if is_ours(fault.status) {
                        let _ = cell.abort(format!("{function}: {}", fault.message));
                    }
                })
            })
        }
    })
}

/// Faults of arguments, which the runtime does not know of.
fn is_ours(status: Status) -> bool {
    matches!(status, Status::NullPointer | Status::BadArgument | Status::BadHandle)
}

/// The cell's number; the largest number for what is no cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_id(cell: *const ConsetCell) -> u32 {
    enter_for("conset_id", u32::MAX, || {
        // SAFETY: the callback's own cell.
        unsafe { with(cell, |cell| Ok(cell.id().0)) }
    })
}

/// Number of cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_cell_count(cell: *const ConsetCell) -> usize {
    enter_for("conset_cell_count", 0, || {
        // SAFETY: the callback's own cell.
        unsafe { with(cell, |cell| Ok(cell.cell_count())) }
    })
}

/// Clocks since the run began.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_clock(cell: *const ConsetCell) -> u64 {
    enter_for("conset_clock", 0, || {
        // SAFETY: the callback's own cell.
        unsafe { with(cell, |cell| Ok(cell.clock())) }
    })
}

/// Works for a number of clocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_compute(cell: *mut ConsetCell, clocks: u64) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe { call("conset_compute", cell, |cell| Ok(cell.compute(clocks)?)) }
}

/// Says in which round the cell's next calls are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_set_round(cell: *mut ConsetCell, round: u64) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe {
        call("conset_set_round", cell, |cell| {
            cell.set_round(round);
            Ok(())
        })
    }
}

/// Says where in the program the cell's next calls are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_set_place(
    cell: *mut ConsetCell,
    file: *const c_char,
    line: u32,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_set_place", cell, |cell| {
            cell.set_place(leaked(text(file, "file")?), line);
            Ok(())
        })
    }
}

/// The name of a file for as long as the process lives, once for each. There are few; of a program
/// that makes up more than [`FILES`], what is beyond has no name.
fn leaked(file: &str) -> &'static str {
    const FILES: usize = 1 << 12;
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = all.get(file) {
        return name;
    }
    if all.len() >= FILES {
        return "";
    }
    let name: &'static str = Box::leak(file.into());
    all.insert(name);
    name
}

/// Ends the run for all cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_abort(cell: *mut ConsetCell, why: *const c_char) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_abort", cell, |cell| {
            let why = text(why, "why")?;
            Err(cell.abort(why).into())
        })
    }
}

/// The connections of a set that start at the cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_connections_out(
    cell: *mut ConsetCell,
    set: u32,
    connections: *mut *const u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_connections_out", cell, |cell| {
            give_list(cell.connections_out(index(set))?, connections, count)
        })
    }
}

/// The connections of a set that end at the cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_connections_in(
    cell: *mut ConsetCell,
    set: u32,
    connections: *mut *const u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_connections_in", cell, |cell| {
            give_list(cell.connections_in(index(set))?, connections, count)
        })
    }
}

/// # Safety
/// The places are null or can be written.
unsafe fn give_list(
    list: &[ConnectionId],
    connections: *mut *const u32,
    count: *mut usize,
) -> Result<(), CallFault> {
    // An id is one number, and laid out as that.
    const { assert!(size_of::<ConnectionId>() == size_of::<u32>()) };
    // SAFETY: the caller's promise.
    unsafe {
        write(connections, "connections", list.as_ptr().cast())?;
        write(count, "count", list.len())
    }
}

/// Switches to a phase, together with all cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_instantiate_phase(
    cell: *mut ConsetCell,
    set: u32,
    phase: u32,
) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe {
        call("conset_instantiate_phase", cell, |cell| {
            Ok(cell.instantiate_phase((index(set), PhaseId(phase)))?)
        })
    }
}

/// Switches to messages, together with all cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_instantiate_messages(cell: *mut ConsetCell) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe { call("conset_instantiate_messages", cell, |cell| Ok(cell.instantiate_messages()?)) }
}

/// Sends one word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_send_element(
    cell: *mut ConsetCell,
    connection: u32,
    number_type: c_int,
    word: *const c_void,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_send_element", cell, |cell| {
            let connection = ConnectionId(connection);
            typed!(number_type, W => {
                let word = array(word.cast::<W>(), 1, "word")?[0];
                Ok(cell.send_element(connection, word)?)
            })
        })
    }
}

/// Receives one word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_receive_element(
    cell: *mut ConsetCell,
    connection: u32,
    number_type: c_int,
    word: *mut c_void,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_receive_element", cell, |cell| {
            let connection = ConnectionId(connection);
            typed!(number_type, W => {
                let word = array_mut(word.cast::<W>(), 1, "word")?;
                word[0] = cell.receive_element(connection)?;
                Ok(())
            })
        })
    }
}
