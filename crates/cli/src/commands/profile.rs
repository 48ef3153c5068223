//! Profiles as text and JSON: where every clock went, the critical path, and what would help
//! (`conset run`, `conset show profile`).
//!
//! The clocks of a set are those of its ports ([`conset::profile`]), printed as means over the cells;
//! the JSON has the sums and the numbers of every port.

use std::io::{self, Write};

use conset::profile::what_if::{self, WhatIf, WhatIfError};
use conset::profile::{
    ClocksOf, ExchangedBy, PathCause, PathSegment, PortClocks, PortProfile, SetProfile,
};
use conset::run::SetMeasurement;
use conset::steps::{CompiledSteps, StepMeasurement};
use conset::{Compiled, profile};
use conset_ir::convert::{to_f64, to_u64};
use conset_ir::{At, CellId, InputError, PhaseId};
use serde::Serialize;

use crate::args::ProfileOptions;
use crate::error::CliError;
use crate::progress::ProgressDisplay;
use crate::rows::{self, Field, TableRows};
use crate::text::{self, Terminal};

/// Segments of the critical path that are printed.
const SEGMENTS: usize = 12;

/// The profiles of all sets.
#[derive(Serialize)]
pub(crate) struct ProfileReport {
    pub(crate) sets: Vec<SetProfile>,
    /// The clocks on changed machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) what_if: Option<Vec<WhatIf>>,
}

/// The part of a profile to print.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProfileFilter {
    pub(crate) cells: bool,
    pub(crate) phase: Option<PhaseId>,
    pub(crate) cell: Option<CellId>,
}

/// The profiles of a run that was traced, and of its messages if there are any.
pub(crate) fn of_runs(
    compiled: &Compiled,
    runs: &[SetMeasurement],
    options: ProfileOptions,
    bar: &mut ProgressDisplay,
) -> Result<ProfileReport, CliError> {
    let sets = compiled.schedule().sets().iter().zip(runs).flat_map(|(schedule, run)| {
        let routing = schedule.timetable.routing();
        let messages = run
            .messages
            .as_ref()
            .map(|report| profile::of_messages(routing.machine(), routing.set(), report));
        std::iter::once(profile::of_run(schedule, &run.checked)).chain(messages)
    });
    let sets = sets.collect();
    let what_if = options.what_if.then(|| of_changes(compiled, true, bar)).transpose()?;
    Ok(ProfileReport { sets, what_if })
}

/// The profiles of a compiled program by the cost model.
pub(crate) fn of_model(
    compiled: &Compiled,
    only: Option<&str>,
    options: ProfileOptions,
    bar: &mut ProgressDisplay,
) -> Result<ProfileReport, CliError> {
    let sets = compiled.schedule().sets().iter().zip(compiled.sets());
    let sets = sets
        .filter(|(s, _)| only.is_none_or(|name| s.timetable.routing().set().name() == name))
        .map(|(schedule, set)| profile::of_model(schedule, &set.prediction))
        .collect();
    let what_if = options.what_if.then(|| of_changes(compiled, false, bar)).transpose()?;
    Ok(ProfileReport { sets, what_if })
}

/// The profiles of step plans that were executed with a trace.
pub(crate) fn of_steps(
    compiled: &CompiledSteps,
    runs: &[StepMeasurement],
    options: ProfileOptions,
    bar: &mut ProgressDisplay,
) -> Result<ProfileReport, CliError> {
    let sets = compiled.schedule().sets().iter().zip(runs);
    let sets = sets.map(|(set, run)| profile::of_steps(&set.steps, &run.report)).collect();
    let what_if = options.what_if.then(|| of_step_changes(compiled, true, bar)).transpose()?;
    Ok(ProfileReport { sets, what_if })
}

/// The profiles of step plans by the cost model.
pub(crate) fn of_steps_model(
    compiled: &CompiledSteps,
    only: Option<&str>,
    options: ProfileOptions,
    bar: &mut ProgressDisplay,
) -> Result<ProfileReport, CliError> {
    let sets = compiled.schedule().sets().iter();
    let sets = sets.filter(|set| only.is_none_or(|name| set.steps.set().name() == name));
    let profiles: Option<Vec<_>> = sets.map(|set| profile::of_steps_model(&set.steps)).collect();
    let Some(sets) = profiles else {
        let message = "a message has no route on this machine, so its time cannot be predicted";
        return Err(InputError::new("show profile", At::Whole, message).into());
    };
    let what_if = options.what_if.then(|| of_step_changes(compiled, false, bar)).transpose()?;
    Ok(ProfileReport { sets, what_if })
}

fn of_step_changes(
    compiled: &CompiledSteps,
    measured: bool,
    bar: &mut ProgressDisplay,
) -> Result<Vec<WhatIf>, CliError> {
    what_if::of_steps(compiled, measured, &mut |p| bar.observe(p)).map_err(what_if_failure)
}

fn of_changes(
    compiled: &Compiled,
    measured: bool,
    bar: &mut ProgressDisplay,
) -> Result<Vec<WhatIf>, CliError> {
    let options = what_if::options_of(compiled.schedule().origin());
    what_if::of_phases(compiled, &options, measured, &mut |p| bar.observe(p))
        .map_err(what_if_failure)
}

fn what_if_failure(error: WhatIfError) -> CliError {
    match error {
        WhatIfError::Compile(error) => CliError::of_compile(error, &[]),
        error => CliError::Bug(error.to_string()),
    }
}

/// Prints profiles in the format that the options select.
pub(crate) fn print(
    report: &ProfileReport,
    filter: ProfileFilter,
    terminal: &Terminal,
) -> Result<(), CliError> {
    rows::print(terminal, report, || rows_of(report, filter), |out| write(out, report, filter))
}

/// A row for each phase and side, or for each port; with `--what-if`, for each change of the machine
/// instead.
fn rows_of(report: &ProfileReport, filter: ProfileFilter) -> TableRows {
    if let Some(changes) = &report.what_if {
        return what_if_rows(changes);
    }
    let is_of_ports = filter.cells || filter.cell.is_some();
    let whose = if is_of_ports { ["cell", "side"] } else { ["side", "ports"] };
    let columns = [&["set", "by", "phase"][..], &whose, &PortClocks::NAMES, &["idle", "total"]];
    let mut rows = TableRows::new(&columns.concat(), 4);
    for set in &report.sets {
        let phases = set.phases.iter().filter(|p| filter.phase.is_none_or(|only| only == p.phase));
        for phase in phases {
            let mut add = |whose: [Field; 2], clocks: &PortClocks| {
                let mut row: Vec<Field> = vec![
                    set.set.as_str().into(),
                    by_name(set.by).into(),
                    Some(phase.phase).filter(|_| set.by == ExchangedBy::Phases).into(),
                ];
                row.extend(whose);
                row.extend(clocks.parts().map(Field::from));
                row.extend([clocks.idle(), clocks.total()].map(Field::from));
                rows.rows.push(row);
            };
            if !is_of_ports {
                for side in &phase.sides {
                    add([side.side.name().into(), side.ports.into()], &side.clocks);
                }
                continue;
            }
            let shown = |port: &&PortProfile| filter.cell.is_none_or(|cell| cell == port.cell);
            for port in phase.ports.iter().filter(shown) {
                add([port.cell.into(), port.side.name().into()], &port.clocks);
            }
        }
    }
    rows
}

fn what_if_rows(changes: &[WhatIf]) -> TableRows {
    let columns = ["machine", "plan", "phases", "clocks", "clocks_over_unchanged"];
    let mut rows = TableRows::new(&columns, 2);
    for change in changes {
        rows.rows.push(vec![
            change.change.name().into(),
            if change.recompiled { "new" } else { "this" }.into(),
            change.phases.into(),
            change.clocks.into(),
            change.clocks_over_unchanged.map(|ratio| Field::Real(ratio, 2)).into(),
        ]);
    }
    rows
}

fn by_name(by: ExchangedBy) -> &'static str {
    match by {
        ExchangedBy::Phases => "phases",
        ExchangedBy::Steps => "steps",
        ExchangedBy::Messages => "messages",
    }
}

/// Writes profiles for people.
pub(crate) fn write(
    out: &mut dyn Write,
    report: &ProfileReport,
    filter: ProfileFilter,
) -> io::Result<()> {
    for set in &report.sets {
        write_totals(out, set)?;
        write_path(out, set, filter)?;
        if set.by == ExchangedBy::Phases {
            write_phases(out, set, filter)?;
        }
        if filter.cells || filter.cell.is_some() {
            write_cells(out, set, filter)?;
        }
    }
    report.what_if.as_ref().map_or(Ok(()), |rows| write_what_if(out, rows))
}

fn write_totals(out: &mut dyn Write, set: &SetProfile) -> io::Result<()> {
    let by = by_name(set.by);
    let of = match set.clocks_of {
        ClocksOf::Fabric => "measured",
        ClocksOf::Model => "predicted",
    };
    let cells = set.sides.first().map_or(0, |side| to_u64(side.ports));
    writeln!(
        out,
        "profile  {} by {by}: {} clocks {of}, at each of {}; on average",
        set.set,
        text::number(set.clocks),
        text::count(cells, "cell"),
    )?;
    let mut header = vec!["  part"];
    for side in &set.sides {
        header.extend([side.side.name(), "%"]);
    }
    let mut table = text::table(&header, 1);
    let mean = |clocks: u64, ports: usize| {
        let mean = to_f64(clocks) / to_f64(ports.max(1));
        vec![format!("{mean:.1}"), format!("{:.1}", percent(mean, set.clocks))]
    };
    for (row, name) in PortClocks::NAMES.into_iter().enumerate() {
        if set.sides.iter().all(|side| side.clocks.parts()[row] == 0) {
            continue;
        }
        let values = set.sides.iter().flat_map(|s| mean(s.clocks.parts()[row], s.ports));
        table.add_row(std::iter::once(format!("  {}", part_name(name))).chain(values));
    }
    let values = set.sides.iter().flat_map(|side| mean(side.clocks.total(), side.ports));
    table.add_row(std::iter::once("  total".to_owned()).chain(values));
    text::write_table(out, &table)
}

/// The name of a part in texts.
fn part_name(name: &str) -> &str {
    if name == "setup" { "set-up" } else { name }
}

fn percent(part: f64, whole: u64) -> f64 {
    100.0 * part / to_f64(whole.max(1))
}

fn write_path(out: &mut dyn Write, set: &SetProfile, filter: ProfileFilter) -> io::Result<()> {
    let path = &set.critical_path;
    let c = &path.clocks;
    let parts = [
        ("switch", c.switch),
        (if set.by == ExchangedBy::Phases { "set-up" } else { "software" }, c.setup),
        ("words", c.words),
        ("link", c.link),
        ("start", c.start),
    ];
    let parts: Vec<String> =
        parts.iter().map(|(name, clocks)| format!("{name} {}", text::number(*clocks))).collect();
    let one = if set.by == ExchangedBy::Phases { "stream" } else { "message" };
    let count = text::count(to_u64(path.segments.len()), one);
    writeln!(out, "critical {count}: {}", parts.join(" + "))?;
    let s = &path.slack;
    writeln!(
        out,
        "slack    {} of {} without; quartiles {}, {}, {}; greatest {}",
        text::number(to_u64(s.zero)),
        text::count(to_u64(s.streams), one),
        text::number(s.quarter),
        text::number(s.median),
        text::number(s.three_quarters),
        text::number(s.greatest),
    )?;
    let header = ["  phase", one, "from", "to", "after", "words", "open", "until", "waited"];
    let mut table = text::table(&header, 5);
    // The path is decided at its end.
    let segments: Vec<&PathSegment> = path
        .segments
        .iter()
        .filter(|segment| filter.phase.is_none_or(|phase| phase == segment.phase))
        .collect();
    let hidden = segments.len().saturating_sub(SEGMENTS);
    for s in &segments[hidden..] {
        let after = match s.after {
            PathCause::Begin => "begin".to_owned(),
            PathCause::Port { cell, side } => format!("{cell} {}", side.name()),
            PathCause::Order => "order".to_owned(),
            PathCause::Link => "link".to_owned(),
            _ => String::new(),
        };
        let id = match set.by {
            ExchangedBy::Steps => s.connection.0.to_string(),
            _ => s.connection.to_string(),
        };
        table.add_row([
            format!("  {}", s.phase),
            id,
            s.source.to_string(),
            s.target.to_string(),
            after,
            text::number(s.words.into()),
            text::number(s.from),
            text::number(s.to),
            text::number(s.waited),
        ]);
    }
    if hidden > 0 {
        writeln!(out, "  ... the last {SEGMENTS} of them (--json has all):")?;
    }
    if segments.is_empty() {
        return Ok(());
    }
    text::write_table(out, &table)
}

fn write_phases(out: &mut dyn Write, set: &SetProfile, filter: ProfileFilter) -> io::Result<()> {
    let mut table = text::table(
        &[
            "phase",
            "streams",
            "words",
            "switch",
            "clocks",
            "busy %",
            "partner %",
            "link %",
            "start %",
            "end %",
            "last",
        ],
        1,
    );
    for phase in &set.phases {
        if filter.phase.is_some_and(|only| only != phase.phase) {
            continue;
        }
        let mut sum = [0.0; 5];
        let mut ports = 0.0;
        for side in &phase.sides {
            let c = &side.clocks;
            let busy = c.setup + c.sending + c.receiving;
            for (sum, part) in sum.iter_mut().zip([busy, c.partner, c.link, c.start, c.end]) {
                *sum += to_f64(part);
            }
            ports += to_f64(side.ports);
        }
        let shares = sum.map(|part| format!("{:.1}", percent(part / ports, phase.clocks)));
        let segments = &set.critical_path.segments;
        let last = segments.iter().rev().find(|segment| segment.phase == phase.phase);
        let last = last.map(|s| format!("{} {} -> {}", s.connection, s.source, s.target));
        let mut row = vec![
            phase.phase.to_string(),
            text::number(to_u64(phase.streams)),
            text::number(phase.words),
            text::number(phase.switch),
            text::number(phase.clocks),
        ];
        row.extend(shares);
        row.push(last.unwrap_or_default());
        table.add_row(row);
    }
    text::write_table(out, &table)
}

fn write_cells(out: &mut dyn Write, set: &SetProfile, filter: ProfileFilter) -> io::Result<()> {
    let of_phase = filter.phase.and_then(|p| set.phases.get(p.index()));
    let ports: &[PortProfile] = of_phase.map_or(&set.ports, |phase| &phase.ports);
    let shown = || ports.iter().filter(|port| filter.cell.is_none_or(|cell| cell == port.cell));
    // Parts that no port has are left out.
    let used: Vec<usize> = (0..PortClocks::NAMES.len())
        .filter(|&row| shown().any(|port| port.clocks.parts()[row] > 0))
        .collect();
    let mut header = vec!["cell", "port"];
    header.extend(used.iter().map(|&row| part_name(PortClocks::NAMES[row])));
    header.extend(["idle", "total"]);
    let mut table = text::table(&header, 2);
    for port in shown() {
        let mut row = vec![port.cell.to_string(), port.side.name().to_owned()];
        let parts = port.clocks.parts();
        row.extend(used.iter().map(|&part| text::number(parts[part])));
        row.extend([port.clocks.idle(), port.clocks.total()].map(text::number));
        table.add_row(row);
    }
    text::write_table(out, &table)
}

fn write_what_if(out: &mut dyn Write, rows: &[WhatIf]) -> io::Result<()> {
    writeln!(out, "what if  the machine is changed; this plan, or a new one if it is faster:")?;
    let mut table = text::table(&["  machine", "plan", "phases", "clocks", "ratio"], 2);
    for row in rows {
        let missing = || "not possible".to_owned();
        table.add_row([
            format!("  {}", row.change.name()),
            if row.recompiled { "new" } else { "this" }.to_owned(),
            text::number(to_u64(row.phases)),
            row.clocks.map_or_else(missing, text::number),
            row.clocks_over_unchanged.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]);
    }
    text::write_table(out, &table)
}
