//! Writes a generated mesh: `cargo run -p conset-mesh --example generate -- cracked:1000 1 out.msh`.
//!
//! The arguments are a specification (see `conset_mesh::generate::LIST`), a seed and a file. The
//! same meshes come from `conset generate SPEC --seed SEED -o FILE`.

use std::process::ExitCode;

use conset_mesh::{generate, write_msh};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            use std::io::Write;
            // A closed terminal leaves nobody to tell.
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [spec, seed, file] = arguments else {
        return Err("usage: generate SPEC SEED FILE".to_owned());
    };
    let seed = seed.parse().map_err(|_| format!("`{seed}` is not a seed"))?;
    let mesh = generate::by_name(spec, seed).map_err(|e| e.to_string())?;
    let form = write_msh::MshFormat::V41Text;
    let bytes = write_msh::write(&mesh, form).map_err(|e| e.to_string())?;
    std::fs::write(file, bytes).map_err(|e| format!("{file}: {e}"))
}
