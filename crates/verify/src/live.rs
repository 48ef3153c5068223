//! Which cells and links a route may use, worked out anew from the machine's lists of the dead.
//!
//! The machine keeps adjacency arrays that leave dead links out; routers walk those. The checker
//! does not: it starts from the full list of links and from the two lists of what is dead.

use conset_ir::{CellId, LinkId, Machine};

/// A machine with its dead parts marked.
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
                let link = machine.link(LinkId(row as u32));
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
