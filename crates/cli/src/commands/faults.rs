//! Faults of the hardware in `conset run`: the plan, the run on a machine with these faults, and its outcome.

use std::io::{self, Write};
use std::path::Path;

use conset::Compiled;
use conset::fabric::{
    Detection, FaultExtent, FaultPlan, FaultPlanError, FaultRun, Outcome, run_with_faults,
};
use conset::recovery::Recovery;
use conset_ir::convert::to_u64;
use conset_ir::{At, InputError};
use serde::Serialize;

use crate::args::RunArgs;
use crate::commands::recovery::{self, RecoveryReport};
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
    if args.faults.is_none() && args.faults_seed.is_none() {
        let options = [("--checked", args.checked), ("--recover", args.recover)];
        if let Some((option, _)) = options.into_iter().find(|option| option.1) {
            let error = InputError::new(option, At::Whole, format!("{option} is for faults"));
            return Err(error.help("add --faults PLAN or --faults-seed N").into());
        }
        return Ok(None);
    }
    let words: u64 = compiled.image().sets().iter().map(|set| set.set.words()).sum();
    if words > MOST_WORDS {
        let message = format!("expected a program of at most {MOST_WORDS} words, found {words}");
        return Err(InputError::new("--faults", At::Whole, message).help("use fewer words").into());
    }
    let detection = if args.checked { Detection::Checked } else { Detection::Plain };
    let (name, plan) = plan(args, compiled, detection)?;
    if args.recover {
        let seed = args.input.seed();
        let recovery = recovery::run(compiled, (&name, &plan), (seed, detection))?;
        return Ok(Some(FaultReport::with_recovery(args.checked, &plan, &recovery)));
    }
    let run = execute(compiled, args.input.seed(), &plan, detection)
        .map_err(|error| InputError::new(name, At::Whole, error.to_string()))?;
    Ok(Some(FaultReport {
        checked: args.checked,
        plan: FaultRow::all(&plan, &run.acted),
        outcome: run.outcome.to_string(),
        message: run.fault.as_ref().map(ToString::to_string),
        clock: run.clock,
        clocks_to_detection: run.clocks_to_detection(),
        wrong: run.wrong,
        recovery: None,
    }))
}

fn execute(
    compiled: &Compiled,
    seed: u64,
    plan: &FaultPlan,
    detection: Detection,
) -> Result<FaultRun, FaultPlanError> {
    run_with_faults(compiled.image().clone(), seed, plan, detection)
}

/// The plan and where it comes from.
fn plan(
    args: &RunArgs,
    compiled: &Compiled,
    detection: Detection,
) -> Result<(String, FaultPlan), CliError> {
    if let Some(path) = &args.faults {
        return read_plan(path);
    }
    let empty = execute(compiled, args.input.seed(), &FaultPlan::default(), detection);
    let name = "--faults-seed".to_owned();
    let run = empty.map_err(|error| InputError::new(&*name, At::Whole, error.to_string()))?;
    let phases = || run.reports.iter().flat_map(|report| &report.phases);
    let words = phases().filter_map(|phase| phase.busiest_link).map(|link| link.1);
    let extent = FaultExtent {
        clocks: run.clock,
        words: words.max().unwrap_or(1),
        switches: to_u64(phases().count()),
    };
    let seed = args.faults_seed.unwrap_or(0);
    Ok((name, FaultPlan::draw(compiled.image().machine(), &extent, seed, 1)))
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
    fn with_recovery(checked: bool, plan: &FaultPlan, recovery: &Recovery) -> Self {
        let report = RecoveryReport::new(recovery);
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
