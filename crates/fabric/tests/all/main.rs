//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../build/mod.rs"]
mod build;

mod fault_texts;
mod injection;
mod interruption;
mod message_faults;
mod messages;
mod side_by_side;
mod skipping;
mod steps;
mod timed;
mod timing;
mod traces;
mod word_faults;
mod wrong_images;
