//! Meshes, graphs, matrices and patterns turned into connection sets.
//!
//! ```text
//!  bytes ─► read ─► Source ─► partition ─► Partition ─► halo ─► ConnectionSet
//! ```
//!
//! [`model`] holds what a file can describe; everything later works on those types and knows no
//! file format.
//!
//! [`patterns`] makes connection sets from a name, [`generate`] meshes from a few numbers, and
//! [`write_msh`] writes them.

mod dual;
pub mod generate;
pub mod halo;
pub mod model;
pub mod partition;
pub mod patterns;
pub mod read;
pub mod triangles;
pub mod write_msh;

pub use halo::{Halo, HaloSummary, halo};
pub use model::{ConnectionList, Decomposition, Graph, Matrix, Mesh, SharedLists, Source};
pub use partition::Partition;
pub use read::{Format, read};
