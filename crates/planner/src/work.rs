//! Limits of the searches for one plan.

use conset_ir::convert::to_u64;

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum work; each planner has its own unit.
    pub work: u64,
    /// The clocks of the best plan so far: a search may give up plans that are expected to take more.
    pub clocks: u64,
}

impl Limits {
    /// A limit of work alone.
    pub fn of_work(work: u64) -> Self {
        Self { work, clocks: u64::MAX }
    }
}

/// The number of cells that the searches for one plan may still expand.
///
/// The number of moves of a search is limited as well, but on large machines a move expands many
/// cells. Load annealing has its own limit; its work is only counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The number of cells left.
    pub left: u64,
    /// Whether a search ended because no work was left.
    pub stopped: bool,
}

impl Work {
    /// The work limit for a set of `connections` connections, doubled `doubled` times.
    pub fn of(connections: usize, doubled: u32) -> Self {
        let left =
            to_u64(connections).saturating_mul(EXPANSIONS_PER_CONNECTION).min(EXPANSION_LIMIT)
                << doubled;
        Self { left, stopped: false }
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Self { left: u64::MAX, stopped: false }
    }

    /// Subtracts the cells that a search has expanded.
    pub(crate) fn take(&mut self, expanded: u64) {
        self.left = self.left.saturating_sub(expanded);
    }
}

/// Cells that may be expanded for each connection, and in total.
const EXPANSIONS_PER_CONNECTION: u64 = 60 << 10;
const EXPANSION_LIMIT: u64 = 1 << 27;
