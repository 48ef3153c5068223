//! `conset view`: writing a page that shows one schedule, or two side by side, in a browser.

use std::path::Path;

use conset::input::{Input, LoadedProgram, PartitionUnit};
use conset_ir::convert::to_usize;
use conset_mesh::surface::Surface;
use conset_mesh::write_partition::PlacedPartition;
use conset_view::{Page, PageOptions, Program, Shown};
use serde::Serialize;

use crate::args::{InputArgs, ViewArgs};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load::{self, Either, LoadedInput, PartitionGoal};
use crate::progress::ProgressDisplay;
use crate::refused::{self, Refused, RefusedSchedule};
use crate::text::Terminal;

/// The object of `conset view --json`.
#[derive(Serialize)]
struct ViewReport {
    output: String,
    bytes: usize,
    /// What was left out because of the size limit.
    left_out: Vec<String>,
}

/// What is looked at.
enum Looked {
    Checked(Either),
    Refused(Refused),
}

/// An input that is compiled, with its mesh.
struct Job {
    name: String,
    input: LoadedInput,
    compiled: Looked,
    surface: Option<Surface>,
}

pub(crate) fn run(args: &ViewArgs, terminal: &Terminal) -> Result<(), CliError> {
    let second = args
        .second
        .as_ref()
        .map(|input| InputArgs { input: input.clone(), options: args.input.options.clone() });
    if second.as_ref().is_some_and(|second| second.input == "-" && args.input.input == "-") {
        let error = load::wrong_kind("<stdin>", "standard input can be read once only");
        return Err(error.help("give one of them as a file").into());
    }
    let inputs: Vec<&InputArgs> = std::iter::once(&args.input).chain(&second).collect();
    let target = OutputTarget::new(&args.output);
    let files: Vec<&Path> = inputs.iter().flat_map(|input| load::input_files(input)).collect();
    target.check(&files)?;
    let jobs = inputs.iter().map(|input| job(input, args, terminal));
    let jobs = jobs.collect::<Result<Vec<Job>, CliError>>()?;
    let shown: Vec<Shown<'_>> = jobs.iter().map(Job::shown).collect();
    let mut options = PageOptions::default();
    if let Some(bytes) = args.size_limit {
        options = options.size_limit(to_usize(bytes));
    }
    let page = conset_view::page(&shown, &options)
        .map_err(|error| CliError::Bug(format!("the page cannot be written: {error}")))?;
    target.write(|out| out.write_all(page.html.as_bytes()))?;
    let refused = jobs.iter().find_map(|job| match &job.compiled {
        Looked::Checked(_) => None,
        Looked::Refused(refused) => Some(refused),
    });
    if let Some(refused) = refused {
        terminal.mark_refused((*refused.rejection).clone());
    }
    print(args, &page, terminal)?;
    refused.map_or(Ok(()), |refused| Err(refused::shown(&refused.name)))
}

fn print(args: &ViewArgs, page: &Page, terminal: &Terminal) -> Result<(), CliError> {
    let report = ViewReport {
        output: args.output.display().to_string(),
        bytes: page.html.len(),
        left_out: page.left_out.clone(),
    };
    terminal.print(&report, |out| {
        for what in &report.left_out {
            writeln!(out, "left out {what}")?;
        }
        writeln!(out, "wrote {}", report.output)
    })
}

/// Reads and compiles an input, or imports a compiled one.
fn job(input: &InputArgs, args: &ViewArgs, terminal: &Terminal) -> Result<Job, CliError> {
    let mut bar = ProgressDisplay::new(terminal.quiet).with_time_limit(args.compiler.time_limit);
    let goal = PartitionGoal::of(&args.compiler);
    let loaded = load::input_for(input, &goal, true, &mut bar)?;
    load::refuse_seed(&loaded, &input.options)?;
    let compiled = match load::compiled_by(&loaded, input, &args.compiler, &mut bar) {
        Ok(choice) => Looked::Checked(choice.chosen),
        Err(CliError::Violations { rejection, .. }) => {
            Looked::Refused(refused::schedule_of(&input.name(), &loaded.input, rejection)?)
        }
        Err(error) => return Err(error),
    };
    let surface = match &loaded.input {
        Input::Program(program) => surface(program, input.options.elements.into()),
        _ => None,
    };
    let name = match Path::new(&input.input).file_name() {
        Some(name) if input.pattern().is_none() => name.display().to_string(),
        _ => input.name(),
    };
    Ok(Job { name, input: loaded, compiled, surface })
}

/// The surface of the mesh; `None` if the input has no coordinates.
fn surface(program: &LoadedProgram, unit: PartitionUnit) -> Option<Surface> {
    let (halo, reading) = (program.halo.as_ref()?, program.reading.as_ref()?);
    let partition = PlacedPartition::new(reading, &halo.halo.parts, &halo.place).ok()?;
    let partition = partition.triangles(unit == PartitionUnit::Triangles);
    Some(partition.vtu().ok()?.surface())
}

impl Job {
    fn shown(&self) -> Shown<'_> {
        Shown {
            name: &self.name,
            program: match &self.compiled {
                Looked::Checked(Either::Phases(compiled)) => Program::Phases(compiled),
                Looked::Checked(Either::Steps(compiled)) => Program::Steps(compiled),
                Looked::Refused(Refused { schedule, rejection, .. }) => match schedule {
                    RefusedSchedule::Phases(schedule) => {
                        Program::RefusedPhases(schedule, rejection)
                    }
                    RefusedSchedule::Steps(schedule) => Program::RefusedSteps(schedule, rejection),
                },
            },
            halo: match &self.input.input {
                Input::Program(program) => program.halo.as_ref(),
                _ => None,
            },
            surface: self.surface.as_ref(),
        }
    }
}
