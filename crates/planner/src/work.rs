//! The work limit of the searches for one plan, counted in expanded cells.

use conset_ir::convert::to_u64;

/// What the searches of a plan may still look at. They have a number of moves; but on large machines
/// a move looks at many cells. What is balanced has a limit of its own and is only counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Cells.
    pub left: u64,
    /// Whether a search ended because there was not enough.
    pub stopped: bool,
}

impl Work {
    /// The work of a plan, by the connections of its set, doubled so many times.
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

    /// Takes off what a search has looked at.
    pub(crate) fn take(&mut self, expanded: u64) {
        self.left = self.left.saturating_sub(expanded);
    }
}

/// Cells looked at for each connection, and in all.
const EXPANSIONS_PER_CONNECTION: u64 = 60 << 10;
const EXPANSION_LIMIT: u64 = 1 << 27;
