//! `conset patterns`: listing the patterns, or writing one as a connection set.

use std::path::Path;

use conset_ir::convert::to_u64;
use conset_ir::document::Document;
use conset_mesh::patterns::{self, Parameter};
use serde::Serialize;

use crate::args::PatternsArgs;
use crate::commands::compile::OutputFormat;
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load;
use crate::rows::{self, TableRows};
use crate::text::{self, Terminal};

/// A row of the lists of patterns and of meshes.
#[derive(Serialize)]
pub(crate) struct ListEntry {
    name: &'static str,
    /// The parameters with their defaults: `k=1, seed=1`.
    parameters: String,
    what: &'static str,
}

impl ListEntry {
    pub(crate) fn new(name: &'static str, parameters: &[Parameter], what: &'static str) -> Self {
        let parameters: Vec<String> =
            parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        Self { name, parameters: parameters.join(", "), what }
    }
}

/// A list as JSON.
#[derive(Serialize)]
pub(crate) struct List<'a, T> {
    pub(crate) entries: &'a [T],
}

/// Prints a list of patterns or meshes, and a last line if it is not empty.
pub(crate) fn print_list(
    terminal: &Terminal,
    kind: &str,
    entries: &[ListEntry],
    last: &str,
) -> Result<(), CliError> {
    let rows = || {
        let mut rows = TableRows::new(&["name", "parameters", "what"], 3);
        for entry in entries {
            rows.rows.push(vec![
                entry.name.into(),
                entry.parameters.as_str().into(),
                entry.what.into(),
            ]);
        }
        rows
    };
    rows::print(terminal, &List { entries }, rows, |out| {
        let mut table = text::table(&[kind, "parameters", "what it is"], 3);
        for entry in entries {
            table.add_row([entry.name, &entry.parameters, entry.what]);
        }
        text::write_table(out, &table)?;
        if last.is_empty() { Ok(()) } else { writeln!(out, "\n{last}") }
    })
}

#[derive(Serialize)]
struct WrittenPattern {
    pattern: String,
    connections: u64,
    words: u64,
    output: String,
}

pub(crate) fn run(args: &PatternsArgs, terminal: &Terminal) -> Result<(), CliError> {
    let Some(pattern) = &args.pattern else {
        if let Some(path) = &args.output {
            let message =
                "which pattern should be written? name one: conset patterns torus -o torus.cset";
            return Err(load::wrong_kind(&path.display().to_string(), message).into());
        }
        let entries = patterns::LIST.iter();
        let entries = entries.map(|p| ListEntry::new(p.name, p.parameters, p.summary));
        let last = "An input is written pattern:NAME, pattern:NAME:PARAMETERS";
        return print_list(terminal, "pattern", &entries.collect::<Vec<_>>(), last);
    };
    let machine = load::machine_of(&args.machine)?;
    let pattern = pattern.strip_prefix(conset::input::PATTERN).unwrap_or(pattern);
    let set = patterns::generate(pattern, &machine, args.words)?;
    let count = (to_u64(set.len()), set.words());
    let document = Document::Program { machine: Some(machine), program: set.into() };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let to_terminal = path == Path::new("-");
    let format = match OutputFormat::of(path)? {
        OutputFormat::Json if to_terminal && !terminal.json => OutputFormat::Text,
        OutputFormat::Image => {
            return Err(load::wrong_kind(
                &path.display().to_string(),
                "a pattern is a connection set, and .csi is for images",
            )
            .help("end it in .cset (text), .json or .csb (binary)")
            .into());
        }
        format => format,
    };
    format.write_document(&OutputTarget::new(path), &document)?;
    if args.output.is_none() {
        return Ok(());
    }
    let (connections, words) = count;
    let made = WrittenPattern {
        pattern: pattern.to_owned(),
        connections,
        words,
        output: path.display().to_string(),
    };
    terminal.print(&made, |out| {
        writeln!(
            out,
            "wrote {}: {}, {}",
            made.output,
            text::count(connections, "connection"),
            text::count(words, "word")
        )
    })
}
