//! One value of any kind that a file can hold, and which form a file is in.
//!
//! | form | kinds | module |
//! |---|---|---|
//! | text (`.cset`) | all | [`crate::text`] |
//! | JSON (`.json`) | programs, schedules | [`crate::json`] |
//! | binary (`.csb`, images `.csi`) | all | [`crate::binary`] |
//! | machine file (`.toml`) | machines | [`crate::machine_file`] |
//!
//! The form is told from a file's first bytes, never from its name, so a wrong extension does not
//! matter. For every form, parsing what was written gives the same value.

use std::sync::Arc;

use crate::error::{At, InputError, Result};
use crate::image::Image;
use crate::machine::Machine;
use crate::position::locate;
use crate::routing::Routing;
use crate::schedule::Schedule;
use crate::set::Program;
use crate::timetable::Timetable;
use crate::{binary, json, machine_file, text};

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// A machine.
    Machine(Arc<Machine>),
    /// Connection sets that nobody has compiled, perhaps with the machine they are meant for. Where
    /// there is a machine, the ends of connections are live cells of it with an agent
    /// ([`ConnectionSet::check_machine`](crate::ConnectionSet::check_machine)); readers refuse
    /// others.
    Program {
        /// The machine, where the file names one.
        machine: Option<Arc<Machine>>,
        /// The sets.
        program: Program,
    },
    /// One set, routed.
    Routing(Routing),
    /// One set, routed and timed.
    Timetable(Timetable),
    /// A compiled program.
    Schedule(Schedule),
    /// A compiled program as a runtime loads it.
    Image(Image),
}

/// The least version of the text, JSON and binary forms that knows everything in a value for this
/// machine: 2 with timed starts, else 1.
pub(crate) fn version_of(machine: Option<&Machine>) -> u32 {
    if machine.is_some_and(|machine| machine.parameters().has_timed_starts()) { 2 } else { 1 }
}

impl Document {
    /// The word for this kind in the first line of the text form.
    pub fn kind(&self) -> &'static str {
        match self {
            Document::Machine(_) => "machine",
            Document::Program { .. } => "set",
            Document::Routing(_) => "routing",
            Document::Timetable(_) => "timetable",
            Document::Schedule(_) => "schedule",
            Document::Image(_) => "image",
        }
    }

    /// The machine the value is for; a program may have none.
    pub fn machine(&self) -> Option<&Arc<Machine>> {
        match self {
            Document::Machine(machine) => Some(machine),
            Document::Program { machine, .. } => machine.as_ref(),
            Document::Routing(routing) => Some(routing.machine()),
            Document::Timetable(timetable) => Some(timetable.routing().machine()),
            Document::Schedule(schedule) => Some(schedule.machine()),
            Document::Image(image) => Some(image.machine()),
        }
    }

    /// Which form a file is in, by its first bytes; `None` if it is none of ours.
    pub fn sniff(bytes: &[u8]) -> Option<Form> {
        if bytes.starts_with(&binary::MAGIC) {
            return Some(Form::Binary);
        }
        let line = first_line(bytes);
        match line.first()? {
            b'{' => Some(Form::Json),
            b'[' => Some(Form::MachineFile),
            _ if is_text_header(line) => Some(Form::Text),
            _ if line.contains(&b'=') => Some(Form::MachineFile),
            _ => None,
        }
    }

    /// Reads a file of any form.
    ///
    /// # Errors
    /// Whatever is wrong with it, with its place; a file of no form of ours is named as such.
    pub fn parse_any(name: &str, bytes: &[u8]) -> Result<Self> {
        match Self::sniff(bytes) {
            Some(Form::Binary) => binary::parse(name, bytes),
            Some(Form::Json) => json::parse(name, bytes),
            Some(Form::Text) => text::parse(name, utf8(name, bytes)?),
            Some(Form::MachineFile) => machine_file::parse(name, utf8(name, bytes)?)
                .map(|m| Document::Machine(Arc::new(m))),
            None => {
                let message =
                    if bytes.is_empty() { "the file is empty" } else { "not a conset file" };
                Err(InputError::new(name, At::Whole, message)
                    .help("a connection set starts with `conset set 1`, a JSON schedule with `{`"))
            }
        }
    }
}

/// The forms on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines for people, `.cset`.
    Text,
    /// The JSON schedule and the JSON connection set, `.json`.
    Json,
    /// The binary container, `.csb` and `.csi`.
    Binary,
    /// A machine in TOML, `.toml`.
    MachineFile,
}

/// Bytes as text.
///
/// # Errors
/// The place of the first byte that is not UTF-8.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        InputError::new(name, locate(bytes, e.valid_up_to()), "not text: expected UTF-8")
    })
}

/// The first line that is neither blank nor a comment, without the blanks before it.
fn first_line(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && line[0] != b'#')
        .unwrap_or(b"")
}

/// `conset` and then another word (a machine file could have a key of that name, but then comes
/// an equals sign and it is the machine file's reader that refuses it).
fn is_text_header(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"conset") else { return false };
    match rest.first() {
        None => true,
        Some(b) => b.is_ascii_whitespace() && rest.trim_ascii().first() != Some(&b'='),
    }
}

impl From<Machine> for Document {
    fn from(machine: Machine) -> Self {
        Document::Machine(Arc::new(machine))
    }
}

impl From<Program> for Document {
    fn from(program: Program) -> Self {
        Document::Program { machine: None, program }
    }
}

impl From<Routing> for Document {
    fn from(routing: Routing) -> Self {
        Document::Routing(routing)
    }
}

impl From<Timetable> for Document {
    fn from(timetable: Timetable) -> Self {
        Document::Timetable(timetable)
    }
}

impl From<Schedule> for Document {
    fn from(schedule: Schedule) -> Self {
        Document::Schedule(schedule)
    }
}

impl From<Image> for Document {
    fn from(image: Image) -> Self {
        Document::Image(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_their_first_bytes() {
        let form = |text: &str| Document::sniff(text.as_bytes());
        assert_eq!(form("# note\n\n  conset set 1\n"), Some(Form::Text));
        assert_eq!(form("\u{FEFF}conset set 1"), Some(Form::Text));
        assert_eq!(form(" \n {\"format\": 1}"), Some(Form::Json));
        assert_eq!(form("# a machine\nname = \"m\"\n"), Some(Form::MachineFile));
        assert_eq!(form("[topology]\nkind = \"ring\"\n"), Some(Form::MachineFile));
        assert_eq!(form("conset = 1"), Some(Form::MachineFile));
        assert_eq!(Document::sniff(&binary::MAGIC), Some(Form::Binary));
        for other in ["", "#", "consets", "$MeshFormat\n4.1 0 8\n", "10 20 30"] {
            assert_eq!(form(other), None, "{other:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_placed() {
        let error = Document::parse_any("f", b"conset set 1\nset \xFFa\n").unwrap_err();
        assert_eq!(error.at, At::Text { line: 2, column: 5, offset: 17 });
        assert_eq!(Document::parse_any("f", b"").unwrap_err().message, "the file is empty");
    }
}
