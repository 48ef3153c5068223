//! The CM-5: R. Ponnusamy and others, Experimental Performance Evaluation of the CM-5.
//!
//! Here are single messages and contention (Figures 3 and 5 to 9), complete exchanges (Figures 10 to 12;
//! module `exchanges`), schedules (Tables 1 to 3; `schedules`), irregular patterns by step plans (Table
//! 4, and Table 5 with stand-ins for its patterns; `solvers`), the two-dimensional FFT (Table 6; `fft`),
//! and Gaussian elimination with the control network (Tables 7 and 8).
//!
//! The figures have no numbers but a fitted formula, 73 + 0.112 L microseconds, and statements: flat
//! over distance, no difference for two messages or for four between clusters, much more for sixteen.
//! Ours are measured on the fabric of preset `cm5`, with every word checked. Table 4 does not say
//! which patterns were measured, nor how many; ours are the means of [`PATTERNS`] random ones, in
//! which every ordered pair of cells is drawn by itself. Tables 7 and 8 are
//! arithmetic with that preset's control network and one calibrated number, the time that the
//! elimination takes for an element of the matrix.

mod exchanges;
mod fft;
mod schedules;
mod solvers;

use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, MessageRoutes, run_steps};
use conset_ir::convert::to_f64;
use conset_ir::{CellId, Connection, ConnectionSet, LinkId, Machine, Parameters, Steps};
use conset_mesh::patterns;
use conset_scheduler::steps::{Levels, StepOrder, least_clocks_direct};

use super::beside::{Beside, Exhibit, PaperTable};
use super::{SEED, fabric_bug};
use crate::{CompileError, parallel};

/// Random patterns for each cell of our Table 4.
pub const PATTERNS: u64 = 20;

/// The algorithms of Tables 4 and 5, and the rows of Table 4: percent of all pairs, bytes of a message, milliseconds by
/// algorithm.
const IRREGULAR: [StepOrder; 4] =
    [StepOrder::Linear, StepOrder::Pairwise, StepOrder::Balanced, StepOrder::Greedy];
const TABLE_4: [(u32, u32, [f64; 4]); 8] = [
    (10, 256, [4.723, 1.595, 1.704, 1.476]),
    (10, 512, [6.116, 2.018, 2.194, 1.905]),
    (25, 256, [11.67, 3.538, 3.287, 2.781]),
    (25, 512, [15.34, 4.569, 4.242, 3.599]),
    (50, 256, [29.01, 5.478, 5.263, 5.201]),
    (50, 512, [38.27, 7.120, 6.834, 6.792]),
    (75, 256, [50.14, 6.653, 6.561, 7.739]),
    (75, 512, [66.63, 8.817, 8.775, 10.31]),
];

/// Sizes of the matrices in Tables 7 and 8; a matrix has a column more than rows.
const SIZES: [u32; 4] = [64, 128, 256, 512];
/// Rows of Table 7 in milliseconds, and of Table 8, by size.
const REDUCE_DOUBLE: [f64; 4] = [0.042; 4];
const REDUCE_INT: [f64; 4] = [0.006; 4];
const BROADCAST: [f64; 4] = [0.917, 1.680, 3.206, 6.252];
const COMPUTATION: [f64; 4] = [0.266, 1.057, 4.213, 16.823];
const ITERATION: [f64; 4] = [1.231, 2.785, 7.467, 23.123];
const ESTIMATED: [f64; 4] = [78.8, 356.5, 1911.6, 11839.0];
const MEASURED: [f64; 4] = [72.5, 353.45, 1848.0, 10948.6];
/// Milliseconds of an iteration's computation for each element of the matrix. Calibrated on the
/// largest matrix of Table 7, 16.823 ms / (512 * 513); the other three are a test. (It is the whole
/// matrix and not the part that is left, so the paper's computation does not shrink.)
const ELEMENT: f64 = 16.823 / (512.0 * 513.0);

pub use exchanges::exchanges;
pub use fft::table_6;
pub use schedules::{PaperSchedule, ScheduleStep, schedules};
pub use solvers::table_5;

/// Tables 4 to 8, or one of them; the figures are shown with all. Tables 1 to 3 are [`schedules`].
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn tables(number: Option<u8>) -> Result<Vec<PaperTable>, CompileError> {
    let mut all = Vec::new();
    let wanted = |table: u8| number.is_none_or(|number| number == table);
    if number.is_none() {
        all = figures()?;
        all.extend(exchanges(256)?);
    }
    if wanted(4) {
        all.extend(table_4(PATTERNS)?);
    }
    if wanted(5) {
        all.extend(table_5()?);
    }
    if wanted(6) {
        all.extend(table_6()?);
    }
    let machine = machine(32)?;
    if wanted(7) {
        all.push(table_7(machine.parameters()));
    }
    if wanted(8) {
        all.push(table_8(machine.parameters()));
    }
    Ok(all)
}

/// Figures 3 and 5 to 9. Figures 10 to 12 are [`exchanges`].
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn figures() -> Result<Vec<PaperTable>, CompileError> {
    Ok(vec![message_sizes()?, distances()?, contention()?])
}

fn machine(cells: u32) -> Result<Arc<Machine>, CompileError> {
    let machine = Machine::from_spec(&format!("cm5:{cells}"));
    machine.map(Arc::new).map_err(|error| CompileError::bug("the preset cm5", &error))
}

fn milliseconds(parameters: &Parameters, clocks: u64) -> f64 {
    1e3 * to_f64(clocks) / f64::from(parameters.clock_hz)
}

/// Microseconds of messages of so many bytes that are sent side by side.
fn messages(cells: u32, pairs: &[(u32, u32)], bytes: u32) -> Result<f64, CompileError> {
    let machine = machine(cells)?;
    let words = bytes / machine.parameters().word_bytes;
    let rows = pairs.iter().map(|&(s, t)| Connection::new(CellId(s), CellId(t), words)).collect();
    let set = ConnectionSet::new("messages", rows).map_err(|e| planner_bug(&e))?;
    let planner = Levels::direct(&machine, StepOrder::Linear);
    let clocks = measured(&machine, &Arc::new(set), &planner)?;
    Ok(1e3 * milliseconds(machine.parameters(), clocks))
}

pub(super) fn planner_bug(error: &dyn ToString) -> CompileError {
    CompileError::bug("the planner of steps", error)
}

/// The clocks that a set takes on the fabric by a planner's messages, with every word checked.
fn measured(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    planner: &Levels,
) -> Result<u64, CompileError> {
    let mut routes = MessageRoutes::new(machine);
    let mut route = |source, target, links: &mut Vec<LinkId>| {
        let found = routes.links(source, target, links);
        debug_assert!(found, "all cells of a fat-tree are connected");
    };
    let protocol = machine.parameters().protocol;
    let steps = planner.plan(machine, set, protocol, &mut route).map_err(|e| planner_bug(&e))?;
    step_clocks(&steps)
}

/// The clocks that a step plan takes on the fabric, after the checker has accepted it, with every word
/// checked.
pub(super) fn step_clocks(steps: &Steps) -> Result<u64, CompileError> {
    conset_verify::check_steps(steps).map_err(|rejection| planner_bug(&rejection))?;
    let options = MessageOptions::default().seed(SEED);
    let report = run_steps(steps, &options).map_err(|fault| fabric_bug(&fault))?;
    if !report.payload_ok {
        let message = format!("{} words were not delivered correctly", report.wrong);
        return Err(CompileError::Bug { stage: "the fabric", message });
    }
    Ok(report.clocks)
}

fn message_sizes() -> Result<PaperTable, CompileError> {
    let title = "one message on 32 processors, us (the paper: 73 + 0.112 L)";
    let mut table = PaperTable::new((Exhibit::Figure, 3), title, &["bytes", "time"]);
    for bytes in [16, 32, 64, 96, 256, 512, 1024, 2048, 4096, 8192, 10_240] {
        let paper = 73.0 + 0.112 * f64::from(bytes);
        let ours = messages(32, &[(0, 1)], bytes)?;
        table.push(bytes.to_string(), vec![Beside::new(ours, Some(paper))]);
    }
    Ok(table)
}

fn distances() -> Result<PaperTable, CompileError> {
    let title = "one message over a distance, 256 processors, us (the paper: flat)";
    let columns = ["bytes", "in 4", "in 16", "in 64", "in 256"];
    let mut table = PaperTable::new((Exhibit::Figure, 5), title, &columns);
    for bytes in [16, 512, 4096, 8192] {
        let times = [1, 4, 16, 64].map(|target| messages(256, &[(0, target)], bytes));
        let times = times.into_iter().collect::<Result<Vec<f64>, _>>()?;
        table.push(bytes.to_string(), times.into_iter().map(|t| Beside::new(t, None)).collect());
    }
    Ok(table)
}

fn contention() -> Result<PaperTable, CompileError> {
    let title = "messages side by side / one message (the paper: no difference, but for 16 to 16)";
    let columns = ["bytes", "2 in 4", "4 to 4", "16 to 16", "16 to 16 of 256"];
    let mut table = PaperTable::new((Exhibit::Figure, 6), title, &columns);
    let shifted = |count: u32| -> Vec<(u32, u32)> { (0..count).map(|c| (c, c + count)).collect() };
    for bytes in [16, 512, 4096, 10_240] {
        let mut cells = Vec::new();
        for (processors, pairs) in
            [(32, vec![(0, 1), (2, 3)]), (32, shifted(4)), (32, shifted(16)), (256, shifted(16))]
        {
            let ratio =
                messages(processors, &pairs, bytes)? / messages(processors, &pairs[..1], bytes)?;
            cells.push(Beside::new(ratio, None));
        }
        table.push(bytes.to_string(), cells);
    }
    Ok(table)
}

/// Table 4 as the mean of so many random patterns; the spread of single patterns; and our own order,
/// `loaded`, with its distance from the bound and from the best of the paper's four.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn table_4(patterns: u64) -> Result<[PaperTable; 3], CompileError> {
    let machine = machine(32)?;
    let columns = ["pattern", "linear", "pairwise", "balanced", "greedy"];
    let mut times = PaperTable::new(
        (Exhibit::Table, 4),
        format!("irregular patterns on 32 processors, ms, mean of {patterns}"),
        &columns,
    );
    let mut spreads = PaperTable::new(
        (Exhibit::Table, 4),
        "the same, standard deviation of single patterns in percent",
        &columns,
    );
    let columns = ["pattern", "loaded, ms", "over bound", "best of the four / loaded"];
    let mut ours = PaperTable::new((Exhibit::Table, 4), "the same, order `loaded`", &columns);
    for (density, bytes, paper) in TABLE_4 {
        let name = format!("{density} %, {bytes} bytes");
        let rows: Vec<_> = (0..patterns).collect();
        let runs = parallel::try_map(&rows, |&row| irregular(&machine, density, bytes, row))?;
        let count = to_f64(patterns);
        let mean = |column: usize| runs.iter().map(|run| run[column]).sum::<f64>() / count;
        let spread = |column: usize| {
            let squares = runs.iter().map(|run| (run[column] / mean(column) - 1.0).powi(2));
            100.0 * (squares.sum::<f64>() / count).sqrt()
        };
        let of_paper = || 0..IRREGULAR.len();
        let cells = of_paper().map(|column| Beside::new(mean(column), Some(paper[column])));
        times.push(name.as_str(), cells.collect());
        let cells = of_paper().map(|column| Beside::new(spread(column), None));
        spreads.push(name.as_str(), cells.collect());
        let best = of_paper().map(mean).fold(f64::INFINITY, f64::min);
        let numbers = [mean(4), mean(5), best / mean(4)];
        ours.push(name, numbers.map(|number| Beside::new(number, None)).to_vec());
    }
    Ok([times, spreads, ours])
}

/// A random pattern: milliseconds of the paper's four orders and of ours, and ours over its bound.
fn irregular(
    machine: &Arc<Machine>,
    density: u32,
    bytes: u32,
    row: u64,
) -> Result<[f64; 6], CompileError> {
    let spec = format!("random:density={},seed={},equal=1", f64::from(density) / 100.0, SEED + row);
    let words = bytes / machine.parameters().word_bytes;
    let set = Arc::new(patterns::generate(&spec, machine, words)?);
    let mut numbers = [0.0; 6];
    for (number, order) in numbers.iter_mut().zip(IRREGULAR.into_iter().chain([StepOrder::Loaded]))
    {
        let clocks = measured(machine, &set, &Levels::direct(machine, order))?;
        *number = milliseconds(machine.parameters(), clocks);
    }
    let bound = least_clocks_direct(machine, &set, machine.parameters().protocol);
    numbers[5] = numbers[4] / milliseconds(machine.parameters(), bound.max(1));
    Ok(numbers)
}

/// Milliseconds of the parts of an iteration on an N x (N+1) matrix: the reductions of a double and of
/// an int, the broadcast of a row, the computation.
fn iteration(parameters: &Parameters, size: u32) -> [f64; 4] {
    // A double is two words. The reduction of an int takes as long as the barrier, whose time is
    // assumed to be that.
    let words = u64::from(size + 1) * u64::from(8 / parameters.word_bytes.clamp(1, 8));
    let broadcast = u64::from(parameters.control_broadcast)
        + words * u64::from(parameters.control_clocks_per_word);
    let elements = f64::from(size) * f64::from(size + 1);
    [
        milliseconds(parameters, parameters.control_reduce.into()),
        milliseconds(parameters, parameters.control_barrier.into()),
        milliseconds(parameters, broadcast),
        ELEMENT * elements,
    ]
}

fn by_size(number: u8, title: &str) -> PaperTable {
    let names: Vec<String> = SIZES.iter().map(|size| format!("{size}x{}", size + 1)).collect();
    let mut columns = vec!["part"];
    columns.extend(names.iter().map(String::as_str));
    PaperTable::new((Exhibit::Table, number), title, &columns)
}

fn table_7(parameters: &Parameters) -> PaperTable {
    let mut table = by_size(7, "an iteration of Gaussian elimination, 32 processors, ms");
    let parts = SIZES.map(|size| iteration(parameters, size));
    for (row, (name, paper)) in [
        ("reduction (double, max)", REDUCE_DOUBLE),
        ("reduction (int, max)", REDUCE_INT),
        ("broadcast", BROADCAST),
        ("computation", COMPUTATION),
    ]
    .into_iter()
    .enumerate()
    {
        let cells = parts.iter().zip(paper);
        table.push(name, cells.map(|(ours, paper)| Beside::new(ours[row], Some(paper))).collect());
    }
    let sums = parts.iter().zip(ITERATION);
    let sums = sums.map(|(ours, paper)| Beside::new(ours.iter().sum(), Some(paper)));
    table.push("iteration", sums.collect());
    table
}

fn table_8(parameters: &Parameters) -> PaperTable {
    let mut table = by_size(8, "Gaussian elimination, 32 processors, ms: N iterations");
    let ours = SIZES.map(|size| f64::from(size) * iteration(parameters, size).iter().sum::<f64>());
    for (name, paper) in [("estimated", ESTIMATED), ("measured by the paper", MEASURED)] {
        let cells = ours.iter().zip(paper);
        table.push(name, cells.map(|(&ours, paper)| Beside::new(ours, Some(paper))).collect());
    }
    table
}
