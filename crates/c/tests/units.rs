//! The unit tests of modules that the rest of the library is not needed for. Built with the library, they would be a program
//! with every function of the interface, and half a minute of compiling for five tests.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    unused_macros,
    reason = "modules of the library, of which their tests use a part"
)]

#[path = "../src/entry.rs"]
mod entry;
#[path = "../src/handle.rs"]
mod handle;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/remedy.rs"]
mod remedy;
#[path = "../src/status.rs"]
mod status;
