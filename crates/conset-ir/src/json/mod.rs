//! The JSON forms: `conset-schedule` and `conset-set`, version 1 (`docs/format.md`).
//!
//! These are a promise to other programs. Writing streams straight from the value, one object of
//! a list per line so that files can be compared line by line; nothing is built in memory.
//! Reading goes through plain structs (`wire`, `routes`) that know the keys and nothing else,
//! and then through the constructors of the types, which check the shape.
//!
//! Rules of reading:
//!
//! * An unknown key is an error: a misspelt requirement must not be lost. A file's version is the
//!   least one that knows all keys in it; a newer version than ours is refused by name.
//! * Keys the promise shows are required; all others default, those of the machine to the `iwarp`
//!   preset's values.
//! * What is inconsistent in shape (ids out of range, lists of different lengths) is an error
//!   here. What is merely wrong (cells that are no neighbours, channels the cell has not, missing
//!   words) loads, for the checker to refuse.
//!
//! Syntax errors and wrong types are placed by line and column, errors of shape by path.

mod layout;
mod read;
mod routes;
mod wire;
mod write;

pub use read::parse;
pub use write::{write, write_program, write_schedule, write_to};

/// The `format` of compiled programs.
pub const SCHEDULE_FORMAT: &str = "conset-schedule";
/// The `format` of programs that nobody has compiled.
pub const SET_FORMAT: &str = "conset-set";
/// The newest version this program reads; it writes the least that knows everything in the value.
pub const VERSION: u32 = 2;
