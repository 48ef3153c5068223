//! Linear finite elements: gradients, volume, stiffness.
//!
//! On a triangle or tetrahedron each corner has a shape function that is 1 there, 0 at the other
//! corners and linear in between; its gradient is constant. All integrals needed are volumes times
//! products of gradients.
//!
//! With the edges e1, e2, e3 from corner 0, the gradient of the function of corner 1 is (e2 x e3) /
//! (e1 . (e2 x e3)), and cyclically for the others; that of corner 0 is minus their sum. A triangle
//! is treated as a tetrahedron with a perpendicular e3, so that the same formulas hold.

use crate::mesh::Simplices;
use crate::{Failure, failure};

/// One element's geometry.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its area or volume.
    pub volume: f64,
    /// The gradient of each corner's shape function; the last is 0 in the plane.
    pub gradients: [[f64; 3]; 4],
}

impl Element {
    /// The geometry of an element of a mesh.
    ///
    /// # Errors
    /// An element without volume.
    pub fn of(mesh: &Simplices, corners: &[u32]) -> Result<Self, Failure> {
        let [origin, first, second, third] = mesh.corners_of(corners);
        let plane = mesh.dimension == 2;
        let [e1, e2] = [minus(first, origin), minus(second, origin)];
        let e3 = if plane { [0.0, 0.0, 1.0] } else { minus(third, origin) };
        let determinant = dot(e1, cross(e2, e3));
        if determinant == 0.0 {
            return Err(failure(format!("the element of the nodes {corners:?} has no volume")));
        }
        let mut gradients = [[0.0; 3]; 4];
        gradients[1] = scale(cross(e2, e3), 1.0 / determinant);
        gradients[2] = scale(cross(e3, e1), 1.0 / determinant);
        if !plane {
            gradients[3] = scale(cross(e1, e2), 1.0 / determinant);
        }
        for axis in 0..3 {
            gradients[0][axis] = -gradients[1..].iter().map(|g| g[axis]).sum::<f64>();
        }
        let volume = determinant.abs() / if plane { 2.0 } else { 6.0 };
        Ok(Self { volume, gradients })
    }

    /// The stiffness of the Laplacian between two corners.
    pub fn stiffness(&self, a: usize, b: usize) -> f64 {
        self.volume * dot(self.gradients[a], self.gradients[b])
    }

    /// The stiffness of linear elasticity between direction `i` at corner `a` and direction `j`
    /// at corner `b`, with Lamé's `lambda` and `mu`.
    pub fn elastic(
        &self,
        lambda: f64,
        mu: f64,
        (a, i): (usize, usize),
        (b, j): (usize, usize),
    ) -> f64 {
        let (g, h) = (self.gradients[a], self.gradients[b]);
        let same = if i == j { dot(g, h) } else { 0.0 };
        self.volume * (lambda * g[i] * h[j] + mu * g[j] * h[i] + mu * same)
    }
}

/// The inner product.
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn scale(a: [f64; 3], factor: f64) -> [f64; 3] {
    a.map(|x| x * factor)
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_a_linear_function() {
        let points = vec![[0.1, 0.2, 0.3], [1.0, 0.1, 0.2], [0.3, 0.9, 0.1], [0.2, 0.3, 1.1]];
        for dimension in [2, 3] {
            let mut points = points.clone();
            if dimension == 2 {
                points.iter_mut().for_each(|p| p[2] = 0.0);
            }
            let corners: Vec<u32> = (0..=dimension as u32).collect();
            let mesh = Simplices { dimension, points, corners: corners.clone() };
            let element = Element::of(&mesh, &corners).unwrap();
            let slope = [2.0, -3.0, if dimension == 3 { 5.0 } else { 0.0 }];
            for axis in 0..dimension {
                let found: f64 = (0..=dimension)
                    .map(|c| dot(slope, mesh.points[c]) * element.gradients[c][axis])
                    .sum();
                assert!((found - slope[axis]).abs() < 1e-12, "{dimension} {axis}: {found}");
            }
        }
    }

    #[test]
    fn a_rigid_motion_takes_no_force() {
        let points = vec![[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.3, 0.9, 0.1], [0.2, 0.3, 1.1]];
        let mesh = Simplices { dimension: 3, points: points.clone(), corners: vec![0, 1, 2, 3] };
        let element = Element::of(&mesh, &[0, 1, 2, 3]).unwrap();
        // A turn about the third axis.
        let motion = |p: [f64; 3]| [-p[1], p[0], 0.0];
        for a in 0..4 {
            for i in 0..3 {
                let force: f64 = (0..12)
                    .map(|bj| (bj / 3, bj % 3))
                    .map(|(b, j)| element.elastic(1.5, 0.7, (a, i), (b, j)) * motion(points[b])[j])
                    .sum();
                assert!(force.abs() < 1e-12, "{force}");
            }
        }
    }

    #[test]
    fn a_flat_element_is_refused() {
        let points = vec![[0.0; 3], [1.0, 1.0, 0.0], [2.0, 2.0, 0.0]];
        let mesh = Simplices { dimension: 2, points, corners: vec![0, 1, 2] };
        assert!(Element::of(&mesh, &[0, 1, 2]).is_err());
    }
}
