//! Soak tests: one random program after another, through everything that can be done with it.
//!
//! The number of a program is its seed, so a run is repeated by its first number, and a failing program
//! by its own. The program is compiled, checked and run ([`fn@crate::check`]). Besides, and depending on the
//! seed, because not everything need be done with each:
//!
//! | what | must hold |
//! |---|---|
//! | files | every form is read back, and written again in the same bytes |
//! | threads | a compilation on three threads gives the same bytes as on one |
//! | reuse | a changed program, perhaps with a dead link, reuses the schedule; it is correct too |
//! | fuse | the sets are merged if that is faster; the result is correct |
//! | messages | every word arrives as a message, in any order of sending |
//! | steps | step plans are accepted by the checker, deliver every word, and are not below their bound |
//! | transports | cell programs see every word, on the fabric and on threads, by phases, by steps, and by plans of which several are under way |
//! | second simulator | small programs take the same clocks and deliver the same words there ([`compare`]) |
//!
//! Over MPI, whose ranks are other processes, only the cell programs run ([`cell_programs`]).
//!
//! A failure is a panic of one of these; [`program`] catches it. [`crate::shrink()`] then looks for a smaller program
//! that still fails.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use conset::fabric::messages::{self, MessageOptions, MessageOrder};
use conset::fabric::{Fault, FaultKind};
use conset::ir::convert::to_u32;
use conset::ir::{CellId, Connection, ConnectionSet, Document, LinkId, Machine, Program, binary};
use conset::steps::{CompiledSteps, StepCompiler, StepExecutionError};
use conset::{Compiled, Compiler};
use conset_runtime::Transport;

use crate::case::{Case, CaseKind, next};
use crate::cell_programs::every_word;
use crate::check::{self, MAX_EXAMINED_WORDS, MAX_RUN_WORDS};
use crate::compare;
use crate::forms;

/// Programs with more words are not run on the second simulator, which moves each word by itself.
const MAX_COMPARED_WORDS: u64 = 1 << 12;

/// What happened to programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SoakCounts {
    /// Programs.
    pub programs: u64,
    /// Programs that were refused because a connection has no route, no channel or no phase left.
    pub refused: u64,
    /// Programs that were run on the fabric; the others have more words than are run.
    pub runs: u64,
    /// Words that arrived in these runs.
    pub words: u64,
    /// Programs that were written and read in every form.
    pub files: u64,
    /// Programs that were compiled on other numbers of threads.
    pub threads: u64,
    /// Changed programs that were compiled with an earlier schedule.
    pub reused: u64,
    /// Programs whose sets could be merged.
    pub fused: u64,
    /// Sets that were exchanged by messages.
    pub messages: u64,
    /// Programs that were compiled to steps and run.
    pub steps: u64,
    /// Programs that were run by cell programs.
    pub transports: u64,
    /// Runs (images, sets by messages, step plans) that were repeated on the second simulator.
    pub compared: u64,
    /// Where the time went.
    pub times: StageTimes,
}

/// What is done with programs. Each includes the checks of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Generation of the program, the machine and the options.
    Generate,
    /// Compilation with the options of the case, and verification.
    Compile,
    /// Runs of the compiled program on the fabric.
    Fabric,
    /// Compilation on other numbers of threads.
    Threads,
    /// Writing and reading of files.
    Files,
    /// Messages.
    Messages,
    /// Compilation to steps, and their run.
    Steps,
    /// Cell programs.
    Transports,
    /// Compilation with an earlier schedule, and its run.
    Reuse,
    /// Compilation of merged sets, and its run.
    Fuse,
    /// Comparison with the second simulator.
    Compare,
}

/// All stages with their names.
const STAGES: [(Stage, &str); 11] = [
    (Stage::Generate, "generate"),
    (Stage::Compile, "compile"),
    (Stage::Fabric, "fabric"),
    (Stage::Threads, "threads"),
    (Stage::Files, "files"),
    (Stage::Messages, "messages"),
    (Stage::Steps, "steps"),
    (Stage::Transports, "transports"),
    (Stage::Reuse, "reuse"),
    (Stage::Fuse, "fuse"),
    (Stage::Compare, "compare"),
];

/// The time of programs by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; STAGES.len()]);

impl StageTimes {
    /// All times with the names of their stages.
    pub fn rows(&self) -> [(&'static str, Duration); STAGES.len()] {
        std::array::from_fn(|row| (STAGES[row].1, self.0[row]))
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(time, more)| *time += more);
    }

    /// Calls a function and adds its time.
    fn of<T>(&mut self, stage: Stage, call: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = call();
        let row = STAGES.iter().position(|row| row.0 == stage).expect("all stages are listed");
        self.0[row] += begin.elapsed();
        result
    }
}

impl SoakCounts {
    /// Adds the counts of further programs.
    pub fn add(&mut self, other: &Self) {
        // All fields by name, so that none is forgotten.
        #[rustfmt::skip]
        let Self {
            programs, refused, runs, words, files, threads, reused, fused, messages, steps, transports, compared,
            times,
        } = other;
        self.programs += programs;
        self.refused += refused;
        self.runs += runs;
        self.words += words;
        self.files += files;
        self.threads += threads;
        self.reused += reused;
        self.fused += fused;
        self.messages += messages;
        self.steps += steps;
        self.transports += transports;
        self.compared += compared;
        self.times.add(times);
    }
}

/// The random choices that belong to a program, beside the program itself.
#[derive(Clone, Copy, Debug)]
pub struct Choices(u64);

impl Choices {
    /// The choices of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self(seed ^ 0x5cf0_1a57_ed00_c0de)
    }

    /// A number below `count`. It depends on the seed and on `what` only, so that it is the same for a
    /// smaller program.
    fn below(self, what: u64, count: usize) -> usize {
        let mut state = self.0 ^ what.wrapping_mul(0xd6e8_feb8_6659_fd93);
        usize::try_from(next(&mut state) % conset::ir::convert::to_u64(count.max(1))).unwrap_or(0)
    }

    /// Whether to do what is done with one program of `count`.
    fn one_of(self, what: u64, count: usize) -> bool {
        self.below(what, count) == 0
    }
}

/// Does everything with the program of a seed.
///
/// # Errors
/// The case and what failed.
pub fn program(seed: u64) -> Result<SoakCounts, Box<(Case, String)>> {
    let choices = Choices::of_seed(seed);
    let mut times = StageTimes::default();
    let generate = || caught(|| Case::of_seed(seed, CaseKind::Soak));
    let case = times.of(Stage::Generate, generate);
    let case = case.unwrap_or_else(|message| panic!("generator, seed {seed}: {message}"));
    match fails(&case, choices) {
        Ok(mut counts) => {
            counts.times.add(&times);
            Ok(counts)
        }
        Err(message) => Err(Box::new((case, message))),
    }
}

/// Only runs the cell programs of a seed, by phases and by steps, on one transport. Over MPI it is collective: every
/// rank of the job makes the same program.
///
/// # Errors
/// What failed.
pub fn cell_programs(seed: u64, transport: &Transport) -> Result<SoakCounts, String> {
    caught(|| {
        let mut counts = SoakCounts { programs: 1, ..SoakCounts::default() };
        let case = counts.times.of(Stage::Generate, || Case::of_seed(seed, CaseKind::Soak));
        let Case { machine, program, .. } = &case;
        if check::words(program) > MAX_EXAMINED_WORDS {
            return counts;
        }
        let transports = std::slice::from_ref(transport);
        let compile = || check::compiles(Compiler::new(machine), &case, program);
        match counts.times.of(Stage::Compile, compile) {
            Some(compiled) => {
                let run = || every_word(compiled.image(), program, transports);
                counts.times.of(Stage::Transports, run);
                counts.transports += 1;
            }
            None => counts.refused += 1,
        }
        if let Some(steps) = counts.times.of(Stage::Steps, || compile_steps(&case, 2)) {
            counts.times.of(Stage::Transports, || every_word(steps.image(), program, transports));
            counts.steps += 1;
        }
        counts
    })
}

/// The step plans of a case, of so many tried for each set.
fn compile_steps(case: &Case, plans: u32) -> Option<CompiledSteps> {
    let compiler = StepCompiler::new(&case.machine).max_plans(plans).seed(case.options.seed);
    check::compiles_steps(&compiler, &case.program)
}

/// Does everything with a case.
///
/// # Errors
/// What failed.
pub fn fails(case: &Case, choices: Choices) -> Result<SoakCounts, String> {
    caught(|| everything(case, choices))
}

/// Does everything with the program that the bytes of a fuzzer describe, if they suffice for one.
///
/// # Panics
/// If a property does not hold.
pub fn of_bytes(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(choices) = bytes.arbitrary().map(Choices) else { return };
    let Ok(case) = Case::from_bytes(&mut bytes, CaseKind::Soak) else { return };
    everything(&case, choices);
}

fn everything(case: &Case, choices: Choices) -> SoakCounts {
    let Case { machine, program, options } = case;
    let mut counts = SoakCounts { programs: 1, ..SoakCounts::default() };
    counts.times.of(Stage::Files, || {
        let (machine, program) = (Some(machine.clone()), program.clone());
        forms::round_trips(&Document::Program { machine, program });
    });
    let words = check::words(program);
    if words <= MAX_RUN_WORDS {
        if choices.one_of(1, 2) {
            by_messages(case, choices, &mut counts);
        }
        if choices.one_of(2, 3) {
            by_steps(case, choices, &mut counts);
        }
    }
    let compile = || check::compiles(Compiler::new(machine), case, program);
    let Some(compiled) = counts.times.of(Stage::Compile, compile) else {
        counts.refused += 1;
        return counts;
    };
    if choices.one_of(3, 2) {
        counts.times.of(Stage::Files, || {
            forms::round_trips(&Document::Schedule(compiled.schedule().clone()));
            forms::round_trips(&Document::Image((**compiled.image()).clone()));
        });
        counts.files += 1;
    }
    if choices.one_of(4, 4) {
        counts.times.of(Stage::Threads, || on_other_threads(case, &compiled));
        counts.threads += 1;
    }
    if words <= MAX_RUN_WORDS {
        counts.times.of(Stage::Fabric, || check::runs(&compiled, options.seed));
        counts.runs += 1;
        counts.words += words;
    }
    if is_compared(program, choices) {
        counts.times.of(Stage::Compare, || agree(compare::phases(compiled.image())));
        counts.compared += 1;
    }
    if words <= MAX_EXAMINED_WORDS && choices.one_of(5, 4) {
        counts.times.of(Stage::Transports, || {
            every_word(compiled.image(), program, &check::transports());
        });
        counts.transports += 1;
    }
    if choices.one_of(6, 3) {
        let reuse = || with_reuse(case, &compiled, choices);
        counts.reused += u64::from(counts.times.of(Stage::Reuse, reuse));
    }
    if program.sets().len() > 1 {
        fused(case, choices, &mut counts);
    }
    counts
}

/// The plans of merged sets: a whole search has been made for the sets one by one, and finds no other errors here.
const MAX_FUSED_PLANS: u32 = 3;

fn fused(case: &Case, choices: Choices, counts: &mut SoakCounts) {
    let plans = case.options.max_plans.map_or(MAX_FUSED_PLANS, |plans| plans.min(MAX_FUSED_PLANS));
    let case = &Case { options: case.options.clone().max_plans(plans), ..case.clone() };
    let Case { machine, program, options } = case;
    let names = program.sets().iter().map(|set| set.name());
    let fused = counts.times.of(Stage::Fuse, || {
        let fused = check::compiles(Compiler::new(machine).fuse(names), case, program)?;
        if check::words(program) <= MAX_RUN_WORDS {
            check::runs(&fused, options.seed);
        }
        Some(fused)
    });
    let Some(fused) = fused else { return };
    counts.fused += 1;
    if is_compared(program, choices) {
        counts.times.of(Stage::Compare, || agree(compare::phases(fused.image())));
        counts.compared += 1;
    }
}

/// Whether the runs of a program are repeated on the second simulator.
fn is_compared(program: &Program, choices: Choices) -> bool {
    check::words(program) <= MAX_COMPARED_WORDS && choices.one_of(12, 2)
}

/// The result of a comparison with the second simulator; a difference is a panic.
fn agree<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|difference| panic!("second simulator: {difference}"))
}

fn by_messages(case: &Case, choices: Choices, counts: &mut SoakCounts) {
    let order = MessageOrder::ALL[choices.below(7, MessageOrder::ALL.len())];
    let options = MessageOptions::default().seed(case.options.seed).with_order(order);
    for set in case.program.sets() {
        let run = || messages::run_checked(&case.machine, set, &options);
        match counts.times.of(Stage::Messages, run) {
            Ok(report) => {
                assert!(report.payload_ok && report.words == set.words(), "{report:?}");
                counts.messages += 1;
            }
            // Not all pairs of cells have a route on which messages cannot deadlock.
            Err(fault) => assert!(has_no_route(&fault), "messages: {fault}"),
        }
        if is_compared(&case.program, choices) {
            let compare = || compare::messages(&case.machine, set, order, case.options.seed);
            let clocks = agree(counts.times.of(Stage::Compare, compare));
            counts.compared += u64::from(clocks.is_some());
        }
    }
}

fn has_no_route(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Message { .. })
}

fn by_steps(case: &Case, choices: Choices, counts: &mut SoakCounts) {
    let plans = to_u32(choices.below(8, 6)) + 1;
    let Some(steps) = counts.times.of(Stage::Steps, || compile_steps(case, plans)) else { return };
    counts.times.of(Stage::Files, || {
        forms::round_trips(&Document::Steps(steps.schedule().clone()));
        forms::round_trips(&Document::Image((**steps.image()).clone()));
    });
    if is_compared(&case.program, choices) {
        for set in steps.schedule().sets() {
            let compared = counts.times.of(Stage::Compare, || compare::steps(&set.steps));
            counts.compared += u64::from(agree(compared).is_some());
        }
    }
    match counts.times.of(Stage::Steps, || steps.run(case.options.seed, false)) {
        Ok(runs) => {
            for (run, set) in runs.iter().zip(case.program.sets()) {
                assert!(run.summary.payload_ok, "{:?}", run.summary);
                assert_eq!(run.summary.words, set.words());
            }
            counts.steps += 1;
        }
        Err(StepExecutionError::Fault(fault)) if has_no_route(&fault) => return,
        Err(other) => panic!("steps: {other}"),
    }
    if check::words(&case.program) <= MAX_EXAMINED_WORDS && choices.one_of(9, 3) {
        counts.times.of(Stage::Transports, || {
            every_word(steps.image(), &case.program, &check::transports());
        });
        counts.transports += 1;
    }
}

fn on_other_threads(case: &Case, compiled: &Compiled) {
    static POOLS: OnceLock<[rayon::ThreadPool; 2]> = OnceLock::new();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pools = POOLS.get_or_init(|| [1, 3].map(|threads| pool(threads).expect("threads start")));
    let bytes =
        |compiled: &Compiled| binary::write(&Document::Schedule(compiled.schedule().clone()));
    for pool in pools {
        let compile = || check::compiles(Compiler::new(&case.machine), case, &case.program);
        let again = pool.install(compile).expect("it was compiled before");
        let threads = pool.current_num_threads();
        assert!(bytes(&again) == bytes(compiled), "another schedule on {threads} threads");
    }
}

/// Compiles a changed program with the schedule of the original; returns whether that was possible.
fn with_reuse(case: &Case, compiled: &Compiled, choices: Choices) -> bool {
    let mut machine = case.machine.clone();
    if choices.one_of(10, 2)
        && let Some(dead) = with_dead_link(&machine, choices)
    {
        machine = Arc::new(dead);
    }
    let changed = changed(case, choices);
    let compiler = Compiler::new(&machine).reuse(compiled.schedule());
    let Some(reused) = check::compiles(compiler, case, &changed) else { return false };
    if check::words(&changed) <= MAX_RUN_WORDS {
        check::runs(&reused, case.options.seed);
    }
    true
}

fn with_dead_link(machine: &Machine, choices: Choices) -> Option<Machine> {
    let links = machine.link_count();
    if links == 0 {
        return None;
    }
    let link = machine.link(LinkId::from_index(choices.below(11, links)));
    machine.with_dead(&[], &[(link.source, link.target)]).ok()
}

/// The program with a few connections gone, new, or with other words.
fn changed(case: &Case, choices: Choices) -> Program {
    let ends: Vec<CellId> = case.machine.endpoints().collect();
    let change = |set: &Arc<ConnectionSet>| {
        if !set.order().is_empty() || ends.is_empty() {
            return set.clone();
        }
        let mut connections = set.connections().to_vec();
        for what in 0..3 {
            let place = choices.below(20 + what, connections.len());
            let end = |which: u64| ends[choices.below(30 + 2 * what + which, ends.len())];
            match choices.below(40 + what, 4) {
                0 if !connections.is_empty() => drop(connections.remove(place)),
                1 if !connections.is_empty() => {
                    let words = &mut connections[place].words;
                    *words = (*words / 2).max(1);
                }
                2 => connections.push(Connection::new(end(0), end(1), 1 + to_u32(place) * 5)),
                _ => (),
            }
        }
        Arc::new(ConnectionSet::new(set.name(), connections).expect("it was valid"))
    };
    Program::new(case.program.sets().iter().map(change).collect()).expect("the names differ")
}

/// The message of the last panic and where it was.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Calls a function; a panic is an error with its message and place.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: OnceLock<()> = OnceLock::new();
    HOOK.get_or_init(|| {
        panic::set_hook(Box::new(|info| {
            let mut last = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            // The first one is the cause; others may follow on other threads.
            last.get_or_insert_with(|| info.to_string());
        }));
    });
    let take = || PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    let _ = take();
    panic::catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| take().unwrap_or_else(|| "a panic without a message".to_owned()))
}
