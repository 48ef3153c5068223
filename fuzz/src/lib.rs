//! What the fuzz targets do with their bytes.
//!
//! A reader may accept or refuse. It may not panic, hang, or take memory for what a file only
//! claims to have (libFuzzer's limits see to the last two). What it accepts has to survive what
//! comes next: documents are written in every form and read again, and are the same; meshes are
//! turned into connection sets; schedules and images go to the checker, which may refuse them.
//!
//! [`program`] goes the other way: its bytes become a machine and a program that are valid, and then
//! nothing but delivery of every word is right. The generator is that of the tests
//! (`crates/testing`).

mod readers;

pub use conset_testing::{Case, check as program};
pub use readers::{any, binary, json, machine_file, mesh, partition, text};
