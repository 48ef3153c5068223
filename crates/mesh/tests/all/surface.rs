//! What is seen of a partition: faces of one element, and elements of two dimensions.

use conset_ir::CellId;
use conset_ir::convert::to_u32;
use conset_mesh::halo;
use conset_mesh::model::{Mesh, Source};
use conset_mesh::partition::Partition;
use conset_mesh::read::Reading;
use conset_mesh::surface::Surface;
use conset_mesh::write_partition::PlacedPartition;

fn surface(dimension: u8, points: &[[f64; 3]], elements: &[&[u32]]) -> Surface {
    let first = elements.iter().scan(0, |end, nodes| {
        *end += to_u32(nodes.len());
        Some(*end)
    });
    let first = std::iter::once(0).chain(first).collect();
    let mesh =
        Mesh::new(dimension, points.len(), points.to_vec(), first, elements.concat()).unwrap();
    let parts = (0..to_u32(elements.len())).map(|element| element % 2).collect();
    let partition = Partition::new(2, parts).unwrap();
    let reading = Reading::from(Source::Mesh(mesh));
    let halo = halo(&reading.source, &partition, "halo").unwrap();
    let cells = [CellId(5), CellId(3)];
    let partition = PlacedPartition::new(&reading, &halo.parts, &cells).unwrap();
    partition.vtu().unwrap().surface()
}

#[test]
fn a_face_of_two_elements_is_inside() {
    let points = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0; 3]];
    let surface = surface(3, &points, &[&[0, 1, 2, 3], &[1, 2, 3, 4]]);
    assert_eq!(surface.parts, [0, 0, 0, 1, 1, 1]);
    assert_eq!(surface.points.len(), 5);
    assert!(surface.first.windows(2).all(|ends| ends[1] - ends[0] == 3));
}

#[test]
fn elements_of_two_dimensions_are_all_drawn() {
    let points = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [9.0; 3]];
    let surface = surface(2, &points, &[&[0, 1, 2], &[1, 3, 2]]);
    assert_eq!((surface.first, surface.parts), (vec![0, 3, 6], vec![0, 1]));
    assert_eq!((surface.points.len(), surface.not_drawn), (4, 0));
}
