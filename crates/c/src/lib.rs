//! conset for programs in C and Fortran: images, layouts, plans, and runs of a callback.
//!
//! `include/conset.h` is the interface and its documentation. The functions here are grouped in
//! modules; a test compares them with the header, types and numbers included.
//!
//! ```text
//!  C ──► extern "C" fn ──entry::enter──► arguments (memory) ──► conset, conset-runtime
//!                        └─ status ◄── CallFault (status) ◄── their errors
//! ```
//!
//! Rules:
//!
//! * Every function runs inside `entry`: nothing unwinds into C, and errors become a status and a
//!   text of the thread.
//! * Pointers are used only through `memory` and `handle`, which check what can be checked. The
//!   rest is the responsibility of the caller, by the rules at the top of the header.
//! * A handle is a box with a tag before it. Images, layouts and plans are shared behind it, so
//!   handles may be freed in any order, even while others depend on them.
//! * Advice in error texts names calls of this interface, not of Rust or the command line
//!   (`remedy`).
//! * A cell is valid within its callback ([`cell`]). A call of a cell that fails aborts the run for
//!   all cells, as in Rust, whatever the callback does then.
//!
//! The crate offers nothing that the Rust interfaces do not.

#![allow(
    clippy::missing_safety_doc,
    reason = "what callers have to promise stands in include/conset.h, for the functions together"
)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod attached;
pub mod attached_collectives;
pub mod cell;
pub mod compile;
pub mod connections;
mod entry;
pub mod epoch;
pub mod exchange;
pub mod former_names;
mod handle;
pub mod image;
pub mod layout;
pub mod lists;
pub mod live;
pub mod matrix;
mod memory;
pub mod messages;
pub mod pending;
pub mod plan;
mod remedy;
pub mod run;
mod status;
pub mod unknown;
pub mod words;

use std::ffi::{c_char, c_int};

pub use handle::Handle;
pub use status::Status;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version, as text.
#[unsafe(no_mangle)]
pub extern "C" fn conset_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// The text of the calling thread's last fault.
#[unsafe(no_mangle)]
pub extern "C" fn conset_error() -> *const c_char {
    entry::last()
}

/// What a status means.
#[unsafe(no_mangle)]
pub extern "C" fn conset_status_text(status: c_int) -> *const c_char {
    let found = usize::try_from(status).ok().and_then(|row| Status::ALL.get(row));
    found.map_or(c"no status", |status| status.text()).as_ptr()
}

/// Handles may be used by several threads at a time.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<conset_runtime::World>();
    shared::<std::sync::Arc<conset_runtime::Layout>>();
    shared::<std::sync::Arc<conset_runtime::Plan>>();
    shared::<std::sync::Arc<conset_runtime::Collectives>>();
    shared::<conset_runtime::lists::CellLists>();
    shared::<matrix::DistributedMatrix>();
    shared::<run::Communicator>();
};

/// The guide's Rust program, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
pub mod guide {}
