//! Wolff clusters of the Ising model; the solver is in `conset_examples::wolff`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::report::finish;
use conset_examples::wolff;

/// Wolff clusters of the Ising model on a periodic lattice, whose columns are on cells in stripes.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: wolff --side 128 --machine iwarp:4x4 --scheme ssr --check"
)]
struct Args {
    #[command(flatten)]
    wolff: wolff::WolffArgs,
    #[command(flatten)]
    team: conset_examples::team::TeamArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(wolff::solve(&args.team, &args.wolff))
}
