//! `conset completions` and `conset man`: what shells and `man` know of the command, generated from its
//! parser.

use std::io;
use std::path::Path;

use clap_mangen::Man;
use serde::Serialize;

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::error::CliError;
use crate::files::{self, OutputTarget};
use crate::text::Terminal;

#[derive(Serialize)]
struct WrittenCompletions {
    shell: String,
    output: String,
}

/// Writes the completions of a shell.
pub(crate) fn run(args: &CompletionsArgs, terminal: &Terminal) -> Result<(), CliError> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::parser(), "conset", &mut script);
    OutputTarget::new(path).write(|out| out.write_all(&script))?;
    if args.output.is_none() {
        return Ok(());
    }
    let shell = args.shell.to_string();
    let report = WrittenCompletions { shell, output: path.display().to_string() };
    terminal.print(&report, |out| writeln!(out, "wrote {}", report.output))
}

/// Writes a page for the command and for each subcommand.
pub(crate) fn write_pages(args: &ManArgs, terminal: &Terminal) -> Result<(), CliError> {
    let mut parser = args::parser();
    // Gives the subcommands their whole names and the options that all have.
    parser.build();
    let shown = parser.get_subcommands().filter(|command| !command.is_hide_set());
    let pages = std::iter::once(&parser).chain(shown).map(page);
    let pages = pages.collect::<io::Result<Vec<_>>>();
    let pages = pages.map_err(|error| CliError::Bug(format!("a man page: {error}")))?;
    let written = files::write_folder(&args.output, &pages)?;
    terminal.print_files(written)
}

/// The name and the contents of a page.
fn page(command: &clap::Command) -> io::Result<(String, Vec<u8>)> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok((man.get_filename(), page))
}
