//! The head of a page: machine, sets, bounds and summaries as JSON, and the directory of the blocks.

use std::collections::BTreeMap;

use conset::diff::Diff;
use conset::partition_route::bounds::Bound;
use conset::profile::{PathClocks, SideClocks, Slack};
use conset::report::{MachineSummary, PartsSummary, SetSummary, UncheckedSet, ViolationReport};
use conset::step_views::StepDiff;
use conset::steps::StepSummary;
use conset::verify::Rejection;
use conset_ir::{Binding, CellId, Origin, Topology};
use serde::Serialize;

use crate::columns::Directory;

/// The version of the head and the blocks. The application in the same page reads exactly this one;
/// the number is for other programs that read pages.
pub(crate) const VERSION: u32 = 1;

/// The head.
#[derive(Serialize)]
pub(crate) struct Head<'a> {
    pub(crate) format: &'static str,
    pub(crate) version: u32,
    pub(crate) generator: String,
    pub(crate) title: String,
    pub(crate) schedules: Vec<ScheduleHead<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<Difference>,
    /// The blocks, by name; the names are those that schedules and sets refer to.
    pub(crate) blocks: BTreeMap<String, Directory>,
    pub(crate) left_out: Vec<String>,
}

/// The differences between two schedules of one kind.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Difference {
    Phases(Box<Diff>),
    Steps(Box<StepDiff>),
}

/// A schedule.
#[derive(Serialize)]
pub(crate) struct ScheduleHead<'a> {
    pub(crate) name: &'a str,
    /// `phases` or `steps`.
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<OriginHead<'a>>,
    pub(crate) machine: MachineHead<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<PartsSummary>,
    pub(crate) sets: Vec<SetHead>,
    /// Why the checker refused it, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedHead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mesh: Option<MeshHead>,
}

/// Why the checker refused a schedule.
#[derive(Clone, Serialize)]
pub(crate) struct RefusedHead {
    /// The first violations.
    violations: Vec<ViolationReport>,
    total_violations: u64,
}

impl RefusedHead {
    pub(crate) fn new(rejection: &Rejection) -> Self {
        Self { violations: ViolationReport::of(rejection), total_violations: rejection.total() }
    }
}

/// How the schedule was made.
#[derive(Serialize)]
pub(crate) struct OriginHead<'a> {
    generator: &'a str,
    algorithm: &'a str,
    seed: u64,
}

impl<'a> From<&'a Origin> for OriginHead<'a> {
    fn from(origin: &'a Origin) -> Self {
        Self { generator: &origin.generator, algorithm: &origin.algorithm, seed: origin.seed }
    }
}

/// A machine.
#[derive(Serialize)]
pub(crate) struct MachineHead<'a> {
    pub(crate) summary: MachineSummary,
    /// `torus`, `mesh`, `ring`, `hypercube`, `fat-tree`, `cluster` or `graph`.
    pub(crate) kind: &'static str,
    /// Cells in each dimension, for topologies with coordinates.
    pub(crate) dims: Option<Vec<u32>>,
    pub(crate) wraps: bool,
    /// Nodes in each level of a fat-tree or cluster, from the leaves up.
    pub(crate) levels: Vec<usize>,
    /// All cells, switches included.
    pub(crate) cell_count: usize,
    /// Cells with an agent; switches are numbered after them.
    pub(crate) agents: usize,
    pub(crate) dead_cells: &'a [CellId],
    pub(crate) dead_links: &'a [(CellId, CellId)],
    pub(crate) parameters: BTreeMap<&'static str, u32>,
    pub(crate) duplex: &'static str,
    pub(crate) protocol: &'static str,
}

impl MachineHead<'_> {
    /// Nodes in each level of a fat-tree or cluster.
    pub(crate) fn levels(topology: &Topology) -> Vec<usize> {
        topology.tree_levels().iter().map(|level| level.groups * level.nodes).collect()
    }
}

/// A set.
#[derive(Serialize)]
pub(crate) struct SetHead {
    /// What `conset show summary --json` says of it.
    pub(crate) summary: SummaryHead,
    /// All lower bounds, those on clocks and those on phases.
    pub(crate) bounds: Vec<BoundHead>,
    /// Where its clocks went; `None` if nothing is predicted: messages have no routes on the machine, or
    /// the checker refused the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<ProfileHead>,
    /// Whether the streams have the words of their whole connections.
    pub(crate) whole: bool,
    /// The number of groups of cells in the matrix that replaces connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<usize>,
}

/// The sums of a profile, with the names of `conset show profile --json`.
#[derive(Serialize)]
pub(crate) struct ProfileHead {
    pub(crate) clocks: u64,
    pub(crate) sides: Vec<SideClocks>,
    /// Where the clocks of the critical path go.
    pub(crate) path: PathClocks,
    pub(crate) slack: Slack,
}

/// The summary of a set of either kind.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SummaryHead {
    Phases(Box<SetSummary>),
    Steps(Box<StepSummary>),
    Unchecked(UncheckedSet),
}

/// A lower bound.
#[derive(Serialize)]
pub(crate) struct BoundHead {
    /// `phases` or `clocks`.
    pub(crate) of: &'static str,
    pub(crate) by: Binding,
    pub(crate) value: u64,
    /// Why no schedule can be below it.
    pub(crate) witness: String,
}

impl BoundHead {
    /// The bounds in a report.
    pub(crate) fn all<'a>(
        of: &'static str,
        bounds: &'a [Bound],
    ) -> impl Iterator<Item = BoundHead> + 'a {
        bounds.iter().map(move |bound| BoundHead {
            of,
            by: bound.binding,
            value: bound.value,
            witness: bound.explanation.clone(),
        })
    }
}

/// The mesh.
#[derive(Serialize)]
pub(crate) struct MeshHead {
    /// 2 if all points are in one plane, else 3.
    pub(crate) dimension: u8,
    pub(crate) polygons: usize,
    /// Elements that are not drawn, because their format does not state the order of their nodes.
    pub(crate) not_drawn: usize,
    /// The box of the points: least and greatest coordinates.
    pub(crate) least: [f64; 3],
    pub(crate) greatest: [f64; 3],
}
