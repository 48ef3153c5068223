//! The live cells and links of a machine, computed from its lists of dead cells and links.
//!
//! The machine has adjacency arrays without dead links, which routers use. The checker does not use
//! them. It starts from the full list of links and the two lists of dead cells and links.

use conset_ir::{CellId, LinkId, Machine};

/// A machine with marks for its live cells and links.
pub(crate) struct Live<'a> {
    machine: &'a Machine,
    cells: Vec<bool>,
    links: Vec<bool>,
}

impl<'a> Live<'a> {
    /// O(cells + links x log(dead links)).
    pub(crate) fn new(machine: &'a Machine) -> Self {
        let mut cells = vec![true; machine.cell_count()];
        for cell in machine.dead_cells() {
            cells[cell.index()] = false;
        }
        let dead = machine.dead_links();
        let links = (0..machine.link_count())
            .map(|row| {
                let link = machine.link(LinkId::from_index(row));
                cells[link.source.index()]
                    && cells[link.target.index()]
                    && (dead.is_empty() || dead.binary_search(&(link.source, link.target)).is_err())
            })
            .collect();
        Self { machine, cells, links }
    }

    pub(crate) fn machine(&self) -> &'a Machine {
        self.machine
    }

    /// Whether the cell can be an end of a connection.
    pub(crate) fn is_agent(&self, cell: CellId) -> bool {
        cell.index() < self.machine.agent_count() && self.is_alive(cell)
    }

    /// Whether the cell is one of the machine's and not dead.
    pub(crate) fn is_alive(&self, cell: CellId) -> bool {
        self.cells.get(cell.index()).is_some_and(|alive| *alive)
    }

    /// Whether the link is one of the machine's, not dead, and joins no dead cell.
    pub(crate) fn is_link_alive(&self, link: LinkId) -> bool {
        self.links.get(link.index()).is_some_and(|alive| *alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::Topology;

    #[test]
    fn switches_and_dead_cells_have_no_agent_and_links_of_dead_cells_are_dead() {
        let topology = Topology::fat_tree(4);
        let parameters = conset_ir::Parameters::iwarp();
        // Cells c0 to c3 below the one switch, c4.
        let dead_links = vec![(CellId(0), CellId(4))];
        let machine = Machine::new("t", topology, parameters, vec![CellId(1)], dead_links).unwrap();
        let live = Live::new(&machine);
        let agents = [0, 1, 2, 3, 4, 99].map(|c| live.is_agent(CellId(c)));
        assert_eq!(agents, [true, false, true, true, false, false]);
        assert!(!live.is_link_alive(LinkId::NONE));
        // The machine's own lists leave out the same links.
        for row in 0..machine.link_count() as u32 {
            let link = LinkId(row);
            let listed = machine.outgoing(machine.link(link).source).contains(&link);
            assert_eq!(live.is_link_alive(link), listed, "{link}");
        }
    }
}
