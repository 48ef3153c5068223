//! The formats with elements of all dimensions on files that other people made.
//!
//! The counts are independent of conset: those of meshio 5.3.5 (Abaqus, UCD, VTK), of Gmsh 4
//! (Gmsh), of the NetCDF library (Exodus), and of the rows of the file (MFEM). `fixtures/shared_meshes.rs` says where the
//! files are.

use crate::shared_meshes::bytes;
use conset_mesh::partition::{self, PartitionOptions};
use conset_mesh::read::{ReadOptions, Reading, read_with};
use conset_mesh::{Format, Source, halo};

fn read(name: &str) -> Option<Result<Reading, conset_ir::InputError>> {
    let bytes = bytes(name)?;
    let format = Format::detect(name, &bytes).unwrap_or_else(|| panic!("{name}: no format"));
    Some(read_with(format, name, &bytes, &ReadOptions::default()))
}

/// Nodes, elements by type, and how many are attached.
fn check(files: &[(&str, usize, &str, usize)]) {
    for &(name, nodes, types, attached) in files {
        let Some(reading) = read(name) else { continue };
        let reading = reading.unwrap_or_else(|error| panic!("{error}"));
        let inventory = reading.inventory.as_ref().unwrap();
        let found: Vec<String> =
            inventory.elements.iter().map(|e| format!("{} {}", e.count, e.element_type)).collect();
        let found = (inventory.node_count, found.join(", "), inventory.attached());
        assert_eq!(found, (nodes, types.to_owned(), attached), "{name}");
        let Source::Mesh(mesh) = &reading.source else { panic!("{name}") };
        let total: usize = inventory.elements.iter().map(|e| e.count).sum();
        assert_eq!(mesh.element_count() + attached, total, "{name}");
        // The whole way: a partition, and an exchange that has every shared node.
        let options = PartitionOptions::new(2).seed(1);
        let partition = partition::partition(&reading.source, &options, name).unwrap();
        let halo = halo(&reading.source, &partition, "halo").unwrap();
        let mut parts = vec![[false; 2]; mesh.node_count()];
        for (element, &part) in mesh.elements().zip(partition.part_of()) {
            for &node in element {
                parts[node as usize][part as usize] = true;
            }
        }
        let shared = parts.iter().filter(|parts| **parts == [true; 2]).count();
        assert_eq!(halo.summary.shared_nodes, shared, "{name}");
    }
}

/// Files that are refused, and a piece of the reason.
fn check_refused(files: &[(&str, &str)]) {
    for &(name, reason) in files {
        let Some(reading) = read(name) else { continue };
        let error = reading.err().unwrap_or_else(|| panic!("{name} was read"));
        assert!(error.message.contains(reason), "{error}");
    }
}

#[test]
fn mfem() {
    check(&[
        ("mfem/beam-hex.mesh", 36, "34 4-node quadrilateral, 8 8-node hexahedron", 34),
        ("mfem/beam-tet.mesh", 36, "68 3-node triangle, 48 4-node tetrahedron", 68),
        ("mfem/escher.mesh", 26, "48 3-node triangle, 42 4-node tetrahedron", 48),
        ("mfem/fichera.mesh", 26, "24 4-node quadrilateral, 7 8-node hexahedron", 24),
        ("mfem/mobius-strip.mesh", 24, "16 2-node line, 16 4-node quadrilateral", 16),
        ("mfem/periodic-square.mesh", 9, "9 4-node quadrilateral", 0),
        ("mfem/square-disc.mesh", 101, "48 2-node line, 154 3-node triangle", 48),
        (
            "mfem/star-mixed.mesh",
            31,
            "20 2-node line, 20 3-node triangle, 10 4-node quadrilateral",
            20,
        ),
        ("mfem/star-q2.mesh", 31, "20 2-node line, 20 4-node quadrilateral", 20),
        ("mfem/star.mesh", 31, "20 2-node line, 20 4-node quadrilateral", 20),
        ("mfem/toroid-wedge.mesh", 18, "18 4-node quadrilateral, 6 6-node prism", 18),
    ]);
    check_refused(&[
        ("mfem/amr-quad.mesh", "nonconforming"),
        ("mfem/inline-hex.mesh", "MFEM generates them"),
        ("mfem/square-nurbs.mesh", "NURBS"),
    ]);
}

#[test]
fn exodus() {
    check(&[
        ("exodus/Cube_With_Sidesets.e", 125, "27 27-node hexahedron of a spline", 0),
        ("exodus/component_1.exo", 108, "48 8-node hexahedron", 0),
        ("exodus/geom_8.exo", 125, "384 4-node tetrahedron", 0),
        ("exodus/good_32bit_elem_integers.e", 16, "9 4-node quadrilateral", 0),
        ("exodus/nontrivial_elem_num_map.exo", 50, "35 4-node quadrilateral", 0),
        ("exodus/nontrivial_node_num_map.exo", 9, "4 4-node quadrilateral", 0),
        ("exodus/read_exodus_HEX20.e", 81, "8 20-node hexahedron", 0),
        ("exodus/read_exodus_HEX8.e", 27, "8 8-node hexahedron", 0),
        ("exodus/read_exodus_PRISM6.e", 27, "16 6-node prism", 0),
        ("exodus/read_exodus_PYRAMID5.e", 35, "48 5-node pyramid", 0),
        ("exodus/read_exodus_QUAD4.e", 9, "4 4-node quadrilateral", 0),
        ("exodus/read_exodus_TET10.e", 381, "192 10-node tetrahedron", 0),
        ("exodus/read_exodus_TET4.e", 71, "192 4-node tetrahedron", 0),
        ("exodus/read_exodus_TRI6.e", 25, "8 6-node triangle", 0),
        ("exodus/two_quads_two_blocks.e", 18, "2 9-node quadrilateral of a spline", 0),
        ("petsc/TwoQuads.exo", 6, "2 4-node quadrilateral", 0),
        ("petsc/annulus-20.exo", 684, "621 4-node quadrilateral", 0),
    ]);
}

#[test]
fn vtk() {
    check(&[
        ("vtk/cube_with_ids.vtu", 125, "16 4-node quadrilateral, 64 8-node hexahedron", 16),
        ("vtk/square_with_ids.vtu", 25, "4 2-node line, 16 4-node quadrilateral", 4),
        ("vtk/tet_binary_lz4_h32.vtu", 216, "625 4-node tetrahedron", 0),
        ("vtk/twopieces.vtu", 15, "8 4-node quadrilateral", 0),
        ("vtk/shell_beam.vtu", 65, "40 2-node line, 16 4-node quadrilateral", 0),
        ("vtk/polyhedra.vtu", 64, "27 8-node polyhedron", 0),
        ("vtk/beam-tet.vtk", 36, "48 4-node tetrahedron", 0),
        ("vtk/cube_with_ids.vtk", 125, "16 4-node quadrilateral, 64 8-node hexahedron", 16),
        ("vtk/data_3_3_tets.vtk", 27, "40 4-node tetrahedron", 0),
        ("vtk/escher.vtk", 26, "42 4-node tetrahedron", 0),
        ("vtk/fichera.vtk", 26, "7 8-node hexahedron", 0),
        ("vtk/star-q2.vtk", 101, "20 9-node quadrilateral", 0),
    ]);
}

#[test]
fn abaqus_and_ucd() {
    check(&[
        ("abaqus/2d_quad.inp", 9, "4 4-node quadrilateral", 0),
        ("abaqus/2d_test.inp", 133, "108 4-node quadrilateral", 0),
        ("abaqus/3d_CC_cubit_new.inp", 54, "16 8-node hexahedron", 0),
        ("abaqus/3d_test_cube_two_materials.inp", 27, "8 8-node hexahedron", 0),
        ("abaqus/codim_1-tube.inp", 120, "96 4-node quadrilateral", 0),
        ("ucd/3d_CC_cubit_new.ucd", 54, "32 4-node quadrilateral, 16 8-node hexahedron", 32),
        (
            "ucd/3d_test_cube_two_materials.ucd",
            27,
            "24 4-node quadrilateral, 8 8-node hexahedron",
            24,
        ),
    ]);
}

/// d2o1r0_v20a and v21b are of version 2.2 as they say; the periodic meshes have their nodes joined.
#[test]
fn gmsh_versions() {
    check(&[
        (
            "gmsh-versions/compass.msh",
            13,
            "8 2-node line, 8 3-node triangle, 4 4-node quadrilateral",
            8,
        ),
        ("gmsh-versions/d2o1r0_v10a.msh", 116, "47 2-node line, 185 3-node triangle", 47),
        ("gmsh-versions/d2o1r0_v20a.msh", 116, "47 2-node line, 185 3-node triangle", 47),
        ("gmsh-versions/d2o1r0_v21b.msh", 116, "47 2-node line, 185 3-node triangle", 47),
        ("gmsh-versions/nested_cubes.msh", 138, "240 3-node triangle, 520 4-node tetrahedron", 240),
        (
            "gmsh-versions/hybrid_3d_cube.msh",
            91,
            "82 3-node triangle, 24 4-node quadrilateral, 117 4-node tetrahedron, 60 6-node prism",
            106,
        ),
        (
            "gmsh-versions/periodic-annulus-sector.msh",
            136,
            "12 4-node line, 26 10-node triangle",
            12,
        ),
        ("gmsh-versions/periodic-square.msh", 25, "16 2-node line, 16 4-node quadrilateral", 16),
        ("gmsh-versions/shell_beam.msh", 65, "40 2-node line, 16 4-node quadrilateral", 0),
        ("gmsh-versions/sparse.msh", 4, "2 3-node triangle", 0),
        (
            "petsc/cube_q2.msh",
            63,
            "8 point, 12 3-node line, 24 6-node triangle, 24 10-node tetrahedron",
            44,
        ),
        ("petsc/hybrid_hexwedge.msh", 224, "18 6-node prism, 84 8-node hexahedron", 0),
        ("petsc/square_bin.msh", 30, "16 2-node line, 42 3-node triangle", 16),
        ("petsc/square_periodic.msh", 109, "4 point, 36 2-node line, 180 3-node triangle", 40),
    ]);
    check_refused(&[
        ("gmsh-versions/d2o1r0_v40b.msh", "the file is empty"),
        ("gmsh-versions/split_1.msh", "partition 1 of 4 only"),
        ("gmsh-versions/lshaped_1.msh", "partition 1 of 2 only"),
    ]);
}

/// Against a count of the classes of nodes that the pairs of `$Periodic` make.
#[test]
fn periodic_nodes_are_joined() {
    for (name, joined) in [
        ("gmsh-versions/periodic-annulus-sector.msh", 3),
        ("gmsh-versions/periodic-square.msh", 9),
        ("gmsh-versions/periodic_v41a.msh", 9),
        ("petsc/square_periodic.msh", 19),
    ] {
        let Some(reading) = read(name) else { continue };
        let inventory = reading.unwrap().inventory.unwrap();
        assert_eq!((inventory.joined_nodes, inventory.unused_nodes), (joined, 0), "{name}");
    }
}
