//! `conset reproduce c3`, `cm5`, `acl` and `active`: tables and figures of other papers.

use std::io::{self, Write};

use conset::predict::ModelValue;
use conset::reproduce::beside::{Beside, Exhibit, PaperTable};
use conset::reproduce::c3_measured::{self, C3Measured, MeasuredRow, SizeVerdict};
use conset::reproduce::cm5::{PaperSchedule, ScheduleStep};
use conset::reproduce::{acl, active, c3, cm5, figures};
use serde::Serialize;

use crate::args::{Paper, ReproduceArgs};
use crate::commands::predict;
use crate::error::CliError;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct PaperReport {
    paper: Paper,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedules: Vec<PaperSchedule>,
    tables: Vec<PaperTable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<String>,
    /// The algorithms of c3 on the fabric (`--measure`).
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<C3Measured>,
}

pub(super) fn run(paper: Paper, args: &ReproduceArgs, terminal: &Terminal) -> Result<(), CliError> {
    let number = args.number;
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let measured = args.measure.then(|| c3_measured::measured(&mut |p| bar.observe(p)));
    let measured = measured.transpose()?;
    drop(bar);
    let (schedules, tables) = match paper {
        Paper::C3 => (Vec::new(), c3::figures(number)),
        Paper::Cm5 => (cm5::schedules(number)?, cm5::tables(number)?),
        Paper::Acl => (Vec::new(), acl::tables(number)?),
        Paper::Active => {
            let effort = if args.quick { active::Effort::QUICK } else { active::Effort::FULL };
            (Vec::new(), active::figures(number, effort)?)
        }
    };
    let figures = match &args.figures {
        Some(folder) => super::write_all(folder, &figures::curves(&tables))?,
        None => Vec::new(),
    };
    let report = PaperReport { paper, schedules, tables, figures, measured };
    terminal.print(&report, |out| write_report(out, &report))
}

fn write_report(out: &mut dyn Write, report: &PaperReport) -> io::Result<()> {
    let numbers = report.tables.iter().flat_map(|table| &table.rows);
    if numbers.flat_map(|row| &row.cells).any(|cell| cell.paper.is_some()) {
        writeln!(out, "Ours / the paper's (error in percent).\n")?;
    }
    let mut first = true;
    let mut separate = |out: &mut dyn Write| {
        if std::mem::take(&mut first) { Ok(()) } else { writeln!(out) }
    };
    for schedule in &report.schedules {
        separate(out)?;
        write_schedule(out, schedule)?;
    }
    for table in &report.tables {
        separate(out)?;
        write_table(out, table)?;
    }
    if let Some(measured) = &report.measured {
        write_measured(out, measured)?;
    }
    report.figures.iter().try_for_each(|file| writeln!(out, "wrote {file}"))
}

fn write_schedule(out: &mut dyn Write, schedule: &PaperSchedule) -> io::Result<()> {
    let equal = if schedule.is_equal() { "equal to the paper's" } else { "not the paper's" };
    writeln!(
        out,
        "Table {}: schedule of {} on {} processors: {equal}",
        schedule.number, schedule.algorithm, schedule.processors
    )?;
    let mut lines = text::table(&["step", "ours", "the paper's", "equal"], 0);
    for (step, row) in (1..).zip(&schedule.steps) {
        lines.add_row([
            step.to_string(),
            ScheduleStep::spell(&row.ours),
            ScheduleStep::spell(&row.paper),
            if row.equal { "yes" } else { "no" }.to_owned(),
        ]);
    }
    text::write_table(out, &lines)
}

/// Units and clocks of the algorithms of c3, and the paper's statements.
fn write_measured(out: &mut dyn Write, measured: &C3Measured) -> io::Result<()> {
    writeln!(out, "\nMeasured on the fabric of delta:16x16, in clocks; #: rank.")?;
    for table in &measured.tables {
        writeln!(out, "\nMeasured: {}, {} bytes", table.pattern, table.bytes)?;
        let columns = [
            "algorithm",
            "planner",
            "supersteps",
            "messages",
            "units by the paper",
            "units of the plan",
            "predicted",
            "fabric",
            "units fitted, %",
            "predicted, %",
        ];
        let mut lines = text::table(&columns, 2);
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let error = |value: Option<ModelValue>| {
            or_dash(value.and_then(|value| value.error_percent).map(|e| format!("{e:+.1}")))
        };
        for MeasuredRow { algorithm, units_by_paper, row, .. } in &table.rows {
            lines.add_row([
                (*algorithm).to_owned(),
                row.method.clone(),
                or_dash(row.supersteps.map(|n| n.to_string())),
                or_dash(row.messages.map(|n| n.to_string())),
                or_dash(units_by_paper.as_ref().map(predict::ranked)),
                or_dash(row.c3.as_ref().map(predict::ranked)),
                or_dash(row.steps_model.as_ref().map(predict::ranked)),
                or_dash(row.measured.map(|m| format!("{} #{}", text::number(m.clocks), m.rank))),
                error(row.c3),
                error(row.steps_model),
            ]);
        }
        text::write_table(out, &lines)?;
        for summary in &table.summaries {
            predict::write_summary(out, summary)?;
        }
    }
    for table in &measured.with_barriers {
        writeln!(out, "\nMeasured with a barrier after every superstep: {} bytes", table.bytes)?;
        let mut lines = text::table(&["algorithm", "planner", "supersteps", "fabric"], 2);
        for row in &table.rows {
            lines.add_row([
                row.algorithm.to_owned(),
                row.planner.to_owned(),
                row.supersteps.to_string(),
                format!("{} #{}", text::number(row.clocks), row.rank),
            ]);
        }
        text::write_table(out, &lines)?;
    }
    writeln!(out, "\nWhat the paper says of the ranks, on the fabric:")?;
    for statement in &measured.statements {
        let holds = match (statement.holds(), statement.holds_with_barriers()) {
            (true, _) => "holds",
            (false, Some(true)) => "holds with barriers",
            (false, _) => "does not hold",
        };
        write!(out, "{holds:<19} {} ({}", statement.text, verdicts(&statement.sizes))?;
        match &statement.sizes_with_barriers[..] {
            [] => writeln!(out, ")")?,
            sizes => writeln!(out, "; with barriers {})", verdicts(sizes))?,
        }
    }
    Ok(())
}

fn verdicts(sizes: &[SizeVerdict]) -> String {
    let verdict = |size: &SizeVerdict| {
        format!("{} bytes: {}", size.bytes, if size.holds { "yes" } else { "no" })
    };
    sizes.iter().map(verdict).collect::<Vec<_>>().join(", ")
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
    text::write_table(out, &lines)?;
    table.notes.iter().try_for_each(|note| writeln!(out, "{note}"))
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
