//! Layouts from arrays (shared ids, owners and ghosts, an image), and queries of their contents.
//!
//! Lists of cells are given as in C programs: one array of the ids of all cells, and the index
//! where those of each cell begin (`first`, one element longer than the number of cells).

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use conset::ir::convert::index;
use conset::ir::{CellId, ConnectionId, limits};
use conset_runtime::{Layout, Owned};

use crate::entry::{enter, enter_for};
use crate::handle::{self, Handle, Tagged, value};
use crate::image::ConsetImage;
use crate::memory::{array, array_mut, check_pointer, lists_of, text, write};
use crate::status::CallFault;

/// `conset_layout`.
pub type ConsetLayout = Handle<Arc<Layout>>;

impl Tagged for Arc<Layout> {
    const TAG: [u8; 8] = *b"cslayou1";
    const NAME: &'static str = "conset_layout";
}

fn check_cells(cells: usize) -> Result<(), CallFault> {
    if cells > limits::CELLS {
        return Err(CallFault::argument(format!("{cells} cells, at most {}", limits::CELLS)));
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
) -> Result<Vec<&'a [u64]>, CallFault> {
    check_cells(cells)?;
    // SAFETY: the caller's promise.
    unsafe { lists_of(cells, (first, "first"), (ids, "ids")) }
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
            handle::give(layout, Arc::new(Layout::from_shared_ids(&ids)?))
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
pub(crate) unsafe fn give_both(
    forward: *mut *mut ConsetLayout,
    backward: *mut *mut ConsetLayout,
    there: &Arc<Layout>,
    back: &Arc<Layout>,
) -> Result<(), CallFault> {
    let places = [(forward, there, "forward"), (backward, back, "backward")];
    let wanted = || places.iter().filter(|(place, ..)| !place.is_null());
    // Both are looked at before one is handed out.
    for (place, _, name) in wanted() {
        check_pointer(*place, name)?;
    }
    if forward == backward && !forward.is_null() {
        return Err(CallFault::argument("forward and backward are the same place"));
    }
    for (place, layout, _) in wanted() {
        // SAFETY: the caller's promise.
        unsafe { handle::give(*place, (*layout).clone())? };
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
            let (image, set) = (value(image, "image")?.image(), text(set, "set")?);
            let ids = lists(cells, first, ids)?;
            handle::give(layout, Arc::new(Layout::from_image(image, set, block, &ids)?))
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
            handle::give(placed, Arc::new(layout.placed(&place, cells)?))
        }
    })
}

/// The way back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_reversed(
    layout: *const ConsetLayout,
    reversed: *mut *mut ConsetLayout,
) -> c_int {
    enter("conset_layout_reversed", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { handle::give(reversed, Arc::new(value(layout, "layout")?.reversed())) }
    })
}

/// Number of cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_cells(layout: *const ConsetLayout) -> usize {
    enter_for("conset_layout_cells", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(layout, "layout")? }.cells())
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

/// `conset_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetList {
    /// The cell that sends.
    pub source: u32,
    /// The cell that receives.
    pub target: u32,
    /// How many items.
    pub items: usize,
    /// Their global ids.
    pub ids: *const u64,
    /// Where they are in the source's vector.
    pub send: *const u32,
    /// Where they are in the target's.
    pub receive: *const u32,
}

/// What travels on a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_list(
    layout: *const ConsetLayout,
    connection: u32,
    list: *mut ConsetList,
) -> c_int {
    enter("conset_layout_list", || {
        // SAFETY: the caller keeps the rules of `memory`.
        let layout = unsafe { value(layout, "layout")? };
        if index(connection) >= layout.len() {
            let message = format!("connection {connection} of a layout of {}", layout.len());
            return Err(CallFault::argument(message));
        }
        let connection = ConnectionId(connection);
        let (source, target) = layout.ends_of(connection);
        let ids = layout.ids_of(connection);
        let found = ConsetList {
            source: source.0,
            target: target.0,
            items: ids.len(),
            ids: ids.as_ptr(),
            send: layout.send_of(connection).as_ptr(),
            receive: layout.receive_of(connection).as_ptr(),
        };
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { write(list, "list", found) }
    })
}

/// Whether every cell that holds an id receives it from every other that does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_is_shared(
    layout: *const ConsetLayout,
    shared: *mut c_int,
) -> c_int {
    enter("conset_layout_is_shared", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { write(shared, "shared", c_int::from(value(layout, "layout")?.is_shared())) }
    })
}

/// Writes a number for each item of a cell.
///
/// # Safety
/// The rules of `memory` hold for the array.
pub(crate) unsafe fn write_items<T>(
    numbers: impl ExactSizeIterator<Item = T>,
    (place, items, name): (*mut T, usize, &str),
) -> Result<(), CallFault> {
    if numbers.len() != items {
        let message = format!("{name} has {items} elements, expected {} items", numbers.len());
        return Err(CallFault::argument(message));
    }
    // SAFETY: the caller's promise.
    let place = unsafe { array_mut(place, items, name)? };
    place.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    Ok(())
}

/// A cell that is there; of others all lists are empty.
pub(crate) fn cell_of(layout: &Layout, cell: u32) -> Result<CellId, CallFault> {
    let cells = layout.cell_count();
    if index(cell) >= cells {
        return Err(CallFault::argument(format!("cell {cell} of a layout of {cells} cells")));
    }
    Ok(CellId(cell))
}

/// Frees a layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_layout_free(layout: *mut ConsetLayout) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_layout_free", || unsafe { handle::free(layout) });
}
