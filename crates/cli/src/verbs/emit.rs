//! `conset emit`: source code, listings and image texts from a schedule.

use std::path::{Path, PathBuf};

use conset::codegen::{c, rust};
use conset_ir::document::Document;
use serde::Serialize;

use crate::args::{EmitArgs, Language};
use crate::failure::Failure;
use crate::files::{self, Target};
use crate::load;
use crate::text::Terminal;

#[derive(Serialize)]
struct Emitted {
    files: Vec<String>,
}

pub(crate) fn run(args: &EmitArgs, terminal: &Terminal) -> Result<(), Failure> {
    let compiled = load::compiled_file(&args.file, terminal)?;
    let image = compiled.image();
    let sources: Vec<(String, String)> = match args.lang {
        Language::Rust => {
            rust::emit_with(image, &options(args)).map_err(|e| Failure::Rejected(e.to_string()))?
        }
        Language::C => c::emit(image, &args.name).map_err(|e| Failure::Rejected(e.to_string()))?,
        Language::Listing => {
            vec![("listing.txt".to_owned(), conset::codegen::listing::listing(image))]
        }
        Language::Text => {
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
        Target::File(path.clone()).write(|out| out.write_all(source.as_bytes()))?;
        emitted.files.push(path.display().to_string());
    }
    terminal.print(&emitted, |out| {
        for file in &emitted.files {
            writeln!(out, "wrote {file}")?;
        }
        Ok(())
    })
}

/// How the emitted crate finds the runtime.
fn options(args: &EmitArgs) -> rust::Options {
    let mut options = rust::Options::default();
    if let Some(path) = &args.runtime {
        options.runtime = rust::Runtime::Path(path.display().to_string());
    }
    options
}
