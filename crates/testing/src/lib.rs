//! Random programs, and what must hold for every one of them.
//!
//! A [`Case`] is a machine, a program for it and options of a compile, all of them valid. [`check`]
//! compiles it, has it checked, runs it and looks at every word. The fuzz target `program`
//! (`fuzz/`) makes cases from the fuzzer's bytes; `tests/programs.rs` makes them from fixed seeds,
//! in every run of the tests. Nothing that is shipped depends on this crate.
//!
//! # What is not generated
//!
//! Required bandwidths and latencies; machines above a few dozen cells; message passing.

#![forbid(unsafe_code)]

mod case;
mod check;

pub use case::{Case, Kind};
pub use check::check;
