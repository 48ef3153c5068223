//! The reader of `graph-connections` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("mesh_graph_connections")(bytes));
