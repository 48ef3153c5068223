//! `conset machines`: the presets, and one machine in full.

use conset_ir::{Machine, machine_file};
use serde::Serialize;

use crate::args::MachinesArgs;
use crate::failure::Failure;
use crate::files::Target;
use crate::load;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    what: &'static str,
}

pub(crate) fn run(args: &MachinesArgs, terminal: &Terminal) -> Result<(), Failure> {
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
        return terminal.print(&presets, |out| {
            let mut table = text::table(&["preset", "what it is"], 2);
            for preset in &presets {
                table.add_row([preset.name, preset.what]);
            }
            text::write_table(out, &table)?;
            writeln!(out, "\nA machine file starts from one: conset machines iwarp -o mine.toml")
        });
    };
    let machine = load::machine(spec, &args.set)?;
    if let Some(path) = &args.output {
        let text = machine_file::write(&machine);
        return Ok(Target::new(path).write(|out| out.write_all(text.as_bytes()))?);
    }
    let summary = conset::report::MachineSummary::new(&machine);
    #[derive(Serialize)]
    struct Full<'a> {
        #[serde(flatten)]
        summary: &'a conset::report::MachineSummary,
        parameters: std::collections::BTreeMap<&'static str, u32>,
        duplex: conset_ir::Duplex,
    }
    let parameters = machine.parameters();
    let full = Full {
        summary: &summary,
        parameters: parameters.numbers().iter().map(|&(name, value, ..)| (name, value)).collect(),
        duplex: parameters.duplex,
    };
    terminal.print(&full, |out| {
        writeln!(
            out,
            "{} ({}): {}, {}",
            summary.name,
            summary.topology,
            text::count(summary.cells as u64, "cell"),
            text::count(summary.links as u64, "link"),
        )?;
        let mut table = text::table(&["parameter", "value"], 1);
        for (name, value, ..) in parameters.numbers() {
            table.add_row([name.to_owned(), text::number(u64::from(value))]);
        }
        table.add_row(["duplex".to_owned(), format!("{:?}", parameters.duplex).to_lowercase()]);
        text::write_table(out, &table)
    })
}
