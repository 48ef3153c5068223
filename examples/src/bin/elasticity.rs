//! Linear elasticity on a mesh; the solver is in `conset_examples::elasticity`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::elasticity;
use conset_examples::report::{MeshArgs, StopArgs, finish};

/// Linear elasticity on a mesh of triangles or tetrahedra: finite elements, conjugate gradients.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: elasticity generate:tets:8x8x8 --machine iwarp:4x4"
)]
struct Args {
    #[command(flatten)]
    mesh: MeshArgs,
    #[command(flatten)]
    stop: StopArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(elasticity::solve(&args.mesh, args.stop.into(), args.mesh.team.by.into()))
}
