//! MSH files as the manual of Gmsh describes them.

use conset_mesh::Mesh;
use conset_mesh::generate::{bricks, plate};
use conset_mesh::write_msh::{MshFormat, write};

#[test]
fn text_follows_the_manual() {
    let text = |form| String::from_utf8(write(&plate(1, 1).unwrap(), form).unwrap()).unwrap();
    assert_eq!(
        text(MshFormat::V41Text),
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n\
         $Nodes\n1 4 1 4\n2 1 0 4\n1\n2\n3\n4\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n$EndNodes\n\
         $Elements\n1 2 1 2\n2 1 2 2\n1 1 2 4\n2 1 4 3\n$EndElements\n"
    );
    assert_eq!(
        text(MshFormat::V22Text),
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n\
         $Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 1 1 0\n$EndNodes\n\
         $Elements\n2\n1 2 2 1 1 1 2 4\n2 2 2 1 1 1 4 3\n$EndElements\n"
    );
}

#[test]
fn binary_has_the_sizes_of_its_fields() {
    let mesh = bricks(1, 1, 1).unwrap();
    let frame = "$MeshFormat\n4.1 1 8\n1234\n$EndMeshFormat\n\
                 $Nodes\n\n$EndNodes\n$Elements\n\n$EndElements\n";
    let nodes = 4 * 8 + (3 * 4 + 8) + 8 * 8 + 8 * 24;
    let elements = 4 * 8 + (3 * 4 + 8) + 9 * 8;
    let bytes = write(&mesh, MshFormat::V41Binary).unwrap();
    assert_eq!(bytes.len(), frame.len() + nodes + elements);
    let bytes = write(&mesh, MshFormat::V22Binary).unwrap();
    assert_eq!(bytes.len(), frame.len() + 2 + 8 * 28 + 2 + 3 * 4 + 11 * 4);
}

#[test]
fn element_types_change_from_run_to_run() {
    let coordinates: Vec<[f64; 3]> = (0..5).map(|i| [f64::from(i), 0.1, -1e-300]).collect();
    let nodes = vec![0, 1, 2, 1, 2, 3, 0, 1, 2, 3, 2, 3, 4];
    let mesh = Mesh::new(2, 5, coordinates, vec![0, 3, 6, 10, 13], nodes).unwrap();
    let mesh = mesh.with_node_ids(vec![10, 20, 30, 40, 5_000_000_000]).unwrap();
    let text = String::from_utf8(write(&mesh, MshFormat::V41Text).unwrap()).unwrap();
    assert!(text.contains("$Nodes\n1 5 10 5000000000\n"), "{text}");
    assert!(text.contains("$Elements\n3 4 1 4\n2 1 2 2\n1 10 20 30\n"), "{text}");
    assert!(text.contains("\n2 1 3 1\n3 10 20 30 40\n2 1 2 1\n4 30 40 5000000000\n"), "{text}");
    assert!(write(&mesh, MshFormat::V22Text).unwrap_err().message.contains("4.1"));
}

#[test]
fn meshes_that_the_format_cannot_represent_are_rejected() {
    let mesh = |dimension, coordinates: Vec<[f64; 3]>| {
        Mesh::new(dimension, 3, coordinates, vec![0, 3], vec![0, 1, 2]).unwrap()
    };
    let points = vec![[0.0; 3]; 3];
    assert!(write(&mesh(2, points.clone()), MshFormat::V41Text).is_ok());
    assert_eq!(write(&mesh(2, vec![]), MshFormat::V41Text).unwrap_err().place, "coordinates");
    assert_eq!(write(&mesh(0, points), MshFormat::V41Text).unwrap_err().place, "elements[0]");
}

#[test]
fn an_empty_mesh_has_empty_sections() {
    let empty = Mesh::new(2, 0, vec![], vec![0], vec![]).unwrap();
    for form in [MshFormat::V41Text, MshFormat::V41Binary, MshFormat::V22Text, MshFormat::V22Binary]
    {
        assert!(write(&empty, form).is_ok());
    }
    let text = String::from_utf8(write(&empty, MshFormat::V41Text).unwrap()).unwrap();
    assert!(text.contains("$Nodes\n0 0 0 0\n$EndNodes\n$Elements\n0 0 0 0\n"), "{text}");
}
