//! Loading the machine and the input that the command line names, and compiling them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset::input::{self, Input, LoadOptions, LoadedProgram, NodeWords, PartitionUnit};
use conset::partition_route::placement::Method;
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{Algorithm, CompileError, Compiled, Compiler, Objective};
use conset_files::Opened;
use conset_ir::{
    At, CellId, Document, FileFormat, InputError, Machine, Program, Schedule, machine_file,
};
use conset_mesh::halo::HaloKind;
use conset_mesh::patterns;

use crate::args::{
    AlgorithmArg, By, CompilerArgs, ElementsArg, HaloArg, InputArgs, InputOptions, MachineArgs,
    ObjectiveArg, PlacementArg, WordsArg,
};
use crate::error::CliError;
use crate::files;
use crate::memory;
use crate::progress::ProgressDisplay;
use crate::refused::{self, Readable};
use crate::text::Terminal;

/// Default number of words of each connection of a pattern.
const PATTERN_WORDS: u32 = 32;

/// The machine of a specification or machine file, with parameters set.
pub(crate) fn machine(spec: &str, set: &[String]) -> Result<Arc<Machine>, CliError> {
    let machine = if spec.ends_with(".toml") {
        let (name, bytes) = files::read(Path::new(spec))?;
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            InputError::new(&name, At::Byte(e.valid_up_to()), "not UTF-8, expected a TOML text")
        })?;
        machine_file::parse(&name, text).map_err(|e| CliError::in_source(e, &bytes))?
    } else {
        Machine::from_spec(spec)
            .map_err(|e| e.with_alternative("give a machine file ending in .toml"))?
    };
    with_settings(Arc::new(machine), set)
}

/// The machine with `KEY=VALUE` settings applied.
fn with_settings(machine: Arc<Machine>, set: &[String]) -> Result<Arc<Machine>, CliError> {
    if set.is_empty() {
        return Ok(machine);
    }
    let mut parameters = machine.parameters().clone();
    let mut keys = HashSet::new();
    for setting in set {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            InputError::new("--param", At::Path(setting.clone()), "expected KEY=VALUE")
                .help("for example --param channels_per_cell=20")
        })?;
        if !keys.insert(key.trim()) {
            let at = At::Path(key.trim().to_owned());
            return Err(InputError::new("--param", at, "set twice; expected once").into());
        }
        parameters.set(key.trim(), value.trim()).map_err(|e| in_option("--param", e))?;
    }
    let changed = machine
        .with_parameters(parameters)
        .map_err(|e| InputError::new("--param", At::Path(e.place), e.message))?;
    Ok(Arc::new(changed))
}

/// An error about the argument of an option.
fn in_option(option: &str, mut error: InputError) -> InputError {
    error.file = option.to_owned();
    error
}

/// The machine that the arguments name, else the given default, with settings applied.
fn chosen_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, CliError> {
    Ok(with_dead(whole_machine(args, default)?, &args.dead)?)
}

/// The same, without the dead parts of `--dead`.
fn whole_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, CliError> {
    match (&args.machine, default) {
        (Some(spec), _) => machine(spec, &args.params),
        (None, Some(default)) => with_settings(default, &args.params),
        (None, None) => machine("iwarp", &args.params),
    }
}

/// The machine without the parts that `--dead` names: `c5`, `c0->c1`, or `c0-c1` for both ways.
fn with_dead(machine: Arc<Machine>, parts: &[String]) -> Result<Arc<Machine>, InputError> {
    let (mut cells, mut links) = (Vec::new(), Vec::new());
    for part in parts {
        let at = || At::Path(part.clone());
        let cell = |text: &str| {
            let number = text.trim().strip_prefix('c').and_then(|number| number.parse().ok());
            number.map(CellId).ok_or_else(|| {
                InputError::new("--dead", at(), "expected a cell or a link")
                    .help("c5 is a cell, c0->c1 a link, c0-c1 the links between two cells")
            })
        };
        let (from, to, both) = match (part.split_once("->"), part.split_once('-')) {
            (Some((from, to)), _) => (cell(from)?, cell(to)?, false),
            (None, Some((from, to))) => (cell(from)?, cell(to)?, true),
            (None, None) => {
                cells.push(cell(part)?);
                continue;
            }
        };
        let pairs = [(from, to), (to, from)];
        // If the cells are linked in one direction only, that direction is meant.
        let linked = |pair: &(CellId, CellId)| machine.with_dead(&[], &[*pair]).is_ok();
        let meant = pairs.into_iter().filter(|pair| both && linked(pair));
        let before = links.len();
        links.extend(meant);
        if links.len() == before {
            links.push((from, to));
        }
    }
    if cells.is_empty() && links.is_empty() {
        return Ok(machine);
    }
    let changed = machine.with_dead(&cells, &links);
    Ok(Arc::new(changed.map_err(|e| InputError::new("--dead", At::Path(e.place), e.message))?))
}

/// The machine that the arguments name, for subcommands without an input.
pub(crate) fn machine_of(args: &MachineArgs) -> Result<Arc<Machine>, CliError> {
    chosen_machine(args, None)
}

/// A program to compile, and the machine to compile it for.
pub(crate) struct LoadedInput {
    /// The input.
    pub(crate) input: Input,
    /// The machine: that of the arguments, else that of the input, else the default.
    pub(crate) machine: Arc<Machine>,
    bytes: Vec<u8>,
}

/// The file of `--words-per-node`, if it is one.
fn words_file(args: &InputArgs) -> Option<&Path> {
    match &args.options.words_per_node {
        Some(WordsArg::File(path)) => Some(path),
        _ => None,
    }
}

impl From<HaloArg> for HaloKind {
    fn from(arg: HaloArg) -> Self {
        match arg {
            HaloArg::Nodes => HaloKind::Nodes,
            HaloArg::Faces => HaloKind::Faces,
            HaloArg::Edges => HaloKind::Edges,
            HaloArg::Rows => HaloKind::Rows,
        }
    }
}

/// The files that the arguments name as input, which no output may replace.
pub(crate) fn input_files(args: &InputArgs) -> Vec<&Path> {
    let input = Some(Path::new(&args.input)).filter(|_| !args.input.starts_with(input::PATTERN));
    let machine = args.options.machine.machine.as_deref().map(Path::new);
    let words = words_file(args);
    [input, args.options.partition.as_deref(), machine, words].into_iter().flatten().collect()
}

impl From<ElementsArg> for PartitionUnit {
    fn from(arg: ElementsArg) -> Self {
        match arg {
            ElementsArg::AsRead => PartitionUnit::AsRead,
            ElementsArg::Triangles => PartitionUnit::Triangles,
        }
    }
}

/// Reads the input that the arguments name.
pub(crate) fn input(args: &InputArgs, bar: &mut ProgressDisplay) -> Result<LoadedInput, CliError> {
    input_for(args, &PartitionGoal::default(), false, bar)
}

/// What determines the search for a partition, beside the options of the input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartitionGoal {
    /// What the compilation minimises.
    pub(crate) objective: Objective,
    /// The number of plans that are tried, which bounds that of partitions too.
    pub(crate) max_plans: Option<u32>,
    /// The time limit of all searches in seconds.
    pub(crate) time_limit: Option<f64>,
}

impl PartitionGoal {
    /// The goal of a compilation with the given options.
    pub(crate) fn of(args: &CompilerArgs) -> Self {
        Self {
            objective: args.objective.map_or(Objective::default(), objective),
            max_plans: args.max_plans,
            time_limit: args.time_limit,
        }
    }
}

/// The share of the time limit that the search for a partition may take.
const PARTITION_SHARE: f64 = 0.5;

/// Reads the input that the arguments name, and searches for a partition with the given goal;
/// `keep_reading` is for outputs that need the mesh.
pub(crate) fn input_for(
    args: &InputArgs,
    goal: &PartitionGoal,
    keep_reading: bool,
    bar: &mut ProgressDisplay,
) -> Result<LoadedInput, CliError> {
    let start = Instant::now();
    let whole = whole_machine(&args.options.machine, None)?;
    let machine = with_dead(whole.clone(), &args.options.machine.dead);
    if let Some(pattern) = args.input.strip_prefix(input::PATTERN) {
        refuse_mesh_options(args)?;
        let machine = machine?;
        let mut loaded =
            input::pattern(pattern, &machine, args.options.words.unwrap_or(PATTERN_WORDS))?;
        place_named_cells(args, &mut loaded, &machine, bar, &[])?;
        return Ok(LoadedInput {
            input: Input::Program(Box::new(loaded)),
            machine,
            bytes: Vec::new(),
        });
    }
    if args.options.words.is_some() {
        return Err(InputError::new(
            "--words",
            At::Whole,
            format!("--words is for patterns, and {} is a file", args.input),
        )
        .help("leave out --words; the file contains the words of each connection")
        .into());
    }
    let partition = args.options.partition.as_deref().map(files::read).transpose()?;
    let words = words_file(args).map(files::read).transpose()?;
    let options = LoadOptions::default()
        .halo(args.options.halo.map(HaloKind::from))
        .layers(args.options.layers)
        .words_per_node(match (&args.options.words_per_node, &words) {
            (Some(WordsArg::Each(words)), _) => Some(NodeWords::Each(*words)),
            (_, Some((name, bytes))) => Some(NodeWords::File(name, bytes)),
            _ => None,
        })
        .format(args.options.format.as_deref())
        .parts(args.options.parts)
        .partition(partition.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
        .elements(args.options.elements.into())
        .placement(args.options.placement.map_or(Method::default(), method))
        .seed(args.seed())
        .memory(memory::limit())
        .ignore_periodic(args.options.ignore_periodic)
        .repartition(args.options.repartition)
        .keep_reading(keep_reading)
        .imbalance(args.options.imbalance)
        .max_partitions(args.options.max_partitions.or(goal.max_plans))
        .objective(goal.objective);
    let is_late = |limit: f64| start.elapsed().as_secs_f64() >= PARTITION_SHARE * limit;
    let stop = goal.time_limit.map(|limit| move || is_late(limit));
    let options = match &stop {
        Some(stop) => options.stop_when(stop),
        None => options,
    };
    let format = args.options.format.as_deref();
    let read = &files::read;
    let opened = conset_files::open(Path::new(&args.input), format, &options.read_options(), read)
        .map_err(|e| perhaps_pattern(args, e))?;
    let (name, bytes, reading) = match opened {
        Opened::File(name, bytes) => (name, bytes, None),
        Opened::Mesh(name, reading) => (name, Vec::new(), Some(*reading)),
    };
    // If the file names its own machine, the dead parts refer to that machine and may not exist here.
    let here = machine.as_ref().unwrap_or(&whole);
    let observer = &mut |p| bar.observe(p);
    let mut input = match reading {
        Some(reading) => input::from_reading(&name, reading, here, &options, observer),
        None => input::load(&name, &bytes, here, &options, observer),
    }
    .map_err(|e| in_either(e, &bytes, &[&partition, &words]))?;
    let own = match &input {
        Input::Program(loaded) => loaded.machine.clone(),
        _ => None,
    };
    let machine = match own {
        Some(own) => chosen_machine(&args.options.machine, Some(own))?,
        None => machine?,
    };
    match &mut input {
        Input::Program(loaded) => place_named_cells(args, loaded, &machine, bar, &bytes)?,
        _ => refuse_placement(args)?,
    }
    Ok(LoadedInput { input, machine, bytes })
}

/// Adds a hint if a file that was not found has the name of a pattern.
fn perhaps_pattern(args: &InputArgs, error: InputError) -> InputError {
    let name = args.input.split(':').next().unwrap_or("");
    match patterns::LIST.iter().any(|pattern| pattern.name == name) && error.help.is_some() {
        true => error.help(format!("for the pattern, write {}{}", input::PATTERN, args.input)),
        false => error,
    }
}

fn objective(arg: ObjectiveArg) -> Objective {
    match arg {
        ObjectiveArg::Time => Objective::Time,
        ObjectiveArg::Phases => Objective::Phases,
    }
}

fn method(arg: PlacementArg) -> Method {
    match arg {
        PlacementArg::Given => Method::Given,
        PlacementArg::Curve => Method::Curve,
        PlacementArg::Bisect => Method::Bisect,
        PlacementArg::Best => Method::Best,
    }
}

/// Places sets that name cells, if a placement is requested.
fn place_named_cells(
    args: &InputArgs,
    loaded: &mut LoadedProgram,
    machine: &Machine,
    bar: &mut ProgressDisplay,
    bytes: &[u8],
) -> Result<(), CliError> {
    let Some(method) = args.options.placement.map(method) else { return Ok(()) };
    if loaded.placement.is_some() || method == Method::Given {
        return Ok(());
    }
    input::place(loaded, machine, method, args.seed(), &mut |p| bar.observe(p))
        .map_err(|e| CliError::of_compile(e, bytes))
}

/// Refuses `--placement` for compiled inputs.
fn refuse_placement(args: &InputArgs) -> Result<(), InputError> {
    match args.options.placement {
        None => Ok(()),
        Some(_) => Err(InputError::new(
            "--placement",
            At::Whole,
            "a compiled input is already placed; only meshes and connection sets can be placed",
        )
        .help("leave out --placement, or compile the input again with it")),
    }
}

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
        Input::Image(_) => return Err(not_a_program(&args.input, "an image").into()),
        Input::Machine(_) => return Err(not_a_program(&args.input, "a machine").into()),
    })
}

/// Compiles a program, or imports a schedule or an image.
pub(crate) fn compiled(
    job: &LoadedInput,
    input: &InputArgs,
    compiler: &CompilerArgs,
    bar: &mut ProgressDisplay,
) -> Result<Compiled, CliError> {
    let result = match &job.input {
        Input::Program(loaded) => {
            let end = deadline(compiler)?;
            let previous = compiler.reuse.as_deref().map(|file| earlier(file, bar)).transpose()?;
            configured(&job.machine, input.seed(), compiler, end)
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
        Input::Steps(_) => return Err(is_steps(&input.input).into()),
        Input::Image(image) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "image")?;
            Compiled::import_image(image.clone(), &mut |p| bar.observe(p))
        }
        Input::Machine(_) => return Err(not_a_program(&input.input, "a machine").into()),
    };
    result.map_err(|e| match (e, &compiler.reuse) {
        // The only input that the checker can refuse here is the earlier schedule.
        (CompileError::Rejected(rejection), Some(old)) => {
            CliError::Violations { file: Some(old.display().to_string()), rejection }
        }
        (e, _) => CliError::of_compile(e, &job.bytes),
    })
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
        compiler = compiler.objective(self::objective(objective));
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
pub(crate) fn is_steps(name: &str) -> InputError {
    wrong_kind(name, "this is a schedule of steps; expected one of phases, or an image")
        .help("conset run, verify, emit, show, why, diff and info read schedules of steps")
}

/// The error for a file of a kind that the subcommand does not accept.
pub(crate) fn wrong_kind(name: &str, message: impl Into<String>) -> InputError {
    InputError::new(name, At::Whole, message)
}

/// The error for a file without connections.
pub(crate) fn not_a_program(name: &str, what: &str) -> InputError {
    let wanted = "expected a mesh, graph, matrix, connection set or schedule";
    wrong_kind(name, format!("this is {what}; {wanted}"))
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

fn refuse_mesh_options(args: &InputArgs) -> Result<(), InputError> {
    let given = [
        ("--parts", args.options.parts.is_some()),
        ("--partition", args.options.partition.is_some()),
        ("--format", args.options.format.is_some()),
        ("--elements", matches!(args.options.elements, ElementsArg::Triangles)),
        ("--repartition", args.options.repartition),
        ("--imbalance", args.options.imbalance.is_some()),
        ("--max-partitions", args.options.max_partitions.is_some()),
        ("--ignore-periodic", args.options.ignore_periodic),
        ("--halo", args.options.halo.is_some()),
        ("--layers", args.options.layers.is_some()),
        ("--words-per-node", args.options.words_per_node.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(InputError::new(
            *name,
            At::Whole,
            "a pattern uses all cells of the machine and is not divided into parts",
        )
        .help("choose the machine's size instead: --machine iwarp:4x4")),
    }
}

/// The error of a file, with the line of that of `others` that it names, else of the input.
fn in_either(error: CompileError, bytes: &[u8], others: &[&Option<(String, Vec<u8>)>]) -> CliError {
    let named = |file: &&(String, Vec<u8>)| matches!(&error, CompileError::Input(input) if input.file == file.0);
    let other = others.iter().filter_map(|file| file.as_ref()).find(named);
    CliError::of_compile(error, other.map_or(bytes, |file| &file.1))
}

/// A compiled program of either kind.
pub(crate) enum Either {
    Phases(Box<Compiled>),
    Steps(Box<CompiledSteps>),
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
            let sets = phases.schedule().sets().iter();
            let clocks: u64 = sets.map(|set| set.predicted_clocks).sum();
            match steps.predicted_clocks() < clocks {
                true => {
                    let other = ("phases", clocks);
                    (Either::Steps(Box::new(steps)), Some(other))
                }
                false => {
                    let other = ("steps", steps.predicted_clocks());
                    (Either::Phases(Box::new(phases)), Some(other))
                }
            }
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

/// A compiled program, and what else it was compared with: its name and its clocks.
pub(crate) struct Choice {
    pub(crate) chosen: Either,
    pub(crate) other: Option<(&'static str, u64)>,
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

/// The contents of a file in one of the project's own formats.
pub(crate) fn document(
    name: &str,
    bytes: &[u8],
    bar: &mut ProgressDisplay,
) -> Result<Input, CliError> {
    // Schedules and images are recognised by their first bytes, whatever their names are.
    if !matches!(
        Document::sniff(bytes),
        Some(FileFormat::Text | FileFormat::Json | FileFormat::Binary)
    ) && !matches!(input::kind(name, bytes, None), Ok(input::InputKind::Document))
    {
        return Err(match bytes.is_empty() {
            true => wrong_kind(name, "the file is empty; expected a schedule or an image"),
            false => not_compiled(name),
        }
        .into());
    }
    // Compiled files name their machine.
    let machine = Machine::from_spec("iwarp").map_err(InputError::from)?;
    let options = LoadOptions::default().format("cset");
    input::load(name, bytes, &machine, &options, &mut |p| bar.observe(p))
        .map_err(|e| CliError::of_compile(e, bytes))
}

/// The error for a file that must be compiled first.
pub(crate) fn not_compiled(name: &str) -> InputError {
    wrong_kind(name, "this is not compiled; expected a schedule or an image")
        .help(format!("compile it first: conset compile {name} -o out.json"))
}
