//! The reader of `gmsh` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_gmsh")(bytes));
