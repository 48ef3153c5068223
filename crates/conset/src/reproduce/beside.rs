//! Tables of numbers beside a paper's, for papers whose tables are all of one kind.

use serde::Serialize;

use super::error_percent;

/// Our number, and the paper's if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Beside {
    /// Ours.
    pub ours: f64,
    /// The paper's.
    pub paper: Option<f64>,
    /// The difference, ours minus the paper's, in percent of the paper's.
    pub error_percent: Option<f64>,
}

impl Beside {
    pub(super) fn new(ours: f64, paper: Option<f64>) -> Self {
        Self { ours, paper, error_percent: paper.map(|paper| error_percent(ours, paper)) }
    }
}

/// Whether the paper has a table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exhibit {
    /// A table.
    Table,
    /// A figure; the paper has numbers only if it prints them.
    Figure,
}

/// A table or figure of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PaperTable {
    /// Table or figure.
    pub kind: Exhibit,
    /// Its number in the paper.
    pub number: u8,
    /// What it shows, and the unit.
    pub title: String,
    /// The heading of the rows' names, and of each column.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<PaperRow>,
    /// What else to say, a sentence each: statements of the paper and whether they hold, choices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A row of a [`PaperTable`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PaperRow {
    /// Its name.
    pub name: String,
    /// A cell for each column.
    pub cells: Vec<Beside>,
}

impl PaperTable {
    pub(super) fn new(
        (kind, number): (Exhibit, u8),
        title: impl Into<String>,
        columns: &[&str],
    ) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { kind, number, title: title.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn push(&mut self, name: impl Into<String>, cells: Vec<Beside>) {
        self.rows.push(PaperRow { name: name.into(), cells });
    }
}
