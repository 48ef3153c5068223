//! Layouts from arrays: shared ids, owners and ghosts, a matrix, an image.
//!
//! Lists of cells come as C programs have them: one array of all cells' ids, and where each cell's
//! begin (`first`, one longer than there are cells).

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use conset::ir::{CellId, limits};
use conset_runtime::{CsrLayout, Layout, LocalCsr, Owned};

use crate::entry::{enter, enter_for};
use crate::image::ConsetImage;
use crate::memory::{self, Handle, Tagged, Type, array, text, value, write};
use crate::status::Fault;

/// `conset_layout`.
pub type ConsetLayout = Handle<Arc<Layout>>;

impl Tagged for Arc<Layout> {
    const TAG: [u8; 8] = *b"cslayou1";
    const NAME: &'static str = "conset_layout";
}

/// A matrix that was dealt to cells.
#[derive(Debug)]
pub struct Matrix {
    forward: Arc<Layout>,
    backward: Arc<Layout>,
    parts: Vec<LocalCsr>,
}

/// `conset_matrix`.
pub type ConsetMatrix = Handle<Matrix>;

impl Tagged for Matrix {
    const TAG: [u8; 8] = *b"csmatri1";
    const NAME: &'static str = "conset_matrix";
}

fn check_cells(cells: usize) -> Result<(), Fault> {
    if cells > limits::CELLS {
        return Err(Fault::argument(format!("{cells} cells, at most {}", limits::CELLS)));
    }
    Ok(())
}

/// Each cell's ids.
///
/// # Safety
/// `first` has `cells + 1` elements, `ids` as many as its last says.
unsafe fn lists<'a>(
    cells: usize,
    first: *const usize,
    ids: *const u64,
) -> Result<Vec<&'a [u64]>, Fault> {
    check_cells(cells)?;
    // SAFETY: the caller's promise.
    let first = unsafe { array(first, cells + 1, "first")? };
    if first[0] != 0 {
        return Err(Fault::argument(format!("first[0] is {}, expected 0", first[0])));
    }
    if let Some(row) = first.windows(2).position(|pair| pair[1] < pair[0]) {
        let (here, next) = (first[row], first[row + 1]);
        let message = format!("first[{}] is {next}, expected at least {here}", row + 1);
        return Err(Fault::argument(message));
    }
    // SAFETY: the caller's promise.
    let ids = unsafe { array(ids, first[cells], "ids")? };
    Ok(first.windows(2).map(|pair| &ids[pair[0]..pair[1]]).collect())
}

/// Entries of one id are copies of one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_from_shared_ids(
    cells: usize,
    first: *const usize,
    ids: *const u64,
    layout: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_layout_from_shared_ids", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let ids = lists(cells, first, ids)?;
            memory::give(layout, Arc::new(Layout::from_shared_ids(&ids)?))
        }
    })
}

/// Owners and ghosts, both ways.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_from_owned(
    cells: usize,
    first: *const usize,
    ids: *const u64,
    owned: *const usize,
    forward: *mut *mut ConsetLayout,
    backward: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_layout_from_owned", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let ids = lists(cells, first, ids)?;
            let owned = array(owned, cells, "owned")?;
            let parts = ids.iter().zip(owned);
            let parts: Vec<Owned> =
                parts.map(|(ids, &owned)| Owned { ids: ids.to_vec(), owned }).collect();
            let layouts = Layout::from_owned(&parts)?;
            give_both(forward, backward, &Arc::new(layouts.forward), &Arc::new(layouts.backward))
        }
    })
}

/// Hands out layouts, at places that may be null where nobody wants them.
///
/// # Safety
/// The places are null or can be written.
unsafe fn give_both(
    forward: *mut *mut ConsetLayout,
    backward: *mut *mut ConsetLayout,
    there: &Arc<Layout>,
    back: &Arc<Layout>,
) -> Result<(), Fault> {
    for (place, layout) in [(forward, there), (backward, back)] {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { memory::give(place, layout.clone())? };
        }
    }
    Ok(())
}

/// The layout of a compiled set that carries lists of nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_from_image(
    image: *const ConsetImage,
    set: *const c_char,
    block: usize,
    cells: usize,
    first: *const usize,
    ids: *const u64,
    layout: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_layout_from_image", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let (image, set) = (value(image, "image")?, text(set, "set")?);
            let ids = lists(cells, first, ids)?;
            memory::give(layout, Arc::new(Layout::from_image(image, set, block, &ids)?))
        }
    })
}

/// The same layout with its parts on other cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_placed(
    layout: *const ConsetLayout,
    parts: usize,
    place: *const u32,
    cells: usize,
    placed: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_layout_placed", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let layout = value(layout, "layout")?;
            let place = array(place, parts, "place")?;
            let place: Vec<CellId> = place.iter().copied().map(CellId).collect();
            memory::give(placed, Arc::new(layout.placed(&place, cells)?))
        }
    })
}

/// Items of a cell's vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_items(layout: *const ConsetLayout, cell: u32) -> usize {
    enter_for("conset_layout_items", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(layout, "layout")? }.items_of(CellId(cell)))
    })
}

/// Number of connections.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_connections(layout: *const ConsetLayout) -> usize {
    enter_for("conset_layout_connections", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(layout, "layout")? }.len())
    })
}

/// Frees a layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_free(layout: *mut ConsetLayout) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_layout_free", || unsafe { memory::free(layout) });
}

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
                Type::Int32 => deal(rows, ptr.cast::<i32>(), idx.cast(), owner, cells)?,
                Type::Int64 => deal(rows, ptr.cast::<i64>(), idx.cast(), owner, cells)?,
                _ => return Err(Fault::argument("index_type is no type of integers")),
            };
            let (forward, backward) = (Arc::new(csr.forward), Arc::new(csr.backward));
            memory::give(matrix, Matrix { forward, backward, parts: csr.parts })
        }
    })
}

/// # Safety
/// `ptr` has `rows + 1` elements, `idx` as many as its last says.
unsafe fn deal<I: Copy + TryInto<usize> + std::fmt::Display>(
    rows: usize,
    ptr: *const I,
    idx: *const I,
    owner: &[u32],
    cells: usize,
) -> Result<CsrLayout, Fault> {
    if rows > limits::NODES {
        return Err(Fault::argument(format!("{rows} rows, at most {}", limits::NODES)));
    }
    // SAFETY: the caller's promise.
    let ptr = unsafe { array(ptr, rows + 1, "ptr")? };
    let entries = ptr[rows].try_into();
    let entries = entries.map_err(|_| Fault::argument(format!("ptr[{rows}] is {}", ptr[rows])))?;
    // SAFETY: the caller's promise.
    let idx = unsafe { array(idx, entries, "idx")? };
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
            let parts = &value(matrix, "matrix")?.parts;
            let part = parts.get(cell as usize).ok_or_else(|| {
                Fault::argument(format!("cell {cell} of a matrix on {} cells", parts.len()))
            })?;
            let rows = ConsetLocalCsr {
                items: part.ids.len(),
                owned: part.owned,
                entries: part.idx.len(),
                ids: part.ids.as_ptr(),
                ptr: part.ptr.as_ptr(),
                idx: part.idx.as_ptr(),
            };
            write(local, "local", rows)
        }
    })
}

/// Frees a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_matrix_free(matrix: *mut ConsetMatrix) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_matrix_free", || unsafe { memory::free(matrix) });
}
