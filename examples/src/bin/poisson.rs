//! Poisson's equation on a mesh; the solver is in `conset_examples::poisson`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::poisson;
use conset_examples::report::{MeshArgs, StopArgs, finish};

/// Poisson's equation on a mesh of triangles or tetrahedra: finite elements, conjugate gradients.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: poisson generate:m11k --machine iwarp:4x4")]
struct Args {
    #[command(flatten)]
    mesh: MeshArgs,
    #[command(flatten)]
    stop: StopArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(poisson::solve(&args.mesh, args.stop.into(), args.mesh.team.by.into()))
}
