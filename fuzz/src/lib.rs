//! The functions that the fuzz targets call with the fuzzer's bytes.
//!
//! A reader may accept or reject its input. It must not panic, hang, or allocate memory for a count
//! that a file only declares (libFuzzer's limits detect the last two). Accepted input must pass the
//! next steps: documents are written in every form, read again and compared; meshes are converted to
//! connection sets; schedules and images are passed to the checker, which may reject them.
//!
//! [`program`] generates a valid machine and a valid program from the bytes, so every word must be
//! delivered. The generator is that of the tests (`crates/testing`).

mod readers;

pub use conset_testing::{Case, check as program};
pub use readers::{any, binary, json, machine_file, mesh, partition, text};
