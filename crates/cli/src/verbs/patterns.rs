//! `conset patterns`: the list, or one pattern as a connection set.

use std::path::Path;

use conset_ir::document::Document;
use conset_mesh::patterns::{self, Parameter};
use serde::Serialize;

use crate::args::PatternsArgs;
use crate::failure::Failure;
use crate::files::Target;
use crate::load;
use crate::text::{self, Terminal};
use crate::verbs::compile::Form;

#[derive(Serialize)]
struct Row {
    name: &'static str,
    parameters: String,
    what: &'static str,
}

#[derive(Serialize)]
struct Made {
    pattern: String,
    connections: u64,
    words: u64,
    output: String,
}

/// Parameters with their defaults, as a list's column: `k=1, seed=1`.
pub(crate) fn parameters(parameters: &[Parameter]) -> String {
    let words: Vec<String> =
        parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
    words.join(", ")
}

pub(crate) fn run(args: &PatternsArgs, terminal: &Terminal) -> Result<(), Failure> {
    let Some(pattern) = &args.pattern else {
        let rows: Vec<Row> = patterns::LIST
            .iter()
            .map(|p| Row { name: p.name, parameters: parameters(p.parameters), what: p.summary })
            .collect();
        return terminal.print(&rows, |out| {
            let mut table = text::table(&["pattern", "parameters", "what it is"], 3);
            for row in &rows {
                table.add_row([row.name, &row.parameters, row.what]);
            }
            text::write_table(out, &table)?;
            writeln!(out, "\nAn input is written pattern:NAME, pattern:NAME:PARAMETERS")
        });
    };
    let machine = load::machine_of(&args.machine)?;
    let pattern = pattern.strip_prefix(conset::input::PATTERN).unwrap_or(pattern);
    let set = patterns::generate(pattern, &machine, args.words)?;
    let count = (set.len() as u64, set.words());
    let document = Document::Program { machine: Some(machine), program: set.into() };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let to_terminal = path == Path::new("-");
    let form = match Form::of(path)? {
        Form::Json if to_terminal && !terminal.json => Form::Text,
        Form::Image => {
            return Err(load::wrong_kind(
                &path.display().to_string(),
                "a pattern is a connection set, and .csi is for images",
            )
            .help("end it in .cset (text), .json or .csb (binary)")
            .into());
        }
        form => form,
    };
    form.write_document(&Target::new(path), &document)?;
    if to_terminal {
        return Ok(());
    }
    let (connections, words) = count;
    let made = Made {
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
