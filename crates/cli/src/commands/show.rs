//! `conset show`: views of a compiled schedule.
//!
//! Each view is a list of rows, made by one function of the submodules and printed by [`crate::rows`];
//! maps and charts are drawn as text. The checker verifies the schedule first. Views of what a schedule
//! states are also those of one that it refuses (module `refused`).

mod columns;
mod gantt;
mod map;
mod selection;
mod steps;
mod tables;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;

use conset::Compiled;
use conset::fabric::messages::MessageRoutes;
use conset::report::{MachineSummary, Summary, UncheckedSet};
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{
    At, CellId, ConnectionId, ConnectionSet, InputError, LinkId, Machine, PhaseId, Schedule,
    StepSchedule,
};
use serde::Serialize;

use crate::args::{ShowArgs, is_view, view_names};
use crate::commands::compile::write_summary;
use crate::commands::profile::{self, ProfileFilter};
use crate::commands::steps as step_views;
use crate::error::CliError;
use crate::load::Either;
use crate::progress::ProgressDisplay;
use crate::refused::{self, Readable, Refused, RefusedSchedule};
use crate::rows::{self, TableRows};
use crate::text::{self, Terminal};
use columns::add_links;
use gantt::Gantt;
use map::LinkLoads;
use selection::{Selection, check_cell, check_set};
pub(crate) use steps::StepSelection;

/// The links of a map's table, on machines without a map.
const TABLE_LINKS: usize = 20;

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
    Cells,
    Map,
    Gantt,
    Profile,
    Cell(CellId),
    /// By number (`l148`) or ends (`c37 -> c38`).
    Link(String),
    /// By id, name or ends.
    Connection(String),
}

pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> Result<(), CliError> {
    let (file, words) = args.file_and_view();
    let view = parse_view(words)?;
    let phase = args.phase.as_deref().map(parse_phase).transpose()?;
    let cell = args.cell.as_deref().map(|word| parse_id(&[word], word, CellId::PREFIX));
    let cell = cell.transpose()?.map(CellId);
    if let Some(option) = args.profile.given().filter(|_| !matches!(view, ScheduleView::Profile)) {
        let error = InputError::new(option, At::Whole, format!("{option} is for profiles"));
        return Err(error.help("write conset show FILE profile").into());
    }
    let lone_view = file.to_str().filter(|name| words.is_empty() && is_view(name));
    if let Some(name) = lone_view.filter(|_| !file.exists()) {
        let message = format!("which schedule? `{name}` is a view");
        let error = InputError::new("show", At::Path(name.to_owned()), message);
        return Err(error.help(format!("write conset show FILE {name}")).into());
    }
    let shown = Shown { view: &view, phase, cell, args, terminal };
    match refused::readable_file(file, terminal)? {
        Readable::Checked(Either::Phases(compiled)) => {
            shown.of_phases(compiled.schedule(), Some(&compiled)).map(|_| ())
        }
        Readable::Checked(Either::Steps(compiled)) => {
            shown.of_steps(compiled.schedule(), Some(&compiled)).map(|_| ())
        }
        Readable::Refused(Refused { name, schedule, rejection }) => {
            terminal.mark_refused((*rejection).clone());
            let is_shown = match &schedule {
                RefusedSchedule::Phases(schedule) => shown.of_phases(schedule, None)?,
                RefusedSchedule::Steps(schedule) => shown.of_steps(schedule, None)?,
            };
            Err(match is_shown {
                true => refused::shown(&name),
                false => CliError::Violations { file: Some(name), rejection },
            })
        }
    }
}

/// What is shown, and how.
struct Shown<'a> {
    view: &'a ScheduleView,
    phase: Option<PhaseId>,
    cell: Option<CellId>,
    args: &'a ShowArgs,
    terminal: &'a Terminal,
}

impl Shown<'_> {
    /// Shows a schedule of phases; `compiled` is what follows from it if it is correct. Returns `false`
    /// if the view needs that and there is none.
    fn of_phases(
        &self,
        schedule: &Schedule,
        compiled: Option<&Compiled>,
    ) -> Result<bool, CliError> {
        let Shown { view, phase, cell, args, terminal } = *self;
        let set = args.set_name.as_deref();
        let only = Selection { phase, set, cell, min_words: args.min_words.unwrap_or(0) };
        only.check(schedule)?;
        let machine = schedule.machine();
        let mut rows = match (view, compiled) {
            (ScheduleView::Summary, _) => {
                return summary(schedule, compiled, &only, terminal).map(|()| true);
            }
            (ScheduleView::Map, _) => return maps(schedule, &only, terminal).map(|()| true),
            (ScheduleView::Phases, _) => tables::phases(schedule, compiled, &only),
            (ScheduleView::Steps, _) => {
                let at = At::Path("steps".into());
                let error = InputError::new("show", at, "a schedule of phases");
                return Err(error.help("use show phases, or compile with --by steps").into());
            }
            (ScheduleView::Routes, _) => tables::routes(schedule, &only, |_, _| true),
            (ScheduleView::Timetable, _) => tables::timetable(schedule, &only),
            (ScheduleView::Channels, _) => tables::channels(schedule, &only),
            (ScheduleView::Links, _) => tables::links(schedule, &only),
            (ScheduleView::Link(word), _) => {
                let links = find_links(machine, word)?;
                tables::routes(schedule, &only, |_, route| {
                    route.links().iter().any(|link| links.contains(link))
                })
            }
            (ScheduleView::Connection(word), _) => {
                let sets = schedule.sets().iter().map(|s| s.timetable.routing().set());
                let sets: Vec<&ConnectionSet> = sets
                    .map(|set| &**set)
                    .filter(|s| set.is_none_or(|name| name == s.name()))
                    .collect();
                let wanted = find_connections(&sets, word)?;
                tables::routes(schedule, &only, |set, route| {
                    wanted.binary_search(&(set.name().to_owned(), route.connection)).is_ok()
                })
            }
            (ScheduleView::Cell(cell), Some(compiled)) => {
                check_cell(machine, *cell)?;
                tables::contexts(compiled, &only, Some(*cell))
            }
            (ScheduleView::Contexts, Some(compiled)) => tables::contexts(compiled, &only, None),
            (ScheduleView::Cells, Some(compiled)) => tables::cells(compiled, &only),
            (ScheduleView::Gantt, Some(compiled)) => {
                let charts = gantt::charts(compiled, &only, args.by);
                return draw_charts(&charts, args, terminal).map(|()| true);
            }
            (ScheduleView::Profile, Some(compiled)) => {
                let mut bar = ProgressDisplay::new(terminal.quiet);
                let report = profile::of_model(compiled, set, args.profile, &mut bar)?;
                drop(bar);
                let filter = ProfileFilter { cells: args.profile.cells, phase, cell };
                return profile::print(&report, filter, terminal).map(|()| true);
            }
            (_, None) => return Ok(false),
        };
        arrange(&mut rows, view, args)?;
        rows.print(terminal).map(|()| true)
    }

    /// Shows a schedule of steps, as [`Shown::of_phases`].
    fn of_steps(
        &self,
        schedule: &StepSchedule,
        compiled: Option<&CompiledSteps>,
    ) -> Result<bool, CliError> {
        let Shown { view, phase, cell, args, terminal } = *self;
        if phase.is_some() {
            let error = InputError::new("--phase", At::Whole, "a schedule of steps has no phases");
            return Err(error.help("leave out --phase").into());
        }
        let set = args.set_name.as_deref();
        let names = schedule.sets().iter().map(|set| set.steps.set().name());
        check_set(set, &names.collect::<Vec<_>>())?;
        let machine = schedule.machine();
        if let Some(cell) = cell {
            check_cell(machine, cell)?;
        }
        let only = StepSelection { set, cell, min_words: args.min_words.unwrap_or(0) };
        let mut rows = match (view, compiled) {
            (ScheduleView::Links, _) => steps::links(schedule, &only),
            (ScheduleView::Map, _) => {
                let sets = only.sets(schedule).map(|set| {
                    (set.steps.set().name().to_owned(), steps::loads(machine, set, &only))
                });
                let maps: Vec<(String, LinkLoads)> = sets.collect();
                let draw = |out: &mut dyn Write| {
                    maps.iter().try_for_each(|(title, loads)| write_map(out, title, machine, loads))
                };
                return steps::links(schedule, &only).print_drawn(terminal, draw).map(|()| true);
            }
            (ScheduleView::Link(word), _) => {
                let links = find_links(machine, word)?;
                let mut routes = MessageRoutes::new(machine);
                step_views::messages(only.sets(schedule), |_, message| {
                    only.has(message)
                        && steps::route(&mut routes, message)
                            .iter()
                            .any(|link| links.contains(link))
                })
            }
            (ScheduleView::Cells, Some(compiled)) => steps::cells(compiled, &only),
            (ScheduleView::Gantt, Some(compiled)) => {
                let charts = gantt::charts_of_steps(compiled, &only, args.by);
                return draw_charts(&charts, args, terminal).map(|()| true);
            }
            (ScheduleView::Profile, Some(compiled)) => {
                let mut bar = ProgressDisplay::new(terminal.quiet);
                let report = profile::of_steps_model(compiled, set, args.profile, &mut bar)?;
                drop(bar);
                let filter = ProfileFilter { cells: args.profile.cells, phase: None, cell };
                return profile::print(&report, filter, terminal).map(|()| true);
            }
            (ScheduleView::Summary, Some(compiled)) => {
                let claimed = compiled.clone().with_claims();
                let claimed = claimed.map_err(|error| CliError::of_compile(error, &[]))?;
                return step_views::write_summary(&claimed, set, terminal).map(|()| true);
            }
            (ScheduleView::Summary, None) => {
                let sets = only.sets(schedule).map(UncheckedSet::of_steps);
                return unchecked_summary(machine, sets.collect(), terminal).map(|()| true);
            }
            (ScheduleView::Cells | ScheduleView::Gantt | ScheduleView::Profile, None) => {
                return Ok(false);
            }
            _ => step_views::view(schedule, view, &only)?,
        };
        arrange(&mut rows, view, args)?;
        rows.print(terminal).map(|()| true)
    }
}

/// Draws charts, or with `--json` prints their rows.
fn draw_charts(charts: &[Gantt], args: &ShowArgs, terminal: &Terminal) -> Result<(), CliError> {
    gantt::rows(charts).print_drawn(terminal, |out| {
        charts.iter().try_for_each(|chart| write!(out, "{}", chart.draw(args.width)))
    })
}

/// Sorts and shortens the rows of a view as the options say.
fn arrange(rows: &mut TableRows, view: &ScheduleView, args: &ShowArgs) -> Result<(), InputError> {
    let greatest = match view {
        ScheduleView::Links => Some("clocks"),
        ScheduleView::Cells => Some("idle"),
        ScheduleView::Routes
        | ScheduleView::Timetable
        | ScheduleView::Link(_)
        | ScheduleView::Steps => Some("words"),
        _ => None,
    };
    let greatest = greatest.filter(|_| args.top.is_some());
    rows.arrange(args.sort.as_deref().or(greatest), args.top)
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

fn summary(
    schedule: &Schedule,
    compiled: Option<&Compiled>,
    only: &Selection<'_>,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if only.phase.is_some() {
        let error = InputError::new("--phase", At::Whole, "the summary covers whole sets");
        return Err(error.help("use show phases to see each phase").into());
    }
    let Some(compiled) = compiled else {
        let sets = only.sets(schedule).map(|(_, set)| UncheckedSet::of_phases(set)).collect();
        return unchecked_summary(schedule.machine(), sets, terminal);
    };
    let mut summary = Summary::new(compiled, None);
    summary.sets.retain(|set| only.set.is_none_or(|name| name == set.set));
    rows::print(
        terminal,
        &summary,
        || tables::summary(&summary),
        |out| write_summary(out, &summary),
    )
}

/// The summary of a schedule that the checker refused.
#[derive(Serialize)]
struct UncheckedSummary {
    machine: MachineSummary,
    sets: Vec<UncheckedSet>,
}

fn unchecked_summary(
    machine: &Machine,
    sets: Vec<UncheckedSet>,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let summary = UncheckedSummary { machine: MachineSummary::new(machine), sets };
    terminal.print(&summary, |out| {
        step_views::write_machine(out, machine)?;
        for set in &summary.sets {
            let (connections, words) = (to_u64(set.connections), set.words);
            let counts = [
                (Some(connections), "connection"),
                (Some(words), "word"),
                (set.phases.map(to_u64), "phase"),
                (set.steps.map(to_u64), "step"),
                (set.messages.map(to_u64), "message"),
            ];
            let counts = counts.iter().filter_map(|&(n, one)| n.map(|n| text::count(n, one)));
            writeln!(out, "set      {}: {}", set.set, counts.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    })
}

/// Draws the machine with the loads of its links, one map for each selected set and phase.
fn maps(schedule: &Schedule, only: &Selection<'_>, terminal: &Terminal) -> Result<(), CliError> {
    let machine = schedule.machine();
    tables::links(schedule, only).print_drawn(terminal, |out| {
        for (_, set) in only.sets(schedule) {
            let routing = set.timetable.routing();
            for (phase, routes) in routing.iter().filter(|(phase, _)| only.has_phase(*phase)) {
                let mut loads = LinkLoads::new(machine);
                routes
                    .iter()
                    .filter(|route| only.has(route))
                    .for_each(|route| loads.add(route.links(), route.words.into()));
                let title = format!("{} {phase}", routing.set().name());
                write_map(out, &title, machine, &loads)?;
            }
        }
        Ok(())
    })
}

/// A map, or a table of the busiest links of a machine that has none.
fn write_map(
    out: &mut dyn Write,
    title: &str,
    machine: &Machine,
    loads: &LinkLoads,
) -> std::io::Result<()> {
    writeln!(out, "{title}: words over each link")?;
    if let Some(drawn) = map::draw(machine, loads) {
        return write!(out, "{drawn}");
    }
    let columns = ["link", "source", "target", "routes", "words", "clocks"];
    let mut rows = TableRows::new(&columns, 3);
    add_links(&mut rows, &[], machine, loads, None);
    rows.arrange(Some("words"), Some(TABLE_LINKS)).expect("there is such a column");
    rows.write_human(out)
}

fn wrong(words: &[&str], message: String) -> InputError {
    let views = view_names(false);
    let help = format!("WHAT is {views}; of a schedule of steps {}", view_names(true));
    InputError::new("show", At::Path(words.join(" ")), message).help(help)
}

fn parse_id(words: &[&str], word: &str, prefix: &str) -> Result<u32, InputError> {
    let digits = word.strip_prefix(prefix).unwrap_or(word);
    let parsed = digits.parse::<u32>();
    parsed.map_err(|_| wrong(words, format!("`{word}` is not an id like {prefix}5")))
}

fn parse_view(words: &[OsString]) -> Result<ScheduleView, InputError> {
    let words: Vec<Cow<'_, str>> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    Ok(match words.as_slice() {
        [] | ["summary"] => ScheduleView::Summary,
        ["phases"] => ScheduleView::Phases,
        ["steps"] => ScheduleView::Steps,
        ["routes"] => ScheduleView::Routes,
        ["timetable"] => ScheduleView::Timetable,
        ["channels"] => ScheduleView::Channels,
        ["links"] => ScheduleView::Links,
        ["contexts"] => ScheduleView::Contexts,
        ["cells"] => ScheduleView::Cells,
        ["map"] => ScheduleView::Map,
        ["gantt"] => ScheduleView::Gantt,
        ["profile"] => ScheduleView::Profile,
        ["cell", word] => ScheduleView::Cell(CellId(parse_id(&words, word, CellId::PREFIX)?)),
        ["link", word] => ScheduleView::Link((*word).to_owned()),
        ["connection", word] => ScheduleView::Connection((*word).to_owned()),
        ["cell" | "link" | "connection"] => {
            return Err(wrong(&words, format!("which {}?", words[0])));
        }
        _ => return Err(wrong(&words, format!("unknown view `{}`", words.join(" ")))),
    })
}

/// Two cells, as in `c45 -> c37` or `c45->c37`.
fn parse_ends(word: &str) -> Option<(CellId, CellId)> {
    let (from, to) = word.split_once("->")?;
    let cell = |word: &str| {
        let word = word.trim();
        word.strip_prefix(CellId::PREFIX).unwrap_or(word).parse().ok().map(CellId)
    };
    Some((cell(from)?, cell(to)?))
}

/// The links with a number or ends.
fn find_links(machine: &Machine, word: &str) -> Result<Vec<LinkId>, InputError> {
    let fail = |message: String, help: String| {
        Err(InputError::new("show link", At::Path(word.to_owned()), message).help(help))
    };
    if let Some((from, to)) = parse_ends(word) {
        check_cell(machine, from)?;
        check_cell(machine, to)?;
        let links: Vec<LinkId> = machine.links_between(from, to).collect();
        if links.is_empty() {
            let next = machine.outgoing(from).iter().map(|&link| machine.link(link).target);
            let next: Vec<String> = next.map(|cell| cell.to_string()).collect();
            let message = format!("no link joins {from} to {to}");
            return fail(message, format!("links from {from} lead to {}", next.join(", ")));
        }
        return Ok(links);
    }
    let link = parse_id(&["link", word], word, LinkId::PREFIX)?;
    if to_u64(machine.link_count()) <= u64::from(link) {
        let last = match machine.link_count() {
            0 => "the machine has no links".to_owned(),
            count => format!("the machine has links l0 to l{}", count - 1),
        };
        return fail(last, "a link can also be named by its ends: 'c0 -> c1'".to_owned());
    }
    Ok(vec![LinkId(link)])
}

/// The connections with an id, a name or ends, by set, in order.
pub(crate) fn find_connections(
    sets: &[&ConnectionSet],
    word: &str,
) -> Result<Vec<(String, ConnectionId)>, InputError> {
    let ends = parse_ends(word);
    let id = word.strip_prefix(ConnectionId::PREFIX).unwrap_or(word).parse().ok();
    let mut found = Vec::new();
    for set in sets {
        let fits = |x: ConnectionId| {
            let connection = set.get(x);
            let name = connection.name.as_deref() == Some(word);
            let ends = ends == Some((connection.source, connection.target));
            name || ends || Some(x) == id.map(ConnectionId)
        };
        let fitting = set.iter().map(|(x, _)| x).filter(|&x| fits(x));
        found.extend(fitting.map(|x| (set.name().to_owned(), x)));
    }
    if !found.is_empty() {
        found.sort_unstable();
        return Ok(found);
    }
    let most = sets.iter().map(|set| set.len()).max().unwrap_or(0);
    let message = match (most, ends, id) {
        (0, ..) => "there are no connections".to_owned(),
        (_, Some((source, target)), _) => format!("no connection is from {source} to {target}"),
        (_, None, Some(_)) => format!("the connections are x0 to x{}", most - 1),
        (..) => "no connection has this name".to_owned(),
    };
    let shown = match id {
        Some(id) => ConnectionId(id).to_string(),
        None => word.to_owned(),
    };
    Err(InputError::new("show connection", At::Path(shown), message)
        .help("write an id, 12 or x12, a name, or ends: 'c45 -> c37'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::VIEWS;

    #[test]
    fn every_view_of_the_help_is_understood() {
        for view in &VIEWS {
            let mut words = vec![OsString::from(view.name)];
            let is_whole = parse_view(&words).is_ok();
            assert_eq!(is_whole, view.argument.is_empty(), "{}", view.name);
            words.push("0".into());
            assert_eq!(parse_view(&words).is_ok(), !is_whole, "{}", view.name);
        }
    }
}
