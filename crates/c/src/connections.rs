//! Sets given by their connections, as programs record or make them.

use std::ffi::{c_char, c_int};

use conset::ir::{CellId, Connection, ConnectionSet, Document, text as text_form};
use conset::program_of;

use crate::entry::enter;
use crate::image::{ConsetConnection, write_file};
use crate::memory::{array, check_pointer, text};
use crate::status::CallFault;

/// `conset_connection_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetConnectionSet {
    /// Its name.
    pub name: *const c_char,
    /// Its connections.
    pub connections: *const ConsetConnection,
    /// How many.
    pub count: usize,
}

/// The set of a caller's connections; `place` is where errors say that it stands.
///
/// # Safety
/// The rules of `memory` hold for the set's pointers.
pub(crate) unsafe fn connection_set(
    set: &ConsetConnectionSet,
    place: &str,
) -> Result<ConnectionSet, CallFault> {
    // SAFETY: the caller's promise.
    let (name, connections) = unsafe {
        let name = text(set.name, &format!("{place}.name"))?;
        (name, array(set.connections, set.count, &format!("{place}.connections"))?)
    };
    let connections = connections.iter().map(|&ConsetConnection { source, target, words }| {
        Connection::new(CellId(source), CellId(target), words)
    });
    ConnectionSet::new(name, connections.collect())
        .map_err(|error| CallFault::argument(format!("{place}: set `{name}`: {error}")))
}

/// Writes a set to a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_connection_set_write(
    set: *const ConsetConnectionSet,
    path: *const c_char,
) -> c_int {
    enter("conset_connection_set_write", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            check_pointer(set, "set")?;
            let path = text(path, "path")?;
            let program = program_of([connection_set(&*set, "set")?])?;
            let text = text_form::write(&Document::Program { machine: None, program });
            write_file(path, text.as_bytes())
        }
    })
}
