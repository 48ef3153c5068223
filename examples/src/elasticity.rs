//! Linear elasticity by linear finite elements and conjugate gradients, with 2 or 3 unknowns per
//! node.
//!
//! The displacement is given on the boundary, and the force is computed from a known displacement,
//! so that the error is known. The plan has a block of 2 or 3: the unknowns of a node are sent
//! together.

use crate::Failure;
use crate::assembled::Assembled;
use crate::cg::{self, Stop};
use crate::mesh::{Part, Simplices, load};
use crate::report::{Agreement, History, MeshArgs, Solved};
use crate::sparse::max_difference;
use crate::system::{Displacement, Material, System, elasticity};
use conset_runtime::By;

/// Of what the body is made: Poisson's ratio is 0.3, and Young's modulus 1.
pub const MATERIAL: Material = Material { lambda: 0.3 / (1.3 * 0.4), mu: 0.5 / 1.3 };

/// Solves on a mesh, on cells and alone.
///
/// # Errors
/// A mesh that cannot be read, dealt or solved on; a run that failed.
pub fn solve(args: &MeshArgs, stop: Stop, by: By) -> Result<Solved, Failure> {
    let source = load(&args.mesh, args.team.seed)?;
    let mesh = Simplices::from_source(&source)?;
    let (rim, block) = (mesh.rim(), mesh.dimension);
    let known = Displacement { dimension: block, material: MATERIAL };
    let (solution, force) = (|x| known.at(x), |x| known.force(x));

    let dealt = Assembled::new(&args.team, (&mesh, &source), args.parts, (block, by))?;
    let of_part =
        |part: &Part| elasticity(&part.mesh, &part.share(&rim), MATERIAL, &force, &solution);
    let systems: Vec<System> = dealt.parts.iter().map(of_part).collect::<Result<_, _>>()?;

    let (solutions, account) = dealt.run(|cell, meter| {
        let system = &systems[cell.id().index()];
        cg::on_cell(cell, meter, &dealt, system, stop)
    })?;

    let alone = cg::alone(&elasticity(&mesh, &rim, MATERIAL, &force, &solution)?, stop);
    let x = dealt.gather(solutions.iter().map(|part| part.x.as_slice()), alone.x.clone())?;
    let of_node = |&point: &[f64; 3]| known.at(point).into_iter().take(block);
    dealt.write(args.vtu.as_deref(), solutions.iter().map(|part| part.x.as_slice()))?;
    let exact: Vec<f64> = mesh.points.iter().flat_map(of_node).collect();
    Ok(Solved {
        title: format!(
            "elasticity: {} nodes of {block} unknowns, {} elements, {} parts",
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
