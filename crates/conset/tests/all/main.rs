//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/delivered.rs"]
mod delivered;
#[path = "../../../../fixtures/numbers.rs"]
mod numbers;
#[path = "../../../../fixtures/shared_meshes.rs"]
mod shared_meshes;

mod anytime;
mod assemble;
mod budgets;
mod claims;
mod cluster;
mod dead_parts;
mod fuse;
mod image_mutants;
mod incremental;
mod incremental_parts;
mod ordered;
mod partitions;
mod parts;
mod pipeline;
mod predict;
mod profile;
mod recovery;
mod recovery_messages;
mod reproduce;
mod search;
mod steps;
mod timed;
mod why_and_diff;
