//! Figures 10 to 12 of the CM-5 paper: complete exchanges over message sizes and numbers of processors.
//!
//! The figures are curves, of which the text gives no numbers. Ours are measured on the fabric with
//! every word checked; the paper's formulas are beside those of Figure 10. What the text says of the
//! curves is noted with whether it holds. A message of 0 bytes has one word here, as a connection has at
//! least one.

use std::sync::Arc;

use conset_ir::Machine;
use conset_ir::convert::index;
use conset_mesh::patterns;
use conset_scheduler::exchange_formulas::ExchangeCosts;
use conset_scheduler::steps::{Levels, StepOrder};

use super::{machine, measured, milliseconds, planner_bug};
use crate::reproduce::beside::{Beside, Exhibit, PaperRow, PaperTable};
use crate::{CompileError, parallel};

const BYTES: [u32; 5] = [0, 256, 512, 1024, 2048];
const PROCESSORS: [u32; 4] = [32, 64, 128, 256];

/// The paper's algorithms for a complete exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Linear,
    Pairwise,
    Recursive,
    Balanced,
}

impl Algorithm {
    pub(super) const ALL: [Algorithm; 4] =
        [Algorithm::Linear, Algorithm::Pairwise, Algorithm::Recursive, Algorithm::Balanced];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Algorithm::Linear => "linear",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Recursive => "recursive",
            Algorithm::Balanced => "balanced",
        }
    }

    /// Milliseconds of a complete exchange with messages of so many words, on the fabric.
    pub(super) fn milliseconds(
        self,
        machine: &Arc<Machine>,
        words: u32,
    ) -> Result<f64, CompileError> {
        let set = Arc::new(patterns::generate("all-to-all", machine, words)?);
        let planner = match self {
            Algorithm::Linear => Levels::direct(machine, StepOrder::Linear),
            Algorithm::Pairwise => Levels::direct(machine, StepOrder::Pairwise),
            Algorithm::Balanced => Levels::direct(machine, StepOrder::Balanced),
            Algorithm::Recursive => {
                let levels = machine.agent_count().next_power_of_two().ilog2();
                let radices = vec![2; index(levels)];
                let planner = Levels::new(machine, &radices, StepOrder::Pairwise);
                planner.map_err(|e| planner_bug(&e))?
            }
        };
        Ok(milliseconds(machine.parameters(), measured(machine, &set, &planner)?))
    }
}

/// The columns of a table: the heading of its rows' names, and algorithms.
pub(super) fn columns(rows: &'static str, algorithms: &[Algorithm]) -> Vec<&'static str> {
    std::iter::once(rows).chain(algorithms.iter().map(|a| a.name())).collect()
}

/// Figures 10, 11 (two sizes) and 12, with at most so many processors.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn exchanges(most_processors: u32) -> Result<Vec<PaperTable>, CompileError> {
    let mut all = vec![formulas(), sizes()?];
    let counts: Vec<u32> = PROCESSORS.into_iter().filter(|&p| p <= most_processors).collect();
    for (number, bytes) in [(11, 0), (11, 256), (12, 512)] {
        all.push(processors(number, bytes, &counts)?);
    }
    Ok(all)
}

fn formulas() -> PaperTable {
    let title = "complete exchange on 32 processors by the paper's formulas, ms";
    let columns = columns("bytes", &Algorithm::ALL);
    let mut table = PaperTable::new((Exhibit::Figure, 10), title, &columns);
    let costs = ExchangeCosts::CM5;
    for bytes in BYTES {
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

fn sizes() -> Result<PaperTable, CompileError> {
    let title = "complete exchange on 32 processors on the fabric, ms";
    let columns = columns("bytes", &Algorithm::ALL);
    let mut table = PaperTable::new((Exhibit::Figure, 10), title, &columns);
    let machine = machine(32)?;
    for bytes in BYTES {
        table.push(bytes.to_string(), times(&machine, bytes, &Algorithm::ALL)?);
    }
    let first = table.rows.first().map_or([0.0; 4], ours);
    let last = table.rows.last().map_or([0.0; 4], ours);
    let slowest = table.rows.iter().map(ours).all(|t| t[0] > 2.0 * t[1].max(t[2]).max(t[3]));
    let alike = first[1..].iter().all(|&t| (0.9..1.1).contains(&(t / first[1])));
    table.notes = vec![
        noted("linear is much slower than the others (twice)", slowest),
        noted("at the smallest size the others are alike (within 10 %)", alike),
        noted("at the largest size pairwise is faster than recursive", last[1] < last[2]),
        noted("at the largest size balanced is faster than pairwise", last[3] < last[1]),
    ];
    Ok(table)
}

fn ours(row: &PaperRow) -> [f64; 4] {
    std::array::from_fn(|column| row.cells.get(column).map_or(0.0, |cell| cell.ours))
}

fn noted(statement: &str, holds: bool) -> String {
    format!("The paper: {statement}. Ours: {}.", if holds { "so" } else { "not so" })
}

fn processors(number: u8, bytes: u32, counts: &[u32]) -> Result<PaperTable, CompileError> {
    let title = format!("complete exchange of {bytes} bytes on the fabric, ms");
    let columns = columns("processors", &Algorithm::ALL[1..]);
    let mut table = PaperTable::new((Exhibit::Figure, number), title, &columns);
    for &processors in counts {
        let name = processors.to_string();
        table.push(name, times(&machine(processors)?, bytes, &Algorithm::ALL[1..])?);
    }
    // Whether recursive is the fastest, by processors.
    let fastest = table.rows.iter().map(ours).map(|t| t[1] < t[0].min(t[2]));
    let fastest: Vec<bool> = fastest.collect();
    let (few, many) = (fastest.first() == Some(&true), fastest.last() == Some(&true));
    table.notes = match bytes {
        0 => vec![noted("recursive is the fastest", fastest.iter().all(|&fastest| fastest))],
        _ => vec![
            noted("recursive is not the fastest on few processors", !few),
            noted("recursive is the fastest on many processors", many),
        ],
    };
    Ok(table)
}

/// Milliseconds of a complete exchange by each algorithm.
fn times(
    machine: &Arc<Machine>,
    bytes: u32,
    algorithms: &[Algorithm],
) -> Result<Vec<Beside>, CompileError> {
    let words = (bytes / machine.parameters().word_bytes).max(1);
    let time =
        |algorithm: &Algorithm| Ok(Beside::new(algorithm.milliseconds(machine, words)?, None));
    parallel::try_map(algorithms, time)
}
