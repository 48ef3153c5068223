//! Table 6 of the CM-5 paper: the two-dimensional FFT by a transpose.
//!
//! Rows of an N x N matrix of complex numbers in single precision are divided among p processors. Each
//! transforms its rows, the matrix is transposed by a complete exchange, and each transforms rows again:
//! 10 N^2 log2 N flops, and one exchange with messages of (N/p)^2 numbers of 8 bytes. The exchange is
//! measured on the fabric, with every word checked. The rate of the computation is not in the paper; it
//! is **calibrated** on one of the 32 numbers, BEX with N = 1024 on 32 processors, and all others follow.
//! What the transposes of REX reshuffle between its steps is free in the preset, as the paper has no
//! number for it.
//!
//! That the transform itself is right when the transposes are step plans is a test of `examples`, where
//! it equals the sequential one on `cm5:32`.

use std::sync::Arc;

use conset_ir::Machine;

use super::exchanges::{Algorithm, columns};
use super::{machine, planner_bug};
use crate::reproduce::beside::{Beside, Exhibit, PaperTable};
use crate::{CompileError, parallel};

const SIZES: [u32; 4] = [256, 512, 1024, 2048];
/// Seconds by processors, size and algorithm, in the order of [`Algorithm::ALL`].
const PAPER: [(u32, [[f64; 4]; 4]); 2] = [
    (
        32,
        [
            [0.215, 0.152, 0.112, 0.114],
            [0.845, 0.470, 0.467, 0.470],
            [3.135, 2.007, 2.480, 2.005],
            [14.780, 9.032, 9.245, 8.509],
        ],
    ),
    (
        256,
        [
            [4.340, 0.076, 0.077, 0.076],
            [4.750, 0.120, 0.120, 0.120],
            [5.968, 0.314, 0.313, 0.312],
            [18.087, 1.738, 2.160, 1.668],
        ],
    ),
];
/// Processors, row and column of the number that the rate is calibrated on.
const CALIBRATION: (usize, usize, usize) = (0, 2, 3);
const COMPLEX_BYTES: u32 = 8;

/// Table 6 for 32 and for 256 processors.
///
/// # Errors
/// A fault of the fabric, which is a bug.
pub fn table_6() -> Result<[PaperTable; 2], CompileError> {
    let mut transposes = Vec::with_capacity(PAPER.len());
    for (processors, _) in PAPER {
        let machine = machine(processors)?;
        let of_size = |&size: &u32| Algorithm::ALL.map(|algorithm| (size, algorithm));
        let cells: Vec<_> = SIZES.iter().flat_map(of_size).collect();
        transposes.push(parallel::try_map(&cells, |&(size, algorithm)| {
            transpose(&machine, processors, size, algorithm)
        })?);
    }
    let (table, row, column) = CALIBRATION;
    let computed =
        PAPER[table].1[row][column] - transposes[table][row * Algorithm::ALL.len() + column];
    let rate = flops(SIZES[row], PAPER[table].0) / computed;
    let tables = PAPER.iter().zip(&transposes).map(|((processors, paper), transposes)| {
        let title = format!("2-D FFT on {processors} processors, s");
        let mut columns = columns("N", &Algorithm::ALL);
        columns.push("transpose of balanced, %");
        let mut table = PaperTable::new((Exhibit::Table, 6), title, &columns);
        for ((size, paper), exchanges) in
            SIZES.iter().zip(paper).zip(transposes.chunks(Algorithm::ALL.len()))
        {
            let computed = flops(*size, *processors) / rate;
            let cells = exchanges.iter().zip(paper);
            let mut cells: Vec<Beside> = cells
                .map(|(exchange, paper)| Beside::new(computed + exchange, Some(*paper)))
                .collect();
            let balanced = exchanges[Algorithm::ALL.len() - 1];
            cells.push(Beside::new(100.0 * balanced / (balanced + computed), None));
            table.push(size.to_string(), cells);
        }
        table
    });
    let mut tables: Vec<PaperTable> = tables.collect();
    tables[0].notes.push(format!(
        "10 N^2 log2 N flops at {:.3} Mflop/s a processor, calibrated on {} of N = {} alone; the \
         transposes are measured on the fabric.",
        rate / 1e6,
        Algorithm::ALL[column].name(),
        SIZES[row]
    ));
    tables.try_into().map_err(|_| planner_bug(&"a table is missing"))
}

/// Floating-point operations of a processor.
fn flops(size: u32, processors: u32) -> f64 {
    let size = f64::from(size);
    10.0 * size * size * size.log2() / f64::from(processors)
}

/// Seconds of the complete exchange that transposes a matrix.
fn transpose(
    machine: &Arc<Machine>,
    processors: u32,
    size: u32,
    algorithm: Algorithm,
) -> Result<f64, CompileError> {
    let side = size / processors;
    let words = side * side * COMPLEX_BYTES / machine.parameters().word_bytes;
    Ok(algorithm.milliseconds(machine, words)? / 1e3)
}
