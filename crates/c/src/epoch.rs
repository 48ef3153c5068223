//! Epochs: items of so many bytes, to any cells, handled by a function of the program.
//!
//! An epoch belongs to the cell that has opened it and lives until it is closed, at the latest when
//! the callback of the cell returns. It is given alone to the functions here: the cell is that whose
//! callback the thread executes, and the epoch one that this cell has open. Both are found out before
//! the pointer is followed, so that an epoch of another cell, or of the past, is an error.
//!
//! While items are handled nothing borrows the epoch, so the handler sends by the same function as the
//! callback does.

use std::cell::{Cell as Slot, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;

use conset::ir::CellId;
use conset_runtime::{ByteOutbox, Cell, CellError, ROUNDS, Settled};

use crate::cell::{ConsetCell, call_with_epochs, current};
use crate::entry::enter;
use crate::handle::{self, Handle, Tagged, value};
use crate::memory::{array, check_pointer, write};
use crate::status::{CallFault, Status};

/// The most bytes of an item.
const ITEM_LIMIT: usize = 1 << 30;

/// An epoch of a cell.
#[derive(Debug)]
pub struct OpenEpoch {
    out: RefCell<ByteOutbox>,
    /// Bytes of an item.
    bytes: usize,
    /// Rounds in which it has to settle.
    limit: Slot<u64>,
}

/// `conset_epoch`.
pub type ConsetEpoch = Handle<OpenEpoch>;

impl Tagged for OpenEpoch {
    const TAG: [u8; 8] = *b"csepoch1";
    const NAME: &'static str = "conset_epoch";
}

/// `conset_settled`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetSettled {
    /// Rounds in which any cell had an item under way.
    pub rounds: u64,
    /// Items that the cell has handled.
    pub handled: u64,
}

/// `conset_handler`.
pub type ConsetHandler =
    Option<unsafe extern "C" fn(*mut ConsetEpoch, u32, *const c_void, *mut c_void) -> c_int>;

/// The epochs that a cell has open.
#[derive(Debug, Default)]
pub(crate) struct OpenEpochs(RefCell<Vec<*mut ConsetEpoch>>);

impl OpenEpochs {
    fn check(&self, epoch: *mut ConsetEpoch) -> Result<(), CallFault> {
        check_pointer(epoch, "epoch")?;
        match self.0.borrow().contains(&epoch) {
            true => Ok(()),
            false => Err(foreign()),
        }
    }

    /// Closes what the callback has left open. Items that were not delivered end the run with an error.
    pub(crate) fn close_all(&self, cell: &mut Cell<'_>) {
        for epoch in self.0.take() {
            // SAFETY: it is open, so it is alive, and nobody uses it any more.
            unsafe {
                if let Ok(open) = value(epoch, "epoch") {
                    open.out.borrow_mut().abandon(cell);
                }
                // It is a live handle of this kind.
                let _: Result<(), CallFault> = handle::free(epoch);
            }
        }
    }
}

fn foreign() -> CallFault {
    CallFault::new(Status::BadHandle, "this epoch is not one that the callback's cell has open")
}

thread_local! {
    /// The epoch whose handler this thread is executing.
    static HANDLED: Slot<*mut ConsetEpoch> = const { Slot::new(ptr::null_mut()) };
}

/// For as long as it lives this thread executes the handler of an epoch.
struct Handling(*mut ConsetEpoch);

impl Handling {
    fn of(epoch: *mut ConsetEpoch) -> Self {
        Self(HANDLED.replace(epoch))
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        HANDLED.set(self.0);
    }
}

/// The body of a call on an epoch that the thread's cell has open, and which is therefore alive.
///
/// # Safety
/// None of the pointer.
unsafe fn on_epoch(
    function: &str,
    epoch: *mut ConsetEpoch,
    body: impl FnOnce(&mut Cell<'_>, &OpenEpochs) -> Result<(), CallFault>,
) -> c_int {
    let cell = current();
    if cell.is_null() {
        return enter(function, || {
            check_pointer(epoch, "epoch")?;
            let message = match epoch == HANDLED.get() {
                true => "the items of this epoch are being handled; only send them",
                false => "no callback has this epoch on this thread",
            };
            Err(CallFault::new(Status::BadHandle, message))
        });
    }
    // SAFETY: the cell is the callback's own.
    unsafe {
        call_with_epochs(function, cell, |cell, epochs| {
            epochs.check(epoch)?;
            body(cell, epochs)
        })
    }
}

/// Opens an epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_epoch_open(
    cell: *mut ConsetCell,
    item_bytes: usize,
    epoch: *mut *mut ConsetEpoch,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call_with_epochs("conset_epoch_open", cell, |cell, epochs| {
            if item_bytes > ITEM_LIMIT {
                let message = format!("item_bytes is {item_bytes}, at most {ITEM_LIMIT}");
                return Err(CallFault::argument(message));
            }
            let out = RefCell::new(ByteOutbox::new(cell, item_bytes));
            let open = OpenEpoch { out, bytes: item_bytes, limit: Slot::new(ROUNDS) };
            handle::give(epoch, open)?;
            epochs.0.borrow_mut().push(*epoch);
            Ok(())
        })
    }
}

/// Sets the number of rounds after which an epoch fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_epoch_limit_rounds(epoch: *mut ConsetEpoch, rounds: u64) -> c_int {
    // SAFETY: the epoch is open.
    unsafe {
        on_epoch("conset_epoch_limit_rounds", epoch, |_, _| {
            value(epoch, "epoch")?.limit.set(rounds);
            Ok(())
        })
    }
}

/// Sends an item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_epoch_send(
    epoch: *mut ConsetEpoch,
    target: u32,
    item: *const c_void,
) -> c_int {
    const NAME: &str = "conset_epoch_send";
    if !epoch.is_null() && epoch == HANDLED.get() {
        return enter(NAME, || {
            // SAFETY: its items are being handled, so it is alive; the caller keeps the rules of
            // `memory`.
            unsafe {
                let open = value(epoch, "epoch")?;
                send(open, CellId(target), item)?;
                // The run ends with the error when the round has been handled.
                Ok(open.out.borrow().check().map_err(CellError::from)?)
            }
        });
    }
    // SAFETY: the epoch is open; the caller keeps the rules of `memory`.
    unsafe {
        on_epoch(NAME, epoch, |cell, _| {
            let open = value(epoch, "epoch")?;
            send(open, CellId(target), item)?;
            Ok(open.out.borrow().check_of(cell)?)
        })
    }
}

/// # Safety
/// The rules of `memory` hold for the item.
unsafe fn send(open: &OpenEpoch, target: CellId, item: *const c_void) -> Result<(), CallFault> {
    // SAFETY: the caller's promise.
    let item = unsafe { array(item.cast::<u8>(), open.bytes, "item")? };
    // What stands for an item of no bytes.
    let item = if item.is_empty() { &[0] } else { item };
    open.out.borrow_mut().send(target, item);
    Ok(())
}

/// Delivers all items until none is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_epoch_settle(
    epoch: *mut ConsetEpoch,
    handler: ConsetHandler,
    data: *mut c_void,
    settled: *mut ConsetSettled,
) -> c_int {
    // SAFETY: the caller keeps the rules of `memory`, and gave the handler for such calls.
    unsafe {
        on_epoch("conset_epoch_settle", epoch, |cell, _| {
            let open = value(epoch, "epoch")?;
            let handler =
                handler.ok_or_else(|| CallFault::new(Status::NullPointer, "handler is null"))?;
            if !settled.is_null() {
                write(settled, "settled", ConsetSettled::default())?;
            }
            let handle =
                |source: CellId, item: *const u8| handler(epoch, source.0, item.cast(), data);
            let Settled { rounds, handled, .. } = settle(cell, (epoch, open), handle)?;
            if settled.is_null() {
                return Ok(());
            }
            write(settled, "settled", ConsetSettled { rounds, handled })
        })
    }
}

/// Settles an epoch; what a handler returns beside 0 ends the run.
fn settle(
    cell: &mut Cell<'_>,
    (epoch, open): (*mut ConsetEpoch, &OpenEpoch),
    handle: impl Fn(CellId, *const u8) -> c_int,
) -> Result<Settled, CallFault> {
    let (mut settled, mut copy) = (Settled::default(), Vec::new());
    let step = open.bytes.max(1);
    loop {
        let round = open.out.borrow_mut().next_round(cell, &mut settled, open.limit.get())?;
        let Some(lists) = round else { return Ok(settled) };
        let handling = Handling::of(epoch);
        for (source, bytes) in lists {
            for item in aligned(&bytes, &mut copy).chunks_exact(step) {
                match handle(source, item.as_ptr()) {
                    0 => {}
                    status => {
                        drop(handling);
                        let why = format!("the handler of an epoch returned {status}");
                        return Err(cell.abort(why).into());
                    }
                }
            }
            open.out.borrow_mut().reuse(bytes);
        }
    }
}

/// The bytes, or a copy of them, at an address that is a multiple of 8.
fn aligned<'a>(bytes: &'a [u8], copy: &'a mut Vec<u64>) -> &'a [u8] {
    if bytes.as_ptr().cast::<u64>().is_aligned() {
        return bytes;
    }
    copy.clear();
    copy.resize(bytes.len().div_ceil(size_of::<u64>()), 0);
    // SAFETY: as many bytes as there are numbers for; any bytes are numbers, and these are bytes.
    unsafe {
        let start = copy.as_mut_ptr().cast::<u8>();
        ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
        std::slice::from_raw_parts(start, bytes.len())
    }
}

/// Closes an epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_epoch_close(epoch: *mut ConsetEpoch) -> c_int {
    // SAFETY: the epoch is open, and nobody uses it meanwhile.
    unsafe {
        on_epoch("conset_epoch_close", epoch, |cell, epochs| {
            let ended = value(epoch, "epoch")?.out.borrow_mut().end(cell);
            epochs.0.borrow_mut().retain(|&one| one != epoch);
            handle::free(epoch)?;
            Ok(ended?)
        })
    }
}
