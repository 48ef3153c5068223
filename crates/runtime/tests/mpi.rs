//! Programs over MPI. Without a job around it, this program starts itself as jobs of several
//! ranks, one for each case, and looks at how they end. Cases that end well share a job, on 2, 4 and
//! 8 ranks; each other case has a job on the fewest of these that it needs. `CONSET_MPI_RANKS` names
//! other numbers of ranks, and then each case runs on all of them. With a part of a name as argument
//! only the cases of such a name run, each in a job of its own.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program of its own")]

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

mod mpi_cases;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use mpi_cases::Case;

/// The system's memory, with the requests for it counted.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        // SAFETY: handed on.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The environment variable by which a rank knows its case.
const CASE: &str = "CONSET_MPI_CASE";
/// Seconds after which a job is ended that should have ended long ago.
const SECONDS: &str = "100";
/// Jobs at a time.
const TOGETHER: usize = 3;

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        return mpi_cases::run(&case);
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let named = std::env::var("CONSET_MPI_RANKS").ok();
    let ranks = named.as_deref().unwrap_or("2,4,8").split(',');
    let ranks: Vec<usize> = ranks.map(|n| n.parse().expect("a number")).collect();
    let cases = match &filter {
        Some(filter) => mpi_cases::CASES.iter().filter(|c| c.name.contains(filter)).collect(),
        None => mpi_cases::jobs(),
    };
    let mut jobs: Vec<(&Case, usize)> = Vec::new();
    for case in cases {
        let enough = ranks.iter().copied().filter(|&ranks| case.ranks <= ranks);
        let most = if case.succeeds || named.is_some() { usize::MAX } else { 1 };
        jobs.extend(enough.take(most).map(|ranks| (case, ranks)));
    }
    // Most of their time jobs that are to fail wait.
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                while let Some((case, ranks)) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let wrong = judge(case, *ranks, &launch(case, *ranks));
                    failed.fetch_add(usize::from(wrong.is_some()), Relaxed);
                    let verdict = wrong.as_deref().unwrap_or("ok");
                    println!("test {} on {ranks} ranks ... {verdict}", case.name);
                }
            });
        }
    });
    ExitCode::from(u8::from(failed.into_inner() > 0))
}

fn launch(case: &Case, ranks: usize) -> Output {
    let program = std::env::current_exe().expect("this program");
    // Files by which ranks talk where they must not by MPI.
    let scratch =
        format!("{}/mpi-{}-{}-{ranks}", env!("CARGO_TARGET_TMPDIR"), std::process::id(), case.name);
    std::fs::create_dir_all(&scratch).expect("a folder for files of a job");
    let output = job(&program, case, ranks, &scratch);
    std::fs::remove_dir_all(&scratch).expect("the folder was made above");
    output
}

fn job(program: &Path, case: &Case, ranks: usize, scratch: &str) -> Output {
    let mut command = Command::new("timeout");
    if let Some(seconds) = case.time_out {
        command.env("CONSET_TIMEOUT", seconds);
    }
    command
        .args(["-k", "5", SECONDS, env!("CONSET_MPIRUN"), "-n", &ranks.to_string()])
        .arg(program)
        .env(CASE, case.name)
        .env("CONSET_MPI_SCRATCH", scratch)
        // One launcher may remove the folder of all their files while another begins to use it.
        .env("TMPDIR", scratch)
        .env("CONSET_MPI_SIZE", ranks.to_string())
        // More ranks than cores, and perhaps as root in a container; other libraries ignore it.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()
        .expect("timeout and the MPI launcher can be run")
}

/// What a job printed without the launcher's own reports (each between two rows of dashes), which
/// it may print in the middle of a rank's line.
fn without_reports(text: &str) -> String {
    let row = "-".repeat(74) + "\n";
    let mut pieces = text.split(&row);
    let mut said = pieces.next().unwrap_or_default().to_owned();
    while let Some(report) = pieces.next() {
        match pieces.next() {
            Some(after) => said.push_str(after),
            // No report, as nothing ends it.
            None => said.push_str(report),
        }
    }
    said
}

/// What is wrong with how a job ended.
fn judge(case: &Case, ranks: usize, output: &Output) -> Option<String> {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = without_reports(&String::from_utf8_lossy(&text));
    let code = output.status.code();
    let wrong = if code == Some(124) {
        "did not end in time".to_owned()
    } else if output.status.success() != case.succeeds {
        format!("ended with {code:?}")
    } else if text.contains(mpi_cases::skips::WRONG) {
        mpi_cases::skips::WRONG.to_owned()
    } else if let Some(missing) = case.says.iter().find(|says| !text.contains(*says)) {
        format!("does not say `{missing}`")
    } else if case.succeeds && text.matches("rank done").count() != ranks {
        "not all ranks were done".to_owned()
    } else {
        return None;
    };
    Some(format!("FAILED: {wrong}\n{text}"))
}
