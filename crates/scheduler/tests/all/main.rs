//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../common/mod.rs"]
mod common;

mod predictions;
mod steps;
mod timetables;
