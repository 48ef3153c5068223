//! Tests of the formats: every value is restored, and invalid input is refused.

mod cases;
mod damage;
mod file_format;
mod json;
mod machine_file;
#[path = "../../../../fixtures/numbers.rs"]
mod numbers;
mod roundtrip;
mod support;
