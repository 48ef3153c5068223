//! Tests of the formats: every value is restored, and invalid input is refused.

mod cases;
mod damage;
mod json;
mod roundtrip;
mod support;
