//! Partition files; the first bytes say for how many items and parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::partition(bytes));
