//! The distribution of cells to ranks.
//!
//! The live cells with an agent are distributed to the ranks in contiguous blocks of their ids, as
//! evenly as possible: usually one cell per rank. If there are more ranks than cells, the first
//! ranks have one cell each, and the others only start and end a run together with them.

use std::ops::Range;
use std::sync::Arc;

use conset_ir::CellId;

/// The cells by rank.
#[derive(Clone, Debug)]
pub(super) struct RankMap {
    /// All cells that execute programs, ascending.
    cells: Arc<[CellId]>,
    /// Ranks that have cells.
    active: usize,
}

impl RankMap {
    pub(super) fn new(cells: Arc<[CellId]>, ranks: usize) -> Self {
        Self { active: ranks.min(cells.len()), cells }
    }

    /// Number of ranks that have cells: the first ones.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// The cells of a rank.
    pub(super) fn cells_of(&self, rank: usize) -> &[CellId] {
        &self.cells[self.rows(rank)]
    }

    /// All cells that execute programs, ascending.
    pub(super) fn cells(&self) -> &[CellId] {
        &self.cells
    }

    /// The most cells of any rank.
    pub(super) fn most(&self) -> usize {
        self.cells.len().div_ceil(self.active.max(1))
    }

    fn rows(&self, rank: usize) -> Range<usize> {
        if rank >= self.active {
            return 0..0;
        }
        let first = |rank: usize| rank * self.cells.len() / self.active;
        first(rank)..first(rank + 1)
    }

    /// The rank of a cell, and the cell's place among those of its rank; nothing for a cell that
    /// executes no program.
    pub(super) fn find(&self, cell: CellId) -> Option<(usize, usize)> {
        let row = self.cells.binary_search(&cell).ok()?;
        let rank = ((row + 1) * self.active - 1) / self.cells.len();
        Some((rank, row - self.rows(rank).start))
    }
}

#[cfg(test)]
mod tests {
    use conset_ir::Machine;

    use super::RankMap;

    #[test]
    fn every_cell_has_one_place() {
        for (spec, ranks) in [("ring:1", 1), ("ring:7", 3), ("mesh:3x3", 4), ("ring:3", 8)] {
            let machine = Machine::from_spec(spec).unwrap();
            let rank_map = RankMap::new(machine.endpoints().collect(), ranks);
            let mut cells = Vec::new();
            for rank in 0..ranks {
                for (row, &cell) in rank_map.cells_of(rank).iter().enumerate() {
                    assert_eq!(rank_map.find(cell), Some((rank, row)), "{spec} on {ranks}");
                    cells.push(cell);
                }
            }
            assert_eq!(cells, machine.endpoints().collect::<Vec<_>>());
        }
    }
}
