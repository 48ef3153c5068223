//! Reproducing the tables and figures of the ConSet paper and of others, our numbers beside the papers'.
//!
//! * [`paper`]: the numbers printed in the paper.
//! * [`patterns`]: Tables 1 to 3 (torus, hypercube, all-to-all), on preset `iwarp-stream`.
//! * [`meshes`]: Tables 4 to 6 and the data of Figure 5, on preset `iwarp-fem`.
//! * [`figures`]: Figures 2 to 6 as SVG.
//! * [`mod@c3`], [`c3_measured`], [`cm5`], [`acl`] and [`active`]: figures and tables of four other papers,
//!   with their numbers ([`beside`]).
//!
//! Every number marked *measured* comes from the emulated fabric, with every word checked; every
//! number marked *predicted* comes from the paper's own cost model, a formula. `docs/fidelity.md`
//! says what in the model is the paper's and what is inferred, and discusses the differences.
//!
//! Nothing is tuned: the machine is the preset, and the algorithm is
//! [`Algorithm::Paper`] with its defaults and seed [`SEED`].

pub mod acl;
pub mod active;
pub mod beside;
pub mod c3;
pub mod c3_barriers;
pub mod c3_measured;
pub mod cm5;
pub mod figures;
pub mod meshes;
pub mod paper;
pub mod patterns;

use std::sync::Arc;

use conset_fabric::Fault;
use conset_fabric::messages::{self, MessageOptions, MessageOrder};
use conset_ir::convert::{to_f64, to_u64};
use conset_ir::{ConnectionSet, Machine, Program};
use serde::Serialize;

use crate::{Algorithm, CompileError, Compiled, Compiler, Observer, run};

/// The seed of the partitioner, placement, random orders and words.
pub const SEED: u64 = 1;

/// Our number beside the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compared {
    /// Ours.
    pub ours: u64,
    /// The paper's, if there is one.
    pub paper: Option<u64>,
    /// The difference, ours minus the paper's, in percent of the paper's.
    pub error_percent: Option<f64>,
}

impl Compared {
    fn new(ours: u64, paper: Option<u64>) -> Self {
        let error_percent = paper.map(|paper| error_percent(to_f64(ours), to_f64(paper)));
        Self { ours, paper, error_percent }
    }

    /// The absolute value of the difference in percent; 0 if the paper has no number.
    pub fn error(&self) -> f64 {
        self.error_percent.map_or(0.0, f64::abs)
    }
}

/// The four bandwidths of a point of Figures 2, 3, 4 and 6, in MB/s of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bandwidths {
    /// ConSet, predicted.
    pub conset_predicted: f64,
    /// ConSet, measured.
    pub conset_measured: f64,
    /// Message passing, predicted.
    pub message_predicted: f64,
    /// Message passing, measured.
    pub message_measured: f64,
}

fn error_percent(ours: f64, paper: f64) -> f64 {
    100.0 * (ours / paper - 1.0)
}

/// Sums over the sets of an executed program.
struct Measured {
    phases: u64,
    clocks: u64,
    modelled: u64,
    payload_ok: bool,
}

fn compiled(
    machine: &Arc<Machine>,
    program: &Program,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let compiler = Compiler::new(machine).algorithm(Algorithm::Paper).seed(SEED);
    compiler.observer(observer).compile(program)
}

fn measured(compiled: &Compiled, observer: &mut Observer<'_>) -> Result<Measured, CompileError> {
    let runs = run::run(compiled, SEED, false, observer)
        .map_err(|error| CompileError::bug("the run", &error))?;
    let summaries = || runs.iter().map(|run| &run.summary);
    Ok(Measured {
        phases: summaries().map(|s| to_u64(s.phases)).sum(),
        clocks: summaries().map(|s| s.measured_clocks).sum(),
        modelled: summaries().map(|s| s.predicted_clocks).sum(),
        payload_ok: summaries().all(|s| s.payload_ok),
    })
}

fn fabric_bug(fault: &Fault) -> CompileError {
    CompileError::Bug { stage: "the fabric", message: fault.to_string() }
}

/// The number of random message orders over which a time is averaged.
pub const RANDOM_ORDERS: u64 = 3;

/// Message passing: clocks, and whether every word arrived. Random orders differ by about a tenth,
/// so their time is the mean of [`RANDOM_ORDERS`] runs.
fn by_messages(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    order: MessageOrder,
) -> Result<(u64, bool), CompileError> {
    let orders = if order == MessageOrder::Random { RANDOM_ORDERS } else { 1 };
    let (mut clocks, mut arrived) = (0, true);
    for seed in SEED..SEED + orders {
        let options = MessageOptions::default().seed(seed).with_order(order);
        let report =
            messages::run_checked(machine, set, &options).map_err(|fault| fabric_bug(&fault))?;
        clocks += report.clocks;
        arrived &= report.payload_ok && report.words == set.words();
    }
    Ok((clocks / orders, arrived))
}
