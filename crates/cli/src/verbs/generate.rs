//! `conset generate`: meshes from their recipes.

use std::path::Path;

use conset_mesh::{generate, write_msh};
use serde::Serialize;

use crate::args::{GenerateArgs, Msh};
use crate::failure::Failure;
use crate::files::Target;
use crate::text::{self, Terminal};
use crate::verbs::patterns::parameters;

#[derive(Serialize)]
struct Row {
    name: &'static str,
    parameters: String,
    what: &'static str,
}

#[derive(Serialize)]
struct Made {
    mesh: String,
    seed: u64,
    nodes: usize,
    elements: usize,
    output: String,
}

pub(crate) fn run(args: &GenerateArgs, terminal: &Terminal) -> Result<(), Failure> {
    let Some(spec) = &args.mesh else {
        let rows: Vec<Row> = generate::LIST
            .iter()
            .map(|g| Row { name: g.name, parameters: parameters(g.parameters), what: g.summary })
            .collect();
        return terminal.print(&rows, |out| {
            let mut table = text::table(&["mesh", "parameters", "what it is"], 3);
            for row in &rows {
                table.add_row([row.name, &row.parameters, row.what]);
            }
            text::write_table(out, &table)
        });
    };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    Target::new(path).check(&[])?;
    let mesh = generate::by_name(spec, args.seed)?;
    let form = match args.msh {
        Msh::V41 => write_msh::MshFormat::V41Text,
        Msh::V41Binary => write_msh::MshFormat::V41Binary,
        Msh::V22 => write_msh::MshFormat::V22Text,
        Msh::V22Binary => write_msh::MshFormat::V22Binary,
    };
    let bytes = write_msh::write(&mesh, form).map_err(|e| e.in_file(spec))?;
    Target::new(path).write(|out| out.write_all(&bytes))?;
    if path == Path::new("-") {
        return Ok(());
    }
    let made = Made {
        mesh: spec.clone(),
        seed: args.seed,
        nodes: mesh.node_count(),
        elements: mesh.element_count(),
        output: path.display().to_string(),
    };
    terminal.print(&made, |out| {
        writeln!(
            out,
            "wrote {}: {}, {}",
            made.output,
            text::count(made.nodes as u64, "node"),
            text::count(made.elements as u64, "element")
        )
    })
}
