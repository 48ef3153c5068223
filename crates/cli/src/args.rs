//! The command line: what can be typed, and what it says when asked.
//!
//! Only the shape of the words is checked here; what they mean (whether a machine exists, a
//! pattern fits it) is said by the crate that knows.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use conset_ir::limits;

/// A whole number from `least` to `most`.
fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

const ANY_U32: u64 = u32::MAX as u64;

/// Communication compiler: connection sets in, verified phase schedules out.
#[derive(Parser, Debug)]
#[command(
    name = "conset",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 infeasible or rejected, 2 wrong usage or input, 3 a bug of ours.

Examples:
  conset run fixtures/meshes/plate.msh
  conset compile pattern:all-to-all --words 256 -o all.json
  conset show phases all.json"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Print one JSON value for machines instead of a text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show no progress.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The most memory to take, as 4GiB or 500MB [default: three quarters of what is available]. An
    /// input that needs more is refused.
    #[arg(long, global = true, value_name = "SIZE", value_parser = crate::memory::size)]
    pub(crate) memory: Option<u64>,
}

impl Verb {
    /// What the memory is needed for, as the user named it.
    pub(crate) fn subject(&self) -> String {
        let name = |path: &Path| path.display().to_string();
        match self {
            Verb::Compile(args) => args.input.input.clone(),
            Verb::Run(args) => args.input.input.clone(),
            Verb::Bound(args) => args.input.input.clone(),
            Verb::Reproduce(_) => "reproduce".into(),
            Verb::Show(args) => args.what_and_file.last().cloned().unwrap_or_default(),
            Verb::Why(args) => name(&args.file),
            Verb::Diff(args) => format!("{} and {}", name(&args.a), name(&args.b)),
            Verb::Verify(args) => name(&args.file),
            Verb::Emit(args) => name(&args.file),
            Verb::Machines(args) => args.spec.clone().unwrap_or_default(),
            Verb::Patterns(args) => args.pattern.clone().unwrap_or_default(),
            Verb::Generate(args) => args.mesh.clone().unwrap_or_default(),
        }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Compile an input to a verified phase schedule.
    #[command(after_help = "\
Example: conset compile mesh.graph --parts 64 -o mesh.json
The name of OUT says the form: .json, .cset (text), .csb (binary), .csi (image, binary).")]
    Compile(CompileArgs),
    /// Compile if need be, execute on the emulated fabric, check every word.
    #[command(after_help = "\
Example: conset run pattern:hypercube --words 256 --trace hypercube.trace.json
The trace opens in chrome://tracing or ui.perfetto.dev.")]
    Run(RunArgs),
    /// The paper's tables and figures, ours beside its own.
    #[command(after_help = "Example: conset reproduce 2 --figures figures")]
    Reproduce(ReproduceArgs),
    /// Show what was compiled.
    #[command(after_help = "\
Example: conset show cell 5 all.json
WHAT is summary, phases, routes, timetable, channels, links, contexts, cell C or connection C;
C is written 5 or c5 for a cell, 12 or x12 for a connection.")]
    Show(ShowArgs),
    /// Say why a connection has this phase, route and start, and what others would have cost.
    #[command(after_help = "\
Example: conset why all.json 12
CONNECTION is an id, 12 or x12, or a name. Clocks are predictions of the cost model.")]
    Why(WhyArgs),
    /// Compare two compiles: machine, connections, phases, routes, starts, tables.
    #[command(after_help = "\
Example: conset diff before.json after.json
Connections are matched by name, else by their ends. The exit code is 0 whatever changed.")]
    Diff(DiffArgs),
    /// Put a schedule or an image through the independent checker.
    #[command(after_help = "\
Example: conset verify all.json
         conset verify all.json --against pattern:all-to-all --words 256")]
    Verify(VerifyArgs),
    /// Lower bounds on phases and clocks, without compiling.
    #[command(after_help = "Example: conset bound pattern:all-to-all --words 2048")]
    Bound(BoundArgs),
    /// Write source code or listings from a schedule.
    #[command(after_help = "Example: conset emit all.json --lang rust -o generated")]
    Emit(EmitArgs),
    /// List the machine presets, or describe a machine.
    #[command(after_help = "Example: conset machines torus:4x4x4")]
    Machines(MachinesArgs),
    /// List the communication patterns, or write one as a connection set.
    #[command(after_help = "Example: conset patterns transpose --machine iwarp -o transpose.cset")]
    Patterns(PatternsArgs),
    /// Make a mesh: the fixtures, and meshes of the paper's sizes.
    #[command(after_help = "Example: conset generate m11k -o m11k.msh")]
    Generate(GenerateArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MachineArgs {
    /// The machine: a preset with optional sizes (iwarp, iwarp:16x16, torus:4x4x4, mesh:8x8,
    /// ring:16, hypercube:6, fat-tree:64) or a machine file (.toml). Default: what the input
    /// names, else iwarp.
    #[arg(long, value_name = "SPEC")]
    pub(crate) machine: Option<String>,
    /// Set one machine parameter (channels_per_cell=20); may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A cell (c5), a link (c0->c1) or both links between two cells (c0-c1) that is dead, beside
    /// those that the machine names; may be repeated. With --from, an older compile is repaired.
    #[arg(long = "dead", value_name = "PART")]
    pub(crate) dead: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// A mesh, graph, matrix, decomposition, connection set, pattern:NAME, or - for standard
    /// input.
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) options: InputOptions,
}

/// How an input becomes a program on a machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputOptions {
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// The input's format, where its name does not say.
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Number of parts [default: the machine's cells].
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(1, limits::PARTS as u64),
        allow_negative_numbers = true
    )]
    pub(crate) parts: Option<usize>,
    /// A partition file: the part of each element, vertex or row, one a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) partition: Option<PathBuf>,
    /// What is divided into parts: what the file lists, or the triangles of a nodal graph.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) elements: ElementsArg,
    /// How parts come to cells [default: best; given for a connection set or a pattern, whose
    /// cells are placed anew as if they were parts if this is said].
    #[arg(long, value_enum)]
    pub(crate) placement: Option<PlacementArg>,
    /// Words of each connection of a pattern [default: 32].
    #[arg(
        long,
        value_name = "K",
        value_parser = whole::<u32>(1, limits::WORDS.into()),
        allow_negative_numbers = true
    )]
    pub(crate) words: Option<u32>,
    /// The seed of every random choice [default: 1].
    #[arg(
        long,
        value_name = "S",
        value_parser = whole::<u64>(0, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
}

impl InputArgs {
    /// The seed, if nobody says: 1.
    pub(crate) fn seed(&self) -> u64 {
        self.options.seed.unwrap_or(1)
    }
}

impl InputOptions {
    /// The first option that is given, if any is.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--machine", self.machine.machine.is_some()),
            ("--set", !self.machine.set.is_empty()),
            ("--format", self.format.is_some()),
            ("--parts", self.parts.is_some()),
            ("--partition", self.partition.is_some()),
            ("--elements", matches!(self.elements, ElementsArg::Triangles)),
            ("--placement", self.placement.is_some()),
            ("--words", self.words.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Part i on the i-th live cell.
    Given,
    /// Along a space-filling curve.
    Curve,
    /// By recursive bisection, for few word-hops.
    Bisect,
    /// All of these, improved for phases, links and word-hops; the cheapest.
    Best,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ElementsArg {
    /// Elements of a mesh, vertices of a graph, rows of a matrix.
    #[default]
    AsRead,
    /// The triangles of a nodal graph: its 3-cycles.
    Triangles,
}

#[derive(Args, Debug)]
pub(crate) struct CompilerArgs {
    /// Router and scheduler [default: best].
    #[arg(long, value_enum)]
    pub(crate) algorithm: Option<AlgorithmArg>,
    /// What `best` minimises [default: time].
    #[arg(long, value_enum)]
    pub(crate) objective: Option<ObjectiveArg>,
    /// Sets that may be exchanged at the same time (halo,flux), because what the one sends does
    /// not depend on what the other received: they are joined into one set where that is faster.
    /// May be repeated; not together with --from or --budget.
    #[arg(long, value_name = "SETS", conflicts_with_all = ["from", "budget"])]
    pub(crate) fuse: Vec<String>,
    /// Rounds of rip-up and reroute (the paper's k).
    #[arg(
        long,
        value_name = "K",
        value_parser = whole::<u32>(0, ANY_U32),
        allow_negative_numbers = true
    )]
    pub(crate) reroutes: Option<u32>,
    /// Refuse a set that takes more phases than this, with a witness and the cheapest fix.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(0, ANY_U32),
        allow_negative_numbers = true
    )]
    pub(crate) max_phases: Option<u32>,
    /// Let `best` make plans for so many seconds, or until one is at the bound. The result depends
    /// on the machine it is compiled on; --attempts can be repeated.
    #[arg(
        long,
        value_name = "SECONDS",
        conflicts_with = "attempts",
        allow_negative_numbers = true
    )]
    pub(crate) budget: Option<f64>,
    /// Let `best` make so many plans of each set, or until one is at the bound.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1, ANY_U32),
        allow_negative_numbers = true
    )]
    pub(crate) attempts: Option<u32>,
    /// Print every plan that was tried: planner, phases, clocks, seconds.
    #[arg(long)]
    pub(crate) explain_search: bool,
    /// Lift the budgets that keep work and memory in proportion to the input.
    #[arg(long)]
    pub(crate) unlimited: bool,
    /// Keep what still fits of an older compile (a schedule or image for the same machine; other
    /// cells and links may be dead), and say how much of the tables changed.
    #[arg(long, value_name = "OLD")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AlgorithmArg {
    /// The ConSet paper's own (sections 4.4.1 and 4.4.2).
    Paper,
    /// Several ways to plan, the best of them kept.
    Best,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ObjectiveArg {
    /// Clocks.
    Time,
    /// Phases, then clocks.
    Phases,
}

#[derive(Args, Debug)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) compiler: CompilerArgs,
    /// Where to write the schedule (.json, .cset, .csb) or image (.csi); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) compiler: CompilerArgs,
    /// Execute the same set once more by another model, and compare.
    #[arg(long, value_enum)]
    pub(crate) against: Option<Against>,
    /// With --against messages: in which order a cell sends.
    #[arg(long, value_enum, default_value_t, requires = "against")]
    pub(crate) message_order: MessageOrderArg,
    /// Write a trace of streams and context switches (Chrome/Perfetto JSON).
    #[arg(long, value_name = "OUT")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Against {
    /// Message passing: wormhole messages over deterministic routes.
    Messages,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum MessageOrderArg {
    /// The order of the set.
    #[default]
    Given,
    /// A random order of each cell's own, by the seed, as the paper did for all-to-all.
    Random,
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// The table, 1 to 6 [default: all].
    #[arg(value_parser = whole::<u8>(1, 6), allow_negative_numbers = true)]
    pub(crate) table: Option<u8>,
    /// Write Figures 2 to 6 (those of the tables computed) as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// The folder of real meshes, with walshaw/crack.graph and spark98/sf10.64.pack; rows whose
    /// file is not there are left out.
    #[arg(long, value_name = "DIR", default_value = "../shared/meshes")]
    pub(crate) meshes: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// What to show, then the schedule: `phases all.json`, `cell 5 all.json`.
    #[arg(
        num_args = 2..=3,
        value_names = ["WHAT", "FILE"],
        required = true,
        allow_negative_numbers = true
    )]
    pub(crate) what_and_file: Vec<String>,
    /// Only this phase: 3 or p3.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) phase: Option<String>,
    /// Only this set.
    #[arg(long = "set-name", value_name = "NAME")]
    pub(crate) set_name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// A schedule or an image.
    pub(crate) file: PathBuf,
    /// The connection: its id (12 or x12) or its name.
    #[arg(allow_negative_numbers = true)]
    pub(crate) connection: String,
    /// The set it is in, where several have one like it.
    #[arg(long = "set-name", value_name = "NAME")]
    pub(crate) set_name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// A schedule or an image: before.
    pub(crate) a: PathBuf,
    /// A schedule or an image: after.
    pub(crate) b: PathBuf,
    /// List every difference, not only the first of each kind.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// A schedule or an image.
    pub(crate) file: PathBuf,
    /// Check besides that it is of this input, connection by connection: a mesh, pattern:NAME, or
    /// whatever it was compiled of, with the options it was compiled with.
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
    /// A schedule or an image.
    pub(crate) file: PathBuf,
    /// What to write.
    #[arg(long, value_enum)]
    pub(crate) lang: Language,
    /// With --lang rust: where the crate conset-runtime is, for an emitted crate that is built beside a checkout;
    /// without it, the crate depends on the published version.
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime: Option<PathBuf>,
    /// With --lang c: what the names begin with [default: conset_program].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The folder to write into; made if it is not there.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Language {
    /// A crate with typed connection names that links against conset-runtime.
    Rust,
    /// A header of names and a source that holds the image, for the C library.
    C,
    /// A readable listing of contexts and operation lists.
    Listing,
    /// The image in the text form (.cset).
    Text,
}

#[derive(Args, Debug)]
pub(crate) struct MachinesArgs {
    /// A machine to describe: a preset with optional sizes, or a machine file.
    pub(crate) spec: Option<String>,
    /// Set one machine parameter (channels_per_cell=20); may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Write the machine as a machine file (.toml) to start your own from; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct PatternsArgs {
    /// A pattern to make: its name, with parameters after a colon.
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
    /// Where to write the connection set (.cset, .json, .csb); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// The mesh: m11k, c10k, c100k, q20k, plate:NXxNY, ...; without it, the list.
    pub(crate) mesh: Option<String>,
    /// The seed of the random points.
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1,
        value_parser = whole::<u64>(0, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
    /// The version of the .msh format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) msh: Msh,
    /// Where to write it (Gmsh .msh); - for standard output.
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
