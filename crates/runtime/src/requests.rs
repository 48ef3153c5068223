//! The nonblocking exchanges that a cell has started and not yet completed.
//!
//! A cell keeps one [`Request`] for each of them, in the order in which they were started. The
//! program holds a [`Pending`], a token of plain numbers that can cross a C interface.

use std::sync::atomic::{AtomicU64, Ordering};

use conset_ir::CellId;

use crate::lists::Op;

/// A nonblocking exchange that has been started; complete it with [`crate::Cell::wait`].
#[must_use = "an exchange that is started must be completed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub(crate) cell: CellId,
    /// The run of the cell in which it was started.
    pub(crate) run: u64,
    /// Its number among the exchanges started in that run.
    pub(crate) number: u64,
}

impl Pending {
    /// The token as numbers, for interfaces to other languages.
    pub fn to_numbers(self) -> [u64; 3] {
        [u64::from(self.cell.0), self.run, self.number]
    }

    /// The token with these numbers. Numbers that belong to no token are an error when it is used.
    pub fn from_numbers([cell, run, number]: [u64; 3]) -> Self {
        Self { cell: CellId(u32::try_from(cell).unwrap_or(u32::MAX)), run, number }
    }
}

/// The most requests of a cell at a time; a program with more has forgotten to complete them.
pub(crate) const MAX_REQUESTS: usize = 1 << 12;

/// A nonblocking exchange, and what its completion must agree with.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    /// The serial number of the plan, and its set.
    pub(crate) plan: u64,
    pub(crate) set: usize,
    pub(crate) op: Op,
    /// Copies are combined in the order of the cells instead of being added to what is there.
    pub(crate) in_order: bool,
    pub(crate) number_type: &'static str,
    pub(crate) vectors: usize,
}

/// The requests of a cell, in the order in which they were started.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) run: u64,
    /// Exchanges started so far.
    pub(crate) started: u64,
    pub(crate) active: Vec<Request>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self { run: next_serial(), started: 0, active: Vec::new() }
    }
}

/// A serial number. Plans and runs have one each, so that the tokens of another are recognised.
pub(crate) fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
