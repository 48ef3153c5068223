//! Halos of an MPI program that calls conset, without a callback.
//!
//! A halo is behind a lock, because its exchanges change it; calls come from one thread at a time
//! anyway. Without the feature `mpi` the functions are there, and return an error.

#![cfg_attr(
    not(feature = "mpi"),
    allow(unused_variables, dead_code, unused_imports, reason = "every call is an error")
)]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::entry::{enter, enter_for};
use crate::handle::{self, Handle, Tagged, value};
use crate::status::{CallFault, Status};

#[cfg(feature = "mpi")]
use crate::layout::write_items;
#[cfg(feature = "mpi")]
use crate::memory::{Type, array, array_mut, op, typed, write};
#[cfg(feature = "mpi")]
use conset::ir::convert::to_usize;
#[cfg(feature = "mpi")]
use conset_runtime::Op;
#[cfg(feature = "mpi")]
use conset_runtime::mpi::{Attached, Comm, Field, Halo, HaloError, PendingExchange};

/// An attached communicator; nothing where the library was built without MPI.
#[derive(Debug)]
pub struct Attachment {
    #[cfg(feature = "mpi")]
    pub(crate) attached: Attached,
}

/// `conset_attached`.
pub type ConsetAttached = Handle<Attachment>;

impl Tagged for Attachment {
    const TAG: [u8; 8] = *b"csattac1";
    const NAME: &'static str = "conset_attached";
}

/// A halo, with what C cannot hold.
#[derive(Debug)]
pub struct HaloState {
    #[cfg(feature = "mpi")]
    halo: Halo,
    /// Of rows of a matrix.
    ghosts: Vec<u64>,
    /// Exchanges under way, by the numbers that the caller has.
    #[cfg(feature = "mpi")]
    pending: BTreeMap<u64, PendingExchange>,
    #[cfg(not(feature = "mpi"))]
    pending: BTreeMap<u64, ()>,
    started: u64,
}

#[cfg(feature = "mpi")]
impl HaloState {
    /// Keeps an exchange that was started, and gives the caller its number.
    ///
    /// # Safety
    /// As [`write`].
    unsafe fn keep(&mut self, pending: PendingExchange, number: *mut u64) -> Result<(), CallFault> {
        self.started += 1;
        self.pending.insert(self.started, pending);
        // SAFETY: the caller's promise.
        unsafe { write(number, "exchange", self.started) }
    }
}

/// `conset_halo`.
pub type ConsetHalo = Handle<Mutex<HaloState>>;

impl Tagged for Mutex<HaloState> {
    const TAG: [u8; 8] = *b"cshalo_1";
    const NAME: &'static str = "conset_halo";
}

/// `conset_field`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetField {
    /// The items of the halo.
    pub vector: *mut c_void,
    /// Bytes of an item.
    pub bytes: usize,
}

#[cfg(feature = "mpi")]
impl From<HaloError> for CallFault {
    fn from(error: HaloError) -> Self {
        let status = match &error {
            HaloError::Setup { .. } => Status::Layout,
            HaloError::Mismatch { .. } | HaloError::Calls { .. } => Status::Mismatch,
            HaloError::Failed { .. } | HaloError::Lost => Status::Aborted,
            HaloError::Mpi(_) => Status::Mpi,
            _ => Status::BadArgument,
        };
        CallFault::new(status, error.to_string())
    }
}

/// A halo's state. Calls come from one thread at a time; a panic leaves nothing half done.
///
/// # Safety
/// As [`value`].
#[cfg(feature = "mpi")]
unsafe fn locked<'a>(
    halo: *const ConsetHalo,
) -> Result<std::sync::MutexGuard<'a, HaloState>, CallFault> {
    // SAFETY: the caller's promise.
    let state = unsafe { value(halo, "halo")? };
    Ok(state.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The body of a function that needs MPI; an error in a library without it.
macro_rules! with_mpi {
    ($($body:tt)*) => {{
        #[cfg(feature = "mpi")]
        {
            $($body)*
        }
        #[cfg(not(feature = "mpi"))]
        {
            use crate::status::{CallFault, Status};
            Err(CallFault::new(Status::Unsupported, crate::run::WITHOUT_MPI))
        }
    }};
}

pub(crate) use with_mpi;

/// A call on a halo and a vector of numbers of the given type, which `array` or `array_mut` reads.
macro_rules! on_vector {
    (
        $name:literal, $read:ident($halo:ident, $type:ident, $vector:ident, $block:ident),
        |$state:ident, $words:ident| $call:expr
    ) => {
        enter($name, || {
            with_mpi! {
                // SAFETY: the caller keeps the rules of `memory`.
                unsafe {
                    typed!($type, W => {
                        let mut $state = locked($halo)?;
                        let $words = $read($vector.cast::<W>(), numbers(&$state, $block), "vector")?;
                        Ok($call?)
                    })
                }
            }
        })
    };
}

/// Attaches to a communicator of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_attach(
    fortran: c_int,
    attached: *mut *mut ConsetAttached,
) -> c_int {
    enter("conset_attach", || {
        with_mpi! {
            let made = Attached::new(&Comm::from_fortran(fortran)?)?;
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe { handle::give(attached, Attachment { attached: made }) }
        }
    })
}

/// Gives the communicator back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_detach(attached: *mut ConsetAttached) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_detach", || unsafe { handle::free(attached) });
}

/// The halo of shared ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_from_shared_ids(
    attached: *const ConsetAttached,
    items: usize,
    ids: *const u64,
    halo: *mut *mut ConsetHalo,
) -> c_int {
    enter("conset_halo_from_shared_ids", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let ids = array(ids, items, "ids")?;
                give_halo(value(attached, "attached")?.attached.shared_halo(ids)?, Vec::new(), halo)
            }
        }
    })
}

/// The halo of owned ids and ghosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_from_owned(
    attached: *const ConsetAttached,
    items: usize,
    ids: *const u64,
    owned: usize,
    halo: *mut *mut ConsetHalo,
) -> c_int {
    enter("conset_halo_from_owned", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let ids = array(ids, items, "ids")?;
                let made = value(attached, "attached")?.attached.indexed_halo(ids, owned)?;
                give_halo(made, Vec::new(), halo)
            }
        }
    })
}

/// The halo of an owned range and ghosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_from_range(
    attached: *const ConsetAttached,
    first: u64,
    end: u64,
    ghosts: usize,
    ids: *const u64,
    halo: *mut *mut ConsetHalo,
) -> c_int {
    enter("conset_halo_from_range", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let ids = array(ids, ghosts, "ids")?;
                let made = value(attached, "attached")?.attached.owned_halo(first..end, ids)?;
                give_halo(made, ids.to_vec(), halo)
            }
        }
    })
}

/// The halo and local columns of rows of a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_from_rows(
    attached: *const ConsetAttached,
    first: u64,
    end: u64,
    index_type: c_int,
    ptr: *const c_void,
    columns: *const c_void,
    entries: usize,
    local: *mut u32,
    halo: *mut *mut ConsetHalo,
) -> c_int {
    enter("conset_halo_from_rows", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let attached = &value(attached, "attached")?.attached;
                let local = array_mut(local, entries, "local")?;
                let rows = to_usize(end.saturating_sub(first)).saturating_add(1);
                let made = match Type::of(index_type)? {
                    Type::Int32 => {
                        let ptr = array(ptr.cast::<i32>(), rows, "ptr")?;
                        attached.csr_halo(first..end, ptr, array(columns.cast::<i32>(), entries, "columns")?)?
                    }
                    Type::Int64 => {
                        let ptr = array(ptr.cast::<i64>(), rows, "ptr")?;
                        attached.csr_halo(first..end, ptr, array(columns.cast::<i64>(), entries, "columns")?)?
                    }
                    _ => {
                        let message = "index_type is no type of integers";
                        return Err(CallFault::argument(message));
                    }
                };
                local.copy_from_slice(&made.columns);
                give_halo(made.halo, made.ghosts, halo)
            }
        }
    })
}

/// The ids of the ghosts of a range or of rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_ghosts(
    halo: *const ConsetHalo,
    ids: *mut u64,
    room: usize,
    count: *mut usize,
) -> c_int {
    enter("conset_halo_ghosts", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let ghosts = &locked(halo)?.ghosts;
                let ids = array_mut(ids, room.min(ghosts.len()), "ids")?;
                ids.copy_from_slice(&ghosts[..ids.len()]);
                write(count, "count", ghosts.len())
            }
        }
    })
}

/// On how many ranks each item is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_multiplicity(
    halo: *const ConsetHalo,
    copies: *mut u32,
    items: usize,
) -> c_int {
    enter("conset_halo_multiplicity", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let found = locked(halo)?.halo.multiplicity();
                write_items(found.into_iter(), (copies, items, "copies"))
            }
        }
    })
}

/// Which items count as this rank's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_owned(
    halo: *const ConsetHalo,
    owned: *mut c_int,
    items: usize,
) -> c_int {
    enter("conset_halo_owned", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let found = locked(halo)?.halo.owned();
                write_items(found.into_iter().map(c_int::from), (owned, items, "owned"))
            }
        }
    })
}

/// Brings owned items to their ghosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_exchange(
    halo: *mut ConsetHalo,
    number_type: c_int,
    vector: *mut c_void,
    block: usize,
) -> c_int {
    on_vector!(
        "conset_halo_exchange",
        array_mut(halo, number_type, vector, block),
        |state, vector| state.halo.exchange(vector, block)
    )
}

/// Brings owned items of several vectors to their ghosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_exchange_fields(
    halo: *mut ConsetHalo,
    fields: *const ConsetField,
    count: usize,
) -> c_int {
    enter("conset_halo_exchange_fields", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let mut state = locked(halo)?;
                let fields = array(fields, count, "fields")?;
                let mut all = Vec::with_capacity(count);
                for field in fields {
                    let bytes = array_mut(field.vector.cast::<u8>(), numbers(&state, field.bytes), "fields")?;
                    all.push(Field::new(bytes, field.bytes));
                }
                Ok(state.halo.exchange_fields(&mut all)?)
            }
        }
    })
}

/// Combines ghosts with their owners.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_reduce(
    halo: *mut ConsetHalo,
    operation: c_int,
    number_type: c_int,
    vector: *mut c_void,
    block: usize,
) -> c_int {
    on_vector!(
        "conset_halo_reduce",
        array_mut(halo, number_type, vector, block),
        |state, vector| state.halo.reduce(op(operation)?, vector, block)
    )
}

/// Combines all copies of shared items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_combine(
    halo: *mut ConsetHalo,
    operation: c_int,
    number_type: c_int,
    vector: *mut c_void,
    block: usize,
) -> c_int {
    on_vector!(
        "conset_halo_combine",
        array_mut(halo, number_type, vector, block),
        |state, vector| state.halo.combine_shared(op(operation)?, vector, block)
    )
}

/// Sums all copies of shared items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_sum(
    halo: *mut ConsetHalo,
    number_type: c_int,
    vector: *mut c_void,
    block: usize,
) -> c_int {
    on_vector!("conset_halo_sum", array_mut(halo, number_type, vector, block), |state, vector| {
        state.halo.sum_shared(vector, block)
    })
}

/// Starts an exchange.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_start(
    halo: *mut ConsetHalo,
    number_type: c_int,
    vector: *const c_void,
    block: usize,
    exchange: *mut u64,
) -> c_int {
    on_vector!("conset_halo_start", array(halo, number_type, vector, block), |state, vector| {
        let pending = state.halo.start(vector, block)?;
        state.keep(pending, exchange)
    })
}

/// Starts a reduction of ghosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_start_reduce(
    halo: *mut ConsetHalo,
    number_type: c_int,
    vector: *const c_void,
    block: usize,
    exchange: *mut u64,
) -> c_int {
    on_vector!(
        "conset_halo_start_reduce",
        array(halo, number_type, vector, block),
        |state, vector| {
            let pending = state.halo.start_reduce(vector, block)?;
            state.keep(pending, exchange)
        }
    )
}

/// Starts combining copies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_start_combine(
    halo: *mut ConsetHalo,
    number_type: c_int,
    vector: *const c_void,
    block: usize,
    exchange: *mut u64,
) -> c_int {
    on_vector!(
        "conset_halo_start_combine",
        array(halo, number_type, vector, block),
        |state, vector| {
            let pending = state.halo.start_combine(vector, block)?;
            state.keep(pending, exchange)
        }
    )
}

/// Whether an exchange can be completed without waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_test(
    halo: *mut ConsetHalo,
    exchange: u64,
    done: *mut c_int,
) -> c_int {
    enter("conset_halo_test", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                let state = &mut *locked(halo)?;
                let pending = state.pending.get(&exchange).ok_or_else(|| no_exchange(exchange))?;
                write(done, "done", c_int::from(state.halo.test(pending)?))
            }
        }
    })
}

/// Completes an exchange.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_wait(
    halo: *mut ConsetHalo,
    exchange: u64,
    operation: c_int,
    number_type: c_int,
    vector: *mut c_void,
    block: usize,
) -> c_int {
    enter("conset_halo_wait", || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe {
                typed!(number_type, W => {
                    let (mut state, operation) = (locked(halo)?, op(operation)?);
                    let vector = array_mut(vector.cast::<W>(), numbers(&state, block), "vector")?;
                    let pending = state.pending.remove(&exchange).ok_or_else(|| no_exchange(exchange))?;
                    if pending.is_update() {
                        if operation != Op::Copy {
                            state.pending.insert(exchange, pending);
                            let message = "an exchange that conset_halo_start started copies: expected CONSET_COPY";
                            return Err(CallFault::argument(message));
                        }
                        return Ok(state.halo.wait(pending, vector)?);
                    }
                    Ok(state.halo.wait_combined(pending, operation, vector)?)
                })
            }
        }
    })
}

/// Items of a halo's vectors; 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_items(halo: *const ConsetHalo) -> usize {
    enter_for("conset_halo_items", 0, || {
        with_mpi! {
            // SAFETY: the caller keeps the rules of `memory`.
            unsafe { Ok(locked(halo)?.halo.entries()) }
        }
    })
}

/// Frees a halo.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_halo_free(halo: *mut ConsetHalo) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_halo_free", || unsafe { handle::free(halo) });
}

/// Numbers of a vector with so many for each item.
#[cfg(feature = "mpi")]
fn numbers(state: &HaloState, block: usize) -> usize {
    state.halo.entries().saturating_mul(block)
}

#[cfg(feature = "mpi")]
fn no_exchange(exchange: u64) -> CallFault {
    CallFault::argument(format!("{exchange} is no exchange of this halo under way"))
}

/// # Safety
/// As [`handle::give`].
#[cfg(feature = "mpi")]
unsafe fn give_halo(
    made: Halo,
    ghosts: Vec<u64>,
    halo: *mut *mut ConsetHalo,
) -> Result<(), CallFault> {
    let (pending, started) = (BTreeMap::new(), 0);
    let state = HaloState { halo: made, ghosts, pending, started };
    // SAFETY: the caller's promise.
    unsafe { handle::give(halo, Mutex::new(state)) }
}
