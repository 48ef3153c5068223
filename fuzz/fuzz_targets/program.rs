//! A generated program: compiled, checked, run on the fabric and on threads.
#![no_main]

libfuzzer_sys::fuzz_target!(|case: conset_fuzz::Case| conset_fuzz::program(&case));
