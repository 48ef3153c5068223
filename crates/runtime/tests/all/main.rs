//! One program for all tests of the crate that need no process of their own, so that it is linked once and no core waits
//! for the last test of each file.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/epoch_cases.rs"]
mod epoch_cases;
#[path = "../common/library_cases.rs"]
mod library_cases;
#[path = "../common/step_cases.rs"]
mod step_cases;
#[path = "../common/tree_cases.rs"]
mod tree_cases;

// Where the cases look for it.
use common::build;

mod any_programs;
mod collectives;
mod epochs;
mod faults;
mod layouts;
mod library;
mod message_faults;
mod messages;
mod overlap;
mod overlap_fabric;
mod plans;
mod programs;
mod reductions;
mod skips;
mod steps;
mod threads;
