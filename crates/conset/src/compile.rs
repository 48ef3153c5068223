//! The pipeline: a program and a machine in, a checked schedule and its image out.
//!
//! [`compile`] runs the stages in order for each set: lower bounds, phases and routes, timetable,
//! prediction; the checker looks at every timetable before it may become an image, and at the
//! image before anything may run it (it is followed forward from the tables and compared with
//! the timetable). [`adopt`] takes the same way from the checker on with a schedule that came
//! from a file.

use std::sync::Arc;

use conset_ir::{
    Binding, Bounds, ConnectionSet, Image, Infeasible, InputError, Machine, Origin, Program,
    Schedule, SetSchedule, ShapeError, Timetable,
};
use conset_partition_route::{apr, bounds};
use conset_scheduler::{fixed_starts, greedy, link_aware as links, predict};
use conset_verify::{Lifted, Rejection, Report, Rule, Verified};

use rayon::prelude::*;

use crate::best::{Attempts, Clock, Search, Until};
use crate::from::{Fresh, FromOld};
use crate::fuse::Fusion;
use crate::{Observer, Progress};

mod older;

use older::Old;

/// Which router and scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// The paper's: APR (section 4.4.1) and the MIN_TIME greedy timetable (section 4.4.2).
    Paper,
    /// The compiler to the bound: several ways to plan, the best of them kept.
    #[default]
    Best,
}

impl Algorithm {
    /// The spelling in options and in files.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Paper => "paper",
            Algorithm::Best => "best",
        }
    }
}

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Objective {
    /// Clocks.
    #[default]
    Time,
    /// Phases, then clocks.
    Phases,
}

impl Objective {
    /// The spelling in options.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Time => "time",
            Objective::Phases => "phases",
        }
    }
}

/// What a compile can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which router and scheduler.
    pub algorithm: Algorithm,
    /// What [`Algorithm::Best`] minimises; the paper's minimises phases.
    pub objective: Objective,
    /// The seed of every random choice; the same seed gives the same bytes.
    pub seed: u64,
    /// Rounds of rip-up and reroute (the paper's k); without it, the algorithm's own number.
    pub reroutes: Option<u32>,
    /// The most phases a set may take; without it, as many as it needs.
    pub max_phases: Option<u32>,
    /// Plans that [`Algorithm::Best`] makes of each set, fewer only if one is at the bound; without
    /// it, until nothing much better can be expected. At least one is made.
    pub attempts: Option<u32>,
    /// Whether the budgets of work and memory are lifted, which keep both in proportion to the set
    /// and the machine. They are counts, so that they are the same everywhere.
    pub unlimited: bool,
}

/// What a compile can be given beside its options. Nothing of it is needed.
#[derive(Clone, Copy, Default)]
pub struct More<'a> {
    /// [`Algorithm::Best`] makes plans until this is true or one is at the bound, with at least
    /// one plan of each set. It is asked between plans, so a plan that takes long is not cut
    /// short. What comes out depends on when this becomes true, and on nothing else beside inputs
    /// and options; [`Options::attempts`] is not looked at.
    pub should_stop: Option<&'a dyn Fn() -> bool>,
    /// Times the planners ([`crate::Trial::seconds`]). Nothing else depends on it.
    pub clock: Option<Clock<'a>>,
    /// An older compile for the same machine, of which what still fits is kept
    /// ([`crate::from`]). It is checked first.
    pub from: Option<&'a Schedule>,
}

/// Why there is no compiled program. Each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The input is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The machine cannot do it.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// The checker refused a schedule that was handed in.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// A stage broke its promise: a bug of ours.
    #[error("internal error in {stage}: {message}\nplease report this with the input")]
    Bug {
        /// The stage.
        stage: &'static str,
        /// What it did.
        message: String,
    },
}

impl Default for Options {
    fn default() -> Self {
        let apr::RouterOptions { seed, max_phases, .. } = apr::RouterOptions::default();
        let (algorithm, objective) = (Algorithm::default(), Objective::default());
        Self {
            algorithm,
            objective,
            seed,
            reroutes: None,
            max_phases,
            attempts: None,
            unlimited: false,
        }
    }
}

impl CompileError {
    pub(crate) fn bug(stage: &'static str, message: &dyn ToString) -> Self {
        CompileError::Bug { stage, message: message.to_string() }
    }
}

/// A compiled and checked program.
#[derive(Clone, Debug)]
pub struct Compiled {
    schedule: Schedule,
    image: Arc<Image>,
    sets: Vec<CompiledSet>,
    pub(crate) fusions: Vec<Fusion>,
    pub(crate) candidates_refused: u32,
}

/// What is known of one compiled set beside its schedule.
#[derive(Clone, Debug)]
pub struct CompiledSet {
    /// Lower bounds, each with its witness.
    pub bounds: bounds::BoundsReport,
    /// The cost model's account, phase by phase.
    pub prediction: predict::Prediction,
    /// What the checker counted.
    pub checked: Report,
    /// How the plan was found, where several were made.
    pub attempts: Option<Attempts>,
    /// What became of an older compile, where there was one.
    pub from: Option<FromOld>,
}

impl Compiled {
    /// The schedule, as files hold it.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The image, as runtimes load it.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// What became of sets that were allowed to be joined ([`crate::fuse`]).
    pub fn fusions(&self) -> &[Fusion] {
        &self.fusions
    }

    /// Plans that were made on the way and dropped, because the checker refused them or a stage
    /// could not price them: a bug of conset, which did no harm but may have cost quality.
    pub fn candidates_refused(&self) -> u32 {
        self.candidates_refused
    }

    /// What is known of each set, in the schedule's order.
    pub fn sets(&self) -> &[CompiledSet] {
        &self.sets
    }
}

/// A set's timetable, its price, and how it was found.
type Planned = (Timetable, predict::Prediction, How);

/// How a set's plan came about.
#[derive(Default)]
struct How {
    attempts: Option<Attempts>,
    from: Option<FromOld>,
}

/// What is known of a set before the checker has seen it.
struct Known {
    bounds: bounds::BoundsReport,
    prediction: predict::Prediction,
    how: How,
}

/// Compiles every set of a program for a machine.
///
/// # Errors
/// See [`CompileError`].
pub fn compile(
    machine: &Arc<Machine>,
    program: &Program,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    compile_with(machine, program, options, &More::default(), observer)
}

/// Compiles every set of a program for a machine, for as long as there is time.
///
/// # Errors
/// See [`CompileError`].
pub fn compile_with(
    machine: &Arc<Machine>,
    program: &Program,
    options: &Options,
    more: &More<'_>,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let compiled = compile_once(machine, program, options, more, Care::Usual, observer);
    let Err(CompileError::Bug { .. }) = compiled else { return compiled };
    if more.from.is_none() && options.algorithm == Algorithm::Paper {
        return compiled;
    }
    let again = More { from: None, ..*more };
    again_with_care(more.from.is_some(), || {
        compile_once(machine, program, options, &again, Care::Great, observer)
    })
}

/// How sure a search is of its plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Plans of large sets, whose check takes time, are checked once they are the result.
    Usual,
    /// Every plan is checked before it is kept.
    Great,
}

/// What is compiled once more after something was wrong in the end: without the older compile, and
/// with plans that are checked before they are kept. That it was wrong is a bug of ours and no
/// reason to give up.
fn again_with_care(
    from: bool,
    compile: impl FnOnce() -> Result<Compiled, CompileError>,
) -> Result<Compiled, CompileError> {
    let mut compiled = compile()?;
    compiled.candidates_refused = compiled.candidates_refused.max(1);
    for set in compiled.sets.iter_mut().filter(|_| from) {
        set.from = Some(FromOld::Fresh(Fresh::Refused));
    }
    Ok(compiled)
}

fn compile_once(
    machine: &Arc<Machine>,
    program: &Program,
    options: &Options,
    more: &More<'_>,
    care: Care,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    observer(Progress::Stage("finding bounds"));
    let bounds = bounds_of(machine, program, options.unlimited)?;
    let old = more.from.map(|old| Old::new(machine, old, observer)).transpose()?;
    let planned = match &old {
        Some(old) => older::keep(machine, program, &bounds, old, options, more, observer)?,
        None => fresh(machine, program.sets(), &bounds, options, more, care, observer)?,
    };
    let mut sets = Vec::with_capacity(planned.len());
    let mut known = Vec::with_capacity(planned.len());
    for (bounds, (timetable, prediction, how)) in bounds.into_iter().zip(planned) {
        let (predicted_clocks, proof) = (prediction.clocks, bounds.proof());
        sets.push(SetSchedule { timetable, bounds: bounds.summary(), proof, predicted_clocks });
        known.push(Known { bounds, prediction, how });
    }
    let kept = known.iter().any(|known| matches!(known.how.from, Some(FromOld::Kept(_))));
    let origin = Origin {
        generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
        algorithm: options.algorithm.name().to_owned() + if kept { "+from" } else { "" },
        seed: options.seed,
    };
    // Unchanged schedules keep their origin.
    let same = more.from.filter(|old| old.sets() == sets);
    let origin = same.map_or(Some(origin), |old| old.origin().cloned());
    let schedule = Schedule::new(machine.clone(), sets, origin)
        .map_err(|e| CompileError::bug("the compiler", &e))?
        .with_digest();
    let verified = checked(&schedule, observer).map_err(|e| match e {
        // We made it ourselves, so it is nobody else's fault.
        CompileError::Rejected(rejection) => CompileError::bug("a stage", &rejection),
        other => other,
    })?;
    let mut compiled = finish(schedule, &verified, known, observer)?;
    if let Some(old) = &old {
        old.compare(&mut compiled);
    }
    Ok(compiled)
}

/// Compiles sets for a machine, for programs that know their sets when they start: the image that
/// a runtime loads, and nothing else.
///
/// # Errors
/// As [`compile`], and two sets of one name.
pub fn compile_sets(
    machine: &Arc<Machine>,
    sets: impl IntoIterator<Item = ConnectionSet>,
    options: &Options,
) -> Result<Arc<Image>, CompileError> {
    let program = Program::new(sets.into_iter().map(Arc::new).collect())
        .map_err(|e| InputError::new("<sets>", conset_ir::At::Path(e.place), e.message))?;
    Ok(compile(machine, &program, options, &mut |_| ())?.image)
}

/// Plans of sets for which there is no older compile.
fn fresh(
    machine: &Arc<Machine>,
    sets: &[Arc<ConnectionSet>],
    bounds: &[bounds::BoundsReport],
    options: &Options,
    more: &More<'_>,
    care: Care,
    observer: &mut Observer<'_>,
) -> Result<Vec<Planned>, CompileError> {
    if options.algorithm == Algorithm::Best {
        return planned(machine, sets, bounds, options, more, care, observer);
    }
    let route = |set| {
        observer(Progress::Stage("routing"));
        paper(machine, set, options, observer)
            .map(|(t, prediction)| (t, prediction, How::default()))
    };
    sets.iter().map(route).collect()
}

/// Connections of all sets that are planned at once: more are planned one set after the other.
const TOGETHER: usize = 1 << 17;

/// Plans of all sets. Each makes its attempts wave by wave, all sets in turn, so that none waits
/// for another to have used up the time.
fn planned(
    machine: &Arc<Machine>,
    sets: &[Arc<ConnectionSet>],
    bounds: &[bounds::BoundsReport],
    options: &Options,
    more: &More<'_>,
    care: Care,
    observer: &mut Observer<'_>,
) -> Result<Vec<Planned>, CompileError> {
    observer(Progress::Stage("planning"));
    let until = match (more.should_stop, options.attempts) {
        (Some(_), _) => Until::Stopped,
        (None, Some(attempts)) => Until::Attempts(attempts.max(1)),
        (None, None) => Until::Good,
    };
    let search = |(set, bounds): (_, &bounds::BoundsReport)| {
        Search::new(machine, set, bounds.summary(), options, until, care).timed_by(more.clock)
    };
    let mut searches: Vec<Search<'_>> = sets.iter().zip(bounds).map(search).collect();
    let few = sets.iter().map(|set| set.len()).sum::<usize>() <= TOGETHER;
    while searches.iter().any(|search| !search.is_over()) {
        let made: Vec<Result<(), CompileError>> = if few && sets.len() > 1 {
            let open = searches.par_iter_mut().filter(|search| !search.is_over());
            open.map(Search::wave).collect()
        } else {
            searches.iter_mut().filter(|search| !search.is_over()).map(Search::wave).collect()
        };
        made.into_iter().collect::<Result<(), _>>()?;
        tell(&searches, observer);
        if more.should_stop.is_some_and(|should_stop| should_stop()) {
            searches.iter_mut().filter(|search| search.can_stop()).for_each(Search::stop);
        }
    }
    observer(Progress::Stage("pricing"));
    searches
        .into_iter()
        .map(|search| {
            let (timetable, prediction, made) = search.finish()?;
            Ok((timetable, prediction, How { attempts: Some(made), from: None }))
        })
        .collect()
}

/// How far the searches are, and how far from the bound the plans are, if all sets have one.
fn tell(searches: &[Search<'_>], observer: &mut Observer<'_>) {
    let sums = searches.iter().map(Search::done);
    let (done, total) = sums.fold((0, 0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
    observer(Progress::Done { done, total });
    let clocks: Option<Vec<(u64, u64)>> = searches.iter().map(Search::clocks).collect();
    if let Some(clocks) = clocks {
        let add = |sum: (u64, u64), at: &(u64, u64)| (sum.0.saturating_add(at.0), sum.1 + at.1);
        let (clocks, bound) = clocks.iter().fold((0, 0), add);
        observer(Progress::Found { clocks, bound });
    }
}

/// The paper's router and timetable.
pub(crate) fn paper(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<(Timetable, predict::Prediction), CompileError> {
    let paper = apr::RouterOptions::paper();
    let routing = apr::route(
        machine,
        set,
        &apr::RouterOptions {
            seed: options.seed,
            reroutes: options.reroutes.unwrap_or(paper.reroutes),
            max_phases: options.max_phases,
            ..paper
        },
        &mut |at| {
            observer(Progress::Done { done: at.routed as u64, total: at.total as u64 });
        },
    )?;
    observer(Progress::Stage("building timetables"));
    let timetable =
        greedy::timetable(routing).map_err(|e| CompileError::bug("the scheduler", &e))?;
    Ok(links::cheapest(&fixed_starts::with_early_starts(vec![timetable])))
}

/// Takes over a schedule that came from outside: checks it and makes its image.
///
/// # Errors
/// [`CompileError::Rejected`] where the checker refuses it.
pub fn adopt(schedule: Schedule, observer: &mut Observer<'_>) -> Result<Compiled, CompileError> {
    // The checker speaks first: bounds and predictions are for what it has accepted.
    let schedule = with_witnesses(schedule);
    let verified = checked(&schedule, observer)?;
    let known = schedule
        .sets()
        .iter()
        .map(|set| {
            let routing = set.timetable.routing();
            let bounds = bounds::bounds(routing.machine(), routing.set())?;
            let prediction = predict::predict(&set.timetable);
            Ok(Known { bounds, prediction, how: How::default() })
        })
        .collect::<Result<Vec<_>, CompileError>>()?;
    finish(schedule, &verified, known, observer)
}

/// Gives witnesses to bounds that have none and that the checker does not believe without: files
/// of version 1 have none, and what they claim may be true. A witness is only found for a bound
/// that is; whether it is right is the checker's word, as for any other.
#[must_use]
pub fn with_witnesses(schedule: Schedule) -> Schedule {
    let sets: Vec<SetSchedule> = schedule.sets().par_iter().map(with_witness).collect();
    if sets == schedule.sets() {
        return schedule;
    }
    let (origin, digest) = (schedule.origin().cloned(), schedule.digest());
    match Schedule::new(schedule.machine().clone(), sets, origin) {
        Ok(schedule) => schedule.with_stated_digest(digest),
        Err(_) => schedule,
    }
}

fn with_witness(set: &SetSchedule) -> SetSchedule {
    let mut set = set.clone();
    let missing = set.proof.phases.is_none() || set.proof.clocks.is_none();
    let refused = |set| match conset_verify::check_set_schedule(set) {
        Ok(_) => false,
        Err(rejection) => rejection.rules() == [Rule::Claim],
    };
    if !missing || !refused(&set) {
        return set;
    }
    let routing = set.timetable.routing();
    // No bounds, no witness: the checker says why.
    let Ok(report) = bounds::bounds(routing.machine(), routing.set()) else { return set };
    let find = |found: &[bounds::Bound], claimed: u64, by: Binding| {
        let fits =
            |b: &&bounds::Bound| b.value >= claimed && (by == Binding::Nothing || b.binding == by);
        found.iter().find(fits).and_then(|bound| bound.witness.clone())
    };
    let Bounds { phases, phases_by, clocks, clocks_by } = set.bounds;
    let of_phases = || find(&report.phases, phases.into(), phases_by);
    let of_clocks = || find(&report.clocks, clocks, clocks_by);
    set.proof.phases = set.proof.phases.take().or_else(of_phases);
    set.proof.clocks = set.proof.clocks.take().or_else(of_clocks);
    set
}

fn checked(
    schedule: &Schedule,
    observer: &mut Observer<'_>,
) -> Result<Vec<Verified<SetSchedule>>, CompileError> {
    observer(Progress::Stage("checking"));
    conset_verify::check_clocks(schedule)
        .map_err(|rejection| CompileError::Rejected(Box::new(rejection)))?;
    let sets = schedule.sets().par_iter().map(|set| conset_verify::set_schedule(set.clone()));
    // All of them, then the first refusal: the same on any number of threads.
    let sets: Vec<Result<_, _>> = sets.collect();
    let sets: Result<Vec<_>, _> = sets.into_iter().collect();
    let checked = sets.and_then(|sets| conset_verify::check_digest(schedule).map(|()| sets));
    checked.map_err(|rejection| CompileError::Rejected(Box::new(rejection)))
}

/// Takes over an image: checks it, follows its tables back to routes and starts, and prices
/// those. What runs is the image that was handed in.
///
/// # Errors
/// [`CompileError::Rejected`] where the checker refuses the image or what it was lifted to.
pub fn adopt_image(image: Image, observer: &mut Observer<'_>) -> Result<Compiled, CompileError> {
    let rejected = |rejection| CompileError::Rejected(Box::new(rejection));
    observer(Progress::Stage("checking"));
    let image = conset_verify::image(image).map_err(rejected)?.into_inner();
    let mut schedules = Vec::new();
    let mut sets = Vec::new();
    for lifted in conset_verify::lift(&image).map_err(rejected)? {
        let timetable = timetable_of(&lifted);
        let bounds = bounds::bounds(image.machine(), timetable.routing().set())?;
        let prediction = predict::predict(&timetable);
        let schedule = SetSchedule {
            timetable,
            bounds: bounds.summary(),
            proof: bounds.proof(),
            predicted_clocks: prediction.clocks,
        };
        let verified = conset_verify::set_schedule(schedule).map_err(rejected)?;
        let checked = *verified.report();
        sets.push(CompiledSet { bounds, prediction, checked, attempts: None, from: None });
        schedules.push(verified.into_inner());
    }
    let schedule = Schedule::new(image.machine().clone(), schedules, None)
        .map_err(|e| CompileError::bug("lifting", &e))?
        .with_digest();
    let image = Arc::new(image);
    Ok(Compiled { schedule, image, sets, fusions: Vec::new(), candidates_refused: 0 })
}

/// The timetable of an image's set. An image does not say for how long a stream is booked: the
/// scheduler's durations where they fit between its starts, otherwise the shortest.
fn timetable_of(lifted: &Lifted) -> Timetable {
    let booked = fixed_starts::with_starts(lifted.routing.clone(), &lifted.starts);
    let booked = booked.ok().filter(|booked| conset_verify::check_timetable(booked).is_ok());
    booked.unwrap_or_else(|| lifted.timetable())
}

fn finish(
    schedule: Schedule,
    verified: &[Verified<SetSchedule>],
    known: Vec<Known>,
    observer: &mut Observer<'_>,
) -> Result<Compiled, CompileError> {
    let reports: Vec<Report> = verified.iter().map(|set| *set.report()).collect();
    let timetables: Vec<_> = verified.iter().map(|set| set.timetable().cloned()).collect();
    observer(Progress::Stage("writing tables"));
    let image = conset_codegen::image::image(schedule.machine(), &timetables)
        .map_err(|e| CompileError::bug("codegen", &e))?;
    let meant: Vec<&Timetable> = timetables.iter().map(|v| &**v).collect();
    let image = conset_verify::image_of(image, &meant)
        .map_err(|rejection| CompileError::bug("codegen", &rejection))?;
    let refused = known.iter().filter_map(|known| known.how.attempts.as_ref());
    let candidates_refused = refused.map(|attempts| attempts.candidates_refused).sum();
    let sets = known
        .into_iter()
        .zip(reports)
        .map(|(known, checked)| CompiledSet {
            bounds: known.bounds,
            prediction: known.prediction,
            checked,
            attempts: known.how.attempts,
            from: known.how.from,
        })
        .collect();
    let image = Arc::new(image.into_inner());
    Ok(Compiled { schedule, image, sets, fusions: Vec::new(), candidates_refused })
}

/// A set that names cells which the machine has not, or not alive.
pub(crate) fn wrong_ends(
    machine: &Machine,
    set: &conset_ir::ConnectionSet,
    error: ShapeError,
) -> CompileError {
    let cells = machine.cell_count();
    let mut ends = set.connections().iter().flat_map(|c| [c.source, c.target]);
    let help = match ends.any(|cell| cell.index() >= cells) {
        true => "choose a machine that has these cells (iwarp:16x16, say)",
        false => "only live cells send and receive; name others, or choose another machine",
    };
    let file = format!("set `{}`", set.name());
    InputError::new(file, conset_ir::At::Path(error.place), error.message).help(help).into()
}

/// The lower bounds of every set of a program, without compiling.
///
/// # Errors
/// As [`compile`]: ends that are not the machine's, no way between them, more clocks than
/// [`conset_ir::limits::SERIAL_TIME`], or routes that take more memory than a compile may by
/// default.
pub fn bound(
    machine: &Machine,
    program: &Program,
) -> Result<Vec<bounds::BoundsReport>, CompileError> {
    bounds_of(machine, program, false)
}

fn bounds_of(
    machine: &Machine,
    program: &Program,
    unlimited: bool,
) -> Result<Vec<bounds::BoundsReport>, CompileError> {
    program
        .check_clocks(machine)
        .map_err(|e| InputError::new("<program>", conset_ir::At::Path(e.place), e.message))?;
    let of = if unlimited { bounds::bounds } else { bounds::bounds_in_budget };
    let bounds: Vec<Result<_, CompileError>> = program
        .sets()
        .par_iter()
        .map(|set| {
            set.check_machine(machine).map_err(|e| wrong_ends(machine, set, e))?;
            Ok(of(machine, set)?)
        })
        .collect();
    bounds.into_iter().collect()
}

/// Result over bound, 1 where both are 0: how far from the best possible a result is at most.
pub fn bound_ratio(result: u64, bound: u64) -> f64 {
    if bound == 0 { 1.0 } else { result as f64 / bound as f64 }
}

/// The sums over a schedule's sets.
pub fn total_bounds(schedule: &Schedule) -> Bounds {
    let mut total =
        Bounds { phases: 0, phases_by: Binding::Nothing, clocks: 0, clocks_by: Binding::Nothing };
    let mut worst = (0, 0);
    for set in schedule.sets() {
        total.phases += set.bounds.phases;
        total.clocks += set.bounds.clocks;
        if set.bounds.phases > worst.0 {
            worst.0 = set.bounds.phases;
            total.phases_by = set.bounds.phases_by;
        }
        if set.bounds.clocks > worst.1 {
            worst.1 = set.bounds.clocks;
            total.clocks_by = set.bounds.clocks_by;
        }
    }
    total
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
        compile(&machine, &set.into(), &Options::default(), &mut |_| ())
    }

    #[test]
    fn what_is_compiled_again_says_so() {
        let summary = Summary::new(&again_with_care(true, compiled).unwrap(), None);
        assert_eq!(summary.candidates_refused, 1);
        assert_eq!(summary.sets[0].from, Some(FromOld::Fresh(Fresh::Refused)));
        let note = summary.refused_note().unwrap();
        assert!(note.starts_with("1 candidate plan was refused by the checker"), "{note}");
        let summary = Summary::new(&again_with_care(false, compiled).unwrap(), None);
        assert_eq!((summary.candidates_refused, &summary.sets[0].from), (1, &None));

        let right = Summary::new(&compiled().unwrap(), None);
        assert_eq!((right.candidates_refused, right.refused_note()), (0, None));
    }
}
