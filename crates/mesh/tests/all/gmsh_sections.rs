//! Sections of Gmsh files in the variants that versions and writers have.

use conset_mesh::read::{ReadOptions, Reading, read_with};
use conset_mesh::{Format, Source};

fn read(bytes: &[u8]) -> Result<Reading, String> {
    read_with(Format::Gmsh, "f.msh", bytes, &ReadOptions::default()).map_err(|e| e.to_string())
}

/// Two lines between four nodes in binary 4.0, with links between nodes.
fn binary_40(links: &[u8]) -> Vec<u8> {
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let sizes = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let mut bytes = b"$MeshFormat\n4 1 8\n".to_vec();
    bytes.extend(ints(&[1]));
    bytes.extend(b"\n$EndMeshFormat\n$Nodes\n");
    bytes.extend([sizes(&[1, 4]), ints(&[1, 1, 0]), sizes(&[4])].concat());
    for (tag, x) in [(1, 0.0f64), (2, 1.0), (3, 2.0), (4, 3.0)] {
        bytes.extend(ints(&[tag]));
        bytes.extend([x, 0.0, 0.0].iter().flat_map(|x| x.to_le_bytes()));
    }
    bytes.extend(b"\n$EndNodes\n$Elements\n");
    bytes.extend([sizes(&[1, 2]), ints(&[1, 1, 1]), sizes(&[2])].concat());
    bytes.extend(ints(&[1, 1, 2, 2, 3, 4]));
    bytes.extend(b"\n$EndElements\n$Periodic\n");
    bytes.extend(links);
    bytes.extend(b"\n$EndPeriodic\n");
    bytes
}

#[test]
fn periodic_links_of_binary_40_may_have_a_transformation() {
    let mut links = Vec::new();
    links.extend(2i32.to_le_bytes());
    links.extend([0, 4, 1].map(i32::to_le_bytes).concat());
    links.extend(u64::MAX.to_le_bytes());
    links.extend([f64::NAN; 16].map(f64::to_le_bytes).concat());
    links.extend(1u64.to_le_bytes());
    links.extend([4, 1].map(i32::to_le_bytes).concat());
    links.extend([0, 3, 2].map(i32::to_le_bytes).concat());
    links.extend(1u64.to_le_bytes());
    links.extend([3, 2].map(i32::to_le_bytes).concat());
    let reading = read(&binary_40(&links)).unwrap();
    let Source::Mesh(mesh) = reading.source else { panic!() };
    assert_eq!((mesh.element(0), mesh.element(1)), (&[0, 1][..], &[1, 0][..]));
    assert_eq!(reading.inventory.unwrap().joined_nodes, 2);
    for length in 0..links.len() {
        assert!(read(&binary_40(&links[..length])).is_err(), "{length}");
    }
}

#[test]
fn names_of_groups_may_have_no_dimension() {
    let file = |row: &str| {
        format!(
            "$MeshFormat\n2.1 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n{row}\n$EndPhysicalNames\n\
             $Nodes\n2\n1 0 0 0\n2 1 0 0\n$EndNodes\n$Elements\n1\n1 1 2 7 1 1 2\n$EndElements\n"
        )
    };
    for row in ["1 7 \"the wall\"", "7 \"the wall\"", "  7\"the wall\"", "-1 7 \"the wall\""] {
        let inventory = read(file(row).as_bytes()).unwrap().inventory.unwrap();
        assert_eq!(inventory.groups[0].name, "the wall", "{row}");
    }
    let unquoted = read(file("1 7 wall").as_bytes()).unwrap().inventory.unwrap();
    assert_eq!(unquoted.groups[0].name, "wall");
    for row in ["4 7 \"a\"", "-2 7 \"a\"", "x 7 \"a\"", "\"a\"", "1 x \"a\""] {
        let error = read(file(row).as_bytes()).unwrap_err();
        assert!(error.contains("expected dimension (0 to 3), tag and name"), "{row}: {error}");
    }
}
