//! Exchanges of a set between buffers, without a layout; emitted tables are used with them.
//!
//! One array holds the words of the outgoing connections of a cell (`conset_connections_out`) in
//! the order of their ids, another those of the incoming connections (`conset_connections_in`).

use std::ffi::{c_int, c_void};

use conset::ir::ConnectionId;
use conset::ir::convert::index;
use conset_runtime::{By, Cell, Word};

use crate::cell::{ConsetCell, call};
use crate::entry::enter;
use crate::handle::value;
use crate::image::ConsetImage;
use crate::memory::{BY_PHASES, by_of, read_and_written, typed, write};
use crate::status::CallFault;

/// Words that go out and come in: the type of the numbers, where they are, how many.
#[derive(Clone, Copy)]
struct Buffers {
    number_type: c_int,
    outgoing: (*const c_void, usize),
    incoming: (*mut c_void, usize),
}

/// Exchanges a set between buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_exchange_words(
    cell: *mut ConsetCell,
    set: u32,
    number_type: c_int,
    outgoing: *const c_void,
    outgoing_words: usize,
    incoming: *mut c_void,
    incoming_words: usize,
) -> c_int {
    let (outgoing, incoming) = ((outgoing, outgoing_words), (incoming, incoming_words));
    let buffers = Buffers { number_type, outgoing, incoming };
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { exchange("conset_exchange_words", cell, set, BY_PHASES, buffers) }
}

/// Exchanges a set between buffers, by phases or by messages.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "an interface of C: the arrays of an exchange and their types"
)]
pub unsafe extern "C" fn conset_exchange_words_by(
    cell: *mut ConsetCell,
    by: c_int,
    set: u32,
    number_type: c_int,
    outgoing: *const c_void,
    outgoing_words: usize,
    incoming: *mut c_void,
    incoming_words: usize,
) -> c_int {
    let (outgoing, incoming) = ((outgoing, outgoing_words), (incoming, incoming_words));
    let buffers = Buffers { number_type, outgoing, incoming };
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe { exchange("conset_exchange_words_by", cell, set, by, buffers) }
}

/// # Safety
/// As [`call`]; the rules of `memory` hold for the buffers.
unsafe fn exchange(
    function: &str,
    cell: *mut ConsetCell,
    set: u32,
    by: c_int,
    buffers: Buffers,
) -> c_int {
    let Buffers { number_type, outgoing: (from, read), incoming: (into, written) } = buffers;
    // SAFETY: the caller's promise.
    unsafe {
        call(function, cell, |cell| {
            let by = by_of(by)?;
            typed!(number_type, W => {
                let from = (from.cast::<W>(), read, "outgoing");
                let into = (into.cast::<W>(), written, "incoming");
                let (outgoing, incoming) = read_and_written(from, into)?;
                between(cell, set, by, outgoing, incoming)
            })
        })
    }
}

/// Words of a cell's connections.
fn sizes(cell: &Cell<'_>, set: u32, connections: &[ConnectionId]) -> Vec<usize> {
    let set = &cell.image().sets()[index(set)].set;
    connections.iter().map(|&x| index(set.get(x).words)).collect()
}

fn check(what: &str, expected: &[usize], found: usize) -> Result<(), CallFault> {
    let expected: usize = expected.iter().sum();
    if found == expected {
        return Ok(());
    }
    Err(CallFault::argument(format!("{what} has {found} words, expected {expected}")))
}

fn between<W: Word>(
    cell: &mut Cell<'_>,
    set: u32,
    by: By,
    mut outgoing: &[W],
    mut incoming: &mut [W],
) -> Result<(), CallFault> {
    let row = index(set);
    let (out, inn) = (cell.connections_out(row)?, cell.connections_in(row)?);
    let (out, inn) = (sizes(cell, set, out), sizes(cell, set, inn));
    check("outgoing", &out, outgoing.len())?;
    check("incoming", &inn, incoming.len())?;
    let mut sent = Vec::with_capacity(out.len());
    for words in out {
        let (piece, rest) = outgoing.split_at(words);
        sent.push(piece);
        outgoing = rest;
    }
    let mut received = Vec::with_capacity(inn.len());
    for words in inn {
        let (piece, rest) = incoming.split_at_mut(words);
        received.push(piece);
        incoming = rest;
    }
    Ok(cell.exchange_by(by, row, &sent, &mut received)?)
}

/// Words of all connections of a set that start, and that end, at a cell: the sizes of the buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_words(
    image: *const ConsetImage,
    set: u32,
    cell: u32,
    outgoing: *mut usize,
    incoming: *mut usize,
) -> c_int {
    enter("conset_image_words", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let image = value(image, "image")?.image();
            let connections = crate::image::set_of(image, set)?.set.connections();
            let cells = image.machine().cell_count();
            if index(cell) >= cells {
                return Err(CallFault::argument(format!("cell {cell} of a machine of {cells}")));
            }
            let (mut out, mut inn) = (0usize, 0usize);
            for connection in connections {
                out += if connection.source.0 == cell { index(connection.words) } else { 0 };
                inn += if connection.target.0 == cell { index(connection.words) } else { 0 };
            }
            write(outgoing, "outgoing", out)?;
            write(incoming, "incoming", inn)
        }
    })
}
