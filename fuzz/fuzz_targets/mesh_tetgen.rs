//! The reader of `tetgen` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_tetgen")(bytes));
