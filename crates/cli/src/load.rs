//! Loading the machine and the input that the command line names, and compiling them.

mod compile;
mod machine;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use conset::input::{self, Input, LoadOptions, LoadedProgram, NodeWords, PartitionUnit};
use conset::partition_route::placement::Method;
use conset::{CompileError, Objective};
use conset_files::Opened;
use conset_ir::{At, Document, FileFormat, InputError, Machine};
use conset_mesh::halo::HaloKind;
use conset_mesh::patterns;

use crate::args::{
    CompilerArgs, ElementsArg, HaloArg, InputArgs, ObjectiveArg, PlacementArg, WordsArg,
};
use crate::error::CliError;
use crate::files;
use crate::memory;
use crate::progress::ProgressDisplay;

pub(crate) use compile::{Either, any_compiled_file, batch, compiled_by, program, refuse_seed};
use machine::{chosen_machine, whole_machine, with_dead};
pub(crate) use machine::{machine, machine_of};

/// Default number of words of each connection of a pattern.
const PATTERN_WORDS: u32 = 32;

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
    let input = Some(Path::new(&args.input)).filter(|_| args.pattern().is_none());
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

impl From<ObjectiveArg> for Objective {
    fn from(arg: ObjectiveArg) -> Self {
        match arg {
            ObjectiveArg::Time => Objective::Time,
            ObjectiveArg::Phases => Objective::Phases,
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
            objective: args.objective.map_or(Objective::default(), Objective::from),
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
    if let Some(pattern) = args.pattern() {
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
            format!("--words is for patterns, and {} is a file", args.name()),
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
        .format(args.options.input_format.as_deref())
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
    let format = args.options.input_format.as_deref();
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
    let input = args.name();
    let name = input.split(':').next().unwrap_or("");
    match patterns::LIST.iter().any(|pattern| pattern.name == name) && error.help.is_some() {
        true => error.help(format!("for the pattern, write {}{input}", input::PATTERN)),
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

/// The error for a file of a kind that the subcommand does not accept.
pub(crate) fn wrong_kind(name: &str, message: impl Into<String>) -> InputError {
    InputError::new(name, At::Whole, message)
}

/// The error for a file without connections.
pub(crate) fn not_a_program(name: &str, what: &str) -> InputError {
    let wanted = "expected a mesh, graph, matrix, connection set or schedule";
    wrong_kind(name, format!("this is {what}; {wanted}"))
}

fn refuse_mesh_options(args: &InputArgs) -> Result<(), InputError> {
    let given = [
        ("--parts", args.options.parts.is_some()),
        ("--partition", args.options.partition.is_some()),
        ("--input-format", args.options.input_format.is_some()),
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
