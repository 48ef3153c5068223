//! Compiling what was loaded, or importing what is compiled already.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use conset::choice::CompiledProgram as Either;
use conset::choice::{self, Alternative};
use conset::input::{Input, LoadedProgram};
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{Algorithm, CompileError, Compiled, Compiler};
use conset_ir::{At, InputError, Machine, Program, Schedule};

use super::{LoadedInput, document, not_a_program, not_compiled, wrong_kind};
use crate::args::{AlgorithmArg, By, CompilerArgs, InputArgs, InputOptions, MachineArgs};
use crate::error::CliError;
use crate::files;
use crate::interrupt::Search;
use crate::progress::ProgressDisplay;
use crate::refused::{self, Readable};
use crate::text::Terminal;

/// The program of an input and its machine, also of an input that is compiled already.
///
/// # Errors
/// Options that would change the machine of a compiled input; an image or a machine.
pub(crate) fn program(
    job: &LoadedInput,
    args: &InputArgs,
) -> Result<(Arc<Machine>, Program), CliError> {
    Ok(match &job.input {
        Input::Program(loaded) => (job.machine.clone(), loaded.program.clone()),
        Input::Schedule(schedule) => {
            refuse_recompiling(&args.options.machine, None, "schedule")?;
            (schedule.machine().clone(), schedule.program())
        }
        Input::Steps(schedule) => {
            refuse_recompiling(&args.options.machine, None, "schedule of steps")?;
            (schedule.machine().clone(), schedule.program())
        }
        Input::Image(_) => return Err(not_a_program(&args.name(), "an image").into()),
        Input::Machine(_) => return Err(not_a_program(&args.name(), "a machine").into()),
    })
}

/// Compiles a program, or imports a schedule or an image.
fn compiled(
    job: &LoadedInput,
    input: &InputArgs,
    compiler: &CompilerArgs,
    bar: &mut ProgressDisplay,
) -> Result<Compiled, CliError> {
    let result = match &job.input {
        Input::Program(loaded) => {
            let end = deadline(compiler)?;
            let previous = compiler.reuse.as_deref().map(|file| earlier(file, bar)).transpose()?;
            let search = Search::begin(bar.is_quiet());
            configured(&job.machine, input.seed(), compiler, end)
                .interrupted_by(search.interrupt())
                .reuse(previous.as_ref())
                .observer(|p| bar.observe(p))
                .compile(&loaded.program)
                .and_then(|compiled| {
                    compiled.with_part_map(loaded.part_map.clone()).map_err(|error| {
                        CompileError::Bug { stage: "placement", message: error.to_string() }
                    })
                })
        }
        Input::Schedule(schedule) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "schedule")?;
            Compiled::import(schedule.clone(), &mut |p| bar.observe(p))
        }
        Input::Steps(_) => return Err(is_steps(&input.name()).into()),
        Input::Image(image) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "image")?;
            Compiled::import_image(image.clone(), &mut |p| bar.observe(p))
        }
        Input::Machine(_) => return Err(not_a_program(&input.name(), "a machine").into()),
    };
    result.map_err(|e| match (e, &compiler.reuse) {
        // The only input that the checker can refuse here is the earlier schedule.
        (CompileError::Rejected(rejection), Some(old)) => {
            CliError::Violations { file: Some(old.display().to_string()), rejection }
        }
        (e, _) => CliError::of_compile(e, &job.bytes),
    })
}

/// Compiles one of the batches of a set.
pub(crate) fn batch(
    machine: &Arc<Machine>,
    program: &Program,
    (seed, compiler): (u64, &CompilerArgs),
    bar: &mut ProgressDisplay,
) -> Result<Compiled, CliError> {
    configured(machine, seed, compiler, None)
        .observer(|p| bar.observe(p))
        .compile(program)
        .map_err(|e| CliError::of_compile(e, &[]))
}

/// A compiler with the options of the command line; `end` is when its search has to end.
fn configured<'a>(
    machine: &Arc<Machine>,
    seed: u64,
    args: &CompilerArgs,
    end: Option<Instant>,
) -> Compiler<'a> {
    let mut compiler = Compiler::new(machine)
        .seed(seed)
        .max_phases(args.max_phases)
        .rip_up_iterations(args.rip_up_iterations)
        .max_plans(args.max_plans)
        .unlimited(args.unlimited);
    if args.algorithm == Some(AlgorithmArg::Paper) {
        compiler = compiler.algorithm(Algorithm::Paper);
    }
    if let Some(objective) = args.objective {
        compiler = compiler.objective(objective.into());
    }
    if let Some(end) = end {
        compiler = compiler.stop_when(move || Instant::now() >= end);
    }
    if args.explain_search {
        let start = Instant::now();
        compiler = compiler.clock(move || start.elapsed());
    }
    for group in &args.fuse {
        compiler = compiler.fuse(group.split(',').map(str::trim));
    }
    compiler
}

/// The greatest time limit in seconds: a year, so that no clock overflows.
const TIME_LIMIT_MAX: f64 = 365.0 * 86400.0;

/// When the search has to end, if there is a time limit.
///
/// # Errors
/// Options of the search together with the paper's algorithm; an invalid time limit.
fn deadline(compiler: &CompilerArgs) -> Result<Option<Instant>, InputError> {
    let wrong = |option: &str, at: At, message: &str| InputError::new(option, at, message);
    let tried = [
        ("--objective", compiler.objective.is_some()),
        ("--time-limit", compiler.time_limit.is_some()),
        ("--max-plans", compiler.max_plans.is_some()),
        ("--explain-search", compiler.explain_search),
    ];
    if let (Some(AlgorithmArg::Paper), Some((option, _))) =
        (&compiler.algorithm, tried.iter().find(|(_, given)| *given))
    {
        return Err(wrong(option, At::Whole, "--algorithm paper does not search")
            .help("leave out this option, or --algorithm paper"));
    }
    let Some(seconds) = compiler.time_limit else { return Ok(None) };
    if !(0.0..=TIME_LIMIT_MAX).contains(&seconds) {
        let at = At::Path(format!("{seconds:?}"));
        return Err(wrong("--time-limit", at, "expected seconds, at most a year"));
    }
    Ok(Some(Instant::now() + Duration::from_secs_f64(seconds)))
}

/// The schedule in a file for `--reuse`. The library checks it.
fn earlier(file: &Path, bar: &mut ProgressDisplay) -> Result<Schedule, CliError> {
    let (name, bytes) = files::read(file)?;
    match document(&name, &bytes, bar)? {
        Input::Schedule(schedule) => Ok(schedule),
        Input::Image(image) => Compiled::import_image(image, &mut |p| bar.observe(p))
            .map(|compiled| compiled.schedule().clone())
            .map_err(|e| CliError::of_compile(e, &bytes)),
        Input::Steps(_) => Err(is_steps(&name).into()),
        Input::Program(_) | Input::Machine(_) => Err(not_compiled(&name).into()),
    }
}

/// The error for a schedule of steps where phases are needed.
fn is_steps(name: &str) -> InputError {
    wrong_kind(name, "this is a schedule of steps; expected one of phases, or an image")
        .help("conset run, verify, emit, show, why, diff and info read schedules of steps")
}

/// Refuses a seed for an input that is already compiled.
pub(crate) fn refuse_seed(job: &LoadedInput, options: &InputOptions) -> Result<(), InputError> {
    if options.seed.is_none() || matches!(job.input, Input::Program(_)) {
        return Ok(());
    }
    let message = "the input is already compiled; --seed has no effect";
    Err(InputError::new("--seed", At::Whole, message).help("leave out --seed"))
}

/// Refuses options that would have no effect, because the input is already compiled.
pub(crate) fn refuse_recompiling(
    machine: &MachineArgs,
    compiler: Option<&CompilerArgs>,
    what: &str,
) -> Result<(), InputError> {
    let given = |option: fn(&CompilerArgs) -> bool| compiler.is_some_and(option);
    let options = [
        ("--machine", machine.machine.is_some()),
        ("--param", !machine.params.is_empty()),
        ("--dead", !machine.dead.is_empty()),
        ("--by", given(|c| c.by.is_some())),
        ("--algorithm", given(|c| c.algorithm.is_some())),
        ("--objective", given(|c| c.objective.is_some())),
        ("--rip-up-iterations", given(|c| c.rip_up_iterations.is_some())),
        ("--max-phases", given(|c| c.max_phases.is_some())),
        ("--time-limit", given(|c| c.time_limit.is_some())),
        ("--max-plans", given(|c| c.max_plans.is_some())),
        ("--explain-search", given(|c| c.explain_search)),
        ("--unlimited", given(|c| c.unlimited)),
        ("--reuse", given(|c| c.reuse.is_some())),
        ("--fuse", given(|c| !c.fuse.is_empty())),
    ];
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(InputError::new(
            *option,
            At::Whole,
            format!("the input is a {what}, which is already compiled for its own machine"),
        )
        .help(format!("leave out {option}, or compile the original input again"))),
    }
}

/// The compiled program of either kind in a file, checked.
pub(crate) fn any_compiled_file(file: &Path, terminal: &Terminal) -> Result<Either, CliError> {
    match refused::readable_file(file, terminal)? {
        Readable::Checked(compiled) => Ok(compiled),
        Readable::Refused(refused) => {
            Err(CliError::Violations { file: None, rejection: refused.rejection })
        }
    }
}

/// Compiles a program to what `--by` states, or imports a compiled file.
pub(crate) fn compiled_by(
    job: &LoadedInput,
    input: &InputArgs,
    compiler: &CompilerArgs,
    bar: &mut ProgressDisplay,
) -> Result<Choice, CliError> {
    let phases = |bar: &mut ProgressDisplay| {
        compiled(job, input, compiler, bar).map(|compiled| Either::Phases(Box::new(compiled)))
    };
    let (chosen, other) = match (&job.input, compiler.by.unwrap_or(By::Phases)) {
        (Input::Steps(schedule), _) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "schedule of steps")?;
            let import = CompiledSteps::import(schedule.clone());
            let import = import.and_then(CompiledSteps::with_claims);
            let import = import.map_err(|e| CliError::of_compile(e, &job.bytes))?;
            (Either::Steps(Box::new(import)), None)
        }
        (Input::Program(loaded), By::Steps) => {
            let steps = compiled_to_steps(job, loaded, input, compiler, bar)?;
            (Either::Steps(Box::new(steps)), None)
        }
        (Input::Program(loaded), By::Best) => {
            let steps = compiled_to_steps(job, loaded, input, compiler, bar)?;
            let phases = compiled(job, input, compiler, bar)?;
            let (chosen, other) = choice::cheaper(phases, steps);
            (chosen, Some(other))
        }
        _ => {
            if let Some(AlgorithmArg::Steps(planner)) = &compiler.algorithm {
                let message = format!("{} is a planner of steps", planner.name());
                let error = InputError::new("--algorithm", At::Whole, message);
                return Err(error.help("add --by steps").into());
            }
            (phases(bar)?, None)
        }
    };
    Ok(Choice { chosen, other })
}

/// A compiled program, and what it was compared with.
pub(crate) struct Choice {
    pub(crate) chosen: Either,
    pub(crate) other: Option<Alternative>,
}

fn compiled_to_steps(
    job: &LoadedInput,
    loaded: &LoadedProgram,
    input: &InputArgs,
    args: &CompilerArgs,
    bar: &mut ProgressDisplay,
) -> Result<CompiledSteps, CliError> {
    let best = args.by == Some(By::Best);
    let unused = [
        ("--reuse", args.reuse.is_some()),
        ("--fuse", !args.fuse.is_empty()),
        ("--objective", args.objective.is_some()),
        ("--max-phases", args.max_phases.is_some()),
        ("--time-limit", args.time_limit.is_some()),
        ("--rip-up-iterations", args.rip_up_iterations.is_some() && !best),
        ("--algorithm", args.algorithm.is_some() && best),
        ("--algorithm paper", args.algorithm == Some(AlgorithmArg::Paper)),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, given)| *given) {
        let by = if best { "--by best" } else { "--by steps" };
        let message = format!("{option} has no effect with {by}");
        let error = InputError::new(*option, At::Whole, message);
        return Err(error.help(format!("leave out {option}, or {by}")).into());
    }
    let mut compiler = StepCompiler::new(&job.machine)
        .seed(input.seed())
        .max_plans(args.max_plans)
        .unlimited(args.unlimited);
    if let Some(AlgorithmArg::Steps(planner)) = &args.algorithm {
        compiler = compiler.algorithm(planner.clone());
    }
    compiler
        .compile(&loaded.program, &mut |p| bar.observe(p))
        .and_then(|compiled| {
            compiled.with_part_map(loaded.part_map.clone()).map_err(|error| CompileError::Bug {
                stage: "placement",
                message: error.to_string(),
            })
        })
        .map_err(|e| CliError::of_compile(e, &job.bytes))
}
