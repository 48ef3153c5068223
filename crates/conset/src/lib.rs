//! The communication compiler as a library: from the bytes of an input to delivered words.
//!
//! ```text
//!  bytes ──input──► Program ──Compiler──► Compiled { Schedule, Image } ──run──► RunSummary
//! ```
//!
//! This crate runs the stages in order; the stages themselves are crates of their own. It also
//! guarantees that every compiled program was verified by the independent checker: a [`Compiled`]
//! comes from [`Compiler::compile`], or from [`Compiled::import`] and [`Compiled::import_image`],
//! which check schedules and images from elsewhere.
//!
//! ```
//! use std::sync::Arc;
//!
//! use conset::ir::{CellId, Connection, ConnectionSet, Machine};
//! use conset::{Compiler, run};
//!
//! // Each of 16 cells sends 100 words to the next one.
//! let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
//! let set = ConnectionSet::new("ring", ring.collect())?;
//!
//! // Compile the set for a 4x4 torus.
//! let machine = Arc::new(Machine::from_spec("torus:4x4")?);
//! let compiled = Compiler::new(&machine).seed(1).compile(&set.into())?;
//!
//! // Execute it on the emulated machine, and check every word.
//! let measured = run::run(&compiled, 1, false, &mut |_| ())?;
//! assert!(measured[0].summary.payload_ok);
//! assert_eq!(measured[0].summary.words, 1600);
//! assert!(measured[0].summary.clocks_over_bound >= 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate opens no files and prints nothing; long operations report their progress to a callback
//! ([`Progress`]).

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

pub mod assemble;
pub mod batches;
pub mod bounds;
pub mod chart;
pub mod choice;
mod compiled;
mod compiler;
pub mod diff;
mod error;
pub mod fuse;
pub mod growth;
pub mod incremental;
pub mod input;
mod options;
mod pairing;
mod paper_algorithm;
mod parallel;
mod part_diff;
mod partition_search;
pub mod predict;
pub mod profile;
pub mod program_diff;
mod progress;
pub mod recovery;
pub mod report;
pub mod reproduce;
pub mod run;
mod schedule_diff;
mod search;
pub mod step_views;
pub mod steps;
mod table_diff;
pub mod why;

pub use assemble::{Assembled, assemble, place_parts};
pub use bounds::{bound_ratio, lower_bounds, total_bounds};
pub use compiled::{Compiled, CompiledSet};
pub use compiler::{Compiler, program_of, with_witnesses};
pub use conset_codegen as codegen;
pub use conset_fabric as fabric;
pub use conset_ir as ir;
pub use conset_mesh as mesh;
pub use conset_partition_route as partition_route;
pub use conset_planner::Interrupt;
pub use conset_scheduler as scheduler;
pub use conset_verify as verify;
pub use error::CompileError;
pub use options::{Algorithm, CompileOptions, Objective};
pub use progress::{Clock, Observer, Progress};
pub use search::{SearchStats, StopReason, Trial};
