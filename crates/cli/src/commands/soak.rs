//! `conset soak`: random programs, one after another, through everything that can be done with them.
//!
//! With `--mpi` every rank of a job goes through the same programs, and their cells are distributed to the ranks.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use conset::Progress;
use conset_ir::convert::{to_f64, to_u64, truncate};
use conset_ir::{Document, text as text_form};
use conset_testing::soak::{self, Choices, SoakCounts};
use conset_testing::{Case, shrink};
use serde::Serialize;

use crate::args::SoakArgs;
use crate::error::CliError;
use crate::files;
use crate::interrupt::Search;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

/// Programs of a run that is limited neither by their number nor by time.
const DEFAULT_PROGRAMS: u64 = 1000;

/// How often a failing program is run again to find a smaller one.
const SHRINKING_TRIES: u32 = 500;

/// What a run found.
#[derive(Serialize)]
struct SoakReport {
    /// The seeds of the first and the last program.
    first_seed: u64,
    last_seed: Option<u64>,
    programs: u64,
    refused: u64,
    runs: u64,
    words: u64,
    files: u64,
    threads: u64,
    reused: u64,
    fused: u64,
    messages: u64,
    steps: u64,
    transports: u64,
    compared: u64,
    seconds: f64,
    /// Seconds by what was done.
    times: BTreeMap<&'static str, f64>,
    programs_per_hour: u64,
    slowest_seed: Option<u64>,
    slowest_seconds: f64,
    interrupted: bool,
    failures: Vec<SoakFailure>,
}

impl SoakReport {
    /// The report of a run without failures that was not interrupted.
    fn new(
        (first_seed, last_seed): (u64, Option<u64>),
        counts: &SoakCounts,
        time: Duration,
        slowest: Option<(Duration, u64)>,
    ) -> Self {
        let seconds = time.as_secs_f64();
        Self {
            first_seed,
            last_seed,
            programs: counts.programs,
            refused: counts.refused,
            runs: counts.runs,
            words: counts.words,
            files: counts.files,
            threads: counts.threads,
            reused: counts.reused,
            fused: counts.fused,
            messages: counts.messages,
            steps: counts.steps,
            transports: counts.transports,
            compared: counts.compared,
            seconds,
            times: counts.times.rows().map(|(what, time)| (what, time.as_secs_f64())).into(),
            programs_per_hour: truncate(to_f64(counts.programs) * 3600.0 / seconds.max(1e-3)),
            slowest_seed: slowest.map(|slowest| slowest.1),
            slowest_seconds: slowest.map_or(0.0, |slowest| slowest.0.as_secs_f64()),
            interrupted: false,
            failures: Vec::new(),
        }
    }
}

/// A program that failed.
#[derive(Serialize)]
struct SoakFailure {
    seed: u64,
    /// What failed, in one line.
    message: String,
    /// The file with a smaller program that fails.
    file: String,
}

pub(crate) fn run(args: &SoakArgs, terminal: &Terminal) -> Result<(), CliError> {
    if args.mpi {
        return over_mpi(args, terminal);
    }
    let mut bar = ProgressDisplay::new(terminal.quiet);
    bar.observe(Progress::Stage("running programs"));
    let search = Search::begin(true);
    let interrupt = search.interrupt();
    let begin = Instant::now();
    let limit = args.hours.map(|hours| Duration::from_secs_f64(hours * 3600.0));
    let most = args.programs.or(limit.is_none().then_some(DEFAULT_PROGRAMS)).unwrap_or(u64::MAX);
    let mut counts = SoakCounts::default();
    let mut failures = Vec::new();
    let mut slowest = None;
    let mut last_seed = None;
    for seed in seeds(args, most) {
        let is_over = limit.is_some_and(|limit| begin.elapsed() >= limit);
        if is_over || interrupt.is_requested() || failures.len() == args.max_failures {
            break;
        }
        let start = Instant::now();
        let outcome = soak::program(seed);
        slowest = slowest.max(Some((start.elapsed(), seed)));
        last_seed = Some(seed);
        match outcome {
            Ok(done) => counts.add(&done),
            Err(failure) => {
                counts.programs += 1;
                failures.push(write_failure(args, seed, &failure.0));
            }
        }
        bar.observe(Progress::Done { done: counts.programs, total: most.max(counts.programs) });
    }
    drop(bar);
    let mut report = SoakReport::new((args.seed, last_seed), &counts, begin.elapsed(), slowest);
    (report.interrupted, report.failures) = (interrupt.is_requested(), failures);
    terminal.print(&report, |out| write_report(out, &report))?;
    match report.failures.len() {
        0 => Ok(()),
        failed => {
            let programs = text::count(to_u64(failed), "program");
            Err(CliError::Rejected(format!("{programs} failed; please report the written files")))
        }
    }
}

/// The seeds of at most so many programs.
fn seeds(args: &SoakArgs, most: u64) -> impl Iterator<Item = u64> + use<> {
    (args.seed..=u64::MAX).zip(0..most).map(|(seed, _)| seed)
}

/// All ranks run the programs; rank 0 reports. A failure within a run is one on all ranks, and any other would leave
/// them waiting for each other, so it ends the job.
#[cfg(feature = "mpi")]
fn over_mpi(args: &SoakArgs, terminal: &Terminal) -> Result<(), CliError> {
    use conset_runtime::Transport;
    use conset_runtime::mpi::Comm;

    let comm = Comm::world().map_err(|error| CliError::Rejected(error.to_string()))?;
    let transport = Transport::Mpi(comm.clone());
    let (begin, mut slowest, mut last_seed) = (Instant::now(), None, None);
    let mut counts = SoakCounts::default();
    for seed in seeds(args, args.programs.unwrap_or(DEFAULT_PROGRAMS)) {
        let start = Instant::now();
        match soak::cell_programs(seed, &transport) {
            Ok(done) => counts.add(&done),
            Err(message) => {
                comm.abort_because(&format!("the program of seed {seed} failed: {message}"))
            }
        }
        slowest = slowest.max(Some((start.elapsed(), seed)));
        last_seed = Some(seed);
    }
    if comm.rank() > 0 {
        return Ok(());
    }
    let report = SoakReport::new((args.seed, last_seed), &counts, begin.elapsed(), slowest);
    terminal.print(&report, |out| write_report(out, &report))?;
    Ok(())
}

#[cfg(not(feature = "mpi"))]
fn over_mpi(_: &SoakArgs, _: &Terminal) -> Result<(), CliError> {
    Err(CliError::without_mpi())
}

/// Shrinks a failing program and writes it.
fn write_failure(args: &SoakArgs, seed: u64, case: &Case) -> SoakFailure {
    let choices = Choices::of_seed(seed);
    let small = shrink(case, SHRINKING_TRIES, &mut |case| soak::fails(case, choices).is_err());
    // Some failures depend on more than the case; then the message is all there is.
    let message = soak::fails(&small, choices).err().unwrap_or_else(|| "not repeatable".to_owned());
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let document =
        Document::Program { machine: Some(small.machine.clone()), program: small.program.clone() };
    let text = format!(
        "{}# conset soak --seed {seed} --programs 1\n# {:?}\n# {message}\n",
        text_form::write(&document),
        small.options,
    );
    // A run of hours does not end because a file cannot be written: the seed suffices to repeat it.
    let files = [(format!("soak-{seed}.cset"), text.into_bytes())];
    let file = match files::write_folder(&args.output, &files) {
        Ok(names) => names.concat(),
        Err(error) => format!("nothing: {error}"),
    };
    SoakFailure { seed, message, file }
}

fn write_report(out: &mut dyn Write, report: &SoakReport) -> io::Result<()> {
    let number = text::number;
    let seeds = match report.last_seed {
        Some(last) => format!(" (seeds {} to {last})", report.first_seed),
        None => String::new(),
    };
    let stopped = if report.interrupted { ", interrupted" } else { "" };
    writeln!(out, "programs {}{seeds}{stopped}", number(report.programs))?;
    writeln!(
        out,
        "run      {} on the fabric, {}; {} refused as infeasible",
        number(report.runs),
        text::count(report.words, "word"),
        number(report.refused),
    )?;
    writeln!(
        out,
        "also     {} by messages, {} as steps, {} by cell programs, {} reused, {} merged, {} written and \
         read, {} on other threads, {} on the second simulator",
        text::count(report.messages, "set"),
        number(report.steps),
        number(report.transports),
        number(report.reused),
        number(report.fused),
        number(report.files),
        number(report.threads),
        text::count(report.compared, "run"),
    )?;
    let slowest = report
        .slowest_seed
        .map(|seed| format!("; the slowest took {:.1} s (seed {seed})", report.slowest_seconds));
    writeln!(
        out,
        "time     {:.1} s, {} programs an hour{}",
        report.seconds,
        number(report.programs_per_hour),
        slowest.unwrap_or_default(),
    )?;
    let mut times: Vec<_> = report.times.iter().collect();
    times.sort_by(|a, b| b.1.total_cmp(a.1));
    let times = times.iter().map(|(what, seconds)| format!("{what} {seconds:.1}"));
    writeln!(out, "of these {} s", times.collect::<Vec<_>>().join(", "))?;
    for failure in &report.failures {
        writeln!(
            out,
            "failed   seed {}: {}; wrote {}",
            failure.seed, failure.message, failure.file
        )?;
    }
    Ok(())
}
