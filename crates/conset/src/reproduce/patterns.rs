//! Tables 1 to 3: the basic patterns at four sizes.
//!
//! * *ConSet, predicted*: phases x 520 + 2 clocks for each word that a cell sends, with the
//!   paper's number of phases. This is the paper's formula.
//! * *ConSet, measured*: compiled by the paper's algorithm, executed on the fabric.
//! * *message passing, predicted*: the paper's cost model. For all-to-all it includes a message of
//!   each cell to itself.
//! * *message passing, measured*: on the fabric; all-to-all in random order (section 5.1.3).
//!
//! # The two hypercube measurements
//!
//! The paper's compiler made two phases of 8 channels on every cell. Ours uses the same algorithm as
//! far as it is described, and makes two phases that are less balanced. To separate the error of the
//! router from that of the fabric, the row is measured again with the phases that the paper states:
//! the connections along x, then those along y, each compiled by itself, with 8 channels on every
//! cell over shortest routes. This is an additional number ([`PatternRow::stated_phases_measured`])
//! and does not replace the first. (Other divisions also have 8 channels everywhere; that the paper
//! used this one is an assumption.)

use std::sync::Arc;

use conset_fabric::messages::{self, MessageOrder};
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Program};
use serde::Serialize;

use super::paper::{self, PREDICTED_SWITCH, WORDS};
use super::{Bandwidths, Compared, by_messages, compiled, measured};
use crate::{CompileError, Observer, input, report};

/// One of Tables 1 to 3.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PatternTable {
    /// Its number in the paper.
    pub table: u8,
    /// The figure that shows it as bandwidth.
    pub figure: u8,
    /// The pattern's name in specifications.
    pub pattern: &'static str,
    /// Its name in the paper.
    pub title: &'static str,
    /// Phases.
    pub phases: Compared,
    /// One for each size.
    pub rows: Vec<PatternRow>,
}

/// A pattern at one size. Clocks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PatternRow {
    /// Words of each connection.
    pub words: u32,
    /// Our phases.
    pub phases: u64,
    /// ConSet by the paper's cost model.
    pub conset_predicted: Compared,
    /// ConSet by our cost model, which includes link sharing; not in the paper.
    pub conset_modelled: u64,
    /// ConSet on the fabric.
    pub conset_measured: Compared,
    /// The hypercube with the phases that the paper states; see the module text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_phases_measured: Option<Compared>,
    /// Message passing by the paper's cost model.
    pub message_predicted: Compared,
    /// Message passing on the fabric.
    pub message_measured: Compared,
    /// Our clocks as aggregate bandwidth (section 5.1).
    pub bandwidth: Bandwidths,
    /// The paper's clocks as aggregate bandwidth.
    pub paper_bandwidth: Bandwidths,
    /// Whether every word arrived once, in order, at the right cell, in all runs of the row.
    pub payload_ok: bool,
}

/// Computes one of Tables 1 to 3.
///
/// # Errors
/// Only bugs of a stage.
pub fn table(
    of: &paper::PaperPattern,
    observer: &mut Observer<'_>,
) -> Result<PatternTable, CompileError> {
    let rows = (0..WORDS.len()).map(|at| row(of, at, observer)).collect::<Result<Vec<_>, _>>()?;
    // Routes do not depend on words, so all rows have the same phases.
    let phases = rows.first().map_or(0, |row| row.phases);
    Ok(PatternTable {
        table: of.table,
        figure: of.figure,
        pattern: of.pattern,
        title: of.title,
        phases: Compared::new(phases, Some(of.phases)),
        rows,
    })
}

/// Computes one row, `at` of [`WORDS`].
///
/// # Errors
/// As [`table`].
///
/// # Panics
/// If there is no size `at`.
pub fn row(
    of: &paper::PaperPattern,
    at: usize,
    observer: &mut Observer<'_>,
) -> Result<PatternRow, CompileError> {
    let machine =
        &Arc::new(Machine::from_spec("iwarp-stream").map_err(conset_ir::InputError::from)?);
    let words = WORDS[at];
    let program = input::pattern(of.pattern, machine, words)?.program;
    let set = &program.sets()[0];
    let conset = measured(&compiled(machine, &program, observer)?, observer)?;
    let mut payload_ok = conset.payload_ok;
    let stated_phases_measured = if of.pattern == "hypercube" {
        let program = along_axes(machine, set)?;
        let split = measured(&compiled(machine, &program, observer)?, observer)?;
        payload_ok &= split.payload_ok;
        Some(Compared::new(split.clocks, Some(of.conset_measured[at])))
    } else {
        None
    };
    let order = if of.pattern == "all-to-all" { MessageOrder::Random } else { MessageOrder::Given };
    let (messages, messages_ok) = by_messages(machine, set, order)?;

    let conset_predicted = predicted(machine, set, of.phases);
    let message_predicted = predicted_messages(machine, set, of.pattern)?;
    let speed = |clocks| report::megabytes_per_second(set.words(), clocks, machine.parameters());
    Ok(PatternRow {
        words,
        phases: conset.phases,
        conset_predicted: Compared::new(conset_predicted, Some(of.conset_predicted[at])),
        conset_modelled: conset.modelled,
        conset_measured: Compared::new(conset.clocks, Some(of.conset_measured[at])),
        stated_phases_measured,
        message_predicted: Compared::new(message_predicted, Some(of.message_predicted[at])),
        message_measured: Compared::new(messages, Some(of.message_measured[at])),
        bandwidth: Bandwidths {
            conset_predicted: speed(conset_predicted),
            conset_measured: speed(conset.clocks),
            message_predicted: speed(message_predicted),
            message_measured: speed(messages),
        },
        paper_bandwidth: Bandwidths {
            conset_predicted: speed(of.conset_predicted[at]),
            conset_measured: speed(of.conset_measured[at]),
            message_predicted: speed(of.message_predicted[at]),
            message_measured: speed(of.message_measured[at]),
        },
        payload_ok: payload_ok && messages_ok,
    })
}

/// The paper's cost model of ConSet: context switches, and the words of the cell that sends most.
fn predicted(machine: &Machine, set: &ConnectionSet, phases: u64) -> u64 {
    let mut sent = vec![0u64; machine.cell_count()];
    for connection in set.connections() {
        sent[connection.source.index()] += u64::from(connection.words);
    }
    let access = u64::from(machine.parameters().access_clocks_per_word);
    phases * PREDICTED_SWITCH + access * sent.into_iter().max().unwrap_or(0)
}

fn predicted_messages(
    machine: &Machine,
    set: &ConnectionSet,
    pattern: &str,
) -> Result<u64, CompileError> {
    if pattern != "all-to-all" {
        return Ok(messages::predict(machine, set));
    }
    let words = set.connections().first().map_or(0, |c| c.words);
    let itself = machine.endpoints().map(|cell| Connection::new(cell, cell, words));
    let all = set.connections().iter().cloned().chain(itself).collect();
    Ok(messages::predict(machine, &own_set("with-itself", all)?))
}

/// The connections within a row as one set and the others as another, so that each is compiled by
/// itself.
fn along_axes(machine: &Machine, set: &ConnectionSet) -> Result<Program, CompileError> {
    let row_of = |cell: CellId| match machine.topology() {
        conset_ir::Topology::Torus { dims } => cell.0 / dims[0],
        _ => cell.0,
    };
    let (x, y): (Vec<_>, Vec<_>) =
        set.connections().iter().cloned().partition(|c| row_of(c.source) == row_of(c.target));
    let sets = vec![Arc::new(own_set("along-x", x)?), Arc::new(own_set("along-y", y)?)];
    Program::new(sets).map_err(|e| bug(&e))
}

fn own_set(name: &str, connections: Vec<Connection>) -> Result<ConnectionSet, CompileError> {
    ConnectionSet::new(name, connections).map_err(|e| bug(&e))
}

fn bug(error: &dyn std::fmt::Display) -> CompileError {
    CompileError::Bug { stage: "reproduce", message: error.to_string() }
}
