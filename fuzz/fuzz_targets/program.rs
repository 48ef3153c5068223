//! Generated programs: compiled, verified, and run on the fabric and on threads.
#![no_main]

libfuzzer_sys::fuzz_target!(|case: conset_fuzz::Case| conset_fuzz::program(&case));
