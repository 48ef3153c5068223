//! The Poisson equation by linear finite elements and conjugate gradients.
//!
//! Minus the Laplacian of u is f, with u given on the boundary. The values of f and of the boundary
//! are computed from a known u, so that the error is known; it falls with the square of the element
//! size.
//!
//! In each iteration the cells exchange the sums of shared nodes once (by phases or by messages,
//! with the same bits), and perform two reductions.

use crate::Failure;
use crate::assembled::Assembled;
use crate::cg::{self, Stop};
use crate::mesh::{Part, Simplices, load};
use crate::report::{Agreement, History, MeshArgs, Solved};
use crate::sparse::max_difference;
use crate::system::{System, manufactured, poisson};
use conset_runtime::By;

/// Solves on a mesh, on cells and alone.
///
/// # Errors
/// A mesh that cannot be read, dealt or solved on; a run that failed.
pub fn solve(args: &MeshArgs, stop: Stop, by: By) -> Result<Solved, Failure> {
    let source = load(&args.mesh, args.team.seed)?;
    let mesh = Simplices::from_source(&source)?;
    let rim = mesh.rim();
    let (solution, right) = manufactured(mesh.dimension);

    // Each cell sums up the system of its own elements.
    let dealt = Assembled::new(&args.team, (&mesh, &source), args.parts, (1, by))?;
    let of_part = |part: &Part| poisson(&part.mesh, &part.share(&rim), &right, &solution);
    let systems: Vec<System> = dealt.parts.iter().map(of_part).collect::<Result<_, _>>()?;

    let (solutions, account) = dealt.run(|cell, meter| {
        let system = &systems[cell.id().index()];
        cg::on_cell(cell, meter, &dealt, system, stop)
    })?;

    let alone = cg::alone(&poisson(&mesh, &rim, &right, &solution)?, stop);
    let x = dealt.gather(solutions.iter().map(|part| part.x.as_slice()), alone.x.clone())?;
    dealt.write(args.vtu.as_deref(), solutions.iter().map(|part| part.x.as_slice()))?;
    let exact: Vec<f64> = mesh.points.iter().map(|&point| solution(point)).collect();
    Ok(Solved {
        title: format!(
            "Poisson: {} nodes, {} elements, {} parts",
            mesh.node_count(),
            mesh.elements().len(),
            dealt.part_count()
        ),
        history: History::of(&solutions, &alone),
        error: max_difference(&x, &exact),
        agreement: Agreement::of(&x, &alone.x, 100.0 * stop.tolerance.max(1e-14)),
        x,
        account,
    })
}
