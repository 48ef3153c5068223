//! Compiling to steps: which planners of messages are tried, and which plan is kept.
//!
//! Each set is planned by one planner ([`StepAlgorithm`]) or by all of them. Every plan is priced by
//! the cost model of messages ([`conset_scheduler::steps::predict`]) with the routes of the machine,
//! and the cheapest that the checker accepts is kept. The planners are tried in a fixed order: plans
//! with one level first, then those by halves, then those with several levels of digits. The search of a set ends at its bound, at a number of
//! plans that was given, or at a limit of pieces, which is a measure of work and memory.
//!
//! A program is compiled either to phases or to steps ([`crate::Compiler`] or [`StepCompiler`]), as a
//! machine either holds tables or passes messages. Both state the clocks that they predict on the
//! same machine, so they can be compared.

use std::sync::Arc;

use conset_fabric::Fault;
use conset_fabric::messages::{self, MessageOptions, MessageRoutes, MessagesReport};
use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use conset_ir::{
    At, Binding, CellId, ConnectionSet, Image, InputError, LinkId, Machine, Origin, PartMap,
    Program, Protocol, SetSteps, ShapeError, StepBounds, StepSchedule, Steps, Topology,
};
use conset_partition_route::bounds::BoundsReport;
use conset_scheduler::steps::{
    Levels, LevelsSpec, StepOrder, factorisations, least_clocks, least_clocks_direct, predict,
};
use conset_verify::Verified;
use serde::Serialize;

use crate::report::megabytes_per_second;
use crate::{CompileError, Observer, Progress, bound_ratio, bounds};

/// The greatest number of levels of the planners that are tried, beside levels of two.
pub(crate) const LEVELS: usize = 4;

/// Orders of the planners by halves that are tried on meshes. With two cells that exchange in each level,
/// the others differ little from pairwise. On tori, whose links the prediction of standing messages
/// takes for less contended than they are, halves were chosen and took up to 27 % longer on the fabric.
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
    /// Levels or halves.
    Levels(LevelsSpec),
}

impl StepAlgorithm {
    /// Parses `best`, the name of an order, `recursive`, or a specification of levels
    /// ([`LevelsSpec::parse`]).
    ///
    /// # Errors
    /// What of it is not known, and what was expected.
    pub fn parse(name: &str) -> Result<Self, ShapeError> {
        if name.starts_with("levels:") || name.starts_with("halves") {
            return LevelsSpec::parse(name).map(StepAlgorithm::Levels);
        }
        match name {
            "best" => Ok(StepAlgorithm::Best),
            "recursive" => Ok(StepAlgorithm::Recursive),
            _ => StepOrder::parse(name).map(StepAlgorithm::Direct).ok_or_else(|| {
                let expected = "best, an order, recursive, halves or levels:RxR..";
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
                let is_mesh = matches!(machine.topology(), Topology::Mesh { .. });
                for order in HALVES_ORDERS.into_iter().filter(|_| is_mesh) {
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
        let clocks = bound.value.saturating_sub(switches);
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

/// The schedule of an image of step plans. It states no bounds and no predictions.
///
/// # Errors
/// An image without sets, or with phases.
pub fn schedule_of_image(image: &Image) -> Result<StepSchedule, ShapeError> {
    let plans = image.sets().iter().filter_map(|set| set.steps.clone());
    let bounds = StepBounds::default;
    let sets = plans.map(|steps| SetSteps { steps, bounds: bounds(), predicted_clocks: None });
    StepSchedule::new(image.machine().clone(), sets.collect(), None)
}

/// A program that is compiled to steps, verified by the checker.
#[derive(Clone, Debug)]
pub struct CompiledSteps {
    schedule: StepSchedule,
    image: Arc<Image>,
    searches: Vec<StepSearch>,
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

impl CompiledSteps {
    /// Checks a step schedule from elsewhere.
    ///
    /// # Errors
    /// What the checker refuses.
    pub fn import(schedule: StepSchedule) -> Result<Self, CompileError> {
        Self::of_verified(conset_verify::step_schedule(schedule)?, Vec::new())
    }

    fn of_verified(
        schedule: Verified<StepSchedule>,
        searches: Vec<StepSearch>,
    ) -> Result<Self, CompileError> {
        let image = conset_codegen::step_image(&schedule)
            .map_err(|error| CompileError::bug("code generation", &error))?;
        Ok(Self { schedule: schedule.into_inner(), image: Arc::new(image), searches })
    }

    /// The same program with bounds and predictions for the sets that state none: those of images
    /// and of plans that were written by hand. The checker proves them as all others.
    ///
    /// # Errors
    /// A machine on which the time of a set exceeds what 64 bits hold.
    pub fn with_claims(self) -> Result<Self, CompileError> {
        let states_claims = |set: &SetSteps| {
            set.predicted_clocks.is_some() || set.bounds.clocks_by != Binding::Nothing
        };
        if self.schedule.sets().iter().all(states_claims) {
            return Ok(self);
        }
        let schedule = &self.schedule;
        let machine = schedule.machine();
        let reports = bounds::of_program(machine, &schedule.program(), false)?;
        let claim = |(set, report): (&SetSteps, &BoundsReport)| match states_claims(set) {
            true => set.clone(),
            false => with_claims(machine, set.steps.clone(), report),
        };
        let sets = schedule.sets().iter().zip(&reports).map(claim).collect();
        let bug = |error: ShapeError| CompileError::bug("the bounds of steps", &error);
        let claimed = StepSchedule::new(machine.clone(), sets, schedule.origin().cloned())
            .and_then(|claimed| claimed.with_part_map(schedule.part_map().cloned()))
            .map_err(bug)?
            .with_stated_digest(schedule.digest());
        let claimed = conset_verify::step_schedule(claimed)
            .map_err(|rejection| CompileError::bug("the bounds of steps", &rejection))?;
        Ok(Self { schedule: claimed.into_inner(), ..self })
    }

    /// The image, as runtimes load it: its operation lists follow from the plans.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The schedule, as it is written to files.
    pub fn schedule(&self) -> &StepSchedule {
        &self.schedule
    }

    /// The searches of all sets; none if the schedule was not compiled here.
    pub fn searches(&self) -> &[StepSearch] {
        &self.searches
    }

    /// The same program, whose schedule has the parts and node numbers of its input.
    ///
    /// # Errors
    /// Parts on cells that the machine does not have.
    pub fn with_part_map(mut self, part_map: Option<PartMap>) -> Result<Self, ShapeError> {
        self.schedule = self.schedule.with_part_map(part_map)?;
        Ok(self)
    }

    /// The predicted clocks of all sets together; those of sets without a prediction are not counted.
    pub fn predicted_clocks(&self) -> u64 {
        self.schedule.sets().iter().filter_map(|set| set.predicted_clocks).sum()
    }

    /// The summary of each set.
    pub fn summaries(&self) -> Vec<StepSummary> {
        let searches = self.searches.iter().map(Some).chain(std::iter::repeat(None));
        let sets = self.schedule.sets().iter().zip(searches);
        sets.map(|(set, search)| StepSummary::new(set, search)).collect()
    }

    /// Executes every set on the emulated machine, each on an idle machine, and checks every word.
    /// `seed` determines the words; `trace` records messages.
    ///
    /// # Errors
    /// See [`StepExecutionError`].
    pub fn run(&self, seed: u64, trace: bool) -> Result<Vec<StepMeasurement>, StepExecutionError> {
        self.schedule.sets().iter().map(|set| StepMeasurement::new(set, seed, trace)).collect()
    }
}

/// A set that is compiled to steps, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepSummary {
    /// Its name.
    pub set: String,
    /// Connections.
    pub connections: usize,
    /// Words of these connections.
    pub words: u64,
    /// Steps.
    pub steps: usize,
    /// Messages.
    pub messages: usize,
    /// Words of all messages; more than those of the connections if cells pass words on.
    pub message_words: u64,
    /// Predicted clocks, if they are stated.
    pub predicted_clocks: Option<u64>,
    /// No step plan takes fewer clocks.
    pub bound_clocks: u64,
    /// What determines this bound.
    pub bound_clocks_by: Binding,
    /// No direct plan takes fewer clocks.
    pub direct_bound_clocks: u64,
    /// Whether every connection goes from its source to its target in one message.
    pub direct: bool,
    /// The plans that were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<StepSearch>,
}

impl StepSummary {
    fn new(set: &SetSteps, search: Option<&StepSearch>) -> Self {
        let messages = set.steps.messages();
        Self {
            set: set.steps.set().name().to_owned(),
            connections: set.steps.set().len(),
            words: set.steps.set().words(),
            steps: messages.steps(),
            messages: messages.len(),
            message_words: messages.iter().map(|message| message.words()).sum(),
            predicted_clocks: set.predicted_clocks,
            bound_clocks: set.bounds.clocks,
            bound_clocks_by: set.bounds.clocks_by,
            direct_bound_clocks: set.bounds.direct_clocks,
            direct: set.steps.is_direct(),
            search: search.cloned(),
        }
    }
}

/// The result of executing the step plan of a set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepMeasurement {
    /// The report of the fabric.
    pub report: MessagesReport,
    /// The measured numbers with bound and prediction.
    pub summary: StepRunSummary,
}

/// What the execution of a step plan measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepRunSummary {
    /// The set's name.
    pub set: String,
    /// Steps.
    pub steps: usize,
    /// Messages received.
    pub messages: usize,
    /// Clocks until the last word was received.
    #[serde(rename = "measured_clocks")]
    pub clocks: u64,
    /// Predicted clocks, if they are stated.
    pub predicted_clocks: Option<u64>,
    /// Predicted minus measured clocks, in percent of the measured ones.
    pub model_error_percent: Option<f64>,
    /// No step plan takes fewer clocks.
    pub bound_clocks: u64,
    /// Measured clocks divided by the bound.
    #[serde(rename = "clocks_over_bound")]
    pub bound_ratio: f64,
    /// Connections.
    pub connections: usize,
    /// Words of these connections.
    pub words: u64,
    /// Words carried, counted once on every link.
    pub word_hops: u64,
    /// Every word of every message arrived, in order, at the right cell.
    pub payload_ok: bool,
    /// Bandwidth of all cells together.
    pub megabytes_per_second: f64,
}

/// Why a step plan could not be executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepExecutionError {
    /// The fabric stopped.
    #[error("the fabric stopped: {0}")]
    Fault(#[from] Fault),
    /// A set was faster than its lower bound, so the bound is false.
    #[error("set `{set}` took {clocks} clocks, fewer than its lower bound of {bound}")]
    BoundBeaten {
        /// The set.
        set: String,
        /// Clocks measured.
        clocks: u64,
        /// Clocks of the bound.
        bound: u64,
    },
}

impl StepMeasurement {
    pub(crate) fn new(set: &SetSteps, seed: u64, trace: bool) -> Result<Self, StepExecutionError> {
        let steps: &Steps = &set.steps;
        let options = MessageOptions::default().seed(seed).trace(trace);
        let report = messages::run_steps(steps, &options)?;
        let bound = if steps.is_direct() { set.bounds.direct_clocks } else { set.bounds.clocks };
        if report.clocks < bound {
            let (set, clocks) = (steps.set().name().to_owned(), report.clocks);
            return Err(StepExecutionError::BoundBeaten { set, clocks, bound });
        }
        let error = |predicted: u64| {
            100.0 * (to_f64(predicted) - to_f64(report.clocks)) / to_f64(report.clocks.max(1))
        };
        let words = steps.set().words();
        let parameters = steps.machine().parameters();
        let summary = StepRunSummary {
            set: steps.set().name().to_owned(),
            steps: steps.messages().steps(),
            messages: report.messages,
            clocks: report.clocks,
            predicted_clocks: set.predicted_clocks,
            model_error_percent: set.predicted_clocks.map(error),
            bound_clocks: set.bounds.clocks,
            bound_ratio: bound_ratio(report.clocks, set.bounds.clocks),
            connections: steps.set().len(),
            words,
            word_hops: report.word_hops,
            payload_ok: report.payload_ok,
            megabytes_per_second: megabytes_per_second(words, report.clocks, parameters),
        };
        Ok(Self { report, summary })
    }
}
