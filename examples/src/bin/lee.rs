//! Lee's maze routing; the solver is in `conset_examples::lee`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::lee;
use conset_examples::report::finish;

/// Lee's maze routing on a grid with blocked sites, whose columns are on cells in stripes.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: lee --side 128 --blocked 40 --machine iwarp:4x4"
)]
struct Args {
    #[command(flatten)]
    lee: lee::LeeArgs,
    #[command(flatten)]
    team: conset_examples::team::TeamArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(lee::solve(&args.team, &args.lee))
}
