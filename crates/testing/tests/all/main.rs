//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[allow(unreachable_pub, reason = "public in the benches")]
#[path = "../../../../benches/families.rs"]
mod families;
#[path = "../../../mesh/tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests of the readers use more of it")]
mod samples;

mod corpus;
mod fault_matrix;
mod profiles;
mod programs;
mod second_simulator;
mod soak;
