//! The parser of fault plans.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("fault_plan")(bytes));
