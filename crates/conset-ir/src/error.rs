//! What can go wrong, sorted by whose fault it is.
//!
//! * [`InputError`]: the user's file or argument; names file and position, says what was expected
//!   and what to do (exit code 2).
//! * [`Infeasible`]: the input is fine, the machine cannot do it; carries a witness and the
//!   cheapest fixes (exit code 1).
//! * [`ShapeError`]: a value was built from parts that do not fit together. From a reader it
//!   becomes an [`InputError`]; from a stage it is a broken promise of our own (exit code 3).

use std::fmt;

use crate::ids::{CellId, ConnectionId};

/// Shorthand for results whose failure is the input's fault.
pub type Result<T, E = InputError> = std::result::Result<T, E>;

/// Where in an input something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The input as a whole (empty, wrong format, too large).
    Whole,
    /// A place in a text: line and column from 1 (columns count bytes), and the offset in bytes.
    Text {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// Offset in bytes from the start, from 0.
        offset: usize,
    },
    /// A place in a binary file: offset in bytes from 0.
    Byte(usize),
    /// A place in a structured document: `sets[0].phases[1].routes[3]`.
    Path(String),
}

/// Bad input: where, what was expected, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file's name as the user gave it; `<argument>` for an argument.
    pub file: String,
    /// Where in it.
    pub at: At,
    /// What is wrong and what was expected, as one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl InputError {
    /// An error at `at` in `file`.
    pub fn new(file: impl Into<String>, at: At, message: impl Into<String>) -> Self {
        Self { file: file.into(), at, message: message.into(), help: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        match &self.at {
            At::Whole => {}
            At::Text { line, column, .. } => write!(f, ":{line}:{column}")?,
            At::Byte(offset) => write!(f, ": byte {offset}")?,
            At::Path(path) => write!(f, ": {path}")?,
        }
        write!(f, ": {}", self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}

/// Parts that do not fit together: which part, and what it should have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ShapeError {
    /// The part, as a path within the value: `phases[1].routes[3]`.
    pub place: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl ShapeError {
    /// An error at `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    /// The same error, of a part of `whole`: the place is written behind it.
    #[must_use]
    pub fn under(self, whole: impl fmt::Display) -> Self {
        Self { place: format!("{whole}.{}", self.place), ..self }
    }

    /// The same error as a reader's: in `file`, at the path of the part.
    pub fn in_file(self, file: &str) -> InputError {
        InputError::new(file, At::Path(self.place), self.message)
    }
}

/// A cell that a set needs more channels on than it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// The cell.
    pub cell: CellId,
    /// Channels wanted on it.
    pub wanted: u64,
    /// Channels there are.
    pub available: u64,
    /// Connections that want them (the first few, in id order).
    pub connections: Vec<ConnectionId>,
}

/// Something that would make an infeasible set fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Allow this many phases.
    Phases(u32),
    /// Give each cell this many channels.
    ChannelsPerCell(u32),
    /// Divide the mesh into this many parts at most.
    Parts(usize),
    /// Take a machine of this many cells or more.
    Cells(usize),
    /// Leave out these connections.
    Drop(Vec<ConnectionId>),
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fix::Phases(n) => write!(f, "allow {n} phases (--max-phases {n})"),
            Fix::ChannelsPerCell(n) => {
                write!(f, "give each cell {n} channels (--param channels_per_cell={n})")
            }
            Fix::Parts(n) => write!(f, "make at most {n} parts (--parts {n})"),
            Fix::Cells(n) => write!(f, "take a machine of {n} cells or more (--machine)"),
            Fix::Drop(ids) => {
                let shown: Vec<String> = ids.iter().take(8).map(|id| id.to_string()).collect();
                let more = ids.len().saturating_sub(8);
                write!(f, "remove {}", shown.join(", "))?;
                if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
            Fix::Other(words) => f.write_str(words),
        }
    }
}

/// The machine cannot do what the set asks: why, the witness, and the cheapest fixes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// The set's name.
    pub set: String,
    /// Why, as one sentence without a full stop.
    pub reason: String,
    /// The cells that are overfull, the worst first.
    pub overfull: Vec<Overfull>,
    /// The connections that cannot be had, where it is not a matter of overfull cells.
    pub connections: Vec<ConnectionId>,
    /// What would make it fit, the cheapest first.
    pub fixes: Vec<Fix>,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set `{}` does not fit: {}", self.set, self.reason)?;
        for over in self.overfull.iter().take(8) {
            let shown: Vec<String> =
                over.connections.iter().take(8).map(|id| id.to_string()).collect();
            write!(
                f,
                "\n  {} needs {} channels but has {}: {}{}",
                over.cell,
                over.wanted,
                over.available,
                shown.join(", "),
                if over.connections.len() > 8 { ", ..." } else { "" },
            )?;
        }
        if !self.connections.is_empty() {
            let shown: Vec<String> =
                self.connections.iter().take(8).map(|id| id.to_string()).collect();
            write!(f, "\n  connections involved: {}", shown.join(", "))?;
            if self.connections.len() > 8 {
                write!(f, " and {} more", self.connections.len() - 8)?;
            }
        }
        for fix in &self.fixes {
            write!(f, "\n  fix: {fix}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Infeasible {}
