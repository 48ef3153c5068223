//! The values that `--json` prints: one object for each call, in success and in failure.
//!
//! Each begins with `format`, which is `conset-` and the name of the subcommand or `conset-error`, and
//! `version`. `docs/json.md` describes the members, and `docs/json.schema.json` is the schema, which
//! `tests/all/json.rs` holds against the output of every subcommand. A member that is removed, renamed or
//! given another meaning needs a new version; a new one does not.

use std::io::{self, Write};

use conset::report::ViolationReport;
use conset::verify::Rejection;
use conset_ir::{At, Infeasible, InputError};
use serde::Serialize;

use crate::error::{CliError, spelled};

/// The version of all formats.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    format: &'a str,
    version: u32,
    #[serde(flatten)]
    refusal: Option<Refusal>,
    #[serde(flatten)]
    content: &'a T,
}

/// Writes a value, which must serialize as a map, and a line feed. `refused` is why the checker refused
/// what the value is about, if it did.
pub(crate) fn write(
    out: &mut dyn Write,
    format: &str,
    refused: Option<&Rejection>,
    content: &impl Serialize,
) -> io::Result<()> {
    let refusal = refused.map(|rejection| Refusal {
        verified: false,
        violations: ViolationReport::of(rejection),
        total_violations: rejection.total(),
    });
    let envelope = Envelope { format, version: VERSION, refusal, content };
    serde_json::to_writer_pretty(&mut *out, &envelope)?;
    writeln!(out)
}

/// What the checker refused, in the object of a view that shows it nevertheless.
#[derive(Serialize)]
struct Refusal {
    verified: bool,
    violations: Vec<ViolationReport>,
    total_violations: u64,
}

/// Why a subcommand failed.
#[derive(Serialize)]
struct Failure {
    kind: &'static str,
    exit_code: u8,
    message: String,
    #[serde(flatten)]
    details: Details,
}

/// What is known besides the message.
#[derive(Serialize)]
#[serde(untagged)]
enum Details {
    None {},
    Input(InputDetails),
    Infeasible(InfeasibleDetails),
    Rejected {
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        violations: Vec<ViolationReport>,
        total_violations: u64,
    },
}

#[derive(Serialize)]
struct InputDetails {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl InputDetails {
    fn new(error: &InputError) -> Self {
        let (mut line, mut column, mut offset, mut path) = (None, None, None, None);
        match &error.at {
            At::Text { line: l, column: c, offset: o } => {
                (line, column, offset) = (Some(*l), Some(*c), Some(*o));
            }
            At::Byte(o) => offset = Some(*o),
            At::Path(p) => path = Some(p.clone()),
            _ => {}
        }
        Self { file: error.file.clone(), line, column, offset, path, help: error.help.clone() }
    }
}

#[derive(Serialize)]
struct InfeasibleDetails {
    set: String,
    /// The cells with too many routes: the witness.
    overfull: Vec<OverfullReport>,
    connections: Vec<u32>,
    fixes: Vec<String>,
}

#[derive(Serialize)]
struct OverfullReport {
    cell: u32,
    needed: u64,
    available: u64,
    phases: u32,
    channels_per_cell: u32,
    connections: Vec<u32>,
}

impl InfeasibleDetails {
    fn new(error: &Infeasible) -> Self {
        let overfull = error.overfull.iter().map(|over| OverfullReport {
            cell: over.cell.0,
            needed: over.needed,
            available: over.available(),
            phases: over.phases,
            channels_per_cell: over.channels_per_cell,
            connections: over.connections.iter().map(|id| id.0).collect(),
        });
        Self {
            set: error.set.clone(),
            overfull: overfull.collect(),
            connections: error.connections.iter().map(|id| id.0).collect(),
            fixes: error.fixes.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Writes the object of a failure.
pub(crate) fn write_failure(out: &mut dyn Write, error: &CliError) -> io::Result<()> {
    let (kind, message, details) = match error {
        CliError::Input { error, .. } => {
            let error = spelled(error);
            let details = Details::Input(InputDetails::new(&error));
            ("input", error.message, details)
        }
        CliError::Infeasible(error) => {
            let details = Details::Infeasible(InfeasibleDetails::new(error));
            ("infeasible", error.reason.clone(), details)
        }
        CliError::Violations { file, rejection } => {
            let violations = ViolationReport::of(rejection);
            let total_violations = rejection.total();
            let message = "the checker refused the file".to_owned();
            (
                "rejected",
                message,
                Details::Rejected { file: file.clone(), violations, total_violations },
            )
        }
        CliError::Rejected(message) => ("rejected", message.clone(), Details::None {}),
        CliError::Bug(message) => ("bug", message.clone(), Details::None {}),
    };
    let failure = Failure { kind, exit_code: error.exit_code(), message, details };
    write(out, "conset-error", None, &failure)
}

/// Writes the object of wrong arguments.
pub(crate) fn write_usage(out: &mut dyn Write, error: &clap::Error) -> io::Result<()> {
    let message = error.to_string();
    let message = message.trim().trim_start_matches("error: ").to_owned();
    let failure = Failure { kind: "usage", exit_code: 2, message, details: Details::None {} };
    write(out, "conset-error", None, &failure)
}
