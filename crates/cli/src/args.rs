//! The command line: subcommands, options and their help.
//!
//! This module checks only the syntax of arguments. Whether a machine exists or a pattern fits it is
//! checked by the crate that defines machines or patterns. Options that were renamed keep their
//! former names as hidden aliases for one release.

mod compiler;
mod input;
mod output;
mod predict;
mod show;
mod soak;
mod sweep;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use conset_ir::limits;

pub(crate) use compiler::{
    AlgorithmArg, By, Compare, CompileArgs, CompilerArgs, ObjectiveArg, RunArgs,
};
pub(crate) use input::{
    ElementsArg, HaloArg, InputArgs, InputOptions, MachineArgs, PlacementArg, WordsArg,
};
pub(crate) use output::{TableArgs, TableFormat};
pub(crate) use predict::{ModelArg, Paper, PredictArgs, ReproduceArgs, Reproduced};
#[cfg(test)]
pub(crate) use show::VIEWS;
pub(crate) use show::{GanttRows, ProfileOptions, ShowArgs, is_view, view_names};
pub(crate) use soak::SoakArgs;
pub(crate) use sweep::{SweepArgs, Variable};

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
    disable_help_subcommand = true,
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
    /// Print only errors, and what -o -, --json or --format ask for.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Colours of errors and help. With auto, terminals get them unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "WHEN", default_value_t)]
    pub(crate) color: clap::ColorChoice,
    /// Memory limit, such as 4GiB or 500MB; inputs that need more are refused [default: three
    /// quarters of the available memory].
    #[arg(long, global = true, value_name = "SIZE", value_parser = crate::memory::size)]
    pub(crate) memory: Option<u64>,
}

/// The command line of this process.
///
/// # Errors
/// Wrong arguments, or a request for help.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let cli = Cli::from_arg_matches(&parser().try_get_matches()?)?;
    let topic = match &cli.command {
        Command::Help(HelpArgs { topic }) if topic.as_deref() != Some("words") => topic,
        _ => return Ok(cli),
    };
    let words = ["conset"].into_iter().chain(topic.as_deref()).chain(["--help"]);
    // Help is an error for clap.
    Cli::from_arg_matches(&parser().try_get_matches_from(words)?)
}

/// The parser.
pub(crate) fn parser() -> clap::Command {
    Cli::command()
}

/// The option for the format of an input, with its former name. `predict` and `bound` do without it:
/// they print tables, and `--format` is their format.
fn with_former_name(option: clap::Arg) -> clap::Arg {
    option.alias("format")
}

/// The colours that a command line which clap refused asks for.
pub(crate) fn color_of(arguments: impl Iterator<Item = OsString>) -> anstream::ColorChoice {
    let words: Vec<OsString> = arguments.collect();
    let joined = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--color="));
    let pairs = words.windows(2).filter(|pair| pair[0] == "--color");
    let choice = joined.chain(pairs.filter_map(|pair| pair[1].to_str())).last();
    color(choice.and_then(|choice| choice.parse().ok()).unwrap_or_default())
}

fn color(choice: clap::ColorChoice) -> anstream::ColorChoice {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
}

impl Cli {
    /// When errors are coloured.
    pub(crate) fn color(&self) -> anstream::ColorChoice {
        color(self.color)
    }
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
            Command::Tune(_) => "tune",
            Command::Patterns(_) => "patterns",
            Command::Generate(_) => "generate",
            Command::Soak(_) => "soak",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
            Command::Help(_) => "help",
        }
    }

    /// The file that the subcommand is asked to write; `-` is standard output.
    pub(crate) fn output(&self) -> Option<&Path> {
        match self {
            Command::Compile(args) => args.output.as_deref(),
            Command::Run(args) => args.trace.as_deref(),
            Command::Sweep(args) => args.output.as_deref(),
            Command::View(args) => Some(&args.output),
            Command::Machines(args) => args.output.as_deref(),
            Command::Tune(args) => Some(&args.output),
            Command::Patterns(args) => args.output.as_deref(),
            Command::Generate(args) => args.output.as_deref(),
            Command::Completions(args) => args.output.as_deref(),
            _ => None,
        }
    }

    /// The format of the tables that the subcommand prints, if it prints any.
    pub(crate) fn table_format(&self) -> Option<TableFormat> {
        let table = match self {
            Command::Predict(args) => args.table,
            Command::Sweep(args) => args.table,
            Command::Show(args) => args.table,
            Command::Diff(args) => args.table,
            Command::Bound(args) => args.table,
            Command::Machines(args) => args.table,
            Command::Patterns(args) => args.table,
            Command::Generate(args) => args.table,
            _ => return None,
        };
        Some(table.format)
    }

    /// The name of the input for errors about memory.
    pub(crate) fn subject(&self) -> String {
        let name = |path: &Path| path.display().to_string();
        let option = |name: &Option<OsString>| {
            name.as_ref().map_or(String::new(), |name| name.display().to_string())
        };
        match self {
            Command::Compile(args) => args.input.name(),
            Command::Run(args) => args.input.name(),
            Command::Bound(args) => args.input.name(),
            Command::Predict(args) => args.input.name(),
            Command::Sweep(args) => args.input.name(),
            Command::Reproduce(_) => "reproduce".into(),
            Command::Show(args) => name(args.file_and_view().0),
            Command::View(args) => args.input.name(),
            Command::Why(args) => name(&args.file),
            Command::Diff(args) => format!("{} and {}", name(&args.a), name(&args.b)),
            Command::Verify(args) => name(&args.file),
            Command::Emit(args) => name(&args.file),
            Command::Machines(args) => option(&args.spec),
            Command::Tune(_) => "tune".into(),
            Command::Patterns(args) => args.pattern.clone().unwrap_or_default(),
            Command::Generate(args) => args.mesh.clone().unwrap_or_default(),
            Command::Info(args) => name(&args.file),
            Command::Soak(_) => "soak".into(),
            Command::Completions(_) => "completions".into(),
            Command::Man(_) => "man".into(),
            Command::Help(_) => "help".into(),
        }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile an input to a verified phase schedule.
    #[command(after_help = "\
Example: conset compile mesh.graph --parts 64 -o mesh.json
The extension of OUT selects the format: .json, .cset (text), .csb (binary), .csi (image, binary).")]
    #[command(mut_arg("input_format", with_former_name))]
    Compile(CompileArgs),
    /// Execute on the emulated fabric and check every word; compile first if necessary.
    #[command(after_help = "\
Example: conset run pattern:hypercube --words 256 --trace hypercube.trace.json.gz
         conset run all.json --profile
The trace opens in ui.perfetto.dev or chrome://tracing; one microsecond there is one clock.")]
    #[command(mut_arg("input_format", with_former_name))]
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
    #[command(after_help = show::after_help())]
    Show(ShowArgs),
    /// Write a page that shows a schedule, or two side by side, in a browser; compile first if necessary.
    #[command(after_help = "\
Example: conset view all.json -o all.html
         conset view mesh.msh --machine torus:8x8 -o mesh.html
         conset view before.json after.json -o both.html
The page is one file that needs no network.")]
    #[command(mut_arg("input_format", with_former_name))]
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
    #[command(mut_arg("input_format", with_former_name))]
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
    #[command(mut_arg("input_format", with_former_name))]
    Info(InfoArgs),
    /// List the machine presets, or describe one machine.
    #[command(after_help = "Example: conset machines torus:4x4x4")]
    Machines(MachinesArgs),
    /// Measure what messages cost on the cluster it runs on, in an MPI job, and write a machine file.
    #[command(after_help = "\
Example: conset tune -o cluster.toml
It is started by the launcher of MPI with as many ranks as the program will have, numbered node by node:
         mpirun -n 64 conset tune -o cluster.toml
         conset compile mesh.msh --machine cluster.toml --by best
Only a conset that was built with the feature `mpi` can measure.")]
    Tune(TuneArgs),
    /// List the communication patterns, or write one to a connection set file.
    #[command(after_help = "Example: conset patterns transpose --machine iwarp -o transpose.cset")]
    Patterns(PatternsArgs),
    /// Generate a mesh: a test fixture, or a mesh of the size of one in the paper.
    #[command(after_help = "Example: conset generate m11k -o m11k.msh")]
    Generate(GenerateArgs),
    /// Test conset with random programs: compile, verify, run and compare everything, and shrink what
    /// fails.
    #[command(after_help = "\
Example: conset soak --programs 10000 --seed 7
         conset soak --hours 8 -o failures
         mpirun -n 3 conset soak --mpi --programs 10000
A program that fails is shrunk and written as DIR/soak-SEED.cset, and the exit code is then 1.
Ctrl-C ends the run after the program in progress; a second one ends it at once.")]
    Soak(SoakArgs),
    /// Write the completions of a shell.
    #[command(after_help = "\
Example: conset completions bash > ~/.local/share/bash-completion/completions/conset")]
    Completions(CompletionsArgs),
    /// Write the man pages of all subcommands.
    #[command(after_help = "Example: conset man -o ~/.local/share/man/man1")]
    Man(ManArgs),
    /// Print this message, the help of a subcommand, or the meaning of the words of the output.
    #[command(after_help = "\
Example: conset help show
         conset help words")]
    Help(HelpArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// A second input, to compare with the first one.
    #[arg(value_name = "INPUT2")]
    pub(crate) second: Option<OsString>,
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
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Schedule or image.
    pub(crate) file: PathBuf,
    /// Also check that the schedule was compiled from this input (a mesh, pattern:NAME, ...).
    /// Requires the options of the compilation that change the machine or the connections.
    #[arg(long, value_name = "INPUT")]
    pub(crate) against: Option<OsString>,
    #[command(flatten)]
    pub(crate) options: InputOptions,
}

#[derive(Args, Debug)]
pub(crate) struct BoundArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) table: TableArgs,
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
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
    /// Keep nodes separate that the file joins across a periodic boundary.
    #[arg(long)]
    pub(crate) ignore_periodic: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MachinesArgs {
    /// Machine to describe: a preset with optional sizes, or a machine file.
    pub(crate) spec: Option<OsString>,
    /// Set a machine parameter (channels_per_cell=20); may be repeated.
    #[arg(long = "param", alias = "set", value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    /// Write the machine to a machine file (.toml) that you can edit; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// Divide the ranks into nodes of N instead of asking MPI which of them share memory, for example
    /// into the sockets of a computer.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, conset_ir::convert::to_u64(limits::CELLS)))]
    pub(crate) cells_per_node: Option<usize>,
    /// Machine file to write (.toml); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
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
    #[command(flatten)]
    pub(crate) table: TableArgs,
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
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
    /// Output file [default: standard output].
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Output folder; created if necessary.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// A subcommand, or words.
    topic: Option<String>,
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
