//! Readers for meshes, graphs and matrices, and generators of connection sets from them.
//!
//! ```text
//!  bytes ─► read ─► Source ─► partition ─► Partition ─► halo ─► ConnectionSet
//! ```
//!
//! [`read`](read()) converts the bytes of a file to a [`Source`]; all later steps use the types of
//! [`model`] and no file format. A [`Partition`] assigns a part to each element, vertex or row; it is
//! contained in the input, read from a file, or computed by METIS ([`partition`]). [`halo`](halo())
//! computes the exchange between the parts. [`triangles`] reconstructs a triangle mesh from its nodal
//! graph.
//!
//! [`patterns`] generates connection sets by name, [`generate`] generates meshes, and [`write_msh`]
//! writes them.
//!
//! This crate opens no files and has no machine model (except that patterns are generated for a
//! machine): the cells of a halo exchange are part numbers. It ignores geometry (degenerate elements,
//! orientation), material and boundary data, and the values of matrices.
//!
//! # Example
//!
//! ```
//! use conset_mesh::partition::{PartitionOptions, partition};
//! use conset_mesh::{Format, halo, read};
//!
//! // A METIS graph: a path of four vertices.
//! let graph = b"4 3\n2\n1 3\n2 4\n3\n";
//! let source = read(Format::MetisGraph, "path.graph", graph)?;
//! let parts = partition(&source, &PartitionOptions::new(2), "path.graph")?;
//! let halo = halo(&source, &parts, "path")?;
//! // Each of the two parts sends one value to the other.
//! assert_eq!((halo.set.len(), halo.summary.words), (2, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod dual;
pub mod generate;
pub mod halo;
pub mod model;
pub mod partition;
pub mod patterns;
pub mod read;
pub mod surface;
pub mod triangles;
pub mod write_msh;
pub mod write_partition;

pub use halo::{Halo, HaloSummary, halo};
pub use model::{ConnectionList, Decomposition, Graph, Matrix, Mesh, SharedLists, Source};
pub use partition::{Partition, PartitionOptions};
pub use read::{Format, read};
