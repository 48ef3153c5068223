//! Layouts of shared ids: entries of one global id are copies of one value.
//!
//! Every cell that holds an id sends its copy to every other that does. An id on `k` cells takes
//! `k (k - 1)` entries, so what all cells share belongs into a tree; the total is limited.

use conset_ir::limits;

use super::{Entry, Layout, LayoutError, Place, places};

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
}

/// An entry for each ordered pair of places of one id.
pub(super) fn shared_entries(all: &[Place]) -> Result<Vec<Entry>, LayoutError> {
    let groups = || all.chunk_by(|a, b| a.id == b.id);
    let (mut count, mut largest) = (0u64, (0usize, 0u64));
    for group in groups() {
        let cells = group.len() as u64;
        count = count.saturating_add(cells * (cells - 1));
        if group.len() > largest.0 {
            largest = (group.len(), group[0].id);
        }
    }
    if count > limits::NODES as u64 {
        return Err(LayoutError::Entries { entries: count, id: largest.1, cells: largest.0 });
    }
    let mut entries = Vec::with_capacity(count as usize);
    for group in groups() {
        for from in group {
            for to in group.iter().filter(|to| to.cell != from.cell) {
                entries.push(Entry {
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
