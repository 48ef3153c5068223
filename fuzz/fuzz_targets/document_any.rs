//! A file of any form, detected by its first bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("document_any")(bytes));
