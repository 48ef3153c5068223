//! Written partitions: what they say agrees with the mesh that was read, and the VTU form is read
//! back as the same mesh.

use crate::{common, shared_meshes};
use conset_ir::CellId;
use conset_mesh::partition::{PartitionOptions, partition, stated};
use conset_mesh::read::{ReadOptions, Reading, read_with};
use conset_mesh::write_partition::{PlacedPartition, write_cells};
use conset_mesh::{Format, Halo, Mesh, Source, halo};

fn reading(format: Format, name: &str, bytes: &[u8]) -> Reading {
    read_with(format, name, bytes, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn halo_of(reading: &Reading, parts: usize) -> Halo {
    let made = stated(&reading.source)
        .unwrap_or_else(|| partition(&reading.source, &PartitionOptions::new(parts), "f").unwrap());
    halo(&reading.source, &made, "halo").unwrap()
}

/// Parts in reverse order, so that no part is on the cell of its own number by chance.
fn cells(halo: &Halo) -> Vec<CellId> {
    (0..halo.parts.len()).rev().map(|cell| CellId::from_index(cell + 10)).collect()
}

fn text(reading: &Reading, parts: usize) -> String {
    let halo = halo_of(reading, parts);
    let cells = cells(&halo);
    let mut out = Vec::new();
    let placed = PlacedPartition::new(reading, &halo.parts, &cells).unwrap();
    placed.write_text("name", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn rows(text: &str) -> Vec<Vec<u64>> {
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect();
    text.lines().filter(|line| !line.starts_with('#')).map(numbers).collect()
}

#[test]
fn every_element_of_the_file_has_a_line_with_its_own_number() {
    // Tags 1 and 2 are a point and a line, attached to the triangles 3 and 4.
    let gmsh = reading(Format::Gmsh, "f", common::GMSH_22.as_bytes());
    let text = text(&gmsh, 2);
    assert_eq!(
        text,
        "# conset partition: name, 2 parts; part p is on cell c\n# element part cell\n\
         1 0 11\n2 0 11\n3 0 11\n4 1 10\n"
    );
}

#[test]
fn numbers_count_as_the_file_counts() {
    let first = |format, bytes: &str| {
        let reading = reading(format, "f", bytes.as_bytes());
        let rows = rows(&text(&reading, 2));
        assert_eq!(rows.len(), 2);
        (rows[0][0], reading.node_number(0))
    };
    assert_eq!(first(Format::MetisMesh, "2 2\n5 1 1 2 3\n4 1 2 4 3\n"), (1, 1));
    assert_eq!(first(Format::Tetgen, "2 3 0\n1 1 2 3\n2 2 4 3\n"), (1, 1));
    assert_eq!(first(Format::Tetgen, "2 3 0\n0 0 1 2\n1 1 3 2\n"), (0, 0));
    let su2 = "NDIME= 2\nNELEM= 2\n5 0 1 2\n5 1 3 2\nNPOIN= 4\n0 0\n1 0\n0 1\n1 1\n";
    assert_eq!(first(Format::Su2, su2), (0, 0));
    assert_eq!(first(Format::MetisGraph, "2 1\n2\n1\n"), (1, 1));
    let matrix = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n";
    assert_eq!(first(Format::MatrixMarket, matrix), (1, 1));
}

#[test]
fn connections_have_parts_only_and_patterns_have_cells() {
    let list = reading(Format::GraphConnections, "f", b"3 4 1\n2 10 3 20\n2 7\n1 5\n");
    let lines = text(&list, 3);
    assert!(lines.ends_with("# part cell\n0 12\n1 11\n2 10\n"), "{lines}");
    let mut out = Vec::new();
    let pairs = [(CellId(0), CellId(3)), (CellId(1), CellId(2))];
    write_cells("pattern:ring\n", pairs.into_iter(), &mut out).unwrap();
    let expected = "# conset placement: pattern:ring\\n\n# named cell\n0 3\n1 2\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

fn mesh_of(reading: &Reading) -> &Mesh {
    match &reading.source {
        Source::Mesh(mesh) => mesh,
        Source::Decomposition(decomposition) => decomposition.mesh(),
        other => panic!("{other:?}"),
    }
}

/// The VTU form is the same mesh: points bit for bit, and cells with the corners of the elements.
fn check_vtu(reading: &Reading, parts: usize) {
    let halo = halo_of(reading, parts);
    let cells = cells(&halo);
    let mut bytes = Vec::new();
    let placed = PlacedPartition::new(reading, &halo.parts, &cells).unwrap();
    placed.vtu().unwrap().write(&mut bytes).unwrap();
    let back = self::reading(Format::Vtu, "out.vtu", &bytes);
    let (before, after) = (mesh_of(reading), mesh_of(&back));
    assert_eq!(before.coordinates(), after.coordinates());
    assert_eq!(before.element_count(), after.element_count());
    let origin = back.origin.as_ref().unwrap();
    for (element, (was, is)) in before.elements().zip(after.elements()).enumerate() {
        let joined = reading.origin.as_ref().is_some_and(|o| !o.separate_nodes.is_empty());
        assert!(joined || was.starts_with(is), "element {element}: {was:?} {is:?}");
        if let Some(before) = &reading.origin {
            let (was, is) = (before.types[element], origin.types[element]);
            let unordered = !before.has_node_order || was.is_spline();
            assert!(unordered || was.shape() == is.shape(), "element {element}: {was} {is}");
        }
    }
    // The arrays of parts and cells follow the mesh's.
    let count = before.element_count();
    let tail = b"\n</AppendedData>\n</VTKFile>\n";
    assert!(bytes.ends_with(tail));
    let end = bytes.len() - tail.len();
    let numbers = end - 8 * count;
    let cells_at = numbers - 8 - 4 * count;
    let parts_at = cells_at - 8 - 4 * count;
    let value = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    for (part, cell) in cells.iter().enumerate() {
        for &element in halo.parts.items_of(part) {
            let element = usize::try_from(element).unwrap();
            assert_eq!(value(parts_at + 4 * element), u32::try_from(part).unwrap());
            assert_eq!(value(cells_at + 4 * element), cell.0);
        }
    }
}

#[test]
fn the_vtu_form_reads_back_as_the_same_mesh() {
    let mut seen = 0;
    for sample in common::samples() {
        let reading = reading(sample.format, sample.name, &sample.bytes);
        let mesh = match &reading.source {
            Source::Mesh(mesh) => mesh,
            Source::Decomposition(decomposition) => decomposition.mesh(),
            _ => continue,
        };
        let halo = halo_of(&reading, 1);
        let cells = cells(&halo);
        let placed = PlacedPartition::new(&reading, &halo.parts, &cells).unwrap();
        if mesh.coordinates().is_empty() {
            assert!(placed.vtu().unwrap_err().message.contains("coordinates"));
            continue;
        }
        seen += 1;
        check_vtu(&reading, 2.min(mesh.element_count()));
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn real_meshes_are_written() {
    for (name, lines) in [
        ("gmsh-versions/hybrid_3d_cube.msh", None),
        ("gmsh-versions/periodic_v41a.msh", None),
        ("gmsh-versions/shell_beam.msh", None),
        ("exodus/read_exodus_HEX20.e", None),
        ("derived/gmsh_plate.v41b.msh", None),
        ("spark98/sf10.8.pack", Some(35025)),
    ] {
        let Some(bytes) = shared_meshes::bytes(name) else { continue };
        let format = Format::detect(name, &bytes).unwrap();
        let reading = reading(format, name, &bytes);
        check_vtu(&reading, 4);
        let rows = rows(&text(&reading, 4));
        let inventory = reading.inventory.as_ref().unwrap();
        let counted: usize = inventory.elements.iter().map(|entry| entry.count).sum();
        assert_eq!(rows.len(), lines.unwrap_or(counted), "{name}");
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let gmsh = reading(Format::Gmsh, "f", common::GMSH_22.as_bytes());
    let halo = halo_of(&gmsh, 2);
    assert!(PlacedPartition::new(&gmsh, &halo.parts, &[CellId(0)]).is_err());
    let small = reading(Format::Tetgen, "f", b"1 3 0\n1 1 2 3\n");
    assert!(PlacedPartition::new(&small, &halo.parts, &[CellId(0), CellId(1)]).is_err());
    let graph = reading(Format::MetisGraph, "f", b"2 1\n2\n1\n");
    let halo = halo_of(&graph, 1);
    let placed = PlacedPartition::new(&graph, &halo.parts, &[CellId(0)]).unwrap();
    assert!(placed.vtu().unwrap_err().message.contains("graph"));
}
