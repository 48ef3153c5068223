//! A histogram of a distributed table; the program is in `conset_examples::histogram`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::histogram::{self, Size};
use conset_examples::report::finish;

/// Updates of counters of other cells, chosen at random, in an epoch.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: histogram --machine ring:4 --transport threads --updates 1000000"
)]
struct Args {
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    team: conset_examples::team::TeamArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(histogram::update(&args.team, args.size))
}
