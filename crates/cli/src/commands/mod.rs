//! The subcommands, one module each.

pub(crate) mod batches;
pub(crate) mod bound;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod emit;
mod faults;
pub(crate) mod generate;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod machines;
pub(crate) mod patterns;
pub(crate) mod predict;
pub(crate) mod profile;
mod recovery;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod soak;
pub(crate) mod steps;
pub(crate) mod sweep;
pub(crate) mod tune;
pub(crate) mod verify;
pub(crate) mod view;
pub(crate) mod why;
