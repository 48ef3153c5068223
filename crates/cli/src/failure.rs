//! What went wrong, with its exit code, and how it is told.
//!
//! An error with a place in a text is shown with the line it is on, the way compilers do; every
//! other one as `error: file: place: message`, with the help below it.

use std::io::Write;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use conset::CompileError;
use conset_ir::{At, Fix, Infeasible, InputError};

/// Longer lines are not shown: nobody finds a column in them.
const SHOWN_LINE_BYTES_MAX: usize = 400;

/// A verb that did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The machine cannot do it, or the checker refuses it: exit code 1.
    Rejected(String),
    /// The user's input or words are wrong: exit code 2.
    Input {
        /// What and where.
        error: Box<InputError>,
        /// The line it is on, where it is known and short enough to show.
        line: Option<String>,
    },
    /// A promise of ours was broken: exit code 3.
    Bug(String),
}

impl Failure {
    /// An input error together with the bytes it was found in.
    pub(crate) fn in_source(error: InputError, bytes: &[u8]) -> Self {
        let line = line_at(&error.at, bytes);
        Failure::Input { error: Box::new(error), line }
    }

    /// The same for everything a compile can fail with.
    pub(crate) fn of_compile(error: CompileError, bytes: &[u8]) -> Self {
        match error {
            CompileError::Input(error) => Self::in_source(error, bytes),
            CompileError::Infeasible(error) => Failure::Rejected(infeasible(error).to_string()),
            CompileError::Rejected(rejection) => Failure::Rejected(rejection.to_string()),
            bug @ CompileError::Bug { .. } => Failure::Bug(bug.to_string()),
        }
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Rejected(_) => 1,
            Failure::Input { .. } => 2,
            Failure::Bug(_) => 3,
        }
    }

    /// Tells the user, on standard error.
    pub(crate) fn print(&self) {
        let text = match self {
            Failure::Rejected(message) | Failure::Bug(message) => format!("error: {message}"),
            Failure::Input { error, line: Some(line) } => snippet(error, line),
            Failure::Input { error, line: None } => format!("error: {error}"),
        };
        // Where standard error takes nothing, the exit code has to do.
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::Input { error: Box::new(error), line: None }
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        Self::of_compile(error, &[])
    }
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

fn snippet(error: &InputError, line: &str) -> String {
    let At::Text { line: number, column, .. } = error.at else { return error.to_string() };
    let start = column - 1;
    // Mark the word that begins there; at the line's end there is none, so mark the end.
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
    // Colours are taken out again by anstream where nobody can see them.
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
