//! The arguments of `conset soak`.

use std::path::PathBuf;

use clap::Args;

use super::whole;

#[derive(Args, Debug)]
pub(crate) struct SoakArgs {
    /// Number of programs [default: 1000, without --hours].
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "hours",
        value_parser = whole::<u64>(1, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) programs: Option<u64>,
    /// Time in hours, such as 0.5. The program in progress is completed.
    #[arg(long, value_name = "H", value_parser = hours, allow_negative_numbers = true)]
    pub(crate) hours: Option<f64>,
    /// Seed of the first program; the next program has the next number.
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        value_parser = whole::<u64>(0, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
    /// Greatest number of failing programs; the run ends then.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = whole::<usize>(1, 1 << 20),
        allow_negative_numbers = true
    )]
    pub(crate) max_failures: usize,
    /// Run only the programs of cells, on the ranks of an MPI job: start it by mpirun. The first failure ends
    /// the job.
    #[arg(long, conflicts_with_all = ["hours", "max_failures", "output"])]
    pub(crate) mpi: bool,
    /// Folder for failing programs, created if necessary.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
}

/// Hours of at most a year.
fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse().ok().filter(|hours| (0.0..=8766.0).contains(hours));
    hours.ok_or_else(|| "expected hours, at most a year".to_owned())
}
