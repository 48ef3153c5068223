//! The JSON formats of programs and schedules, for other programs.
//!
//! The formats are `conset-schedule` and `conset-set` (`docs/format.md` has their versions). They are
//! stable. The writer streams from the value and builds nothing in
//! memory; each object of a list is one line, so that files can be compared line by line. The
//! reader deserialises plain structs (`wire`, `routes`), which define the keys, and then calls the
//! constructors of the types, which check the shape.
//!
//! Rules of the reader:
//!
//! * An unknown key is an error, because a misspelt requirement must not be ignored. The version of
//!   a file is the lowest one that has all its keys; a version that is too new is refused.
//! * Keys that the specification marks as required must be present. All others have defaults; those
//!   of the machine are the values of the preset `iwarp`.
//! * An inconsistent shape (ids out of range, lists of different lengths) is an error. Incorrect
//!   values (cells that are not neighbours, channels that a cell does not have, missing words) are
//!   accepted here and refused by the checker.
//!
//! Errors have a line and column for wrong syntax and types, and a path for a wrong shape.

mod layout;
mod read;
mod routes;
mod steps;
mod wire;
mod write;

pub use read::parse;
pub use write::{write, write_program, write_schedule, write_to};

/// The `format` of compiled programs.
pub const SCHEDULE_FORMAT: &str = "conset-schedule";
/// The `format` of programs before compilation.
pub const SET_FORMAT: &str = "conset-set";
/// The newest version that this program reads. It writes the lowest version that can express the
/// value.
pub const VERSION: u32 = 8;
