//! Verified timetables turned into images, listings and source code.
//!
//! ```text
//!  Verified<Timetable> ─► image ─► Image ─┬─► listing   text to read
//!                                         ├─► delta     what each switch changes
//!                                         ├─► module    names, to be included beside its file
//!                                         ├─► rust      a crate that rebuilds the image
//!                                         └─► c         a header of names and the image's bytes
//! ```
//!
//! Code is generated from verified timetables only: what is wrong cannot get this far, so nothing
//! here checks routes or times again. Whether the image says what the timetable said is checked by
//! `conset-verify`, which follows the tables and shares no code with this crate.

#![forbid(unsafe_code)]

pub mod c;
pub mod delta;
pub mod image;
pub mod listing;
pub mod module;
pub mod names;
pub mod rust;

pub use delta::{CellDelta, Delta, Totals, deltas};
pub use image::{ImageError, image};
pub use listing::{Listing, listing};
pub use rust::{EmitError, Options, emit, emit_with};
