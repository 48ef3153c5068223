//! A table by phase and cell, in which most values are still the default value.
//!
//! The router has as many layers as there are phases, and each may hold only a few routes: sixty
//! thousand connections of one cell take five thousand phases, each a layer of all cells. So the
//! cells of a phase are divided into pages, and all pages that hold only default values share one
//! page. On a machine of a single page this is a plain table.

use std::ops::Index;

use conset_ir::convert::{index, to_u32};

/// The most cells of a page, as a power of 2.
const MAX_PAGE_BITS: u32 = 8;

/// Values by phase and cell.
#[derive(Clone, Debug)]
pub(crate) struct PagedTable<T> {
    /// A page has 2 to the power of this cells.
    bits: u32,
    /// Pages of a phase.
    pages_per_phase: usize,
    /// By phase and page: its position in `values`. Page 0 is shared and holds default values.
    table: Vec<u32>,
    values: Vec<T>,
    /// Pages that are free again; they hold default values.
    free_pages: Vec<u32>,
}

/// The values of one phase, by cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseView<'a, T> {
    bits: u32,
    table: &'a [u32],
    values: &'a [T],
}

impl<T: Clone + Default> PagedTable<T> {
    /// A table without phases, for a machine of `cells` cells.
    pub(crate) fn new(cells: usize) -> Self {
        let bits = cells.next_power_of_two().trailing_zeros().min(MAX_PAGE_BITS);
        Self {
            bits,
            pages_per_phase: cells.div_ceil(1 << bits),
            table: Vec::new(),
            values: vec![T::default(); 1 << bits],
            free_pages: Vec::new(),
        }
    }

    /// Adds a phase at the end.
    pub(crate) fn open_phase(&mut self) {
        self.table.resize(self.table.len() + self.pages_per_phase, 0);
    }

    /// Removes a phase whose values are all default values; later phases move up.
    pub(crate) fn close_phase(&mut self, phase: u32) {
        let first = index(phase) * self.pages_per_phase;
        let pages = self.table.drain(first..first + self.pages_per_phase);
        self.free_pages.extend(pages.filter(|&page| page != 0));
    }

    /// Sets all values to the default value, for this number of phases.
    pub(crate) fn reset(&mut self, phases: u32) {
        self.table.clear();
        self.table.resize(index(phases) * self.pages_per_phase, 0);
        self.values.truncate(1 << self.bits);
        self.free_pages.clear();
    }

    /// The values of a phase.
    #[inline]
    pub(crate) fn of(&self, phase: u32) -> PhaseView<'_, T> {
        let first = index(phase) * self.pages_per_phase;
        let table = &self.table[first..first + self.pages_per_phase];
        PhaseView { bits: self.bits, table, values: &self.values }
    }

    /// The value of a cell in a phase, to be changed.
    #[inline]
    pub(crate) fn value_mut(&mut self, phase: u32, cell: u32) -> &mut T {
        let entry = index(phase) * self.pages_per_phase + index(cell >> self.bits);
        if self.table[entry] == 0 {
            self.allocate_page(entry);
        }
        let page = index(self.table[entry]) << self.bits;
        &mut self.values[page + index(cell & ((1 << self.bits) - 1))]
    }

    #[cold]
    fn allocate_page(&mut self, entry: usize) {
        self.table[entry] = self.free_pages.pop().unwrap_or_else(|| {
            let page = self.values.len() >> self.bits;
            self.values.resize(self.values.len() + (1 << self.bits), T::default());
            to_u32(page)
        });
    }

    /// Cells for which memory is allocated.
    pub(crate) fn allocated_cells(&self) -> usize {
        self.values.len()
    }
}

impl<T> Index<usize> for PhaseView<'_, T> {
    type Output = T;

    #[inline]
    fn index(&self, cell: usize) -> &T {
        let page = index(self.table[cell >> self.bits]) << self.bits;
        &self.values[page + (cell & ((1 << self.bits) - 1))]
    }
}

impl<'a, T> PhaseView<'a, T> {
    /// The value of a cell.
    pub(crate) fn get(self, cell: u32) -> &'a T {
        let page = index(self.table[index(cell) >> self.bits]) << self.bits;
        &self.values[page + (index(cell) & ((1 << self.bits) - 1))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_values_on_many_large_sheets_take_a_few_pages() {
        let (cells, phases) = (100_000, 1000);
        let mut table: PagedTable<u16> = PagedTable::new(cells);
        (0..phases).for_each(|_| table.open_phase());
        for phase in 0..phases {
            *table.value_mut(phase, 99_999 - phase) += phase as u16;
        }
        assert_eq!(table.allocated_cells(), 256 * (phases as usize + 1));
        for phase in 0..phases {
            assert_eq!(table.of(phase)[99_999 - phase as usize], phase as u16);
            assert_eq!(table.of(phase)[0], 0);
        }
        // An empty phase is removed, the others move up, and its page is used again.
        table.close_phase(0);
        assert_eq!(*table.of(6).get(99_992), 7);
        table.open_phase();
        *table.value_mut(phases - 1, 3) = 1;
        assert_eq!(table.allocated_cells(), 256 * (phases as usize + 1));
        table.reset(2);
        assert_eq!((table.of(1)[3], table.allocated_cells()), (0, 256));
    }

    #[test]
    fn a_small_machine_has_one_page() {
        for cells in [1, 2, 64, 100, 256] {
            let mut table: PagedTable<u32> = PagedTable::new(cells);
            table.open_phase();
            *table.value_mut(0, cells as u32 - 1) = 5;
            assert_eq!(table.of(0)[cells - 1], 5);
            assert_eq!(table.allocated_cells(), 2 * cells.next_power_of_two());
        }
    }
}
