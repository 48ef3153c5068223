//! The command line: subcommands, options and their help.
//!
//! This module checks only the syntax of arguments. Whether a machine exists or a pattern fits it is
//! checked by the crate that defines machines or patterns. Options that were renamed keep their
//! former names as hidden aliases for one release.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use conset::predict::Method;
use conset::scheduler::c3::C3Protocol;
use conset::steps::StepAlgorithm;
use conset_ir::convert::{to_f64, to_u32, to_u64, truncate};
use conset_ir::limits;
use conset_mesh::partition::MAX_IMBALANCE;

/// A whole number from `least` to `most`.
fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// What to reproduce.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reproduced {
    /// A table of the ConSet paper.
    Table(u8),
    /// Another paper.
    Paper(Paper),
}

/// A paper besides the ConSet paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Paper {
    C3,
    Cm5,
}

fn reproduced(text: &str) -> Result<Reproduced, String> {
    match text {
        "c3" => Ok(Reproduced::Paper(Paper::C3)),
        "cm5" => Ok(Reproduced::Paper(Paper::Cm5)),
        _ => whole(1, 6)(text)
            .map(Reproduced::Table)
            .map_err(|message| format!("{message}, or c3 or cm5")),
    }
}

/// A percentage, as a number of thousandths.
fn thousandths(text: &str) -> Result<u32, String> {
    let most = to_f64(MAX_IMBALANCE) / 10.0;
    let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=most).contains(percent));
    let thousandths = percent.map(|percent| to_u32(truncate((percent * 10.0).round())));
    thousandths.ok_or_else(|| format!("expected a percentage from 0 to {most}"))
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
    /// The name of the input for errors about memory.
    pub(crate) fn subject(&self) -> String {
        let name = |path: &Path| path.display().to_string();
        match self {
            Command::Compile(args) => args.input.input.clone(),
            Command::Run(args) => args.input.input.clone(),
            Command::Bound(args) => args.input.input.clone(),
            Command::Predict(args) => args.input.input.clone(),
            Command::Reproduce(_) => "reproduce".into(),
            Command::Show(args) => args.what_and_file.last().cloned().unwrap_or_default(),
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
Example: conset run pattern:hypercube --words 256 --trace hypercube.trace.json
The trace opens in chrome://tracing or ui.perfetto.dev.")]
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
    /// Reproduce the tables and figures of the ConSet paper, or of others.
    #[command(after_help = "\
Example: conset reproduce 2 --figures figures
         conset reproduce c3 3")]
    Reproduce(ReproduceArgs),
    /// Show a schedule: its summary, phases or steps, routes, timetable, channels, links, contexts, one cell or
    /// one connection.
    #[command(after_help = "\
Example: conset show cell 5 all.json
WHAT is summary, phases, routes, timetable, channels, links, contexts, cell C (5 or c5) or
connection X (12 or x12); of a schedule of steps: summary, steps, cell C or connection X.")]
    Show(ShowArgs),
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

#[derive(Args, Clone, Debug)]
pub(crate) struct MachineArgs {
    /// Machine: a preset with optional sizes (iwarp, iwarp:16x16, torus:4x4x4, mesh:8x8, ring:16,
    /// hypercube:6, fat-tree:64) or a machine file (.toml) [default: the machine that the input
    /// names, or iwarp].
    #[arg(long, value_name = "SPEC")]
    pub(crate) machine: Option<String>,
    /// Set a machine parameter (channels_per_cell=20); may be repeated.
    #[arg(long = "param", alias = "set", value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    /// Mark a cell (c5), a link (c0->c1) or both links between two cells (c0-c1) as dead; may be
    /// repeated.
    #[arg(long = "dead", value_name = "CELL|LINK")]
    pub(crate) dead: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// Mesh, graph, matrix, decomposition, connection set or pattern:NAME (`conset run` also takes a
    /// schedule or an image); - for standard input.
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) options: InputOptions,
}

/// Options for reading an input.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputOptions {
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Input format, if the contents and the name of the file do not show it.
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Number of parts [default: number of cells of the machine].
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(1, to_u64(limits::PARTS)),
        allow_negative_numbers = true
    )]
    pub(crate) parts: Option<usize>,
    /// Partition file: the part of each element, vertex or row, one per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) partition: Option<PathBuf>,
    /// Replace the decomposition that the input states by one of the partitioner.
    #[arg(long, conflicts_with = "partition")]
    pub(crate) repartition: bool,
    /// By how many percent the heaviest part may exceed the average weight [default: 3].
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = thousandths,
        conflicts_with = "partition",
        allow_negative_numbers = true
    )]
    pub(crate) imbalance: Option<u32>,
    /// Look at no more than N partitions; 1 is METIS's own with the given seed [default: N of
    /// --max-plans, or until --time-limit, or by the size of the input].
    #[arg(
        long = "max-partitions",
        value_name = "N",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        conflicts_with = "partition",
        allow_negative_numbers = true
    )]
    pub(crate) max_partitions: Option<u32>,
    /// Keep nodes separate that the input joins across a periodic boundary.
    #[arg(long)]
    pub(crate) ignore_periodic: bool,
    /// What is partitioned.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) elements: ElementsArg,
    /// What parts exchange [default: nodes for meshes, rows for graphs and matrices].
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) halo: Option<HaloArg>,
    /// Layers of neighbours that a part needs, with --halo faces, edges or rows [default: 1].
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) layers: Option<u32>,
    /// Words of each exchanged node, element or row: a number, or a file with one number for each
    /// [default: 1].
    #[arg(long, value_name = "K|FILE", allow_negative_numbers = true)]
    pub(crate) words_per_node: Option<WordsArg>,
    /// Placement of parts on cells [default: best]. If it is set for a connection set or a
    /// pattern, its cells are treated as parts and placed.
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
    /// Seed of all random choices [default: 1].
    #[arg(
        long,
        value_name = "S",
        value_parser = whole::<u64>(0, u64::MAX),
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
}

impl InputArgs {
    /// The seed; the default is 1.
    pub(crate) fn seed(&self) -> u64 {
        self.options.seed.unwrap_or(1)
    }
}

impl InputOptions {
    /// The first option that is given, if any is.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--machine", self.machine.machine.is_some()),
            ("--param", !self.machine.params.is_empty()),
            ("--format", self.format.is_some()),
            ("--parts", self.parts.is_some()),
            ("--partition", self.partition.is_some()),
            ("--repartition", self.repartition),
            ("--imbalance", self.imbalance.is_some()),
            ("--max-partitions", self.max_partitions.is_some()),
            ("--ignore-periodic", self.ignore_periodic),
            ("--elements", matches!(self.elements, ElementsArg::Triangles)),
            ("--halo", self.halo.is_some()),
            ("--layers", self.layers.is_some()),
            ("--words-per-node", self.words_per_node.is_some()),
            ("--placement", self.placement.is_some()),
            ("--words", self.words.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// What parts exchange.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HaloArg {
    /// Partial sums of shared nodes, in both directions.
    Nodes,
    /// Values of elements, for elements of other parts that share a face.
    Faces,
    /// Values of elements, for elements of other parts that share an edge.
    Edges,
    /// Values of rows, vertices or nodes, from their owner to the parts that need them.
    Rows,
}

/// Words per node: a number or a file.
#[derive(Clone, Debug)]
pub(crate) enum WordsArg {
    Each(u32),
    File(PathBuf),
}

impl std::str::FromStr for WordsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(text.strip_prefix(['-', '+']).unwrap_or(text)) {
            return Ok(Self::File(text.into()));
        }
        match text.parse() {
            Ok(words) if (1..=limits::WORDS).contains(&words) => Ok(Self::Each(words)),
            _ => Err(format!("expected 1 to {}, or the name of a file", limits::WORDS)),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Part i is placed on the i-th live cell.
    Given,
    /// Along a space-filling curve.
    Curve,
    /// By recursive bisection, for few word-hops.
    Bisect,
    /// The cheapest of these, after local improvement of phases, link loads and word-hops.
    Best,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ElementsArg {
    /// Elements of a mesh, vertices of a graph, rows of a matrix.
    #[default]
    AsRead,
    /// The triangles (3-cycles) of a nodal graph.
    Triangles,
}

#[derive(Args, Debug)]
pub(crate) struct CompilerArgs {
    /// What the input is compiled to [default: phases].
    #[arg(long, value_enum)]
    pub(crate) by: Option<By>,
    /// Algorithm: auto or paper for phases; auto, linear, pairwise, balanced, ring, recursive,
    /// greedy, loaded, halves or levels:RxR.. (as levels:16x16) for steps [default: auto]. Levels may
    /// have a numbering of the cells (levels:16x16/columns; also rows, tiles), and halves a share
    /// (halves:0.75); docs/planners.md lists all parts.
    #[arg(long, value_parser = algorithm)]
    pub(crate) algorithm: Option<AlgorithmArg>,
    /// Objective that `auto` minimises [default: time].
    #[arg(long, value_enum)]
    pub(crate) objective: Option<ObjectiveArg>,
    /// Sets (halo,flux) that may be exchanged at the same time because neither sends what the other
    /// receives; they are merged into one set if that is faster. May be repeated.
    #[arg(long, value_name = "SETS", conflicts_with_all = ["reuse", "time_limit"])]
    pub(crate) fuse: Vec<String>,
    /// Iterations of rip-up and reroute with --algorithm paper (k in the paper) [default: 8].
    #[arg(
        long,
        alias = "reroutes",
        value_name = "K",
        value_parser = whole::<u32>(0, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) rip_up_iterations: Option<u32>,
    /// Refuse sets that need more phases, and suggest the smallest changes that would reduce them.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(0, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) max_phases: Option<u32>,
    /// Search time limit in seconds; the search also ends at the bound. The result depends on the
    /// speed of this computer; use --max-plans for reproducible results.
    #[arg(
        long,
        alias = "budget",
        value_name = "SECONDS",
        conflicts_with = "max_plans",
        allow_negative_numbers = true
    )]
    pub(crate) time_limit: Option<f64>,
    /// Try at most this many plans for each set; the search also ends at the bound [default: until
    /// no considerable improvement is expected].
    #[arg(
        long,
        alias = "attempts",
        value_name = "N",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) max_plans: Option<u32>,
    /// List every plan that was tried, with planner, phases, clocks and seconds.
    #[arg(long)]
    pub(crate) explain_search: bool,
    /// Lift the limits that keep work and memory proportional to the input.
    #[arg(long)]
    pub(crate) unlimited: bool,
    /// Reuse an earlier schedule or image for the same machine as far as it still fits, and report
    /// how much of the tables changed. The dead cells and links may differ. The output may be the same
    /// file, which is replaced when all is done.
    #[arg(long, alias = "from", value_name = "OLD")]
    pub(crate) reuse: Option<PathBuf>,
}

/// What an input is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Phases, whose routes are in the tables of the machine.
    Phases,
    /// Messages in steps, for machines without tables.
    Steps,
    /// Whichever of the two takes fewer clocks on the machine.
    Best,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AlgorithmArg {
    /// The algorithm of the ConSet paper (sections 4.4.1 and 4.4.2).
    Paper,
    /// Tries several planners and keeps the cheapest plan.
    Auto,
    /// One planner of steps.
    Steps(StepAlgorithm),
}

fn algorithm(name: &str) -> Result<AlgorithmArg, String> {
    match (name, StepAlgorithm::parse(name)) {
        ("paper", _) => Ok(AlgorithmArg::Paper),
        ("auto" | "best", _) => Ok(AlgorithmArg::Auto),
        (_, Ok(planner)) => Ok(AlgorithmArg::Steps(planner)),
        (_, Err(error)) if error.place != "algorithm" => Err(error.message),
        (_, Err(_)) => {
            Err("expected auto or paper, or for steps linear, pairwise, balanced, ring, \
                            recursive, greedy, loaded, halves or levels:RxR.. (as levels:16x16)"
                .to_owned())
        }
    }
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
    /// Write the part and the cell of each element, vertex or row, in the numbers of the input: text
    /// (.txt, .part) or the mesh for ParaView (.vtu).
    #[arg(long, value_name = "FILE")]
    pub(crate) write_partition: Option<PathBuf>,
    /// Output file: a schedule (.json, .cset, .csb) or an image (.csi); - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) compiler: CompilerArgs,
    /// Write the part and the cell of each element, vertex or row, in the numbers of the input: text
    /// (.txt, .part) or the mesh for ParaView (.vtu).
    #[arg(long, value_name = "FILE")]
    pub(crate) write_partition: Option<PathBuf>,
    /// Execute the same sets with another communication model too, and compare.
    #[arg(long, alias = "against", value_enum)]
    pub(crate) compare: Option<Compare>,
    /// With --compare messages: the order in which a cell sends.
    #[arg(long, value_enum, default_value_t, requires = "compare")]
    pub(crate) message_order: MessageOrderArg,
    /// Write a trace of streams and context switches (JSON for Chrome or Perfetto).
    #[arg(long, value_name = "OUT")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Compare {
    /// Message passing with wormhole routing.
    Messages,
    /// The best plan of messages in steps.
    Steps,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum MessageOrderArg {
    /// All of the following, and report the fastest.
    #[default]
    Best,
    /// The order of the set.
    Given,
    /// Messages with the most words first.
    LongestFirst,
    /// By the target's number, each cell beginning with the number after its own.
    Staggered,
    /// A random order for each cell, as in the paper for all-to-all.
    Random,
}

impl MessageOrderArg {
    pub(crate) fn is_default(self) -> bool {
        matches!(self, MessageOrderArg::Best)
    }
}

#[derive(Args, Debug)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Cost model to use.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) model: ModelArg,
    /// Execute every way on the emulated fabric, check every word, and print the errors of the models.
    #[arg(long)]
    pub(crate) measure: bool,
    /// Predict only this way: a planner of steps as for `conset compile --by steps`, phases, or
    /// messages:ORDER (given, longest-first, staggered, random); may be repeated.
    #[arg(long = "algorithm", value_name = "NAME", value_parser = method)]
    pub(crate) methods: Vec<Method>,
    /// Protocol of the C3 model: store-and-forward or wormhole, nonblocking or blocking sends
    /// [default: wh-nbs for machines with standing messages, wh-bs for those with rendezvous].
    #[arg(long, value_name = "NAME", value_parser = c3_protocol)]
    pub(crate) protocol: Option<C3Protocol>,
    /// Set-up of a message in the C3 model, in units [default: the software of a message divided by
    /// the time of a packet].
    #[arg(long, value_name = "UNITS", value_parser = not_negative, allow_negative_numbers = true)]
    pub(crate) c3_setup: Option<f64>,
    /// Bytes of a packet in the C3 model [default: 512].
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) c3_packet: Option<u32>,
    /// Latency in the C3 model, in hops [default: the mean distance of two cells].
    #[arg(long, value_name = "HOPS", value_parser = not_negative, allow_negative_numbers = true)]
    pub(crate) c3_latency: Option<f64>,
    /// Bisection width in the C3 model, in links [default: that of the network; graphs need it].
    #[arg(
        long,
        value_name = "LINKS",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) c3_bisection: Option<u32>,
    /// Lift the limits that keep work and memory proportional to the input.
    #[arg(long)]
    pub(crate) unlimited: bool,
}

/// Cost models of `conset predict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelArg {
    /// Units of supersteps.
    C3,
    /// The papers' formulas of complete exchanges and of plain messages.
    Paper,
    /// The prediction of `conset compile`.
    Steps,
    /// All of them.
    #[default]
    All,
}

fn method(name: &str) -> Result<Method, String> {
    Method::parse(name).map_err(|error| match error.place.as_str() {
        "algorithm" => {
            "expected linear, pairwise, balanced, ring, recursive, greedy, loaded, halves, \
                        levels:RxR.. (as levels:16x16), phases or messages:ORDER"
                .to_owned()
        }
        _ => error.message,
    })
}

fn c3_protocol(name: &str) -> Result<C3Protocol, String> {
    C3Protocol::parse(name).ok_or_else(|| "expected sf-nbs, wh-nbs, sf-bs or wh-bs".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1e9".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// Table number of the ConSet paper, 1 to 6 [default: all]; or another paper: c3 (the C3 model)
    /// or cm5 (messages on the CM-5).
    #[arg(value_parser = reproduced, allow_negative_numbers = true)]
    pub(crate) table: Option<Reproduced>,
    /// Figure of c3, 1 to 3, or table of cm5, 1 to 8 [default: all].
    #[arg(value_parser = whole::<u8>(1, 8), allow_negative_numbers = true)]
    pub(crate) number: Option<u8>,
    /// Write Figures 2 to 6 of the computed tables, or the curves of another paper, as SVG into this
    /// folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// With c3: also execute its algorithms on the emulated fabric, and compare the ranks. Takes about
    /// a minute.
    #[arg(long)]
    pub(crate) measure: bool,
    /// Folder of real meshes, with walshaw/crack.graph and spark98/sf10.64.pack [default: the
    /// environment variable CONSET_MESHES]. Rows with missing files are left out.
    #[arg(long, value_name = "DIR")]
    pub(crate) meshes: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// What to show, and the schedule: `phases all.json`, `cell 5 all.json`.
    #[arg(
        num_args = 2..=3,
        value_names = ["WHAT", "FILE"],
        required = true,
        allow_negative_numbers = true
    )]
    pub(crate) what_and_file: Vec<String>,
    /// Show only this phase (3 or p3).
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) phase: Option<String>,
    /// Show only this set.
    #[arg(long = "set", alias = "set-name", value_name = "NAME")]
    pub(crate) set_name: Option<String>,
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
