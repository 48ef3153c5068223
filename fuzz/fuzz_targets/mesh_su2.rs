//! The reader of `su2` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_su2")(bytes));
