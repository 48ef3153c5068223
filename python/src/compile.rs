//! From a source to a schedule, and from a file to a schedule.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use conset::choice::{self, CompiledProgram};
use conset::input::{self, Input, InputKind, LoadOptions, LoadedProgram};
use conset::partition_route::placement::Method;
use conset::steps::{CompiledSteps, StepAlgorithm, schedule_of_image};
use conset::{Compiled, Compiler, Observer, Progress};
use conset_files::Opened;
use conset_ir::{At, Document, FileFormat, InputError, Machine, Schedule};
use conset_mesh::read::{self, Reading};
use pyo3::prelude::*;

use crate::failure::Failure;
use crate::files;
use crate::job;
use crate::options::Options;
use crate::origin::Origin;
use crate::program::Program;
use crate::source::{Contents, Source};

/// Compiles a source to what the options state; `progress(kind, stage, a, b)` is called with each
/// report.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
pub(crate) fn compile(
    source: PyRef<'_, Source>,
    options: Options,
    reuse: Option<PyRef<'_, Program>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Program> {
    let contents = source.contents.clone();
    let previous = reuse.map(|program| program.compiled.clone());
    job::run(source.py(), progress.as_ref(), move |observer| {
        let end = options.end_of_search();
        let planner = options.step_algorithm()?;
        let Loaded { program, machine, mut origin } = load_program(&contents, &options, observer)?;
        origin.describe(&program);
        let input = (&program, &machine);
        let previous = previous.as_deref().and_then(|previous| match previous {
            CompiledProgram::Phases(compiled) => Some(compiled.schedule()),
            // The package passes schedules of phases only.
            CompiledProgram::Steps(_) => None,
        });
        let (compiled, other) = match options.by.as_str() {
            "steps" => {
                let compiled = steps_of(input, &options, planner, observer)?;
                (CompiledProgram::Steps(Box::new(compiled)), None)
            }
            "best" => {
                let steps = steps_of(input, &options, planner, observer)?;
                let phases = phases_of(input, &options, previous, end, observer)?;
                let (compiled, other) = choice::cheaper(phases, steps);
                (compiled, Some(other))
            }
            _ => {
                let compiled = phases_of(input, &options, previous, end, observer)?;
                (CompiledProgram::Phases(Box::new(compiled)), None)
            }
        };
        Ok(Program::new(compiled, origin, other))
    })
}

/// Loads a schedule or an image, which the checker verifies.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are extracted")]
pub(crate) fn load(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Program> {
    job::run(py, progress.as_ref(), move |observer| {
        let compiled = load_compiled(&path, observer)?;
        Ok(Program::new(compiled, Origin::default(), None))
    })
}

/// A program and where its sets come from.
struct Loaded {
    program: LoadedProgram,
    machine: Arc<Machine>,
    origin: Origin,
}

/// The program compiled to phases; the search ends at `end`.
fn phases_of(
    (program, machine): (&LoadedProgram, &Arc<Machine>),
    options: &Options,
    previous: Option<&Schedule>,
    end: Option<Instant>,
    observer: &mut Observer<'_>,
) -> Result<Compiled, Failure> {
    let mut compiler =
        Compiler::new(machine).options(options.compile()).reuse(previous).observer(observer);
    if let Some(end) = end {
        compiler = compiler.stop_when(move || Instant::now() >= end);
    }
    for group in &options.fuse {
        compiler = compiler.fuse(group);
    }
    let compiled = compiler.compile(&program.program)?;
    let mapped = compiled.with_part_map(program.part_map.clone());
    mapped.map_err(|e| Failure::bug("placement", &e))
}

/// The program compiled to messages in steps.
fn steps_of(
    (program, machine): (&LoadedProgram, &Arc<Machine>),
    options: &Options,
    planner: StepAlgorithm,
    observer: &mut Observer<'_>,
) -> Result<CompiledSteps, Failure> {
    let compiled = options.compile_steps(machine, planner).compile(&program.program, observer)?;
    let mapped = compiled.with_part_map(program.part_map.clone());
    mapped.map_err(|e| Failure::bug("placement", &e))
}

fn load_program(
    contents: &Contents,
    options: &Options,
    observer: &mut Observer<'_>,
) -> Result<Loaded, Failure> {
    let whole = options.whole_machine(None)?;
    let machine = options.without_dead(whole.clone());
    let mut loaded = match contents {
        Contents::Pattern(name, words) => {
            options.refuse_parts(
                "a pattern uses all cells of the machine and is not divided into parts",
                "choose the machine's size instead: --machine iwarp:4x4",
            )?;
            let machine = machine?;
            let program = input::pattern(name, &machine, *words)?;
            Loaded { program, machine, origin: Origin::default() }
        }
        Contents::Connections(set) => {
            options.refuse_parts(
                "the connections name cells already and are not divided into parts",
                "leave out this option; --placement places cells as if they were parts",
            )?;
            let program = conset_ir::Program::from(set.clone()).into();
            Loaded { program, machine: machine?, origin: Origin::default() }
        }
        Contents::Reading(name, reading) => {
            let numbers = options.number_files()?;
            let stop = options.end_of_partitions();
            let load = options.load(&numbers, stop.as_deref());
            let machine = machine?;
            let (program, origin) =
                partitioned(name, (**reading).clone(), &machine, &load, observer)?;
            Loaded { program, machine, origin }
        }
        Contents::Path(path) => {
            // If the file names its own machine, the dead parts refer to that machine and may not
            // exist on the default one.
            let here = machine.as_ref().unwrap_or(&whole);
            let (program, origin) = read_path(path, options, here, observer)?;
            let machine = match &program.machine {
                Some(own) => options.without_dead(options.whole_machine(Some(own.clone()))?)?,
                None => machine?,
            };
            Loaded { program, machine, origin }
        }
    };
    match options.placement() {
        Some(method) if loaded.program.placement.is_none() && method != Method::Given => {
            input::place(&mut loaded.program, &loaded.machine, method, options.seed(), observer)?;
        }
        _ => {}
    }
    Ok(loaded)
}

fn read_path(
    path: &Path,
    options: &Options,
    machine: &Machine,
    observer: &mut Observer<'_>,
) -> Result<(LoadedProgram, Origin), Failure> {
    observer(Progress::Stage("reading"));
    let numbers = options.number_files()?;
    let stop = options.end_of_partitions();
    let load = options.load(&numbers, stop.as_deref());
    let format = options.format.as_deref();
    let (name, bytes) = match conset_files::open(path, format, &load.read_options(), &files::read)?
    {
        Opened::File(name, bytes) => (name, bytes),
        Opened::Mesh(name, reading) => {
            return partitioned(&name, *reading, machine, &load, observer);
        }
    };
    if let InputKind::Mesh(format) = input::kind(&name, &bytes, format)? {
        let reading = read::read_with(format, &name, &bytes, &load.read_options())?;
        drop(bytes);
        return partitioned(&name, reading, machine, &load, observer);
    }
    match input::load(&name, &bytes, machine, &load, observer)? {
        Input::Program(program) => Ok((*program, Origin::default())),
        Input::Schedule(_) | Input::Image(_) | Input::Steps(_) => {
            let message = "this is compiled already";
            Err(InputError::new(name, At::Whole, message).help("load it with conset.load").into())
        }
        Input::Machine(_) => {
            let message = "this is a machine; \
                           expected a mesh, graph, matrix, connection set or schedule";
            Err(InputError::new(name, At::Whole, message).into())
        }
    }
}

/// The program of a mesh, graph or matrix.
fn partitioned(
    name: &str,
    reading: Reading,
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<(LoadedProgram, Origin), Failure> {
    let origin = Origin::of(&reading);
    match input::from_reading(name, reading, machine, options, observer)? {
        Input::Program(program) => Ok((*program, origin)),
        _ => Err(Failure::bug("reading", "a mesh became no program")),
    }
}

fn load_compiled(path: &Path, observer: &mut Observer<'_>) -> Result<CompiledProgram, Failure> {
    let (name, bytes) = files::read(path)?;
    let not_compiled = |message: &str| {
        let help = format!("compile it first: conset.compile({name:?})");
        Failure::from(InputError::new(&name, At::Whole, message).help(help))
    };
    if bytes.is_empty() {
        return Err(not_compiled("the file is empty; expected a schedule or an image"));
    }
    let wanted = "this is not compiled; expected a schedule or an image";
    let own = [FileFormat::Text, FileFormat::Json, FileFormat::Binary];
    let sniffed = Document::sniff(&bytes).is_some_and(|format| own.contains(&format));
    if !sniffed && !matches!(input::kind(&name, &bytes, None), Ok(InputKind::Document)) {
        return Err(not_compiled(wanted));
    }
    let phases = |compiled| CompiledProgram::Phases(Box::new(compiled));
    let steps = |schedule| {
        let compiled = CompiledSteps::import(schedule)?.with_claims()?;
        Ok(CompiledProgram::Steps(Box::new(compiled)))
    };
    match Document::parse_any(&name, &bytes)? {
        Document::Schedule(schedule) => Ok(phases(Compiled::import(schedule, observer)?)),
        Document::Image(image) if image.sets().iter().any(|set| set.steps.is_some()) => {
            let of_image = schedule_of_image(&image);
            steps(of_image.map_err(|error| error.in_file(&name))?)
        }
        Document::Image(image) => Ok(phases(Compiled::import_image(image, observer)?)),
        Document::Steps(schedule) => steps(schedule),
        _ => Err(not_compiled(wanted)),
    }
}
