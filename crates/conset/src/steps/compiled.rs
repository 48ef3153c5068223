//! Programs that are compiled to steps: their image, their summaries, their execution on the emulated
//! machine.
//!
//! [`CompiledSteps`] is to steps what [`crate::Compiled`] is to phases: only the compiler and the
//! checker make one, so everything that takes one can rely on its plans.

use std::sync::Arc;

use conset_fabric::Fault;
use conset_fabric::messages::{self, MessageOptions, MessagesReport};
use conset_ir::convert::to_f64;
use conset_ir::{Binding, Image, PartMap, SetSteps, ShapeError, StepBounds, StepSchedule, Steps};
use conset_partition_route::bounds::BoundsReport;
use conset_verify::Verified;
use serde::Serialize;

use super::{StepSearch, with_claims};
use crate::report::megabytes_per_second;
use crate::{CompileError, bound_ratio, bounds};

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

impl CompiledSteps {
    /// Checks a step schedule from elsewhere.
    ///
    /// # Errors
    /// What the checker refuses.
    pub fn import(schedule: StepSchedule) -> Result<Self, CompileError> {
        Self::of_verified(conset_verify::step_schedule(schedule)?, Vec::new())
    }

    pub(super) fn of_verified(
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
    pub measured_clocks: u64,
    /// Predicted clocks, if they are stated.
    pub predicted_clocks: Option<u64>,
    /// Predicted minus measured clocks, in percent of the measured ones.
    pub model_error_percent: Option<f64>,
    /// No step plan takes fewer clocks.
    pub bound_clocks: u64,
    /// Measured clocks divided by the bound.
    pub clocks_over_bound: f64,
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
            measured_clocks: report.clocks,
            predicted_clocks: set.predicted_clocks,
            model_error_percent: set.predicted_clocks.map(error),
            bound_clocks: set.bounds.clocks,
            clocks_over_bound: bound_ratio(report.clocks, set.bounds.clocks),
            connections: steps.set().len(),
            words,
            word_hops: report.word_hops,
            payload_ok: report.payload_ok,
            megabytes_per_second: megabytes_per_second(words, report.clocks, parameters),
        };
        Ok(Self { report, summary })
    }
}
