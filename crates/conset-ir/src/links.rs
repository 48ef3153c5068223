//! The default link between two neighbouring cells.
//!
//! Routes on disk are lists of cells. The link from one cell to the next is by default the live one
//! with the lowest id, or [`LinkId::NONE`] if no live link joins them. A route over another of
//! several parallel links lists its links. Readers and writers share this rule, so a route is read
//! back over the same links.
//!
//! For cells with few outgoing links the search is linear. A cell of a graph may have a million
//! links; such links are sorted by target once, so that the time to read a file remains
//! O(n log n) in its size.

use crate::ids::{CellId, LinkId};
use crate::machine::Machine;

/// Cells with more outgoing links than this are looked up in the sorted table.
const SCAN: usize = 32;

/// Finds the default links between cells of one machine.
///
/// ```
/// use conset_ir::{CellId, LinkFinder, LinkId, Machine};
///
/// let machine = Machine::from_spec("ring:4")?;
/// let finder = LinkFinder::new(&machine);
/// assert_eq!(finder.default_link(CellId(0), CellId(2)), LinkId::NONE);
/// let link = finder.default_link(CellId(0), CellId(1));
/// assert_eq!(machine.link(link).target, CellId(1));
/// # Ok::<(), conset_ir::SpecError>(())
/// ```
#[derive(Debug)]
pub struct LinkFinder<'a> {
    machine: &'a Machine,
    /// `(source, target, link)` of the live links out of cells with many links, sorted.
    hubs: Vec<(CellId, CellId, LinkId)>,
}

impl<'a> LinkFinder<'a> {
    /// Builds the table. O(cells + h log h) with h links out of cells with many links.
    pub fn new(machine: &'a Machine) -> Self {
        let mut hubs: Vec<(CellId, CellId, LinkId)> = machine
            .cells()
            .filter(|&cell| machine.outgoing(cell).len() > SCAN)
            .flat_map(|cell| {
                machine.outgoing(cell).iter().map(move |&l| (cell, machine.link(l).target, l))
            })
            .collect();
        hubs.sort_unstable();
        Self { machine, hubs }
    }

    /// The live link with the lowest id from one cell to another, or [`LinkId::NONE`]. `from` must
    /// be a cell of the machine; `to` may be any number.
    ///
    /// # Panics
    /// If `from` is not a cell of the machine.
    pub fn default_link(&self, from: CellId, to: CellId) -> LinkId {
        if self.machine.outgoing(from).len() <= SCAN {
            return self.machine.links_between(from, to).next().unwrap_or(LinkId::NONE);
        }
        let row = self.hubs.partition_point(|&(source, target, _)| (source, target) < (from, to));
        match self.hubs.get(row) {
            Some(&(source, target, link)) if (source, target) == (from, to) => link,
            _ => LinkId::NONE,
        }
    }

    /// The default links along a chain of cells of the machine.
    pub fn along<'b>(&'b self, cells: &'b [CellId]) -> impl Iterator<Item = LinkId> + 'b {
        cells.windows(2).map(|pair| self.default_link(pair[0], pair[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Parameters;
    use crate::topology::Topology;

    #[test]
    fn the_table_and_the_linear_search_find_the_same_links() {
        // Cell 0 has two links to each of 40 others, backwards, and one of them is dead.
        let pairs: Vec<(u32, u32)> = (1..=40).rev().flat_map(|c| [(0, c), (0, c)]).collect();
        let topology = Topology::Graph { cells: 41, switches: 0, links: pairs };
        let dead = vec![(CellId(0), CellId(7))];
        let machine = Machine::new("hub", topology, Parameters::iwarp(), vec![], dead).unwrap();
        let finder = LinkFinder::new(&machine);
        for to in 0..42 {
            let plain = machine.links_between(CellId(0), CellId(to)).next();
            assert_eq!(finder.default_link(CellId(0), CellId(to)), plain.unwrap_or(LinkId::NONE));
        }
        assert_eq!(finder.default_link(CellId(0), CellId(40)), LinkId(0));
        assert_eq!(finder.default_link(CellId(0), CellId(7)), LinkId::NONE);
        assert_eq!(finder.default_link(CellId(1), CellId(0)), LinkId::NONE);
    }
}
