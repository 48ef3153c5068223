//! The heat equation on a mesh that the solver reads itself; the solver is in `conset_examples::heat`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use conset_examples::Failure;
use conset_examples::heat::Job;

/// The heat equation on triangles or tetrahedra (Gmsh 2.2, ASCII), with explicit time steps.
#[derive(Parser, Debug)]
#[command(
    max_term_width = 100,
    after_help = "Example: conset compile mesh.msh -o mesh.json --write-partition mesh.txt\n         \
                  heat mesh.msh --schedule mesh.json --partition mesh.txt"
)]
struct Args {
    /// The mesh.
    mesh: PathBuf,
    /// The schedule that conset compiled for the mesh.
    #[arg(long, value_name = "FILE", requires = "partition")]
    schedule: Option<PathBuf>,
    /// The partition that conset wrote beside it.
    #[arg(long, value_name = "FILE", requires = "schedule")]
    partition: Option<PathBuf>,
    /// Without these: the machine that the mesh is compiled for.
    #[arg(long, value_name = "SPEC", default_value = "iwarp", conflicts_with = "schedule")]
    machine: String,
    /// Number of time steps.
    #[arg(long, value_name = "N", default_value_t = 100)]
    steps: usize,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let job = match (&args.partition, &args.schedule) {
        (Some(partition), Some(schedule)) => Job::from_files(&args.mesh, partition, schedule)?,
        _ => Job::in_one(&args.mesh, &args.machine, None)?,
    };
    let values = job.run(args.steps)?;
    println!("{} nodes on {} cells, {} steps", values.len(), job.cells().len(), args.steps);
    // Equal only if all values have the same bits, in the order of their numbers.
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3);
    let hash = values
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, (&node, value)| mix(mix(hash, node), value.to_bits()));
    println!("sum {:.15e}, hash {hash:016x}", values.values().sum::<f64>());
    Ok(())
}
