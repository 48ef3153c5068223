//! Reports of a compilation and an execution, as plain data: the objects behind `--json` and the
//! texts.
//!
//! Bounds, predictions and measurements are always reported together, with their ratios and the model
//! error.

use conset_ir::convert::{index, to_f64, to_u64};
use conset_ir::{
    Binding, CellId, ConnectionSet, Machine, Parameters, Schedule, SetSchedule, SetSteps,
};
use conset_mesh::halo::HaloSummary;
use conset_verify::{Rejection, Violation};
use serde::Serialize;

use crate::bound_ratio;
use crate::compiled::{Compiled, CompiledSet};
use crate::incremental::ReuseOutcome;
use crate::input::{PartitionReport, PlacedHalo};
use crate::search::SearchStats;

/// What lower bounds are bounds of, and thus what "optimal" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BoundOf {
    /// Of the set: no schedule of these connections is below the bound.
    Set,
    /// Of the partition that the connections follow from: no schedule of these connections is below
    /// the bound, but another partition of the same mesh, graph or matrix has other bounds.
    Partition,
}

impl BoundOf {
    /// Of the partition if the connections have lists of the nodes whose values they carry.
    pub fn of(set: &ConnectionSet) -> Self {
        if set.nodes().is_some() { BoundOf::Partition } else { BoundOf::Set }
    }
}

/// The summary of a compiled set.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SetSummary {
    /// The set's name.
    pub set: String,
    /// Number of connections.
    pub connections: usize,
    /// Words of all connections.
    pub words: u64,
    /// Phases.
    pub phases: usize,
    /// Lower bound on the phases.
    pub bound_phases: u32,
    /// The kind of that bound.
    pub bound_phases_by: Binding,
    /// Clocks predicted by the cost model, context switches included.
    pub predicted_clocks: u64,
    /// Lower bound on the clocks.
    pub bound_clocks: u64,
    /// The kind of that bound.
    pub bound_clocks_by: Binding,
    /// Predicted clocks divided by the bound.
    pub clocks_over_bound: f64,
    /// Phases divided by the bound.
    pub phases_over_bound: f64,
    /// What the bounds are bounds of.
    pub bound_of: BoundOf,
    /// Whether the phases are at the bound, and so the fewest possible.
    pub fewest_phases: bool,
    /// Whether the predicted clocks are at the bound. If they are proved, they are the fewest
    /// possible.
    pub fewest_clocks: bool,
    /// Whether the checker proved the length of every phase, so that the predicted clocks are exact.
    pub clocks_proved: bool,
    /// Statistics of the search, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStats>,
    /// What was reused of an earlier schedule, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<ReuseOutcome>,
    /// Greatest number of channels in use on a cell in a phase.
    pub max_channels: u32,
    /// Greatest number of routes that share a link in a phase.
    pub max_sharing: u32,
    /// Hops of all routes together.
    pub hops: u64,
}

impl SetSummary {
    /// The summary of a set.
    pub fn new(schedule: &SetSchedule, compiled: &CompiledSet) -> Self {
        let routing = schedule.timetable.routing();
        let bounds = schedule.bounds;
        let clocks_over_bound = bound_ratio(schedule.predicted_clocks, bounds.clocks);
        let phases = to_u64(routing.phases().len());
        let phases_over_bound = bound_ratio(phases, u64::from(bounds.phases));
        Self {
            set: routing.set().name().to_owned(),
            connections: routing.set().len(),
            words: routing.set().words(),
            phases: routing.phases().len(),
            bound_phases: bounds.phases,
            bound_phases_by: bounds.phases_by,
            predicted_clocks: schedule.predicted_clocks,
            bound_clocks: bounds.clocks,
            bound_clocks_by: bounds.clocks_by,
            clocks_over_bound,
            phases_over_bound,
            bound_of: BoundOf::of(routing.set()),
            fewest_phases: routing.phases().len() == index(bounds.phases),
            fewest_clocks: schedule.predicted_clocks <= bounds.clocks,
            clocks_proved: compiled.checked.proved_phases == phases,
            search: compiled.search.clone(),
            reuse: compiled.reuse.clone(),
            max_channels: compiled.checked.max_occupancy,
            max_sharing: compiled.checked.max_sharing,
            hops: compiled.checked.hops,
        }
    }
}

/// The summary of a compiled program.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The machine.
    pub machine: MachineSummary,
    /// The sets.
    pub sets: Vec<SetSummary>,
    /// Candidate plans that were dropped because they were invalid. Each is a bug in conset.
    pub candidates_refused: u32,
    /// The parts, if the sets come from a mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartsSummary>,
}

impl Summary {
    /// The summary of a compiled program.
    pub fn new(compiled: &Compiled, halo: Option<&PlacedHalo>) -> Self {
        let schedule = compiled.schedule();
        Self {
            machine: MachineSummary::new(schedule.machine()),
            sets: schedule
                .sets()
                .iter()
                .zip(compiled.sets())
                .map(|(schedule, compiled)| SetSummary::new(schedule, compiled))
                .collect(),
            candidates_refused: compiled.candidates_refused(),
            parts: halo
                .map(|placed| PartsSummary::new(&placed.halo.summary, placed.partition.clone())),
        }
    }

    /// A note for the user, if candidate plans were dropped.
    pub fn refused_note(&self) -> Option<String> {
        let plans = match self.candidates_refused {
            0 => return None,
            1 => "1 candidate plan was".to_owned(),
            n => format!("{n} candidate plans were"),
        };
        Some(format!(
            "{plans} refused by the checker (bug in conset; please report this with the input); \
             the result is correct but may be slower than it could be"
        ))
    }
}

/// The summary of a machine.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MachineSummary {
    /// Its name.
    pub name: String,
    /// Its shape, in the spelling of a machine specification.
    pub topology: String,
    /// Cells with a live agent.
    pub cells: usize,
    /// Live links.
    pub links: usize,
    /// Logical channels per cell that connections can use.
    pub channels_per_cell: u32,
}

impl MachineSummary {
    /// The summary of a machine.
    pub fn new(machine: &Machine) -> Self {
        Self {
            name: machine.name().to_owned(),
            topology: machine.topology().to_string(),
            cells: machine.endpoints().count(),
            links: machine.cells().map(|cell| machine.outgoing(cell).len()).sum(),
            channels_per_cell: machine.parameters().channels_per_cell,
        }
    }
}

/// A set of a schedule that the checker refused: numbers that can be counted. What the schedule
/// claims of its bounds and clocks is not among them.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UncheckedSet {
    /// The set's name.
    pub set: String,
    /// Number of connections.
    pub connections: usize,
    /// Words of all connections.
    pub words: u64,
    /// Phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<usize>,
    /// Steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Messages of these steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
}

impl UncheckedSet {
    fn new(set: &ConnectionSet) -> Self {
        Self {
            set: set.name().to_owned(),
            connections: set.len(),
            words: set.words(),
            phases: None,
            steps: None,
            messages: None,
        }
    }

    /// A set of phases.
    pub fn of_phases(set: &SetSchedule) -> Self {
        let routing = set.timetable.routing();
        Self { phases: Some(routing.phases().len()), ..Self::new(routing.set()) }
    }

    /// A set of steps.
    pub fn of_steps(set: &SetSteps) -> Self {
        let messages = set.steps.messages();
        let (steps, messages) = (Some(messages.steps()), Some(messages.len()));
        Self { steps, messages, ..Self::new(set.steps.set()) }
    }
}

/// A violation of a rule of the checker.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ViolationReport {
    /// The name of the rule.
    pub rule: &'static str,
    /// The set's name.
    pub set: String,
    /// Where it is, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// The step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// The connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// What is wrong and what was expected.
    pub message: String,
}

impl ViolationReport {
    fn new(violation: &Violation) -> Self {
        Self {
            rule: violation.rule.name(),
            set: violation.set.clone(),
            phase: violation.phase.map(|id| id.0),
            step: violation.step.map(|id| id.0),
            cell: violation.cell.map(|id| id.0),
            connection: violation.connection.map(|id| id.0),
            message: violation.message.clone(),
        }
    }

    /// The violations that a rejection lists.
    pub fn of(rejection: &Rejection) -> Vec<Self> {
        rejection.violations().iter().map(Self::new).collect()
    }
}

/// The summary of the parts of a mesh.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PartsSummary {
    /// The number of parts.
    pub parts: usize,
    /// Elements, vertices or rows of the smallest and of the largest part, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_part: Option<[u64; 2]>,
    /// Words sent by a part: the least and the most.
    pub words_per_part: [u64; 2],
    /// Greatest number of parts that one part sends to or receives from.
    pub max_degree: usize,
    /// Words that all parts send together.
    pub words: u64,
    /// Imbalance and cut of the partition, and how it was found, if these are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionReport>,
}

impl PartsSummary {
    /// The summary of a partition and its exchange. Without `partition` the input is a list of
    /// connections, whose parts have no items.
    pub fn new(summary: &HaloSummary, partition: Option<PartitionReport>) -> Self {
        Self {
            parts: summary.parts,
            items_per_part: partition.as_ref().map(|_| [summary.items.min, summary.items.max]),
            words_per_part: [summary.words_sent.min, summary.words_sent.max],
            max_degree: summary.degree,
            words: summary.words,
            partition,
        }
    }

    /// What a schedule says about the parts that it was made for, all sets together; `None` if it
    /// was not made for parts. It does not have their items.
    pub fn of_schedule(schedule: &Schedule) -> Option<Self> {
        let map = schedule.part_map()?;
        let part_of = map.parts_of(schedule.machine().cell_count());
        let part = |cell: CellId| part_of.get(cell.index()).copied().flatten();
        let mut pairs = Vec::new();
        let mut sent = vec![0; map.cells().len()];
        for set in schedule.sets() {
            for connection in set.timetable.routing().set().connections() {
                let (source, target) = (part(connection.source), part(connection.target));
                if let Some(source) = source {
                    sent[index(source)] += u64::from(connection.words);
                }
                pairs.extend(source.zip(target));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut degrees = vec![[0usize; 2]; sent.len()];
        for &(source, target) in &pairs {
            degrees[index(source)][0] += 1;
            degrees[index(target)][1] += 1;
        }
        Some(Self {
            parts: sent.len(),
            items_per_part: None,
            words_per_part: [
                sent.iter().min().copied().unwrap_or(0),
                sent.iter().max().copied().unwrap_or(0),
            ],
            max_degree: degrees.into_iter().flatten().max().unwrap_or(0),
            words: sent.iter().sum(),
            partition: None,
        })
    }
}

/// The summary of a set executed by message passing: the object `messages` of
/// `conset run --compare messages`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MessagesSummary {
    /// The order of sending: the fastest of those that were tried; of several sets, that of all, or
    /// `mixed`.
    pub order: &'static str,
    /// Clocks measured on the fabric.
    pub measured_clocks: u64,
    /// Clocks by the paper's cost model, which leaves out congestion.
    pub predicted_clocks: u64,
    /// Clocks by messages divided by clocks by connections; above 1 if connections are faster.
    pub clocks_over_phases: f64,
    /// Messages sent.
    pub messages: usize,
    /// Words of data delivered.
    pub words: u64,
    /// Words times hops, headers and trailers included.
    pub word_hops: u64,
    /// Whether every word arrived exactly once, in order, at the right cell.
    pub payload_ok: bool,
    /// Delivered bytes per second of all cells together, in MB/s.
    pub megabytes_per_second: f64,
}

impl MessagesSummary {
    /// The sum over several sets, for an execution by connections that took `clocks`.
    pub fn sum(all: &[&Self], clocks: u64, parameters: &Parameters) -> Self {
        let own = all.iter().map(|m| m.measured_clocks).sum();
        let words = all.iter().map(|m| m.words).sum();
        let order = all.first().map_or("given", |first| first.order);
        Self {
            order: if all.iter().all(|m| m.order == order) { order } else { "mixed" },
            measured_clocks: own,
            predicted_clocks: all.iter().map(|m| m.predicted_clocks).sum(),
            clocks_over_phases: bound_ratio(own, clocks),
            messages: all.iter().map(|m| m.messages).sum(),
            words,
            word_hops: all.iter().map(|m| m.word_hops).sum(),
            payload_ok: all.iter().all(|m| m.payload_ok),
            megabytes_per_second: megabytes_per_second(words, own, parameters),
        }
    }
}

/// The summary of an executed set: the object of `conset run --json`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The set's name.
    pub set: String,
    /// The number of batches, if these are sums over the batches of a set ([`crate::batches`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<u32>,
    /// Phases executed.
    pub phases: usize,
    /// Lower bound on the phases.
    pub bound_phases: u32,
    /// The kind of that bound.
    pub bound_phases_by: Binding,
    /// Whether the phases are at the bound, and so the fewest possible.
    pub fewest_phases: bool,
    /// Clocks measured on the fabric, context switches included.
    pub measured_clocks: u64,
    /// Clocks predicted by the cost model.
    pub predicted_clocks: u64,
    /// Lower bound on the clocks.
    pub bound_clocks: u64,
    /// The kind of that bound.
    pub bound_clocks_by: Binding,
    /// Clocks divided by the bound.
    pub clocks_over_bound: f64,
    /// What the bounds are bounds of.
    pub bound_of: BoundOf,
    /// Predicted minus measured, in percent of measured.
    pub model_error_percent: f64,
    /// Connections.
    pub connections: usize,
    /// Words delivered.
    pub words: u64,
    /// Words times hops.
    pub word_hops: u64,
    /// Whether every word arrived exactly once, in order, at the right cell.
    pub payload_ok: bool,
    /// Delivered bytes per second of all cells together, in MB/s, as in the paper's figures.
    pub megabytes_per_second: f64,
    /// The same set by message passing, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
    /// The same set by a step plan, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsComparison>,
}

/// A set by the best step plan, executed on the fabric for comparison with an execution by
/// connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepsComparison {
    /// The planner of the plan.
    pub planner: String,
    /// Clocks measured on the fabric.
    pub measured_clocks: u64,
    /// Predicted clocks, if they are stated.
    pub predicted_clocks: Option<u64>,
    /// Clocks by steps divided by clocks by connections; above 1 if connections are faster.
    pub clocks_over_phases: f64,
    /// Steps.
    pub steps: usize,
    /// Messages sent.
    pub messages: usize,
    /// Whether every word of every message arrived, in order, at the right cell.
    pub payload_ok: bool,
    /// Delivered bytes per second of all cells together, in MB/s.
    pub megabytes_per_second: f64,
}

/// Aggregate bandwidth as in the paper's section 5.1: bytes over time, 1 MB = 10^6 bytes.
pub fn megabytes_per_second(words: u64, clocks: u64, parameters: &Parameters) -> f64 {
    if clocks == 0 {
        return 0.0;
    }
    let bytes = to_f64(words) * f64::from(parameters.word_bytes);
    bytes / to_f64(clocks) * f64::from(parameters.clock_hz) / 1e6
}
