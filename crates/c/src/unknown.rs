//! Exchanges whose partners or sizes nobody knew before, and what they turned out to carry.

use std::ffi::{c_int, c_void};
use std::fmt::Debug;

use conset::ir::convert::index;
use conset::ir::{CellId, limits};
use conset_runtime::{Routing, Word};

use crate::cell::{ConsetCell, call};
use crate::entry::{enter, enter_for};
use crate::handle::{self, Handle, Tagged, value};
use crate::image::ConsetConnection;
use crate::memory::{array, array_mut, check_array, check_pointer, lists_of, typed, write};
use crate::status::CallFault;

/// Words of any type, for a caller that knows the type.
trait AnyWords: Debug + Send + Sync {
    fn address(&self) -> *const c_void;
    fn count(&self) -> usize;
}

impl<W: Word + Debug + Send + Sync> AnyWords for Vec<W> {
    fn address(&self) -> *const c_void {
        self.as_ptr().cast()
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// What an exchange has brought: the words of each cell that has sent any.
#[derive(Debug)]
pub struct Arrivals(Vec<(CellId, Box<dyn AnyWords>)>);

/// `conset_arrivals`.
pub type ConsetArrivals = Handle<Arrivals>;

impl Tagged for Arrivals {
    const TAG: [u8; 8] = *b"csarriv1";
    const NAME: &'static str = "conset_arrivals";
}

/// `conset_arrival`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetArrival {
    /// The cell that has sent the words.
    pub source: u32,
    /// How many they are.
    pub count: usize,
    /// Where they are.
    pub words: *const c_void,
}

/// Sends words to some cells and receives what others have sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange_any(
    cell: *mut ConsetCell,
    number_type: c_int,
    count: usize,
    targets: *const u32,
    first: *const usize,
    words: *const c_void,
    arrivals: *mut *mut ConsetArrivals,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_any", cell, |cell| {
            check_pointer(arrivals, "arrivals")?;
            let targets = array(targets, count, "targets")?;
            typed!(number_type, W => {
                let lists = lists_or_none(count, first, words.cast::<W>())?;
                let pairs = targets.iter().map(|&target| CellId(target)).zip(lists);
                let outgoing: Vec<(CellId, &[W])> = pairs.collect();
                let arrived = cell.exchange_any(&outgoing)?.into_iter();
                let boxed = arrived.map(|(source, words)| {
                    let words: Box<dyn AnyWords> = Box::new(words);
                    (source, words)
                });
                handle::give(arrivals, Arrivals(boxed.collect()))
            })
        })
    }
}

/// [`lists_of`], which may be null if there are none.
///
/// # Safety
/// As there.
unsafe fn lists_or_none<'a, T>(
    count: usize,
    first: *const usize,
    items: *const T,
) -> Result<Vec<&'a [T]>, CallFault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    unsafe { lists_of(count, (first, "first"), (items, "words")) }
}

/// Number of cells that have sent words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_arrivals_count(arrivals: *const ConsetArrivals) -> usize {
    enter_for("conset_arrivals_count", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { Ok(value(arrivals, "arrivals")?.0.len()) }
    })
}

/// The words of one of these cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_arrivals_list(
    arrivals: *const ConsetArrivals,
    row: usize,
    found: *mut ConsetArrival,
) -> c_int {
    enter("conset_arrivals_list", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let lists = &value(arrivals, "arrivals")?.0;
            let (source, words) = lists.get(row).ok_or_else(|| {
                let count = lists.len();
                CallFault::argument(format!("row {row} of {count} arrivals, counted from 0"))
            })?;
            let (count, words) = (words.count(), words.address());
            write(found, "found", ConsetArrival { source: source.0, count, words })
        }
    })
}

/// Frees what has arrived.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_arrivals_free(arrivals: *mut ConsetArrivals) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_arrivals_free", || unsafe { handle::free(arrivals) });
}

/// `conset_routing`: how the items of rounds find their targets over MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_set_routing(cell: *mut ConsetCell, routing: c_int) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe {
        call("conset_set_routing", cell, |cell| {
            cell.set_routing(match routing {
                0 => Routing::Auto,
                1 => Routing::Direct,
                2 => Routing::Routed,
                other => {
                    let message = format!("{other} is no routing (enum conset_routing)");
                    return Err(CallFault::argument(message));
                }
            });
            Ok(())
        })
    }
}

/// Exchanges a set whose connections carry as many words as their sources decide.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_exchange_sized(
    cell: *mut ConsetCell,
    set: u32,
    number_type: c_int,
    count: usize,
    first: *const usize,
    words: *const c_void,
    incoming: *mut c_void,
    room: usize,
    incoming_words: *mut usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_sized", cell, |cell| {
            let connections = cell.connections_in(index(set))?;
            let set_words = &cell.image().sets()[index(set)].set;
            let most: usize = connections.iter().map(|&x| index(set_words.get(x).words)).sum();
            if room < most {
                let message = format!("room is {room}, expected at least {most} words");
                return Err(CallFault::argument(message));
            }
            let sizes = array_mut(incoming_words, connections.len(), "incoming_words")?;
            typed!(number_type, W => {
                let outgoing = lists_or_none(count, first, words.cast::<W>())?;
                // Before the cell waits for others; nothing may be borrowed while words are read.
                if most > 0 {
                    check_array(incoming.cast::<W>(), most, "incoming")?;
                }
                let found = cell.exchange_sized(index(set), &outgoing)?;
                // Now that nothing is read any more.
                let mut rest = array_mut(incoming.cast::<W>(), most, "incoming")?;
                for (size, words) in sizes.iter_mut().zip(&found) {
                    *size = words.len();
                    let (own, others) = rest.split_at_mut(words.len());
                    own.copy_from_slice(words);
                    rest = others;
                }
                Ok(())
            })
        })
    }
}

/// Begins to record what a cell sends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_start_record(cell: *mut ConsetCell) -> c_int {
    // SAFETY: the callback's own cell.
    unsafe {
        call("conset_start_record", cell, |cell| {
            cell.start_record();
            Ok(())
        })
    }
}

/// Ends the recording.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_take_record(
    cell: *mut ConsetCell,
    connections: *mut ConsetConnection,
    room: usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_take_record", cell, |cell| {
            check_pointer(count, "count")?;
            let (source, record) = (cell.id().0, cell.take_record());
            if record.len() > room {
                let found = record.len();
                let message = format!(
                    "room is {room}, and the cell has sent to {found} cells: expected as many as \
                     conset_cell_count says"
                );
                return Err(CallFault::argument(message));
            }
            let places = array_mut(connections, record.len(), "connections")?;
            for (place, (target, words)) in places.iter_mut().zip(&record) {
                let words = u32::try_from(*words).map_err(|_| {
                    let most = limits::WORDS;
                    let message = format!("{words} words to {target}, at most {most} in a set");
                    CallFault::argument(message)
                })?;
                *place = ConsetConnection { source, target: target.0, words };
            }
            write(count, "count", record.len())
        })
    }
}
