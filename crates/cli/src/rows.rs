//! Rows: the tables of the command, for people (`human`), for other programs (`plain` and `csv`, with
//! `--format`) and as the member `rows` of a JSON object.
//!
//! A table is written once, as [`TableRows`]: the names of its columns, and fields that are numbers,
//! ids or texts. People read a number with its digits in groups and an id with its letter, `c5`; programs
//! read both as plain integers, and one header line with the names of the columns. The two formats for
//! programs differ as follows.
//!
//! | | `plain` | `csv` |
//! |---|---|---|
//! | between fields | a tab | a comma |
//! | a missing value or an empty text | `-` | nothing |
//! | tabs, line feeds and backslashes in texts | `\t`, `\n`, `\r`, `\\` | in quotes, as they are |
//!
//! So a row is a line in `plain`, with as many fields as the header, also for programs that take several
//! blanks as one separator.

use std::borrow::Cow;
use std::io::{self, Write};

use conset_ir::convert::to_u64;
use conset_ir::{At, CellId, ChannelId, ConnectionId, InputError, LinkId, PhaseId, StepId};
use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::args::TableFormat;
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::text::{self, Terminal};

/// A field of a row.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// There is no value; the text in its place, for people.
    Absent(&'static str),
    Number(u64),
    /// A number that is not whole, and the digits after the point that people see.
    Real(f64, usize),
    /// An id with its prefix.
    Id(&'static str, u32),
    Text(String),
}

impl Field {
    /// The field as people read it.
    fn human(&self) -> String {
        match self {
            Field::Absent(text) => (*text).to_owned(),
            Field::Number(number) => text::number(*number),
            Field::Real(number, digits) => format!("{number:.digits$}"),
            Field::Id(prefix, id) => format!("{prefix}{id}"),
            Field::Text(text) => text.clone(),
        }
    }

    /// The field as programs read it; `None` if there is no value.
    fn plain(&self) -> Option<Cow<'_, str>> {
        match self {
            Field::Absent(_) => None,
            Field::Number(number) => Some(number.to_string().into()),
            Field::Real(number, _) => number.is_finite().then(|| number.to_string().into()),
            Field::Id(_, id) => Some(id.to_string().into()),
            Field::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()).map(Cow::from),
        }
    }

    /// What fields that are not numbers are sorted by: words, then their number, so that `c2` is
    /// before `c10`.
    fn natural(&self) -> (String, u64) {
        let text = self.human();
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        (text[..text.len() - digits.len()].to_owned(), digits.parse().unwrap_or(0))
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Field::Absent(_) => serializer.serialize_none(),
            Field::Number(number) => serializer.serialize_u64(*number),
            Field::Real(number, _) => serializer.serialize_f64(*number),
            Field::Id(_, id) => serializer.serialize_u32(*id),
            Field::Text(text) => serializer.serialize_str(text),
        }
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

/// `-` for people if there is no value.
impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Self {
        value.map_or(Field::Absent("-"), Into::into)
    }
}

/// A table.
#[derive(Clone)]
pub(crate) struct TableRows {
    columns: Vec<Cow<'static, str>>,
    /// The first so many columns are left-aligned for people.
    left: usize,
    /// As many fields in each row as there are columns.
    pub(crate) rows: Vec<Vec<Field>>,
}

impl TableRows {
    pub(crate) fn new(columns: &[&'static str], left: usize) -> Self {
        Self::named(columns.iter().copied().map(Cow::from).collect(), left)
    }

    /// The same with names of columns that the user chose.
    pub(crate) fn named(columns: Vec<Cow<'static, str>>, left: usize) -> Self {
        Self { columns, left, rows: Vec::new() }
    }

    /// The header and the rows as people read them.
    pub(crate) fn human(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let texts = |row: &Vec<Field>| row.iter().map(Field::human).collect();
        (
            self.columns.iter().map(ToString::to_string).collect(),
            self.rows.iter().map(texts).collect(),
        )
    }

    /// Sorts by a column, numbers from the greatest to the least, and keeps the first rows.
    pub(crate) fn arrange(
        &mut self,
        sort: Option<&str>,
        top: Option<usize>,
    ) -> Result<(), InputError> {
        if let Some(name) = sort {
            let Some(column) = self.columns.iter().position(|column| column == name) else {
                let message = "this table has no such column";
                return Err(InputError::new("--sort", At::Path(name.into()), message)
                    .help(format!("columns: {}", self.columns.join(", "))));
            };
            // The sort is stable, so equal rows keep their order.
            self.rows.sort_by(|a, b| match (&a[column], &b[column]) {
                (Field::Number(a), Field::Number(b)) => b.cmp(a),
                (Field::Real(a, _), Field::Real(b, _)) => b.total_cmp(a),
                (a, b) => a.natural().cmp(&b.natural()),
            });
        }
        self.rows.truncate(top.unwrap_or(usize::MAX));
        Ok(())
    }

    /// Prints the rows in the format that the options select.
    pub(crate) fn print(&self, terminal: &Terminal) -> Result<(), CliError> {
        self.print_drawn(terminal, |out| self.write_human(out))
    }

    /// Prints a drawing of the rows for people, and the rows for programs.
    pub(crate) fn print_drawn(
        &self,
        terminal: &Terminal,
        draw: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        match terminal.table {
            TableFormat::Human => terminal.print(self, draw),
            format => self.write_for_programs(format),
        }
    }

    /// Writes the rows for people.
    pub(crate) fn write_human(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns: Vec<&str> = self.columns.iter().map(AsRef::as_ref).collect();
        let mut table = text::table(&columns, self.left);
        for row in &self.rows {
            table.add_row(row.iter().map(Field::human));
        }
        text::write_table(out, &table)
    }

    /// Writes the rows to standard output.
    fn write_for_programs(&self, format: TableFormat) -> Result<(), CliError> {
        Ok(OutputTarget::Stdout.write(|out| match format {
            TableFormat::Human => self.write_human(out),
            TableFormat::Plain => self.write_plain(out),
            TableFormat::Csv => self.write_csv(out),
        })?)
    }

    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.columns.join("\t"))?;
        for row in &self.rows {
            for (column, field) in row.iter().enumerate() {
                let separator = if column == 0 { "" } else { "\t" };
                match field.plain() {
                    None => write!(out, "{separator}-")?,
                    Some(text) => write!(out, "{separator}{}", escaped(&text))?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes the rows as comma-separated values.
    pub(crate) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.columns.iter().map(|column| column.as_bytes()))?;
        for row in &self.rows {
            let fields = row.iter().map(Field::plain);
            writer.write_record(fields.map(|field| field.unwrap_or_default().into_owned()))?;
        }
        writer.flush()
    }
}

/// The member `rows` of a JSON object.
impl Serialize for TableRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct List<'a>(&'a TableRows);
        struct Row<'a>(&'a [Cow<'static, str>], &'a [Field]);
        impl Serialize for List<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut list = serializer.serialize_seq(Some(self.0.rows.len()))?;
                for row in &self.0.rows {
                    list.serialize_element(&Row(&self.0.columns, row))?;
                }
                list.end()
            }
        }
        impl Serialize for Row<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut row = serializer.serialize_map(Some(self.0.len()))?;
                for (name, field) in self.0.iter().zip(self.1) {
                    row.serialize_entry(name, field)?;
                }
                row.end()
            }
        }
        let mut object = serializer.serialize_struct("TableRows", 1)?;
        object.serialize_field("rows", &List(self))?;
        object.end()
    }
}

/// Without characters that end a field or a row.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\t', '\n', '\r', '\\']) {
        return text.into();
    }
    let escape = |c| match c {
        '\t' => "\\t".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\\' => "\\\\".into(),
        c => Cow::from(String::from(c)),
    };
    text.chars().map(escape).collect::<String>().into()
}

/// Prints a result: as JSON with `--json`, its rows with `--format plain` or `csv`, else as a text.
pub(crate) fn print(
    terminal: &Terminal,
    object: &impl Serialize,
    rows: impl FnOnce() -> TableRows,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    match terminal.table {
        TableFormat::Human => terminal.print(object, text),
        format => rows().write_for_programs(format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn sample() -> TableRows {
        let mut rows = TableRows::new(&["name", "cell", "words", "ratio"], 1);
        let odd = "a, \"b\"\tc\nd\\e";
        rows.rows.push(vec![odd.into(), CellId(5).into(), 28_672u64.into(), Field::Real(1.25, 1)]);
        rows.rows.push(vec!["".into(), CellId(40).into(), None::<u64>.into(), Field::Absent("")]);
        rows
    }

    #[test]
    fn programs_get_one_header_and_plain_numbers() {
        let rows = sample();
        assert_eq!(
            written(|out| rows.write_plain(out)),
            "name\tcell\twords\tratio\na, \"b\"\\tc\\nd\\\\e\t5\t28672\t1.25\n-\t40\t-\t-\n"
        );
        assert_eq!(
            written(|out| rows.write_csv(out)),
            "name,cell,words,ratio\n\"a, \"\"b\"\"\tc\nd\\e\",5,28672,1.25\n,40,,\n"
        );
        assert_eq!(
            serde_json::to_value(&rows).unwrap()["rows"][1],
            serde_json::json!({"name": "", "cell": 40, "words": null, "ratio": null})
        );
        let people = written(|out| rows.write_human(out));
        assert!(people.contains("c5  28 672    1.2"), "{people}");
    }

    #[test]
    fn rows_are_sorted_by_any_column() {
        let mut rows = sample();
        rows.arrange(Some("cell"), None).unwrap();
        assert!(matches!(rows.rows[0][1], Field::Id(_, 5)));
        rows.arrange(Some("words"), Some(1)).unwrap();
        assert_eq!(rows.rows.len(), 1);
        assert!(rows.arrange(Some("none"), None).is_err());
    }
}
