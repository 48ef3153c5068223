//! The paper's tables and figures, ours beside its own.
//!
//! * [`paper`]: what the paper printed.
//! * [`patterns`]: Tables 1 to 3 (torus, hypercube, all-to-all), on preset `iwarp-stream`.
//! * [`meshes`]: Tables 4 to 6 and the data of Figure 5, on preset `iwarp-fem`.
//! * [`figures`]: Figures 2 to 6 as SVG.
//!
//! Every number marked *measured* comes from the fabric, with every word checked; every number
//! marked *predicted* from the paper's own cost model, which is arithmetic. `docs/fidelity.md`
//! says what in the model is the paper's and what is inferred, and goes through the residuals.
//!
//! Nothing here tunes anything: the machine is the preset, the algorithm is
//! [`Algorithm::Paper`](crate::Algorithm::Paper) with its defaults and seed [`SEED`].

pub mod figures;
pub mod meshes;
pub mod paper;
pub mod patterns;

use std::sync::Arc;

use conset_fabric::Fault;
use conset_fabric::messages::{self, MessageOptions, MessageOrder};
use conset_ir::{ConnectionSet, Machine, Program};
use serde::Serialize;

use crate::{CompileError, Observer, Options, compile, run};

/// The seed of the partitioner, placement, random orders and words.
pub const SEED: u64 = 1;

/// A number of ours beside the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Ours.
    pub ours: u64,
    /// The paper's, if it has one.
    pub paper: Option<u64>,
    /// Ours less the paper's, in percent of the paper's.
    pub error_percent: Option<f64>,
}

impl Compared {
    fn new(ours: u64, paper: Option<u64>) -> Self {
        let error_percent = paper.map(|paper| error_percent(ours as f64, paper as f64));
        Self { ours, paper, error_percent }
    }

    /// The error's size, 0 where there is nothing to compare with.
    pub fn error(&self) -> f64 {
        self.error_percent.map_or(0.0, f64::abs)
    }
}

/// The four bandwidths of a point of Figures 2, 3, 4 and 6, in MB/s of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// What the fabric measured of a compiled program.
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
) -> Result<crate::Compiled, CompileError> {
    let algorithm = crate::Algorithm::Paper;
    compile(machine, program, &Options { algorithm, seed: SEED, ..Options::default() }, observer)
}

fn measured(
    compiled: &crate::Compiled,
    observer: &mut Observer<'_>,
) -> Result<Measured, CompileError> {
    let runs = run::run(compiled, SEED, false, observer)
        .map_err(|error| CompileError::bug("the run", &error))?;
    let summaries = || runs.iter().map(|run| &run.summary);
    Ok(Measured {
        phases: summaries().map(|s| s.phases as u64).sum(),
        clocks: summaries().map(|s| s.clocks).sum(),
        modelled: summaries().map(|s| s.predicted_clocks).sum(),
        payload_ok: summaries().all(|s| s.payload_ok),
    })
}

fn stopped(fault: &Fault) -> CompileError {
    CompileError::Bug { stage: "the fabric", message: fault.to_string() }
}

/// Random orders of sending over which a time is averaged.
pub const RANDOM_ORDERS: u64 = 3;

/// Message passing: clocks, and whether every word arrived. Of an order that depends on the
/// seed one run says little (they differ by a tenth), so it is the mean of [`RANDOM_ORDERS`].
fn by_messages(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    order: MessageOrder,
) -> Result<(u64, bool), CompileError> {
    let orders = if order == MessageOrder::Random { RANDOM_ORDERS } else { 1 };
    let (mut clocks, mut arrived) = (0, true);
    for seed in SEED..SEED + orders {
        let options = MessageOptions::default().with_seed(seed).with_order(order);
        let report =
            messages::run_checked(machine, set, &options).map_err(|fault| stopped(&fault))?;
        clocks += report.clocks;
        arrived &= report.payload_ok && report.words == set.words();
    }
    Ok((clocks / orders, arrived))
}
