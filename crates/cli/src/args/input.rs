//! The options of an input: what is read, its machine, its parts and what they exchange.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use conset::input::PATTERN;
use conset_ir::convert::{to_f64, to_u32, to_u64, truncate};
use conset_ir::limits;
use conset_mesh::partition::MAX_IMBALANCE;

use super::whole;

/// A percentage, as a number of thousandths.
fn thousandths(text: &str) -> Result<u32, String> {
    let most = to_f64(MAX_IMBALANCE) / 10.0;
    let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=most).contains(percent));
    let thousandths = percent.map(|percent| to_u32(truncate((percent * 10.0).round())));
    thousandths.ok_or_else(|| format!("expected a percentage from 0 to {most}"))
}

#[derive(Args, Clone, Debug)]
pub(crate) struct MachineArgs {
    /// Machine: a preset with optional sizes (iwarp, iwarp:16x16, torus:4x4x4, mesh:8x8, ring:16,
    /// hypercube:6, fat-tree:64, cluster:16x4) or a machine file (.toml) [default: the machine that the input
    /// names, or iwarp].
    #[arg(long, value_name = "SPEC")]
    pub(crate) machine: Option<OsString>,
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
    pub(crate) input: OsString,
    #[command(flatten)]
    pub(crate) options: InputOptions,
}

/// Options for reading an input.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputOptions {
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Input format, if the contents and the name of the file do not show it.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
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
    #[arg(
        long,
        value_name = "K|FILE",
        value_parser = OsStringValueParser::new().try_map(words_arg),
        allow_negative_numbers = true
    )]
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
    /// The input for messages.
    pub(crate) fn name(&self) -> String {
        self.input.display().to_string()
    }

    /// The pattern that the input names, if it is no file.
    pub(crate) fn pattern(&self) -> Option<&str> {
        self.input.to_str()?.strip_prefix(PATTERN)
    }

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
            ("--input-format", self.input_format.is_some()),
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

fn words_arg(argument: OsString) -> Result<WordsArg, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number =
        argument.to_str().filter(|text| is_number(text.strip_prefix(['-', '+']).unwrap_or(text)));
    let Some(number) = number else { return Ok(WordsArg::File(argument.into())) };
    match number.parse() {
        Ok(words) if (1..=limits::WORDS).contains(&words) => Ok(WordsArg::Each(words)),
        _ => Err(format!("expected 1 to {}, or the name of a file", limits::WORDS)),
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
