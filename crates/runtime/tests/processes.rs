//! Runs that need a process of their own: the system gives no threads, or the process is ended. This program starts itself once for each case, and looks at how that ends; the
//! environment says which case. With a part of a name as argument only those cases run.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program of its own")]

mod common;

use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use common::ring_image;
use conset_runtime::ir::CellId;
use conset_runtime::{OVERFLOW_STATUS, ThreadOptions, Transport, World};

/// The environment variable by which a process knows its case.
const CASE: &str = "CONSET_CASE";

struct Case {
    name: &'static str,
    /// What the process does.
    run: fn() -> ExitCode,
    /// Bytes of the stack of a thread, if it is said.
    stack: Option<u64>,
    /// The time-out of the environment, in seconds.
    time_out: Option<&'static str>,
    /// What it says at the end.
    says: &'static [&'static str],
    /// Its exit code, if it is not aborted.
    code: Option<i32>,
}

/// A cell that overflows its stack.
const fn overflow(
    name: &'static str,
    run: fn() -> ExitCode,
    says: &'static [&'static str],
) -> Case {
    Case { name, run, stack: None, time_out: None, says, code: Some(OVERFLOW_STATUS) }
}

/// What a cell that overflows its stack says, on a stack of the usual size.
const SAYS: &[&str] =
    &["conset: cell c1 overflowed its stack of 1048576 bytes; enlarge stack_bytes"];

const CASES: [Case; 12] = [
    Case {
        name: "no_thread_for_any_worker",
        run: without_threads,
        // More than a process can address.
        stack: Some(1 << 47),
        time_out: None,
        says: &["no thread for the worker of c0: ", "; use fewer workers"],
        code: Some(0),
    },
    Case {
        name: "no_thread_for_the_second_worker",
        run: without_threads,
        // A stack fits into the memory that the shell allows, two do not.
        stack: Some(4 << 30),
        time_out: None,
        says: &["no thread for the worker of c2: ", "; use fewer workers"],
        code: Some(0),
    },
    Case {
        name: "a_cell_that_does_not_end_with_the_run_ends_the_process",
        run: never,
        stack: None,
        time_out: None,
        says: &[
            "conset: c1 has been in its own code for more than 20ms, and does not end with the run",
        ],
        code: None,
    },
    Case {
        name: "the_same_on_the_fabric",
        run: never_on_the_fabric,
        stack: None,
        time_out: Some("0.02"),
        says: &[
            "conset: c1 has been in its own code for more than 20ms, and does not end with the run",
        ],
        code: None,
    },
    Case {
        name: "a_cell_that_computes_without_end_ends_the_run_on_the_fabric",
        run: computes_without_end,
        stack: None,
        time_out: Some("0.02"),
        says: &["the run ended: Err(TimeOut { cell: CellId(1), time_out: 20ms })"],
        code: Some(0),
    },
    Case {
        name: "a_cell_that_is_slow_is_reported",
        run: slow,
        stack: None,
        time_out: None,
        says: &[
            "conset: c0 waits for ",
            "; c1 is in its own code; it goes on waiting",
            "all went on",
        ],
        code: Some(0),
    },
    overflow("recursion_without_end_on_the_fabric", || recursion(Transport::Fabric), SAYS),
    overflow("recursion_without_end_on_one_thread", || recursion(on_threads(1)), SAYS),
    overflow("recursion_without_end_on_threads", || recursion(on_threads(3)), SAYS),
    overflow("a_frame_that_is_touched_at_its_far_end", far_end, SAYS),
    Case {
        name: "a_deep_recursion_fits",
        run: deep,
        stack: None,
        time_out: None,
        says: &["all 4 cells reached the ground"],
        code: Some(0),
    },
    Case {
        name: "a_fault_elsewhere_is_no_overflow",
        run: fault_elsewhere,
        stack: None,
        time_out: None,
        says: &["elsewhere"],
        code: None,
    },
];

fn on_threads(workers: usize) -> Transport {
    Transport::Threads(ThreadOptions::workers(workers))
}

/// So many frames of 256 bytes or more.
#[inline(never)]
fn recurse(left: u64) -> u64 {
    let frame = std::hint::black_box([left; 32]);
    if left == 0 { 1 } else { recurse(left - 1) + frame[31].min(1) }
}

/// The second cell recurses without end, while others wait for it.
fn recursion(transport: Transport) -> ExitCode {
    let world = World::new(ring_image(4, 3)).on(transport);
    let result = world.try_run(|cell| {
        if cell.id() == CellId(1) {
            std::hint::black_box(recurse(u64::MAX));
        }
        let mut incoming = [[0u64; 3]];
        cell.exchange("s", &[[1u64; 3]], &mut incoming)
    });
    println!("the run ended: {result:?}");
    ExitCode::SUCCESS
}

/// What a compiler of C does with a frame of 12 MB, of which the function touches the far end.
fn far_end() -> ExitCode {
    let world = World::new(ring_image(4, 3)).on(on_threads(2));
    let result = world.try_run(|cell| {
        if cell.id() == CellId(1) {
            let here = std::hint::black_box(0u8);
            let there = (&raw const here).expose_provenance() - (12 << 20);
            let there = std::ptr::with_exposed_provenance_mut::<u8>(std::hint::black_box(there));
            // SAFETY: there is none; it is to fault.
            unsafe { there.write_volatile(1) };
        }
        cell.compute(1)
    });
    println!("the run ended: {result:?}");
    ExitCode::SUCCESS
}

/// Half of the stack is used, by all cells, and used again.
fn deep() -> ExitCode {
    for transport in [Transport::Fabric, on_threads(2)] {
        let world = World::new(ring_image(4, 3)).on(transport);
        let (found, _) = world.run(|_| recurse(1500)).expect("it fits");
        if found != [1501; 4] {
            return ExitCode::FAILURE;
        }
    }
    println!("all 4 cells reached the ground");
    ExitCode::SUCCESS
}

/// A fault that is none of a stack ends the process as without cells.
fn fault_elsewhere() -> ExitCode {
    println!("elsewhere");
    let world = World::new(ring_image(4, 3)).on(on_threads(2));
    let result = world.run(|_| {
        // SAFETY: there is none; it is to fault.
        unsafe { std::ptr::without_provenance_mut::<u8>(4096).write_volatile(1) };
    });
    println!("the run ended: {result:?}");
    ExitCode::SUCCESS
}

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
    never_on(Transport::Threads(ThreadOptions::workers(2).time_out(time_out)))
}

fn never_on_the_fabric() -> ExitCode {
    never_on(Transport::Fabric)
}

fn never_on(transport: Transport) -> ExitCode {
    let world = World::new(ring_image(2, 1)).on(transport);
    let result = world.try_run(|cell| {
        while cell.id() == CellId(1) {
            std::thread::park_timeout(Duration::from_secs(1));
        }
        cell.instantiate_phase("s/p0")
    });
    println!("the run ended: {result:?}");
    ExitCode::SUCCESS
}

/// A cell that does nothing but compute, for which another waits.
fn computes_without_end() -> ExitCode {
    let result = World::new(ring_image(2, 1)).try_run(|cell| {
        while cell.id() == CellId(1) {
            cell.compute(1)?;
        }
        cell.instantiate_phase("s/p0")
    });
    println!("the run ended: {:?}", result.map(|_| ()));
    ExitCode::SUCCESS
}

/// A cell that makes no call for long, for which another waits.
fn slow() -> ExitCode {
    let options = ThreadOptions::workers(2).report_after(Duration::from_millis(50));
    let world = World::new(ring_image(2, 1)).on(Transport::Threads(options));
    let result = world.try_run(|cell| {
        if cell.id() == CellId(1) {
            std::thread::sleep(Duration::from_secs(1));
        }
        cell.instantiate_phase("s/p0")
    });
    println!("{}", if result.is_ok() { "all went on" } else { "the run failed" });
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
    command.envs(case.time_out.map(|seconds| ("CONSET_TIMEOUT", seconds)));
    command.output().expect("a shell can be run")
}

/// What is wrong with how a process ended.
fn judge(case: &Case, output: &Output) -> Option<String> {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    // A process that is ended by a signal has no exit code.
    let code = output.status.code();
    if code != case.code {
        return Some(format!("FAILED: ended with {code:?}\n{text}"));
    }
    let missing = case.says.iter().find(|says| !text.contains(*says))?;
    Some(format!("FAILED: does not say `{missing}`\n{text}"))
}
