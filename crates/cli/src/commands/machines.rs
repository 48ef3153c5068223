//! `conset machines`: listing the presets, or describing or writing one machine.

use std::path::Path;

use conset_ir::convert::to_u64;
use conset_ir::{Machine, Protocol, machine_file};
use serde::Serialize;

use crate::args::MachinesArgs;
use crate::commands::patterns::List;
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load;
use crate::rows::{self, TableRows};
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    what: &'static str,
}

#[derive(Serialize)]
struct WrittenMachine {
    machine: String,
    output: String,
}

/// Refuses a file that `--machine` would not take for one.
pub(super) fn check_name(path: &Path) -> Result<(), CliError> {
    if path == Path::new("-") || path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(());
    }
    let message = "the name of a machine file ends in .toml";
    let error = load::wrong_kind(&path.display().to_string(), message);
    Err(error.help("--machine distinguishes files from presets by this extension").into())
}

/// Writes the text of a machine file, and says so.
pub(super) fn write(
    machine: &Machine,
    text: &str,
    path: &Path,
    terminal: &Terminal,
) -> Result<(), CliError> {
    OutputTarget::new(path).write(|out| out.write_all(text.as_bytes()))?;
    let output = path.display().to_string();
    let made = WrittenMachine { machine: machine.name().to_owned(), output };
    terminal.print(&made, |out| writeln!(out, "wrote {}", made.output))
}

pub(crate) fn run(args: &MachinesArgs, terminal: &Terminal) -> Result<(), CliError> {
    let Some(spec) = &args.spec else {
        if let Some(path) = &args.output {
            return Err(load::wrong_kind(
                &path.display().to_string(),
                "which machine should be written? name one: conset machines iwarp -o iwarp.toml",
            )
            .into());
        }
        let presets: Vec<Preset> =
            Machine::PRESETS.iter().map(|&(name, what)| Preset { name, what }).collect();
        let rows = || {
            let mut rows = TableRows::new(&["name", "what"], 2);
            rows.rows.extend(presets.iter().map(|p| vec![p.name.into(), p.what.into()]));
            rows
        };
        return rows::print(terminal, &List { entries: &presets }, rows, |out| {
            let mut table = text::table(&["preset", "what it is"], 2);
            for preset in &presets {
                table.add_row([preset.name, preset.what]);
            }
            text::write_table(out, &table)?;
            writeln!(out, "\nA machine file starts from one: conset machines iwarp -o mine.toml")
        });
    };
    let machine = load::machine(spec, &args.params)?;
    if let Some(path) = &args.output {
        OutputTarget::new(path).check(&[Path::new(spec)])?;
        check_name(path)?;
        return write(&machine, &machine_file::write(&machine), path, terminal);
    }
    let summary = conset::report::MachineSummary::new(&machine);
    #[derive(Serialize)]
    struct Full<'a> {
        #[serde(flatten)]
        summary: &'a conset::report::MachineSummary,
        parameters: std::collections::BTreeMap<&'static str, u32>,
        duplex: conset_ir::Duplex,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<Protocol>,
    }
    let parameters = machine.parameters();
    let full = Full {
        summary: &summary,
        parameters: parameters.stated_numbers().map(|(name, value, ..)| (name, value)).collect(),
        duplex: parameters.duplex,
        protocol: Some(parameters.protocol).filter(|&p| p != Protocol::default()),
    };
    let mut rows = TableRows::new(&["parameter", "value"], 1);
    let numbers = parameters.stated_numbers();
    rows.rows.extend(numbers.map(|(name, value, ..)| vec![name.into(), value.into()]));
    let duplex = format!("{:?}", parameters.duplex).to_lowercase();
    rows.rows.push(vec!["duplex".into(), duplex.into()]);
    rows.rows.extend(full.protocol.map(|p| vec!["protocol".into(), p.name().into()]));
    rows::print(
        terminal,
        &full,
        || rows.clone(),
        |out| {
            writeln!(
                out,
                "{} ({}): {}, {}",
                summary.name,
                summary.topology,
                text::count(to_u64(summary.cells), "cell"),
                text::count(to_u64(summary.links), "link"),
            )?;
            rows.write_human(out)
        },
    )
}
