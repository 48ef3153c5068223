//! A file of any form, which its first bytes tell.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::any(bytes));
