//! Compiling at run time: sets of layouts, for a machine, into an image. [`conset_compile`] is for
//! layouts of cells, [`conset_assemble`] for layouts of parts that are yet to be placed.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use conset::ir::{CellId, ConnectionSet, Image, Machine, ShapeError, machine_file};
use conset::partition_route::placement::Method;
use conset::steps::{StepAlgorithm, StepCompiler};
use conset::{
    Algorithm, CompileError, CompileOptions, Compiler, Objective, choice, place_parts, program_of,
};
use conset_runtime::{Layout, tree_sets_named};

use crate::connections::{ConsetConnectionSet, connection_set};
use crate::entry::enter;
use crate::handle::{self, value};
use crate::image::{ConsetImage, world};
use crate::layout::ConsetLayout;
use crate::memory::{array, array_mut, options, text, write};
use crate::run::{ConsetCommunicator, broadcast};
use crate::status::{CallFault, Status};

/// `conset_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetSet {
    /// Its name.
    pub name: *const c_char,
    /// The layout whose connections it has.
    pub layout: *const ConsetLayout,
    /// Words for each item.
    pub block: usize,
}

/// `conset_tree`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetTree {
    /// What the names of its sets begin with; null for nothing.
    pub prefix: *const c_char,
    /// Words that it carries at a time.
    pub words: u32,
    /// Which of its sets are compiled: a sum of `conset_tree_sets`.
    pub sets: c_int,
}

/// `conset_compile_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetCompileOptions {
    /// Bytes of this structure.
    pub size: usize,
    /// The seed of every random choice.
    pub seed: u64,
    /// Words that the trees of collectives carry; 0 for none.
    pub tree_words: u32,
    /// The most phases that a set may take; 0 for as many as it needs.
    pub max_phases: u32,
    /// `conset_algorithm`.
    pub algorithm: c_int,
    /// `conset_objective`.
    pub objective: c_int,
    /// Plans that are made of each set; 0 until nothing much better can be expected.
    pub attempts: u32,
    /// Rounds of rip-up and reroute; less than 0 for the algorithm's own number.
    pub reroutes: c_int,
    /// `conset_placement`.
    pub placement: c_int,
    /// Trees beside those of `tree_words`.
    pub trees: *const ConsetTree,
    /// How many.
    pub tree_count: usize,
    /// `conset_compile_by`.
    pub by: c_int,
    /// The planner of steps; null for the cheapest plan of all.
    pub planner: *const c_char,
    /// The ranks of which one compiles for all; null where each compiles for itself.
    pub communicator: *const ConsetCommunicator,
    /// Sets given by their connections.
    pub connection_sets: *const ConsetConnectionSet,
    /// How many.
    pub connection_set_count: usize,
}

fn defaults() -> ConsetCompileOptions {
    let CompileOptions { seed, max_phases, max_plans, .. } = CompileOptions::default();
    ConsetCompileOptions {
        size: size_of::<ConsetCompileOptions>(),
        seed,
        tree_words: 1,
        max_phases: max_phases.unwrap_or(0),
        algorithm: 0,
        objective: 0,
        attempts: max_plans.unwrap_or(0),
        reroutes: -1,
        placement: 0,
        trees: std::ptr::null(),
        tree_count: 0,
        by: 0,
        planner: std::ptr::null(),
        communicator: std::ptr::null(),
        connection_sets: std::ptr::null(),
        connection_set_count: 0,
    }
}

/// Sets the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_compile_options_init(options: *mut ConsetCompileOptions) -> c_int {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_compile_options_init", || unsafe { write(options, "options", defaults()) })
}

/// Compiles sets for a machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_compile(
    machine: *const c_char,
    sets: *const ConsetSet,
    count: usize,
    options: *const ConsetCompileOptions,
    image: *mut *mut ConsetImage,
) -> c_int {
    enter("conset_compile", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let communicator = self::options(options, defaults())?.communicator;
            let compiled = || {
                let Job { compilation, sets, trees, .. } = job(machine, sets, count, options)?;
                compilation.image(sets.into_iter().map(|(set, _)| set).chain(trees))
            };
            let compiled = match communicator.is_null() {
                true => compiled()?,
                false => broadcast(value(communicator, "options.communicator")?, compiled)?,
            };
            handle::give(image, world(compiled))
        }
    })
}

/// Finds a cell for each part, and compiles the parts' sets for these cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_assemble(
    machine: *const c_char,
    parts: usize,
    sets: *const ConsetSet,
    count: usize,
    options: *const ConsetCompileOptions,
    place: *mut u32,
    image: *mut *mut ConsetImage,
) -> c_int {
    enter("conset_assemble", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            if !self::options(options, defaults())?.communicator.is_null() {
                let what = "options.communicator: conset_assemble compiles in each process";
                return Err(CallFault::argument(what));
            }
            let job = job(machine, sets, count, options)?;
            let place = array_mut(place, parts, "place")?;
            if let Some((set, named)) = job.sets.iter().find(|(_, named)| *named > parts) {
                let name = set.name();
                let message = format!("set `{name}` is of {named} parts, not {parts}");
                return Err(CallFault::argument(message));
            }
            let sets = job.sets.into_iter().map(|(set, _)| set).collect();
            let Compilation { machine, options, .. } = &job.compilation;
            let method = (job.method, options.seed);
            let (cells, sets) = place_parts(machine, (parts, sets), job.trees, method)?;
            handle::give(image, world(job.compilation.image(sets)?))?;
            place.iter_mut().zip(cells).for_each(|(place, CellId(cell))| *place = cell);
            Ok(())
        }
    })
}

/// What is to be compiled, and how.
struct Job {
    compilation: Compilation,
    /// Each set with the number of cells, or parts, that it names.
    sets: Vec<(ConnectionSet, usize)>,
    trees: Vec<ConnectionSet>,
    method: Method,
}

/// The machine, and how sets are compiled for it.
struct Compilation {
    machine: Arc<Machine>,
    options: CompileOptions,
    by: CompileBy,
    /// The planner of steps.
    planner: StepAlgorithm,
}

/// `conset_compile_by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompileBy {
    Phases,
    Steps,
    Best,
}

impl CompileBy {
    /// Its name in the header.
    const fn name(self) -> &'static str {
        match self {
            CompileBy::Phases => "CONSET_COMPILE_PHASES",
            CompileBy::Steps => "CONSET_COMPILE_STEPS",
            CompileBy::Best => "CONSET_COMPILE_BEST",
        }
    }
}

impl Compilation {
    /// The image of the sets.
    fn image(
        &self,
        sets: impl IntoIterator<Item = ConnectionSet>,
    ) -> Result<Arc<Image>, CallFault> {
        let Self { machine, options, by, planner } = self;
        let program = program_of(sets)?;
        let phases = || Compiler::new(machine).options(options.clone()).compile(&program);
        let steps = || {
            let compiler = StepCompiler::new(machine).algorithm(planner.clone()).seed(options.seed);
            let compiler = compiler.max_plans(options.max_plans);
            compiler.compile(&program, &mut |_| ()).map_err(planner_fault)
        };
        Ok(match by {
            CompileBy::Phases => phases()?.image().clone(),
            CompileBy::Steps => steps()?.image().clone(),
            CompileBy::Best => choice::cheaper(phases()?, steps()?).0.image().clone(),
        })
    }
}

/// A planner of steps that does not fit the machine, by the name of its option.
fn planner_fault(error: CompileError) -> CallFault {
    match error {
        CompileError::Input(mut error) if error.file == "<algorithm>" => {
            error.file = "<planner>".to_owned();
            error.into()
        }
        other => other.into(),
    }
}

/// # Safety
/// The rules of `memory` hold for all pointers.
unsafe fn job(
    machine: *const c_char,
    sets: *const ConsetSet,
    count: usize,
    options: *const ConsetCompileOptions,
) -> Result<Job, CallFault> {
    // SAFETY: the caller's promise.
    unsafe {
        let machine = Arc::new(machine_of(text(machine, "machine")?)?);
        let given = self::options(options, defaults())?;
        let mut all = Vec::new();
        for (row, set) in array(sets, count, "sets")?.iter().enumerate() {
            let name = text(set.name, &format!("sets[{row}].name"))?;
            let layout: &Layout = value(set.layout, &format!("sets[{row}].layout"))?;
            let made = layout.set(name, set.block);
            let made = made.map_err(|e| CallFault::argument(format!("set `{name}`: {e}")))?;
            all.push((made, layout.cells()));
        }
        let given_sets = (given.connection_sets, given.connection_set_count);
        let given_sets = array(given_sets.0, given_sets.1, "options.connection_sets")?;
        for (row, set) in given_sets.iter().enumerate() {
            let made = connection_set(set, &format!("options.connection_sets[{row}]"))?;
            let ends = made.connections().iter().flat_map(|c| [c.source, c.target]);
            let named = ends.max().map_or(0, |last| last.index() + 1);
            all.push((made, named));
        }
        let trees = trees(&machine, &given)?;
        let (options, method) = (compile_options(&given)?, placement(given.placement)?);
        let (by, planner) = compile_by(&given)?;
        let compilation = Compilation { machine, options, by, planner };
        Ok(Job { compilation, sets: all, trees, method })
    }
}

/// The sets of trees that the options ask for.
///
/// # Safety
/// The rules of `memory` hold for the options' trees.
unsafe fn trees(
    machine: &Machine,
    given: &ConsetCompileOptions,
) -> Result<Vec<ConnectionSet>, CallFault> {
    const ALL: c_int = 7;
    let mut sets = Vec::new();
    if given.tree_words > 0 {
        sets.extend(tree_sets_named(machine, given.tree_words, "")?);
    }
    // SAFETY: the caller's promise.
    let trees = unsafe { array(given.trees, given.tree_count, "options.trees")? };
    for (row, tree) in trees.iter().enumerate() {
        let place = format!("options.trees[{row}]");
        let prefix = match tree.prefix.is_null() {
            true => "",
            // SAFETY: the caller's promise.
            false => unsafe { text(tree.prefix, &format!("{place}.prefix"))? },
        };
        if !(1..=ALL).contains(&tree.sets) {
            let message = format!("{place}.sets is {}, expected a sum of 1, 2 and 4", tree.sets);
            return Err(CallFault::argument(message));
        }
        let made = tree_sets_named(machine, tree.words, prefix)
            .map_err(|error| CallFault::argument(format!("{place}: {error}")))?;
        let wanted = made.into_iter().enumerate().filter(|(bit, _)| tree.sets >> bit & 1 == 1);
        sets.extend(wanted.map(|(_, set)| set));
    }
    Ok(sets)
}

/// One of some values by its number.
fn choose<T: Copy>(number: c_int, values: &[T], what: &str) -> Result<T, CallFault> {
    let found = usize::try_from(number).ok().and_then(|row| values.get(row).copied());
    found.ok_or_else(|| CallFault::argument(format!("{number} is no {what} (enum conset_{what})")))
}

fn placement(number: c_int) -> Result<Method, CallFault> {
    choose(number, &[Method::Best, Method::Given, Method::Curve, Method::Bisect], "placement")
}

fn compile_options(given: &ConsetCompileOptions) -> Result<CompileOptions, CallFault> {
    let algorithms = [Algorithm::Auto, Algorithm::Paper];
    let objectives = [Objective::Time, Objective::Phases];
    Ok(CompileOptions::new()
        .algorithm(choose(given.algorithm, &algorithms, "algorithm")?)
        .objective(choose(given.objective, &objectives, "objective")?)
        .seed(given.seed)
        .rip_up_iterations(u32::try_from(given.reroutes).ok())
        .max_phases((given.max_phases > 0).then_some(given.max_phases))
        .max_plans((given.attempts > 0).then_some(given.attempts)))
}

/// What the sets are compiled to, and the planner of steps. Options that have no effect on it are
/// refused.
///
/// # Safety
/// The rules of `memory` hold for the name of the planner.
unsafe fn compile_by(
    given: &ConsetCompileOptions,
) -> Result<(CompileBy, StepAlgorithm), CallFault> {
    let by =
        choose(given.by, &[CompileBy::Phases, CompileBy::Steps, CompileBy::Best], "compile_by")?;
    let is_phases = by == CompileBy::Phases;
    let unused = [
        ("planner", !given.planner.is_null() && by != CompileBy::Steps),
        ("algorithm", given.algorithm != 0 && !is_phases),
        ("objective", given.objective != 0 && !is_phases),
        ("max_phases", given.max_phases > 0 && !is_phases),
        ("reroutes", given.reroutes >= 0 && by == CompileBy::Steps),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, given)| *given) {
        let message = format!("options.{option} has no effect with {}; leave it out", by.name());
        return Err(CallFault::argument(message));
    }
    if given.planner.is_null() {
        return Ok((by, StepAlgorithm::Best));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { text(given.planner, "options.planner")? };
    let wrong = |e: ShapeError| CallFault::argument(format!("options.planner: {}", e.message));
    Ok((by, StepAlgorithm::parse(name).map_err(wrong)?))
}

/// A preset or a machine file, and settings behind it: `torus:4x4 channels_per_cell=8`.
fn machine_of(specification: &str) -> Result<Machine, CallFault> {
    let mut parts = specification.split_ascii_whitespace();
    let spec = parts.next().unwrap_or("");
    let machine = if Path::new(spec).extension().is_some_and(|extension| extension == "toml") {
        let text = std::fs::read_to_string(spec)
            .map_err(|error| CallFault::new(Status::File, format!("{spec}: {error}")))?;
        machine_file::parse(spec, &text)?
    } else {
        Machine::from_spec(spec)
            .map_err(|e| e.with_alternative("give a machine file ending in .toml"))?
    };
    let mut parameters = machine.parameters().clone();
    for setting in parts {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            CallFault::new(Status::Input, format!("machine: `{setting}`, expected NAME=VALUE"))
        })?;
        parameters.set(name, value)?;
    }
    machine
        .with_parameters(parameters)
        .map_err(|error| CallFault::new(Status::Input, format!("machine: {error}")))
}
