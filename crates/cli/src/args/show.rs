//! The arguments of `conset show`, and the options of profiles.

use std::path::Path;

use clap::{Args, ValueEnum};
use conset_ir::limits;

use super::whole;
use crate::commands::show::is_view;

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
    words: Vec<String>,
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
    pub(crate) fn file_and_view(&self) -> (&str, &[String]) {
        let (first, after) = self.words.split_first().expect("clap asks for one");
        let (last, before) = self.words.split_last().expect("clap asks for one");
        let exists = |word: &str| word == "-" || Path::new(word).exists();
        let view_first = match is_view(first) {
            // A file may have the name of a view.
            true => !exists(first) || exists(last),
            false => !exists(first) && exists(last),
        };
        if view_first && !before.is_empty() { (last, before) } else { (first, after) }
    }
}
