//! The compiler: a builder that compiles programs for a machine.
//!
//! [`Compiler::compile`] runs the stages for each set: lower bounds, phases and routes, timetable,
//! prediction. The checker verifies every timetable before the image is generated from it, and the
//! image before anything may run it: it follows the forwarding tables and compares them with the
//! timetable. Schedules and images from elsewhere pass the same checks
//! ([`Compiled::import`], [`Compiled::import_image`]).
//!
//! If the checker refuses a result of conset, that is a bug. The program is then compiled once more
//! without the earlier schedule, and every plan is checked before it is kept; the bug is counted in
//! [`Compiled::candidates_refused`].

mod import;
mod merge;
mod reuse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use conset_ir::{
    At, ConnectionSet, InputError, Machine, Origin, Program, Schedule, SetSchedule, Timetable,
};
use conset_partition_route::bounds::BoundsReport;
use conset_planner::Interrupt;
use conset_scheduler::Prediction;
use conset_verify::{Report, Verified};

pub use import::with_witnesses;

use crate::bounds;
use crate::compiled::{Compiled, CompiledSet};
use crate::incremental::{RecompileReason, ReuseOutcome};
use crate::paper_algorithm;
use crate::parallel;
use crate::search::{PlanChecks, PlanSearch, SearchStats, StopReason, StopRule};
use crate::{Algorithm, Clock, CompileError, CompileOptions, Objective, Observer, Progress};
use reuse::PreviousSchedule;

/// Compiles programs for a machine.
///
/// Every setting is optional. A compiler can be used for several programs.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::{Algorithm, Compiler};
///
/// let machine = Arc::new(Machine::from_spec("torus:4x4")?);
/// let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
/// let set = ConnectionSet::new("ring", ring.collect())?;
///
/// let mut compiler = Compiler::new(&machine).algorithm(Algorithm::Auto).seed(1);
/// let compiled = compiler.compile(&set.into())?;
/// let schedule = &compiled.schedule().sets()[0];
/// assert!(schedule.predicted_clocks >= schedule.bounds.clocks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Compiler<'a> {
    machine: Arc<Machine>,
    options: CompileOptions,
    stop: Option<Box<dyn Fn() -> bool + 'a>>,
    interrupt: Interrupt,
    clock: Option<Box<dyn Fn() -> Duration + Sync + 'a>>,
    previous: Option<&'a Schedule>,
    groups: Vec<Vec<String>>,
    observer: Option<Box<dyn FnMut(Progress) + 'a>>,
}

impl fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler")
            .field("machine", &self.machine.name())
            .field("options", &self.options)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl<'a> Compiler<'a> {
    /// A compiler for a machine, with the default options.
    pub fn new(machine: &Arc<Machine>) -> Self {
        Self {
            machine: machine.clone(),
            options: CompileOptions::default(),
            stop: None,
            interrupt: Interrupt::default(),
            clock: None,
            previous: None,
            groups: Vec::new(),
            observer: None,
        }
    }

    /// Replaces all options.
    pub fn options(self, options: CompileOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the algorithm.
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { options: self.options.algorithm(algorithm), ..self }
    }

    /// Sets what [`Algorithm::Auto`] minimises.
    pub fn objective(self, objective: Objective) -> Self {
        Self { options: self.options.objective(objective), ..self }
    }

    /// Sets the seed of all random choices.
    pub fn seed(self, seed: u64) -> Self {
        Self { options: self.options.seed(seed), ..self }
    }

    /// Sets the iterations of rip-up and reroute; `None` for the algorithm's default.
    pub fn rip_up_iterations(self, iterations: impl Into<Option<u32>>) -> Self {
        Self { options: self.options.rip_up_iterations(iterations), ..self }
    }

    /// Sets the greatest number of phases of a set; `None` for no limit.
    pub fn max_phases(self, phases: impl Into<Option<u32>>) -> Self {
        Self { options: self.options.max_phases(phases), ..self }
    }

    /// Sets the number of plans to try for each set; `None` until no considerable gain is expected.
    pub fn max_plans(self, plans: impl Into<Option<u32>>) -> Self {
        Self { options: self.options.max_plans(plans), ..self }
    }

    /// Lifts the limits of work and memory.
    pub fn unlimited(self, unlimited: bool) -> Self {
        Self { options: self.options.unlimited(unlimited), ..self }
    }

    /// Searches until `should_stop` returns true or a plan is at the bound; at least one plan of
    /// each set is made. The function is called between plans, so a plan in progress is completed.
    /// [`CompileOptions::max_plans`] is ignored. The result depends on the moment at which the
    /// search stops, and is otherwise determined by input and options.
    pub fn stop_when(self, should_stop: impl Fn() -> bool + 'a) -> Self {
        Self { stop: Some(Box::new(should_stop)), ..self }
    }

    /// Ends the search early when `interrupt` asks for it, within a planner also: the best plan that
    /// was found is the result, and that of the paper's algorithm if there is none yet. Unlike
    /// [`Compiler::stop_when`], this does not make the search continue. The result of an interrupted
    /// search depends on the moment of the request ([`StopReason::Interrupted`]).
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Measures the time of each planner ([`crate::Trial::seconds`]) with a clock, which returns
    /// the time since some fixed moment. The result does not depend on it.
    pub fn clock(self, clock: impl Fn() -> Duration + Sync + 'a) -> Self {
        Self { clock: Some(Box::new(clock)), ..self }
    }

    /// Reuses an earlier schedule for the same machine as far as it still fits
    /// ([`crate::incremental`]). Other cells and links may be dead now. The checker verifies the
    /// schedule first.
    pub fn reuse(self, previous: impl Into<Option<&'a Schedule>>) -> Self {
        Self { previous: previous.into(), ..self }
    }

    /// Allows the compiler to merge a group of sets, given by their names, into one set, if that is
    /// faster. The program must be able to exchange them at the same time: none may send what
    /// another receives. May be called repeatedly. [`Compiled::fusions`] reports the decisions;
    /// merged sets do not reuse an earlier schedule. See [`crate::fuse`].
    pub fn fuse(mut self, sets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups.push(sets.into_iter().map(Into::into).collect());
        self
    }

    /// Reports progress to a callback.
    pub fn observer(self, observer: impl FnMut(Progress) + 'a) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// The machine that programs are compiled for.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The seed of the options.
    pub(crate) fn seed_of_options(&self) -> u64 {
        self.options.seed
    }

    /// Compiles every set of a program.
    ///
    /// # Errors
    /// Connections that do not fit the machine; an earlier schedule that the checker refuses, or
    /// that is for another machine; a group of sets that cannot be merged; a bug of a stage. See
    /// [`CompileError`].
    pub fn compile(&mut self, program: &Program) -> Result<Compiled, CompileError> {
        let context = CompileContext {
            machine: &self.machine,
            options: &self.options,
            should_stop: self.stop.as_deref(),
            interrupt: &self.interrupt,
            clock: self.clock.as_deref(),
            previous: self.previous,
            checks: PlanChecks::Deferred,
        };
        let mut ignore = |_| ();
        let observer: &mut Observer<'_> = match &mut self.observer {
            Some(observer) => &mut **observer,
            None => &mut ignore,
        };
        match self.groups.is_empty() {
            true => compile_program(context, program, observer),
            false => merge::compile(context, program, &self.groups, observer),
        }
    }

    /// Compiles connection sets, in this order.
    ///
    /// # Errors
    /// Two sets with the same name, and the errors of [`Compiler::compile`].
    pub fn compile_sets(
        &mut self,
        sets: impl IntoIterator<Item = ConnectionSet>,
    ) -> Result<Compiled, CompileError> {
        self.compile(&program_of(sets)?)
    }
}

/// The program of some sets, in this order.
///
/// # Errors
/// Two sets with the same name.
pub fn program_of(sets: impl IntoIterator<Item = ConnectionSet>) -> Result<Program, CompileError> {
    let program = Program::new(sets.into_iter().map(Arc::new).collect());
    Ok(program.map_err(|e| InputError::new("<sets>", At::Path(e.place), e.message))?)
}

/// Everything that a compilation depends on, except for the program.
#[derive(Clone, Copy)]
struct CompileContext<'a> {
    machine: &'a Arc<Machine>,
    options: &'a CompileOptions,
    should_stop: Option<&'a (dyn Fn() -> bool + 'a)>,
    interrupt: &'a Interrupt,
    clock: Option<Clock<'a>>,
    previous: Option<&'a Schedule>,
    checks: PlanChecks,
}

/// A set's timetable, its predicted price, and its provenance.
type PlannedSet = (Timetable, Prediction, Provenance);

/// How a set's plan was found.
#[derive(Default)]
struct Provenance {
    search: Option<SearchStats>,
    reuse: Option<ReuseOutcome>,
}

/// What is known about a set before it is checked.
struct Analysis {
    bounds: BoundsReport,
    prediction: Prediction,
    provenance: Provenance,
}

fn compile_program(
    context: CompileContext<'_>,
    program: &Program,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let compiled = compile_once(context, program, observer);
    let Err(CompileError::Bug { .. }) = compiled else { return compiled };
    let reused = context.previous.is_some();
    if !reused && context.options.algorithm == Algorithm::Paper {
        return compiled;
    }
    let again = CompileContext { previous: None, checks: PlanChecks::Immediate, ..context };
    compile_again(reused, || compile_once(again, program, observer))
}

/// The second compilation after a bug: without the earlier schedule, and with plans that are
/// checked before they are kept.
fn compile_again(
    reused: bool,
    compile: impl FnOnce() -> Result<Compiled, CompileError>,
) -> Result<Compiled, CompileError> {
    let mut compiled = compile()?;
    compiled.candidates_refused = compiled.candidates_refused.max(1);
    for set in compiled.sets.iter_mut().filter(|_| reused) {
        set.reuse = Some(ReuseOutcome::Recompiled(RecompileReason::Refused));
    }
    Ok(compiled)
}

fn compile_once(
    context: CompileContext<'_>,
    program: &Program,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let CompileContext { machine, options, .. } = context;
    observer(Progress::Stage("computing bounds"));
    let bounds = bounds::of_program(machine, program, options.unlimited)?;
    let previous = context
        .previous
        .map(|schedule| PreviousSchedule::check(machine, schedule, observer))
        .transpose()?;
    let planned = match &previous {
        Some(previous) => reuse::plan(context, program, &bounds, previous, observer)?,
        None => plan(context, program.sets(), &bounds, observer)?,
    };
    let mut sets = Vec::with_capacity(planned.len());
    let mut analyses = Vec::with_capacity(planned.len());
    for (bounds, (timetable, prediction, provenance)) in bounds.into_iter().zip(planned) {
        let (predicted_clocks, proof) = (prediction.clocks, bounds.proof());
        let claimed = bounds::claimed(&bounds, &prediction);
        sets.push(SetSchedule { timetable, bounds: claimed, proof, predicted_clocks });
        analyses.push(Analysis { bounds, prediction, provenance });
    }
    let is_reused =
        |analysis: &Analysis| matches!(analysis.provenance.reuse, Some(ReuseOutcome::Reused(_)));
    let suffix = if analyses.iter().any(is_reused) { "+from" } else { "" };
    let origin = Origin {
        generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
        algorithm: options.algorithm.name().to_owned() + suffix,
        seed: options.seed,
    };
    // Unchanged schedules keep their origin.
    let unchanged = context.previous.filter(|previous| previous.sets() == sets);
    let origin = unchanged.map_or(Some(origin), |previous| previous.origin().cloned());
    let schedule = Schedule::new(machine.clone(), sets, origin)
        .map_err(|e| CompileError::bug("the compiler", &e))?
        .with_digest();
    let verified = verify(&schedule, observer).map_err(|e| e.rejection_is_bug("a stage"))?;
    let mut compiled = generate(schedule, &verified, analyses, observer)?;
    if let Some(previous) = &previous {
        previous.compare_tables(&mut compiled);
    }
    Ok(compiled)
}

/// Plans sets without an earlier schedule.
fn plan(
    context: CompileContext<'_>,
    sets: &[Arc<ConnectionSet>],
    bounds: &[BoundsReport],
    observer: &mut Observer<'_>,
) -> Result<Vec<PlannedSet>, CompileError> {
    if context.options.algorithm == Algorithm::Auto {
        return search(context, sets, bounds, observer);
    }
    let plan = |set| {
        observer(Progress::Stage("routing"));
        paper_algorithm::plan(context.machine, set, context.options, observer)
            .map(|(timetable, prediction)| (timetable, prediction, Provenance::default()))
    };
    sets.iter().map(plan).collect()
}

/// Connections of all sets together up to which sets are planned in parallel. Larger programs are
/// planned one set after the other.
const PARALLEL_CONNECTIONS: usize = 1 << 17;

/// Searches for plans of all sets. All sets advance in turn, wave by wave, so that a time limit
/// leaves none of them without a plan.
fn search(
    context: CompileContext<'_>,
    sets: &[Arc<ConnectionSet>],
    bounds: &[BoundsReport],
    observer: &mut Observer<'_>,
) -> Result<Vec<PlannedSet>, CompileError> {
    let CompileContext { machine, options, should_stop, interrupt, clock, checks, .. } = context;
    observer(Progress::Stage("planning"));
    let stop_rule = match (should_stop, options.max_plans) {
        (Some(_), _) => StopRule::Stopped,
        (None, Some(plans)) => StopRule::MaxPlans(plans.max(1)),
        (None, None) => StopRule::Converged,
    };
    let new_search = |(set, bounds): (_, &BoundsReport)| {
        PlanSearch::new(machine, set, bounds.loads(), options, stop_rule, checks)
            .with_least_clocks(bounds.summary().clocks)
            .with_clock(clock)
            .interrupted_by(interrupt.clone())
    };
    let mut searches: Vec<PlanSearch<'_>> = sets.iter().zip(bounds).map(new_search).collect();
    let connections = sets.iter().map(|set| set.len()).sum::<usize>();
    while searches.iter().any(|search| !search.is_over()) {
        let mut open: Vec<_> = searches.iter_mut().filter(|search| !search.is_over()).collect();
        let waves: Vec<Result<(), CompileError>> =
            if connections <= PARALLEL_CONNECTIONS && sets.len() > 1 {
                parallel::map_mut(&mut open, |search| search.next_wave())
            } else {
                open.into_iter().map(PlanSearch::next_wave).collect()
            };
        waves.into_iter().collect::<Result<(), _>>()?;
        report_progress(&searches, observer);
        if should_stop.is_some_and(|should_stop| should_stop()) {
            let with_plan = searches.iter_mut().filter(|search| search.can_stop());
            with_plan.for_each(|search| search.stop(StopReason::TimeLimit));
        }
        if interrupt.is_requested() {
            searches.iter_mut().for_each(|search| search.stop(StopReason::Interrupted));
        }
    }
    observer(Progress::Stage("pricing"));
    searches
        .into_iter()
        .map(|search| {
            let (timetable, prediction, stats) = search.finish()?;
            Ok((timetable, prediction, Provenance { search: Some(stats), reuse: None }))
        })
        .collect()
}

/// Reports the number of plans, and the clocks and bounds if all sets have a plan.
fn report_progress(searches: &[PlanSearch<'_>], observer: &mut Observer<'_>) {
    let plans = searches.iter().map(PlanSearch::progress);
    let (done, total) = plans.fold((0, 0), |sum, plans| (sum.0 + plans.0, sum.1 + plans.1));
    observer(Progress::Done { done, total });
    let clocks: Option<Vec<(u64, u64)>> =
        searches.iter().map(PlanSearch::clocks_and_bound).collect();
    if let Some(clocks) = clocks {
        let add = |sum: (u64, u64), set: &(u64, u64)| (sum.0.saturating_add(set.0), sum.1 + set.1);
        let (clocks, bound) = clocks.iter().fold((0, 0), add);
        observer(Progress::Found { clocks, bound });
    }
}

/// Lets the checker verify a schedule. Of several refusals the first is returned, on any number of
/// threads.
fn verify(
    schedule: &Schedule,
    observer: &mut Observer<'_>,
) -> Result<Vec<Verified<SetSchedule>>, CompileError> {
    observer(Progress::Stage("checking"));
    conset_verify::check_clocks(schedule)?;
    let check = |set: &SetSchedule| conset_verify::set_schedule(set.clone());
    let sets = parallel::try_map(schedule.sets(), check)?;
    conset_verify::check_digest(schedule)?;
    Ok(sets)
}

/// Generates the image of a verified schedule, and lets the checker verify it.
fn generate(
    schedule: Schedule,
    verified: &[Verified<SetSchedule>],
    analyses: Vec<Analysis>,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let reports: Vec<Report> = verified.iter().map(|set| *set.report()).collect();
    let timetables: Vec<_> = verified.iter().map(|set| set.timetable().cloned()).collect();
    observer(Progress::Stage("writing tables"));
    let image = conset_codegen::image::image(schedule.machine(), &timetables)
        .map_err(|e| CompileError::bug("codegen", &e))?;
    let expected: Vec<&Timetable> = timetables.iter().map(|timetable| &**timetable).collect();
    let image = conset_verify::image_of(image, &expected)
        .map_err(|rejection| CompileError::bug("codegen", &rejection))?;
    let stats = analyses.iter().filter_map(|analysis| analysis.provenance.search.as_ref());
    let candidates_refused = stats.map(|stats| stats.candidates_refused).sum();
    let sets = analyses
        .into_iter()
        .zip(reports)
        .map(|(analysis, checked)| CompiledSet {
            bounds: analysis.bounds,
            prediction: analysis.prediction,
            checked,
            search: analysis.provenance.search,
            reuse: analysis.provenance.reuse,
        })
        .collect();
    let image = Arc::new(image.into_inner());
    Ok(Compiled { schedule, image, sets, fusions: Vec::new(), candidates_refused })
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, Connection};

    use super::*;
    use crate::report::Summary;

    fn compiled() -> Result<Compiled, CompileError> {
        let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
        let connection = Connection::new(CellId(0), CellId(1), 5);
        let set = ConnectionSet::new("s", vec![connection]).unwrap();
        Compiler::new(&machine).compile(&set.into())
    }

    #[test]
    fn a_second_compilation_is_reported() {
        let summary = Summary::new(&compile_again(true, compiled).unwrap(), None);
        assert_eq!(summary.candidates_refused, 1);
        let refused = ReuseOutcome::Recompiled(RecompileReason::Refused);
        assert_eq!(summary.sets[0].reuse, Some(refused));
        let note = summary.refused_note().unwrap();
        assert!(note.starts_with("1 candidate plan was refused by the checker"), "{note}");
        let summary = Summary::new(&compile_again(false, compiled).unwrap(), None);
        assert_eq!((summary.candidates_refused, &summary.sets[0].reuse), (1, &None));

        let right = Summary::new(&compiled().unwrap(), None);
        assert_eq!((right.candidates_refused, right.refused_note()), (0, None));
    }
}
