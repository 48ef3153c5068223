//! Files of generated source code, and the errors of generating them.

use std::fmt::{Arguments, Write};

use conset_ir::{SetImage, counted};

/// A generated file: its path relative to the output folder, and its text.
pub type SourceFile = (String, String);

/// The reason why no source code was generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The tables of the image have too many rows to be compiled in reasonable time.
    #[error(
        "{rows} rows of tables are too many for source code, at most {limit}; load the image from its file instead"
    )]
    TooManyRows {
        /// Number of rows.
        rows: usize,
        /// The limit.
        limit: usize,
    },
    /// The image has too many bytes to be compiled in reasonable time.
    #[error(
        "{bytes} bytes of an image are too many for source code, at most {limit}; load the image from its file instead"
    )]
    TooManyBytes {
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Cargo does not accept the name of the crate.
    #[error("`{name}` is not a crate name; expected a letter, then letters, digits, `-` or `_`")]
    CrateName {
        /// The name.
        name: String,
    },
    /// A format of step plans was asked for, and a set has phases.
    #[error("set `{set}` has phases; expected a step plan")]
    NoSteps {
        /// The set's name.
        set: String,
    },
    /// The name cannot be the prefix of C identifiers.
    #[error("`{name}` cannot begin C names; expected a letter, then letters, digits or `_`")]
    CName {
        /// The name.
        name: String,
    },
}

/// Appends formatted text to a string, which cannot fail.
pub(crate) fn put(out: &mut String, arguments: Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string");
}

/// The length of a set's plan in words, for comments: `3 phases`, `5 steps`.
pub(crate) fn plan_length(set: &SetImage) -> String {
    match &set.steps {
        Some(steps) => counted(steps.messages().steps(), "step"),
        None => counted(set.phases.len(), "phase"),
    }
}
