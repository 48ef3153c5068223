//! Rows of a view: fields that are numbers, ids or texts, printed as a table or as JSON.
//!
//! An id is printed with its letter, `c5`, and is an integer in JSON.

use std::io::Write;

use conset_ir::convert::to_u64;
use conset_ir::{At, CellId, ChannelId, ConnectionId, InputError, LinkId, PhaseId, StepId};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::text::{self, Terminal};

/// A field of a row.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// There is no value; the text in its place.
    Absent(&'static str),
    Number(u64),
    /// An id with its prefix.
    Id(&'static str, u32),
    Text(String),
}

impl Field {
    fn json(&self) -> Value {
        match self {
            Field::Absent(_) => Value::Null,
            Field::Number(number) => (*number).into(),
            Field::Id(_, id) => (*id).into(),
            Field::Text(text) => text.as_str().into(),
        }
    }

    fn text(&self) -> String {
        match self {
            Field::Absent(text) => (*text).to_owned(),
            Field::Number(number) => text::number(*number),
            Field::Id(prefix, id) => format!("{prefix}{id}"),
            Field::Text(text) => text.clone(),
        }
    }

    /// What fields that are not numbers are sorted by: words, then their number, so that `c2` is
    /// before `c10`.
    fn natural(&self) -> (String, u64) {
        let text = self.text();
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        (text[..text.len() - digits.len()].to_owned(), digits.parse().unwrap_or(0))
    }
}

macro_rules! fields {
    ($($from:ty => |$value:ident| $field:expr),* $(,)?) => {
        $(impl From<$from> for Field {
            fn from($value: $from) -> Self {
                $field
            }
        })*
    };
}

fields! {
    u64 => |n| Field::Number(n),
    u32 => |n| Field::Number(n.into()),
    usize => |n| Field::Number(to_u64(n)),
    &str => |text| Field::Text(text.to_owned()),
    String => |text| Field::Text(text),
    CellId => |id| Field::Id(CellId::PREFIX, id.0),
    ChannelId => |id| Field::Id(ChannelId::PREFIX, id.0),
    ConnectionId => |id| Field::Id(ConnectionId::PREFIX, id.0),
    LinkId => |id| Field::Id(LinkId::PREFIX, id.0),
    PhaseId => |id| Field::Id(PhaseId::PREFIX, id.0),
    StepId => |id| Field::Id(StepId::PREFIX, id.0),
}

/// The rows of a view.
pub(crate) struct TableRows {
    columns: Vec<&'static str>,
    /// The first so many columns are left-aligned.
    left: usize,
    pub(crate) rows: Vec<Vec<Field>>,
}

/// Rows as JSON.
#[derive(Serialize)]
struct ShownRows {
    rows: Vec<Map<String, Value>>,
}

impl TableRows {
    pub(crate) fn new(columns: &[&'static str], left: usize) -> Self {
        Self { columns: columns.to_vec(), left, rows: Vec::new() }
    }

    /// Sorts by a column, numbers from the greatest to the least, and keeps the first rows.
    pub(crate) fn arrange(
        &mut self,
        sort: Option<&str>,
        top: Option<usize>,
    ) -> Result<(), InputError> {
        if let Some(name) = sort {
            let Some(column) = self.columns.iter().position(|column| *column == name) else {
                let message = "this view has no such column";
                return Err(InputError::new("--sort", At::Path(name.into()), message)
                    .help(format!("columns: {}", self.columns.join(", "))));
            };
            // The sort is stable, so equal rows keep their order.
            self.rows.sort_by(|a, b| match (&a[column], &b[column]) {
                (Field::Number(a), Field::Number(b)) => b.cmp(a),
                (a, b) => a.natural().cmp(&b.natural()),
            });
        }
        self.rows.truncate(top.unwrap_or(usize::MAX));
        Ok(())
    }

    /// Prints the rows as a table, or as JSON.
    pub(crate) fn print(&self, terminal: &Terminal) -> Result<(), CliError> {
        self.print_drawn(terminal, |out| {
            let mut table = text::table(&self.columns, self.left);
            for row in &self.rows {
                table.add_row(row.iter().map(Field::text));
            }
            text::write_table(out, &table)
        })
    }

    /// Prints a drawing of the rows, or with `--json` the rows.
    pub(crate) fn print_drawn(
        &self,
        terminal: &Terminal,
        draw: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), CliError> {
        let object = |row: &Vec<Field>| {
            let names = self.columns.iter().map(|name| (*name).to_owned());
            names.zip(row.iter().map(Field::json)).collect()
        };
        let rows = if terminal.json { self.rows.iter().map(object).collect() } else { Vec::new() };
        terminal.print(&ShownRows { rows }, draw)
    }
}
