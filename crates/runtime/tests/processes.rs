//! Runs on threads that need a process of their own: the system gives no threads, or the process
//! is ended. This program starts itself once for each case, and looks at how that ends; the
//! environment says which case. With a part of a name as argument only those cases run.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program of its own")]

mod common;

use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use common::ring_image;
use conset_runtime::ir::CellId;
use conset_runtime::{ThreadOptions, Transport, World};

/// The environment variable by which a process knows its case.
const CASE: &str = "CONSET_CASE";

struct Case {
    name: &'static str,
    /// What the process does.
    run: fn() -> ExitCode,
    /// Bytes of the stack of a thread, if it is said.
    stack: Option<u64>,
    /// What it says at the end.
    says: &'static [&'static str],
    /// Whether it is ended from within.
    aborts: bool,
}

const CASES: [Case; 3] = [
    Case {
        name: "no_thread_for_any_worker",
        run: without_threads,
        // More than a process can address.
        stack: Some(1 << 47),
        says: &["no thread for the worker of c0: ", "; ask for fewer workers"],
        aborts: false,
    },
    Case {
        name: "no_thread_for_the_second_worker",
        run: without_threads,
        // A stack fits into the memory that the shell allows, two do not.
        stack: Some(4 << 30),
        says: &["no thread for the worker of c2: ", "; ask for fewer workers"],
        aborts: false,
    },
    Case {
        name: "a_cell_that_does_not_end_with_the_run_ends_the_process",
        run: never,
        stack: None,
        says: &[
            "conset: c1 has been in its own code for more than 20ms, and does not end with the run",
        ],
        aborts: true,
    },
];

/// A run that is to fail; cells wait for those of workers that are not there.
fn without_threads() -> ExitCode {
    let world = World::new(ring_image(4, 3)).on(Transport::Threads(ThreadOptions::workers(2)));
    let result = world.try_run(|cell| {
        let mut incoming = [[0u64; 3]];
        cell.exchange("s", &[[1u64; 3]], &mut incoming)
    });
    match result {
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::SUCCESS
        }
    }
}

/// A cell that makes no call, not even when the run has ended.
fn never() -> ExitCode {
    let time_out = Some(Duration::from_millis(20));
    let options = ThreadOptions { workers: Some(2), time_out };
    let world = World::new(ring_image(2, 1)).on(Transport::Threads(options));
    let result = world.try_run(|cell| {
        while cell.id() == CellId(1) {
            std::thread::park_timeout(Duration::from_secs(1));
        }
        cell.instantiate_phase("s/p0")
    });
    println!("the run ended: {result:?}");
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = CASES.iter().find(|case| case.name == name);
        return case.map_or(ExitCode::FAILURE, |case| (case.run)());
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |case: &&Case| filter.as_ref().is_none_or(|part| case.name.contains(part));
    let cases: Vec<&Case> = CASES.iter().filter(wanted).collect();
    // Most of their time they wait.
    let wrong: Vec<Option<String>> = std::thread::scope(|scope| {
        let judge = |&case: &&'static Case| scope.spawn(move || judge(case, &launch(case)));
        let threads: Vec<_> = cases.iter().map(judge).collect();
        threads.into_iter().map(|thread| thread.join().expect("it judges")).collect()
    });
    for (case, wrong) in cases.iter().zip(&wrong) {
        println!("test {} ... {}", case.name, wrong.as_deref().unwrap_or("ok"));
    }
    ExitCode::from(u8::from(wrong.iter().any(Option::is_some)))
}

/// Starts a case where memory is limited by the shell, as a process cannot do without help.
fn launch(case: &Case) -> Output {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 6291456; exec \"$0\""])
        .arg(std::env::current_exe().expect("this program"))
        .env(CASE, case.name);
    command.envs(case.stack.map(|bytes| ("RUST_MIN_STACK", bytes.to_string())));
    command.output().expect("a shell can be run")
}

/// What is wrong with how a process ended.
fn judge(case: &Case, output: &Output) -> Option<String> {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    // A process that aborts has no exit code.
    let code = output.status.code();
    let expected = if case.aborts { None } else { Some(0) };
    if code != expected {
        return Some(format!("FAILED: ended with {code:?}\n{text}"));
    }
    let missing = case.says.iter().find(|says| !text.contains(*says))?;
    Some(format!("FAILED: does not say `{missing}`\n{text}"))
}
