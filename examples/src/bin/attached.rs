//! A solver in an MPI program, without a callback; it is in `conset_examples::attached`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

use std::process::ExitCode;

use clap::Parser;
use conset_examples::attached::solve;
use conset_runtime::mpi::{Attached, Comm, HaloError};

/// Conjugate gradients on the Laplacian of a square, distributed to the ranks of an MPI job.
#[derive(Parser, Debug)]
#[command(max_term_width = 100, after_help = "Example: mpirun -n 4 attached --side 200")]
struct Args {
    /// Points on an edge of the square.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=4096))]
    side: u64,
    /// The residual to be reached, relative to the first one.
    #[arg(long, value_name = "R", default_value_t = 1e-8)]
    tolerance: f64,
}

fn run(args: &Args) -> Result<(), HaloError> {
    let attached = Attached::new(&Comm::world()?)?;
    let found = solve(&attached, args.side, args.tolerance)?;
    if attached.rank() == 0 {
        let (ranks, steps, residual) = (attached.size(), found.steps, found.residual);
        println!("{ranks} ranks: {steps} iterations, residual {residual:.2e} of the first");
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
