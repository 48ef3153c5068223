//! Layouts of shared ids: entries with the same global id are copies of one value.
//!
//! Every cell that holds an id sends its copy to every other cell that holds it. An id on `k` cells
//! takes `k (k - 1)` entries, so values that all cells share should use a tree; the total is
//! limited.
//!
//! Sums over all entries of all cells (an inner product, a norm) must count each id once. Either
//! the term of each copy is divided by the number of copies ([`Layout::multiplicity`]), or one cell
//! alone counts it ([`Layout::owned`]), which takes no division and no rounding.

use conset_ir::convert::{index, to_u64, to_usize};
use conset_ir::{CellId, ConnectionId, limits};

use super::{IdPlace, Layout, LayoutEntry, LayoutError, places};

impl Layout {
    /// The layout of shared ids, as in gslib: `ids[c][i]` is the global id of entry `i` of cell
    /// `c`'s vector. A connection for each ordered pair of cells that share ids.
    ///
    /// O(n log n) in the ids, plus the entries.
    ///
    /// # Errors
    /// An id that a cell lists twice, too many cells, ids or entries.
    pub fn from_shared_ids<I: AsRef<[u64]>>(ids: &[I]) -> Result<Self, LayoutError> {
        let (all, items) = places(ids)?;
        Ok(Self::from_entries(items, shared_entries(&all)?, true))
    }

    /// On how many cells the id of each entry of a cell's vector is, that cell among them: 1 for
    /// an entry that is not shared. None for a cell that is not there.
    ///
    /// It counts what arrives, so it is right for layouts of shared ids
    /// ([`Layout::is_shared`]). O(connections + entries of the cell); of a plan
    /// ([`crate::Plan::multiplicity`]) it takes the cell's entries alone.
    pub fn multiplicity(&self, cell: CellId) -> Vec<u32> {
        self.count_copies(cell, &self.ending_at(cell))
    }

    /// Which entries of a cell's vector the cell owns: of the cells that hold an id the one with
    /// the lowest id does. Every id has one owner. None for a cell that is not there.
    ///
    /// Where a layout leads from owners to ghosts ([`crate::OwnedLayout::forward`]) the entries
    /// are owned that do not arrive. O(connections + entries of the cell); of a plan
    /// ([`crate::Plan::owned`]) it takes the cell's entries alone.
    pub fn owned(&self, cell: CellId) -> Vec<bool> {
        self.mask_owned(cell, &self.ending_at(cell))
    }

    /// The connections that end at a cell.
    fn ending_at(&self, cell: CellId) -> Vec<ConnectionId> {
        let ends = (0..self.len()).filter(|&row| self.ends[row].1 == cell);
        ends.map(ConnectionId::from_index).collect()
    }

    /// [`Layout::multiplicity`], the connections that end at the cell being known.
    pub(crate) fn count_copies(&self, cell: CellId, incoming: &[ConnectionId]) -> Vec<u32> {
        let mut copies = vec![1; self.items_of(cell)];
        for &at in incoming.iter().flat_map(|&x| self.receive_of(x)) {
            copies[index(at)] += 1;
        }
        copies
    }

    /// [`Layout::owned`], the connections that end at the cell being known.
    pub(crate) fn mask_owned(&self, cell: CellId, incoming: &[ConnectionId]) -> Vec<bool> {
        let mut owned = vec![true; self.items_of(cell)];
        for &x in incoming {
            if !self.shared || self.ends_of(x).0 < cell {
                self.receive_of(x).iter().for_each(|&at| owned[index(at)] = false);
            }
        }
        owned
    }
}

/// An entry for each ordered pair of places of one id.
pub(super) fn shared_entries(all: &[IdPlace]) -> Result<Vec<LayoutEntry>, LayoutError> {
    let groups = || all.chunk_by(|a, b| a.id == b.id);
    let (mut count, mut largest) = (0u64, (0usize, 0u64));
    for group in groups() {
        let cells = to_u64(group.len());
        count = count.saturating_add(cells * (cells - 1));
        if group.len() > largest.0 {
            largest = (group.len(), group[0].id);
        }
    }
    if count > to_u64(limits::NODES) {
        return Err(LayoutError::Entries { entries: count, id: largest.1, cells: largest.0 });
    }
    let mut entries = Vec::with_capacity(to_usize(count));
    for group in groups() {
        for from in group {
            for to in group.iter().filter(|to| to.cell != from.cell) {
                entries.push(LayoutEntry {
                    source: from.cell,
                    target: to.cell,
                    id: from.id,
                    send: from.position,
                    receive: to.position,
                });
            }
        }
    }
    Ok(entries)
}
