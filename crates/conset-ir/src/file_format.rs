//! Recognises the format of a file and parses files of any format.
//!
//! | format | kinds | module |
//! |---|---|---|
//! | text (`.cset`) | all | [`crate::text`] |
//! | JSON (`.json`) | programs, schedules | [`crate::json`] |
//! | binary (`.csb`, images `.csi`) | all | [`crate::binary`] |
//! | machine file (`.toml`) | machines | [`crate::machine_file`] |
//!
//! The first bytes of a file determine its format. Its name is not considered, so a wrong extension
//! does no harm.

use std::sync::Arc;

use crate::document::Document;
use crate::error::{At, InputError, Result};
use crate::position::utf8;
use crate::{binary, json, machine_file, text};

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFormat {
    /// Lines for people, `.cset`.
    Text,
    /// A JSON schedule or a JSON connection set, `.json`.
    Json,
    /// The binary container, `.csb` and `.csi`.
    Binary,
    /// A machine in TOML, `.toml`.
    MachineFile,
}

impl Document {
    /// The format of a file according to its first bytes; `None` if it is not a conset file.
    ///
    /// ```
    /// use conset_ir::{Document, FileFormat};
    ///
    /// assert_eq!(Document::sniff(b"conset set 1\n"), Some(FileFormat::Text));
    /// assert_eq!(Document::sniff(b"$MeshFormat\n"), None);
    /// ```
    pub fn sniff(bytes: &[u8]) -> Option<FileFormat> {
        if bytes.starts_with(&binary::MAGIC) {
            return Some(FileFormat::Binary);
        }
        let line = first_line(bytes);
        match line.first()? {
            b'{' => Some(FileFormat::Json),
            b'[' if is_section(line) => Some(FileFormat::MachineFile),
            b'[' => Some(FileFormat::Json),
            _ if is_text_header(line) => Some(FileFormat::Text),
            _ if line.contains(&b'=') => Some(FileFormat::MachineFile),
            _ => None,
        }
    }

    /// Parses a file of any format. `name` is the name of the file in error messages.
    ///
    /// # Errors
    /// The first mistake in the file, with its position; or that it is not a conset file.
    pub fn parse_any(name: &str, bytes: &[u8]) -> Result<Self> {
        match Self::sniff(bytes) {
            Some(FileFormat::Binary) => binary::parse(name, bytes),
            Some(FileFormat::Json) => json::parse(name, bytes),
            Some(FileFormat::Text) => text::parse(name, utf8(name, bytes)?),
            Some(FileFormat::MachineFile) => machine_file::parse(name, utf8(name, bytes)?)
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

/// The first line that is neither blank nor a comment, without leading blanks.
fn first_line(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && line[0] != b'#')
        .unwrap_or(b"")
}

/// Whether a line that begins with `[` is the header of a section of a machine file, `[parameters]` or
/// `[[link]]`, and not the begin of a JSON array.
fn is_section(line: &[u8]) -> bool {
    let name = line.trim_ascii_start();
    let name = name.strip_prefix(b"[[").or_else(|| name.strip_prefix(b"[")).unwrap_or(name);
    name.trim_ascii_start().first().is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_')
}

/// Whether the line is `conset` and another word. (In a machine file with a key of that name an
/// equals sign follows; the reader of machine files then refuses the key.)
fn is_text_header(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"conset") else { return false };
    match rest.first() {
        None => true,
        Some(b) => b.is_ascii_whitespace() && rest.trim_ascii().first() != Some(&b'='),
    }
}
