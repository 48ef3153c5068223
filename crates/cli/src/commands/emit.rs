//! `conset emit`: writing source code, listings and image texts from a schedule.

use std::path::Path;

use conset::codegen::{CrateOptions, EmitError, Runtime, c, goal, rust};
use conset_ir::document::Document;
use conset_ir::{At, InputError};

use crate::args::{EmitArgs, EmitFormat};
use crate::error::CliError;
use crate::files;
use crate::load;
use crate::text::Terminal;

/// The runtime in the checkout that this command was built from. An emitted crate builds with it
/// even if this version of the runtime is not published.
const CHECKOUT_RUNTIME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime");

/// Default prefix of C names.
const C_NAME: &str = "conset_program";

pub(crate) fn run(args: &EmitArgs, terminal: &Terminal) -> Result<(), CliError> {
    refuse_options(args)?;
    let compiled = load::any_compiled_file(&args.file, terminal)?;
    let image = match &compiled {
        load::Either::Phases(compiled) => compiled.image(),
        load::Either::Steps(compiled) => compiled.image(),
    };
    let sources: Vec<(String, String)> = match args.format {
        EmitFormat::Rust => rust::emit_with(image, &options(args)?)
            .map_err(|e| CliError::Rejected(e.to_string()))?,
        EmitFormat::C => {
            let name = args.name.as_deref().unwrap_or(C_NAME);
            c::emit(image, name).map_err(|e| match e {
                EmitError::CName { .. } => {
                    InputError::new("--name", At::Whole, e.to_string()).into()
                }
                _ => CliError::Rejected(e.to_string()),
            })?
        }
        EmitFormat::Goal => goal::emit(image).map_err(|e| {
            InputError::new(args.file.display().to_string(), At::Whole, e.to_string())
                .help("compile with --by steps")
        })?,
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
    let sources = sources.into_iter().map(|(name, source)| (name, source.into_bytes()));
    terminal.print_files(files::write_folder(&args.output, &sources.collect::<Vec<_>>())?)
}

/// Refuses options of other formats.
fn refuse_options(args: &EmitArgs) -> Result<(), InputError> {
    let of_c = args.name.is_some() && !matches!(args.format, EmitFormat::C);
    let is_rust = matches!(args.format, EmitFormat::Rust);
    let of_rust = args.runtime.is_some() && !is_rust;
    let of_git = args.runtime_git.is_some() && !is_rust;
    let wrong = |option: &str, lang: &str| {
        let message = format!("only applies to --format {lang}");
        Err(InputError::new(option, At::Whole, message).help(format!("leave out {option}")))
    };
    match (of_c, of_rust, of_git) {
        (true, ..) => wrong("--name", "c"),
        (_, true, _) => wrong("--runtime", "rust"),
        (.., true) => wrong("--runtime-git", "rust"),
        _ => Ok(()),
    }
}

/// The source of the runtime in the manifest of the emitted crate.
fn options(args: &EmitArgs) -> Result<CrateOptions, InputError> {
    let options = CrateOptions::default();
    if let Some(source) = &args.runtime_git {
        let (url, rev) = source
            .rsplit_once('@')
            .filter(|(url, rev)| !url.is_empty() && !rev.is_empty() && !rev.contains(':'))
            .ok_or_else(|| {
                InputError::new("--runtime-git", At::Whole, "expected URL@REV")
                    .help("for example https://example.org/conset.git@1a2b3c4")
            })?;
        return Ok(options.runtime(Runtime::Git { url: url.to_owned(), rev: rev.to_owned() }));
    }
    let path = match &args.runtime {
        // An absolute path, since the crate is in another folder.
        Some(path) => files::whole_path(path)?,
        None => match files::whole_path(Path::new(CHECKOUT_RUNTIME)) {
            Ok(path) => path,
            Err(_) => return Ok(options),
        },
    };
    let Some(path) = path.to_str() else {
        let message = "the path is not UTF-8, which the manifest of a crate must be";
        return Err(InputError::new("--runtime", At::Path(path.display().to_string()), message)
            .help("link or copy the runtime to a path in UTF-8"));
    };
    Ok(options.runtime(Runtime::Path(path.to_owned())))
}
