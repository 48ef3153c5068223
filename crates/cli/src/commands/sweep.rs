//! `conset sweep`: compiling an input for many machines or with many options, as one table.
//!
//! A combination of values is the same call with further options at its end, which is how its
//! arguments are parsed: whatever an option accepts can be varied, and is refused with the same
//! message. Combinations are compiled and executed in parallel, each as `conset run` would. One that
//! fails is a row with its error. The rows are in the order of the values, the last variable
//! changing fastest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::FromArgMatches;
use conset::chart::{Chart, Line, Scale, Series, Style};
use conset::run;
use conset_ir::convert::{to_f64, to_u64};
use conset_ir::{At, InputError, Parameters};
use conset_view::ReportPage;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::{self, Cli, Command, SweepArgs, Variable};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::interrupt::{self, Search};
use crate::load::{self, Either, PartitionGoal};
use crate::progress::ProgressDisplay;
use crate::rows::{self, Field, TableRows};
use crate::text::{self, Terminal};

/// The most combinations.
const COMBINATIONS_MAX: usize = 1 << 16;

/// A variable and one of its values.
#[derive(Clone, Debug, Serialize)]
struct Setting {
    name: String,
    value: String,
}

/// The result of a combination: sums over all sets.
#[derive(Clone, Debug, Default, Serialize)]
struct Clocks {
    /// Phases; none for steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_phases: Option<u64>,
    /// Steps; none for phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    predicted_clocks: u64,
    /// None with `--predict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_clocks: Option<u64>,
    bound_clocks: u64,
    clocks_over_bound: f64,
}

impl Clocks {
    /// The measured clocks, or else the predicted ones.
    fn clocks(&self) -> u64 {
        self.measured_clocks.unwrap_or(self.predicted_clocks)
    }
}

#[derive(Clone, Debug, Serialize)]
struct Combination {
    settings: Vec<Setting>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    clocks: Option<Clocks>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    seconds: f64,
}

#[derive(Serialize)]
struct SweepReport {
    combinations: Vec<Combination>,
    /// The number of the combination with the fewest clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    fastest: Option<usize>,
    /// Whether Ctrl-C ended the sweep.
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

pub(crate) fn run(args: &SweepArgs, terminal: &Terminal) -> Result<(), CliError> {
    if args.input.input == "-" {
        let message = "a sweep reads its input more than once; standard input can be read once";
        return Err(InputError::new("<stdin>", At::Whole, message)
            .help("save it in a file")
            .into());
    }
    let output = args.output.as_deref().map(SweepOutput::of).transpose()?;
    if let Some(path) = &args.output {
        OutputTarget::new(path).check(&load::input_files(&args.input))?;
    }
    let settings = settings(args)?;
    // All arguments are checked before the first is compiled.
    let calls = calls(&settings)?;
    let bar = bar(settings.len(), terminal.quiet);
    let search = Search::begin(terminal.quiet);
    let rows: Vec<Option<Combination>> = calls
        .par_iter()
        .zip(settings)
        .map(|(call, settings)| {
            if interrupt::is_requested() {
                return None;
            }
            let start = Instant::now();
            let clocks = clocks(call, args.predict);
            bar.inc(1);
            // What was under way is no fair result.
            (!interrupt::is_requested()).then(|| {
                let (clocks, error) = match clocks {
                    Ok(clocks) => (Some(clocks), None),
                    Err(error) => (None, Some(error.message())),
                };
                Combination { settings, clocks, error, seconds: start.elapsed().as_secs_f64() }
            })
        })
        .collect();
    drop(search);
    bar.finish_and_clear();
    let combinations: Vec<Combination> = rows.into_iter().flatten().collect();
    let least = |row: &usize| combinations[*row].clocks.as_ref().map(Clocks::clocks);
    let fastest =
        (0..combinations.len()).filter(|row| least(row).is_some()).min_by_key(|row| least(row));
    let report = SweepReport {
        fastest,
        interrupted: combinations.len() < calls.len(),
        combinations,
        output: args.output.as_ref().map(|path| path.display().to_string()),
    };
    let table = table(&args.vary, &report);
    if let (Some(path), Some(output)) = (&args.output, output) {
        OutputTarget::new(path).write(|out| match output {
            SweepOutput::Csv => table.write_csv(out),
            SweepOutput::Page => out.write_all(page(args, &report, &table).html().as_bytes()),
        })?;
    }
    rows::print(
        terminal,
        &report,
        || table.clone(),
        |out| {
            table.write_human(out)?;
            write_summary(out, &report, calls.len())
        },
    )
}

/// What `--output` selects.
#[derive(Clone, Copy)]
enum SweepOutput {
    Csv,
    Page,
}

impl SweepOutput {
    fn of(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Ok(Self::Csv);
        }
        match path.extension().and_then(OsStr::to_str) {
            Some("csv") => Ok(Self::Csv),
            Some("html") => Ok(Self::Page),
            _ => Err(InputError::new(
                path.display().to_string(),
                At::Whole,
                "the extension does not select an output format",
            )
            .help("use .csv, or .html for a page with a chart")),
        }
    }
}

/// The settings of every combination.
fn settings(args: &SweepArgs) -> Result<Vec<Vec<Setting>>, InputError> {
    let wrong = |message: String| InputError::new("--vary", At::Whole, message);
    for (row, variable) in args.vary.iter().enumerate() {
        if args.vary[..row].iter().any(|other| other.name == variable.name) {
            return Err(wrong(format!("{} is varied twice", variable.name))
                .help("separate the values of one --vary by commas"));
        }
    }
    let sizes = args.vary.iter().map(|variable| variable.values.len());
    let count = sizes.fold(1usize, usize::saturating_mul);
    if count > COMBINATIONS_MAX {
        return Err(wrong(format!(
            "{count} combinations; at most {COMBINATIONS_MAX} are compiled"
        ))
        .help("vary fewer values at a time"));
    }
    let mut combinations = vec![Vec::new()];
    for variable in &args.vary {
        let with = |settings: &Vec<Setting>, value: &String| {
            let setting = Setting { name: variable.name.clone(), value: value.clone() };
            settings.iter().cloned().chain([setting]).collect()
        };
        combinations = combinations
            .iter()
            .flat_map(|settings| variable.values.iter().map(move |value| with(settings, value)))
            .collect();
    }
    Ok(combinations)
}

/// The arguments of the combinations: those of this call with the settings at their end.
fn calls(combinations: &[Vec<Setting>]) -> Result<Vec<SweepArgs>, CliError> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let parameters: Vec<&str> = Parameters::iwarp().names().collect();
    let option = |Setting { name, value }: &Setting| match parameters.contains(&name.as_str()) {
        true => format!("--param={name}={value}").into(),
        false => format!("--{}={value}", name.replace('_', "-")).into(),
    };
    // The last of several values counts, so a varied option may also be given.
    let parser = args::parser();
    let mut parser = parser.mut_subcommand("sweep", |sweep| sweep.args_override_self(true));
    let mut call = |settings: &Vec<Setting>| {
        let mut words = words.clone();
        words.splice(end..end, settings.iter().map(option));
        let parsed = parser
            .try_get_matches_from_mut(words)
            .and_then(|matches| Cli::from_arg_matches(&matches))
            .map_err(|error| {
                let message = error.to_string();
                let message = message.lines().next().unwrap_or_default();
                let message = message.trim_start_matches("error: ").to_owned();
                InputError::new("--vary", At::Whole, message).help(
                    "vary a machine parameter, or an option of `conset sweep` that has a value",
                )
            })?;
        match parsed.command {
            Command::Sweep(args) => Ok(args),
            _ => Err(CliError::Bug("the arguments of a sweep are not those of a sweep".to_owned())),
        }
    };
    combinations.iter().map(&mut call).collect()
}

fn bar(count: usize, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(8),
    };
    let style = ProgressStyle::with_template("combinations {wide_bar} {pos}/{len} {elapsed}");
    let bar = ProgressBar::with_draw_target(Some(to_u64(count)), target);
    bar.set_style(style.expect("the template is well formed"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Compiles a combination, and executes it unless only the prediction is wanted.
fn clocks(args: &SweepArgs, predict: bool) -> Result<Clocks, CliError> {
    let mut bar = ProgressDisplay::new(true);
    let goal = PartitionGoal::of(&args.compiler);
    let job = load::input_for(&args.input, &goal, false, &mut bar)?;
    let choice = load::compiled_by(&job, &args.input, &args.compiler, &mut bar)?;
    let seed = args.input.seed();
    let bug = |error: &dyn std::fmt::Display| CliError::Bug(error.to_string());
    let mut result = Clocks::default();
    match choice.chosen {
        Either::Phases(compiled) => {
            let sets = || compiled.schedule().sets().iter();
            result.phases = Some(sets().map(|set| to_u64(set.timetable.phases().len())).sum());
            result.bound_phases = Some(sets().map(|set| u64::from(set.bounds.phases)).sum());
            result.bound_clocks = sets().map(|set| set.bounds.clocks).sum();
            result.predicted_clocks = compiled.predicted_clocks();
            if !predict {
                let runs = run::run(&compiled, seed, false, &mut |_| ()).map_err(|e| bug(&e))?;
                let runs = runs.iter().map(|run| &run.summary);
                let runs = runs.map(|run| (run.set.as_str(), run.payload_ok, run.measured_clocks));
                result.measured_clocks = Some(measured(runs)?);
            }
        }
        Either::Steps(compiled) => {
            let summaries = compiled.summaries();
            result.steps = Some(summaries.iter().map(|set| to_u64(set.steps)).sum());
            result.bound_clocks = summaries.iter().map(|set| set.bound_clocks).sum();
            result.predicted_clocks = compiled.predicted_clocks();
            if !predict {
                let runs = compiled.run(seed, false).map_err(|e| bug(&e))?;
                let runs = runs.iter().map(|run| &run.summary);
                let runs = runs.map(|run| (run.set.as_str(), run.payload_ok, run.measured_clocks));
                result.measured_clocks = Some(measured(runs)?);
            }
        }
    }
    result.clocks_over_bound = conset::bound_ratio(result.clocks(), result.bound_clocks);
    Ok(result)
}

/// The clocks of all sets together, each with its name and whether its words were delivered.
fn measured<'a>(runs: impl Iterator<Item = (&'a str, bool, u64)>) -> Result<u64, CliError> {
    let mut sum = 0;
    for (set, payload_ok, clocks) in runs {
        if !payload_ok {
            let message = format!("set `{set}`: words were not delivered correctly");
            return Err(CliError::Bug(message));
        }
        sum += clocks;
    }
    Ok(sum)
}

fn write_summary(out: &mut dyn Write, report: &SweepReport, asked: usize) -> io::Result<()> {
    writeln!(out)?;
    if let Some(row) = report.fastest {
        let best = &report.combinations[row];
        let settings: Vec<String> = best
            .settings
            .iter()
            .map(|setting| format!("{} = {}", setting.name, setting.value))
            .collect();
        let clocks = best.clocks.as_ref().map_or(0, Clocks::clocks);
        writeln!(out, "fewest clocks: {} with {}", text::number(clocks), settings.join(", "))?;
    }
    if report.interrupted {
        let done = to_u64(report.combinations.len());
        let asked = text::count(to_u64(asked), "combination");
        writeln!(out, "interrupted after {done} of {asked}")?;
    }
    if let Some(output) = &report.output {
        writeln!(out, "wrote {output}")?;
    }
    Ok(())
}

/// The colours of the lines of a chart, which colour-blind readers can tell apart.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

/// The greatest number of labels along the horizontal axis of a chart.
const LABELS_MAX: usize = 12;

/// The greatest ratio of numbers that are placed on a linear scale.
const LINEAR_MAX: f64 = 20.0;

/// The page of a sweep: clocks over the first variable that has several values, with a line for each
/// combination of the others, and the table.
fn page(args: &SweepArgs, report: &SweepReport, table: &TableRows) -> ReportPage {
    let vary = &args.vary;
    let has_several = |column: &usize| vary[*column].values.len() > 1;
    let column = (0..vary.len()).find(has_several).unwrap_or(0);
    let others: Vec<usize> =
        (0..vary.len()).filter(|other| *other != column && has_several(other)).collect();
    let labels = &vary[column].values;
    let places = places(labels);
    let place_of: HashMap<&str, f64> =
        labels.iter().map(String::as_str).zip(places.iter().copied()).collect();
    let place = |row: &Combination| place_of[row.settings[column].value.as_str()];
    let name_of = |row: &Combination| {
        let name = |setting: &Setting| format!("{} {}", setting.name, setting.value);
        let names: Vec<String> = others.iter().map(|&other| name(&row.settings[other])).collect();
        names.join(", ")
    };
    let mut line_of: HashMap<String, usize> = HashMap::new();
    let mut lines: Vec<(String, Vec<&Combination>)> = Vec::new();
    for row in &report.combinations {
        let name = name_of(row);
        let line = *line_of.entry(name.clone()).or_insert_with(|| {
            lines.push((name, Vec::new()));
            lines.len() - 1
        });
        lines[line].1.push(row);
    }
    let mut series = Vec::new();
    for ((name, line), colour) in lines.iter().zip(COLOURS) {
        let points = |of: fn(&Clocks) -> u64| {
            let point = |row: &&Combination| Some((place(row), to_f64(of(row.clocks.as_ref()?))));
            line.iter().filter_map(point).collect()
        };
        let (clocks, bound) = match name.as_str() {
            "" => ("clocks".to_owned(), "bound".to_owned()),
            name => (name.to_owned(), format!("{name}: bound")),
        };
        let points = [
            (clocks, Line::Solid, points(Clocks::clocks)),
            (bound, Line::Dashed, points(|c| c.bound_clocks)),
        ];
        series.extend(points.map(|(name, line, points)| Series { name, colour, line, points }));
    }
    let stride = labels.len().div_ceil(LABELS_MAX).max(1);
    let chart = Chart {
        title: String::new(),
        x_label: vary[column].name.clone(),
        y_label: "clocks".to_owned(),
        x_ticks: places.iter().copied().zip(labels.iter().cloned()).step_by(stride).collect(),
        series,
        style: Style::Lines,
        scale: Scale::Linear,
    };
    let (header, rows) = table.human();
    ReportPage {
        title: format!("conset sweep {}", args.input.name()),
        charts: vec![chart.svg()],
        note: match lines.len() > COLOURS.len() {
            true => format!("The chart has the first {} of {} lines.", COLOURS.len(), lines.len()),
            false => String::new(),
        },
        header,
        rows,
    }
}

/// The places of labels along an axis, from 0 to 1: on a scale, linear or logarithmic, if all are
/// numbers, and otherwise evenly spaced.
fn places(labels: &[String]) -> Vec<f64> {
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| label.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
    let numbers = numbers.unwrap_or_else(|| (0..to_u64(labels.len())).map(to_f64).collect());
    let ends = |numbers: &[f64]| {
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        (least, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (least, most) = ends(&numbers);
    let numbers = match least > 0.0 && most / least > LINEAR_MAX {
        true => numbers.iter().map(|number| number.ln()).collect(),
        false => numbers,
    };
    let (least, most) = ends(&numbers);
    numbers.iter().map(|number| (number - least) / (most - least).max(f64::MIN_POSITIVE)).collect()
}

/// The table of a sweep.
fn table(vary: &[Variable], report: &SweepReport) -> TableRows {
    let rows = &report.combinations;
    let has = |of: fn(&Clocks) -> bool| rows.iter().any(|row| row.clocks.as_ref().is_some_and(of));
    let (phases, steps) = (has(|c| c.phases.is_some()), has(|c| c.steps.is_some()));
    let (measured, failed) =
        (has(|c| c.measured_clocks.is_some()), rows.iter().any(|row| row.error.is_some()));
    let mut columns = vec![];
    columns.extend(phases.then_some(["phases", "bound_phases"]).into_iter().flatten());
    columns.extend(steps.then_some("steps"));
    columns.push("predicted_clocks");
    columns.extend(measured.then_some("measured_clocks"));
    columns.extend(["bound_clocks", "clocks_over_bound", "seconds"]);
    columns.extend(failed.then_some("error"));
    let names = vary.iter().map(|variable| Cow::from(variable.name.clone()));
    let columns = names.chain(columns.into_iter().map(Cow::from)).collect();
    let mut table = TableRows::named(columns, 0);
    for row in rows {
        let clocks = row.clocks.as_ref();
        let number = |of: fn(&Clocks) -> Option<u64>| Field::from(clocks.and_then(of));
        let mut fields: Vec<Field> =
            row.settings.iter().map(|setting| setting.value.as_str().into()).collect();
        if phases {
            fields.extend([number(|c| c.phases), number(|c| c.bound_phases)]);
        }
        if steps {
            fields.push(number(|c| c.steps));
        }
        fields.push(number(|c| Some(c.predicted_clocks)));
        if measured {
            fields.push(number(|c| c.measured_clocks));
        }
        fields.push(number(|c| Some(c.bound_clocks)));
        fields.push(clocks.map_or(Field::Absent("-"), |c| Field::Real(c.clocks_over_bound, 3)));
        fields.push(Field::Real(row.seconds, 2));
        if failed {
            fields.push(row.error.as_deref().into());
        }
        table.rows.push(fields);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_placed_on_a_scale_and_names_evenly() {
        let places =
            |labels: &[&str]| places(&labels.iter().map(|&l| l.into()).collect::<Vec<_>>());
        assert_eq!(places(&["0", "10", "40"]), [0.0, 0.25, 1.0]);
        assert_eq!(places(&["ring:3", "torus:4x4", "5"]), [0.0, 0.5, 1.0]);
        let doubled = places(&["8", "64", "512"]);
        assert!((doubled[1] - 0.5).abs() < 1e-9, "{doubled:?}");
        assert_eq!(places(&["7"]), [0.0]);
        assert!(places(&[]).is_empty());
    }
}
