//! The mesh of a page: its surface, with points on a grid of 16 bits in each direction.
//!
//! A picture needs no more digits, and the points take a quarter of the space.

use conset_ir::convert::truncate;
use conset_mesh::surface::Surface;

use crate::columns::Block;
use crate::head::MeshHead;

/// Greatest coordinate on the grid.
const GRID: f64 = 65535.0;

/// The head and the block of a surface: `point_x`, `point_y`, `point_z`, and for each polygon
/// `polygon_part` and `polygon_size`; `corner` has the points of all polygons.
pub(crate) fn document(surface: &Surface) -> (MeshHead, Block) {
    let mut least = [f64::INFINITY; 3];
    let mut greatest = [f64::NEG_INFINITY; 3];
    for point in &surface.points {
        for axis in 0..3 {
            least[axis] = least[axis].min(point[axis]);
            greatest[axis] = greatest[axis].max(point[axis]);
        }
    }
    if surface.points.is_empty() {
        (least, greatest) = ([0.0; 3], [0.0; 3]);
    }
    let on_grid = |axis: usize| {
        // Halves, because the difference of two coordinates may be too great for a float.
        let length = greatest[axis] / 2.0 - least[axis] / 2.0;
        surface.points.iter().map(move |point| {
            let share = (point[axis] / 2.0 - least[axis] / 2.0) / length;
            let share = if share.is_finite() { share } else { 0.0 };
            truncate((share * GRID).round())
        })
    };
    let sizes = surface.first.windows(2).map(|ends| u64::from(ends[1] - ends[0]));
    let mut block = Block::default();
    block
        .delta("point_x", on_grid(0))
        .delta("point_y", on_grid(1))
        .delta("point_z", on_grid(2))
        .plain("polygon_part", surface.parts.iter().map(|&part| part.into()))
        .plain("polygon_size", sizes)
        .delta("corner", surface.corners.iter().map(|&point| point.into()));
    let flat = (0..3).any(|axis| least[axis] >= greatest[axis]);
    let head = MeshHead {
        dimension: if flat { 2 } else { 3 },
        polygons: surface.parts.len(),
        not_drawn: surface.not_drawn,
        least,
        greatest,
    };
    (head, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_coordinates_stay_on_the_grid() {
        let surface = Surface {
            points: vec![[f64::MIN, 0.0, 1.0], [f64::MAX, 0.0, 2.0], [0.0, 0.0, 1.5]],
            first: vec![0, 3],
            corners: vec![0, 1, 2],
            parts: vec![0],
            not_drawn: 0,
        };
        let (head, block) = document(&surface);
        assert_eq!((head.dimension, head.polygons), (2, 1));
        assert_eq!(block.pack().base64, document(&surface).1.pack().base64);
    }
}
