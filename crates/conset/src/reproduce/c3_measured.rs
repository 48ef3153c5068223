//! The k-level algorithms of the C3 paper on the fabric: units beside clocks (section 4, Figures 5 and
//! 7).
//!
//! The paper *measured* its algorithms on a Delta of 256 processors, and prints curves without
//! numbers. What its text says of them are ranks, which can be tested ([`Statement`]). Here
//! every algorithm is planned as a step plan, verified, executed on preset `delta:16x16` with every
//! word checked, and charged by the model with the paper's parameters ([`C3Machine::DELTA`]).
//!
//! The preset rests on a receive cost of 0, for which the paper has no number, and on free local
//! copies; one factor for each table turns units into clocks. Where a plan leaves a choice, the order
//! of messages within a level is `loaded`. `1-lev-dir` of all-to-all floods the machine: each
//! processor sends to one after the other, beginning with processor 0. The broadcast moves all words
//! over each edge of a binomial tree, as the set of pattern `broadcast-tree`.

use std::sync::Arc;

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Machine, Program};
use conset_mesh::patterns;
use conset_scheduler::c3::levels::{LevelAlgorithm, all_to_all, all_to_one, one_to_all};
use conset_scheduler::c3::{C3Machine, C3Protocol};
use serde::Serialize;

use super::SEED;
use super::c3_barriers::{self, BarrierTable};
use super::cm5::planner_bug;
use crate::predict::{
    C3Options, Method, MethodRow, Model, ModelSummary, ModelValue, PredictOptions, predict, rank,
};
use crate::{CompileError, Observer, Progress};

/// An algorithm of the paper, the planner that it is an instance of, and the name under which
/// [`conset_scheduler::c3::levels`] has its units as the paper counts them.
struct Algorithm {
    name: &'static str,
    planner: &'static str,
    charged_as: Option<&'static str>,
}

const fn algorithm(
    name: &'static str,
    planner: &'static str,
    charged_as: &'static str,
) -> Algorithm {
    Algorithm { name, planner, charged_as: Some(charged_as) }
}

/// An algorithm for which the paper gives no units.
const fn uncharged(name: &'static str, planner: &'static str) -> Algorithm {
    Algorithm { name, planner, charged_as: None }
}

/// The broadcast is a plan of another pattern.
const BROADCAST: &str = "1-lev-our-br";
const BROADCAST_PATTERN: &str = "broadcast-tree";

const ONE_TO_ALL: [Algorithm; 7] = [
    algorithm("1-lev-dir", "linear", "1-lev-dir"),
    algorithm(BROADCAST, "linear", BROADCAST),
    algorithm("2-lev-rec", "levels:16x16/rows", "2-lev-rec"),
    algorithm("3-lev-sq", "levels:16x4x4/tiles", "3-lev-sq"),
    algorithm("logp-lev-sq", "halves", "logp-lev-sq"),
    uncharged("logp-lev-rec(0.25)", "halves:0.25"),
    uncharged("logp-lev-rec(0.75)", "halves:0.75"),
];
const ALL_TO_ONE: [Algorithm; 4] = [
    algorithm("1-lev-dir", "linear", "1-lev-dir"),
    algorithm("2-lev-rec", "levels:16x16/rows/inverse", "2-lev-rec"),
    algorithm("3-lev-sq", "levels:16x4x4/tiles/inverse", "3-lev-sq"),
    algorithm("logp-lev-sq", "halves/inverse", "logp-lev-sq"),
];
const ALL_TO_ALL: [Algorithm; 7] = [
    algorithm("1-lev-dir", "linear", "1-lev-dir"),
    algorithm("1-lev-perm, linear", "ring", "1-lev-dir"),
    algorithm("1-lev-perm, exclusive-or", "pairwise", "1-lev-dir"),
    algorithm("1-lev-perm, balanced", "balanced", "1-lev-dir"),
    algorithm("2-lev-r,c", "levels:16x16/rows", "2-lev-r,c"),
    algorithm("2-lev-sq", "levels:16x16/tiles/s1d1,d1s1", "2-lev-sq"),
    algorithm("logp-lev-bfly", "halves/pairwise", "logp-lev-bfly"),
];

/// The pattern that is measured with barriers as well.
pub(super) const ALL_TO_ALL_PATTERN: &str = "all-to-all";

/// Bytes of the actual messages.
const SIZES: [u32; 5] = [16, 64, 256, 1024, 4096];
/// The same for all-to-all, which moves 64 MB already with messages of 1 KB.
const ALL_TO_ALL_SIZES: [u32; 5] = [16, 64, 256, 512, 1024];

/// How much slower than the fastest algorithm one may be that is called near optimal.
const NEAR: f64 = 1.10;

/// Units beside measurements, and what the paper says of the ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct C3Measured {
    /// A table for each pattern and size.
    pub tables: Vec<MeasuredTable>,
    /// The all-to-all algorithms with a barrier after every superstep, as on the Delta.
    pub with_barriers: Vec<BarrierTable>,
    /// The paper's statements.
    pub statements: Vec<Statement>,
}

/// The algorithms for a pattern and a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MeasuredTable {
    /// The pattern.
    pub pattern: &'static str,
    /// Bytes of an actual message.
    pub bytes: u32,
    /// The algorithms in the paper's order.
    pub rows: Vec<MeasuredRow>,
    /// How the models compare with the fabric.
    pub summaries: Vec<ModelSummary>,
}

impl MeasuredTable {
    /// The rank of an algorithm on the fabric.
    fn rank(&self, name: &str) -> u32 {
        let row = self.rows.iter().find(|row| row.algorithm == name);
        row.and_then(|row| row.row.measured).map_or(u32::MAX, |measured| measured.rank)
    }
}

/// An algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MeasuredRow {
    /// Its name in the paper.
    pub algorithm: &'static str,
    /// Units of communication as the paper counts them; `None` if it does not count the algorithm.
    ///
    /// Those of the row are of the plan's own supersteps and parts. In the paper's a processor sends
    /// to one other part in each superstep, and by a plan all its messages of own words are in the
    /// first one.
    pub units_by_paper: Option<ModelValue>,
    /// Plan, units and clocks.
    #[serde(flatten)]
    pub row: MethodRow,
}

/// What the paper says of ranks, and whether it holds on the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Statement {
    /// The statement.
    pub text: &'static str,
    /// For each size, whether it holds.
    pub sizes: Vec<SizeVerdict>,
    /// The same with a barrier after every superstep; empty for patterns that were not measured so.
    pub sizes_with_barriers: Vec<SizeVerdict>,
}

/// Whether a statement holds for messages of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SizeVerdict {
    /// Bytes of an actual message.
    pub bytes: u32,
    /// Whether it holds.
    pub holds: bool,
}

impl Statement {
    /// Whether it holds for all sizes.
    pub fn holds(&self) -> bool {
        self.sizes.iter().all(|size| size.holds)
    }

    /// Whether it holds for all sizes with a barrier after every superstep; `None` if that was not
    /// measured.
    pub fn holds_with_barriers(&self) -> Option<bool> {
        let sizes = &self.sizes_with_barriers;
        (!sizes.is_empty()).then(|| sizes.iter().all(|size| size.holds))
    }
}

/// Executes all algorithms on `delta:16x16`.
///
/// # Errors
/// A plan that is refused, or a fault of the fabric, which are bugs.
pub fn measured(observer: &mut Observer<'_>) -> Result<C3Measured, CompileError> {
    of_sizes(&SIZES, &ALL_TO_ALL_SIZES, observer)
}

/// The same for other sizes.
fn of_sizes(
    sizes: &[u32],
    all_to_all_sizes: &[u32],
    observer: &mut Observer<'_>,
) -> Result<C3Measured, CompileError> {
    let machine = Machine::from_spec("delta:16x16").map_err(|error| planner_bug(&error))?;
    let machine = Arc::new(machine);
    observer(Progress::Stage("measuring"));
    let delta = C3Machine::DELTA;
    let mut tables = Vec::new();
    for (pattern, algorithms, charged, sizes) in [
        ("one-to-all", &ONE_TO_ALL[..], one_to_all(&delta), sizes),
        ("all-to-one", &ALL_TO_ONE[..], all_to_one(&delta), sizes),
        (ALL_TO_ALL_PATTERN, &ALL_TO_ALL[..], all_to_all(&delta), all_to_all_sizes),
    ] {
        for &bytes in sizes {
            tables.push(table(&machine, pattern, algorithms, &charged, bytes)?);
            let total = to_u64(2 * sizes.len() + 2 * all_to_all_sizes.len());
            observer(Progress::Done { done: to_u64(tables.len()), total });
        }
    }
    let with_barriers = all_to_all_sizes.iter().map(|&bytes| c3_barriers::table(&machine, bytes));
    let with_barriers: Vec<BarrierTable> = with_barriers.collect::<Result<_, _>>()?;
    let statements = statements(&tables, &with_barriers);
    Ok(C3Measured { tables, with_barriers, statements })
}

fn table(
    machine: &Arc<Machine>,
    pattern: &'static str,
    algorithms: &[Algorithm],
    charged: &[LevelAlgorithm],
    bytes: u32,
) -> Result<MeasuredTable, CompileError> {
    let words = bytes / machine.parameters().word_bytes;
    let (own, broadcasts): (Vec<&Algorithm>, Vec<&Algorithm>) =
        algorithms.iter().partition(|algorithm| algorithm.name != BROADCAST);
    // Everybody receives what is meant for everybody.
    let all_words = words * (C3Machine::DELTA.processors - 1);
    let mut named: Vec<(&'static str, MethodRow)> = Vec::new();
    for (pattern, algorithms, words) in
        [(pattern, own, words), (BROADCAST_PATTERN, broadcasts, all_words)]
    {
        let rows = rows(machine, pattern, &algorithms, words)?;
        named.extend(algorithms.iter().map(|algorithm| algorithm.name).zip(rows));
    }
    let place = |name: &str| algorithms.iter().position(|algorithm| algorithm.name == name);
    named.sort_by_key(|(name, _)| place(name));
    let (_, mut rows): (Vec<_>, Vec<MethodRow>) = named.into_iter().unzip();
    let summaries = rank::rank(&mut rows, &[Model::C3, Model::Steps], true);
    let units: Vec<Option<f64>> = algorithms
        .iter()
        .map(|algorithm| {
            let level = charged.iter().find(|level| Some(level.name) == algorithm.charged_as)?;
            Some(level.units(C3Protocol::WormholeNonblocking, bytes.into()))
        })
        .collect();
    let rows = rows.into_iter().zip(algorithms).zip(rank::ranked(&units));
    let rows = rows.map(|((row, algorithm), units_by_paper)| MeasuredRow {
        algorithm: algorithm.name,
        units_by_paper,
        row,
    });
    Ok(MeasuredTable { pattern, bytes, rows: rows.collect(), summaries })
}

/// Plans and measures algorithms for a pattern.
fn rows(
    machine: &Arc<Machine>,
    pattern: &str,
    algorithms: &[&Algorithm],
    words: u32,
) -> Result<Vec<MethodRow>, CompileError> {
    if algorithms.is_empty() {
        return Ok(Vec::new());
    }
    let set = Arc::new(patterns::generate(pattern, machine, words)?);
    let program = Program::new(vec![set]).map_err(|error| planner_bug(&error))?;
    let C3Machine { packet_bytes, setup, latency, bisection, .. } = C3Machine::DELTA;
    let methods = algorithms.iter().map(|algorithm| Method::parse(algorithm.planner));
    let options = PredictOptions {
        models: vec![Model::C3, Model::Steps],
        methods: methods.collect::<Result<_, _>>().map_err(|error| planner_bug(&error))?,
        c3: C3Options {
            protocol: Some(C3Protocol::WormholeNonblocking),
            setup: Some(setup),
            packet_bytes: Some(packet_bytes),
            latency: Some(latency),
            bisection: Some(bisection),
        },
        measure: true,
        seed: SEED,
        unlimited: true,
    };
    let report = predict(machine, &program, &options, &mut |_| ())?;
    let rows: Vec<MethodRow> = report.sets.into_iter().flat_map(|set| set.rows).collect();
    match rows.iter().find_map(|row| row.refused.as_ref().map(|why| (&row.method, why))) {
        Some((method, why)) => Err(planner_bug(&format!("{pattern} by {method}: {why}"))),
        None => Ok(rows),
    }
}

/// What the text of the paper says of Figures 5 and 7.
fn statements(tables: &[MeasuredTable], with_barriers: &[BarrierTable]) -> Vec<Statement> {
    let mut statements = of_one_to_all(tables);
    let of = tables.iter().filter(|table| table.pattern == ALL_TO_ALL_PATTERN);
    let of: Vec<&MeasuredTable> = of.collect();
    for (text, sizes, holds) in OF_ALL_TO_ALL {
        let verdict = |bytes: u32, rank: &dyn Fn(&str) -> u32| {
            sizes(bytes).then(|| SizeVerdict { bytes, holds: holds(rank) })
        };
        let without = of.iter().filter_map(|table| verdict(table.bytes, &|name| table.rank(name)));
        let with = with_barriers.iter();
        let with = with.filter_map(|table| verdict(table.bytes, &|name| table.rank(name)));
        statements.push(Statement {
            text,
            sizes: without.collect(),
            sizes_with_barriers: with.collect(),
        });
    }
    statements
}

/// A statement, the sizes of messages that it is about, and whether it holds for ranks by name.
type RankStatement = (&'static str, fn(u32) -> bool, fn(&dyn Fn(&str) -> u32) -> bool);

const OF_ALL_TO_ALL: [RankStatement; 4] = [
    (
        "all-to-all: 2-lev-r,c is the fastest up to 256 bytes",
        |bytes| bytes <= 256,
        |rank| rank("2-lev-r,c") == 1,
    ),
    (
        "all-to-all: 2-lev-r,c is faster than 2-lev-sq up to 256 bytes",
        |bytes| bytes <= 256,
        |rank| rank("2-lev-r,c") < rank("2-lev-sq"),
    ),
    (
        "all-to-all: 2-lev-sq is the second up to 256 bytes",
        |bytes| bytes <= 256,
        |rank| rank("2-lev-sq") == 2,
    ),
    (
        "all-to-all: 1-lev-perm by exclusive-or is the fastest above 256 bytes",
        |bytes| bytes > 256,
        |rank| rank("1-lev-perm, exclusive-or") == 1,
    ),
];

fn of_one_to_all(tables: &[MeasuredTable]) -> Vec<Statement> {
    let is_near_fastest = |table: &MeasuredTable| {
        let clocks = |row: &MeasuredRow| row.row.measured.map(|measured| measured.clocks);
        let heaps = table.rows.iter().filter(|row| row.algorithm.starts_with("logp-lev"));
        let best = heaps.filter_map(clocks).min().unwrap_or(u64::MAX);
        let fastest = table.rows.iter().filter_map(clocks).min().unwrap_or(0);
        crate::bound_ratio(best, fastest) <= NEAR
    };
    let statement = |text, holds: &dyn Fn(&MeasuredTable) -> bool| {
        let of = tables.iter().filter(|table| table.pattern == "one-to-all");
        let sizes = of.map(|table| SizeVerdict { bytes: table.bytes, holds: holds(table) });
        Statement { text, sizes: sizes.collect(), sizes_with_barriers: Vec::new() }
    };
    vec![
        statement("one-to-all: the broadcast is the slowest", &|table| {
            table.rank(BROADCAST) == to_u32(table.rows.len())
        }),
        statement(
            "one-to-all: a binomial heap is optimal or near optimal (at most 10 % slower)",
            &is_near_fastest,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_are_planned_measured_and_ranked() {
        let measured = of_sizes(&[64], &[16], &mut |_| ()).unwrap();
        let [one, to_one, all] = &measured.tables[..] else { panic!("three patterns") };
        assert_eq!((one.rows.len(), to_one.rows.len(), all.rows.len()), (7, 4, 7));
        for table in &measured.tables {
            for row in &table.rows {
                assert!(row.row.measured.is_some() && row.row.c3.is_some(), "{row:?}");
            }
        }
        // The number of supersteps is that of the paper's levels.
        let supersteps = |table: &MeasuredTable, name: &str| {
            let row = table.rows.iter().find(|row| row.algorithm == name);
            row.and_then(|row| row.row.supersteps)
        };
        for (name, levels) in
            [("1-lev-dir", 1), ("2-lev-rec", 2), ("3-lev-sq", 3), ("logp-lev-sq", 8)]
        {
            assert_eq!(supersteps(one, name), Some(levels), "{name}");
            assert_eq!(supersteps(to_one, name), Some(levels), "{name}");
        }
        assert_eq!(supersteps(one, BROADCAST), Some(8));
        for (name, levels) in
            [("1-lev-perm, balanced", 1), ("2-lev-r,c", 2), ("2-lev-sq", 3), ("logp-lev-bfly", 8)]
        {
            assert_eq!(supersteps(all, name), Some(levels), "{name}");
        }
        // These hold in the prototypes and here; the test keeps them so.
        let [broadcast, heap, ..] = &measured.statements[..] else { panic!("statements") };
        assert!(broadcast.holds() && heap.holds(), "{:?}", measured.statements);
        for statement in &measured.statements {
            assert!(statement.sizes.len() <= 1, "{statement:?}");
        }
        // With barriers the same statements are about the same sizes.
        for statement in &measured.statements[2..] {
            let bytes = |sizes: &[SizeVerdict]| -> Vec<u32> {
                sizes.iter().map(|size| size.bytes).collect()
            };
            assert_eq!(bytes(&statement.sizes), bytes(&statement.sizes_with_barriers));
        }
    }
}
