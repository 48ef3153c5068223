//! The errors of all stages, by cause: wrong input, an infeasible set, inconsistent parts.
//!
//! * [`InputError`]: a file or argument of the user is wrong. It names the file and the position
//!   and says what was expected (exit code 2 of the command).
//! * [`Infeasible`]: the input is valid, but the machine cannot carry the set. It has a witness and
//!   possible fixes, cheapest first (exit code 1).
//! * [`ShapeError`]: a value was built from parts that do not fit together. A reader turns it into
//!   an [`InputError`]; if a stage of the compiler causes one, that is a bug (exit code 3).
//!
//! Errors know no command-line options. Where an interface can offer a remedy (an option, a field
//! of a structure), the error carries the data ([`Fix`], [`SpecError::UnknownPreset`]) and the
//! interface words the advice.

use std::fmt;

use crate::ids::{CellId, ConnectionId};

/// A result whose error is, by default, an [`InputError`].
pub type Result<T, E = InputError> = std::result::Result<T, E>;

/// A position in an input.
///
/// The enum is exhaustive: programs that show errors handle every kind of position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The input as a whole (empty, wrong format, too large).
    Whole,
    /// A position in a text: line and column from 1 (columns in bytes), and the offset in bytes.
    Text {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// Offset in bytes from the start, from 0.
        offset: usize,
    },
    /// A position in a binary file: offset in bytes from 0.
    Byte(usize),
    /// A part of a structured document: `sets[0].phases[1].routes[3]`.
    Path(String),
}

/// An error in an input: its position, what was expected, and how to correct it.
///
/// Options appear as `<option>` in all texts, because their spelling differs between the command, the
/// library and C: each interface replaces them ([`InputError::with_options`]). The fields are
/// public, so that interfaces can also replace the file's name. The struct is `#[non_exhaustive]`;
/// [`InputError::new`] makes one.
///
/// ```
/// use conset_ir::{At, InputError};
///
/// let at = At::Text { line: 3, column: 7, offset: 40 };
/// let error = InputError::new("halo.cset", at, "expected `->`").help("write c0 -> c1");
/// assert_eq!(error.to_string(), "halo.cset:3:7: expected `->`\n  help: write c0 -> c1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputError {
    /// The name of the file as the user wrote it; `<option>` for the option of that name.
    pub file: String,
    /// The position in the file.
    pub at: At,
    /// What is wrong and what was expected, as one sentence without a full stop.
    pub message: String,
    /// How to correct it.
    pub help: Option<String>,
}

impl InputError {
    /// An error at position `at` in `file`.
    pub fn new(file: impl Into<String>, at: At, message: impl Into<String>) -> Self {
        Self { file: file.into(), at, message: message.into(), help: None }
    }

    /// Adds how to correct it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error with the name of each option, such as `<parts>`, replaced by `spelling` of it,
    /// such as `--parts`; names for which it returns `None` stay.
    ///
    /// ```
    /// use conset_ir::{At, InputError};
    ///
    /// let error = InputError::new("<parts>", At::Whole, "0").help("leave out <parts>");
    /// let error = error.with_options(|name| Some(format!("--{name}")));
    /// assert_eq!(error.to_string(), "--parts: 0\n  help: leave out --parts");
    /// ```
    #[must_use]
    pub fn with_options(self, spelling: impl Fn(&str) -> Option<String>) -> Self {
        let replaced = |text: &str| spell_options(text, &spelling);
        Self {
            file: replaced(&self.file),
            message: replaced(&self.message),
            help: self.help.as_deref().map(replaced),
            ..self
        }
    }
}

/// Replaces each `<name>` of lower-case letters and hyphens by its spelling.
fn spell_options(text: &str, spelling: impl Fn(&str) -> Option<String>) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, from) = rest.split_at(start);
        spelled.push_str(before);
        let name = from[1..].split_once('>').map(|(name, _)| name).filter(|name| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
        });
        let Some((name, option)) = name.and_then(|name| Some((name, spelling(name)?))) else {
            spelled.push('<');
            rest = &from[1..];
            continue;
        };
        spelled.push_str(&option);
        rest = &from[name.len() + 2..];
    }
    spelled.push_str(rest);
    spelled
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

/// A part of a value that does not fit the rest.
///
/// A record with public fields, since readers translate the place into a position of the file. It
/// is `#[non_exhaustive]`; [`ShapeError::new`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
#[non_exhaustive]
pub struct ShapeError {
    /// The part, as a path within the value: `phases[1].routes[3]`.
    pub place: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl ShapeError {
    /// An error in the part `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    /// The same error in a value that is itself the part `whole` of a larger one.
    #[must_use]
    pub fn under(self, whole: impl fmt::Display) -> Self {
        Self { place: format!("{whole}.{}", self.place), ..self }
    }

    /// The same error of a reader: in `file`, at the path of the part.
    pub fn in_file(self, file: &str) -> InputError {
        InputError::new(file, At::Path(self.place), self.message)
    }
}

/// The reason why a machine specification such as `torus:4x4` cannot be used.
///
/// It converts into an [`InputError`], so `?` works where one is returned.
///
/// ```
/// use conset_ir::{InputError, Machine, SpecError};
///
/// let error = Machine::from_spec("tours:4x4").unwrap_err();
/// assert!(matches!(&error, SpecError::UnknownPreset { preset, .. } if preset == "tours"));
/// assert!(InputError::from(error).help.unwrap().starts_with("did you mean `torus`?"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The preset is unknown.
    UnknownPreset {
        /// The whole specification.
        spec: String,
        /// The preset it names.
        preset: String,
        /// The closest known preset and the list of all presets, as one line.
        help: String,
    },
    /// A size that is not a number.
    Size {
        /// The whole specification.
        spec: String,
        /// The size.
        size: String,
        /// A correct specification of the preset.
        example: String,
    },
    /// Sizes or parameters that no machine can have.
    Shape {
        /// The whole specification.
        spec: String,
        /// What is wrong with them.
        error: ShapeError,
    },
}

impl SpecError {
    /// The error of an interface that accepts something else than a preset, too. The help for an
    /// unknown preset then ends in `alternative`, in the words of that interface: `give a machine
    /// file ending in .toml`.
    pub fn with_alternative(self, alternative: &str) -> InputError {
        let unknown = matches!(self, SpecError::UnknownPreset { .. });
        let mut error = InputError::from(self);
        if let Some(help) = error.help.as_mut().filter(|_| unknown) {
            help.push_str("; or ");
            help.push_str(alternative);
        }
        error
    }
}

impl From<SpecError> for InputError {
    fn from(error: SpecError) -> Self {
        let (spec, message, help) = match error {
            SpecError::UnknownPreset { spec, preset, help } => {
                (spec, format!("`{preset}` is not a machine"), Some(help))
            }
            SpecError::Size { spec, size, example } => {
                (spec, format!("`{size}` is not a size"), Some(format!("write {example} or so")))
            }
            SpecError::Shape { spec, error } => (spec, error.to_string(), None),
        };
        InputError { help, ..InputError::new("<machine>", At::Path(spec), message) }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        InputError::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for SpecError {}

/// A cell on which a set needs more channels than it has in all phases together.
///
/// A record of facts with public fields; it has no invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// The cell.
    pub cell: CellId,
    /// Channel slots that the set needs on it. A route takes one channel in one phase.
    pub needed: u64,
    /// Phases that are allowed.
    pub phases: u32,
    /// Channels of the cell in each phase.
    pub channels_per_cell: u32,
    /// Connections that need them (the first few, in id order).
    pub connections: Vec<ConnectionId>,
}

impl Overfull {
    /// Channel slots that the cell has in all allowed phases together.
    pub fn available(&self) -> u64 {
        u64::from(self.phases) * u64::from(self.channels_per_cell)
    }
}

/// A change with which an infeasible set would fit.
///
/// `Display` describes the change without naming an option of any interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Allow this many phases.
    Phases(u32),
    /// Give each cell this many channels.
    ChannelsPerCell(u32),
    /// Divide the mesh into this many parts at most.
    Parts(usize),
    /// Use a machine of this many cells or more.
    Cells(usize),
    /// Leave out these connections.
    Drop(Vec<ConnectionId>),
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fix::Phases(n) => write!(f, "allow {n} phases"),
            Fix::ChannelsPerCell(n) => write!(f, "give each cell {n} channels"),
            Fix::Parts(n) => write!(f, "make at most {n} parts"),
            Fix::Cells(n) => write!(f, "take a machine of {n} cells or more"),
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

/// A set that the machine cannot carry: the reason, a witness and possible fixes.
///
/// A record of facts with public fields; interfaces replace the fixes by their own wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// The name of the set.
    pub set: String,
    /// The reason, as one sentence without a full stop.
    pub reason: String,
    /// The overfull cells, the worst first.
    pub overfull: Vec<Overfull>,
    /// The connections that cannot be routed, if the reason is not an overfull cell.
    pub connections: Vec<ConnectionId>,
    /// Changes with which the set would fit, cheapest first.
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
                "\n  {} needs {} channel slots but has {} ({} phase{} x {} channel{}): {}{}",
                over.cell,
                over.needed,
                over.available(),
                over.phases,
                if over.phases == 1 { "" } else { "s" },
                over.channels_per_cell,
                if over.channels_per_cell == 1 { "" } else { "s" },
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
