//! Generators of regular meshes: plates of triangles, boxes of bricks or tetrahedra, the valley.
//!
//! Squares and bricks have sides of length 1. Nodes and elements are numbered with x fastest, then
//! y, then z; missing bricks have no numbers.

use conset_ir::ShapeError;
use conset_ir::convert::{index, to_u32};

use super::MAX_ELEMENTS;
use crate::model::Mesh;

/// Kuhn's tetrahedra: the six paths from corner 0 of a brick to the opposite corner along three edges,
/// as corner numbers (bit 0 is x, bit 1 is y, bit 2 is z). If the path is an odd permutation of the
/// axes, its two middle corners are swapped, which makes the volume positive.
const KUHN: [[u32; 4]; 6] =
    [[0, 1, 3, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 3, 2, 7], [0, 5, 1, 7], [0, 6, 4, 7]];

/// The corners of a brick in the order of mesh formats: around the bottom, then around the top.
const BRICK: [u32; 8] = [0, 1, 3, 2, 4, 5, 7, 6];

/// A plate of `nx` times `ny` squares, each divided into two triangles by its rising diagonal.
///
/// # Errors
/// A size of 0, or more than 2^24 triangles.
pub fn plate(nx: u32, ny: u32) -> Result<Mesh, ShapeError> {
    plates(nx, ny, 1)
}

/// Two plates side by side with a gap of 1 between them; they share no node.
///
/// # Errors
/// As [`plate`].
pub fn two_plates(nx: u32, ny: u32) -> Result<Mesh, ShapeError> {
    plates(nx, ny, 2)
}

/// A box of `nx` times `ny` times `nz` bricks (hexahedra of 8 nodes).
///
/// # Errors
/// A size of 0, or more than 2^24 bricks.
pub fn bricks(nx: u32, ny: u32, nz: u32) -> Result<Mesh, ShapeError> {
    check_size(&[nx, ny, nz], 1)?;
    BrickLattice { dims: [nx, ny, nz], solid: |_, _, _| true }.mesh(&[BRICK])
}

/// [`bricks`] with each brick divided into Kuhn's six tetrahedra around its diagonal, in the same way
/// for every brick, so that the faces match.
///
/// # Errors
/// A size of 0, or more than 2^24 tetrahedra.
pub fn tetrahedra(nx: u32, ny: u32, nz: u32) -> Result<Mesh, ShapeError> {
    check_size(&[nx, ny, nz], 6)?;
    BrickLattice { dims: [nx, ny, nz], solid: |_, _, _| true }.mesh(&KUHN)
}

/// A mesh with the numbers of nodes and elements of the paper's q20k: 20000 bricks on 22451 nodes.
///
/// A box of 25 x 40 x 20 bricks has 20000 bricks and 26 * 41 * 21 = 22386 nodes, 65 too few. A
/// valley along the whole length of its top, 3 bricks wide and 1 deep, removes 120 bricks and the
/// 2 * 41 nodes above its inside. These 120 bricks form a hill of 6 x 20 beside the valley, with
/// 7 * 21 additional nodes: 22386 - 82 + 147 = 22451.
///
/// # Errors
/// None; the result type is that of the other generators.
pub fn valley() -> Result<Mesh, ShapeError> {
    let solid = |x: u32, y: u32, z: u32| match z {
        0..19 => true,
        19 => !(10..13).contains(&x),
        _ => (15..21).contains(&x) && (10..30).contains(&y),
    };
    BrickLattice { dims: [25, 40, 21], solid }.mesh(&[BRICK])
}

fn plates(nx: u32, ny: u32, pieces: u32) -> Result<Mesh, ShapeError> {
    check_size(&[nx, ny], 2 * index(pieces))?;
    let width = nx + 1;
    let nodes_per_piece = width * (ny + 1);
    let mut coordinates = Vec::with_capacity(index(nodes_per_piece * pieces));
    let mut corners = Vec::with_capacity(index(nx * ny * pieces) * 6);
    for piece in 0..pieces {
        let left = piece * (nx + 1);
        for y in 0..=ny {
            coordinates.extend((0..=nx).map(|x| [f64::from(left + x), f64::from(y), 0.0]));
        }
        for y in 0..ny {
            for x in 0..nx {
                let at = piece * nodes_per_piece + y * width + x;
                corners.extend([at, at + 1, at + width + 1, at, at + width + 1, at + width]);
            }
        }
    }
    mesh(2, 3, coordinates, corners)
}

/// A lattice of unit bricks, some of which may be missing.
struct BrickLattice<F> {
    dims: [u32; 3],
    /// Whether there is a brick at these coordinates.
    solid: F,
}

impl<F: Fn(u32, u32, u32) -> bool> BrickLattice<F> {
    /// Divides each brick into the elements of `shapes`, given by the brick's corners.
    fn mesh<const N: usize>(&self, shapes: &[[u32; N]]) -> Result<Mesh, ShapeError> {
        let [nx, ny, nz] = self.dims;
        let (row, layer) = (nx + 1, (nx + 1) * (ny + 1));
        let corner = |i: u32| (i & 1) + (i >> 1 & 1) * row + (i >> 2) * layer;
        let mut corners = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                for x in (0..nx).filter(|&x| (self.solid)(x, y, z)) {
                    let at = x + y * row + z * layer;
                    for shape in shapes {
                        corners.extend(shape.iter().map(|&i| at + corner(i)));
                    }
                }
            }
        }
        let mut number = vec![u32::MAX; index(layer * (nz + 1))];
        for &lattice_node in &corners {
            number[index(lattice_node)] = 0;
        }
        let mut coordinates = Vec::new();
        for (at, number) in (0u32..).zip(&mut number).filter(|(_, number)| **number == 0) {
            *number = to_u32(coordinates.len());
            coordinates.push([at % row, at / row % (ny + 1), at / layer].map(f64::from));
        }
        for node in &mut corners {
            *node = number[index(*node)];
        }
        mesh(3, to_u32(N), coordinates, corners)
    }
}

/// A mesh whose elements all have `per_element` nodes.
pub(super) fn mesh(
    dimension: u8,
    per_element: u32,
    coordinates: Vec<[f64; 3]>,
    corners: Vec<u32>,
) -> Result<Mesh, ShapeError> {
    let elements = to_u32(corners.len()) / per_element;
    let first = (0..=elements).map(|e| e * per_element).collect();
    Mesh::new(dimension, coordinates.len(), coordinates, first, corners)
}

/// Checks that there are at most [`MAX_ELEMENTS`]; then there are at most four times as many nodes, and
/// all numbers fit 32 bits.
fn check_size(dims: &[u32], elements_per_block: usize) -> Result<(), ShapeError> {
    let count = dims.iter().try_fold(elements_per_block, |all, &size| all.checked_mul(index(size)));
    match count {
        Some(1..=MAX_ELEMENTS) => Ok(()),
        Some(0) => Err(ShapeError::new("size", "0 in one direction; expected at least 1")),
        _ => Err(ShapeError::new("size", format!("more than {MAX_ELEMENTS} elements"))),
    }
}
