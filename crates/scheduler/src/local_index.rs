//! Dense numbers for the ports, links or connections that one phase uses.

use conset_ir::convert::to_u32;
use conset_ir::{ConnectionId, LinkId};

/// An id that numbers the rows of a table.
pub(crate) trait RowId: Copy {
    /// The row that the id names.
    fn row(self) -> usize;
}

impl RowId for LinkId {
    #[inline]
    fn row(self) -> usize {
        self.index()
    }
}

impl RowId for ConnectionId {
    #[inline]
    fn row(self) -> usize {
        self.index()
    }
}

/// A map from ids, the rows of a large table, to dense numbers, assigned from 0 in the order of
/// first use. Clearing takes time in proportion to the ids in use, not to the size of the table, so
/// a phase of ten routes costs the same on any machine.
#[derive(Debug)]
pub(crate) struct LocalIndex<Id> {
    local_of: Vec<u32>,
    ids: Vec<Id>,
}

impl<Id: RowId> LocalIndex<Id> {
    const UNUSED: u32 = u32::MAX;

    /// No id is in use. `rows` is the size of the table.
    pub(crate) fn new(rows: usize) -> Self {
        Self { local_of: vec![Self::UNUSED; rows], ids: Vec::new() }
    }

    /// The number of an id. Assigns the next number if the id has none.
    pub(crate) fn index_of(&mut self, id: Id) -> u32 {
        let local = &mut self.local_of[id.row()];
        if *local == Self::UNUSED {
            *local = to_u32(self.ids.len());
            self.ids.push(id);
        }
        *local
    }

    /// The number of an id, if it has one.
    pub(crate) fn get(&self, id: Id) -> Option<u32> {
        let local = self.local_of[id.row()];
        (local != Self::UNUSED).then_some(local)
    }

    /// The ids in use, by their numbers.
    pub(crate) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// Forgets all ids.
    pub(crate) fn clear(&mut self) {
        for id in self.ids.drain(..) {
            self.local_of[id.row()] = Self::UNUSED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_numbers_are_dense_and_forgotten() {
        let mut links = LocalIndex::new(10);
        let numbers = [7, 2, 7].map(|link| links.index_of(LinkId(link)));
        assert_eq!((numbers, links.ids()), ([0, 1, 0], &[LinkId(7), LinkId(2)][..]));
        links.clear();
        assert_eq!((links.get(LinkId(7)), links.index_of(LinkId(2))), (None, 0));
    }
}
