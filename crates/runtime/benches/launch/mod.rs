//! Starts a bench again under the MPI launcher.

use std::process::{Command, ExitCode};
use std::time::Duration;

use conset_runtime::mpi::Comm;

/// The communicator of a bench with `count` ranks. In the process that cargo started, the error: the exit
/// code of the launcher, which has run the bench.
#[allow(dead_code, reason = "not every bench uses it")]
pub(crate) fn ranks(count: u32) -> Result<Comm, ExitCode> {
    jobs(&[count])
}

/// The same for a bench that runs as several jobs, one after the other, of so many ranks each.
pub(crate) fn jobs(counts: &[u32]) -> Result<Comm, ExitCode> {
    if std::env::var_os("CONSET_MPI_BENCH").is_none() {
        let failed = counts.iter().map(|&count| launch(count)).find(|code| *code != 0);
        return Err(ExitCode::from(failed.unwrap_or(0)));
    }
    let comm = Comm::world().expect("MPI works").timeout(Duration::from_secs(60));
    let known = counts.iter().any(|&count| comm.size() == count as usize);
    assert!(known, "the launcher is of another MPI library");
    Ok(comm)
}

fn launch(count: u32) -> u8 {
    let status = Command::new(env!("CONSET_MPIRUN"))
        .args(["-n", &count.to_string()])
        .arg(std::env::current_exe().expect("this program"))
        .args(std::env::args_os().skip(1))
        .env("CONSET_MPI_BENCH", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .status();
    u8::from(!status.expect("the MPI launcher can be run").success())
}
