//! A graph's Laplacian plus the identity; the solver is in `conset_examples::laplacian`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::laplacian;
use conset_examples::report::{MeshArgs, StopArgs, finish};

/// A graph's Laplacian plus the identity by rows: conjugate gradients with owners and ghosts.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: laplacian crack.graph")]
struct Args {
    #[command(flatten)]
    mesh: MeshArgs,
    #[command(flatten)]
    stop: StopArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(laplacian::solve(&args.mesh, args.stop.into(), args.mesh.team.by.into()))
}
