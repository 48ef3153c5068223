//! Starts a bench again under the MPI launcher.

use std::process::{Command, ExitCode};
use std::time::Duration;

use conset_runtime::mpi::Comm;

/// The communicator of a bench with `count` ranks. In the process that cargo started, the error: the exit
/// code of the launcher, which has run the bench.
pub(crate) fn ranks(count: u32) -> Result<Comm, ExitCode> {
    if std::env::var_os("CONSET_MPI_BENCH").is_none() {
        return Err(launch(count));
    }
    let comm = Comm::world().expect("MPI works").timeout(Duration::from_secs(60));
    assert_eq!(comm.size(), count as usize, "the launcher is of another MPI library");
    Ok(comm)
}

fn launch(count: u32) -> ExitCode {
    let status = Command::new(env!("CONSET_MPIRUN"))
        .args(["-n", &count.to_string()])
        .arg(std::env::current_exe().expect("this program"))
        .env("CONSET_MPI_BENCH", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .status();
    ExitCode::from(u8::from(!status.expect("the MPI launcher can be run").success()))
}
