//! The two-dimensional Fourier transform; the solver is in `conset_examples::fft`.

use std::process::ExitCode;

use clap::Parser;
use conset_examples::fft;
use conset_examples::report::finish;

/// The two-dimensional Fourier transform of a matrix of noise, by rows and transposes.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: fft --size 256 --machine iwarp")]
struct Args {
    /// Rows and columns.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    #[command(flatten)]
    team: conset_examples::team::TeamArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    finish(fft::solve(&args.team, args.size as usize, args.team.by.into()))
}
