//! The binary form, damaged and with a checksum that is right.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::binary(bytes));
