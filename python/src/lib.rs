//! The native part of the Python package `conset`: compiling, running and checking for Python.
//!
//! This crate converts between Python's values and those of the library `conset`. The package in
//! `lib/conset` is the interface for users: it checks types, makes arrays and defines the
//! exceptions. Between the two, arrays travel as `bytes` of native integers of 64 bits, so neither
//! side needs the C interface of NumPy.
//!
//! Long work runs on threads of its own ([`job`]), so Python can be interrupted, and nothing
//! unwinds into Python.

#![forbid(unsafe_code)]

mod arrays;
mod compile;
mod failure;
mod files;
mod job;
mod options;
mod origin;
mod phases;
mod program;
mod source;
mod steps;

/// The module `conset._conset`.
#[pyo3::pymodule]
mod _conset {
    #[pymodule_export]
    use crate::compile::{compile, load};
    #[pymodule_export]
    use crate::program::Program;
    #[pymodule_export]
    use crate::source::Source;

    /// The version of the compiler.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Upper limits of the arguments, which Python checks.
    #[pymodule_export]
    const PARTS_MAX: usize = conset_ir::limits::PARTS;

    /// Greatest imbalance, in thousandths.
    #[pymodule_export]
    const IMBALANCE_MAX: u32 = conset_mesh::partition::MAX_IMBALANCE;

    /// Greatest number of words of a connection.
    #[pymodule_export]
    const WORDS_MAX: u32 = conset_ir::limits::WORDS;
}
