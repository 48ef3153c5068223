//! Exchanges of a set by buffers, without a layout: what emitted tables are used with.
//!
//! The words of a cell's connections stand one behind the other, connections in the order of their
//! ids: those of `conset_connections_out` in one array, those of `conset_connections_in` in the
//! other.

use std::ffi::{c_int, c_void};

use conset::ir::ConnectionId;
use conset_runtime::{Cell, CellError, Word};

use crate::cell::{ConsetCell, call};
use crate::entry::enter;
use crate::image::ConsetImage;
use crate::memory::{array, array_mut, typed, value, write};
use crate::status::Fault;

/// By what a set is exchanged.
#[derive(Clone, Copy)]
enum Way {
    Phases,
    Messages,
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
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_exchange_words", cell, |cell| {
            typed!(number_type, W => exchange(
                cell,
                set,
                Way::Phases,
                array(outgoing.cast::<W>(), outgoing_words, "outgoing")?,
                array_mut(incoming.cast::<W>(), incoming_words, "incoming")?,
            ))
        })
    }
}

/// The same by a message for each connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_msg_exchange_words(
    cell: *mut ConsetCell,
    set: u32,
    number_type: c_int,
    outgoing: *const c_void,
    outgoing_words: usize,
    incoming: *mut c_void,
    incoming_words: usize,
) -> c_int {
    // SAFETY: the callback's own cell; the caller keeps the rules of `memory`.
    unsafe {
        call("conset_msg_exchange_words", cell, |cell| {
            typed!(number_type, W => exchange(
                cell,
                set,
                Way::Messages,
                array(outgoing.cast::<W>(), outgoing_words, "outgoing")?,
                array_mut(incoming.cast::<W>(), incoming_words, "incoming")?,
            ))
        })
    }
}

/// Words of a cell's connections.
fn sizes(cell: &Cell<'_>, set: u32, connections: &[ConnectionId]) -> Vec<usize> {
    let set = &cell.image().sets()[set as usize].set;
    connections.iter().map(|&x| set.get(x).words as usize).collect()
}

fn check(what: &str, expected: &[usize], found: usize) -> Result<(), Fault> {
    let expected: usize = expected.iter().sum();
    if found == expected {
        return Ok(());
    }
    Err(Fault::argument(format!("{what} has {found} words, expected {expected}")))
}

fn exchange<W: Word>(
    cell: &mut Cell<'_>,
    set: u32,
    way: Way,
    mut outgoing: &[W],
    mut incoming: &mut [W],
) -> Result<(), Fault> {
    let row = set as usize;
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
    let done: Result<(), CellError> = match way {
        Way::Phases => cell.exchange(row, &sent, &mut received),
        Way::Messages => cell.msg_exchange(row, &sent, &mut received),
    };
    Ok(done?)
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
            let image = value(image, "image")?;
            let connections = crate::image::set_of(image, set)?.set.connections();
            let (mut out, mut inn) = (0usize, 0usize);
            for connection in connections {
                out += if connection.source.0 == cell { connection.words as usize } else { 0 };
                inn += if connection.target.0 == cell { connection.words as usize } else { 0 };
            }
            write(outgoing, "outgoing", out)?;
            write(incoming, "incoming", inn)
        }
    })
}
