//! The reader of `vtk-legacy` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_vtk_legacy")(bytes));
