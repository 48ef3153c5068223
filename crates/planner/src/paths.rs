//! Paths of all connections in one array, and paths over the dimensions in order.
//!
//! A million connections have one path each, so these share their memory.

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

/// The cells of a path from `source` over the dimensions in order, by a number of steps in each:
/// negative ones lead to smaller coordinates, and dimensions wrap around.
pub(super) fn dimension_ordered(source: u32, steps: &[i64], dims: &[u32]) -> Vec<u32> {
    let mut at = source;
    let mut cells = vec![at];
    let mut stride = 1;
    for (&step, &size) in steps.iter().zip(dims) {
        for _ in 0..step.unsigned_abs() {
            let place = at / stride % size;
            let next = if step > 0 { (place + 1) % size } else { (place + size - 1) % size };
            at = at - place * stride + next * stride;
            cells.push(at);
        }
        stride *= size;
    }
    cells
}
