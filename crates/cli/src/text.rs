//! Output on the terminal: tables, numbers and JSON.

use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{CellAlignment, Table, presets};
use conset::verify::Rejection;
use conset_ir::plural;
use serde::Serialize;

use crate::args::{Cli, TableFormat};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::json;

/// What to print, and where.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// One JSON value instead of text.
    pub(crate) json: bool,
    /// Neither progress nor reports in text.
    pub(crate) quiet: bool,
    /// The format of tables, for subcommands that have it.
    pub(crate) table: TableFormat,
    /// Whether standard output is the file that the subcommand writes (`-o -`).
    stdout_is_file: bool,
    /// The format of the JSON value: `conset-run`.
    format: String,
    /// Whether the JSON value has been printed.
    printed: AtomicBool,
    /// Why the checker refused what is printed.
    refused: OnceLock<Rejection>,
}

impl Terminal {
    /// The terminal of a command line.
    pub(crate) fn new(cli: &Cli) -> Self {
        Self {
            json: cli.json,
            quiet: cli.quiet,
            table: cli.command.table_format().unwrap_or_default(),
            stdout_is_file: cli.command.output().is_some_and(|path| path == Path::new("-")),
            format: format!("conset-{}", cli.command.name()),
            printed: AtomicBool::new(false),
            refused: OnceLock::new(),
        }
    }

    /// Where the JSON value is printed: standard error if standard output is a file.
    fn json_target(&self) -> OutputTarget {
        if self.stdout_is_file { OutputTarget::Stderr } else { OutputTarget::Stdout }
    }

    /// Prints a failure: its text on standard error, and with `--json` also as data, unless the
    /// subcommand has printed its report already. Data that goes to standard error is printed
    /// without the text, so that it can be parsed.
    pub(crate) fn print_failure(&self, failure: &CliError) {
        let is_data = self.json && !self.printed.load(Ordering::Relaxed);
        if !(is_data && self.stdout_is_file) {
            failure.print();
        }
        if is_data {
            // If the target cannot be written, the exit code must suffice.
            let _ = self.json_target().write(|out| json::write_failure(out, failure));
        }
    }

    /// Marks what is printed from now on as refused by the checker: the violations come first.
    pub(crate) fn mark_refused(&self, rejection: Rejection) {
        // A subcommand shows one refused file.
        let _ = self.refused.set(rejection);
    }

    /// Prints a result, which must serialize as a map, as JSON with `--json` and as text otherwise.
    /// There is no text with `--quiet`, nor if standard output is a file.
    pub(crate) fn print(
        &self,
        object: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        if self.json {
            self.json_target()
                .write(|out| json::write(out, &self.format, self.refused.get(), object))?;
            self.printed.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if self.quiet || self.stdout_is_file {
            return Ok(());
        }
        Ok(OutputTarget::Stdout.write(|out| {
            self.refused.get().map_or(Ok(()), |rejection| writeln!(out, "{rejection}"))?;
            text(out)
        })?)
    }

    /// Prints the names of the files that a subcommand wrote.
    pub(crate) fn print_files(&self, files: Vec<String>) -> Result<(), CliError> {
        #[derive(Serialize)]
        struct Written {
            files: Vec<String>,
        }
        let written = Written { files };
        self.print(&written, |out| {
            written.files.iter().try_for_each(|file| writeln!(out, "wrote {file}"))
        })
    }
}

/// A table with a header. The first `left` columns are left-aligned, the others right-aligned.
pub(crate) fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header.iter().copied());
    for (index, column) in table.column_iter_mut().enumerate() {
        let align = if index < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(align);
        column.set_padding((0, 2));
    }
    table
}

/// Writes a table without trailing blanks.
pub(crate) fn write_table(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// `1 phase`, `2 phases`.
pub(crate) fn count(n: u64, one: &str) -> String {
    format!("{} {}", number(n), plural(n, one))
}

/// Digits in groups of three, separated by blanks.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1 234 567");
        assert_eq!(count(1, "phase"), "1 phase");
        assert_eq!(count(2, "connection"), "2 connections");
        assert_eq!(count(3, "entry"), "3 entries");
    }
}
