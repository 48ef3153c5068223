//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../common/mod.rs"]
mod common;

mod dense_pathfinder;
mod ejection_search;
mod phase_pathfinder;
mod slot_pathfinder;
mod windowed_pathfinder;
