//! What of the CM-5 paper needs no plan in steps.
//!
//! The paper is R. Ponnusamy and others, Experimental Performance Evaluation of the CM-5. This module
//! has single messages and contention (Figures 3 and 5 to 9), the formulas of complete exchanges
//! (Figure 10), and Gaussian elimination with the control network (Tables 7 and 8).
//!
//! The figures have no numbers but a fitted formula, 73 + 0.112 L microseconds, and statements: flat
//! over distance, no difference for two messages or for four between clusters, much more for sixteen.
//! Ours are measured on the fabric of preset `cm5`, with every word checked. Tables 7 and 8 are
//! arithmetic with that preset's control network and one calibrated number, the time that the
//! elimination takes for an element of the matrix.

use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, StepOperation, run_steps};
use conset_ir::convert::to_f64;
use conset_ir::{CellId, Direction, Machine, Parameters};
use conset_scheduler::exchange_formulas::ExchangeCosts;

use super::beside::{Beside, Exhibit, PaperTable};
use super::{SEED, fabric_bug};
use crate::CompileError;

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

/// All tables, or Table 7 or 8; the figures are shown with all.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn tables(number: Option<u8>) -> Result<Vec<PaperTable>, CompileError> {
    let mut all = Vec::new();
    if number.is_none() {
        all.extend([message_sizes()?, distances()?, contention()?, exchanges()]);
    }
    let machine = machine(32)?;
    if number.is_none_or(|number| number == 7) {
        all.push(table_7(machine.parameters()));
    }
    if number.is_none_or(|number| number == 8) {
        all.push(table_8(machine.parameters()));
    }
    Ok(all)
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
    let mut lists = vec![Vec::new(); machine.agent_count()];
    for &(source, target) in pairs {
        let (source, target) = (CellId(source), CellId(target));
        let mut put = |cell: CellId, direction, peer| {
            lists[cell.index()].push(StepOperation::new(direction, peer, words, 0));
        };
        put(source, Direction::Send, target);
        put(target, Direction::Receive, source);
    }
    let options = MessageOptions::default().seed(SEED);
    let report = run_steps(&machine, "messages", &lists, &options).map_err(|f| fabric_bug(&f))?;
    if !report.payload_ok {
        let message = format!("{} words were not delivered correctly", report.wrong);
        return Err(CompileError::Bug { stage: "the fabric", message });
    }
    Ok(1e3 * milliseconds(machine.parameters(), report.clocks))
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

fn exchanges() -> PaperTable {
    let title = "complete exchange on 32 processors by the paper's formulas, ms";
    let columns = ["bytes", "linear", "pairwise", "recursive", "balanced"];
    let mut table = PaperTable::new((Exhibit::Figure, 10), title, &columns);
    let costs = ExchangeCosts::CM5;
    for bytes in [0, 256, 512, 1024, 2048] {
        let length = f64::from(bytes);
        let times = [
            costs.linear(32, length),
            costs.pairwise(32, length),
            costs.recursive(32, length),
            costs.balanced(32, length),
        ];
        table.push(
            bytes.to_string(),
            times.map(|microseconds| Beside::new(microseconds / 1e3, None)).to_vec(),
        );
    }
    table
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
