//! `conset generate`: generating meshes.

use std::path::Path;

use conset_ir::convert::to_u64;
use conset_mesh::{generate, write_msh};
use serde::Serialize;

use crate::args::{GenerateArgs, Msh};
use crate::commands::patterns::{ListEntry, print_list};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct WrittenMesh {
    mesh: String,
    seed: u64,
    nodes: usize,
    elements: usize,
    output: String,
}

pub(crate) fn run(args: &GenerateArgs, terminal: &Terminal) -> Result<(), CliError> {
    let Some(spec) = &args.mesh else {
        if let Some(path) = &args.output {
            let message =
                "which mesh should be written? name one: conset generate plate -o plate.msh";
            return Err(load::wrong_kind(&path.display().to_string(), message).into());
        }
        let entries = generate::LIST.iter();
        let entries = entries.map(|g| ListEntry::new(g.name, g.parameters, g.summary));
        return print_list(terminal, "mesh", &entries.collect::<Vec<_>>(), "");
    };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    if path.extension().is_some_and(|extension| !extension.eq_ignore_ascii_case("msh")) {
        let message = "the mesh is written as Gmsh file, whose name ends in .msh";
        return Err(load::wrong_kind(&path.display().to_string(), message)
            .help("other programs convert it: `meshio convert`, `gmsh -save`")
            .into());
    }
    OutputTarget::new(path).check(&[])?;
    let mesh = generate::by_name(spec, args.seed)?;
    let form = match args.msh {
        Msh::V41 => write_msh::MshFormat::V41Text,
        Msh::V41Binary => write_msh::MshFormat::V41Binary,
        Msh::V22 => write_msh::MshFormat::V22Text,
        Msh::V22Binary => write_msh::MshFormat::V22Binary,
    };
    let bytes = write_msh::write(&mesh, form).map_err(|e| e.in_file(spec))?;
    OutputTarget::new(path).write(|out| out.write_all(&bytes))?;
    if args.output.is_none() {
        return Ok(());
    }
    let made = WrittenMesh {
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
            text::count(to_u64(made.nodes), "node"),
            text::count(to_u64(made.elements), "element")
        )
    })
}
