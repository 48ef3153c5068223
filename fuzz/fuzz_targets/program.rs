//! Generated programs, through everything that `conset soak` does with one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conset_fuzz::target("program")(bytes));
