//! Paths of all connections in one array: a million connections have one path each.

use conset_ir::convert::index;

/// A path of cells for each of some connections, in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    first: Vec<u32>,
    cells: Vec<u32>,
}

impl Paths {
    pub(super) fn with_capacity(paths: usize) -> Self {
        let mut first = Vec::with_capacity(paths + 1);
        first.push(0);
        Self { first, cells: Vec::new() }
    }

    /// Adds a path, source first.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = u32>) {
        self.cells.extend(cells);
        self.first.push(u32::try_from(self.cells.len()).expect("hops are limited"));
    }

    pub(super) fn of(&self, row: usize) -> &[u32] {
        &self.cells[index(self.first[row])..index(self.first[row + 1])]
    }
}
