//! Recovery after faults in `conset run --faults PLAN --recover`: what was done after each fault, and the outcome.

use std::io::{self, Write};

use conset::fabric::messages::MessageOptions;
use conset::fabric::{Detection, FaultPlan};
use conset::recovery::{
    self, NamedConnection, Recovery, RecoveryError, RecoveryOptions, SyntheticWords,
};
use conset::steps::CompiledSteps;
use conset::{CompileError, CompileOptions, Compiled};
use conset_ir::convert::to_u64;
use conset_ir::{At, InputError};
use serde::Serialize;

use crate::error::CliError;
use crate::text;

/// What is executed with recovery.
#[derive(Clone, Copy)]
pub(crate) enum Exchange<'a> {
    Phases(&'a Compiled),
    /// The sets of the program by messages.
    Messages(&'a Compiled, MessageOptions),
    Steps(&'a CompiledSteps),
}

/// A run with recovery.
#[derive(Serialize)]
pub(crate) struct RecoveryReport {
    /// Whether words were exchanged in phases.
    #[serde(skip)]
    has_phases: bool,
    attempts: Vec<AttemptRow>,
    /// Words delivered, each once.
    words: u64,
    /// Connections of dead cells.
    lost: Vec<ConnectionRow>,
    /// Connections that were not delivered although their cells are alive.
    undelivered: Vec<ConnectionRow>,
    refusal: Option<String>,
}

#[derive(Serialize)]
struct AttemptRow {
    begin: u64,
    end: u64,
    phases: usize,
    words: u64,
    discarded: u64,
    fault: Option<String>,
    repair: Option<RepairRow>,
}

#[derive(Serialize)]
struct RepairRow {
    removed: Vec<String>,
    repeated: Vec<ConnectionRow>,
    kept: usize,
    moved: usize,
    rerouted: usize,
    recompiled: usize,
}

/// A connection, and its words that were not delivered then.
#[derive(Serialize)]
struct ConnectionRow {
    set: String,
    connection: String,
    source: u32,
    target: u32,
    words: u64,
}

impl ConnectionRow {
    fn new(connection: &NamedConnection) -> Self {
        Self {
            set: connection.set.clone(),
            connection: connection.name.clone(),
            source: connection.source.0,
            target: connection.target.0,
            words: connection.words,
        }
    }

    fn all<'a>(connections: impl IntoIterator<Item = &'a NamedConnection>) -> Vec<Self> {
        connections.into_iter().map(Self::new).collect()
    }
}

/// Executes a program with the faults of a plan, which has this name, and recovery.
pub(crate) fn run(
    exchange: Exchange<'_>,
    (name, plan): (&str, &FaultPlan),
    (seed, detection): (u64, Detection),
) -> Result<Recovery, CliError> {
    let compile = CompileOptions::new().seed(seed);
    let options = RecoveryOptions::default().detection(detection).compile(compile);
    let mut words = SyntheticWords::new(seed);
    let done = match exchange {
        Exchange::Phases(compiled) => recovery::run(compiled, plan, &mut words, &options),
        Exchange::Messages(compiled, messages) => {
            let (machine, program) = (compiled.image().machine(), compiled.schedule().program());
            recovery::run_messages(machine, &program, messages, plan, &mut words, &options)
        }
        Exchange::Steps(compiled) => recovery::run_steps(compiled, plan, &mut words, &options),
    };
    done.map(|recovery| words.judge(recovery)).map_err(|error| match error {
        RecoveryError::Plan(error) => InputError::new(name, At::Whole, error.to_string()).into(),
        RecoveryError::Compile(CompileError::Input(error)) => error.into(),
        other => CliError::Bug(other.to_string()),
    })
}

impl RecoveryReport {
    pub(crate) fn new(recovery: &Recovery, has_phases: bool) -> Self {
        let attempts = recovery.attempts.iter().map(|attempt| AttemptRow {
            begin: attempt.begin,
            end: attempt.end,
            phases: attempt.phases,
            words: attempt.words,
            discarded: attempt.discarded,
            fault: attempt.fault.as_ref().map(ToString::to_string),
            repair: attempt.repair.as_ref().map(|repair| RepairRow {
                removed: repair.removed.iter().map(ToString::to_string).collect(),
                repeated: ConnectionRow::all(&repair.repeated),
                kept: repair.kept,
                moved: repair.moved,
                rerouted: repair.rerouted,
                recompiled: repair.recompiled,
            }),
        });
        Self {
            has_phases,
            attempts: attempts.collect(),
            words: recovery.words(),
            lost: ConnectionRow::all(recovery.lost()),
            undelivered: ConnectionRow::all(&recovery.undelivered),
            refusal: recovery.refusal.clone(),
        }
    }

    /// Writes the attempts and what was not delivered.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for attempt in &self.attempts {
            let clocks = [attempt.begin, attempt.end].map(text::number);
            write!(out, "attempt  clocks {} to {}: ", clocks[0], clocks[1])?;
            if self.has_phases {
                write!(out, "{}, ", text::count(to_u64(attempt.phases), "complete phase"))?;
            }
            write!(
                out,
                "{} delivered, {} discarded",
                text::count(attempt.words, "word"),
                text::number(attempt.discarded),
            )?;
            match &attempt.fault {
                Some(fault) => writeln!(out, "; {fault}")?,
                None => writeln!(out)?,
            }
            if let Some(repair) = &attempt.repair {
                repair.write(out, self.has_phases)?;
            }
        }
        write_connections(out, "lost", &self.lost)?;
        write_connections(out, "left", &self.undelivered)
    }

    /// What was delivered, for the line of the outcome; or why the rest was refused.
    pub(crate) fn message(&self) -> String {
        match &self.refusal {
            Some(refusal) => format!("what is left does not fit the machine: {refusal}"),
            None => {
                let lost = text::count(to_u64(self.lost.len()), "connection");
                let words = text::count(self.words, "word");
                format!("{words} delivered, each once; {lost} of dead cells lost")
            }
        }
    }
}

impl RepairRow {
    fn write(&self, out: &mut dyn Write, has_phases: bool) -> io::Result<()> {
        let removed = match &self.removed[..] {
            [] => "the same machine".to_owned(),
            parts => format!("without {}", parts.join(", ")),
        };
        write!(out, "repair   {removed}: ")?;
        if has_phases {
            write!(out, "{} kept, {} moved, ", self.kept, self.moved)?;
        }
        let again = to_u64(self.rerouted + self.recompiled);
        match has_phases {
            true => write!(out, "{} routed again", text::number(again))?,
            false => write!(out, "{} left", text::count(again, "connection"))?,
        }
        if !self.repeated.is_empty() {
            write!(out, "; sent again: {}", names(&self.repeated))?;
        }
        writeln!(out)
    }
}

fn write_connections(out: &mut dyn Write, what: &str, all: &[ConnectionRow]) -> io::Result<()> {
    if all.is_empty() { Ok(()) } else { writeln!(out, "{what:8} {}", names(all)) }
}

/// The first connections of a list.
fn names(all: &[ConnectionRow]) -> String {
    const SHOWN: usize = 8;
    let name = |row: &ConnectionRow| {
        format!("{}/{} (c{} -> c{})", row.set, row.connection, row.source, row.target)
    };
    let mut names: Vec<String> = all.iter().take(SHOWN).map(name).collect();
    if all.len() > SHOWN {
        names.push(format!("{} more", all.len() - SHOWN));
    }
    names.join(", ")
}
