//! The surface of a partitioned mesh: polygons to draw, with the part of each.
//!
//! Elements of two dimensions are polygons, lines and points are polygons with two and one corner.
//! Of elements of three dimensions, the faces that belong to one element only are drawn. Elements
//! are drawn by their corners, as in VTU files ([`crate::write_partition`]), and those whose nodes are in
//! no known order (unless they are tetrahedra or triangles), polyhedra and splines are counted and
//! not drawn.

use conset_ir::convert::{index, to_u32};

use crate::write_partition::VtuPartition;

/// Polygons of a surface.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// The points that polygons use.
    pub points: Vec<[f64; 3]>,
    /// The start of each polygon in `corners`; one entry more than polygons.
    pub first: Vec<u32>,
    /// The points of all polygons.
    pub corners: Vec<u32>,
    /// The part of each polygon.
    pub parts: Vec<u32>,
    /// Elements that are not drawn.
    pub not_drawn: usize,
}

/// Faces of the shapes by VTK's cell types (`vtkCellType.h`): positions of their corners.
fn faces(cell_type: u8) -> Option<&'static [&'static [usize]]> {
    Some(match cell_type {
        10 => &[&[0, 1, 2], &[0, 1, 3], &[1, 2, 3], &[0, 2, 3]],
        12 => &[
            &[0, 1, 2, 3],
            &[4, 5, 6, 7],
            &[0, 1, 5, 4],
            &[1, 2, 6, 5],
            &[2, 3, 7, 6],
            &[3, 0, 4, 7],
        ],
        13 => &[&[0, 1, 2], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]],
        14 => &[&[0, 1, 2, 3], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
        _ => return None,
    })
}

/// Whether a cell type is drawn by its nodes as they are: a point, a line or a polygon.
fn is_polygon(cell_type: u8) -> bool {
    matches!(cell_type, 1 | 3 | 5 | 7 | 9)
}

impl VtuPartition<'_> {
    /// The surface of the mesh. O(n log n) in the number of faces.
    pub fn surface(&self) -> Surface {
        let mesh = self.mesh();
        let part_of = self.part_of();
        let mut not_drawn = 0;
        // Faces by their sorted corners, the element, and the face's position in it. The least four
        // corners identify a face.
        let mut sides: Vec<([u32; 4], u32, u8)> = Vec::new();
        let mut polygons: Vec<(u32, u8)> = Vec::new();
        for element in 0..mesh.element_count() {
            let (cell_type, nodes) = self.drawn(element);
            let number = to_u32(element);
            match faces(cell_type) {
                Some(faces) => {
                    for (position, face) in (0u8..).zip(faces) {
                        let mut key = [u32::MAX; 4];
                        for (slot, &corner) in key.iter_mut().zip(*face) {
                            *slot = nodes[corner];
                        }
                        key.sort_unstable();
                        sides.push((key, number, position));
                    }
                }
                None if is_polygon(cell_type) => polygons.push((number, 0)),
                None => not_drawn += 1,
            }
        }
        sides.sort_unstable();
        for group in sides.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, element, position)] = group {
                polygons.push((*element, *position));
            }
        }
        polygons.sort_unstable();
        drop(sides);
        let mut point_of = vec![u32::MAX; mesh.node_count()];
        let mut surface = Surface {
            points: Vec::new(),
            first: vec![0],
            corners: Vec::new(),
            parts: Vec::new(),
            not_drawn,
        };
        for (element, position) in polygons {
            let element = index(element);
            let (cell_type, nodes) = self.drawn(element);
            let mut corner = |node: u32| {
                let slot = &mut point_of[index(node)];
                if *slot == u32::MAX {
                    *slot = to_u32(surface.points.len());
                    surface.points.push(mesh.coordinates()[index(node)]);
                }
                surface.corners.push(*slot);
            };
            match faces(cell_type) {
                Some(faces) => {
                    faces[usize::from(position)].iter().for_each(|&at| corner(nodes[at]));
                }
                None => nodes.iter().for_each(|&node| corner(node)),
            }
            surface.first.push(to_u32(surface.corners.len()));
            surface.parts.push(part_of[element]);
        }
        surface
    }
}
