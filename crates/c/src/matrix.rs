//! Matrices: rows distributed to cells, their layouts, and the rows and entries of each cell.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use conset::ir::convert::index;
use conset::ir::limits;
use conset_runtime::{CsrLayout, Layout, LocalCsr};

use crate::entry::enter;
use crate::handle::{self, Handle, Tagged, value};
use crate::layout::{ConsetLayout, give_both};
use crate::memory::{Type, array, read_and_written, typed, write};
use crate::status::CallFault;

/// A matrix that was dealt to cells.
#[derive(Debug)]
pub struct DistributedMatrix {
    rows: usize,
    forward: Arc<Layout>,
    backward: Arc<Layout>,
    parts: Vec<LocalCsr>,
}

/// `conset_matrix`.
pub type ConsetMatrix = Handle<DistributedMatrix>;

impl Tagged for DistributedMatrix {
    const TAG: [u8; 8] = *b"csmatri1";
    const NAME: &'static str = "conset_matrix";
}

const NO_INTEGERS: &str = "index_type is no type of integers";

/// Deals the rows of a square matrix to cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_new(
    rows: usize,
    index_type: c_int,
    ptr: *const c_void,
    idx: *const c_void,
    owner: *const u32,
    cells: usize,
    matrix: *mut *mut ConsetMatrix,
) -> c_int {
    enter("conset_matrix_new", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let owner = array(owner, rows, "owner")?;
            let csr = match Type::of(index_type)? {
                Type::Int32 => distribute(rows, ptr.cast::<i32>(), idx.cast(), owner, cells)?,
                Type::Int64 => distribute(rows, ptr.cast::<i64>(), idx.cast(), owner, cells)?,
                _ => return Err(CallFault::argument(NO_INTEGERS)),
            };
            let (forward, backward) = (Arc::new(csr.forward), Arc::new(csr.backward));
            handle::give(matrix, DistributedMatrix { rows, forward, backward, parts: csr.parts })
        }
    })
}

/// The global `ptr` of a matrix, and how many entries it has.
///
/// # Safety
/// `ptr` has `rows + 1` elements.
unsafe fn entries_of<'a, I: Copy + TryInto<usize> + std::fmt::Display>(
    rows: usize,
    ptr: *const I,
) -> Result<(&'a [I], usize), CallFault> {
    if rows > limits::NODES {
        return Err(CallFault::argument(format!("{rows} rows, at most {}", limits::NODES)));
    }
    // SAFETY: the caller's promise.
    let ptr = unsafe { array(ptr, rows + 1, "ptr")? };
    let entries = ptr[rows].try_into();
    let entries =
        entries.map_err(|_| CallFault::argument(format!("ptr[{rows}] is {}", ptr[rows])))?;
    Ok((ptr, entries))
}

/// # Safety
/// `ptr` has `rows + 1` elements, `idx` as many as its last says.
unsafe fn distribute<I: Copy + TryInto<usize> + std::fmt::Display>(
    rows: usize,
    ptr: *const I,
    idx: *const I,
    owner: &[u32],
    cells: usize,
) -> Result<CsrLayout, CallFault> {
    // SAFETY: the caller's promise.
    let (ptr, idx) = unsafe {
        let (ptr, entries) = entries_of(rows, ptr)?;
        (ptr, array(idx, entries, "idx")?)
    };
    Ok(Layout::from_csr(ptr, idx, owner, cells)?)
}

/// The layouts of a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_layouts(
    matrix: *const ConsetMatrix,
    forward: *mut *mut ConsetLayout,
    backward: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_matrix_layouts", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let matrix = value(matrix, "matrix")?;
            give_both(forward, backward, &matrix.forward, &matrix.backward)
        }
    })
}

/// `conset_local_csr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetLocalCsr {
    /// Entries of the cell's vector.
    pub items: usize,
    /// How many of them, from the first on, are own rows.
    pub owned: usize,
    /// Entries of the own rows.
    pub entries: usize,
    /// The global row of each item.
    pub ids: *const u64,
    /// Where each own row's entries begin.
    pub ptr: *const usize,
    /// Local columns.
    pub idx: *const u32,
}

/// The rows of a cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_local(
    matrix: *const ConsetMatrix,
    cell: u32,
    local: *mut ConsetLocalCsr,
) -> c_int {
    enter("conset_matrix_local", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let part = part_of(value(matrix, "matrix")?, cell)?;
            let rows = ConsetLocalCsr {
                items: part.ids().len(),
                owned: part.owned(),
                entries: part.idx().len(),
                ids: part.ids().as_ptr(),
                ptr: part.ptr().as_ptr(),
                idx: part.idx().as_ptr(),
            };
            write(local, "local", rows)
        }
    })
}

fn part_of(matrix: &DistributedMatrix, cell: u32) -> Result<&LocalCsr, CallFault> {
    let parts = &matrix.parts;
    parts.get(index(cell)).ok_or_else(|| {
        CallFault::argument(format!("cell {cell} of a matrix on {} cells", parts.len()))
    })
}

/// An array that is copied to has to have the size of what is copied.
fn copy<V: Copy>(own: &[V], into: &mut [V]) -> Result<(), CallFault> {
    let (found, expected) = (into.len(), own.len());
    if found != expected {
        return Err(CallFault::argument(format!("own has {found} elements, expected {expected}")));
    }
    into.copy_from_slice(own);
    Ok(())
}

/// The values of a cell's rows, out of the global matrix's.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "an interface of C: two arrays and a third of them")]
pub unsafe extern "C" fn conset_matrix_values(
    matrix: *const ConsetMatrix,
    cell: u32,
    index_type: c_int,
    ptr: *const c_void,
    number_type: c_int,
    values: *const c_void,
    own: *mut c_void,
    entries: usize,
) -> c_int {
    enter("conset_matrix_values", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let matrix = value(matrix, "matrix")?;
            let part = part_of(matrix, cell)?;
            match Type::of(index_type)? {
                Type::Int32 => {
                    let ptr = entries_of(matrix.rows, ptr.cast::<i32>())?;
                    take(part, ptr, number_type, values, (own, entries))
                }
                Type::Int64 => {
                    let ptr = entries_of(matrix.rows, ptr.cast::<i64>())?;
                    take(part, ptr, number_type, values, (own, entries))
                }
                _ => Err(CallFault::argument(NO_INTEGERS)),
            }
        }
    })
}

/// # Safety
/// `values` has as many elements as the matrix has entries, `own` as many as it says.
unsafe fn take<I: Copy + TryInto<usize>>(
    part: &LocalCsr,
    (ptr, all): (&[I], usize),
    number_type: c_int,
    values: *const c_void,
    (own, entries): (*mut c_void, usize),
) -> Result<(), CallFault> {
    typed!(number_type, V => {
        let from = (values.cast::<V>(), all, "values");
        // SAFETY: the caller's promise.
        let (values, own) = unsafe { read_and_written(from, (own.cast::<V>(), entries, "own"))? };
        copy(&part.values(ptr, values), own)
    })
}

/// The entries of a cell's vector, out of the global one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_gather(
    matrix: *const ConsetMatrix,
    cell: u32,
    number_type: c_int,
    global: *const c_void,
    own: *mut c_void,
    items: usize,
) -> c_int {
    enter("conset_matrix_gather", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let matrix = value(matrix, "matrix")?;
            let part = part_of(matrix, cell)?;
            typed!(number_type, V => {
                let from = (global.cast::<V>(), matrix.rows, "global");
                let (global, own) = read_and_written(from, (own.cast::<V>(), items, "own"))?;
                copy(&part.gather(global), own)
            })
        }
    })
}

/// Frees a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_free(matrix: *mut ConsetMatrix) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_matrix_free", || unsafe { handle::free(matrix) });
}
