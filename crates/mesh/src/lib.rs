//! Meshes, graphs, matrices and patterns turned into connection sets.
//!
//! ```text
//!  bytes ─► read ─► Source ─► partition ─► Partition ─► halo ─► ConnectionSet
//! ```
//!
//! [`model`] holds what a file can describe; everything later works on those types and knows no
//! file format.

pub mod generate;
pub mod model;
pub mod patterns;
pub mod write_msh;

pub use model::{Decomposition, Graph, Matrix, Mesh, SharedLists, Source};
