//! `conset emit`: writing source code, listings and image texts from a schedule.

use std::path::{Path, PathBuf};

use conset::codegen::{c, rust};
use conset_ir::document::Document;
use conset_ir::{At, InputError};
use serde::Serialize;

use crate::args::{EmitArgs, EmitFormat};
use crate::error::CliError;
use crate::files::{self, OutputTarget};
use crate::load;
use crate::text::Terminal;

/// Default prefix of C names.
const C_NAME: &str = "conset_program";

#[derive(Serialize)]
struct Emitted {
    files: Vec<String>,
}

pub(crate) fn run(args: &EmitArgs, terminal: &Terminal) -> Result<(), CliError> {
    refuse_options(args)?;
    let compiled = load::compiled_file(&args.file, terminal)?;
    let image = compiled.image();
    let sources: Vec<(String, String)> = match args.format {
        EmitFormat::Rust => rust::emit_with(image, &options(args)?)
            .map_err(|e| CliError::Rejected(e.to_string()))?,
        EmitFormat::C => {
            let name = args.name.as_deref().unwrap_or(C_NAME);
            c::emit(image, name).map_err(|e| match e {
                c::EmitError::Name { .. } => {
                    InputError::new("--name", At::Whole, e.to_string()).into()
                }
                c::EmitError::TooLarge { .. } => CliError::Rejected(e.to_string()),
            })?
        }
        EmitFormat::Listing => {
            vec![("listing.txt".to_owned(), conset::codegen::listing::listing(image))]
        }
        EmitFormat::Text => {
            vec![(
                "image.cset".to_owned(),
                conset_ir::text::write(&Document::Image((**image).clone())),
            )]
        }
    };
    let mut emitted = Emitted { files: Vec::new() };
    for (name, source) in &sources {
        let path: PathBuf = args.output.join(name);
        files::make_folder(path.parent().unwrap_or(Path::new(".")))?;
        OutputTarget::File(path.clone()).write(|out| out.write_all(source.as_bytes()))?;
        emitted.files.push(path.display().to_string());
    }
    terminal.print(&emitted, |out| {
        for file in &emitted.files {
            writeln!(out, "wrote {file}")?;
        }
        Ok(())
    })
}

/// Refuses options of other formats.
fn refuse_options(args: &EmitArgs) -> Result<(), InputError> {
    let of_c = args.name.is_some() && !matches!(args.format, EmitFormat::C);
    let of_rust = args.runtime.is_some() && !matches!(args.format, EmitFormat::Rust);
    let wrong = |option: &str, lang: &str| {
        let message = format!("only --format {lang} has this option");
        Err(InputError::new(option, At::Whole, message).help(format!("leave out {option}")))
    };
    match (of_c, of_rust) {
        (true, _) => wrong("--name", "c"),
        (_, true) => wrong("--runtime", "rust"),
        _ => Ok(()),
    }
}

/// The options of the emitted crate.
fn options(args: &EmitArgs) -> Result<rust::Options, InputError> {
    let mut options = rust::Options::default();
    if let Some(path) = &args.runtime {
        // The emitted crate is in another folder, so the path must be absolute.
        let path = files::whole_path(path)?;
        options.runtime = rust::Runtime::Path(path.display().to_string());
    }
    Ok(options)
}
