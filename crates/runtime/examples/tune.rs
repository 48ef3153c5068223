//! Measures what messages cost on the computers of an MPI job and prints a machine file of the cluster.
//!
//! ```text
//! cargo build --release -p conset-runtime --features mpi --example tune
//! mpirun -n 64 target/release/examples/tune > cluster.toml
//! conset compile mesh.msh --machine cluster.toml --by best
//! ```
//!
//! A number as argument divides the ranks into nodes of so many instead of asking MPI which of them
//! share memory.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

use std::process::ExitCode;

use conset_runtime::mpi::Comm;
use conset_runtime::mpi::tune::{Measured, TuneError, measure};

fn main() -> ExitCode {
    let comm = match Comm::world() {
        Ok(comm) => comm,
        Err(error) => return fail(&error.into()),
    };
    let cells = match std::env::args().nth(1).map(|cells| cells.parse()) {
        Some(Err(_)) => {
            eprintln!("expected the number of ranks of a node");
            return ExitCode::from(2);
        }
        cells => cells.and_then(Result::ok),
    };
    let measured: Result<Measured, TuneError> = measure(&comm, cells);
    match measured {
        // All ranks have the same; one speaks.
        _ if comm.rank() > 0 => ExitCode::SUCCESS,
        Ok(measured) => {
            print!("{}", measured.machine_file());
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &TuneError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}
