//! The arguments of `conset predict` and `conset reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conset::predict::Method;
use conset::scheduler::c3::C3Protocol;

use super::{InputArgs, TableArgs, whole};

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
    #[command(flatten)]
    pub(crate) table: TableArgs,
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
            "expected linear, pairwise, balanced, ring, recursive, greedy, loaded, halves, nodes, \
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
    Acl,
    Active,
}

fn reproduced(text: &str) -> Result<Reproduced, String> {
    match text {
        "c3" => Ok(Reproduced::Paper(Paper::C3)),
        "cm5" => Ok(Reproduced::Paper(Paper::Cm5)),
        "acl" => Ok(Reproduced::Paper(Paper::Acl)),
        "active" => Ok(Reproduced::Paper(Paper::Active)),
        _ => whole(1, 6)(text)
            .map(Reproduced::Table)
            .map_err(|message| format!("{message}, or c3, cm5, acl or active")),
    }
}

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// Table number of the ConSet paper, 1 to 6 [default: all]; or another paper: c3 (the C3
    /// model), cm5 (messages on the CM-5), acl (a message library on the T3D) or active (active
    /// messages).
    #[arg(value_parser = reproduced, allow_negative_numbers = true)]
    pub(crate) table: Option<Reproduced>,
    /// Figure of c3, 1 to 3, table of cm5, 1 to 8, or of acl, 1 or 2, or figure of active, 31, 32,
    /// 35 or 36 [default: all].
    #[arg(value_parser = whole::<u8>(1, 36), allow_negative_numbers = true)]
    pub(crate) number: Option<u8>,
    /// Write Figures 2 to 6 of the computed tables, or the curves of another paper, as SVG into this
    /// folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// With c3: also execute its algorithms on the emulated fabric, and compare the ranks. Takes about
    /// a minute.
    #[arg(long)]
    pub(crate) measure: bool,
    /// With active: simulate fewer clusters and mazes. The errors are larger.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Folder of real meshes, with walshaw/crack.graph and spark98/sf10.64.pack [default: the
    /// environment variable CONSET_MESHES]. Rows with missing files are left out.
    #[arg(long, value_name = "DIR")]
    pub(crate) meshes: Option<PathBuf>,
}
