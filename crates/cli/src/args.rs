//! The command line: subcommands, options and their help.
//!
//! This module checks only the syntax of arguments. Whether a machine exists or a pattern fits it is
//! checked by the crate that defines machines or patterns. Options that were renamed keep their
//! former names as hidden aliases for one release.

mod compiler;
mod input;
mod predict;
mod show;
mod sweep;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use conset_ir::convert::to_u64;
use conset_ir::limits;

pub(crate) use compiler::{
    AlgorithmArg, By, Compare, CompileArgs, CompilerArgs, MessageOrderArg, ObjectiveArg, RunArgs,
};
pub(crate) use input::{
    ElementsArg, HaloArg, InputArgs, InputOptions, MachineArgs, PlacementArg, WordsArg,
};
pub(crate) use predict::{ModelArg, Paper, PredictArgs, ReproduceArgs, Reproduced};
pub(crate) use show::{GanttRows, ProfileOptions, ShowArgs};
pub(crate) use sweep::SweepArgs;

/// A whole number from `least` to `most`.
fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// Communication compiler: turns connection sets into verified phase schedules.
#[derive(Parser, Debug)]
#[command(
    name = "conset",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 success, 1 infeasible or rejected, 2 wrong usage or input, 3 bug in conset.

Examples:
  conset run fixtures/meshes/plate.msh
  conset compile pattern:all-to-all --words 256 -o all.json
  conset show phases all.json"
)]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print one JSON value instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Do not show progress.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Memory limit, such as 4GiB or 500MB; inputs that need more are refused [default: three
    /// quarters of the available memory].
    #[arg(long, global = true, value_name = "SIZE", value_parser = crate::memory::size)]
    pub(crate) memory: Option<u64>,
}

impl Command {
    /// The name of the subcommand.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Compile(_) => "compile",
            Command::Run(_) => "run",
            Command::Predict(_) => "predict",
            Command::Sweep(_) => "sweep",
            Command::Reproduce(_) => "reproduce",
            Command::Show(_) => "show",
            Command::View(_) => "view",
            Command::Why(_) => "why",
            Command::Diff(_) => "diff",
            Command::Verify(_) => "verify",
            Command::Bound(_) => "bound",
            Command::Info(_) => "info",
            Command::Emit(_) => "emit",
            Command::Machines(_) => "machines",
            Command::Patterns(_) => "patterns",
            Command::Generate(_) => "generate",
        }
    }

    /// The name of the input for errors about memory.
    pub(crate) fn subject(&self) -> String {
        let name = |path: &Path| path.display().to_string();
        match self {
            Command::Compile(args) => args.input.input.clone(),
            Command::Run(args) => args.input.input.clone(),
            Command::Bound(args) => args.input.input.clone(),
            Command::Predict(args) => args.input.input.clone(),
            Command::Sweep(args) => args.input.input.clone(),
            Command::Reproduce(_) => "reproduce".into(),
            Command::Show(args) => args.file_and_view().0.to_owned(),
            Command::View(args) => args.input.input.clone(),
            Command::Why(args) => name(&args.file),
            Command::Diff(args) => format!("{} and {}", name(&args.a), name(&args.b)),
            Command::Verify(args) => name(&args.file),
            Command::Emit(args) => name(&args.file),
            Command::Machines(args) => args.spec.clone().unwrap_or_default(),
            Command::Patterns(args) => args.pattern.clone().unwrap_or_default(),
            Command::Generate(args) => args.mesh.clone().unwrap_or_default(),
            Command::Info(args) => name(&args.file),
        }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile an input to a verified phase schedule.
    #[command(after_help = "\
Example: conset compile mesh.graph --parts 64 -o mesh.json
The extension of OUT selects the format: .json, .cset (text), .csb (binary), .csi (image, binary).")]
    Compile(CompileArgs),
    /// Execute on the emulated fabric and check every word; compile first if necessary.
    #[command(after_help = "\
Example: conset run pattern:hypercube --words 256 --trace hypercube.trace.json.gz
         conset run all.json --profile
The trace opens in ui.perfetto.dev or chrome://tracing; one microsecond there is one clock.")]
    Run(RunArgs),
    /// Predict every way to exchange an input (each planner of steps, phases, plain messages) by
    /// several cost models, side by side with their ranks.
    #[command(after_help = "\
Example: conset predict pattern:all-to-all --machine cm5:64 --words 16 --measure
The models are c3 (the C3 paper's units of supersteps), paper (the papers' formulas, where they
apply) and steps (the prediction of `conset compile`). With --measure every way is executed on the
emulated fabric, and the error of each model is printed. C3 units are no clocks: the errors of c3
are those after fitting one factor to the measurements.")]
    Predict(PredictArgs),
    /// Compile an input for every combination of some machine parameters and options, execute it, and
    /// compare the clocks.
    #[command(after_help = "\
Example: conset sweep pattern:all-to-all --vary channels_per_cell=8..32+4 --vary streams=1,2
         conset sweep mesh.msh --vary machine=torus:4x4,mesh:4x4 --vary t_sync=0..800+100 -o sweep.html
A combination that fails is a row with its error.")]
    Sweep(SweepArgs),
    /// Reproduce the tables and figures of the ConSet paper, or of others.
    #[command(after_help = "\
Example: conset reproduce 2 --figures figures
         conset reproduce c3 3")]
    Reproduce(ReproduceArgs),
    /// Show a schedule: its summary, phases or steps, routes, timetable, loads, maps, charts and
    /// profiles.
    #[command(after_help = "\
Example: conset show all.json cell 5
         conset show all.json links --top 10
         conset show all.json map --phase 3
         conset show all.json profile --what-if
WHAT is:
  summary       what was compiled, with its bounds (the default)
  phases        the phases: routes, words, clocks
  routes        every route, with its words and slot
  timetable     the slots in the order of time
  channels      the channels in use on each cell
  links         the load of each link, in each phase
  cells         the connections of each cell, and its busy and idle clocks
  contexts      forwarding tables and operation lists
  map           the machine, with the words over each link
  gantt         the predicted timetable as a chart: agents, or links with --by links
  profile       where every predicted clock went, and the critical path
  cell C        tables and operations of a cell (5 or c5)
  link L        the routes over a link (148, l148 or 'c37 -> c38')
  connection X  the routes of a connection (12, x12, its name or 'c45 -> c37')
A schedule of steps has steps, but no phases, routes, timetable, channels and contexts.")]
    Show(ShowArgs),
    /// Write a page that shows a schedule, or two side by side, in a browser; compile first if necessary.
    #[command(after_help = "\
Example: conset view all.json -o all.html
         conset view mesh.msh --machine torus:8x8 -o mesh.html
         conset view before.json after.json -o both.html
The page is one file that needs no network.")]
    View(ViewArgs),
    /// Explain the phase, route and start of a connection, and the cost of alternatives.
    #[command(after_help = "\
Example: conset why all.json 12
CONNECTION is an id (12 or x12) or a name. Clocks are predicted by the cost model.")]
    Why(WhyArgs),
    /// Compare two schedules: machine, connections, phases, routes, starts, tables.
    #[command(after_help = "\
Example: conset diff before.json after.json
Connections are matched by name, or else by their ends. Differences do not change the exit code.")]
    Diff(DiffArgs),
    /// Check a schedule or an image with the independent checker.
    #[command(after_help = "\
Example: conset verify all.json
         conset verify all.json --against pattern:all-to-all --words 256")]
    Verify(VerifyArgs),
    /// Compute lower bounds on phases and clocks without compiling.
    #[command(after_help = "Example: conset bound pattern:all-to-all --words 2048")]
    Bound(BoundArgs),
    /// Write source code or listings from a schedule.
    #[command(after_help = "Example: conset emit all.json --format rust -o generated")]
    Emit(EmitArgs),
    /// Describe a file: what a mesh, graph or matrix contains and what of it is not used, or the sets
    /// of a compiled file.
    #[command(after_help = "Example: conset info wing.msh")]
    Info(InfoArgs),
    /// List the machine presets, or describe one machine.
    #[command(after_help = "Example: conset machines torus:4x4x4")]
    Machines(MachinesArgs),
    /// List the communication patterns, or write one to a connection set file.
    #[command(after_help = "Example: conset patterns transpose --machine iwarp -o transpose.cset")]
    Patterns(PatternsArgs),
    /// Generate a mesh: a test fixture, or a mesh of the size of one in the paper.
    #[command(after_help = "Example: conset generate m11k -o m11k.msh")]
    Generate(GenerateArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// A second input, to compare with the first one.
    #[arg(value_name = "INPUT2")]
    pub(crate) second: Option<String>,
    #[command(flatten)]
    pub(crate) compiler: CompilerArgs,
    /// Greatest size of the page, such as 5MB; details that do not fit are left out, which the page
    /// says [default: 20MB].
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::bytes)]
    pub(crate) size_limit: Option<u64>,
    /// Output file (.html); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Schedule or image.
    pub(crate) file: PathBuf,
    /// Connection: id (12 or x12) or name.
    #[arg(allow_negative_numbers = true)]
    pub(crate) connection: String,
    /// Set of the connection, if several sets have one with this id or name.
    #[arg(long = "set", alias = "set-name", value_name = "NAME")]
    pub(crate) set_name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Schedule or image before the change.
    pub(crate) a: PathBuf,
    /// Schedule or image after the change.
    pub(crate) b: PathBuf,
    /// List all differences, not only the first few of each kind.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Schedule or image.
    pub(crate) file: PathBuf,
    /// Also check that the schedule was compiled from this input (a mesh, pattern:NAME, ...).
    /// Requires the options of the compilation that change the machine or the connections.
    #[arg(long, value_name = "INPUT")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) options: InputOptions,
}

#[derive(Args, Debug)]
pub(crate) struct BoundArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct EmitArgs {
    /// Schedule or image.
    pub(crate) file: PathBuf,
    /// Output format.
    #[arg(long, alias = "lang", value_enum)]
    pub(crate) format: EmitFormat,
    /// With --format rust: path of the crate conset-runtime in a checkout [default: that of the
    /// checkout this command was built from if it exists, else the published version].
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime: Option<PathBuf>,
    /// With --format rust: git repository and revision of conset-runtime.
    #[arg(long, value_name = "URL@REV", conflicts_with = "runtime")]
    pub(crate) runtime_git: Option<String>,
    /// With --format c: prefix of all names [default: conset_program].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Output folder; created if necessary.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EmitFormat {
    /// A Rust crate with typed connection names that links against conset-runtime.
    Rust,
    /// A C header with names and a C source with the image, for the C library.
    C,
    /// A GOAL schedule for the simulator LogGOPSim; of step plans only.
    Goal,
    /// A readable listing of contexts and operation lists.
    Listing,
    /// The image in the text form (.cset).
    Text,
}

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Mesh, graph, matrix, decomposition, connection set, schedule, image or machine file; - for
    /// standard input.
    pub(crate) file: PathBuf,
    /// Input format, if it cannot be inferred from the file.
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Keep nodes separate that the file joins across a periodic boundary.
    #[arg(long)]
    pub(crate) ignore_periodic: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MachinesArgs {
    /// Machine to describe: a preset with optional sizes, or a machine file.
    pub(crate) spec: Option<String>,
    /// Set a machine parameter (channels_per_cell=20); may be repeated.
    #[arg(long = "param", alias = "set", value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    /// Write the machine to a machine file (.toml) that you can edit; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct PatternsArgs {
    /// Pattern to write: its name, with parameters after a colon.
    pub(crate) pattern: Option<String>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Words of each connection.
    #[arg(
        long,
        value_name = "K",
        default_value_t = 32,
        value_parser = whole::<u32>(1, limits::WORDS.into()),
        allow_negative_numbers = true
    )]
    pub(crate) words: u32,
    /// Output file (.cset, .json, .csb); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// Mesh: m11k, c10k, c100k, q20k, plate:NXxNY, ... Without it, list all meshes.
    pub(crate) mesh: Option<String>,
    /// Seed of the random points.
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        value_parser = whole::<u64>(0, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
    /// Version of the .msh format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) msh: Msh,
    /// Output file (Gmsh .msh); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Msh {
    /// Gmsh 4.1, ASCII.
    #[default]
    #[value(name = "4.1")]
    V41,
    /// Gmsh 4.1, binary.
    #[value(name = "4.1-binary")]
    V41Binary,
    /// Gmsh 2.2, ASCII.
    #[value(name = "2.2")]
    V22,
    /// Gmsh 2.2, binary.
    #[value(name = "2.2-binary")]
    V22Binary,
}
