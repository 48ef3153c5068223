//! Random programs for tests and fuzzing, and the properties that every program must have.
//!
//! A [`Case`] is a machine, a program for it and compiler options, all of them valid. [`check`]
//! compiles it, verifies the result, runs it and examines every word. `tests/all/programs.rs` generates cases from
//! fixed seeds in every test run; `conset soak` generates one after another and does everything with each
//! ([`mod@soak`]), and so does the fuzz target `program` with the fuzzer's bytes. [`compare`] runs programs on the
//! second simulator too. [`fault_matrix`] runs them with faults of the hardware. [`mod@readers`] has the functions of all fuzz targets (`fuzz/`), and [`corpus`] the files of
//! their inputs.
//!
//! Not generated: machines with more than 64 cells.
//!
//! # Example
//!
//! ```
//! use conset_testing::{Case, CaseKind, check};
//!
//! check(&Case::of_seed(1, CaseKind::Any));
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

mod case;
mod cell_programs;
mod check;
pub mod compare;
pub mod corpus;
pub mod fault_matrix;
mod forms;
pub mod readers;
mod shrink;
pub mod soak;
mod structured;

pub use case::{Case, CaseKind};
pub use check::check;
pub use shrink::shrink;
