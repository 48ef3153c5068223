//! The conset command.
fn main() {}
