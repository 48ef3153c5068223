//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../common/cases.rs"]
mod cases;
#[path = "../common/mod.rs"]
mod common;

mod dense_pathfinder;
mod ejection_search;
mod local_search;
mod merge_phases;
mod phase_pathfinder;
mod slot_pathfinder;
mod translation_slots;
mod windowed_pathfinder;
