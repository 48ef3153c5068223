//! Poisson's equation by linear finite elements and conjugate gradients.
//!
//! Minus the Laplacian of u is f, with u given on the rim; f and the rim's values are made from a
//! known u, so that the error is known. It falls with the square of the element size.
//!
//! What the cells exchange: in each iteration the sums of shared nodes once, and two reductions.

use crate::assembled::Assembled;
use crate::cg::{self, Stop};
use crate::mesh::{Simplices, load};
use crate::report::{Agreement, MeshArgs, Solved};
use crate::sparse::max_difference;
use crate::system::{System, manufactured, poisson};
use crate::Failure;

/// Solves on a mesh, on cells and alone.
///
/// # Errors
/// A mesh that cannot be read, dealt or solved on; a run that failed.
pub fn solve(args: &MeshArgs, stop: Stop) -> Result<Solved, Failure> {
    let source = load(&args.mesh, args.team.seed)?;
    let mesh = Simplices::from_source(&source)?;
    let rim = mesh.rim();
    let (solution, right) = manufactured(mesh.dimension);

    // Each cell sums up the system of its own elements.
    let dealt = Assembled::new(&args.team, (&mesh, &source), args.parts, 1)?;
    let of_part = |part: &crate::mesh::Part| {
        poisson(&part.mesh, &part.share(&rim), &right, &solution)
    };
    let systems: Vec<System> = dealt.parts.iter().map(of_part).collect::<Result<_, _>>()?;

    let (solutions, account) = dealt.run(|cell, meter| {
        let system = &systems[cell.id().index()];
        cg::on_cell(cell, meter, (&dealt.plan, &dealt.trees), system, stop)
    })?;
    let x = dealt.gather(solutions.iter().map(|part| part.x.as_slice()))?;

    let alone = cg::alone(&poisson(&mesh, &rim, &right, &solution)?, stop);
    let used = |x: &[f64]| -> Vec<f64> {
        // Nodes without elements are not solved for.
        mesh.corners.iter().map(|&node| x[node as usize]).collect()
    };
    let exact: Vec<f64> = mesh.points.iter().map(|&point| solution(point)).collect();
    Ok(Solved {
        title: format!(
            "Poisson: {} nodes, {} elements, {} parts",
            mesh.node_count(),
            mesh.elements().len(),
            dealt.parts.iter().filter(|part| !part.ids.is_empty()).count()
        ),
        iterations: [solutions[0].iterations, alone.iterations],
        residuals: solutions[0].residuals.clone(),
        error: max_difference(&used(&x), &used(&exact)),
        agreement: Agreement::of(&used(&x), &used(&alone.x), 100.0 * stop.tolerance.max(1e-14)),
        x,
        account,
    })
}
