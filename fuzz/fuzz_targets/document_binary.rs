//! The binary form, damaged but with a correct checksum.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("document_binary")(bytes));
