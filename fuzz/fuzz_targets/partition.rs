//! Partition files; the first two bytes are the numbers of items and parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("partition")(bytes));
