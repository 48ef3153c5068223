//! Machine files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::machine_file(bytes));
