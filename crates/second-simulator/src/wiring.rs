//! Cells and links of a machine (rules T1 to T6).

use std::collections::{BTreeSet, HashSet};

use conset_ir::convert::index;
use conset_ir::{Machine, Topology};

/// The cells and links of a machine, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// Number of cells with an agent; they come first.
    pub agents: usize,
    /// Whether each cell is not dead.
    pub live_cells: Vec<bool>,
    /// Source and target cell of each link.
    pub links: Vec<(usize, usize)>,
    /// The live links out of each cell, by number.
    pub outgoing: Vec<Vec<usize>>,
    /// Clocks for a word to cross each link (T7).
    pub(crate) link_clocks: Vec<u64>,
    /// Of a cluster, the cells of a node and `network_overhead`.
    node: Option<(usize, u64)>,
}

impl Wiring {
    /// The wiring of a machine. Of the machine, only its description is used: the topology and the
    /// lists of dead cells and links.
    pub fn new(machine: &Machine) -> Self {
        let (agents, cells, links) = match machine.topology() {
            Topology::Torus { dims } => grid(dims, true),
            Topology::Mesh { dims } => grid(dims, false),
            Topology::Ring { cells } => grid(&[*cells], true),
            Topology::Hypercube { dimension } => hypercube(*dimension),
            Topology::FatTree { leaves, parents } => fat_tree(index(*leaves), parents),
            Topology::Cluster { nodes, cells_per_node } => {
                cluster(index(*nodes), index(*cells_per_node))
            }
            Topology::Graph { cells, switches, links } => {
                let links = links.iter().map(|&(from, to)| (index(from), index(to)));
                (index(*cells), index(*cells) + index(*switches), links.collect())
            }
        };
        let dead_cells: BTreeSet<usize> = machine.dead_cells().iter().map(|c| c.index()).collect();
        let dead_pairs = machine.dead_links().iter().map(|(from, to)| (from.index(), to.index()));
        let dead_pairs: HashSet<(usize, usize)> = dead_pairs.collect();
        let is_dead = |link: &(usize, usize)| {
            dead_pairs.contains(link)
                || dead_cells.contains(&link.0)
                || dead_cells.contains(&link.1)
        };
        let mut outgoing = vec![Vec::new(); cells];
        for (number, link) in links.iter().enumerate().filter(|(_, link)| !is_dead(link)) {
            outgoing[link.0].push(number);
        }
        let live_cells = (0..cells).map(|cell| !dead_cells.contains(&cell)).collect();
        let parameters = machine.parameters();
        let mut link_clocks = vec![u64::from(parameters.link_clocks_per_word); links.len()];
        let mut node = None;
        if let Topology::Cluster { nodes, cells_per_node } = machine.topology() {
            node = Some((index(*cells_per_node), u64::from(parameters.network_overhead)));
            let network_clocks = u64::from(parameters.network_clocks_per_word);
            for (clocks, &(source, target)) in link_clocks.iter_mut().zip(&links) {
                if *nodes > 1 && network_clocks > 0 && source.max(target) == cells - 1 {
                    *clocks = network_clocks;
                }
            }
        }
        Self { agents, live_cells, links, outgoing, link_clocks, node }
    }

    /// T8.
    pub(crate) fn overhead(&self, a: usize, b: usize) -> u64 {
        match self.node {
            Some((cells, overhead)) if a / cells != b / cells => overhead,
            _ => 0,
        }
    }

    /// Whether all cells and links are alive.
    pub fn is_whole(&self) -> bool {
        let live: usize = self.outgoing.iter().map(Vec::len).sum();
        live == self.links.len() && self.live_cells.iter().all(|&live| live)
    }
}

type CellsAndLinks = (usize, usize, Vec<(usize, usize)>);

/// T2.
fn grid(dims: &[u32], wraps: bool) -> CellsAndLinks {
    let dims: Vec<usize> = dims.iter().map(|&d| index(d)).collect();
    let cells = dims.iter().product();
    let mut links = Vec::new();
    for cell in 0..cells {
        let mut stride = 1;
        for &d in &dims {
            let x = cell / stride % d;
            let at = |coordinate: usize| cell - x * stride + coordinate * stride;
            if d > 1 && (wraps || x + 1 < d) {
                links.push((cell, at((x + 1) % d)));
            }
            if d > 1 && (wraps || x > 0) {
                links.push((cell, at((x + d - 1) % d)));
            }
            stride *= d;
        }
    }
    (cells, cells, links)
}

/// T3.
fn hypercube(dimension: u32) -> CellsAndLinks {
    let cells = 1 << dimension;
    let links =
        (0..cells).flat_map(|cell| (0..dimension).map(move |bit| (cell, cell ^ (1 << bit))));
    (cells, cells, links.collect())
}

/// T4.
fn fat_tree(leaves: usize, parents: &[u32]) -> CellsAndLinks {
    let parents_of = |level: usize| index(parents[level.min(parents.len() - 1)]);
    // Per level: the number of groups, of nodes in each, and the first cell.
    let (mut groups, mut nodes, mut first) = (vec![leaves], vec![1], vec![0]);
    let mut top = 0;
    while groups[top] > 1 {
        groups.push(groups[top].div_ceil(4));
        nodes.push(nodes[top] * parents_of(top));
        first.push(first[top] + groups[top] * nodes[top]);
        top += 1;
    }
    let mut links = Vec::new();
    for h in 0..top {
        for g in 0..groups[h] {
            for u in 0..nodes[h] * parents_of(h) {
                let lower = first[h] + g * nodes[h] + u / parents_of(h);
                let upper = first[h + 1] + g / 4 * nodes[h + 1] + u;
                links.extend([(lower, upper), (upper, lower)]);
            }
        }
    }
    (leaves, first[top] + groups[top] * nodes[top], links)
}

/// T4a.
fn cluster(nodes: usize, cells_per_node: usize) -> CellsAndLinks {
    let agents = nodes * cells_per_node;
    let switches = if cells_per_node > 1 { nodes } else { 0 };
    let network = agents + switches;
    let mut links = Vec::new();
    let mut join = |lower, upper| links.extend([(lower, upper), (upper, lower)]);
    if switches > 0 {
        (0..agents).for_each(|cell| join(cell, agents + cell / cells_per_node));
    }
    if nodes == 1 {
        return (agents, network, links);
    }
    // A node is its switch, or its only cell.
    let first = if switches > 0 { agents } else { 0 };
    (0..nodes).for_each(|node| join(first + node, network));
    (agents, network + 1, links)
}
