//! `conset show`: views of a compiled schedule.
//!
//! Each view is a list of rows, made by one function of this module and printed as a table or, with
//! `--json`, as an array of objects with the column names as keys. The checker verifies the schedule
//! first.

use std::path::Path;

use conset::Compiled;
use conset::report::Summary;
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{
    At, CellId, ConnectionId, Feed, InputError, Machine, PhaseId, RouteRef, SetSchedule, Sink, Slot,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::ShowArgs;
use crate::commands::compile::write_summary;
use crate::commands::steps;
use crate::error::CliError;
use crate::load::{self, Either};
use crate::text::{self, Terminal};

/// A view of a schedule.
pub(crate) enum ScheduleView {
    Summary,
    Phases,
    Steps,
    Routes,
    Timetable,
    Channels,
    Links,
    Contexts,
    Cell(CellId),
    Connection(ConnectionId),
}

/// A table. The first `left` columns are text, the others numbers.
pub(crate) struct TableRows {
    columns: Vec<&'static str>,
    left: usize,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl TableRows {
    pub(crate) fn new(columns: &[&'static str], left: usize) -> Self {
        Self { columns: columns.to_vec(), left, rows: Vec::new() }
    }
}

pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> Result<(), CliError> {
    let (file, words) = args.what_and_file.split_last().expect("clap asks for two or three");
    let view = parse_view(words)?;
    let phase = args.phase.as_deref().map(parse_phase).transpose()?;
    let compiled = match load::any_compiled_file(Path::new(file), terminal)? {
        Either::Phases(compiled) => *compiled,
        Either::Steps(compiled) => return of_steps(&compiled, &view, phase, args, terminal),
    };
    let only = Selection { phase, set: args.set_name.as_deref() };
    only.check(&compiled)?;
    if matches!(view, ScheduleView::Summary) {
        return summary(&compiled, &only, terminal);
    }
    let rows = match view {
        ScheduleView::Summary => unreachable!("shown above"),
        ScheduleView::Phases => phases(&compiled, &only),
        ScheduleView::Steps => {
            let error = InputError::new("show", At::Path("steps".into()), "a schedule of phases");
            return Err(error.help("use show phases, or compile with --by steps").into());
        }
        ScheduleView::Routes => routes(&compiled, &only, |_| true),
        ScheduleView::Timetable => timetable(&compiled, &only),
        ScheduleView::Channels => channels(&compiled, &only),
        ScheduleView::Links => links(&compiled, &only),
        ScheduleView::Contexts => contexts(&compiled, &only, None),
        ScheduleView::Cell(cell) => {
            check_cell(compiled.schedule().machine(), cell)?;
            contexts(&compiled, &only, Some(cell))
        }
        ScheduleView::Connection(x) => {
            check_connection(&compiled, &only, x)?;
            routes(&compiled, &only, |route| route.connection == x)
        }
    };
    print(&rows, terminal)
}

/// Shows a schedule of steps.
fn of_steps(
    compiled: &CompiledSteps,
    view: &ScheduleView,
    phase: Option<PhaseId>,
    args: &ShowArgs,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if phase.is_some() {
        let error = InputError::new("--phase", At::Whole, "a schedule of steps has no phases");
        return Err(error.help("leave out --phase").into());
    }
    let names: Vec<&str> =
        compiled.schedule().sets().iter().map(|set| set.steps.set().name()).collect();
    let only = args.set_name.as_deref();
    check_set(only, &names)?;
    match steps::view(compiled, view, only)? {
        None => {
            let claimed = compiled.clone().with_claims();
            let claimed = claimed.map_err(|error| CliError::of_compile(error, &[]))?;
            steps::write_summary(&claimed, only, terminal)
        }
        Some(rows) => print(&rows, terminal),
    }
}

/// Refuses the name of a set that does not exist.
fn check_set(wanted: Option<&str>, names: &[&str]) -> Result<(), InputError> {
    match wanted.filter(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => Err(InputError::new("--set", At::Path(name.into()), "no set of that name")
            .help(format!("sets: {}", names.join(", ")))),
    }
}

fn parse_phase(word: &str) -> Result<PhaseId, InputError> {
    let digits = word.strip_prefix(PhaseId::PREFIX).unwrap_or(word);
    digits.parse().map(PhaseId).map_err(|_| {
        InputError::new(
            "--phase",
            At::Path(word.into()),
            "not a phase; expected for example 3 or p3",
        )
    })
}

fn summary(compiled: &Compiled, only: &Selection<'_>, terminal: &Terminal) -> Result<(), CliError> {
    if only.phase.is_some() {
        let error = InputError::new("--phase", At::Whole, "the summary covers whole sets");
        return Err(error.help("use show phases to see each phase").into());
    }
    let mut summary = Summary::new(compiled, None);
    summary.sets.retain(|set| only.set.is_none_or(|name| name == set.set));
    terminal.print(&summary, |out| write_summary(out, &summary))
}

fn parse_view(words: &[String]) -> Result<ScheduleView, InputError> {
    let wrong = |message: String| {
        InputError::new("show", At::Path(words.join(" ")), message).help(
            "WHAT is summary, phases, routes, timetable, channels, links, contexts, cell C or \
             connection X; of a schedule of steps: summary, steps, cell C or connection X",
        )
    };
    let id = |word: &str, prefix: &str| {
        let digits = word.strip_prefix(prefix).unwrap_or(word);
        digits.parse::<u32>().map_err(|_| wrong(format!("`{word}` is not an id like {prefix}5")))
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        ["summary"] => ScheduleView::Summary,
        ["phases"] => ScheduleView::Phases,
        ["steps"] => ScheduleView::Steps,
        ["routes"] => ScheduleView::Routes,
        ["timetable"] => ScheduleView::Timetable,
        ["channels"] => ScheduleView::Channels,
        ["links"] => ScheduleView::Links,
        ["contexts"] => ScheduleView::Contexts,
        ["cell", word] => ScheduleView::Cell(CellId(id(word, CellId::PREFIX)?)),
        ["connection", word] => {
            ScheduleView::Connection(ConnectionId(id(word, ConnectionId::PREFIX)?))
        }
        ["cell" | "connection"] => return Err(wrong(format!("which {}?", words[0]))),
        _ => return Err(wrong(format!("unknown view `{}`", words.join(" ")))),
    })
}

/// The part of a schedule to show.
struct Selection<'a> {
    phase: Option<PhaseId>,
    set: Option<&'a str>,
}

impl Selection<'_> {
    fn check(&self, compiled: &Compiled) -> Result<(), InputError> {
        let sets = compiled.schedule().sets();
        let names: Vec<&str> = sets.iter().map(|s| s.timetable.routing().set().name()).collect();
        check_set(self.set, &names)?;
        let most = self.sets(compiled).map(|(_, s)| s.timetable.phases().len()).max().unwrap_or(0);
        if let Some(phase) = self.phase.filter(|phase| phase.index() >= most) {
            return Err(InputError::new(
                "--phase",
                At::Path(phase.to_string()),
                match most {
                    0 => "there are no phases".to_owned(),
                    most => format!("the phases are p0 to p{}", most - 1),
                },
            ));
        }
        Ok(())
    }

    fn sets<'b>(&self, compiled: &'b Compiled) -> impl Iterator<Item = (usize, &'b SetSchedule)> {
        compiled
            .schedule()
            .sets()
            .iter()
            .enumerate()
            .filter(|(_, s)| self.set.is_none_or(|name| s.timetable.routing().set().name() == name))
    }

    /// Visits every selected route with its set, phase and slot.
    fn for_each_route<'b>(
        &self,
        compiled: &'b Compiled,
        mut visit: impl FnMut(&'b SetSchedule, PhaseId, RouteRef<'b>, Slot),
    ) {
        for (_, set) in self.sets(compiled) {
            for ((id, routes), times) in set.timetable.routing().iter().zip(set.timetable.phases())
            {
                if self.phase.is_none_or(|phase| phase == id) {
                    for (route, &slot) in routes.iter().zip(&times.slots) {
                        visit(set, id, route, slot);
                    }
                }
            }
        }
    }
}

fn check_cell(machine: &Machine, cell: CellId) -> Result<(), InputError> {
    if cell.index() < machine.cell_count() {
        return Ok(());
    }
    Err(InputError::new(
        "show cell",
        At::Path(cell.to_string()),
        format!("the machine has cells c0 to c{}", machine.cell_count() - 1),
    ))
}

fn check_connection(
    compiled: &Compiled,
    only: &Selection<'_>,
    x: ConnectionId,
) -> Result<(), InputError> {
    let most = only.sets(compiled).map(|(_, s)| s.timetable.routing().set().len()).max();
    let most = most.unwrap_or(0);
    if x.index() < most {
        return Ok(());
    }
    Err(InputError::new(
        "show connection",
        At::Path(x.to_string()),
        match most {
            0 => "there are no connections".to_owned(),
            most => format!("the connections are x0 to x{}", most - 1),
        },
    ))
}

fn phases(compiled: &Compiled, only: &Selection<'_>) -> TableRows {
    // With timed starts, the length of a phase without contention is proved.
    let timed = compiled.schedule().machine().parameters().has_timed_starts();
    let columns = [
        "set",
        "phase",
        "routes",
        "words",
        "hops",
        "makespan",
        "predicted",
        "max_sharing",
        "proved",
    ];
    let mut rows = TableRows::new(&columns[..if timed { 9 } else { 8 }], 2);
    for (index, set) in only.sets(compiled) {
        let lengths = conset::verify::phase_lengths(&set.timetable);
        let prediction = &compiled.sets()[index].prediction;
        let routing = set.timetable.routing();
        for (id, phase) in routing.iter() {
            if only.phase.is_some_and(|wanted| wanted != id) {
                continue;
            }
            let predicted = &prediction.phases[id.index()];
            rows.rows.push(vec![
                routing.set().name().into(),
                id.to_string().into(),
                phase.len().into(),
                phase.iter().map(|r| u64::from(r.words)).sum::<u64>().into(),
                phase.iter().map(|r| to_u64(r.hops())).sum::<u64>().into(),
                set.timetable.phases()[id.index()].makespan.into(),
                predicted.clocks.into(),
                predicted.max_sharing.into(),
            ]);
            if let Some(row) = rows.rows.last_mut().filter(|_| timed) {
                row.push(lengths[id.index()].map_or(Value::from("no"), Value::from));
            }
        }
    }
    rows
}

/// `c3/ch0 -> c4/ch5`, as in the text form.
fn path(route: &RouteRef<'_>) -> String {
    let stops: Vec<String> =
        route.cells.iter().zip(route.channels).map(|(c, ch)| format!("{c}/{ch}")).collect();
    stops.join(" -> ")
}

fn routes(
    compiled: &Compiled,
    only: &Selection<'_>,
    keep: impl Fn(&RouteRef<'_>) -> bool,
) -> TableRows {
    let mut rows = TableRows::new(
        &["set", "phase", "connection", "name", "route", "words", "hops", "start", "duration"],
        5,
    );
    only.for_each_route(compiled, |set, phase, route, slot| {
        if keep(&route) {
            let set = set.timetable.routing().set();
            rows.rows.push(vec![
                set.name().into(),
                phase.to_string().into(),
                route.connection.to_string().into(),
                set.get(route.connection).name.as_deref().unwrap_or("").into(),
                path(&route).into(),
                route.words.into(),
                route.hops().into(),
                slot.start.into(),
                slot.duration.into(),
            ]);
        }
    });
    rows
}

fn timetable(compiled: &Compiled, only: &Selection<'_>) -> TableRows {
    let mut listed = Vec::new();
    only.for_each_route(compiled, |set, phase, route, slot| {
        listed.push((set, phase, slot, route));
    });
    // The sort is stable, so sets stay in their order of execution.
    listed.sort_by_key(|(_, phase, slot, route)| (*phase, slot.start, route.connection));
    let mut rows = TableRows::new(
        &["set", "phase", "connection", "source", "target", "start", "end", "words"],
        5,
    );
    for (set, phase, slot, route) in listed {
        let set = set.timetable.routing().set();
        let connection = set.get(route.connection);
        rows.rows.push(vec![
            set.name().into(),
            phase.to_string().into(),
            route.connection.to_string().into(),
            connection.source.to_string().into(),
            connection.target.to_string().into(),
            slot.start.into(),
            slot.end().into(),
            route.words.into(),
        ]);
    }
    rows
}

fn channels(compiled: &Compiled, only: &Selection<'_>) -> TableRows {
    let machine = compiled.schedule().machine();
    let mut rows = TableRows::new(&["set", "phase", "cell", "used", "of", "words"], 3);
    for_each_phase(compiled, only, |set, phase, routes| {
        let mut used = vec![(0u64, 0u64); machine.cell_count()];
        for route in routes.iter() {
            for cell in route.cells {
                used[cell.index()].0 += 1;
                used[cell.index()].1 += u64::from(route.words);
            }
        }
        for (cell, (count, words)) in used.into_iter().enumerate().filter(|(_, u)| u.0 > 0) {
            rows.rows.push(vec![
                set.into(),
                phase.to_string().into(),
                CellId::from_index(cell).to_string().into(),
                count.into(),
                machine.parameters().channels_per_cell.into(),
                words.into(),
            ]);
        }
    });
    rows
}

fn links(compiled: &Compiled, only: &Selection<'_>) -> TableRows {
    let machine = compiled.schedule().machine();
    let mut rows =
        TableRows::new(&["set", "phase", "link", "from", "to", "routes", "words", "clocks"], 5);
    for_each_phase(compiled, only, |set, phase, routes| {
        let mut used = vec![(0u64, 0u64); machine.link_count()];
        for route in routes.iter() {
            for link in route.links() {
                used[link.index()].0 += 1;
                used[link.index()].1 += u64::from(route.words);
            }
        }
        for (row, (count, words)) in used.into_iter().enumerate().filter(|(_, u)| u.0 > 0) {
            let id = conset_ir::LinkId::from_index(row);
            let link = machine.link(id);
            rows.rows.push(vec![
                set.into(),
                phase.to_string().into(),
                id.to_string().into(),
                link.source.to_string().into(),
                link.target.to_string().into(),
                count.into(),
                words.into(),
                (words * u64::from(machine.parameters().link_clocks_per_word)).into(),
            ]);
        }
    });
    rows
}

fn for_each_phase(
    compiled: &Compiled,
    only: &Selection<'_>,
    mut visit: impl FnMut(&str, PhaseId, &conset_ir::PhaseRoutes),
) {
    for (_, set) in only.sets(compiled) {
        let routing = set.timetable.routing();
        for (id, phase) in routing.iter() {
            if only.phase.is_none_or(|wanted| wanted == id) {
                visit(routing.set().name(), id, phase);
            }
        }
    }
}

/// Forwarding tables and operation lists, of one cell or of all.
fn contexts(compiled: &Compiled, only: &Selection<'_>, cell: Option<CellId>) -> TableRows {
    let mut rows = TableRows::new(
        &["set", "phase", "cell", "what", "channel", "from", "to", "start", "words"],
        7,
    );
    for (index, set) in only.sets(compiled) {
        let name = set.timetable.routing().set().name();
        for (p, phase) in compiled.image().sets()[index].phases.iter().enumerate() {
            let p = PhaseId::from_index(p);
            if only.phase.is_some_and(|wanted| wanted != p) {
                continue;
            }
            for (id, context) in phase.cells().filter(|(id, _)| cell.is_none_or(|c| c == *id)) {
                let head = [name.to_owned(), p.to_string(), id.to_string()].map(Value::from);
                for entry in context.entries {
                    let from = match entry.feed {
                        Feed::Gate(x) => format!("gate {x}"),
                        Feed::Link(link) => link.to_string(),
                    };
                    let to = match entry.sink {
                        Sink::Gate(x) => format!("gate {x}"),
                        Sink::Forward { link, channel } => format!("{link}/{channel}"),
                    };
                    let tail = ["forward".to_owned(), entry.channel.to_string(), from, to];
                    let mut row = head.to_vec();
                    row.extend(tail.map(Value::from));
                    row.extend([Value::Null, Value::Null]);
                    rows.rows.push(row);
                }
                for op in context.operations {
                    let (what, from, to) = match op.direction {
                        conset_ir::Direction::Send => ("send", op.connection.to_string(), "gate"),
                        conset_ir::Direction::Receive => ("receive", "gate".to_owned(), ""),
                    };
                    let to = if to.is_empty() { op.connection.to_string() } else { to.to_owned() };
                    let tail = [what.to_owned(), op.channel.to_string(), from, to];
                    let mut row = head.to_vec();
                    row.extend(tail.map(Value::from));
                    row.extend([op.start.into(), op.words.into()]);
                    rows.rows.push(row);
                }
            }
        }
    }
    rows
}

/// Rows as JSON.
#[derive(Serialize)]
struct ShownRows {
    rows: Vec<Map<String, Value>>,
}

fn print(rows: &TableRows, terminal: &Terminal) -> Result<(), CliError> {
    let objects: Vec<Map<String, Value>> = if terminal.json {
        rows.rows
            .iter()
            .map(|row| {
                rows.columns.iter().map(|c| (*c).to_owned()).zip(row.iter().cloned()).collect()
            })
            .collect()
    } else {
        Vec::new()
    };
    terminal.print(&ShownRows { rows: objects }, |out| {
        let mut table = text::table(&rows.columns, rows.left);
        for row in &rows.rows {
            table.add_row(row.iter().map(|value| match value {
                Value::String(words) => words.clone(),
                Value::Null => String::new(),
                other => other.as_u64().map_or_else(|| other.to_string(), text::number),
            }));
        }
        text::write_table(out, &table)
    })
}
