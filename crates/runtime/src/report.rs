//! The report of a run: clocks, context switches and words.

use conset_fabric::Trace;

/// The figures of a run. Threads and MPI count switches and words; the rest is 0 there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunReport {
    /// Clocks until the last program ended and the last word arrived.
    pub clocks: u64,
    /// Number of context switches.
    pub switches: u64,
    /// Clocks of all context switches together.
    pub switch_clocks: u64,
    /// Words delivered.
    pub words: u64,
    /// Words times the links that they crossed.
    pub word_hops: u64,
    /// Streams and switches, if [`crate::World::trace`] is on. A stream is one request of a
    /// program: a word, or an operation of a list.
    pub trace: Option<Trace>,
}
