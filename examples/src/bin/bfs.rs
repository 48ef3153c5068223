//! Breadth-first search; the program is in `conset_examples::bfs`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::bfs;
use conset_examples::report::{MeshArgs, finish};

/// Breadth-first search of a graph by an epoch: distances and parents.
///
/// The graph is a file (METIS .graph, Matrix Market), or random:VERTICES:DEGREE.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: bfs 4elt.graph --machine iwarp:4x4")]
struct Args {
    #[command(flatten)]
    mesh: MeshArgs,
    /// The vertex to begin with, counted from 0.
    #[arg(long, value_name = "V", default_value_t = 0)]
    root: u32,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(bfs::search(&args.mesh, args.root))
}
