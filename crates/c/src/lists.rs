//! Lists of positions: exchanging a set between given positions of a vector.
//!
//! Layouts make such lists from ids. Programs that have the lists already, or whose vectors fit no
//! layout, pass them: for each outgoing connection of a cell the positions to send, for each
//! incoming one the positions to receive into.

use std::ffi::c_int;

use conset_runtime::lists::{CellLists, Positions};

use crate::entry::enter;
use crate::handle::{self, Handle, Tagged};
use crate::memory::{array, lists_of};
use crate::status::CallFault;

/// `conset_lists`.
pub type ConsetLists = Handle<CellLists>;

impl Tagged for CellLists {
    const TAG: [u8; 8] = *b"cslists1";
    const NAME: &'static str = "conset_lists";
}

/// `conset_rows`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetRows {
    /// How many lists.
    pub count: usize,
    /// Where each begins; one longer than there are lists.
    pub first: *const usize,
    /// The positions of all lists.
    pub positions: *const u32,
}

/// The lists of a cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_lists_new(
    send: *const ConsetRows,
    receive: *const ConsetRows,
    block: usize,
    lists: *mut *mut ConsetLists,
) -> c_int {
    enter("conset_lists_new", || {
        if block == 0 {
            return Err(CallFault::argument(
                "block is 0, expected at least 1 word for each position",
            ));
        }
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let (send, receive) = (positions(send, "send")?, positions(receive, "receive")?);
            handle::give(lists, CellLists::new(send, receive, block))
        }
    })
}

/// # Safety
/// The rules of `memory` hold for the structure and its arrays.
unsafe fn positions(rows: *const ConsetRows, name: &str) -> Result<Positions, CallFault> {
    // SAFETY: the caller's promise.
    let ConsetRows { count, first, positions } = unsafe { array(rows, 1, name)?[0] };
    // SAFETY: the caller's promise.
    let lists = unsafe {
        lists_of(
            count,
            (first, &format!("{name}.first")),
            (positions, &format!("{name}.positions")),
        )?
    };
    let all: usize = lists.iter().map(|list| list.len()).sum();
    if u32::try_from(all).is_err() {
        let message = format!("{name} has {all} positions, at most {}", u32::MAX);
        return Err(CallFault::argument(message));
    }
    Ok(Positions::new(lists))
}

/// Frees lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_lists_free(lists: *mut ConsetLists) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_lists_free", || unsafe { handle::free(lists) });
}
