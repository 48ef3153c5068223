//! One program for all tests of the crate, so that it is linked once and no core waits for the last test of each file.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../fixtures/shared_meshes.rs"]
mod shared_meshes;

mod assembled;
mod compressed;
mod damage;
mod formats;
mod generate;
mod gmsh_sections;
mod halo_kinds;
mod halo_properties;
mod openfoam;
mod patterns;
mod read;
mod real_files;
mod real_mixed_files;
mod surface;
mod vtu_pieces;
mod write_msh;
mod write_partition;
