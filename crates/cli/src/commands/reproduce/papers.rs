//! `conset reproduce c3` and `cm5`: tables and figures of other papers.

use std::io::{self, Write};

use conset::reproduce::beside::{Beside, Exhibit, PaperTable};
use conset::reproduce::{c3, cm5};
use serde::Serialize;

use crate::args::Paper;
use crate::error::CliError;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct PaperReport {
    paper: Paper,
    tables: Vec<PaperTable>,
}

pub(super) fn run(paper: Paper, number: Option<u8>, terminal: &Terminal) -> Result<(), CliError> {
    let tables = match paper {
        Paper::C3 => c3::figures(number),
        Paper::Cm5 => cm5::tables(number)?,
    };
    let report = PaperReport { paper, tables };
    terminal.print(&report, |out| {
        let numbers = report.tables.iter().flat_map(|table| &table.rows);
        if numbers.flat_map(|row| &row.cells).any(|cell| cell.paper.is_some()) {
            writeln!(out, "Ours / the paper's (error in percent).\n")?;
        }
        for (row, table) in report.tables.iter().enumerate() {
            if row > 0 {
                writeln!(out)?;
            }
            write_table(out, table)?;
        }
        Ok(())
    })
}

fn write_table(out: &mut dyn Write, table: &PaperTable) -> io::Result<()> {
    let kind = match table.kind {
        Exhibit::Table => "Table",
        Exhibit::Figure => "Figure",
    };
    writeln!(out, "{kind} {}: {}", table.number, table.title)?;
    let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let mut lines = text::table(&columns, 1);
    for row in &table.rows {
        let cells = row.cells.iter().map(beside);
        lines.add_row(std::iter::once(row.name.clone()).chain(cells));
    }
    text::write_table(out, &lines)
}

fn beside(cell: &Beside) -> String {
    match (cell.paper, cell.error_percent) {
        (Some(paper), Some(error)) => {
            format!("{} / {} ({error:+.1})", number(cell.ours), number(paper))
        }
        _ => number(cell.ours),
    }
}

/// Four significant digits, and all digits before the point.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 999.5 => 0,
        size if size >= 99.95 => 1,
        size if size >= 9.995 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
