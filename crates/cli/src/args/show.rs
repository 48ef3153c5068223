//! The arguments of `conset show`, and the options of profiles.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::Path;

use clap::{Args, ValueEnum};
use conset_ir::limits;

use super::{TableArgs, whole};

/// A view of `conset show`.
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// What the name is followed by, such as a cell; empty for most.
    pub(crate) argument: &'static str,
    what: &'static str,
    kinds: ScheduleKinds,
}

/// The kinds of schedules that have a view.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScheduleKinds {
    Phases,
    Steps,
    Both,
}

const fn view(
    name: &'static str,
    argument: &'static str,
    kinds: ScheduleKinds,
    what: &'static str,
) -> View {
    View { name, argument, what, kinds }
}

/// All views.
pub(crate) const VIEWS: [View; 15] = {
    use ScheduleKinds::{Both, Phases, Steps};
    [
        view("summary", "", Both, "what was compiled, with its bounds (the default)"),
        view("phases", "", Phases, "the phases: routes, words, clocks"),
        view("steps", "", Steps, "the messages of each step"),
        view("routes", "", Phases, "every route, with its words and slot"),
        view("timetable", "", Phases, "the slots in the order of time"),
        view("channels", "", Phases, "the channels in use on each cell"),
        view("links", "", Both, "the load of each link, in each phase"),
        view("cells", "", Both, "the connections of each cell, and its busy and idle clocks"),
        view("contexts", "", Phases, "forwarding tables and operation lists"),
        view("map", "", Both, "the machine, with the words over each link"),
        view(
            "gantt",
            "",
            Both,
            "the predicted timetable as a chart: agents, or links with --by links",
        ),
        view("profile", "", Both, "where every predicted clock went, and the critical path"),
        view("cell", "C", Both, "tables and operations of a cell (5 or c5)"),
        view("link", "L", Both, "the routes over a link (148, l148 or 'c37 -> c38')"),
        view(
            "connection",
            "X",
            Both,
            "the routes of a connection (12, x12, its name or 'c45 -> c37')",
        ),
    ]
};

/// Whether a word is the name of a view.
pub(crate) fn is_view(word: &str) -> bool {
    VIEWS.iter().any(|view| view.name == word)
}

/// The views of a schedule as a sentence has them: `summary, steps, cell C or link L`.
pub(crate) fn view_names(of_steps: bool) -> String {
    let other = if of_steps { ScheduleKinds::Phases } else { ScheduleKinds::Steps };
    let views = VIEWS.iter().filter(|view| view.kinds != other);
    let names: Vec<String> = views
        .map(|view| format!("{} {}", view.name, view.argument).trim_end().to_owned())
        .collect();
    let (last, others) = names.split_last().expect("there are views");
    format!("{} or {last}", others.join(", "))
}

/// The end of the help of `conset show`.
pub(super) fn after_help() -> String {
    let mut help = "\
Example: conset show all.json cell 5
         conset show all.json links --top 10
         conset show all.json map --phase 3
         conset show all.json profile --what-if
         conset show all.json cells --format csv
WHAT is:
"
    .to_owned();
    for view in &VIEWS {
        let name = format!("{} {}", view.name, view.argument);
        let of = match view.kinds {
            ScheduleKinds::Both => "",
            ScheduleKinds::Phases => " [of phases]",
            ScheduleKinds::Steps => " [of steps]",
        };
        let _ = writeln!(help, "  {name:<13} {}{of}", view.what);
    }
    help + "Views marked [of phases] or [of steps] are for schedules of this kind."
}

/// What a profile shows beside the clocks of sets and phases.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ProfileOptions {
    /// Of a profile: the clocks of every cell, too.
    #[arg(long)]
    pub(crate) cells: bool,
    /// Of a profile: compile again with one more channel, one more stream, links twice as fast, half
    /// the switch, and show what that gives.
    #[arg(long)]
    pub(crate) what_if: bool,
}

impl ProfileOptions {
    /// The first option that is given, if any is.
    pub(crate) fn given(self) -> Option<&'static str> {
        [("--cells", self.cells), ("--what-if", self.what_if)]
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(option, _)| option)
    }
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The schedule, and what to show of it [default: summary]: `all.json phases`, `all.json cell 5`.
    #[arg(
        num_args = 1..,
        value_names = ["FILE", "WHAT"],
        required = true,
        allow_negative_numbers = true
    )]
    words: Vec<OsString>,
    /// Show only this phase (3 or p3).
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) phase: Option<String>,
    /// Show only this set.
    #[arg(long = "set", alias = "set-name", value_name = "NAME")]
    pub(crate) set_name: Option<String>,
    /// Show only what begins or ends at this cell (5 or c5).
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    pub(crate) cell: Option<String>,
    /// Show only routes and streams of at least this number of words.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(0, limits::WORDS.into()),
        allow_negative_numbers = true
    )]
    pub(crate) min_words: Option<u32>,
    /// Sort the rows by this column, numbers from the greatest to the least.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Show only the first N rows; of links the busiest, of cells the idlest, of routes the longest
    /// ones.
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(1, u32::MAX.into()),
        allow_negative_numbers = true
    )]
    pub(crate) top: Option<usize>,
    /// Of a gantt chart: its rows.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: GanttRows,
    /// Of a gantt chart: the characters of a line.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = whole::<usize>(20, 10_000),
        allow_negative_numbers = true
    )]
    pub(crate) width: usize,
    #[command(flatten)]
    pub(crate) profile: ProfileOptions,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

/// The rows of a gantt chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GanttRows {
    /// The ports of agents.
    #[default]
    Agents,
    /// Links.
    Links,
}

impl ShowArgs {
    /// The file and the words of the view. The file is first, or last after the name of a view.
    pub(crate) fn file_and_view(&self) -> (&Path, &[OsString]) {
        let (first, after) = self.words.split_first().expect("clap asks for one");
        let (last, before) = self.words.split_last().expect("clap asks for one");
        let exists = |word: &OsStr| word == "-" || Path::new(word).exists();
        let view_first = match first.to_str().is_some_and(is_view) {
            // A file may have the name of a view.
            true => !exists(first) || exists(last),
            false => !exists(first) && exists(last),
        };
        let (file, view) =
            if view_first && !before.is_empty() { (last, before) } else { (first, after) };
        (Path::new(file), view)
    }
}
