//! `conset tune`: measures what messages cost in an MPI job and writes it as a machine file.
//!
//! It needs the feature `mpi`. Without it the subcommand is there, and says how to get it.

use crate::args::TuneArgs;
use crate::commands::machines;
use crate::error::CliError;
use crate::text::Terminal;

/// All ranks measure; rank 0 writes, and reports what is wrong.
#[cfg(feature = "mpi")]
pub(crate) fn run(args: &TuneArgs, terminal: &Terminal) -> Result<(), CliError> {
    use conset_runtime::mpi::{Comm, tune};

    let comm = Comm::world().map_err(|error| CliError::Rejected(error.to_string()))?;
    let first = comm.rank() == 0;
    if let Err(error) = machines::check_name(&args.output) {
        return if first { Err(error) } else { Ok(()) };
    }
    let measured = tune::measure(&comm, args.cells_per_node);
    if !first {
        return Ok(());
    }
    let measured = measured.map_err(|error| CliError::Rejected(error.to_string()))?;
    machines::write(&measured.machine(), &measured.machine_file(), &args.output, terminal)
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn run(args: &TuneArgs, _: &Terminal) -> Result<(), CliError> {
    machines::check_name(&args.output)?;
    Err(CliError::without_mpi())
}
