//! Finite element systems (matrix, load, boundary values) of a whole mesh or of one part.
//!
//! The same functions assemble both. The matrix and load of a part are sums over its own elements,
//! so at shared nodes they lack the contributions of other parts; the sum over all parts is that of
//! the whole mesh.
//!
//! Unknown `i` of node `n` is entry `n * block + i` of a vector.

use crate::Failure;
use crate::element::{Element, dot};
use crate::mesh::Simplices;
use crate::sparse::Csr;

/// Equations `matrix x = load` for the free unknowns; the others keep the values of `start`.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// Unknowns for each node.
    pub block: usize,
    /// The stiffness.
    pub matrix: Csr,
    /// The right-hand side.
    pub load: Vec<f64>,
    /// Where the solver starts: the given values, 0 elsewhere.
    pub start: Vec<f64>,
    /// Which unknowns are solved for.
    pub free: Vec<bool>,
}

/// A scalar field, by place.
pub type Scalar<'a> = &'a dyn Fn([f64; 3]) -> f64;
/// A vector field, by place.
pub type Vector<'a> = &'a dyn Fn([f64; 3]) -> [f64; 3];

/// Poisson's equation, minus the Laplacian of `u` = `source`, with `u` = `given` where `rim`.
///
/// # Errors
/// An element without volume.
pub fn poisson(
    mesh: &Simplices,
    rim: &[bool],
    source: Scalar<'_>,
    given: Scalar<'_>,
) -> Result<System, Failure> {
    let mut matrix = Csr::pattern(mesh.node_count(), 1, mesh.elements());
    let mut load = vec![0.0; mesh.node_count()];
    for corners in mesh.elements() {
        let element = Element::of(mesh, corners)?;
        let share = element.volume / corners.len() as f64;
        for (a, &node) in corners.iter().enumerate() {
            load[node as usize] += share * source(mesh.points[node as usize]);
            for (b, &other) in corners.iter().enumerate() {
                matrix.add(node as usize, other as usize, element.stiffness(a, b));
            }
        }
    }
    let value = |(&point, &fixed): (&[f64; 3], &bool)| if fixed { given(point) } else { 0.0 };
    let start = mesh.points.iter().zip(rim).map(value).collect();
    Ok(System { block: 1, matrix, load, start, free: rim.iter().map(|fixed| !fixed).collect() })
}

/// What an elastic body is made of: Lamé's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Material {
    /// Resistance to changes of volume.
    pub lambda: f64,
    /// Resistance to shear.
    pub mu: f64,
}

/// Linear elasticity (plane strain in the plane): the displacement under the force `force` per
/// volume, given where `rim`.
///
/// # Errors
/// An element without volume.
pub fn elasticity(
    mesh: &Simplices,
    rim: &[bool],
    Material { lambda, mu }: Material,
    force: Vector<'_>,
    given: Vector<'_>,
) -> Result<System, Failure> {
    let block = mesh.dimension;
    let mut matrix = Csr::pattern(mesh.node_count(), block, mesh.elements());
    let mut load = vec![0.0; mesh.node_count() * block];
    for corners in mesh.elements() {
        let element = Element::of(mesh, corners)?;
        let share = element.volume / corners.len() as f64;
        for (a, &node) in corners.iter().enumerate() {
            let pull = force(mesh.points[node as usize]);
            for (i, pull) in pull.into_iter().enumerate().take(block) {
                let row = node as usize * block + i;
                load[row] += share * pull;
                for (b, &other) in corners.iter().enumerate() {
                    for j in 0..block {
                        let column = other as usize * block + j;
                        matrix.add(row, column, element.elastic(lambda, mu, (a, i), (b, j)));
                    }
                }
            }
        }
    }
    let mut start = vec![0.0; load.len()];
    let mut free = vec![true; load.len()];
    for (node, _) in rim.iter().enumerate().filter(|(_, fixed)| **fixed) {
        let own = node * block..(node + 1) * block;
        start[own.clone()].copy_from_slice(&given(mesh.points[node])[..block]);
        free[own].fill(false);
    }
    Ok(System { block, matrix, load, start, free })
}

/// The manufactured solution of the scalar problems, sin(a . x + 0.3), and its source.
pub fn manufactured(dimension: usize) -> (impl Fn([f64; 3]) -> f64, impl Fn([f64; 3]) -> f64) {
    let a = waves(dimension)[0];
    let solution = move |x| (dot(a, x) + 0.3).sin();
    (solution, move |x| dot(a, a) * (dot(a, x) + 0.3).sin())
}

/// The manufactured displacement: sin(a_i . x) in direction `i`.
#[derive(Clone, Copy, Debug)]
pub struct Displacement {
    /// Of the mesh.
    pub dimension: usize,
    /// Of the body.
    pub material: Material,
}

impl Displacement {
    /// The displacement at a place.
    pub fn at(&self, x: [f64; 3]) -> [f64; 3] {
        let mut u = waves(self.dimension).map(|a| dot(a, x).sin());
        u[self.dimension..].fill(0.0);
        u
    }

    /// The force that causes it. Of `u_i = sin(a_i . x)` the Laplacian is `-|a_i|^2 u_i`, and the
    /// gradient of the divergence has in direction `j` the sum of `-a_ij a_ii u_i`.
    pub fn force(&self, x: [f64; 3]) -> [f64; 3] {
        let (u, a) = (self.at(x), waves(self.dimension));
        let Material { lambda, mu } = self.material;
        let along = |j: usize| {
            let volume: f64 = (0..3).map(|i| a[i][j] * a[i][i] * u[i]).sum();
            (lambda + mu) * volume + mu * dot(a[j], a[j]) * u[j]
        };
        [along(0), along(1), along(2)]
    }
}

/// Three directions, with no part outside of the mesh's dimension.
fn waves(dimension: usize) -> [[f64; 3]; 3] {
    let mut waves = [[2.0, 1.5, 1.0], [1.0, -2.0, 0.5], [-0.5, 1.0, 2.0]];
    waves.iter_mut().for_each(|a| a[dimension..].fill(0.0));
    waves
}
