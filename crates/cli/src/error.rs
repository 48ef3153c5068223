//! Errors of the command: their exit codes and their output.
//!
//! An error with a position in a text is printed with its line, as compilers do; every other error as
//! `error: file: place: message`, followed by the help.

use std::fmt::Display;
use std::io::Write;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::CommandFactory;
use clap::builder::styling::AnsiColor;
use conset::CompileError;
use conset::verify::Rejection;
use conset_ir::{At, Fix, Infeasible, InputError};

use crate::args::Cli;

/// Longer lines are not printed.
const SHOWN_LINE_BYTES_MAX: usize = 400;

/// Why a subcommand failed.
#[derive(Debug)]
pub(crate) enum CliError {
    /// A set does not fit on the machine: exit code 1.
    Infeasible(Box<Infeasible>),
    /// The checker refused a file: exit code 1.
    Violations {
        /// The file, if its name is known.
        file: Option<String>,
        /// The violations.
        rejection: Box<Rejection>,
    },
    /// Otherwise impossible or refused: exit code 1.
    Rejected(String),
    /// Wrong input or arguments: exit code 2.
    Input {
        /// The error with its place.
        error: Box<InputError>,
        /// The line of the error, if it is known and short enough to print.
        line: Option<String>,
    },
    /// A bug in conset: exit code 3.
    Bug(String),
}

impl CliError {
    /// What was asked for needs MPI, and this program was built without it.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn without_mpi() -> Self {
        let how = "this conset was built without MPI; build it with the feature `mpi` (cargo install --path \
                   crates/cli --features mpi) and start it by the launcher of MPI";
        CliError::Rejected(how.to_owned())
    }

    /// An input error in the bytes of a file.
    pub(crate) fn in_source(error: InputError, bytes: &[u8]) -> Self {
        let line = line_at(&error.at, bytes);
        CliError::Input { error: Box::new(error), line }
    }

    /// An error of the compiler about the bytes of a file.
    pub(crate) fn of_compile(error: CompileError, bytes: &[u8]) -> Self {
        match error {
            CompileError::Input(error) => Self::in_source(error, bytes),
            CompileError::Infeasible(error) => CliError::Infeasible(Box::new(infeasible(error))),
            CompileError::Rejected(rejection) => CliError::Violations { file: None, rejection },
            bug => CliError::Bug(bug.to_string()),
        }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            CliError::Infeasible(_) | CliError::Violations { .. } | CliError::Rejected(_) => 1,
            CliError::Input { .. } => 2,
            CliError::Bug(_) => 3,
        }
    }

    /// The error in one line.
    pub(crate) fn message(&self) -> String {
        let text = match self {
            CliError::Infeasible(error) => error.reason.clone(),
            CliError::Violations { rejection, .. } => rejection.to_string(),
            CliError::Rejected(message) | CliError::Bug(message) => message.clone(),
            CliError::Input { error, .. } => spelled(error).to_string(),
        };
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Prints the error on standard error.
    pub(crate) fn print(&self) {
        let text = match self {
            CliError::Infeasible(error) => titled(error),
            CliError::Violations { file: Some(file), rejection } => {
                titled(format_args!("{file}: {rejection}"))
            }
            CliError::Violations { file: None, rejection } => titled(rejection),
            CliError::Rejected(message) | CliError::Bug(message) => titled(message),
            CliError::Input { error, line } => {
                let error = spelled(error);
                match line {
                    Some(line) => snippet(&error, line),
                    None => titled(error),
                }
            }
        };
        // anstream removes the colours if the output is not a terminal or --color says so. If standard
        // error cannot be written, the exit code must suffice.
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

impl From<InputError> for CliError {
    fn from(error: InputError) -> Self {
        CliError::Input { error: Box::new(error), line: None }
    }
}

impl From<CompileError> for CliError {
    fn from(error: CompileError) -> Self {
        Self::of_compile(error, &[])
    }
}

/// The error with the options of the command.
pub(crate) fn spelled(error: &InputError) -> InputError {
    error.clone().with_options(option)
}

/// The spelling of an option that an error names, if the command has it.
fn option(name: &str) -> Option<String> {
    // `--format` is that of the output.
    let name = if name == "format" { "input-format" } else { name };
    let command = Cli::command();
    let mut arguments = command.get_subcommands().flat_map(clap::Command::get_arguments);
    arguments.any(|argument| argument.get_long() == Some(name)).then(|| format!("--{name}"))
}

/// The same error with the options of the command in its fixes.
fn infeasible(mut error: Infeasible) -> Infeasible {
    for fix in &mut error.fixes {
        let option = match fix {
            Fix::Phases(n) => format!("--max-phases {n}"),
            Fix::ChannelsPerCell(n) => format!("--param channels_per_cell={n}"),
            Fix::Parts(n) => format!("--parts {n}"),
            Fix::Cells(_) => "--machine".to_owned(),
            _ => continue,
        };
        *fix = Fix::Other(format!("{fix} ({option})"));
    }
    error
}

fn line_at(at: &At, bytes: &[u8]) -> Option<String> {
    let At::Text { column, offset, .. } = *at else { return None };
    let start = offset.checked_sub(column - 1)?;
    let rest = bytes.get(start..)?;
    let end = rest.iter().take(SHOWN_LINE_BYTES_MAX + 1).position(|&b| b == b'\n' || b == b'\r');
    let end = end.unwrap_or(rest.len());
    if end > SHOWN_LINE_BYTES_MAX || column > end + 1 {
        return None;
    }
    std::str::from_utf8(&rest[..end]).ok().map(str::to_owned)
}

/// An error that is not about a line of a file.
fn titled(message: impl Display) -> String {
    let style = AnsiColor::BrightRed.on_default().bold();
    format!("{style}error{style:#}: {message}")
}

fn snippet(error: &InputError, line: &str) -> String {
    let At::Text { line: number, column, .. } = error.at else { return error.to_string() };
    let start = column - 1;
    // Mark the word that begins there, or the end of the line.
    let word = line[start..].find(char::is_whitespace).unwrap_or(line.len() - start);
    let span = start..start + word;
    let mut group = Level::ERROR.primary_title(error.message.as_str()).element(
        Snippet::source(line)
            .line_start(number)
            .path(error.file.as_str())
            .annotation(AnnotationKind::Primary.span(span)),
    );
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::styled().render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_error_is_found_and_long_lines_are_left_out() {
        let text = b"first line\nsecond wrong line\n";
        let at = At::Text { line: 2, column: 8, offset: 18 };
        assert_eq!(line_at(&at, text).as_deref(), Some("second wrong line"));
        let end = At::Text { line: 3, column: 1, offset: text.len() };
        assert_eq!(line_at(&end, text).as_deref(), Some(""));
        let nonsense = At::Text { line: 1, column: 40, offset: 2 };
        assert_eq!(line_at(&nonsense, text), None);
        let long = vec![b'x'; 1000];
        assert_eq!(line_at(&At::Text { line: 1, column: 1, offset: 0 }, &long), None);
        let error = InputError::new("f.cset", at, "expected `->`").help("write c0 -> c1");
        let shown = snippet(&error, "second wrong line");
        assert!(shown.contains("f.cset") && shown.contains("write c0 -> c1"), "{shown}");
    }
}
