//! The pipeline: a program and a machine in, a checked schedule and its image out.
//!
//! [`compile`] runs the stages in order for each set: lower bounds, phases and routes, timetable,
//! prediction; the checker looks at every timetable before it may become an image, and at the
//! image before anything may run it (it is followed forward from the tables and compared with
//! the timetable). [`adopt`] takes the same way from the checker on with a schedule that came
//! from a file.

use std::sync::Arc;

use conset_ir::{
    Bounds, ConnectionSet, Image, Infeasible, InputError, Machine, Origin, Program, Schedule,
    SetSchedule, ShapeError, Timetable,
};
use conset_partition_route::{apr, bounds};
use conset_scheduler::{greedy, planned, predict};
use conset_verify::{Rejection, Report, Verified};

use crate::best;
use crate::{Observer, Progress};

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
        let apr::Options { seed, max_phases, .. } = apr::Options::default();
        let (algorithm, objective) = (Algorithm::default(), Objective::default());
        Self { algorithm, objective, seed, reroutes: None, max_phases }
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

    /// What is known of each set, in the schedule's order.
    pub fn sets(&self) -> &[CompiledSet] {
        &self.sets
    }
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
    let mut sets = Vec::with_capacity(program.sets().len());
    for (row, set) in program.sets().iter().enumerate() {
        set.check_machine(machine).map_err(|e| wrong_ends(row, set.name(), e))?;
        let bounds = bounds::bounds(machine, set)?;
        observer(Progress::Stage("routing"));
        let (timetable, prediction) = match options.algorithm {
            Algorithm::Paper => paper(machine, set, options, observer)?,
            Algorithm::Best => best::best(machine, set, &bounds.summary(), options, observer)?,
        };
        sets.push((
            SetSchedule {
                timetable,
                bounds: bounds.summary(),
                predicted_clocks: prediction.clocks,
            },
            bounds,
            prediction,
        ));
    }
    let origin = Origin {
        generator: concat!("conset ", env!("CARGO_PKG_VERSION")).to_owned(),
        algorithm: options.algorithm.name().to_owned(),
        seed: options.seed,
    };
    let (schedules, known): (Vec<_>, Vec<_>) = sets
        .into_iter()
        .map(|(schedule, bounds, prediction)| (schedule, (bounds, prediction)))
        .unzip();
    let schedule = Schedule::new(machine.clone(), schedules, Some(origin))
        .map_err(|e| CompileError::bug("the compiler", &e))?;
    let verified = checked(&schedule, observer).map_err(|e| match e {
        // We made it ourselves, so it is nobody else's fault.
        CompileError::Rejected(rejection) => CompileError::bug("a stage", &rejection),
        other => other,
    })?;
    finish(schedule, &verified, known, observer)
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

/// The paper's router and timetable.
pub(crate) fn paper(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<(Timetable, predict::Prediction), CompileError> {
    let paper = apr::Options::paper();
    let routing = apr::route(
        machine,
        set,
        &apr::Options {
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
    let prediction = predict::predict(&timetable);
    Ok((timetable, prediction))
}

/// Takes over a schedule that came from outside: checks it and makes its image.
///
/// # Errors
/// [`CompileError::Rejected`] where the checker refuses it.
pub fn adopt(schedule: Schedule, observer: &mut Observer<'_>) -> Result<Compiled, CompileError> {
    // The checker speaks first: bounds and predictions are for what it has accepted.
    let verified = checked(&schedule, observer)?;
    let known = schedule
        .sets()
        .iter()
        .map(|set| {
            let routing = set.timetable.routing();
            let bounds = bounds::bounds(routing.machine(), routing.set())?;
            Ok((bounds, predict::predict(&set.timetable)))
        })
        .collect::<Result<Vec<_>, CompileError>>()?;
    finish(schedule, &verified, known, observer)
}

fn checked(
    schedule: &Schedule,
    observer: &mut Observer<'_>,
) -> Result<Vec<Verified<SetSchedule>>, CompileError> {
    observer(Progress::Stage("checking"));
    let sets = schedule.sets().iter().map(|set| conset_verify::set_schedule(set.clone()));
    sets.collect::<Result<_, _>>().map_err(|r| CompileError::Rejected(Box::new(r)))
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
        let timetable = planned::with_starts(lifted.routing, &lifted.starts)
            .map_err(|e| CompileError::bug("lifting", &e))?;
        let bounds = bounds::bounds(image.machine(), timetable.routing().set())?;
        let prediction = predict::predict(&timetable);
        let schedule = SetSchedule {
            timetable,
            bounds: bounds.summary(),
            predicted_clocks: prediction.clocks,
        };
        let verified = conset_verify::set_schedule(schedule).map_err(rejected)?;
        sets.push(CompiledSet { bounds, prediction, checked: *verified.report() });
        schedules.push(verified.into_inner());
    }
    let schedule = Schedule::new(image.machine().clone(), schedules, None)
        .map_err(|e| CompileError::bug("lifting", &e))?;
    Ok(Compiled { schedule, image: Arc::new(image), sets })
}

fn finish(
    schedule: Schedule,
    verified: &[Verified<SetSchedule>],
    known: Vec<(bounds::BoundsReport, predict::Prediction)>,
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
    let sets = known
        .into_iter()
        .zip(reports)
        .map(|((bounds, prediction), checked)| CompiledSet { bounds, prediction, checked })
        .collect();
    Ok(Compiled { schedule, image: Arc::new(image.into_inner()), sets })
}

fn wrong_ends(row: usize, name: &str, error: ShapeError) -> CompileError {
    InputError::new(
        format!("set `{name}`"),
        conset_ir::At::Path(format!("sets[{row}].{}", error.place)),
        error.message,
    )
    .help("choose a machine that has these cells: --machine iwarp:16x16, say")
    .into()
}

/// The lower bounds of every set of a program, without compiling.
///
/// # Errors
/// As [`compile`]: ends that are not the machine's, or no way between them.
pub fn bound(
    machine: &Machine,
    program: &Program,
) -> Result<Vec<bounds::BoundsReport>, CompileError> {
    program
        .sets()
        .iter()
        .enumerate()
        .map(|(row, set)| {
            set.check_machine(machine).map_err(|e| wrong_ends(row, set.name(), e))?;
            Ok(bounds::bounds(machine, set)?)
        })
        .collect()
}

/// Result over bound, 1 where both are 0: how far from the best possible a result is at most.
pub fn gap(result: u64, bound: u64) -> f64 {
    if bound == 0 { 1.0 } else { result as f64 / bound as f64 }
}

/// The sums over a schedule's sets.
pub fn total_bounds(schedule: &Schedule) -> Bounds {
    let mut total = Bounds {
        phases: 0,
        phases_by: conset_ir::Binding::Nothing,
        clocks: 0,
        clocks_by: conset_ir::Binding::Nothing,
    };
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
