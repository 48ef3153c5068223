//! The wave equation in time; the solver is in `conset_examples::wave`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::report::{MeshArgs, finish};
use conset_examples::wave;

/// The wave equation on a mesh of triangles or tetrahedra, explicitly in time.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: wave sf10.64.pack --steps 400")]
struct Args {
    #[command(flatten)]
    mesh: MeshArgs,
    #[command(flatten)]
    duration: wave::Duration,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(wave::solve(&args.mesh, args.duration, args.mesh.team.by.into(), None))
}
