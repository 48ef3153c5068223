//! The reader of `metis-graph` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_metis_graph")(bytes));
