//! The options of the compiler, and those of the subcommands that compile: `conset compile` and
//! `conset run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conset::fabric::messages::MessageOrder;
use conset::steps::StepAlgorithm;

use super::{InputArgs, ProfileOptions, whole};

#[derive(Args, Debug)]
pub(crate) struct CompilerArgs {
    /// What the input is compiled to [default: phases].
    #[arg(long, value_enum)]
    pub(crate) by: Option<By>,
    /// Algorithm: auto or paper for phases; auto, linear, pairwise, balanced, ring, recursive,
    /// greedy, loaded, halves, nodes or levels:RxR.. (as levels:16x16) for steps [default: auto]. Levels may
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
                            recursive, greedy, loaded, halves, nodes or levels:RxR.. (as levels:16x16)"
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
    /// Divide each set into at most N batches, each compiled, verified and executed before the next:
    /// for sets whose routes do not fit into memory together. The sums are compared with the bounds
    /// of the whole set.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1, u32::MAX.into()),
        allow_negative_numbers = true,
        conflicts_with_all = [
            "by", "compare", "explain_search", "faults", "faults_seed", "fuse", "profile", "recover",
            "reuse", "time_limit", "trace", "write_partition",
        ]
    )]
    pub(crate) batches: Option<u32>,
    /// Write a trace of streams, messages, links, channels and context switches, in clocks (JSON for
    /// Perfetto or Chrome; compressed if the name ends in .gz).
    #[arg(long, value_name = "OUT")]
    pub(crate) trace: Option<PathBuf>,
    /// Show where every clock went, by set and phase, and the critical path.
    #[arg(long)]
    pub(crate) profile: bool,
    #[command(flatten)]
    pub(crate) profile_options: ProfileOptions,
    /// Also execute the sets on a machine with the faults of a file, one a line, such as `link c0 -> c1 drops word
    /// 17`; with --compare messages by messages too. The exit code is 1 if not every word is delivered.
    #[arg(long, value_name = "PLAN")]
    pub(crate) faults: Option<PathBuf>,
    /// Like --faults, with a fault drawn from a seed.
    #[arg(long, value_name = "N", conflicts_with = "faults")]
    pub(crate) faults_seed: Option<u64>,
    /// With faults: send check words with each stream or message, so that cells also notice changed words.
    #[arg(long)]
    pub(crate) checked: bool,
    /// With faults: continue after each fault that is noticed. Dead parts are removed from the machine, what is left is
    /// compiled again, and words that arrived wrongly are sent again. The exit code is 1 if a word between live cells is
    /// not delivered.
    #[arg(long)]
    pub(crate) recover: bool,
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

    /// The orders, at least one.
    pub(crate) fn orders(self) -> &'static [MessageOrder] {
        match self {
            Self::Best => &MessageOrder::ALL,
            Self::Given => &[MessageOrder::Given],
            Self::LongestFirst => &[MessageOrder::LongestFirst],
            Self::Staggered => &[MessageOrder::Staggered],
            Self::Random => &[MessageOrder::Random],
        }
    }
}
