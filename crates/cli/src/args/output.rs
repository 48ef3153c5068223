//! Options of what is printed: the format of tables.

use clap::{Args, ValueEnum};

/// The format of tables, for subcommands that print some.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TableArgs {
    /// Format of the rows: for people, or for other programs, with one header line and numbers and
    /// ids as plain integers.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

/// A format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Aligned columns.
    #[default]
    Human,
    /// Fields with tabs between them, and - for a missing one.
    Plain,
    /// Comma-separated values.
    Csv,
}
