//! Predicting every way to exchange a set on a machine, by several cost models side by side.
//!
//! A *method* ([`Method`]) is a way to exchange a set: a planner of steps, phases, or plain messages.
//! Each is planned, verified, and priced by the models that apply to it:
//!
//! | model | what it is | applies to |
//! |---|---|---|
//! | `c3` | units of supersteps ([`conset_scheduler::c3`]) | messages, on machines whose bisection is known |
//! | `paper` | the formulas of the papers: complete exchanges ([`ExchangeCosts`]), plain messages ([`messages::predict()`]) | complete exchanges of equal words on a fat-tree with rendezvous; plain messages with the protocol `standing` |
//! | `steps` | conset's own: the price by which [`crate::steps`] and [`crate::Compiler`] choose plans | all methods but plain messages by rendezvous |
//!
//! The methods are ranked in each model. On request each is executed on the emulated fabric as well,
//! with every word checked, which gives the errors of the models and the share of pairs of methods
//! that a model ranks as the fabric does. C3 units are no clocks, and its paper has no weight for
//! them: one factor for all methods of a set is fitted to the measured clocks, so that what remains is
//! the error of the model's shape. Units of computation have no weight in it.
//!
//! A method that cannot be planned or executed is a row with the reason.

mod method;
pub(crate) mod rank;

use std::sync::Arc;

use conset_fabric::messages::{self, MessageOptions, MessageRoutes, SendLists};
use conset_ir::convert::{to_f64, to_u64};
use conset_ir::{
    CellId, ConnectionSet, LinkId, Machine, Piece, Program, Protocol, SetSteps, ShapeError,
    StepMessages, Steps,
};
use conset_partition_route::bounds::BoundsReport;
use conset_scheduler::c3::parts::C3Parts;
use conset_scheduler::c3::plan::plan_units;
use conset_scheduler::c3::{self, C3Machine, C3Protocol};
use conset_scheduler::exchange_formulas::ExchangeCosts;
use conset_scheduler::steps::{self, StepOrder};
use serde::Serialize;

pub use method::Method;
pub use rank::{ModelSummary, ModelValue};

use crate::report::MachineSummary;
use crate::steps::{PIECES, StepAlgorithm, StepMeasurement, with_claims};
use crate::{CompileError, Compiler, Observer, Progress, bounds, parallel, run};

/// Bytes of a packet of the C3 model, unless they are given: the paper's.
pub const C3_PACKET_BYTES: u32 = 512;

/// A cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Units of the C3 model.
    C3,
    /// Formulas of the papers.
    Paper,
    /// conset's own model.
    Steps,
}

impl Model {
    /// All models.
    pub const ALL: [Model; 3] = [Model::C3, Model::Paper, Model::Steps];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::C3 => "c3",
            Model::Paper => "paper",
            Model::Steps => "steps",
        }
    }
}

/// Parameters of the C3 model that replace those of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct C3Options {
    /// The protocol; by default that nearest to the machine's ([`C3Protocol::of_machine`]).
    pub protocol: Option<C3Protocol>,
    /// Set-up of a message in units; by default that of the machine ([`C3Machine::setup_of`]).
    pub setup: Option<f64>,
    /// Bytes of a packet, by default [`C3_PACKET_BYTES`].
    pub packet_bytes: Option<u32>,
    /// Latency in hops; by default the mean distance of two cells.
    pub latency: Option<f64>,
    /// Bisection width in links; by default that of the network.
    pub bisection: Option<f64>,
}

/// What is predicted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PredictOptions {
    /// The models.
    pub models: Vec<Model>,
    /// The methods; all of [`Method::all`] if there are none.
    pub methods: Vec<Method>,
    /// Parameters of the C3 model.
    pub c3: C3Options,
    /// Whether every method is executed on the emulated fabric.
    pub measure: bool,
    /// Seed of phases, random orders and words.
    pub seed: u64,
    /// Whether to lift the limits of work and memory.
    pub unlimited: bool,
}

impl Default for PredictOptions {
    fn default() -> Self {
        Self {
            models: Model::ALL.to_vec(),
            methods: Vec::new(),
            c3: C3Options::default(),
            measure: false,
            seed: 1,
            unlimited: false,
        }
    }
}

/// The predictions for a program.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PredictReport {
    /// The machine.
    pub machine: MachineSummary,
    /// Its parameters in the C3 model; `None` if the model is not used or does not apply.
    pub c3: Option<C3Summary>,
    /// The sets.
    pub sets: Vec<SetPredictions>,
}

/// The parameters of the C3 model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct C3Summary {
    /// The protocol, in the paper's spelling.
    pub protocol: &'static str,
    /// Processors (p).
    pub processors: u32,
    /// Mean distance of two processors in hops (h).
    pub latency: f64,
    /// Links between the halves of the machine in one direction (b).
    pub bisection: f64,
    /// Bytes of a packet (l).
    pub packet_bytes: u32,
    /// Set-up of a message in units (s).
    pub setup: f64,
}

/// The methods for a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SetPredictions {
    /// The set's name.
    pub set: String,
    /// Connections.
    pub connections: usize,
    /// Words of these connections.
    pub words: u64,
    /// The methods, in the order of [`Method::all`].
    pub rows: Vec<MethodRow>,
    /// How each model compares with the fabric; none if nothing was measured.
    pub summaries: Vec<ModelSummary>,
}

/// A method to exchange a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MethodRow {
    /// The method; a planner of steps as `compile --algorithm` spells it.
    pub method: String,
    /// `steps`, `phases` or `messages`.
    pub by: &'static str,
    /// Steps, or phases.
    pub steps: Option<usize>,
    /// Messages.
    pub messages: Option<usize>,
    /// Words of all messages; more than those of the connections if cells pass words on.
    pub message_words: Option<u64>,
    /// Supersteps of the C3 model.
    pub supersteps: Option<u32>,
    /// Units of computation of the C3 model, which are not in its value.
    pub computation_units: Option<u64>,
    /// Units of communication of the C3 model.
    pub c3: Option<ModelValue>,
    /// Clocks by the formulas of the papers.
    pub paper: Option<ModelValue>,
    /// Clocks by conset's own model.
    pub steps_model: Option<ModelValue>,
    /// Clocks on the fabric.
    pub measured: Option<Measured>,
    /// Why the method was not planned or executed.
    pub refused: Option<String>,
}

/// Clocks on the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Clocks until the last word was received.
    pub clocks: u64,
    /// One more than the number of faster methods.
    pub rank: u32,
}

impl MethodRow {
    /// The value of a model.
    pub fn value(&self, model: Model) -> Option<&ModelValue> {
        match model {
            Model::C3 => self.c3.as_ref(),
            Model::Paper => self.paper.as_ref(),
            Model::Steps => self.steps_model.as_ref(),
        }
    }

    fn value_mut(&mut self, model: Model) -> &mut Option<ModelValue> {
        match model {
            Model::C3 => &mut self.c3,
            Model::Paper => &mut self.paper,
            Model::Steps => &mut self.steps_model,
        }
    }
}

/// Predicts every set of a program on a machine.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::predict::{PredictOptions, predict};
///
/// let machine = Arc::new(Machine::from_spec("cm5:16")?);
/// let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
/// let set = ConnectionSet::new("ring", ring.collect())?;
/// let mut options = PredictOptions::default();
/// options.measure = true;
/// let report = predict(&machine, &set.into(), &options, &mut |_| ())?;
/// let loaded = report.sets[0].rows.iter().find(|row| row.method == "loaded").unwrap();
/// assert!(loaded.steps_model.unwrap().error_percent.unwrap().abs() < 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Connections that do not fit the machine or have no path, planners whose levels do not fit it, or
/// a set too large for its bounds to be computed. A method that fails is a row with the reason.
pub fn predict(
    machine: &Arc<Machine>,
    program: &Program,
    options: &PredictOptions,
    observer: &mut Observer<'_>,
) -> Result<PredictReport, CompileError> {
    observer(Progress::Stage("computing bounds"));
    let reports = bounds::of_program(machine, program, options.unlimited)?;
    let methods = match options.methods.is_empty() {
        true => Method::all(machine),
        false => options.methods.clone(),
    };
    for method in &methods {
        if let Method::Steps(algorithm) = method {
            algorithm.planners(machine)?;
        }
    }
    let c3 = options.models.contains(&Model::C3).then(|| c3_machine(machine, &options.c3));
    let c3 = c3.flatten();
    observer(Progress::Stage(if options.measure { "measuring" } else { "predicting" }));
    let mut sets = Vec::new();
    for (row, (set, report)) in program.sets().iter().zip(&reports).enumerate() {
        let pricing = Pricing { machine, set, report, options, c3: c3.as_ref() };
        sets.push(pricing.all(&methods));
        let (done, total) = (to_u64(row) + 1, to_u64(program.sets().len()));
        observer(Progress::Done { done, total });
    }
    let summary = c3.map(|(parts, protocol)| {
        let C3Machine { processors, packet_bytes, setup, latency, bisection } = *parts.whole();
        let protocol = protocol.name();
        C3Summary { protocol, processors, latency, bisection, packet_bytes, setup }
    });
    Ok(PredictReport { machine: MachineSummary::new(machine), c3: summary, sets })
}

/// The C3 model of a machine; `None` if its bisection is neither known nor given.
fn c3_machine(machine: &Machine, options: &C3Options) -> Option<(C3Parts, C3Protocol)> {
    let packet_bytes = options.packet_bytes.unwrap_or(C3_PACKET_BYTES).max(1);
    let whole = C3Machine {
        processors: machine.endpoints().count().try_into().ok().filter(|&p| p > 0)?,
        packet_bytes,
        setup: options.setup.unwrap_or_else(|| C3Machine::setup_of(machine, packet_bytes)),
        latency: options.latency.or_else(|| c3::mean_distance(machine))?,
        bisection: options.bisection.or_else(|| c3::bisection(machine))?,
    };
    let protocol = options.protocol.unwrap_or_else(|| C3Protocol::of_machine(machine));
    Some((C3Parts::new(machine, whole), protocol))
}

/// A set whose methods are priced.
#[derive(Clone, Copy)]
struct Pricing<'a> {
    machine: &'a Arc<Machine>,
    set: &'a Arc<ConnectionSet>,
    report: &'a BoundsReport,
    options: &'a PredictOptions,
    c3: Option<&'a (C3Parts, C3Protocol)>,
}

impl Pricing<'_> {
    fn all(&self, methods: &[Method]) -> SetPredictions {
        // What is left out is determined by counts, so that it does not depend on threads.
        let mut work = 0;
        let within_limit: Vec<bool> = methods
            .iter()
            .map(|method| {
                let within = work == 0 || work <= PIECES || self.options.unlimited;
                work += to_u64(self.set.len()).saturating_mul(method.levels(self.machine));
                within
            })
            .collect();
        let methods: Vec<_> = methods.iter().zip(within_limit).collect();
        let mut rows: Vec<MethodRow> = parallel::map(&methods, |&(method, within)| match within {
            true => self.row(method),
            false => {
                refused(method, "left out: the work of all methods together exceeds the limit")
            }
        });
        let summaries = rank::rank(&mut rows, &self.options.models, self.options.measure);
        SetPredictions {
            set: self.set.name().to_owned(),
            connections: self.set.len(),
            words: self.set.words(),
            rows,
            summaries,
        }
    }

    fn row(&self, method: &Method) -> MethodRow {
        let row = match method {
            Method::Steps(algorithm) => self.by_steps(method, algorithm),
            Method::Phases => self.by_phases(method),
            Method::Messages(_) => self.by_messages(method),
        };
        row.unwrap_or_else(|reason| refused(method, reason))
    }

    fn by_steps(&self, method: &Method, algorithm: &StepAlgorithm) -> Result<MethodRow, String> {
        let plan = self.plan(algorithm)?;
        let mut row = self.priced(method, &plan.steps);
        row.paper = self.formula(algorithm).map(ModelValue::new);
        row.steps_model = self.own(plan.predicted_clocks);
        if self.options.measure {
            match StepMeasurement::new(&plan, self.options.seed, false) {
                Ok(run) if run.summary.payload_ok => {
                    row.measured = measured(run.summary.measured_clocks);
                }
                Ok(_) => row.refused = Some(WRONG_WORDS.to_owned()),
                Err(error) => row.refused = Some(error.to_string()),
            }
        }
        Ok(row)
    }

    /// The verified plan of a planner.
    fn plan(&self, algorithm: &StepAlgorithm) -> Result<SetSteps, String> {
        let protocol = self.machine.parameters().protocol;
        let mut routes = MessageRoutes::new(self.machine);
        let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
            routes.links(source, target, links);
        };
        let planners = algorithm.planners(self.machine).map_err(|error| error.to_string())?;
        let Some(planner) = planners.first() else { return Err("there is no planner".to_owned()) };
        let steps = planner
            .plan(self.machine, self.set, protocol, &mut route)
            .map_err(|error| shape_reason(&error))?;
        let plan = with_claims(self.machine, steps, self.report);
        if plan.predicted_clocks.is_none() {
            return Err("messages between some cells have no route".to_owned());
        }
        conset_verify::check_set_steps(&plan)
            .map_err(|rejection| format!("the checker refused it: {rejection}"))?;
        Ok(plan)
    }

    /// A row with what a plan consists of, and with its C3 units.
    fn priced(&self, method: &Method, steps: &Steps) -> MethodRow {
        let messages = steps.messages();
        let units = self.c3.map(|(parts, protocol)| plan_units(steps, parts, *protocol));
        MethodRow {
            method: method.name(),
            by: method.by(),
            steps: Some(messages.steps()),
            messages: Some(messages.len()),
            message_words: Some(messages.iter().map(|message| message.words()).sum()),
            supersteps: units.map(|units| units.supersteps),
            computation_units: units.map(|units| units.computation),
            c3: units.map(|units| ModelValue::new(units.communication.total())),
            ..MethodRow::default()
        }
    }

    fn by_phases(&self, method: &Method) -> Result<MethodRow, String> {
        let program = Program::new(vec![self.set.clone()]).map_err(|e| shape_reason(&e))?;
        let compiled = Compiler::new(self.machine)
            .seed(self.options.seed)
            .unlimited(self.options.unlimited)
            .compile(&program)
            .map_err(|error| error.to_string())?;
        let schedule = &compiled.schedule().sets()[0];
        let mut row = MethodRow {
            method: method.name(),
            by: method.by(),
            steps: Some(schedule.timetable.phases().len()),
            steps_model: self.own(Some(schedule.predicted_clocks)),
            ..MethodRow::default()
        };
        if self.options.measure {
            match run::run(&compiled, self.options.seed, false, &mut |_| ()) {
                Ok(runs) if runs.iter().all(|run| run.summary.payload_ok) => {
                    row.measured =
                        measured(runs.iter().map(|run| run.summary.measured_clocks).sum());
                }
                Ok(_) => row.refused = Some(WRONG_WORDS.to_owned()),
                Err(error) => row.refused = Some(error.to_string()),
            }
        }
        Ok(row)
    }

    fn by_messages(&self, method: &Method) -> Result<MethodRow, String> {
        let Method::Messages(order) = method else { return Err("no messages".to_owned()) };
        self.check_routes()?;
        let standing = self.machine.parameters().protocol == Protocol::Standing;
        let options = MessageOptions::default().seed(self.options.seed).with_order(*order);
        let mut row = MethodRow {
            method: method.name(),
            by: method.by(),
            messages: Some(self.set.len()),
            message_words: Some(self.set.words()),
            ..MethodRow::default()
        };
        // The order of the set lets a cell send another message than the next of its list, which no
        // plan does.
        if self.set.order().is_empty() {
            let lists = SendLists::of_set(self.set, self.machine.agent_count(), &options);
            let plan = self.one_step(&lists).map_err(|error| shape_reason(&error))?;
            row = self.priced(method, &plan);
            let mut routes = MessageRoutes::new(self.machine);
            let mut missing = false;
            let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
                missing |= !routes.links(source, target, links);
            };
            let clocks = standing.then(|| steps::predict(&plan, Protocol::Standing, &mut route));
            row.steps_model = self.own(clocks.filter(|_| !missing));
        }
        row.steps = None;
        if standing && self.options.models.contains(&Model::Paper) {
            let clocks = to_f64(messages::predict(self.machine, self.set));
            row.paper = Some(ModelValue::new(clocks));
        }
        if self.options.measure {
            match messages::run_checked(self.machine, self.set, &options) {
                Ok(report) if report.payload_ok => row.measured = measured(report.clocks),
                Ok(_) => row.refused = Some(WRONG_WORDS.to_owned()),
                Err(fault) => row.refused = Some(format!("the fabric stopped: {fault}")),
            }
        }
        Ok(row)
    }

    /// Refuses sets with a message that has no route on the machine.
    fn check_routes(&self) -> Result<(), String> {
        let (mut routes, mut links) = (MessageRoutes::new(self.machine), Vec::new());
        for c in self.set.connections().iter().filter(|c| c.source != c.target) {
            links.clear();
            if !routes.links(c.source, c.target, &mut links) {
                let (source, target) = (c.source, c.target);
                return Err(format!("messages from {source} to {target} have no route"));
            }
        }
        Ok(())
    }

    /// Plain messages as a step plan: one step with a message for each connection, also of a cell to
    /// itself.
    fn one_step(&self, lists: &SendLists) -> Result<Steps, ShapeError> {
        let mut messages = StepMessages::new();
        for &id in (0..lists.cell_count()).flat_map(|cell| lists.of(cell)) {
            let connection = self.set.get(id);
            let whole = Piece::whole(self.set, id);
            messages.push(connection.source, connection.target, &[whole])?;
        }
        if !messages.is_empty() {
            messages.end_step()?;
        }
        Steps::new(self.machine.clone(), self.set.clone(), messages)
    }

    fn own(&self, clocks: Option<u64>) -> Option<ModelValue> {
        let clocks = clocks.filter(|_| self.options.models.contains(&Model::Steps))?;
        Some(ModelValue::new(to_f64(clocks)))
    }

    /// The formula of a complete exchange, in clocks.
    fn formula(&self, algorithm: &StepAlgorithm) -> Option<f64> {
        if !self.options.models.contains(&Model::Paper) {
            return None;
        }
        let costs = ExchangeCosts::of_machine(self.machine)?;
        let words = complete_exchange(self.machine, self.set)?;
        let processors = self.machine.endpoints().count().try_into().ok()?;
        let word_bytes = f64::from(self.machine.parameters().word_bytes);
        let bytes = to_f64(words) * word_bytes;
        Some(match algorithm {
            StepAlgorithm::Direct(StepOrder::Linear) => costs.linear(processors, bytes),
            StepAlgorithm::Direct(StepOrder::Pairwise) => costs.pairwise(processors, bytes),
            StepAlgorithm::Direct(StepOrder::Balanced) => costs.balanced(processors, bytes),
            // The formula of the recursive exchange is for powers of two.
            StepAlgorithm::Recursive if processors.is_power_of_two() => {
                costs.recursive(processors, bytes)
            }
            _ => return None,
        })
    }
}

/// The words that every live cell sends to every other one, if they are all equal and the set has no
/// order. Connections of a cell to itself need no message and do not count.
fn complete_exchange(machine: &Machine, set: &ConnectionSet) -> Option<u64> {
    let cells = machine.endpoints().count();
    let between = || set.connections().iter().filter(|c| c.source != c.target);
    let mut pairs: Vec<_> = between().map(|c| (c.source, c.target, c.words)).collect();
    pairs.sort_unstable();
    pairs.dedup_by_key(|pair| (pair.0, pair.1));
    let words = pairs.first()?.2;
    let complete = set.order().is_empty()
        && pairs.len() == cells * cells.saturating_sub(1)
        && pairs.len() == between().count()
        && pairs.iter().all(|pair| pair.2 == words);
    complete.then_some(words.into())
}

/// What a run says whose words did not all arrive; it is a bug in conset.
const WRONG_WORDS: &str =
    "the fabric did not deliver every word (bug in conset; please report this)";

fn measured(clocks: u64) -> Option<Measured> {
    Some(Measured { clocks, rank: 0 })
}

fn refused(method: &Method, reason: impl Into<String>) -> MethodRow {
    MethodRow {
        method: method.name(),
        by: method.by(),
        refused: Some(reason.into()),
        ..MethodRow::default()
    }
}

fn shape_reason(error: &ShapeError) -> String {
    format!("{}: {}", error.place, error.message)
}
