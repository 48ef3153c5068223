//! A machine: its links and cells in flat arrays.
//!
//! [`Machine::new`] builds the topology as a petgraph, checks it, and stores it as arrays of links,
//! outgoing links and incoming links, in id order. Dead cells and links keep their ids, but appear
//! in no list of outgoing or incoming links.

mod parameters;
mod presets;

use std::collections::VecDeque;

use petgraph::visit::EdgeRef;

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::{CellId, LinkId};
use crate::limits;
use crate::lists::Lists;
use crate::topology::Topology;

pub(crate) use parameters::FIRST_NUMBERS;
pub use parameters::{Duplex, Parameters, Protocol};

/// A directed link. A record with public fields; any pair of cells can be represented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The cell that sends over it.
    pub source: CellId,
    /// The cell that receives over it.
    pub target: CellId,
}

/// A machine: its network, its parameters, and the cells and links that are dead.
///
/// ```
/// use conset_ir::{CellId, Machine};
///
/// let machine = Machine::from_spec("torus:4x4")?;
/// assert_eq!((machine.cell_count(), machine.link_count()), (16, 64));
/// for &link in machine.outgoing(CellId(0)) {
///     println!("{link} leads to {}", machine.link(link).target);
/// }
/// # Ok::<(), conset_ir::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    topology: Topology,
    parameters: Parameters,
    agents: u32,
    links: Vec<Link>,
    /// Live links by source.
    outgoing: Lists<LinkId>,
    /// Live links by target.
    incoming: Lists<LinkId>,
    dead_cells: Vec<CellId>,
    dead_links: Vec<(CellId, CellId)>,
    alive: Vec<bool>,
}

impl Machine {
    /// Builds a machine. `dead_links` are pairs of cells; a pair marks every parallel link from the
    /// first cell to the second as dead. The lists of dead cells and links may have any order.
    ///
    /// # Errors
    /// A name that is empty or too long, a topology or parameter out of range, a dead cell or link
    /// that does not exist.
    pub fn new(
        name: impl Into<String>,
        topology: Topology,
        parameters: Parameters,
        mut dead_cells: Vec<CellId>,
        mut dead_links: Vec<(CellId, CellId)>,
    ) -> Result<Self, ShapeError> {
        let name = name.into();
        if name.is_empty() || name.len() > limits::NAME || name.chars().any(char::is_control) {
            return Err(ShapeError::new(
                "machine.name",
                format!("a name has 1 to {} bytes and no control characters", limits::NAME),
            ));
        }
        parameters.check()?;
        let graph = topology.graph()?;
        let cells = graph.node_count();
        if graph.edge_count() > limits::LINKS {
            return Err(ShapeError::new("topology", format!("more than {} links", limits::LINKS)));
        }
        let links: Vec<Link> = graph
            .edge_references()
            .map(|edge| Link {
                source: CellId::from_index(edge.source().index()),
                target: CellId::from_index(edge.target().index()),
            })
            .collect();

        dead_cells.sort_unstable();
        dead_cells.dedup();
        dead_links.sort_unstable();
        dead_links.dedup();
        let mut alive = vec![true; cells];
        for cell in &dead_cells {
            match alive.get_mut(cell.index()) {
                Some(flag) => *flag = false,
                None => {
                    return Err(ShapeError::new(
                        "dead_cells",
                        format!("{cell} is not one of the machine's {cells} cells"),
                    ));
                }
            }
        }
        let is_dead = |link: &Link| {
            !alive[link.source.index()]
                || !alive[link.target.index()]
                || dead_links.binary_search(&(link.source, link.target)).is_ok()
        };
        if !dead_links.is_empty() {
            let mut known: Vec<(CellId, CellId)> =
                links.iter().map(|link| (link.source, link.target)).collect();
            known.sort_unstable();
            if let Some((from, to)) = dead_links.iter().find(|d| known.binary_search(d).is_err()) {
                return Err(ShapeError::new("dead_links", format!("no link joins {from} to {to}")));
            }
        }
        let live = links
            .iter()
            .enumerate()
            .filter(|(_, link)| !is_dead(link))
            .map(|(row, link)| (LinkId::from_index(row), *link));
        let outgoing = Lists::new(cells, live.clone().map(|(id, link)| (link.source.0, id)));
        let incoming = Lists::new(cells, live.map(|(id, link)| (link.target.0, id)));
        let agents = to_u32(topology.agents()?);
        Ok(Self {
            name,
            topology,
            parameters,
            agents,
            links,
            outgoing,
            incoming,
            dead_cells,
            dead_links,
            alive,
        })
    }

    /// The same machine with other parameters.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn with_parameters(&self, parameters: Parameters) -> Result<Self, ShapeError> {
        parameters.check()?;
        Ok(Self { parameters, ..self.clone() })
    }

    /// The same machine with additional dead cells and dead links, as in [`Machine::new`].
    ///
    /// # Errors
    /// A cell or link that does not exist.
    pub fn with_dead(
        &self,
        cells: &[CellId],
        links: &[(CellId, CellId)],
    ) -> Result<Self, ShapeError> {
        Self::new(
            self.name.clone(),
            self.topology.clone(),
            self.parameters.clone(),
            [&self.dead_cells, cells].concat(),
            [&self.dead_links, links].concat(),
        )
    }

    /// The name of the machine: the preset, or the name in its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The topology of the network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The parameters of the machine model.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of cells, switches and dead cells included.
    pub fn cell_count(&self) -> usize {
        self.alive.len()
    }

    /// All cells, switches and dead cells included.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = CellId> + use<> {
        (0..to_u32(self.cell_count())).map(CellId)
    }

    /// Number of cells with an agent, dead ones included. Their ids precede those of switches.
    pub fn agent_count(&self) -> usize {
        index(self.agents)
    }

    /// Whether the cell has an agent and is not dead, so that it can be an end of a connection.
    pub fn is_endpoint(&self, cell: CellId) -> bool {
        cell.0 < self.agents && self.alive[cell.index()]
    }

    /// The cells that can be ends of connections, in id order.
    pub fn endpoints(&self) -> impl Iterator<Item = CellId> + '_ {
        (0..self.agents).map(CellId).filter(|&cell| self.is_endpoint(cell))
    }

    /// Whether the cell is not dead.
    pub fn is_alive(&self, cell: CellId) -> bool {
        self.alive[cell.index()]
    }

    /// Number of links, dead ones included.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The ends of a link.
    #[inline]
    pub fn link(&self, link: LinkId) -> Link {
        self.links[link.index()]
    }

    /// Whether two cells with agents belong to different nodes of a cluster, so that what one sends
    /// to the other goes through the network.
    pub fn is_between_nodes(&self, a: CellId, b: CellId) -> bool {
        matches!(self.topology, Topology::Cluster { .. })
            && self.topology.node_of(a) != self.topology.node_of(b)
    }

    /// Clocks of software at each end for a message or stream between two cells beyond those of
    /// others: `network_overhead` between two nodes, else 0.
    #[inline]
    pub fn network_overhead(&self, a: CellId, b: CellId) -> u32 {
        match self.parameters.network_overhead {
            0 => 0,
            clocks if self.is_between_nodes(a, b) => clocks,
            _ => 0,
        }
    }

    /// Whether a link is between a node and the network of a cluster.
    fn is_network_link(&self, link: LinkId) -> bool {
        // The network is the last switch.
        let network = to_u32(self.cell_count() - 1);
        let Link { source, target } = self.link(link);
        matches!(self.topology, Topology::Cluster { nodes: 2.., .. })
            && (source.0 == network || target.0 == network)
    }

    /// Clocks for a word to cross a link: `link_clocks_per_word`, or `network_clocks_per_word` if
    /// that is not 0 and the link is between a node and the network of a cluster.
    #[inline]
    pub fn link_clocks(&self, link: LinkId) -> u32 {
        match self.parameters.network_clocks_per_word {
            0 => self.parameters.link_clocks_per_word,
            clocks if self.is_network_link(link) => clocks,
            _ => self.parameters.link_clocks_per_word,
        }
    }

    /// Clocks for a word to cross the slowest link between two cells: of the network if they belong
    /// to different nodes.
    #[inline]
    pub fn link_clocks_between(&self, a: CellId, b: CellId) -> u32 {
        let link = self.parameters.link_clocks_per_word;
        match self.parameters.network_clocks_per_word {
            0 => link,
            _ if !self.is_between_nodes(a, b) => link,
            // With one cell a node there are no other links.
            clocks if self.topology.has_one_cell_per_node() => clocks,
            clocks => clocks.max(link),
        }
    }

    /// The least and the greatest number of clocks for a word to cross a link. A machine need not
    /// have a link of either.
    pub fn link_clocks_range(&self) -> [u32; 2] {
        let link = self.parameters.link_clocks_per_word;
        match (&self.topology, self.parameters.network_clocks_per_word) {
            (_, 0) => [link; 2],
            (Topology::Cluster { .. }, clocks) => [clocks.min(link), clocks.max(link)],
            _ => [link; 2],
        }
    }

    /// Live links out of a cell, in id order.
    #[inline]
    pub fn outgoing(&self, cell: CellId) -> &[LinkId] {
        self.outgoing.of(cell.0)
    }

    /// Live links into a cell, in id order.
    #[inline]
    pub fn incoming(&self, cell: CellId) -> &[LinkId] {
        self.incoming.of(cell.0)
    }

    /// Live links from one cell to another, in id order: none, one, or several in parallel.
    pub fn links_between(&self, from: CellId, to: CellId) -> impl Iterator<Item = LinkId> + '_ {
        self.outgoing(from).iter().copied().filter(move |&l| self.link(l).target == to)
    }

    /// Dead cells, sorted.
    pub fn dead_cells(&self) -> &[CellId] {
        &self.dead_cells
    }

    /// Dead links as pairs of cells, sorted; a pair denotes all links from the first cell to the
    /// second.
    pub fn dead_links(&self) -> &[(CellId, CellId)] {
        &self.dead_links
    }

    /// Whether a route over these cells passes no dead cell and no dead link.
    pub fn carries(&self, cells: &[CellId]) -> bool {
        let dead = |hop: &[CellId]| self.dead_links.binary_search(&(hop[0], hop[1])).is_ok();
        cells.iter().all(|&cell| self.is_alive(cell)) && !cells.windows(2).any(dead)
    }

    /// The distance in hops from `source` to every cell over live links, by breadth-first search;
    /// `u32::MAX` for a cell that cannot be reached. O(cells + links).
    pub fn hops_from(&self, source: CellId) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.cell_count()];
        if !self.is_alive(source) {
            return hops;
        }
        hops[source.index()] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(cell) = queue.pop_front() {
            for &link in self.outgoing(cell) {
                let next = self.link(link).target;
                if hops[next.index()] == u32::MAX {
                    hops[next.index()] = hops[cell.index()] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }
}

/// Two machines are equal if their descriptions are; the arrays are derived from these.
impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.topology == other.topology
            && self.parameters == other.parameters
            && self.dead_cells == other.dead_cells
            && self.dead_links == other.dead_links
    }
}

impl Eq for Machine {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iwarp_is_the_papers_machine() {
        let machine = Machine::from_spec("iwarp").unwrap();
        assert_eq!(machine.cell_count(), 64);
        assert_eq!(machine.link_count(), 256);
        assert_eq!(machine.parameters().switch_clocks(), 528);
        assert_eq!(machine.hops_from(CellId(0)).iter().sum::<u32>(), 256);
    }

    #[test]
    fn dead_cells_keep_their_ids_and_lose_their_links() {
        let machine = Machine::new(
            "holed",
            Topology::Mesh { dims: vec![3, 1] },
            Parameters::iwarp(),
            vec![CellId(1)],
            vec![],
        )
        .unwrap();
        assert_eq!(machine.cell_count(), 3);
        assert_eq!(machine.hops_from(CellId(0)), [0, u32::MAX, u32::MAX]);
        assert_eq!(machine.endpoints().collect::<Vec<_>>(), [CellId(0), CellId(2)]);
        assert!(machine.outgoing(CellId(0)).is_empty());
    }
}
