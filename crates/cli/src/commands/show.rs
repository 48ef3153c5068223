//! `conset show`: views of a compiled schedule.
//!
//! Each view is a list of rows, made by one function of the submodules and printed by [`crate::rows`];
//! maps and charts are drawn as text. The checker verifies the schedule first.

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
use conset::report::Summary;
use conset::steps::CompiledSteps;
use conset_ir::convert::to_u64;
use conset_ir::{At, CellId, ConnectionId, ConnectionSet, InputError, LinkId, Machine, PhaseId};

use crate::args::{ShowArgs, is_view, view_names};
use crate::commands::compile::write_summary;
use crate::commands::profile::{self, ProfileFilter};
use crate::commands::steps as step_views;
use crate::error::CliError;
use crate::load::{self, Either};
use crate::progress::ProgressDisplay;
use crate::rows::{self, TableRows};
use crate::text::Terminal;
use columns::add_links;
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
    let compiled = match load::any_compiled_file(file, terminal)? {
        Either::Phases(compiled) => *compiled,
        Either::Steps(compiled) => {
            return of_steps(*compiled, &view, (phase, cell), args, terminal);
        }
    };
    let set = args.set_name.as_deref();
    let only = Selection { phase, set, cell, min_words: args.min_words.unwrap_or(0) };
    only.check(&compiled)?;
    let machine = compiled.schedule().machine();
    let mut rows = match &view {
        ScheduleView::Summary => return summary(&compiled, &only, terminal),
        ScheduleView::Map => return maps(&compiled, &only, terminal),
        ScheduleView::Gantt => {
            let charts = gantt::charts(&compiled, &only, args.by);
            return gantt::rows(&charts).print_drawn(terminal, |out| {
                charts.iter().try_for_each(|chart| write!(out, "{}", chart.draw(args.width)))
            });
        }
        ScheduleView::Profile => {
            let mut bar = ProgressDisplay::new(terminal.quiet);
            let report = profile::of_model(&compiled, set, args.profile, &mut bar)?;
            drop(bar);
            let filter = ProfileFilter { cells: args.profile.cells, phase, cell };
            return profile::print(&report, filter, terminal);
        }
        ScheduleView::Phases => tables::phases(&compiled, &only),
        ScheduleView::Steps => {
            let error = InputError::new("show", At::Path("steps".into()), "a schedule of phases");
            return Err(error.help("use show phases, or compile with --by steps").into());
        }
        ScheduleView::Routes => tables::routes(&compiled, &only, |_, _| true),
        ScheduleView::Timetable => tables::timetable(&compiled, &only),
        ScheduleView::Channels => tables::channels(&compiled, &only),
        ScheduleView::Links => tables::links(&compiled, &only),
        ScheduleView::Contexts => tables::contexts(&compiled, &only, None),
        ScheduleView::Cells => tables::cells(&compiled, &only),
        ScheduleView::Cell(cell) => {
            check_cell(machine, *cell)?;
            tables::contexts(&compiled, &only, Some(*cell))
        }
        ScheduleView::Link(word) => {
            let links = find_links(machine, word)?;
            tables::routes(&compiled, &only, |_, route| {
                route.links().iter().any(|link| links.contains(link))
            })
        }
        ScheduleView::Connection(word) => {
            let sets = compiled.schedule().sets().iter().map(|s| s.timetable.routing().set());
            let sets: Vec<&ConnectionSet> = sets
                .map(|set| &**set)
                .filter(|s| set.is_none_or(|name| name == s.name()))
                .collect();
            let wanted = find_connections(&sets, word)?;
            tables::routes(&compiled, &only, |set, route| {
                wanted.binary_search(&(set.name().to_owned(), route.connection)).is_ok()
            })
        }
    };
    arrange(&mut rows, &view, args)?;
    rows.print(terminal)
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

/// Shows a schedule of steps.
fn of_steps(
    compiled: CompiledSteps,
    view: &ScheduleView,
    (phase, cell): (Option<PhaseId>, Option<CellId>),
    args: &ShowArgs,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if phase.is_some() {
        let error = InputError::new("--phase", At::Whole, "a schedule of steps has no phases");
        return Err(error.help("leave out --phase").into());
    }
    let set = args.set_name.as_deref();
    let names = compiled.schedule().sets().iter().map(|set| set.steps.set().name());
    check_set(set, &names.collect::<Vec<_>>())?;
    let machine = compiled.schedule().machine();
    if let Some(cell) = cell {
        check_cell(machine, cell)?;
    }
    let only = StepSelection { set, cell, min_words: args.min_words.unwrap_or(0) };
    let mut rows = match view {
        ScheduleView::Links => steps::links(&compiled, &only),
        ScheduleView::Cells => steps::cells(&compiled, &only),
        ScheduleView::Map => {
            let sets = only
                .sets(&compiled)
                .map(|set| (set.steps.set().name().to_owned(), steps::loads(machine, set, &only)));
            let maps: Vec<(String, LinkLoads)> = sets.collect();
            return steps::links(&compiled, &only).print_drawn(terminal, |out| {
                maps.iter().try_for_each(|(title, loads)| write_map(out, title, machine, loads))
            });
        }
        ScheduleView::Gantt => {
            let charts = gantt::charts_of_steps(&compiled, &only, args.by);
            return gantt::rows(&charts).print_drawn(terminal, |out| {
                charts.iter().try_for_each(|chart| write!(out, "{}", chart.draw(args.width)))
            });
        }
        ScheduleView::Profile => {
            let mut bar = ProgressDisplay::new(terminal.quiet);
            let report = profile::of_steps_model(&compiled, set, args.profile, &mut bar)?;
            drop(bar);
            let filter = ProfileFilter { cells: args.profile.cells, phase: None, cell };
            return profile::print(&report, filter, terminal);
        }
        ScheduleView::Link(word) => {
            let links = find_links(machine, word)?;
            let mut routes = MessageRoutes::new(machine);
            step_views::messages(only.sets(&compiled), |_, message| {
                only.has(message)
                    && steps::route(&mut routes, message).iter().any(|link| links.contains(link))
            })
        }
        _ => match step_views::view(&compiled, view, &only)? {
            None => {
                let claimed = compiled.with_claims();
                let claimed = claimed.map_err(|error| CliError::of_compile(error, &[]))?;
                return step_views::write_summary(&claimed, set, terminal);
            }
            Some(rows) => rows,
        },
    };
    arrange(&mut rows, view, args)?;
    rows.print(terminal)
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
    rows::print(
        terminal,
        &summary,
        || tables::summary(&summary),
        |out| write_summary(out, &summary),
    )
}

/// Draws the machine with the loads of its links, one map for each selected set and phase.
fn maps(compiled: &Compiled, only: &Selection<'_>, terminal: &Terminal) -> Result<(), CliError> {
    let machine = compiled.schedule().machine();
    tables::links(compiled, only).print_drawn(terminal, |out| {
        for (_, set) in only.sets(compiled) {
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
