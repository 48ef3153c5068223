//! Gaussian elimination; the solver is in `conset_examples::gauss`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::gauss;
use conset_examples::report::finish;

/// Gaussian elimination with partial pivoting of a matrix of noise, rows dealt in turns.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: gauss --size 128 --machine iwarp:4x4")]
struct Args {
    /// Unknowns.
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    #[command(flatten)]
    team: conset_examples::team::TeamArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(gauss::solve(&args.team, args.size as usize))
}
