//! Meshes, graphs, matrices and patterns turned into connection sets.
//!
//! ```text
//!  bytes ─► read ─► Source ─► partition ─► Partition ─► halo ─► ConnectionSet
//! ```
//!
//! [`read`](read()) turns the bytes of a file into a [`Source`]; everything later works on the
//! types of [`model`] and knows no file format. A [`Partition`] says which part has each element,
//! vertex or row; it is stated in the input, read from a file, or made by METIS ([`partition`]).
//! [`halo`](halo()) says what the parts must tell each other. [`triangles`] makes a mesh of the
//! nodal graph of one.
//!
//! [`patterns`] makes connection sets from a name, [`generate`] meshes from a few numbers, and
//! [`write_msh`] writes them.
//!
//! Nothing here opens files, and machines are not known: the cells of a set made here are part
//! numbers. Not done: geometry (degenerate elements, orientation), material and boundary data,
//! values of matrices.

#![forbid(unsafe_code)]

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
