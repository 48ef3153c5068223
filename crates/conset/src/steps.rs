//! Compiling to steps: which planners of messages are tried, and which plan is kept.
//!
//! Each set is planned by one planner ([`StepAlgorithm`]) or by all of them. Every plan is priced by
//! the cost model of messages ([`conset_scheduler::steps::predict`]) with the routes of the machine,
//! and the cheapest that the checker accepts is kept. The planners are tried in a fixed order: plans
//! with one level first, then those by nodes (on clusters) and by halves, then those with several levels of digits. The search of
//! a set ends at its bound, at a number of plans that was given, or at a limit of pieces, which is a
//! measure of work and memory.
//!
//! A program is compiled either to phases or to steps ([`crate::Compiler`] or [`StepCompiler`]), as a
//! machine either holds tables or passes messages. Both state the clocks that they predict on the
//! same machine, so they can be compared.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{
    At, Binding, CellId, ConnectionSet, InputError, LinkId, Machine, Origin, Program, Protocol,
    SetSteps, ShapeError, StepBounds, StepSchedule, Steps, Topology,
};
use conset_partition_route::bounds::BoundsReport;
use conset_scheduler::steps::{
    Levels, LevelsSpec, PieceRoute, StepOrder, factorisations, least_clocks, least_clocks_direct,
    predict,
};
use serde::Serialize;

use crate::{CompileError, Observer, Progress, bounds};

mod compiled;

pub use compiled::{
    CompiledSteps, StepExecutionError, StepMeasurement, StepRunSummary, StepSummary,
    schedule_of_image,
};

/// The greatest number of levels of the planners that are tried, beside levels of two.
pub(crate) const LEVELS: usize = 4;

/// Orders of the planners by halves and by nodes that are tried. With two cells that exchange in each
/// level of halves, the others differ little from pairwise.
const HALVES_ORDERS: [StepOrder; 2] = [StepOrder::Loaded, StepOrder::Pairwise];

/// Pieces of all plans of a set after which no further planner is tried.
pub(crate) const PIECES: u64 = 1 << 22;

/// A planner of steps, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepAlgorithm {
    /// All planners; the cheapest plan is kept.
    #[default]
    Best,
    /// Every connection in one message, in the given order.
    Direct(StepOrder),
    /// Recursive exchange: levels of two.
    Recursive,
    /// Levels, halves or nodes.
    Levels(LevelsSpec),
}

impl StepAlgorithm {
    /// Parses `best`, the name of an order, `recursive`, or a specification of levels
    /// ([`LevelsSpec::parse`]).
    ///
    /// # Errors
    /// What of it is not known, and what was expected.
    pub fn parse(name: &str) -> Result<Self, ShapeError> {
        if ["levels:", "halves", "nodes"].iter().any(|head| name.starts_with(head)) {
            return LevelsSpec::parse(name).map(StepAlgorithm::Levels);
        }
        match name {
            "best" => Ok(StepAlgorithm::Best),
            "recursive" => Ok(StepAlgorithm::Recursive),
            _ => StepOrder::parse(name).map(StepAlgorithm::Direct).ok_or_else(|| {
                let expected = "best, an order, recursive, halves, nodes or levels:RxR..";
                ShapeError::new("algorithm", format!("unknown `{name}`; expected {expected}"))
            }),
        }
    }

    /// The spelling that [`StepAlgorithm::parse`] reads.
    pub fn name(&self) -> String {
        match self {
            StepAlgorithm::Best => "best".to_owned(),
            StepAlgorithm::Recursive => "recursive".to_owned(),
            StepAlgorithm::Direct(order) => order.name().to_owned(),
            StepAlgorithm::Levels(spec) => spec.to_string(),
        }
    }

    /// The planners to try, in this order.
    pub(crate) fn planners(&self, machine: &Machine) -> Result<Vec<Levels>, CompileError> {
        let cells = to_u32(machine.endpoints().count());
        let wrong = |error: ShapeError| {
            InputError::new("<algorithm>", At::Path(self.name()), error.message)
                .help(format!("the machine has {cells} cells"))
        };
        let levels = |radices: &[u32], order| Levels::new(machine, radices, order).map_err(wrong);
        Ok(match self {
            StepAlgorithm::Direct(order) => vec![Levels::direct(machine, *order)],
            StepAlgorithm::Recursive => {
                let twos = cells.max(2).next_power_of_two().ilog2();
                vec![levels(&vec![2; index(twos)], StepOrder::Pairwise)?]
            }
            StepAlgorithm::Levels(spec) => {
                vec![Levels::of_spec(machine, spec.clone()).map_err(wrong)?]
            }
            StepAlgorithm::Best => {
                let mut planners: Vec<Levels> =
                    StepOrder::ALL.map(|order| Levels::direct(machine, order)).into();
                if has_nodes(machine) {
                    for order in HALVES_ORDERS {
                        let spec =
                            LevelsSpec { route: PieceRoute::Nodes, ..LevelsSpec::new(order) };
                        planners.push(Levels::of_spec(machine, spec).map_err(wrong)?);
                    }
                }
                for order in HALVES_ORDERS {
                    let spec = LevelsSpec::new(order);
                    planners.push(Levels::of_spec(machine, spec).map_err(wrong)?);
                }
                for radices in factorisations(cells, LEVELS).iter().filter(|r| r.len() > 1) {
                    for order in StepOrder::ALL {
                        planners.push(levels(radices, order)?);
                    }
                }
                planners
            }
        })
    }
}

/// Whether a machine is a cluster with several cells in each of several nodes.
pub(crate) fn has_nodes(machine: &Machine) -> bool {
    let topology = machine.topology();
    matches!(topology, Topology::Cluster { nodes: 2.., cells_per_node: 2.. })
}

/// Compiles programs to step plans for a machine.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::steps::StepCompiler;
///
/// let machine = Arc::new(Machine::from_spec("fat-tree:16")?);
/// let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
/// let set = ConnectionSet::new("ring", ring.collect())?;
/// let compiled = StepCompiler::new(&machine).compile(&set.into(), &mut |_| ())?;
/// let steps = &compiled.schedule().sets()[0];
/// assert_eq!(steps.steps.messages().len(), 16);
/// assert!(steps.predicted_clocks >= Some(steps.bounds.direct_clocks));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StepCompiler {
    machine: Arc<Machine>,
    algorithm: StepAlgorithm,
    max_plans: Option<u32>,
    unlimited: bool,
    seed: u64,
}

impl StepCompiler {
    /// A compiler for a machine that tries all planners.
    pub fn new(machine: &Arc<Machine>) -> Self {
        let algorithm = StepAlgorithm::Best;
        Self { machine: machine.clone(), algorithm, max_plans: None, unlimited: false, seed: 1 }
    }

    /// Sets the algorithm.
    pub fn algorithm(self, algorithm: StepAlgorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets the number of plans to try for each set.
    pub fn max_plans(self, max_plans: impl Into<Option<u32>>) -> Self {
        Self { max_plans: max_plans.into(), ..self }
    }

    /// Lifts the limits of work and memory.
    pub fn unlimited(self, unlimited: bool) -> Self {
        Self { unlimited, ..self }
    }

    /// Sets the seed that the schedule states. Planners of steps make no random choices.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Compiles every set of a program.
    ///
    /// # Errors
    /// No sets, connections that do not fit the machine or that messages have no route for, levels
    /// that do not fit it, or a bug of a stage.
    pub fn compile(
        &self,
        program: &Program,
        observer: &mut Observer<'_>,
    ) -> Result<CompiledSteps, CompileError> {
        observer(Progress::Stage("computing bounds"));
        if program.sets().is_empty() {
            let message = "the program has no sets, so there is nothing to compile to steps";
            return Err(InputError::new("<program>", At::Whole, message).into());
        }
        let reports = bounds::of_program(&self.machine, program, self.unlimited)?;
        let planners = self.algorithm.planners(&self.machine)?;
        observer(Progress::Stage("planning"));
        let (mut sets, mut searches) = (Vec::new(), Vec::new());
        for (row, (set, bounds)) in program.sets().iter().zip(&reports).enumerate() {
            let (set, search) = self.search(set, bounds, &planners)?;
            sets.push(set);
            searches.push(search);
            let (done, total) = (to_u64(row) + 1, to_u64(program.sets().len()));
            observer(Progress::Done { done, total });
        }
        let origin = Origin {
            generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
            algorithm: format!("steps:{}", self.algorithm.name()),
            seed: self.seed,
        };
        let schedule = StepSchedule::new(self.machine.clone(), sets, Some(origin))
            .map_err(|e| CompileError::bug("the planner of steps", &e))?
            .with_digest();
        observer(Progress::Stage("checking"));
        let schedule = conset_verify::step_schedule(schedule)
            .map_err(|rejection| CompileError::bug("the planner of steps", &rejection))?;
        CompiledSteps::of_verified(schedule, searches)
    }

    /// The cheapest plan of a set.
    fn search(
        &self,
        set: &Arc<ConnectionSet>,
        report: &BoundsReport,
        planners: &[Levels],
    ) -> Result<(SetSteps, StepSearch), CompileError> {
        let protocol = self.machine.parameters().protocol;
        let bounds = step_bounds(&self.machine, set, report, protocol);
        let mut routes = MessageRoutes::new(&self.machine);
        let mut missing = None;
        let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
            if !routes.links(source, target, links) {
                missing = Some((source, target));
            }
        };
        let most = self.max_plans.map_or(usize::MAX, |plans| usize::try_from(plans).unwrap_or(1));
        let mut search = StepSearch { trials: Vec::new(), refused: 0, limited: false };
        let mut best: Option<SetSteps> = None;
        let (mut too_large, mut refusal) = (None, None);
        let mut work = 0;
        for planner in planners {
            let tried = search.trials.len() + usize::try_from(search.refused).unwrap_or(usize::MAX);
            if best.is_some() && (tried >= most || (work > PIECES && !self.unlimited)) {
                search.limited = true;
                break;
            }
            let steps = match planner.plan(&self.machine, set, protocol, &mut route) {
                Ok(steps) => steps,
                // A message has too many words, or the plan too many pieces.
                Err(error) => {
                    too_large.get_or_insert(error);
                    continue;
                }
            };
            work += to_u64(steps.messages().piece_count());
            let clocks = predict(&steps, protocol, &mut route);
            let least = best.as_ref().and_then(|best| best.predicted_clocks);
            let better = least.is_none_or(|least| clocks < least);
            let (messages, step_count) = (steps.messages().len(), steps.messages().steps());
            if better {
                let bounds = bounds.clone();
                let plan = SetSteps { steps, bounds, predicted_clocks: Some(clocks) };
                if let Err(rejection) = conset_verify::check_set_steps(&plan) {
                    search.refused += 1;
                    refusal.get_or_insert(rejection);
                    continue;
                }
                search.trials.iter_mut().for_each(|trial| trial.best = false);
                best = Some(plan);
            }
            search.trials.push(StepTrial {
                planner: planner.spec().title(),
                steps: step_count,
                messages,
                clocks,
                best: better,
            });
            if clocks == bounds.clocks {
                break;
            }
        }
        if let Some((source, target)) = missing {
            return Err(InputError::new(
                format!("set `{}`", set.name()),
                At::Whole,
                format!("messages from {source} to {target} have no route on this machine"),
            )
            .help("compile it to phases, or choose another machine")
            .into());
        }
        match (best, too_large) {
            (Some(best), _) => Ok((best, search)),
            (None, Some(error)) => {
                let file = format!("set `{}`", set.name());
                Err(InputError::new(file, At::Path(error.place), error.message).into())
            }
            (None, None) => {
                let why = refusal.map(|rejection| format!(": {rejection}")).unwrap_or_default();
                let message = format!("the checker refused every plan{why}");
                Err(CompileError::bug("the planner of steps", &message))
            }
        }
    }
}

/// The bounds of a set: of its busiest cell, or of its links, which are those of phases without
/// context switches.
fn step_bounds(
    machine: &Machine,
    set: &ConnectionSet,
    report: &BoundsReport,
    protocol: Protocol,
) -> StepBounds {
    let direct = least_clocks_direct(machine, set, protocol);
    let mut bounds = StepBounds {
        clocks: least_clocks(machine, set, protocol),
        clocks_by: Binding::AgentLoad,
        clocks_witness: None,
        direct_clocks: 0,
    };
    let switches =
        u64::from(report.summary().phases).saturating_mul(machine.parameters().switch_clocks());
    for bound in &report.clocks {
        let of_links = matches!(
            bound.binding,
            Binding::AverageLink | Binding::DimensionCut | Binding::Bisection | Binding::LinkFlow
        );
        let clocks = (bound.value - bound.ramp).saturating_sub(switches);
        if of_links && clocks > bounds.clocks {
            bounds.clocks = clocks;
            bounds.clocks_by = bound.binding;
            bounds.clocks_witness.clone_from(&bound.witness);
        }
    }
    bounds.direct_clocks = direct.max(bounds.clocks);
    if bounds.clocks == 0 {
        bounds.clocks_by = Binding::Nothing;
    }
    bounds
}

/// A verified plan with its bounds and its predicted time; without the latter if the machine has no
/// route for a message.
pub(crate) fn with_claims(machine: &Machine, steps: Steps, report: &BoundsReport) -> SetSteps {
    let protocol = machine.parameters().protocol;
    let mut routes = MessageRoutes::new(machine);
    let mut missing = false;
    let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
        missing |= !routes.links(source, target, links);
    };
    let clocks = predict(&steps, protocol, &mut route);
    let bounds = step_bounds(machine, steps.set(), report, protocol);
    SetSteps { steps, bounds, predicted_clocks: (!missing).then_some(clocks) }
}

/// The plans of a set that were tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepSearch {
    /// Every plan, in the order in which they were made.
    pub trials: Vec<StepTrial>,
    /// Plans that the checker refused; each is a bug in conset.
    pub refused: u32,
    /// Whether the search ended at a limit before all planners were tried.
    pub limited: bool,
}

/// A plan that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepTrial {
    /// The planner: its order, after its radices if it has several levels.
    pub planner: String,
    /// Steps.
    pub steps: usize,
    /// Messages.
    pub messages: usize,
    /// Predicted clocks.
    pub clocks: u64,
    /// Whether this plan is the result.
    pub best: bool,
}
