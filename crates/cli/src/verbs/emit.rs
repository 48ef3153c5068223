//! `conset emit`: source code, listings and image texts from a schedule.

use std::path::{Path, PathBuf};

use conset::input::{self, Input, LoadOptions};
use conset_ir::document::Document;
use conset_ir::{Image, Machine};
use serde::Serialize;

use crate::args::{EmitArgs, Language};
use crate::failure::Failure;
use crate::files::{self, Target};
use crate::load;
use crate::progress::Bar;
use crate::text::Terminal;

#[derive(Serialize)]
struct Emitted {
    files: Vec<String>,
}

pub(crate) fn run(args: &EmitArgs, terminal: &Terminal) -> Result<(), Failure> {
    let image = image_of(&args.file, terminal)?;
    let sources: Vec<(String, String)> = match args.lang {
        Language::Rust => {
            conset::codegen::rust::emit(&image).map_err(|e| Failure::Rejected(e.to_string()))?
        }
        Language::Listing => {
            vec![("listing.txt".to_owned(), conset::codegen::listing::listing(&image))]
        }
        Language::Text => {
            vec![("image.cset".to_owned(), conset_ir::text::write(&Document::Image(image)))]
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

/// The checked image of a schedule or image file.
fn image_of(file: &Path, terminal: &Terminal) -> Result<Image, Failure> {
    let (name, bytes) = files::read(file)?;
    let mut bar = Bar::new(terminal.quiet);
    let machine = Machine::from_spec("iwarp")?;
    let input = match input::kind(&name, &bytes, None)? {
        input::Kind::Document => {
            input::load(&name, &bytes, &machine, &LoadOptions::default(), &mut |p| bar.observe(p))
                .map_err(|e| Failure::of_compile(e, &bytes))?
        }
        input::Kind::Mesh(_) => return Err(not_compiled(&name).into()),
    };
    match input {
        Input::Schedule(schedule) => {
            let compiled = conset::adopt(schedule, &mut |p| bar.observe(p))
                .map_err(|e| Failure::of_compile(e, &bytes))?;
            Ok((**compiled.image()).clone())
        }
        Input::Image(image) => conset::verify::image(image)
            .map(conset::verify::Verified::into_inner)
            .map_err(|rejection| Failure::Rejected(format!("{name} is rejected\n{rejection}"))),
        Input::Program(_) | Input::Machine(_) => Err(not_compiled(&name).into()),
    }
}

fn not_compiled(name: &str) -> conset_ir::InputError {
    load::wrong_kind(name, "this is not compiled; expected a schedule or an image")
        .help(format!("compile it first: conset compile {name} -o out.json"))
}
