//! Which link a pair of neighbouring cells means in a file.
//!
//! Routes on disk name cells; the link between two of them is the live one with the lowest id,
//! or [`LinkId::NONE`] where no live link joins them. A route that runs over another of several
//! parallel links says so. Readers and writers share this rule, so that a route comes back over
//! the links it went out with.
//!
//! Cells of few links are searched as they are. A graph may have a hub of a million links; its
//! links are sorted by target once, so that a file of many routes through it is still read in
//! time linear in the file (but for a logarithm).

use crate::ids::{CellId, LinkId};
use crate::machine::Machine;

/// Cells with more outgoing links than this are searched through the sorted table.
const SCAN: usize = 32;

/// Finds the default link between cells of one machine.
#[derive(Debug)]
pub struct LinkFinder<'a> {
    machine: &'a Machine,
    /// `(source, target, link)` of live links out of cells with many, sorted.
    hubs: Vec<(CellId, CellId, LinkId)>,
}

impl<'a> LinkFinder<'a> {
    /// Prepares the table. O(cells + links of hubs).
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

    /// The live link with the lowest id from one cell to another, `NONE` where there is none.
    /// `from` must be one of the machine's cells; `to` may be any number.
    pub fn default(&self, from: CellId, to: CellId) -> LinkId {
        if self.machine.outgoing(from).len() <= SCAN {
            return self.machine.links_between(from, to).next().unwrap_or(LinkId::NONE);
        }
        let row = self.hubs.partition_point(|&(source, target, _)| (source, target) < (from, to));
        match self.hubs.get(row) {
            Some(&(source, target, link)) if (source, target) == (from, to) => link,
            _ => LinkId::NONE,
        }
    }

    /// The default links along a chain of cells, all of which must be the machine's.
    pub fn along<'b>(&'b self, cells: &'b [CellId]) -> impl Iterator<Item = LinkId> + 'b {
        cells.windows(2).map(|pair| self.default(pair[0], pair[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Parameters;
    use crate::topology::Topology;

    #[test]
    fn hubs_and_small_cells_follow_the_same_rule() {
        // Cell 0 has two links to each of 40 others, backwards, and one of them is dead.
        let pairs: Vec<(u32, u32)> = (1..=40).rev().flat_map(|c| [(0, c), (0, c)]).collect();
        let topology = Topology::Graph { cells: 41, switches: 0, links: pairs };
        let dead = vec![(CellId(0), CellId(7))];
        let machine = Machine::new("hub", topology, Parameters::iwarp(), vec![], dead).unwrap();
        let finder = LinkFinder::new(&machine);
        for to in 0..42 {
            let plain = machine.links_between(CellId(0), CellId(to)).next();
            assert_eq!(finder.default(CellId(0), CellId(to)), plain.unwrap_or(LinkId::NONE));
        }
        assert_eq!(finder.default(CellId(0), CellId(40)), LinkId(0));
        assert_eq!(finder.default(CellId(0), CellId(7)), LinkId::NONE);
        assert_eq!(finder.default(CellId(1), CellId(0)), LinkId::NONE);
    }
}
