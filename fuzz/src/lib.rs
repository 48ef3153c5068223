//! The functions that the fuzz targets call with the fuzzer's bytes: those of `crates/testing`, which
//! `cargo test` calls with stored inputs.

pub use conset_testing::corpus;
pub use conset_testing::readers::{TARGETS, target};
