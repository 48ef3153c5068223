//! The forms on disk: every value comes back as it was, and nothing that is no value gets in.

mod cases;
mod damage;
mod json;
mod roundtrip;
mod support;
