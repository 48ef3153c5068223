//! `conset diff`: comparing two schedules or images.

use std::io::{self, Write};
use std::path::Path;

use conset::diff::{
    self, ConnectionChange, ConnectionSummary, Diff, PartDiff, PlacedPart, ScheduleDiff, SetDiff,
    TruncatedList, ValueChange,
};
use conset::step_views;
use conset_ir::CellId;
use conset_ir::convert::to_u64;

use crate::args::DiffArgs;
use crate::commands::steps;
use crate::error::CliError;
use crate::load::{self, Either};
use crate::rows::{self, TableRows};
use crate::text::{self, Terminal, number};

/// Details of each kind that are listed without `--all`.
const SHOWN: usize = 10;

pub(crate) fn run(args: &DiffArgs, terminal: &Terminal) -> Result<(), CliError> {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        let error = load::wrong_kind("<stdin>", "standard input can be read once only");
        return Err(error.help("give one of them as a file").into());
    }
    let a = load::any_compiled_file(&args.a, terminal)?;
    let b = load::any_compiled_file(&args.b, terminal)?;
    let limit = if args.all { usize::MAX } else { SHOWN };
    let (a, b) = match (a, b) {
        (Either::Phases(a), Either::Phases(b)) => (a, b),
        (Either::Steps(a), Either::Steps(b)) => {
            let diff = step_views::diff(a.schedule(), b.schedule(), limit);
            return steps::write_diff(&diff, terminal);
        }
        _ => {
            let name = args.b.display().to_string();
            let message = "one of the files is a schedule of phases, the other one of steps";
            return Err(load::wrong_kind(&name, message).into());
        }
    };
    let diff = diff::diff(&a, &b, limit);
    rows::print(terminal, &diff, || numbers_of(&diff), |out| write_diff(out, &diff))
}

/// The numbers of a set that are compared, by their names in JSON.
fn compared(set: &SetDiff) -> [(&'static str, [u64; 2]); 6] {
    [
        ("connections", [set.connections.a, set.connections.b].map(to_u64)),
        ("words", [set.words.a, set.words.b]),
        ("phases", [set.phases.a, set.phases.b].map(to_u64)),
        ("bound_phases", [set.bound_phases.a, set.bound_phases.b].map(u64::from)),
        ("predicted_clocks", [set.predicted_clocks.a, set.predicted_clocks.b]),
        ("bound_clocks", [set.bound_clocks.a, set.bound_clocks.b]),
    ]
}

/// A row for each number of each common set.
fn numbers_of(diff: &Diff) -> TableRows {
    let mut rows = TableRows::new(&["set", "what", "a", "b"], 2);
    for set in &diff.sets {
        for (what, [a, b]) in compared(set) {
            rows.rows.push(vec![set.set.as_str().into(), what.into(), a.into(), b.into()]);
        }
    }
    rows
}

fn write_diff(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    write_comparison(out, diff.identical, &diff.schedule, |out| {
        diff.sets.iter().try_for_each(|set| match set.identical {
            true => write_identical(out, &set.set),
            false => write_summary(out, set),
        })
    })?;
    for set in diff.sets.iter().filter(|set| !set.identical) {
        write_details(out, set)?;
    }
    Ok(())
}

/// Prints what comparisons of phases and of steps have in common, and between that what `sets` prints
/// of the sets, unless the schedules are identical.
pub(crate) fn write_comparison(
    out: &mut dyn Write,
    identical: bool,
    schedule: &ScheduleDiff,
    sets: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if identical {
        writeln!(out, "identical")?;
        return write_schedules(out, schedule);
    }
    write_schedules(out, schedule)?;
    sets(out)?;
    write_part_details(out, schedule)
}

/// Prints that a set is the same in both.
pub(crate) fn write_identical(out: &mut dyn Write, set: &str) -> io::Result<()> {
    writeln!(out, "set      {set}: identical")
}

/// What differs between machines, origins, parts and the names of sets.
fn write_schedules(out: &mut dyn Write, diff: &ScheduleDiff) -> io::Result<()> {
    for (what, changes) in [("machine", &diff.machine), ("made", &diff.origin)] {
        for change in changes {
            writeln!(out, "{what:<8} {}", changed(change))?;
        }
    }
    if let Some(parts) = &diff.parts {
        write_parts(out, parts)?;
    }
    for (what, names) in [("removed", &diff.removed), ("added", &diff.added)] {
        for name in names {
            writeln!(out, "{what:<8} set {name}")?;
        }
    }
    if diff.reordered {
        writeln!(out, "order    the common sets run in another order")?;
    }
    Ok(())
}

/// Lists the parts and node numbers that differ.
fn write_part_details(out: &mut dyn Write, diff: &ScheduleDiff) -> io::Result<()> {
    let Some(parts) = &diff.parts else { return Ok(()) };
    let or_none = |cell: Option<CellId>| cell.map_or("none".to_owned(), |c| c.to_string());
    list(out, "parts on other cells", &parts.moved, |change| {
        format!("part {}: {} -> {}", change.part, or_none(change.a), or_none(change.b))
    })?;
    list(out, "numbers of nodes in the file", &parts.renumbered, |change| {
        format!("node {}: {} -> {}", change.node, change.a, change.b)
    })
}

/// Says how parts and node numbers differ, unless they are the same.
fn write_parts(out: &mut dyn Write, diff: &PartDiff) -> io::Result<()> {
    let count = match (diff.parts.a, diff.parts.b) {
        (Some(a), Some(b)) => a.max(b),
        (Some(_), None) => {
            return writeln!(out, "parts    only a has parts; they are not compared");
        }
        (None, _) => return writeln!(out, "parts    only b has parts; they are not compared"),
    };
    if diff.identical {
        return Ok(());
    }
    writeln!(
        out,
        "parts    {} of {} on another cell, {} with another number in the file",
        number(to_u64(diff.moved.total)),
        number(to_u64(count)),
        text::count(to_u64(diff.renumbered.total), "node"),
    )
}

fn changed(change: &ValueChange) -> String {
    format!("{} {} -> {}", change.what, change.a, change.b)
}

fn write_summary(out: &mut dyn Write, set: &SetDiff) -> io::Result<()> {
    writeln!(
        out,
        "set      {}: {} in both, {} removed, {} added, {} changed",
        set.set,
        text::count(to_u64(set.common), "connection"),
        number(to_u64(set.removed.total)),
        number(to_u64(set.added.total)),
        number(to_u64(set.changed.total)),
    )?;
    if set.order_changed {
        writeln!(out, "         the order between connections changed")?;
    }
    if set.nodes_changed {
        writeln!(out, "         the mesh nodes of the connections changed")?;
    }
    let mut table = text::table(&["", "a", "b", "change"], 1);
    for (what, [a, b]) in compared(set) {
        let what = match what {
            "bound_phases" => "bound on phases".to_owned(),
            "bound_clocks" => "bound on clocks".to_owned(),
            what => what.replace('_', " "),
        };
        let sign = if b < a { "-" } else { "+" };
        let change =
            if a == b { "=".to_owned() } else { format!("{sign}{}", number(a.abs_diff(b))) };
        table.add_row([what, number(a), number(b), change]);
    }
    text::write_table(out, &table)?;
    writeln!(
        out,
        "placed   {} in another phase, {} on another route, {} on other channels, {} at another \
         start, {} with another duration, {} renumbered",
        number(to_u64(set.moved)),
        number(to_u64(set.rerouted)),
        number(to_u64(set.rechanneled)),
        number(to_u64(set.restarted)),
        number(to_u64(set.rebooked)),
        number(to_u64(set.renumbered)),
    )?;
    let entries = &set.entries;
    writeln!(
        out,
        "tables   {:.1} % of forwarding entries unchanged: {} unchanged, {} changed, {} removed, \
         {} added, {}",
        100.0 * entries.stability,
        number(entries.unchanged),
        number(entries.changed),
        number(entries.removed),
        number(entries.added),
        text::count(to_u64(entries.tables.total), "changed table"),
    )
}

fn write_details(out: &mut dyn Write, set: &SetDiff) -> io::Result<()> {
    let title = |what: &str| format!("{}: {what}", set.set);
    list(out, &title("removed"), &set.removed, ends)?;
    list(out, &title("added"), &set.added, ends)?;
    list(out, &title("changed"), &set.changed, |ConnectionChange { id, changes, .. }| {
        let changes: Vec<String> = changes.iter().map(changed).collect();
        format!("{}{}", ids(id.a.0, id.b.0), changes.join(", "))
    })?;
    list(out, &title("placement"), &set.placements, |change| {
        format!(
            "{}{} -> {}\n    - {}\n    + {}",
            ids(change.id.a.0, change.id.b.0),
            change.source,
            change.target,
            placed(&change.parts.a),
            placed(&change.parts.b),
        )
    })?;
    list(out, &title("tables"), &set.entries.tables, |table| {
        format!(
            "{} {}: {} unchanged, {} changed, {} removed, {} added",
            table.phase, table.cell, table.unchanged, table.changed, table.removed, table.added
        )
    })?;
    list(out, &title("entries"), &set.entries.entries, |entry| {
        let or_none = |text: &Option<String>| text.as_deref().unwrap_or("none").to_owned();
        format!(
            "{} {}/{}: was {}; is {}",
            entry.phase,
            entry.cell,
            entry.channel,
            or_none(&entry.a),
            or_none(&entry.b)
        )
    })
}

fn ids(a: u32, b: u32) -> String {
    if a == b { format!("x{a}  ") } else { format!("x{a} (now x{b})  ") }
}

fn ends(ends: &ConnectionSummary) -> String {
    let name = ends.name.as_ref().map_or(String::new(), |name| format!(" name {name}"));
    format!("{}  {} -> {} words {}{name}", ends.id, ends.source, ends.target, ends.words)
}

fn placed(parts: &[PlacedPart]) -> String {
    let part = |part: &PlacedPart| {
        let stops: Vec<String> =
            part.cells.iter().zip(&part.channels).map(|(c, ch)| format!("{c}/{ch}")).collect();
        format!(
            "{} {} from clock {} for {}",
            part.phase,
            stops.join(" -> "),
            part.start,
            part.duration
        )
    };
    parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

fn list<T>(
    out: &mut dyn Write,
    title: &str,
    items: &TruncatedList<T>,
    line: impl Fn(&T) -> String,
) -> io::Result<()> {
    if items.total == 0 {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for item in &items.first {
        writeln!(out, "  {}", line(item))?;
    }
    match items.total - items.first.len() {
        0 => Ok(()),
        more => writeln!(out, "  and {} more (--all)", number(to_u64(more))),
    }
}
