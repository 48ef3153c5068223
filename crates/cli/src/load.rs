//! From the words on the command line to a machine and an input.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset::fuse::compile_fused;
use conset::input::{self, Elements, Input, LoadOptions, Loaded};
use conset::partition_route::placement::Method;
use conset::{Clock, CompileError, Compiled, More, Options, adopt, adopt_image, compile_with};
use conset_ir::{At, CellId, Document, FileFormat, InputError, Machine, Schedule, machine_file};
use conset_mesh::patterns;

use crate::args::{
    AlgorithmArg, CompilerArgs, ElementsArg, InputArgs, MachineArgs, ObjectiveArg, PlacementArg,
};
use crate::failure::Failure;
use crate::files;
use crate::memory;
use crate::progress::Bar;
use crate::text::Terminal;

/// Words of each connection of a pattern, if nobody says.
const PATTERN_WORDS: u32 = 32;

/// The machine of a specification or machine file, with single values set.
pub(crate) fn machine(spec: &str, set: &[String]) -> Result<Arc<Machine>, Failure> {
    let machine = if spec.ends_with(".toml") {
        let (name, bytes) = files::read(Path::new(spec))?;
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            InputError::new(&name, At::Byte(e.valid_up_to()), "not UTF-8, expected a TOML text")
        })?;
        machine_file::parse(&name, text).map_err(|e| Failure::in_source(e, &bytes))?
    } else {
        Machine::from_spec(spec)
            .map_err(|e| e.with_alternative("give a machine file ending in .toml"))?
    };
    with_settings(Arc::new(machine), set)
}

/// The machine with `KEY=VALUE` settings applied.
fn with_settings(machine: Arc<Machine>, set: &[String]) -> Result<Arc<Machine>, Failure> {
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

/// An error about a word on the command line, under the name of its option.
fn in_option(option: &str, mut error: InputError) -> InputError {
    error.file = option.to_owned();
    error
}

/// The machine that the arguments name, else the given default, with settings applied.
fn chosen_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, Failure> {
    Ok(with_dead(whole_machine(args, default)?, &args.dead)?)
}

/// The same with the parts that `--dead` names still alive.
fn whole_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, Failure> {
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
        // Where cells are joined one way only, that way is meant.
        let joined = |pair: &(CellId, CellId)| machine.with_dead(&[], &[*pair]).is_ok();
        let meant = pairs.into_iter().filter(|pair| both && joined(pair));
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

/// The machine of arguments alone, for verbs without an input.
pub(crate) fn machine_of(args: &MachineArgs) -> Result<Arc<Machine>, Failure> {
    chosen_machine(args, None)
}

/// A program to compile, and the machine to compile it for.
pub(crate) struct Job {
    /// What came of the input.
    pub(crate) input: Input,
    /// The machine: the arguments', else the input's, else the default.
    pub(crate) machine: Arc<Machine>,
    bytes: Vec<u8>,
}

/// The files that the arguments name as input, which no output may replace.
pub(crate) fn input_files(args: &InputArgs) -> Vec<&Path> {
    let input = Some(Path::new(&args.input)).filter(|_| !args.input.starts_with(input::PATTERN));
    let machine = args.options.machine.machine.as_deref().map(Path::new);
    [input, args.options.partition.as_deref(), machine].into_iter().flatten().collect()
}

/// Reads the input that the arguments name.
pub(crate) fn input(args: &InputArgs, bar: &mut Bar) -> Result<Job, Failure> {
    let whole = whole_machine(&args.options.machine, None)?;
    let machine = with_dead(whole.clone(), &args.options.machine.dead);
    if let Some(pattern) = args.input.strip_prefix(input::PATTERN) {
        refuse_mesh_options(args)?;
        let machine = machine?;
        let mut loaded =
            input::pattern(pattern, &machine, args.options.words.unwrap_or(PATTERN_WORDS))?;
        place_named_cells(args, &mut loaded, &machine, bar, &[])?;
        return Ok(Job { input: Input::Program(Box::new(loaded)), machine, bytes: Vec::new() });
    }
    if args.options.words.is_some() {
        return Err(InputError::new(
            "--words",
            At::Whole,
            format!(
                "only the connections of a pattern have no words, and {} is a file",
                args.input
            ),
        )
        .help("leave out --words; a file says how many words each connection has")
        .into());
    }
    let (name, bytes) =
        files::read(Path::new(&args.input)).map_err(|e| perhaps_pattern(args, e))?;
    let partition = args.options.partition.as_deref().map(files::read).transpose()?;
    let options = LoadOptions {
        format: args.options.format.as_deref(),
        parts: args.options.parts,
        partition: partition.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
        elements: match args.options.elements {
            ElementsArg::AsRead => Elements::AsRead,
            ElementsArg::Triangles => Elements::Triangles,
        },
        placement: args.options.placement.map_or(Method::default(), method),
        seed: args.seed(),
        memory: memory::limit(),
    };
    // A file that names its own machine is not about this one, so the parts need not be there.
    let here = machine.as_ref().unwrap_or(&whole);
    let mut input = input::load(&name, &bytes, here, &options, &mut |p| bar.observe(p))
        .map_err(|e| in_either(e, &bytes, partition.as_ref()))?;
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
    Ok(Job { input, machine, bytes })
}

/// Who finds no file perhaps meant a pattern.
fn perhaps_pattern(args: &InputArgs, error: InputError) -> InputError {
    let name = args.input.split(':').next().unwrap_or("");
    match patterns::LIST.iter().any(|pattern| pattern.name == name) && error.help.is_some() {
        true => error.help(format!("for the pattern, write {}{}", input::PATTERN, args.input)),
        false => error,
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

/// Sets that name cells stay there, unless another placement is asked for.
fn place_named_cells(
    args: &InputArgs,
    loaded: &mut Loaded,
    machine: &Machine,
    bar: &mut Bar,
    bytes: &[u8],
) -> Result<(), Failure> {
    let Some(method) = args.options.placement.map(method) else { return Ok(()) };
    if loaded.placement.is_some() || method == Method::Given {
        return Ok(());
    }
    input::place(loaded, machine, method, args.seed(), &mut |p| bar.observe(p))
        .map_err(|e| Failure::of_compile(e, bytes))
}

/// What is compiled is placed.
fn refuse_placement(args: &InputArgs) -> Result<(), InputError> {
    match args.options.placement {
        None => Ok(()),
        Some(_) => Err(InputError::new(
            "--placement",
            At::Whole,
            "what is compiled has its cells; only meshes and connection sets can be placed",
        )
        .help("leave out --placement, or compile the input again with it")),
    }
}

/// Compiles the job, or adopts what is compiled already.
pub(crate) fn compiled(
    job: &Job,
    input: &InputArgs,
    compiler: &CompilerArgs,
    bar: &mut Bar,
) -> Result<Compiled, Failure> {
    let result = match &job.input {
        Input::Program(loaded) => {
            let mut options = Options { seed: input.seed(), ..Options::default() };
            if let Some(algorithm) = compiler.algorithm {
                options.algorithm = match algorithm {
                    AlgorithmArg::Paper => conset::Algorithm::Paper,
                    AlgorithmArg::Auto => conset::Algorithm::Best,
                };
            }
            if let Some(objective) = compiler.objective {
                options.objective = match objective {
                    ObjectiveArg::Time => conset::Objective::Time,
                    ObjectiveArg::Phases => conset::Objective::Phases,
                };
            }
            options.max_phases = compiler.max_phases;
            options.reroutes = compiler.rip_up_iterations;
            options.attempts = compiler.max_plans;
            options.unlimited = compiler.unlimited;
            let end = deadline(compiler)?;
            let old = compiler.reuse.as_deref().map(|file| older(file, bar)).transpose()?;
            let is_over = || end.is_some_and(|end| Instant::now() >= end);
            let start = Instant::now();
            let clock = || start.elapsed();
            let more = More {
                should_stop: end.is_some().then_some(&is_over as &dyn Fn() -> bool),
                clock: compiler.explain_search.then_some(&clock as Clock<'_>),
                from: old.as_ref(),
            };
            let program = &loaded.program;
            if compiler.fuse.is_empty() {
                compile_with(&job.machine, program, &options, &more, &mut |p| bar.observe(p))
            } else {
                let names =
                    |group: &String| group.split(',').map(|n| n.trim().to_owned()).collect();
                let groups: Vec<Vec<String>> = compiler.fuse.iter().map(names).collect();
                compile_fused(&job.machine, program, &groups, &options, &mut |p| bar.observe(p))
            }
        }
        Input::Schedule(schedule) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "schedule")?;
            adopt(schedule.clone(), &mut |p| bar.observe(p))
        }
        Input::Image(image) => {
            refuse_recompiling(&input.options.machine, Some(compiler), "image")?;
            adopt_image(image.clone(), &mut |p| bar.observe(p))
        }
        Input::Machine(_) => return Err(not_a_program(&input.input, "a machine").into()),
    };
    result.map_err(|e| match (e, &compiler.reuse) {
        // What we make ourselves is never the file's fault, so it is the older compile.
        (CompileError::Rejected(rejection), Some(old)) => {
            Failure::Rejected(format!("{}: {rejection}", old.display()))
        }
        (e, _) => Failure::of_compile(e, &job.bytes),
    })
}

/// The greatest time limit in seconds: a year, so that no clock overflows.
const TIME_LIMIT_MAX: f64 = 365.0 * 86400.0;

/// When the search has to end, if there is a time limit.
fn deadline(compiler: &CompilerArgs) -> Result<Option<Instant>, InputError> {
    let wrong = |option: &str, at: At, message: &str| InputError::new(option, at, message);
    let tried = [
        ("--objective", compiler.objective.is_some()),
        ("--time-limit", compiler.time_limit.is_some()),
        ("--max-plans", compiler.max_plans.is_some()),
        ("--explain-search", compiler.explain_search),
    ];
    if let (Some(AlgorithmArg::Paper), Some((option, _))) =
        (compiler.algorithm, tried.iter().find(|(_, given)| *given))
    {
        return Err(wrong(option, At::Whole, "--algorithm paper does not search")
            .help("leave out this option, or --algorithm paper"));
    }
    let Some(seconds) = compiler.time_limit else { return Ok(None) };
    if !(0.0..=TIME_LIMIT_MAX).contains(&seconds) {
        let at = At::Path(seconds.to_string());
        return Err(wrong("--time-limit", at, "expected seconds, at most a year"));
    }
    Ok(Some(Instant::now() + Duration::from_secs_f64(seconds)))
}

/// The schedule of an older compile. It is for the library to check it.
fn older(file: &Path, bar: &mut Bar) -> Result<Schedule, Failure> {
    let (name, bytes) = files::read(file)?;
    match document(&name, &bytes, bar)? {
        Input::Schedule(schedule) => Ok(schedule),
        Input::Image(image) => adopt_image(image, &mut |p| bar.observe(p))
            .map(|compiled| compiled.schedule().clone())
            .map_err(|e| Failure::of_compile(e, &bytes)),
        Input::Program(_) | Input::Machine(_) => Err(not_compiled(&name).into()),
    }
}

/// The error for a file that is none of what the verb takes.
pub(crate) fn wrong_kind(name: &str, message: impl Into<String>) -> InputError {
    InputError::new(name, At::Whole, message)
}

/// The error for a file that says nothing of connections.
pub(crate) fn not_a_program(name: &str, what: &str) -> InputError {
    let wanted = "expected a mesh, graph, matrix, connection set or schedule";
    wrong_kind(name, format!("this is {what}; {wanted}"))
}

/// What is compiled is compiled for one machine, in one way; options that would change it must
/// not be passed over.
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
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(InputError::new(
            *name,
            At::Whole,
            "a pattern runs over all cells of the machine and is not divided into parts",
        )
        .help("choose the machine's size instead: --machine iwarp:4x4")),
    }
}

fn in_either(error: CompileError, bytes: &[u8], partition: Option<&(String, Vec<u8>)>) -> Failure {
    let other = match (&error, partition) {
        (CompileError::Input(input), Some((file, bytes))) if input.file == *file => Some(bytes),
        _ => None,
    };
    Failure::of_compile(error, other.map_or(bytes, Vec::as_slice))
}

/// The compiled program in a schedule or image file, checked.
pub(crate) fn compiled_file(file: &Path, terminal: &Terminal) -> Result<Compiled, Failure> {
    let (name, bytes) = files::read(file)?;
    let mut bar = Bar::new(terminal.quiet);
    match document(&name, &bytes, &mut bar)? {
        Input::Schedule(schedule) => adopt(schedule, &mut |p| bar.observe(p)),
        Input::Image(image) => adopt_image(image, &mut |p| bar.observe(p)),
        Input::Program(_) | Input::Machine(_) => return Err(not_compiled(&name).into()),
    }
    .map_err(|e| Failure::of_compile(e, &bytes))
}

/// What is in a file of one of our own forms.
pub(crate) fn document(name: &str, bytes: &[u8], bar: &mut Bar) -> Result<Input, Failure> {
    // What is compiled says so in its first bytes, whatever its name is.
    if !matches!(
        Document::sniff(bytes),
        Some(FileFormat::Text | FileFormat::Json | FileFormat::Binary)
    ) && !matches!(input::kind(name, bytes, None), Ok(input::Kind::Document))
    {
        return Err(match bytes.is_empty() {
            true => wrong_kind(name, "the file is empty; expected a schedule or an image"),
            false => not_compiled(name),
        }
        .into());
    }
    // Our own forms name their machine, or are not compiled.
    let machine = Machine::from_spec("iwarp").map_err(InputError::from)?;
    let options = LoadOptions { format: Some("cset"), ..LoadOptions::default() };
    input::load(name, bytes, &machine, &options, &mut |p| bar.observe(p))
        .map_err(|e| Failure::of_compile(e, bytes))
}

/// The error for a file that must be compiled first.
pub(crate) fn not_compiled(name: &str) -> InputError {
    wrong_kind(name, "this is not compiled; expected a schedule or an image")
        .help(format!("compile it first: conset compile {name} -o out.json"))
}
