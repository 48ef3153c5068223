//! Layouts of owners and ghosts: each id has one owner, and other cells keep a copy of its value.

use conset_ir::CellId;
use conset_ir::convert::index;

use super::{IdPlace, Layout, LayoutEntry, LayoutError, places};

/// What one cell has: its own ids first, then its ghosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// The global ids of the cell's vector, in its order.
    pub ids: Vec<u64>,
    /// How many of them, from the first on, the cell owns.
    pub owned: usize,
}

/// Both ways between owners and ghosts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedLayout {
    /// From owners to ghosts: to copy values.
    pub forward: Layout,
    /// From ghosts to owners: to add contributions up.
    pub backward: Layout,
}

impl Layout {
    /// The layouts of owners and ghosts, both ways. Ids without a ghost are not sent.
    ///
    /// O(n log n) in the ids.
    ///
    /// # Errors
    /// An id with two owners or a ghost with none, an id that a cell lists twice, a cell that
    /// owns more than it lists, too many cells or ids.
    pub fn from_owned(parts: &[Owned]) -> Result<OwnedLayout, LayoutError> {
        for (cell, part) in parts.iter().enumerate() {
            if part.owned > part.ids.len() {
                return Err(LayoutError::OwnedCount {
                    cell: CellId::from_index(cell),
                    owned: part.owned,
                    ids: part.ids.len(),
                });
            }
        }
        let ids: Vec<&[u64]> = parts.iter().map(|part| part.ids.as_slice()).collect();
        let (all, items) = places(&ids)?;
        let mut entries = Vec::new();
        for group in all.chunk_by(|a, b| a.id == b.id) {
            let owner = owner(group, parts)?;
            let ghosts = group.iter().filter(|place| place.cell != owner.cell);
            entries.extend(ghosts.map(|ghost| LayoutEntry {
                source: owner.cell,
                target: ghost.cell,
                id: owner.id,
                send: owner.position,
                receive: ghost.position,
            }));
        }
        let forward = Self::from_entries(items, entries, false);
        Ok(OwnedLayout { backward: forward.reversed(), forward })
    }
}

/// The one place of an id that owns it.
fn owner(group: &[IdPlace], parts: &[Owned]) -> Result<IdPlace, LayoutError> {
    let owns = |place: &&IdPlace| index(place.position) < parts[index(place.cell)].owned;
    let mut owners = group.iter().filter(owns);
    let id = group[0].id;
    match (owners.next(), owners.next()) {
        (Some(&owner), None) => Ok(owner),
        (Some(first), Some(second)) => Err(LayoutError::OwnedTwice {
            id,
            first: CellId(first.cell),
            second: CellId(second.cell),
        }),
        (None, _) => Err(LayoutError::Unowned { cell: CellId(group[0].cell), id }),
    }
}
