//! Faults of the hardware in `conset run`: the plan, the run on a machine with these faults, and its outcome.

use std::io::{self, Write};
use std::path::Path;

use conset::Compiled;
use conset::fabric::messages::{MessageOptions, run_set_with_faults, run_steps_with_faults};
use conset::fabric::{Detection, FaultPlan, FaultPlanError, FaultRun, Outcome, run_with_faults};
use conset::recovery::Recovery;
use conset::steps::CompiledSteps;
use conset_ir::{At, Image, InputError, Machine};
use serde::Serialize;

use crate::args::RunArgs;
use crate::commands::recovery::{self, Exchange, RecoveryReport};
use crate::error::CliError;
use crate::files;
use crate::text;

/// Words of a program of which every word is kept while it runs with faults.
const MOST_WORDS: u64 = 1 << 24;

/// What became of a program on a machine with faults.
#[derive(Serialize)]
pub(crate) struct FaultReport {
    checked: bool,
    plan: Vec<FaultRow>,
    outcome: String,
    /// What was noticed, and where.
    message: Option<String>,
    clock: u64,
    clocks_to_detection: Option<u64>,
    wrong: u64,
    /// What was done after each fault (`--recover`).
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryReport>,
}

/// A fault of the plan, and the clock at which it acted first.
#[derive(Serialize)]
struct FaultRow {
    fault: String,
    acted: Option<u64>,
}

impl FaultRow {
    fn all(plan: &FaultPlan, acted: &[Option<u64>]) -> Vec<Self> {
        let rows = plan.faults.iter().zip(acted);
        rows.map(|(fault, &acted)| Self { fault: fault.to_string(), acted }).collect()
    }
}

/// Executes a program with the faults that the arguments name; `None` if they name none.
pub(crate) fn run(args: &RunArgs, compiled: &Compiled) -> Result<Option<FaultReport>, CliError> {
    let image = compiled.image();
    execute(args, image, Exchange::Phases(compiled), |plan, detection| {
        run_with_faults(image.clone(), args.input.seed(), plan, detection)
    })
}

/// Executes the sets of a program by messages with the faults that the arguments name: in the first of the orders.
pub(crate) fn run_messages(
    args: &RunArgs,
    compiled: &Compiled,
) -> Result<Option<FaultReport>, CliError> {
    let (image, order) = (compiled.image(), args.message_order.orders()[0]);
    let options = MessageOptions::default().seed(args.input.seed()).with_order(order);
    if image.sets().is_empty() {
        return Ok(None);
    }
    execute(args, image, Exchange::Messages(compiled, options), |plan, detection| {
        one_after_the_other(image.sets().iter().map(|set| {
            move || run_set_with_faults(image.machine(), &set.set, &options, plan, detection)
        }))
    })
}

/// Executes step plans with the faults that the arguments name.
pub(crate) fn run_steps(
    args: &RunArgs,
    compiled: &CompiledSteps,
) -> Result<Option<FaultReport>, CliError> {
    let options = MessageOptions::default().seed(args.input.seed());
    let sets = compiled.schedule().sets();
    if sets.is_empty() {
        return Ok(None);
    }
    execute(args, compiled.image(), Exchange::Steps(compiled), |plan, detection| {
        one_after_the_other(
            sets.iter()
                .map(|set| move || run_steps_with_faults(&set.steps, &options, plan, detection)),
        )
    })
}

/// Each set begins at clock 0 with the same plan; the first one that is not delivered is the last.
fn one_after_the_other<R: FnOnce() -> Result<FaultRun, FaultPlanError>>(
    runs: impl Iterator<Item = R>,
) -> Result<FaultRun, FaultPlanError> {
    let mut last = None;
    for run in runs {
        let run = run()?;
        let goes_on = run.outcome == Outcome::Delivered;
        last = Some(run);
        if !goes_on {
            break;
        }
    }
    Ok(last.expect("programs without sets are not executed with faults"))
}

/// Executes something with the faults that the arguments name, by `run` or with recovery.
fn execute(
    args: &RunArgs,
    image: &Image,
    exchange: Exchange<'_>,
    run: impl Fn(&FaultPlan, Detection) -> Result<FaultRun, FaultPlanError>,
) -> Result<Option<FaultReport>, CliError> {
    let Some(detection) = detection(args, image)? else { return Ok(None) };
    let (name, plan) = plan(args, image.machine(), |plan| run(plan, detection))?;
    if args.recover {
        let seed = args.input.seed();
        let recovery = recovery::run(exchange, (&name, &plan), (seed, detection))?;
        let has_phases = matches!(exchange, Exchange::Phases(_));
        let report = RecoveryReport::new(&recovery, has_phases);
        return Ok(Some(FaultReport::with_recovery(args.checked, &plan, &recovery, report)));
    }
    let run = run(&plan, detection)
        .map_err(|error| InputError::new(name, At::Whole, error.to_string()))?;
    Ok(Some(FaultReport::new(args.checked, &plan, &run)))
}

/// How cells notice faults, if the arguments name faults and the program is small enough for them.
fn detection(args: &RunArgs, image: &Image) -> Result<Option<Detection>, CliError> {
    if args.faults.is_none() && args.faults_seed.is_none() {
        let options = [("--checked", args.checked), ("--recover", args.recover)];
        if let Some((option, _)) = options.into_iter().find(|option| option.1) {
            let error = InputError::new(option, At::Whole, format!("{option} is for faults"));
            return Err(error.help("add --faults PLAN or --faults-seed N").into());
        }
        return Ok(None);
    }
    let words: u64 = image.sets().iter().map(|set| set.set.words()).sum();
    if words > MOST_WORDS {
        let message = format!("expected a program of at most {MOST_WORDS} words, found {words}");
        return Err(InputError::new("--faults", At::Whole, message).help("use fewer words").into());
    }
    Ok(Some(if args.checked { Detection::Checked } else { Detection::Plain }))
}

/// The plan and where it comes from. One from a seed is drawn for what a run without faults does.
fn plan(
    args: &RunArgs,
    machine: &Machine,
    execute: impl Fn(&FaultPlan) -> Result<FaultRun, FaultPlanError>,
) -> Result<(String, FaultPlan), CliError> {
    if let Some(path) = &args.faults {
        return read_plan(path);
    }
    let name = "--faults-seed".to_owned();
    let run = execute(&FaultPlan::default())
        .map_err(|error| InputError::new(&*name, At::Whole, error.to_string()))?;
    let seed = args.faults_seed.unwrap_or(0);
    Ok((name, FaultPlan::draw(machine, &run.extent, seed, 1)))
}

fn read_plan(path: &Path) -> Result<(String, FaultPlan), CliError> {
    let (name, bytes) = files::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        InputError::new(&*name, At::Whole, "expected a plan of faults as UTF-8 text")
    })?;
    let plan = text.parse::<FaultPlan>().map_err(|error| match error {
        FaultPlanError::Line { line, expected, found } => {
            let before = text.split_inclusive('\n').take(line - 1);
            let at = At::Text { line, column: 1, offset: before.map(str::len).sum() };
            InputError::new(&*name, at, format!("expected {expected}, found {found}"))
        }
        other => InputError::new(&*name, At::Whole, other.to_string()),
    })?;
    Ok((name, plan))
}

impl FaultReport {
    fn new(checked: bool, plan: &FaultPlan, run: &FaultRun) -> Self {
        Self {
            checked,
            plan: FaultRow::all(plan, &run.acted),
            outcome: run.outcome.to_string(),
            message: run.fault.as_ref().map(ToString::to_string),
            clock: run.clock,
            clocks_to_detection: run.clocks_to_detection(),
            wrong: run.wrong,
            recovery: None,
        }
    }

    fn with_recovery(
        checked: bool,
        plan: &FaultPlan,
        recovery: &Recovery,
        report: RecoveryReport,
    ) -> Self {
        let fault = recovery.attempts.iter().find_map(|attempt| attempt.fault.as_ref());
        let first = recovery.acted.iter().flatten().min();
        let clocks = fault.zip(first).map(|(fault, first)| fault.clock.saturating_sub(*first));
        Self {
            checked,
            plan: FaultRow::all(plan, &recovery.acted),
            outcome: recovery.outcome.to_string(),
            message: Some(report.message()),
            clock: recovery.clock(),
            clocks_to_detection: clocks,
            wrong: recovery.wrong_words,
            recovery: Some(report),
        }
    }

    /// Writes the plan and the outcome.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.plan {
            match row.acted {
                Some(clock) => {
                    writeln!(
                        out,
                        "faults   {} (acted at clock {})",
                        row.fault,
                        text::number(clock)
                    )?;
                }
                None => writeln!(out, "faults   {} (did not act)", row.fault)?,
            }
        }
        if let Some(recovery) = &self.recovery {
            recovery.write(out)?;
        }
        write!(out, "outcome  {} at clock {}", self.outcome, text::number(self.clock))?;
        if let Some(clocks) = self.clocks_to_detection.filter(|_| self.recovery.is_none()) {
            write!(out, ", {} clocks after the fault", text::number(clocks))?;
        }
        match &self.message {
            Some(message) => writeln!(out, ": {message}"),
            None if self.wrong > 0 => writeln!(out, ": {}", text::count(self.wrong, "wrong word")),
            None => writeln!(out),
        }
    }

    /// An error unless every word was delivered.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.outcome == Outcome::Delivered.to_string() {
            return Ok(());
        }
        let message = self.message.as_deref().unwrap_or("wrong words that no cell noticed");
        Err(CliError::Rejected(format!("not delivered, {}: {message}", self.outcome)))
    }
}
