//! Formats that list elements of all dimensions: what is read, what is refused, and where.

use crate::common;
use crate::common::assembled::{self, ABAQUS, MFEM, MFEM_CURVED, UCD, VTK_3, VTK_5, VTK_FACES};
use conset_ir::{At, InputError};
use conset_mesh::read::{ReadOptions, Reading, read_with, read_within};
use conset_mesh::{Format, Mesh, Source};

fn reading(format: Format, bytes: &[u8]) -> Reading {
    read_with(format, "f", bytes, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn mesh(reading: &Reading) -> &Mesh {
    match &reading.source {
        Source::Mesh(mesh) => mesh,
        other => panic!("{other:?}"),
    }
}

fn refused(format: Format, text: &str) -> InputError {
    match read_with(format, "f", text.as_bytes(), &ReadOptions::default()) {
        Err(error) => error,
        Ok(reading) => panic!("accepted: {reading:?}"),
    }
}

/// Each piece of `text` replaced by another gives an error on this line with this piece.
fn check_errors(format: Format, text: &str, cases: &[(&str, &str, usize, &str)]) {
    for &(from, to, line, piece) in cases {
        assert!(text.contains(from), "{from}");
        let error = refused(format, &text.replacen(from, to, 1));
        let found = match error.at {
            At::Text { line, .. } => line,
            _ => 0,
        };
        assert!(error.message.contains(piece) && found == line, "{from} > {to}: {error}");
    }
}

#[test]
fn all_formats_give_the_same_mesh() {
    for sample in assembled::samples() {
        if ["curved.mesh", "faces.vtk"].contains(&sample.name) {
            continue;
        }
        let reading = reading(sample.format, &sample.bytes);
        let (mesh, name) = (mesh(&reading), sample.name);
        assert_eq!(
            (mesh.dimension(), mesh.node_count(), mesh.element_count()),
            (2, 4, 2),
            "{name}"
        );
        // Ids by which nodes are ranked, ids that are a map beside, or none.
        let (ids, elements, last): (&[u64], _, _) = match sample.format {
            Format::Abaqus | Format::Ucd => (&[10, 20, 30, 40], [[2, 0, 1], [0, 3, 1]], 3),
            Format::Exodus => (&[30, 10, 20, 40], [[0, 1, 2], [1, 3, 2]], 3),
            _ => (&[], [[0, 1, 2], [1, 3, 2]], 3),
        };
        assert_eq!(mesh.node_ids(), ids, "{name}");
        assert_eq!(mesh.elements().collect::<Vec<_>>(), elements, "{name}");
        assert_eq!(mesh.coordinates()[last][..2], [1.0, 1.0], "{name}");
        let origin = reading.origin.as_ref().unwrap();
        assert_eq!(
            (&origin.divided[..], &origin.attached[..]),
            (&[0, 1][..], &[(2, 0)][..]),
            "{name}"
        );
        let inventory = reading.inventory.as_ref().unwrap();
        assert_eq!((inventory.attached(), inventory.unused_nodes), (1, 0), "{name}");
        let types: Vec<String> =
            inventory.elements.iter().map(|e| format!("{} {}", e.count, e.element_type)).collect();
        assert_eq!(types, ["1 2-node line", "2 3-node triangle"], "{name}");
        let [low, high] = inventory.bounding_box.unwrap();
        assert_eq!((low, high[..2].to_vec()), ([0.0; 3], vec![1.0, 1.0]), "{name}");
    }
}

#[test]
fn formats_are_found_by_content() {
    for sample in assembled::samples() {
        assert_eq!(Format::detect("-", &sample.bytes), Some(sample.format), "{}", sample.name);
    }
}

#[test]
fn compressed_files_are_read_within_their_memory() {
    use std::io::Read;
    for sample in common::samples() {
        let mut packed = Vec::new();
        let best = flate2::Compression::best();
        flate2::read::GzEncoder::new(&sample.bytes[..], best).read_to_end(&mut packed).unwrap();
        let plain = read_within(sample.format, "f", &sample.bytes, u64::MAX).unwrap();
        let read = |memory| read_within(sample.format, "f", &packed, memory);
        assert_eq!(read(u64::MAX).unwrap(), plain, "{}", sample.name);
        let memory = sample.bytes.len() as u64 - 1;
        assert!(read(memory).unwrap_err().message.contains("decompresses to more"));
        assert_eq!(Format::from_content(&packed), Format::from_content(&sample.bytes));
    }
}

#[test]
fn mfem_files_say_where_they_are_wrong() {
    check_errors(
        Format::Mfem,
        MFEM,
        &[
            ("MFEM mesh v1.0", "MFEM mesh v9", 1, "not a known first line"),
            ("MFEM mesh v1.0", "MFEM NURBS mesh v1.0", 1, "NURBS"),
            ("MFEM mesh v1.0", "MFEM NC mesh v1.0", 1, "nonconforming"),
            ("MFEM mesh v1.0", "MFEM INLINE mesh v1.0", 1, "no elements"),
            ("dimension", "dimensions", 4, "`dimensions` where `dimension`"),
            ("1 2 0 1 2", "1 9 0 1 2", 9, "geometry 9"),
            ("1 2 0 1 2", "1 2 0 1", 9, "row ends early"),
            ("1 2 0 1 2", "1 2 0 1 2 3", 9, "unexpected `3`"),
            ("7 2 1 3 2", "7 2 1 4 2", 10, "vertex 4 of 4"),
            ("4\n2\n0 0", "4\n0\n0 0", 18, "space dimension 0"),
            ("4\n2\n0 0", "5\n2\n0 0", 23, "the file ends"),
            ("1 1\n", "1 1 1\n", 22, "end of the file"),
            ("1 1\n", "1 1\nmfem_serial_mesh_end\n", 23, "several files"),
        ],
    );
    let curved = reading(Format::Mfem, MFEM_CURVED.as_bytes());
    assert_eq!(mesh(&curved).coordinates(), [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
    let inventory = curved.inventory.unwrap();
    assert_eq!(inventory.format, "MFEM mesh v1.2");
    assert_eq!(inventory.unused[0].what, "3 higher-order nodes (H1_2D_P2)");
    let periodic = MFEM_CURVED.replace("H1_2D_P2", "L2_T1_2D_P1");
    let periodic = reading(Format::Mfem, periodic.as_bytes());
    assert_eq!((mesh(&periodic).node_count(), mesh(&periodic).coordinates().len()), (3, 0));
    assert!(periodic.inventory.unwrap().unused[0].why.contains("not continuous"));
    check_errors(
        Format::Mfem,
        MFEM_CURVED,
        &[
            ("VDim: 2", "VDim: 5", 14, "too large"),
            ("0 .5 .5 0\n", "0 .5 .5\n", 15, "11 values of 2 components"),
        ],
    );
    let groups: Vec<_> = reading(Format::Mfem, MFEM.as_bytes()).inventory.unwrap().groups;
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["attribute 1", "attribute 7", "boundary attribute 3"]);
}

#[test]
fn ucd_files_say_where_they_are_wrong() {
    check_errors(
        Format::Ucd,
        UCD,
        &[
            ("4 3 1 0 0", "4 3 1 0", 2, "line ends early"),
            ("10 1 0 0", "30 1 0 0", 4, "node 30 is given twice"),
            ("10 1 0 0", "10 1 0", 4, "row ends early"),
            ("2 5 tri", "2 5 triangle", 8, "not a cell type"),
            ("10 40 20", "10 40 21", 8, "node 21 is not in the file"),
            ("10 40 20", "10 40", 8, "at least 3"),
            ("4 3 1", "4 2 0", 9, "more rows"),
        ],
    );
    let inventory = reading(Format::Ucd, UCD.as_bytes()).inventory.unwrap();
    assert_eq!(inventory.unused[0].what, "1 components of node data");
}

#[test]
fn vtk_files_say_where_they_are_wrong() {
    check_errors(
        Format::VtkLegacy,
        VTK_3,
        &[
            ("Version 3.0", "Version 9.0", 1, "expected 1.0 to 5.1"),
            ("ASCII", "TEXT", 3, "ASCII or BINARY"),
            ("UNSTRUCTURED_GRID", "STRUCTURED_GRID", 4, "type STRUCTURED_GRID"),
            ("POINTS 4 float", "POINTS 4 complex", 5, "not a type of numbers"),
            ("1 1 .5", "1 nan .5", 7, "not finite"),
            ("CELLS 3 11", "CELLS 3 10", 11, "more nodes"),
            ("CELLS 3 11", "CELLS 3 2", 8, "2 integers for 3 cells"),
            ("3 1 3 2", "3 1 4 2", 8, "cell 1: node 4 of 4"),
            ("5 5 3", "5 99 3", 8, "cell 1: type 99"),
            ("5 5 3", "5 9 3", 8, "cell 1: 3 nodes for type 9 (quadrilateral)"),
            ("CELL_TYPES 3\n5 5 3", "CELL_TYPES 2\n5 5", 8, "3 cells, but 2 cell types"),
            ("CELL_TYPES 3\n5 5 3\n", "", 12, "data before"),
            ("CELL_DATA", "CELLS", 14, "`CELLS` where"),
        ],
    );
    check_errors(
        Format::VtkLegacy,
        VTK_5,
        &[
            ("0 3 6 8", "0 6 3 8", 13, "do not ascend"),
            ("0 3 6 8", "0 3 6 7", 13, "do not ascend"),
            ("OFFSETS", "OFFSET", 14, "where OFFSETS was expected"),
            ("TIME 1 1 double", "TIME 1 1 string", 6, "has strings"),
        ],
    );
    let faces = reading(Format::VtkLegacy, VTK_FACES.as_bytes());
    assert_eq!(mesh(&faces).element(0), [0, 1, 2, 3]);
    assert_eq!(faces.inventory.unwrap().elements[0].element_type.to_string(), "4-node polyhedron");
    let short = VTK_FACES.replace("17 4 3 0", "17 5 3 0");
    assert!(refused(Format::VtkLegacy, &short).message.contains("faces of the polyhedron"));
}

#[test]
fn abaqus_files_say_where_they_are_wrong() {
    check_errors(
        Format::Abaqus,
        ABAQUS,
        &[
            ("** comment", "comment", 1, "where a keyword"),
            ("*Part, name=P", "*INCLUDE, INPUT=other.inp", 4, "in another file, `other.inp`"),
            ("*Part, name=P", "*include,\n input = \"a b.inp\"", 4, "in another file, `a b.inp`"),
            ("*Part, name=P", "*IMPORT, STATE=YES", 4, "results of another analysis"),
            ("*END INSTANCE", "*INSTANCE, LIBRARY=old\n*END INSTANCE", 23, "the results of `old`"),
            ("*Part, name=P", "*NGEN", 4, "*NGEN generates"),
            ("NSET=ALL", "INPUT=nodes.inp", 5, "another file"),
            ("NSET=ALL", "SYSTEM=X", 5, "SYSTEM=X"),
            ("10, 1., 0., 0.", "10, 1., x, 0.", 7, "`x` is not a finite number"),
            ("10, 1., 0., 0.", "30, 1., 0., 0.", 7, "node 30 is given twice"),
            ("type=S3,", "type=C3D7,", 10, "`C3D7` is not known"),
            ("2, 10, 40, 20", "2, 10, 40, 21", 15, "node 21, which is not"),
            ("2, 10, 40, 20", "2, 10, 40, 20, 30", 15, "the row goes on"),
            ("2, 10, 40, 20", "1, 10, 40, 20", 15, "element 1 is given twice"),
            ("20\n*ELEMENT, TYPE=S3R", "*ELEMENT, TYPE=S3R", 12, "has 2 nodes"),
            (
                "*END INSTANCE\n",
                "*END INSTANCE\n*INSTANCE, PART=p\n*END INSTANCE\n",
                24,
                "a second instance",
            ),
            ("*END ASSEMBLY\n", "", 26, "without *END ASSEMBLY"),
            ("*END INSTANCE\n*NODE", "*NODE", 23, "a second part"),
            ("*NODE\n1, 5., 5.", "*ELEMENT, TYPE=B31\n1, 10, 20", 24, "elements of the assembly"),
        ],
    );
    let inventory = reading(Format::Abaqus, ABAQUS.as_bytes()).inventory.unwrap();
    let groups: Vec<_> =
        inventory.groups.iter().map(|g| (g.name.as_str(), g.element_count)).collect();
    assert_eq!(groups, [("left", 1), ("right", 1)]);
    let unused: Vec<&str> = inventory.unused.iter().map(|unused| unused.what.as_str()).collect();
    assert_eq!(unused, ["1 nodes of the assembly", "*ELSET"]);
    let tied = ABAQUS.replace("*END ASSEMBLY", "*TIE, NAME=t\na, b\n*END ASSEMBLY");
    let inventory = reading(Format::Abaqus, tied.as_bytes()).inventory.unwrap();
    assert!(inventory.unused.iter().any(|unused| unused.why.contains("couples nodes")));
}

#[test]
fn exodus_files_say_where_they_are_wrong() {
    use assembled::{NetCdf, exodus, ints, type_of_block};
    let error =
        |bytes: &[u8]| read_with(Format::Exodus, "f", bytes, &ReadOptions::default()).unwrap_err();
    let hdf5 = error(b"\x89HDF\r\n\x1a\n and more");
    assert!(hdf5.message.contains("HDF5") && hdf5.help.unwrap().contains("nccopy -k cdf5"));
    assert!(error(b"CDF\x03 and more").message.contains("not a NetCDF file"));
    let make = |dimensions: &[(&'static str, u64)], kind: &'static str, nodes: &[i32]| {
        NetCdf {
            version: 2,
            dimensions,
            variables: vec![("connect1", &[3, 4], vec![type_of_block(kind)], 4, ints(nodes))],
        }
        .bytes()
    };
    let dimensions = |elements, processors| {
        vec![
            ("num_dim", 3),
            ("num_nodes", 4),
            ("num_elem", elements),
            ("one", 1),
            ("four", 4),
            ("num_el_blk", 1),
            ("num_processors", processors),
        ]
    };
    let good = reading(Format::Exodus, &make(&dimensions(1, 1), "TETRA", &[1, 2, 3, 4]));
    assert_eq!((mesh(&good).element(0), mesh(&good).coordinates().len()), (&[0, 1, 2, 3][..], 0));
    for (elements, processors, kind, nodes, piece) in [
        (1, 1, "TETRA", [0, 2, 3, 4], "node 0 of 4; nodes count from 1"),
        (1, 1, "TETRA", [-1, 2, 3, 4], "negative"),
        (1, 1, "TETRA", [1, 2, 3, 5], "node 5 of 4"),
        (1, 1, "SUPER", [1, 2, 3, 4], "type `SUPER` with 4 nodes"),
        (1, 1, "HEX", [1, 2, 3, 4], "4 nodes for type `HEX`"),
        (1, 1, "NFACED", [1, 2, 3, 4], "polyhedra"),
        (2, 1, "TETRA", [1, 2, 3, 4], "num_elem is 2"),
        (1, 4, "TETRA", [1, 2, 3, 4], "spread over 4 processors"),
    ] {
        let error = error(&make(&dimensions(elements, processors), kind, &nodes));
        assert!(error.message.contains(piece), "{piece}: {error}");
    }
    let other = NetCdf { version: 1, dimensions: &[("x", 3)], variables: vec![] }.bytes();
    assert!(error(&other).message.contains("not an Exodus mesh"));
    let bytes = exodus(1);
    assert!(error(&bytes[..bytes.len() - 4]).message.contains("`eb_prop1` needs more values"));
    let inventory = reading(Format::Exodus, &bytes).inventory.unwrap();
    assert_eq!(inventory.groups[1].name, "block 200 (BEAM)");
    assert_eq!(inventory.unused[0].what, "1 node sets");
}

/// A block of one element with the given columns, nodes 1, 2, 3 and so on.
fn exodus_block(kind: &str, columns: i32, degrees: Option<&[i32]>) -> Vec<u8> {
    use assembled::{Attribute, NetCdf, ints, type_of_block};
    let mut attributes = vec![type_of_block(kind)];
    attributes.extend(degrees.map(|degrees| ("bex_elem_degrees", Attribute::Ints(degrees))));
    let columns_64 = u64::try_from(columns).unwrap();
    let dimensions = [
        ("num_dim", 3),
        ("num_nodes", columns_64),
        ("num_elem", 1),
        ("columns", columns_64),
        ("num_el_blk", 1),
    ];
    let nodes: Vec<i32> = (1..=columns).collect();
    let variables = vec![("connect1", &[2, 3][..], attributes, 4, ints(&nodes))];
    NetCdf { version: 1, dimensions: &dimensions, variables }.bytes()
}

#[test]
fn exodus_elements_have_the_nodes_of_their_columns() {
    // The columns say how many nodes there are, whatever digits the name of the type has.
    for (kind, columns, name) in [
        ("HEX8", 8, "8-node hexahedron"),
        ("HEX", 20, "20-node hexahedron"),
        ("HEX8", 27, "27-node hexahedron"),
        ("hex9", 9, "9-node hexahedron"),
        ("QUAD9", 9, "9-node quadrilateral"),
        ("QUAD5", 5, "5-node quadrilateral"),
        ("SHELL4", 4, "4-node quadrilateral"),
        ("SHELL9", 9, "9-node quadrilateral"),
        ("TRISHELL", 6, "6-node triangle"),
        ("TETRA10", 10, "10-node tetrahedron"),
        ("TETRA", 14, "14-node tetrahedron"),
        ("WEDGE18", 18, "18-node prism"),
        ("PYRAMID14", 14, "14-node pyramid"),
        ("EDGE3", 3, "3-node line"),
    ] {
        let reading = reading(Format::Exodus, &exodus_block(kind, columns, None));
        let nodes: Vec<u32> = (0..columns as u32).collect();
        assert_eq!(mesh(&reading).element(0), nodes, "{kind}");
        let inventory = reading.inventory.as_ref().unwrap();
        assert_eq!(inventory.elements[0].element_type.to_string(), name, "{kind}");
    }
    // Half of the columns of a spline are nodes, as its degrees say.
    for (kind, degrees, nodes) in [
        ("BEX_HEX", &[2, 2, 2][..], 27),
        ("BEX_HEX", &[3, 2, 1], 24),
        ("BEX_QUAD", &[2, 2], 9),
        ("BEX_TRIANGLE", &[2], 6),
        ("BEX_TETRA", &[3], 20),
        ("bex_wedge", &[2, 1], 12),
    ] {
        let reading = reading(Format::Exodus, &exodus_block(kind, 2 * nodes, Some(degrees)));
        assert_eq!(mesh(&reading).element(0).len() as i32, nodes, "{kind} {degrees:?}");
        let of_type = reading.inventory.as_ref().unwrap().elements[0].element_type;
        assert!(of_type.is_spline(), "{of_type}");
    }
    let refused = |kind: &str, columns, degrees| {
        let bytes = exodus_block(kind, columns, degrees);
        read_with(Format::Exodus, "f", &bytes, &ReadOptions::default()).unwrap_err().message
    };
    for (kind, columns, degrees, piece) in [
        ("BEX_HEX", 54, None, "do not say how many of them are nodes"),
        ("BEX_HEX", 54, Some(&[2, 2][..]), "do not say how many"),
        ("BEX_HEX", 54, Some(&[2, 2, -2]), "do not say how many"),
        ("BEX_HEX", 55, Some(&[2, 2, 2]), "has 55 columns; expected 54"),
        ("BEX_HEX", 27, Some(&[2, 2, 2]), "has 27 columns; expected 54"),
        ("BEX_QUAD", 18, Some(&[i32::MAX, i32::MAX]), "has 18 columns; expected"),
        ("BEX_HEX", 54, Some(&[i32::MAX; 3]), "do not say how many"),
        ("BEX_BLOB", 18, Some(&[2, 2]), "do not say how many"),
        ("SHELL", 5, None, "type `SHELL` with 5 nodes is not known"),
        ("PENTA", 6, None, "type `PENTA` with 6 nodes is not known"),
        ("", 8, None, "type `` with 8 nodes is not known"),
    ] {
        let message = refused(kind, columns, degrees);
        assert!(message.contains(piece), "{piece}: {message}");
    }
}

#[test]
fn versions_of_gmsh_have_groups_and_their_own_numbers() {
    for sample in assembled::gmsh() {
        let (reading, name) = (reading(Format::Gmsh, &sample.bytes), sample.name);
        let mesh = mesh(&reading);
        assert_eq!(mesh.elements().collect::<Vec<_>>(), [[2, 0, 1], [0, 3, 1]], "{name}");
        assert_eq!(mesh.coordinates()[3], [1.0, 1.0, 0.5], "{name}");
        let origin = reading.origin.as_ref().unwrap();
        let file_numbers: Vec<u64> = origin
            .divided
            .iter()
            .map(|&e| origin.ids.get(e as usize).copied().unwrap_or(u64::from(e) + 1))
            .collect();
        let first = if name == "40b.msh" { 1 } else { 2 };
        assert_eq!(file_numbers, [first, first + 1], "{name}");
        let inventory = reading.inventory.unwrap();
        let groups: Vec<_> =
            inventory.groups.iter().map(|g| (g.name.as_str(), g.element_count)).collect();
        match name {
            "1.msh" => assert_eq!(groups, [("physical group 7", 1), ("physical group 9", 1)]),
            "parametric.msh" => assert_eq!(groups, [("a plate", 2)]),
            "40b.msh" => assert_eq!(groups, []),
            _ => assert_eq!(groups, [("physical group 5", 2)], "{name}"),
        }
    }
    check_errors(
        Format::Gmsh,
        assembled::GMSH_1,
        &[
            ("$ENDNOD", "5", 7, "expected $ENDNOD, found `5`"),
            ("2 2 0 1 3", "2 2 0 1 4", 11, "4 nodes for type 2"),
            ("2 2 0 1 3", "2 78 0 1 3", 11, "unknown element type 78"),
            ("10 40 20", "10 40 21", 12, "node 21 is not in $Nodes"),
            ("$ENDELM\n", "$ENDELM\nmore", 14, "expected the end of the file"),
        ],
    );
}

#[test]
fn periodic_nodes_are_one_unless_that_is_turned_off() {
    let periodic = common::GMSH_22.replace(
        "$Periodic\n0\n",
        "$Periodic\n2\n0 1 2\n1\n40 10\n1 1 2\nAffine 1 0 0 0\n1\n10 30\n",
    );
    let joined = reading(Format::Gmsh, periodic.as_bytes());
    // Nodes 10, 30 and 40 are numbers 0, 2 and 3.
    assert_eq!(mesh(&joined).elements().collect::<Vec<_>>(), [[0, 0, 1], [0, 0, 1]]);
    assert_eq!(joined.inventory.unwrap().joined_nodes, 2);
    let options = ReadOptions::default().with_join_periodic(false);
    let apart = read_with(Format::Gmsh, "f", periodic.as_bytes(), &options).unwrap();
    assert_eq!(mesh(&apart).elements().collect::<Vec<_>>(), [[2, 0, 1], [0, 3, 1]]);
    let inventory = apart.inventory.unwrap();
    assert_eq!(inventory.unused.last().unwrap().what, "2 pairs of periodic nodes");
    let wrong = periodic.replace("40 10\n", "41 10\n");
    assert!(refused(Format::Gmsh, &wrong).message.contains("node 41 is not in $Nodes"));
}

#[test]
fn one_file_of_a_split_mesh_is_refused() {
    // Only the elements of partition 2.
    let split =
        common::GMSH_41.replace("3 3 1 3\n1 6 1 1\n1 10 20\n2 3 2 1\n2 30 10 20\n", "1 1 3 3\n");
    let error = refused(Format::Gmsh, &split);
    assert!(error.message.contains("partition 2 of 2 only"), "{error}");
}
