//! The communication compiler as a library: from an input's bytes to words delivered.
//!
//! ```text
//!  bytes ──input──► Program ──compile──► Compiled { Schedule, Image } ──run──► RunReport
//! ```
//!
//! This crate owns the order of the stages and nothing else: each decision is taken in the stage
//! that is named after it. What it adds is the promise that *whatever compiles has been through
//! the independent checker*, at every arrow: [`Compiled`] can only be had from
//! [`compile::compile`], which checks what the stages made, or from [`compile::adopt`] and
//! [`compile::adopt_image`], which check what somebody else made.
//!
//! It opens no files and prints nothing; long work reports through a callback ([`Progress`]).

#![forbid(unsafe_code)]

pub mod against;
pub mod assemble;
mod best;
pub mod chart;
pub mod compile;
pub mod diff;
pub mod from;
pub mod fuse;
pub mod input;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod why;

pub use assemble::{Assembled, assemble};
pub use best::{Attempts, Clock, Ended, Trial};
pub use compile::{
    Algorithm, CompileError, Compiled, More, Objective, Options, adopt, adopt_image, compile,
    compile_sets, compile_with,
};
pub use conset_codegen as codegen;
pub use conset_fabric as fabric;
pub use conset_ir as ir;
pub use conset_mesh as mesh;
pub use conset_partition_route as partition_route;
pub use conset_scheduler as scheduler;
pub use conset_verify as verify;

/// What long work is doing, told to whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A stage begins.
    Stage(&'static str),
    /// Within the stage: so many of so many are done.
    Done {
        /// How many.
        done: u64,
        /// Of how many; 0 where that is not known.
        total: u64,
    },
    /// What the best plans found so far take.
    Found {
        /// Predicted clocks of all sets.
        clocks: u64,
        /// No plan takes fewer.
        bound: u64,
    },
}

/// The callback that is told.
pub type Observer<'a> = dyn FnMut(Progress) + 'a;
