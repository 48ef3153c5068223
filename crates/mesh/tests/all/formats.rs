//! What each reader takes from a small file, and where it says that a file is wrong.

use crate::common;
use crate::common::samples;
use conset_ir::{At, InputError};
use conset_mesh::{Format, Mesh, Source, read};

fn source(format: Format, text: &str) -> Source {
    read(format, "f", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn mesh(format: Format, bytes: &[u8]) -> Mesh {
    match read(format, "f", bytes) {
        Ok(Source::Mesh(mesh)) => mesh,
        other => panic!("{other:?}"),
    }
}

fn refused(format: Format, text: &str) -> InputError {
    match read(format, "f", text.as_bytes()) {
        Err(error) => error,
        Ok(source) => panic!("accepted: {source:?}"),
    }
}

/// Line, column and a piece of the message.
fn check(error: &InputError, line: usize, column: usize, piece: &str) {
    match error.at {
        At::Text { line: l, column: c, .. } => assert_eq!((l, c), (line, column), "{error}"),
        _ => panic!("{error:?}"),
    }
    assert!(error.message.contains(piece), "{error}");
}

#[test]
fn every_coding_of_gmsh_gives_the_same_mesh() {
    let all = samples();
    // Version 1 has no partitions.
    let has_parts = |s: &&common::Sample| s.format == Format::Gmsh && s.name != "1.msh";
    let gmsh: Vec<_> = all.iter().filter(has_parts).collect();
    assert_eq!(gmsh.len(), 12);
    for sample in gmsh {
        let mesh = mesh(sample.format, &sample.bytes);
        let name = sample.name;
        assert_eq!(mesh.dimension(), 2, "{name}");
        assert_eq!(mesh.node_ids(), [10, 20, 30, 40], "{name}");
        assert_eq!(mesh.elements().collect::<Vec<_>>(), [[2, 0, 1], [0, 3, 1]], "{name}");
        assert_eq!(mesh.coordinates()[3], [1.0, 1.0, 0.5], "{name}");
        assert_eq!(mesh.coordinates()[0], [1.0, 0.0, 0.0], "{name}");
        assert_eq!(mesh.parts(), [0, 1], "{name}");
        assert_eq!(mesh.part_count(), 2, "{name}");
    }
}

#[test]
fn gmsh_errors_have_their_place() {
    let replaced = |from: &str, to: &str| {
        assert!(common::GMSH_22.contains(from));
        refused(Format::Gmsh, &common::GMSH_22.replacen(from, to, 1))
    };
    check(&replaced("2.2 0", "3.0 0"), 2, 1, "expected 1, 2 to 2.2, 4.0 or 4.1");
    check(&replaced("30 0 0 0", "30 0 nan 0"), 9, 6, "not finite");
    check(&replaced("30 0 0 0", "10 0 0 0"), 10, 1, "node 10 is given twice");
    check(&replaced("30 10 20\n4", "30 10 21\n4"), 18, 24, "node 21 is not in $Nodes");
    check(&replaced("3 2 5 9", "3 77 5 9"), 18, 3, "element type 77");
    check(&replaced("$Nodes\n4", "$Nodes\n3"), 12, 1, "more entries than its count");
    check(&replaced("$Elements\n4", "$Elements\n5"), 20, 1, "not a whole number");
    check(&replaced("9 1 1 2", "9 1 1 0"), 19, 13, "partition 0");
    let some = replaced("4 2 4 9 1 1 2", "4 2 2 9 1");
    assert!(some.message.contains("some elements have a partition"), "{some}");
    check(&replaced("$Periodic\n", "$Periodic2\n"), 21, 1, "has no $EndPeriodic2");
    let error = refused(Format::Gmsh, "solid x\n");
    check(&error, 1, 1, "does not start with $MeshFormat");
    let error = refused(Format::Gmsh, &common::GMSH_41.replacen("2 4 10 40", "2 5 10 40", 1));
    check(&error, 15, 3, "5 nodes are declared");
}

#[test]
fn binary_errors_name_bytes() {
    let mut bytes = samples().into_iter().find(|s| s.name == "41b.msh").unwrap().bytes;
    let order = bytes.iter().position(|&b| b == 1).unwrap();
    bytes[order] = 2;
    let error = read(Format::Gmsh, "f", &bytes).unwrap_err();
    assert_eq!(error.at, At::Byte(order));
    assert!(error.message.contains("byte order"), "{error}");
}

#[test]
fn graphs_keep_weights_sizes_and_isolated_vertices() {
    let Source::Graph(graph) =
        source(Format::MetisGraph, "3 2 111 2\n1 5 6 2 9\n2 0 7 1 9 3 4\n3 1 1 2 4\n")
    else {
        panic!()
    };
    assert_eq!(graph.neighbours(), [1, 0, 2, 1]);
    assert_eq!(graph.edge_weights().unwrap(), [9, 9, 4, 4]);
    assert_eq!(graph.vertex_weights().unwrap(), [5, 6, 0, 7, 1, 1]);
    assert_eq!(graph.weights_per_vertex(), 2);
    assert_eq!(graph.vertex_sizes().unwrap(), [1, 2, 3]);
    let Source::Graph(graph) = source(Format::MetisGraph, "%c\n 3 1 10\r\n4 3\r\n%c\n7\n0 1\n\n\n")
    else {
        panic!()
    };
    assert_eq!(graph.neighbours_of(0), [2]);
    assert!(graph.neighbours_of(1).is_empty());
    assert_eq!(graph.vertex_weights().unwrap(), [4, 7, 0]);
}

#[test]
fn graph_errors_have_their_place() {
    let error = |text| refused(Format::MetisGraph, text);
    check(
        &error("3 2\n2\n1 3\n\n"),
        3,
        3,
        "vertex 2 lists 3 as a neighbour, but 3 does not list 2 (1 entries",
    );
    assert!(error("3 2\n2\n1 3\n\n").help.unwrap().contains("graph-connections"));
    check(&error("3 2 1\n2 5\n1 5 3 6\n2 7\n"), 3, 5, "another weight");
    check(&error("2 1\n1\n\n"), 2, 1, "neighbour of itself");
    check(&error("2 1\n2 2\n1\n"), 2, 3, "twice");
    check(&error("2 1\n2\n0\n"), 3, 1, "count from 1");
    check(&error("2 1\n2\n3\n"), 3, 1, "at most 2");
    check(&error("2 2\n2\n1\n"), 1, 3, "2 edges are declared");
    check(&error("3 1\n2\n1\n"), 4, 1, "ends after 2 of 3 vertices");
    check(&error("2 1\n2\n1\n1\n"), 4, 1, "more than the 2 vertices");
    check(&error("2 1 1\n2\n1 1\n"), 2, 1, "no weight follows");
    check(&error("2 1 1\n2 0\n1 0\n"), 2, 3, "at least 1");
    check(&error("2 1 12\n2\n1\n"), 1, 5, "not a format");
    check(&error("2 1 1 2\n2 1\n1 1\n"), 1, 7, "have none");
    check(&error("2 1 -1\n"), 1, 5, "not a format");
    check(&error("2 x\n"), 1, 3, "not a whole number");
}

#[test]
fn connections_may_be_one_sided_and_repeated() {
    let text = "3 4 1\n2 10 3 20 2 1\n2 7\n\n";
    let Source::Connections(list) = source(Format::GraphConnections, text) else { panic!() };
    assert_eq!(list.entries(), [(0, 1, 10), (0, 1, 1), (0, 2, 20), (1, 1, 7)]);
    assert_eq!(list.part_count(), 3);
    let Source::Connections(list) = source(Format::GraphConnections, "2 1\n2\n1\n") else {
        panic!()
    };
    assert_eq!(list.entries(), [(0, 1, 1), (1, 0, 1)]);
    check(&refused(Format::GraphConnections, "2 3\n2\n1\n"), 1, 3, "3 edges are declared");
    check(&refused(Format::GraphConnections, "2 1 1\n2 0\n\n"), 2, 3, "at least 1");
}

#[test]
fn metis_meshes_have_weights_and_dense_or_ranked_nodes() {
    let mesh = mesh(Format::MetisMesh, b"2 1\n5 1 2 3 7\n4 2 1 3 7\n");
    assert_eq!(mesh.element_weights().unwrap(), [5, 4]);
    assert_eq!(mesh.elements().collect::<Vec<_>>(), [[0, 1, 2, 6], [1, 0, 2, 6]]);
    assert_eq!((mesh.node_count(), mesh.dimension()), (7, 0));
    let mesh = self::mesh(Format::MetisMesh, b"1\n2147483646 5 9\n");
    assert_eq!((mesh.node_count(), mesh.node_ids()), (3, &[5, 9, 2147483646][..]));
    let error = |text| refused(Format::MetisMesh, text);
    check(&error("2 1\n1 2 3\n2 3 4\n"), 1, 3, "in METIS 4 this 1 is an element type");
    check(&error("2\n1 2 3\n\n"), 3, 1, "an element of 0 nodes");
    check(&error("2\n1 2 3\n"), 3, 1, "ends after 1 of 2 elements");
    check(&error("1\n1 2 0\n"), 2, 5, "count from 1");
    check(&error("0\n"), 2, 1, "no elements");
    check(&error("MeshVersionFormatted 1\n"), 1, 1, "Medit");
}

#[test]
fn matrices_of_all_kinds_give_patterns() {
    let matrix = |text: &str| match source(Format::MatrixMarket, text) {
        Source::Matrix(matrix) => matrix,
        other => panic!("{other:?}"),
    };
    let m = matrix("%%MatrixMarket matrix coordinate pattern general\n2 3 3\n2 1\n1 3\n2 1\n");
    assert_eq!((m.row_count(), m.column_count()), (2, 3));
    assert_eq!((m.first(), m.columns()), (&[0, 1, 2][..], &[2, 0][..]));
    let m = matrix(
        "%%matrixmarket MATRIX Coordinate Complex Hermitian\n%\n\n2 2 2\n1 1 1 0\n2 1 3 -4\n",
    );
    assert_eq!((m.first(), m.columns()), (&[0, 2, 3][..], &[0, 1, 0][..]));
    let error = |text: &str| refused(Format::MatrixMarket, text);
    let head = "%%MatrixMarket matrix coordinate integer general\n";
    check(
        &error("%%MatrixMarket matrix array real general\n1 1\n0\n"),
        1,
        23,
        "expected `coordinate`",
    );
    check(&error("%MatrixMarket\n"), 1, 1, "not a Matrix Market file");
    check(&error(&format!("{head}2 2 1\n3 1 5\n")), 3, 1, "at most 2");
    check(&error(&format!("{head}2 2 1\n0 1 5\n")), 3, 1, "count from 1");
    check(&error(&format!("{head}2 2 1\n1 1\n")), 3, 4, "the line ends early");
    check(&error(&format!("{head}2 2 1\n1 1 5 6\n")), 3, 7, "unexpected");
    check(&error(&format!("{head}2 2 2\n1 1 5\n")), 4, 1, "the file ends");
    check(&error(&format!("{head}2 2 1\n1 1 5\n1 2 5\n")), 4, 1, "more than the 1 entries");
    check(&error(&format!("{head}1000000000 2 1\n1 1 5\n")), 2, 1, "in a file of");
    let symmetric = "%%MatrixMarket matrix coordinate pattern symmetric\n2 3 0\n";
    check(&error(symmetric), 2, 3, "is square");
}

#[test]
fn packs_give_mesh_parts_and_lists() {
    let pack = String::from_utf8(samples().into_iter().find(|s| s.name == "a.pack").unwrap().bytes)
        .unwrap();
    let Source::Decomposition(d) = source(Format::Spark98, &pack) else { panic!() };
    assert_eq!(d.mesh().elements().collect::<Vec<_>>(), [[0, 1, 2], [1, 3, 2]]);
    assert_eq!((d.mesh().parts(), d.nodes_of(1)), (&[0, 1][..], &[2, 1, 3][..]));
    assert_eq!(d.shared().pairs, [(0, 1), (1, 0)]);
    assert_eq!((d.shared().of(0), d.shared().of(1)), (&[1, 2][..], &[1, 2][..]));
    let replaced = |from: &str, to: &str| {
        assert!(pack.contains(from), "{from:?}");
        refused(Format::Spark98, &pack.replacen(from, to, 1))
    };
    // Part 0 lists nodes 3, 2 and part 1 lists 2, 3.
    check(&replaced("2\n0\n2\n1\n2\n2\n1\n0", "2\n0\n2\n2\n1\n2\n1\n0"), 25, 1, "same order");
    check(&replaced("3 0 1\n2 1 0\n4", "3 0 2\n2 1 0\n4"), 10, 1, "other coordinates in part 0");
    check(&replaced("3 0 1\n2 1 0\n4", "4 1 1\n2 1 0\n4"), 12, 1, "twice in part 1");
    check(&replaced("\n2 1 2 0", "\n1 1 2 0"), 16, 1, "already in part 0");
    check(&replaced("\n2 1 2 0", "\n2 1 2 3"), 16, 7, "at most 2");
    assert!(refused(Format::Spark98, &format!("{pack}7\n")).message.contains("continues"));
}

#[test]
fn vtu_files_give_meshes_in_every_encoding() {
    for encoding in ["ascii", "binary", "raw", "base64"] {
        for (zlib, header, big) in
            [(false, 4, false), (true, 4, true), (false, 8, true), (true, 8, false)]
        {
            let mesh = mesh(Format::Vtu, &common::vtu(encoding, zlib, header, big));
            assert_eq!(mesh.elements().collect::<Vec<_>>(), [[0, 1, 2], [1, 3, 2]], "{encoding}");
            assert_eq!((mesh.dimension(), mesh.node_count()), (2, 4));
            assert_eq!(mesh.coordinates()[3], [1.0, 1.0, 0.5]);
        }
    }
    let text = String::from_utf8(common::vtu("ascii", false, 4, false)).unwrap();
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from:?}");
        refused(Format::Vtu, &text.replacen(from, to, 1))
    };
    check(&replaced("UnstructuredGrid\" b", "PolyData\" b"), 2, 1, "expected UnstructuredGrid");
    check(&replaced("0 1 0 1 2 1 3 2<", "0 1 0 1 2 1 4 2<"), 9, 1, "cell 2 has node 4 of 4");
    check(&replaced("0 1 0 1 2 1 3 2<", "0 1 0 1 2 1 3<"), 9, 1, "expected 8 numbers, found 7");
    check(&replaced("2 5 8<", "2 6 8<"), 10, 1, "cell 1 of type 5 has 4 nodes");
    check(&replaced("2 5 8<", "2 1 8<"), 10, 1, "cell 1 ends at 1");
    check(&replaced("3 5 5<", "3 5 99<"), 11, 1, "type 99");
    check(&replaced("</Piece>", "</Piece><Piece/>"), 13, 9, "Piece has no NumberOfPoints");
    check(&replaced("NumberOfPoints=\"4\"", "NumberOfPoints=\"-4\""), 4, 1, "NumberOfPoints");
    check(&replaced("</Points>", ""), 13, 1, "invalid XML");
    let packed = String::from_utf8(common::vtu("binary", true, 4, false)).unwrap();
    let other = packed.replacen("vtkZLib", "vtkZstd", 1);
    check(&refused(Format::Vtu, &other), 2, 1, "vtkZstdDataCompressor");
    // A cut file ends where it is cut.
    let cut = text.find("</Points>").unwrap();
    let error = refused(Format::Vtu, &text[..cut]);
    check(&error, 7, 1, "ends before the end of its XML");
    assert!(error.help.unwrap().contains("truncated or damaged"));
}

#[test]
fn long_base64_of_a_vtu_file_is_read_over_line_ends_and_padding() {
    // Padded after the header, which is 4 bytes, and broken into lines as some writers do.
    let encode =
        |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let array = |kind: &str, name: &str, bytes: Vec<u8>| {
        let text = encode(&(bytes.len() as u32).to_le_bytes()) + &encode(&bytes);
        let lines: Vec<&str> =
            (0..text.len()).step_by(77).map(|i| &text[i..text.len().min(i + 77)]).collect();
        let three = "NumberOfComponents=\"3\"";
        format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" {three} format=\"binary\">\n{}\n\
             </DataArray>",
            lines.join("\n ")
        )
    };
    let n = 5000u32;
    let points = (0..n + 2).flat_map(|i| [i as f32, (i % 2) as f32, 0.5]);
    let triangles = (0..n).flat_map(|i| [i, i + 1, i + 2]);
    let bytes = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
        numbers.flat_map(u32::to_le_bytes).collect()
    };
    let file = format!(
        "<VTKFile type=\"UnstructuredGrid\" byte_order=\"LittleEndian\"><UnstructuredGrid>\n\
         <Piece NumberOfPoints=\"{}\" NumberOfCells=\"{n}\"><Points>{}</Points><Cells>{}{}{}\
         </Cells></Piece></UnstructuredGrid></VTKFile>\n",
        n + 2,
        array("Float32", "Points", points.flat_map(f32::to_le_bytes).collect()),
        array("UInt32", "connectivity", bytes(&mut triangles.clone())),
        array("UInt32", "offsets", bytes(&mut (1..=n).map(|i| 3 * i))),
        array("UInt8", "types", vec![5; n as usize]),
    );
    let mesh = mesh(Format::Vtu, file.as_bytes());
    assert!(mesh.elements().flatten().copied().eq(triangles));
    assert_eq!(mesh.coordinates()[4999], [4999.0, 1.0, 0.5]);
}

#[test]
fn su2_and_tetgen_files_give_meshes() {
    for (format, name) in [(Format::Su2, "a.su2"), (Format::Tetgen, "a.ele")] {
        let sample = samples().into_iter().find(|s| s.name == name).unwrap();
        let mesh = mesh(format, &sample.bytes);
        assert_eq!(mesh.elements().collect::<Vec<_>>(), [[0, 1, 2], [1, 3, 2]]);
        assert_eq!((mesh.dimension(), mesh.node_count()), (2, 4));
    }
    let error = |text| refused(Format::Su2, text);
    check(&error("NDIME= 2\nNELEM= 1\n10 0 1 2 3\n"), 3, 1, "type 10 is not an element");
    check(&error("NELEM= 1\n5 0 1 2\n"), 1, 1, "NDIME must come before");
    check(&error("NDIME= 2\nNELEM= 1\n5 0 1 3\nNPOIN= 3\n0 0\n1 0\n0 1\n"), 3, 7, "node 3 of 3");
    check(&error("NDIME= 2\nNELEM= 1\n5 0 1 2\n5 0 1 2\n"), 4, 1, "expected `KEY= value`");
    check(&error("NDIME= 2\nNELEM= 1\n5 0 1\n"), 3, 6, "ends early");
    check(&error("NDIME= 2\nIZONE= 2\n"), 2, 1, "expected zone 1 of 1");
    check(&error("NDIME= 2\n"), 2, 1, "no NELEM");
    let error = |text| refused(Format::Tetgen, text);
    check(&error("1 5 0\n"), 1, 3, "elements of 5 nodes");
    check(&error("2 3 0\n1 1 2 3\n3 1 2 3\n"), 3, 1, "element 3; expected 2");
    check(&error("1 3 0\n1 0 2 3\n"), 2, 3, "node 0");
}
