//! Programs over MPI. Without a job around it, this program starts itself as jobs of several
//! ranks, one for each case, and looks at how they end; `CONSET_MPI_RANKS` says of how many
//! (4 and 8 unless it is set). A name as argument runs only the cases that contain it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program of its own")]

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

mod mpi_cases;

use std::process::{Command, ExitCode, Output};

/// The environment variable by which a rank knows its case.
const CASE: &str = "CONSET_MPI_CASE";
/// Seconds after which a job is ended that should have ended long ago.
const SECONDS: &str = "60";

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        return mpi_cases::run(&case);
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let filter = filter.unwrap_or_default();
    let ranks = std::env::var("CONSET_MPI_RANKS").unwrap_or_else(|_| "4,8".to_owned());
    let ranks: Vec<usize> = ranks.split(',').map(|n| n.parse().expect("a number")).collect();
    let mut failed = 0;
    for case in mpi_cases::CASES.iter().filter(|case| case.name.contains(&filter)) {
        for &ranks in &ranks {
            let verdict = judge(case, ranks, &launch(case.name, ranks));
            println!(
                "test {} on {ranks} ranks ... {}",
                case.name,
                verdict.as_deref().unwrap_or("ok")
            );
            failed += usize::from(verdict.is_some());
        }
    }
    ExitCode::from(u8::from(failed > 0))
}

fn launch(case: &str, ranks: usize) -> Output {
    let program = std::env::current_exe().expect("this program");
    Command::new("timeout")
        .args(["-k", "5", SECONDS, env!("CONSET_MPIRUN"), "-n", &ranks.to_string()])
        .arg(program)
        .env(CASE, case)
        .env("CONSET_MPI_SIZE", ranks.to_string())
        // More ranks than cores, and perhaps as root in a container; other libraries ignore it.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()
        .expect("timeout and the MPI launcher can be run")
}

/// What is wrong with how a job ended.
fn judge(case: &mpi_cases::Case, ranks: usize, output: &Output) -> Option<String> {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let code = output.status.code();
    let wrong = if code == Some(124) {
        "did not end in time".to_owned()
    } else if output.status.success() != case.succeeds {
        format!("ended with {code:?}")
    } else if let Some(missing) = case.says.iter().find(|says| !text.contains(*says)) {
        format!("does not say `{missing}`")
    } else if case.succeeds && text.matches("rank done").count() != ranks {
        "not all ranks were done".to_owned()
    } else {
        return None;
    };
    Some(format!("FAILED: {wrong}\n{text}"))
}
