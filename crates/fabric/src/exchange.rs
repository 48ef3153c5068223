//! Execution of a set: the phases of an image in order, each by its operation lists.
//!
//! For each phase the fabric switches the context, submits every agent's operation list, and runs
//! the machine until nothing is in progress. The time of an exchange is the sum over its phases of
//! the switch and the clocks until the last word arrived.
//!
//! The set's order holds across cells ([`crate::order`]).
//!
//! On a machine with timed starts the agents wait for the planned starts.
//! [`FabricOptions::jitter`] delays them by a random number of clocks for each end of each stream,
//! to model drifting clocks and slow programs. A late start costs time and nothing else.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use conset_ir::convert::to_u32;
use conset_ir::{CellId, ConnectionId, Direction, Image, Operation, PhaseId, PhaseImage, SetImage};

use crate::coverage::{Coverage, CoverageGaps};
use crate::detection::{CheckedPayload, Detection, ExchangeData, StreamTable};
use crate::engine::{Engine, LostWords, OperationId, Stop};
use crate::fault::{Fault, FaultKind};
use crate::injection::{FaultPlan, FaultPlanError};
use crate::order::OrderKeeper;
use crate::payload::{Payload, SetBuffers, synthetic_word};
use crate::report::{ExchangeReport, PhaseReport};
use crate::trace::{StreamSpan, Trace};
use crate::wait_graph::{ProgramState, Programs};

mod interruption;

pub use interruption::{Interruption, WordRun};

/// Options of a [`Fabric`].
///
/// ```
/// use conset_fabric::FabricOptions;
///
/// let options = FabricOptions::default().trace(true).skip(false);
/// assert!(options.trace && !options.skip && !options.count_errors);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FabricOptions {
    /// Record a [`Trace`] of streams and context switches.
    pub trace: bool,
    /// Count wrong and left-over words and continue, instead of stopping at the first.
    pub count_errors: bool,
    /// Skip whole periods where the state of the machine repeats; the results are the same.
    pub skip: bool,
    /// Delay planned starts, on a machine with timed starts.
    pub jitter: Option<Jitter>,
    /// What notices wrong words. [`Fabric::exchange`] has no check words; [`Fabric::exchange_checked`] has.
    pub detection: Detection,
}

/// Random delays of planned starts: 0 to `most` clocks for each end of each stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The same seed gives the same delays.
    pub seed: u64,
    /// The largest delay in clocks.
    pub most: u32,
}

impl Jitter {
    /// The operation with its delayed start.
    fn delay(self, phase: PhaseId, operation: &Operation) -> Operation {
        let Operation { connection, first_word, direction, start, .. } = *operation;
        let seed = self.seed ^ u64::from(phase.0) << 1 ^ u64::from(direction == Direction::Send);
        let random = synthetic_word(seed, connection, first_word);
        let late = random % (u64::from(self.most) + 1);
        Operation { start: start.saturating_add(late), ..*operation }
    }
}

impl Default for FabricOptions {
    fn default() -> Self {
        Self {
            trace: false,
            count_errors: false,
            skip: true,
            jitter: None,
            detection: Detection::Simulator,
        }
    }
}

impl FabricOptions {
    /// Sets [`FabricOptions::trace`].
    #[must_use]
    pub fn trace(self, trace: bool) -> Self {
        Self { trace, ..self }
    }

    /// Sets [`FabricOptions::count_errors`].
    #[must_use]
    pub fn count_errors(self, count_errors: bool) -> Self {
        Self { count_errors, ..self }
    }

    /// Sets [`FabricOptions::skip`].
    #[must_use]
    pub fn skip(self, skip: bool) -> Self {
        Self { skip, ..self }
    }

    /// Sets [`FabricOptions::jitter`].
    #[must_use]
    pub fn jitter(self, jitter: Option<Jitter>) -> Self {
        Self { jitter, ..self }
    }

    /// Sets [`FabricOptions::detection`].
    #[must_use]
    pub fn detection(self, detection: Detection) -> Self {
        Self { detection, ..self }
    }
}

/// Error counts of an exchange that continued after errors ([`FabricOptions::count_errors`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorCounts {
    /// Words delivered to operations that did not expect them.
    pub wrong: u64,
    /// Words that no operation received.
    pub missing: u64,
    /// Words received more than once, or left over in the channels.
    pub extra: u64,
}

impl ErrorCounts {
    /// Adds the words that were not received, and those that were received more than once.
    pub(crate) fn add_gaps(&mut self, gaps: &CoverageGaps) {
        self.missing += gaps.missing;
        self.extra += gaps.extra;
    }
}

/// An emulated machine with an image loaded.
///
/// [`crate::run_checked`] executes an image with synthetic words; a `Fabric` executes it with the
/// caller's own [`Payload`].
#[derive(Clone, Debug)]
pub struct Fabric {
    image: Arc<Image>,
    engine: Engine,
    options: FabricOptions,
    trace: Trace,
    errors: ErrorCounts,
    /// The context that the last switch loaded, by set; only on a machine with faults.
    loaded: Option<(u32, PhaseImage)>,
    /// Exchanges begun.
    exchanges: u64,
}

impl Fabric {
    /// Loads an image into its machine; the clock is 0 and no context is active.
    pub fn load(image: impl Into<Arc<Image>>, options: FabricOptions) -> Self {
        let image = image.into();
        let trace = Trace {
            clock_hz: image.machine().parameters().clock_hz,
            sets: image.sets().iter().map(|s| s.set.name().to_owned()).collect(),
            ..Trace::default()
        };
        let mut engine = Engine::new(image.machine().clone());
        if !options.skip {
            engine = engine.without_skipping();
        }
        let errors = ErrorCounts::default();
        Self { image, engine, options, trace, errors, loaded: None, exchanges: 0 }
    }

    /// The fabric with faults of the hardware. An exchange that needs a dead part ends in a deadlock whose last
    /// wait names it.
    ///
    /// # Errors
    /// A part that the machine does not have.
    pub fn with_faults(self, plan: &FaultPlan) -> Result<Self, FaultPlanError> {
        Ok(Self { engine: self.engine.with_faults(plan)?, ..self })
    }

    /// The clock at which each fault of the plan acted first, in the order of the plan; empty without a plan.
    pub fn faults_acted(&self) -> &[Option<u64>] {
        self.engine.faults_acted()
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Clocks since the image was loaded.
    pub fn now(&self) -> u64 {
        self.engine.now()
    }

    /// The trace so far; empty without [`FabricOptions::trace`].
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the trace.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    /// The error counts so far; all 0 without [`FabricOptions::count_errors`].
    pub fn errors(&self) -> ErrorCounts {
        self.errors
    }

    /// Executes set number `set` of the image.
    ///
    /// # Errors
    /// A fault, with the place where it was detected. The fabric must not be used afterwards.
    pub fn exchange(
        &mut self,
        set: usize,
        data: &mut dyn Payload,
    ) -> Result<ExchangeReport, Fault> {
        self.execute(set, |_, _| ExchangeData::Unchecked(data))
    }

    /// [`Fabric::exchange`] with check words on each stream ([`crate::detection`]), which the receivers verify.
    ///
    /// # Errors
    /// As [`Fabric::exchange`], and a stream whose check words do not fit ([`FaultKind::CheckFailed`]).
    ///
    /// # Panics
    /// If the buffers are of another set.
    pub fn exchange_checked(
        &mut self,
        set: usize,
        data: &mut SetBuffers,
    ) -> Result<ExchangeReport, Fault> {
        self.options.detection = Detection::Checked;
        self.execute(set, |image, number| ExchangeData::with_check_words(data, image, number))
    }

    fn execute<'a>(
        &mut self,
        set: usize,
        data: impl FnOnce(&SetImage, u64) -> ExchangeData<'a>,
    ) -> Result<ExchangeReport, Fault> {
        let image = self.image.clone();
        let (mut run, mut data) = self.begin(&image, set, data)?;
        self.run_phases(&mut run, &mut data)?;
        Ok(ExchangeReport::new(run.image.set.name(), run.phases))
    }

    /// Begins the next exchange: its set, and the data for this set and the number of the exchange.
    fn begin<'i, 'a>(
        &mut self,
        image: &'i Image,
        set: usize,
        data: impl FnOnce(&SetImage, u64) -> ExchangeData<'a>,
    ) -> Result<(SetExecution<'i>, ExchangeData<'a>), Fault> {
        let none = FaultKind::NoSet { index: set, sets: image.sets().len() };
        let set_image = image.sets().get(set).ok_or_else(|| self.fault("<image>", None, none))?;
        let data = data(set_image, self.exchanges);
        self.exchanges += 1;
        Ok((SetExecution::new(set, set_image), data))
    }

    /// Executes the phases of a set in order.
    fn run_phases(
        &mut self,
        run: &mut SetExecution<'_>,
        data: &mut ExchangeData<'_>,
    ) -> Result<(), Fault> {
        self.run_some_phases(run, 0..run.image.phases.len(), data)?;
        let set = &run.image.set;
        let gaps = run.coverage.gaps(set);
        if let Some(kind) = gaps.fault()
            && !self.options.count_errors
        {
            return Err(self.fault(set.name(), None, kind));
        }
        self.errors.add_gaps(&gaps);
        Ok(())
    }

    fn run_some_phases(
        &mut self,
        run: &mut SetExecution<'_>,
        phases: Range<usize>,
        data: &mut ExchangeData<'_>,
    ) -> Result<(), Fault> {
        for phase in phases {
            let phase = PhaseId::from_index(phase);
            let report = self
                .phase(run, phase, data)
                .map_err(|kind| self.fault(run.image.set.name(), Some(phase), kind))?;
            run.phases.push(report);
        }
        self.errors.wrong = self.engine.wrong_words();
        Ok(())
    }

    /// Executes some of the phases of set number `set`; returns their reports and the words received. A phase
    /// begins on an idle machine, so without an order between connections it takes the same clocks whatever was
    /// executed before.
    ///
    /// # Errors
    /// As [`Fabric::exchange`].
    pub(crate) fn exchange_some_phases(
        &mut self,
        set: usize,
        phases: Range<usize>,
        data: &mut dyn Payload,
    ) -> Result<(Vec<PhaseReport>, Coverage), Fault> {
        let image = self.image.clone();
        let (mut run, mut data) = self.begin(&image, set, |_, _| ExchangeData::Unchecked(data))?;
        self.run_some_phases(&mut run, phases, &mut data)?;
        Ok((run.phases, run.coverage))
    }

    fn fault(&self, set: &str, phase: Option<PhaseId>, kind: FaultKind) -> Fault {
        Fault { set: set.to_owned(), phase, clock: self.engine.now(), kind }
    }

    fn phase(
        &mut self,
        run: &mut SetExecution<'_>,
        phase: PhaseId,
        data: &mut ExchangeData<'_>,
    ) -> Result<PhaseReport, FaultKind> {
        let before = (self.engine.now(), self.engine.delivered(), self.engine.word_hops());
        let context = self.context(run, phase)?;
        self.engine.switch(&context)?;
        if self.options.trace {
            let p = self.image.machine().parameters();
            self.trace.switch(run.set, phase, before.0, p.t_sync, p.t_phase);
        }
        let table = data.checked().map(CheckedPayload::table);
        run.submit(&mut self.engine, &context, (phase, self.options.jitter, table))?;
        if self.loaded.is_some() {
            self.loaded = Some((run.set, context.into_owned()));
        }
        let start = self.engine.now();
        let last_word = self.run_phase(run, phase, data)?;
        if self.engine.unfinished() > 0 {
            if self.options.detection != Detection::Simulator
                && let Some(lost) = self.engine.lost_words()
            {
                return Err(self.lost(lost, data));
            }
            let deadlock = self.engine.explain(&*run);
            return Err(deadlock.expect("operations are unfinished"));
        }
        let busiest_link = self.engine.busiest_link();
        let busiest_agent = self.engine.busiest_agent();
        if let Some(fault) = self.engine.undrained() {
            if !self.options.count_errors {
                return Err(fault);
            }
            self.errors.extra += self.engine.discard();
        }
        Ok(PhaseReport {
            phase,
            switch: start - before.0,
            clocks: last_word.unwrap_or(start) - start,
            words: self.engine.delivered() - before.1,
            word_hops: self.engine.word_hops() - before.2,
            busiest_link,
            busiest_agent,
        })
    }

    /// The context of a phase, with the faults of its switch.
    fn context<'a>(
        &mut self,
        run: &SetExecution<'a>,
        phase: PhaseId,
    ) -> Result<Cow<'a, PhaseImage>, FaultKind> {
        if self.engine.faults_acted().is_empty() {
            return Ok(Cow::Borrowed(&run.image.phases[phase.index()]));
        }
        let faults = self.engine.take_switch_faults();
        if let Some(cell) = faults.absent {
            return Err(FaultKind::Absent { cell, switch: faults.switch });
        }
        self.engine.pass_until(self.engine.now().saturating_add(faults.late));
        let machine = self.image.machine();
        let none = PhaseImage::from_listed(machine.cell_count(), []);
        let before = self.loaded.take().filter(|loaded| loaded.0 == run.set);
        let before = before.map_or_else(|| none.clone(), |loaded| loaded.1);
        // A marker: the context of this phase is stored when it is loaded.
        self.loaded = Some((run.set, none));
        Ok(faults.context(machine, &run.image.phases, phase, &before))
    }

    fn lost(&self, lost: LostWords, data: &ExchangeData<'_>) -> FaultKind {
        let LostWords { operation, sent, received } = lost;
        let state = data.state(self.engine.operation(operation));
        let (connection, first_word) = (state.connection, state.first_word);
        let damage = data.checked().and_then(|data| data.damage(connection, first_word));
        let links = self.engine.links_to(operation);
        FaultKind::LostWords {
            cell: state.cell,
            connection,
            first_word,
            sent,
            received,
            damage,
            links,
        }
    }

    /// Runs until nothing is in progress; returns the clock at which the last operation finished.
    fn run_phase(
        &mut self,
        run: &mut SetExecution<'_>,
        phase: PhaseId,
        data: &mut ExchangeData<'_>,
    ) -> Result<Option<u64>, FaultKind> {
        let mut last_word = None;
        let mut finished = Vec::new();
        loop {
            match self.engine.run(data.payload()) {
                Stop::Finished => {
                    last_word = Some(self.engine.now());
                    self.engine.take_finished(&mut finished);
                    self.finish_all(run, phase, &finished, data)?;
                }
                Stop::Fault => {
                    let fault = self.engine.take_fault().expect("the engine stopped with a fault");
                    let countable = matches!(fault, FaultKind::WrongWord { .. });
                    let is_seen = !self.options.count_errors
                        && self.options.detection == Detection::Simulator;
                    if is_seen || !countable {
                        return Err(fault);
                    }
                }
                Stop::Timer => {}
                Stop::Idle => return Ok(last_word),
            }
        }
    }

    /// Takes note of finished operations; the fault is that of the first one whose words are wrong.
    fn finish_all(
        &mut self,
        run: &mut SetExecution<'_>,
        phase: PhaseId,
        finished: &[OperationId],
        data: &mut ExchangeData<'_>,
    ) -> Result<(), FaultKind> {
        let mut outcome = Ok(());
        for &id in finished {
            let finished = self.finish(run, phase, id, data);
            outcome = outcome.and(finished);
        }
        outcome
    }

    fn finish(
        &mut self,
        run: &mut SetExecution<'_>,
        phase: PhaseId,
        id: OperationId,
        data: &mut ExchangeData<'_>,
    ) -> Result<(), FaultKind> {
        let done = data.state(self.engine.operation(id));
        if self.options.trace {
            let span = StreamSpan::new(run.set, phase, &done, self.engine.now());
            self.trace.streams.push(span);
        }
        if done.direction == Direction::Receive {
            if let Err(damage) = data.accept(done.connection, done.first_word) {
                let (cell, connection) = (done.cell, done.connection);
                let links = self.engine.links_to(id);
                return Err(FaultKind::CheckFailed { cell, connection, damage, links });
            }
            run.coverage.add(done.connection, done.first_word, done.words);
            run.order.received(&mut self.engine, done.connection, done.words);
        }
        Ok(())
    }
}

/// The execution of a set.
struct SetExecution<'a> {
    set: u32,
    image: &'a SetImage,
    coverage: Coverage,
    /// The runs of `coverage` that are of phases which have ended.
    covered_before: usize,
    order: OrderKeeper,
    phases: Vec<PhaseReport>,
}

impl<'a> SetExecution<'a> {
    fn new(set: usize, image: &'a SetImage) -> Self {
        let (coverage, order) = (Coverage::default(), OrderKeeper::new(image.set.clone()));
        let phases = Vec::with_capacity(image.phases.len().min(1 << 16));
        Self { set: to_u32(set), image, coverage, covered_before: 0, order, phases }
    }

    /// Submits the operation lists of a context.
    fn submit(
        &mut self,
        engine: &mut Engine,
        context: &PhaseImage,
        (phase, jitter, table): (PhaseId, Option<Jitter>, Option<&StreamTable>),
    ) -> Result<(), FaultKind> {
        self.order.switched();
        self.covered_before = self.coverage.len();
        for (cell, context) in context.cells() {
            for &operation in context.operations {
                let delayed = jitter.map_or(operation, |jitter| jitter.delay(phase, &operation));
                let checked = table.map_or(delayed, |table| table.with_check_words(&delayed));
                self.order.submit(engine, cell, &checked, true)?;
            }
        }
        Ok(())
    }
}

impl Programs for SetExecution<'_> {
    fn state(&self, _: CellId) -> ProgramState {
        ProgramState::ListSubmitted
    }

    fn waiting_cell(&self) -> Option<CellId> {
        None
    }

    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId> {
        self.order.unfinished_before(connection)
    }
}
