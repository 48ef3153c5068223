//! Topologies: the cells of a machine and the links between them (machine model, rule 1).
//!
//! A topology is a short description. [`Topology::graph`] expands it into a petgraph whose nodes are
//! cells and whose edges are directed links. Node and edge numbers are cell and link ids, so the
//! order in which this module adds them is part of every file format. The cells of a torus or mesh
//! are numbered with the first dimension varying fastest (`cell = x + dims[0] * y + ...`). Links are
//! added cell by cell, for each cell dimension by dimension, the link towards larger coordinates
//! first. Switches (of fat-trees and graphs) are numbered after the cells with agents.

use petgraph::graph::{DiGraph, NodeIndex};
use serde::{Deserialize, Serialize};

use crate::convert::{index, to_u32};
use crate::error::ShapeError;
use crate::ids::CellId;
use crate::limits;

/// The topology of a machine's network.
///
/// The enum is exhaustive: a new topology is a new version of the formats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// A grid in which every dimension is a ring. A dimension of 2 has two parallel links in each
    /// direction; a dimension of 1 has none.
    Torus {
        /// Cells in each dimension.
        dims: Vec<u32>,
    },
    /// A grid without wrap-around links.
    Mesh {
        /// Cells in each dimension.
        dims: Vec<u32>,
    },
    /// A torus of one dimension.
    Ring {
        /// Number of cells.
        cells: u32,
    },
    /// A hypercube: cells whose numbers differ in one bit are neighbours.
    Hypercube {
        /// Number of dimensions; the cells are 2 to this power.
        dimension: u32,
    },
    /// A 4-ary fat-tree in the style of the CM-5: cells are the leaves, and the switches of a group
    /// of 4^h leaves have one link to and from each of its four child groups, so there are as many
    /// as a child group has links up. With any other number of leaves some groups are partly filled.
    FatTree {
        /// Number of cells (leaves).
        leaves: u32,
        /// Parents of a leaf, of a switch of level 1, of level 2, and so on; the last number is
        /// that of all higher levels. [`Topology::DEFAULT_PARENTS`] is not written to files.
        #[serde(default = "default_parents", skip_serializing_if = "is_default_parents")]
        parents: Vec<u32>,
    },
    /// A cluster: nodes with the same number of cells (cores), in which every cell reaches every
    /// other through switches without contention of their own. With several cells a node, each node
    /// has a switch, to and from which each of its cells has a link; with several nodes, the network
    /// is one more switch, to and from which each node has a link. So the words of all cells of a
    /// node share the links of the node, and nothing else. Cells are numbered node by node.
    Cluster {
        /// Number of nodes.
        nodes: u32,
        /// Number of cells of each node.
        #[serde(default = "one_cell", skip_serializing_if = "is_one_cell")]
        cells_per_node: u32,
    },
    /// Any directed graph.
    Graph {
        /// Number of cells with an agent.
        cells: u32,
        /// Number of switches, numbered after the cells.
        #[serde(default)]
        switches: u32,
        /// Directed links, `[from, to]`; repeat a pair for parallel links.
        links: Vec<(u32, u32)>,
    },
}

/// A level of a fat-tree or cluster. Level 0 has the leaves, each a group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLevel {
    /// Leaves of a group: 4^h at level `h` of a fat-tree, of which the last group may have fewer;
    /// those of a node, and all, in a cluster.
    pub leaves: usize,
    /// Groups of this level.
    pub groups: usize,
    /// Leaves or switches of a group.
    pub nodes: usize,
    /// Links from each of these nodes to the next level.
    pub parents: usize,
}

impl TreeLevel {
    /// Links from a group to the next level; also its links from there.
    pub fn links_up(&self) -> usize {
        self.nodes.saturating_mul(self.parents)
    }
}

fn one_cell() -> u32 {
    1
}

fn is_one_cell(cells_per_node: &u32) -> bool {
    *cells_per_node == 1
}

fn default_parents() -> Vec<u32> {
    Topology::DEFAULT_PARENTS.to_vec()
}

fn is_default_parents(parents: &[u32]) -> bool {
    parents == Topology::DEFAULT_PARENTS
}

impl Topology {
    /// The parents per level of a fat-tree that names none: one of a leaf, two of a switch, so that
    /// a group of 4^h leaves has 2^(h-1) switches.
    pub const DEFAULT_PARENTS: [u32; 2] = [1, 2];

    /// A fat-tree with [`Topology::DEFAULT_PARENTS`].
    pub fn fat_tree(leaves: u32) -> Self {
        Topology::FatTree { leaves, parents: default_parents() }
    }

    /// Whether this is a fat-tree with other parents than [`Topology::DEFAULT_PARENTS`].
    pub(crate) fn has_own_parents(&self) -> bool {
        matches!(self, Topology::FatTree { parents, .. } if !is_default_parents(parents))
    }

    /// The levels of a fat-tree or cluster from the leaves up to the level of one group; empty for
    /// other topologies. Counts saturate, since the numbers of parents may be any.
    pub fn tree_levels(&self) -> Vec<TreeLevel> {
        match self {
            Topology::FatTree { leaves, parents } => {
                let mut of_level = parents.iter().map(|&count| index(count));
                let parents = of_level.next().unwrap_or(1);
                let groups = index(*leaves);
                let mut levels = vec![TreeLevel { leaves: 1, groups, nodes: 1, parents }];
                while let Some(below) = levels.last().filter(|level| level.groups > 1) {
                    let level = TreeLevel {
                        leaves: below.leaves * 4,
                        groups: below.groups.div_ceil(4),
                        nodes: below.links_up(),
                        parents: of_level.next().unwrap_or(below.parents),
                    };
                    levels.push(level);
                }
                levels
            }
            Topology::Cluster { nodes, cells_per_node } => {
                let (nodes, cells) = (index(*nodes), index(*cells_per_node));
                let all = nodes.saturating_mul(cells);
                let level = |leaves: usize, groups: usize| TreeLevel {
                    leaves,
                    groups,
                    nodes: 1,
                    parents: 1,
                };
                let mut levels = vec![level(1, all)];
                levels.extend((cells > 1).then(|| level(cells, nodes)));
                levels.extend((nodes > 1).then(|| level(all, 1)));
                levels
            }
            _ => Vec::new(),
        }
    }

    /// The node that a cell with an agent belongs to. In a cluster, several cells may be of one
    /// node; elsewhere every cell is a node of its own.
    pub fn node_of(&self, cell: CellId) -> u32 {
        match self {
            Topology::Cluster { cells_per_node, .. } => cell.0 / (*cells_per_node).max(1),
            _ => cell.0,
        }
    }

    /// The word for this shape in machine specifications and in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Topology::Torus { .. } => "torus",
            Topology::Mesh { .. } => "mesh",
            Topology::Ring { .. } => "ring",
            Topology::Hypercube { .. } => "hypercube",
            Topology::FatTree { .. } => "fat-tree",
            Topology::Cluster { .. } => "cluster",
            Topology::Graph { .. } => "graph",
        }
    }

    /// The number of cells in each dimension, for topologies with coordinates: torus, mesh, ring
    /// (one dimension) and hypercube (dimensions of 2).
    pub fn dims(&self) -> Option<Vec<u32>> {
        match self {
            Topology::Torus { dims } | Topology::Mesh { dims } => Some(dims.clone()),
            Topology::Ring { cells } => Some(vec![*cells]),
            Topology::Hypercube { dimension } => Some(vec![2; index(*dimension)]),
            Topology::FatTree { .. } | Topology::Cluster { .. } | Topology::Graph { .. } => None,
        }
    }

    /// Whether no two cells belong to one node.
    pub(crate) fn has_one_cell_per_node(&self) -> bool {
        !matches!(self, Topology::Cluster { cells_per_node: 2.., .. })
    }

    /// Whether each dimension is a ring.
    pub fn wraps(&self) -> bool {
        matches!(self, Topology::Torus { .. } | Topology::Ring { .. })
    }

    /// The number of cells with an agent.
    ///
    /// # Errors
    /// A size that is 0 or exceeds [`limits`].
    pub fn agents(&self) -> Result<usize, ShapeError> {
        if let Topology::FatTree { parents, .. } = self {
            let levels = 1..=limits::FAT_TREE_LEVELS;
            if !levels.contains(&parents.len()) || parents.contains(&0) {
                return Err(ShapeError::new(
                    "topology.parents",
                    format!(
                        "expected 1 to {} numbers of parents, each at least 1",
                        limits::FAT_TREE_LEVELS
                    ),
                ));
            }
        }
        let agents = match self {
            Topology::Torus { dims } | Topology::Mesh { dims } => {
                if dims.is_empty() || dims.len() > limits::DIMENSIONS {
                    return Err(ShapeError::new(
                        "topology.dims",
                        format!("{} dimensions, expected 1 to {}", dims.len(), limits::DIMENSIONS),
                    ));
                }
                dims.iter().try_fold(1usize, |product, &d| product.checked_mul(index(d)))
            }
            Topology::Ring { cells } => Some(index(*cells)),
            Topology::Hypercube { dimension } => 1usize.checked_shl(*dimension),
            Topology::FatTree { leaves, .. } => Some(index(*leaves)),
            Topology::Cluster { nodes, cells_per_node } => {
                index(*nodes).checked_mul(index(*cells_per_node))
            }
            Topology::Graph { cells, .. } => Some(index(*cells)),
        };
        match agents {
            Some(n) if (1..=limits::CELLS).contains(&n) => Ok(n),
            Some(0) => Err(ShapeError::new("topology", "a machine needs at least one cell")),
            _ => Err(ShapeError::new("topology", format!("more than {} cells", limits::CELLS))),
        }
    }

    /// The network as a graph: node numbers are cell ids, edge numbers are link ids.
    ///
    /// # Errors
    /// A size that is 0 or exceeds [`limits`], or a link of a `Graph` that has an end that does not
    /// exist or joins a cell to itself.
    pub fn graph(&self) -> Result<DiGraph<(), (), u32>, ShapeError> {
        let agents = self.agents()?;
        if self.regular_links(agents) > limits::LINKS {
            return Err(ShapeError::new("topology", format!("more than {} links", limits::LINKS)));
        }
        let mut graph = DiGraph::default();
        graph.reserve_nodes(agents);
        for _ in 0..agents {
            graph.add_node(());
        }
        match self {
            Topology::Torus { dims } => add_grid(&mut graph, dims, true),
            Topology::Mesh { dims } => add_grid(&mut graph, dims, false),
            Topology::Ring { cells } => add_grid(&mut graph, &[*cells], true),
            Topology::Hypercube { dimension } => {
                for cell in 0..agents {
                    for bit in 0..*dimension {
                        link(&mut graph, cell, cell ^ (1 << bit));
                    }
                }
            }
            Topology::FatTree { .. } | Topology::Cluster { .. } => {
                add_tree(&mut graph, &self.tree_levels());
            }
            Topology::Graph { switches, links, .. } => {
                let nodes = agents + index(*switches);
                if nodes > limits::CELLS || links.len() > limits::LINKS {
                    return Err(ShapeError::new(
                        "topology",
                        format!("more than {} cells or {} links", limits::CELLS, limits::LINKS),
                    ));
                }
                for _ in agents..nodes {
                    graph.add_node(());
                }
                for (row, &(from, to)) in links.iter().enumerate() {
                    let place = || format!("topology.links[{row}]");
                    if index(from) >= nodes || index(to) >= nodes {
                        return Err(ShapeError::new(
                            place(),
                            format!("link {from} -> {to} has an end beyond the {nodes} cells"),
                        ));
                    }
                    if from == to {
                        return Err(ShapeError::new(
                            place(),
                            format!("link {from} -> {to} joins a cell to itself"),
                        ));
                    }
                    link(&mut graph, index(from), index(to));
                }
            }
        }
        Ok(graph)
    }

    /// The number of links of topologies that could have too many, computed before they are built.
    /// (A graph lists its links.)
    fn regular_links(&self, agents: usize) -> usize {
        let per_dimension = |size: u32, wraps: bool| match (index(size), wraps) {
            (1, _) => 0,
            (_, true) => 2 * agents,
            (size, false) => 2 * (agents / size) * (size - 1),
        };
        match self {
            Topology::Torus { dims } => dims.iter().map(|&d| per_dimension(d, true)).sum(),
            Topology::Mesh { dims } => dims.iter().map(|&d| per_dimension(d, false)).sum(),
            Topology::Hypercube { dimension } => agents * index(*dimension),
            Topology::FatTree { .. } | Topology::Cluster { .. } => {
                let levels = self.tree_levels();
                let below = levels.iter().filter(|level| level.groups > 1);
                let links = below.map(|level| level.links_up().saturating_mul(2 * level.groups));
                links.fold(0, usize::saturating_add)
            }
            _ => 0,
        }
    }

    /// The coordinates of a cell, first dimension first, for topologies with coordinates.
    pub fn coordinates(&self, cell: usize) -> Option<Vec<u32>> {
        let mut rest = cell;
        self.dims().map(|dims| {
            dims.iter()
                .map(|&d| {
                    let at = rest % index(d);
                    rest /= index(d);
                    to_u32(at)
                })
                .collect()
        })
    }
}

impl std::fmt::Display for Topology {
    /// The spelling of machine specifications, such as `torus:8x8`, `fat-tree:64`,
    /// `fat-tree:32/2.2.2.4` (parents per level) or `cluster:16x4` (nodes, cells of each); a graph is described in words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Topology::Torus { dims } | Topology::Mesh { dims } => {
                let sizes: Vec<String> = dims.iter().map(u32::to_string).collect();
                write!(f, "{}:{}", self.kind(), sizes.join("x"))
            }
            Topology::Ring { cells } => write!(f, "ring:{cells}"),
            Topology::Hypercube { dimension } => write!(f, "hypercube:{dimension}"),
            Topology::FatTree { leaves, .. } if !self.has_own_parents() => {
                write!(f, "fat-tree:{leaves}")
            }
            Topology::FatTree { leaves, parents } => {
                let parents: Vec<String> = parents.iter().map(u32::to_string).collect();
                write!(f, "fat-tree:{leaves}/{}", parents.join("."))
            }
            Topology::Cluster { nodes, cells_per_node: 1 } => write!(f, "cluster:{nodes}"),
            Topology::Cluster { nodes, cells_per_node } => {
                write!(f, "cluster:{nodes}x{cells_per_node}")
            }
            Topology::Graph { cells, switches, links } => {
                write!(f, "graph of {cells} cells, {switches} switches, {} links", links.len())
            }
        }
    }
}

fn link(graph: &mut DiGraph<(), (), u32>, from: usize, to: usize) {
    graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), ());
}

fn add_grid(graph: &mut DiGraph<(), (), u32>, dims: &[u32], wrap: bool) {
    for cell in 0..graph.node_count() {
        let mut stride = 1usize;
        for &d in dims {
            let size = index(d);
            let at = cell / stride % size;
            let base = cell - at * stride;
            if size > 1 {
                if at + 1 < size || wrap {
                    link(graph, cell, base + (at + 1) % size * stride);
                }
                if at > 0 || wrap {
                    link(graph, cell, base + (at + size - 1) % size * stride);
                }
            }
            stride *= size;
        }
    }
}

/// Each link up of a child group leads to another switch of the group above: the links of its first
/// node to the first switches, and so on.
fn add_tree(graph: &mut DiGraph<(), (), u32>, levels: &[TreeLevel]) {
    // The first node of the level below.
    let mut first = 0;
    for pair in levels.windows(2) {
        let (below, children) = (pair[0], pair[1].leaves / pair[0].leaves);
        let above = graph.node_count();
        for _ in 0..pair[1].groups * below.links_up() {
            graph.add_node(());
        }
        for child in 0..below.groups {
            for up in 0..below.links_up() {
                let node = first + child * below.nodes + up / below.parents;
                let switch = above + child / children * below.links_up() + up;
                link(graph, node, switch);
                link(graph, switch, node);
            }
        }
        first = above;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(topology: &Topology) -> (usize, usize) {
        let graph = topology.graph().unwrap();
        if !matches!(topology, Topology::Ring { .. }) {
            assert_eq!(topology.regular_links(topology.agents().unwrap()), graph.edge_count());
        }
        (graph.node_count(), graph.edge_count())
    }

    #[test]
    fn topologies_have_the_defined_number_of_links() {
        assert_eq!(counts(&Topology::Torus { dims: vec![8, 8] }), (64, 256));
        assert_eq!(counts(&Topology::Torus { dims: vec![4, 4, 4] }), (64, 384));
        assert_eq!(counts(&Topology::Mesh { dims: vec![3, 2] }), (6, 14));
        assert_eq!(counts(&Topology::Hypercube { dimension: 6 }), (64, 384));
        assert_eq!(counts(&Topology::Ring { cells: 1 }), (1, 0));
        // A dimension of 1 adds no links; a dimension of 2 adds two parallel ones per direction.
        assert_eq!(counts(&Topology::Torus { dims: vec![2, 1] }), (2, 4));
        // 16 + 8 + 4 switches over 64 leaves; 64 + 2 * 16 + 2 * 8 links in each direction.
        assert_eq!(counts(&Topology::fat_tree(64)), (64 + 28, 2 * (64 + 32 + 16)));
        assert_eq!(counts(&Topology::fat_tree(1)), (1, 0));
        assert_eq!(counts(&Topology::fat_tree(5)), (5 + 2 + 2, 2 * (5 + 4)));
        // The CM-5: 2 links up of each leaf, 4 of each 4 leaves, 8 of each 16, 32 of
        // each 64.
        let cm5 = Topology::FatTree { leaves: 256, parents: vec![2, 2, 2, 4] };
        let up: Vec<usize> = cm5.tree_levels().iter().map(TreeLevel::links_up).collect();
        assert_eq!(up[..4], [2, 4, 8, 32]);
        let switches = 64 * 2 + 16 * 4 + 4 * 8 + 32;
        assert_eq!(counts(&cm5), (256 + switches, 2 * (512 + 256 + 128 + 128)));
        // A link to and from each cell and each node; one of these levels if there is no other.
        let cluster = |nodes, cells_per_node| Topology::Cluster { nodes, cells_per_node };
        assert_eq!(counts(&cluster(16, 4)), (64 + 16 + 1, 2 * (64 + 16)));
        assert_eq!(counts(&cluster(16, 1)), (16 + 1, 2 * 16));
        assert_eq!(counts(&cluster(1, 16)), (16 + 1, 2 * 16));
        assert_eq!(counts(&cluster(1, 1)), (1, 0));
        // Memory and links grow with the cells and not with the pairs of them.
        assert_eq!(counts(&cluster(100_000, 1)), (100_001, 200_000));
    }

    #[test]
    fn cells_of_a_cluster_reach_each_other_through_the_switches_of_their_nodes() {
        let cluster = Topology::Cluster { nodes: 3, cells_per_node: 4 };
        let parameters = crate::Parameters::iwarp();
        let machine =
            crate::Machine::new("c", cluster.clone(), parameters, vec![], vec![]).unwrap();
        for source in machine.endpoints() {
            let hops = machine.hops_from(source);
            for target in machine.endpoints() {
                let expected = match (source == target, source.0 / 4 == target.0 / 4) {
                    (true, _) => 0,
                    (_, true) => 2,
                    _ => 4,
                };
                assert_eq!(hops[target.index()], expected, "{source} -> {target}");
                assert_eq!(cluster.node_of(source) == cluster.node_of(target), expected < 4);
            }
        }
    }

    #[test]
    fn fat_trees_with_any_parents_are_connected_by_shortest_ways_through_common_groups() {
        for leaves in [1u32, 2, 4, 7, 16, 17, 40] {
            for parents in [vec![1], vec![3, 1], vec![1, 1, 5], vec![2, 2, 2, 4]] {
                let tree = Topology::FatTree { leaves, parents };
                let (nodes, _) = counts(&tree);
                let levels = tree.tree_levels();
                assert_eq!(nodes, levels.iter().map(|l| l.groups * l.nodes).sum::<usize>());
                let parameters = crate::Parameters::iwarp();
                let machine = crate::Machine::new("t", tree, parameters, vec![], vec![]).unwrap();
                for source in machine.endpoints() {
                    let hops = machine.hops_from(source);
                    for target in machine.endpoints() {
                        let apart = 32 - (source.0 ^ target.0).leading_zeros();
                        assert_eq!(hops[target.index()], 2 * apart.div_ceil(2));
                    }
                    assert!(!hops.contains(&u32::MAX), "{source} reaches every switch");
                }
            }
        }
    }

    #[test]
    fn sizes_out_of_bounds_are_refused() {
        for bad in [
            Topology::Torus { dims: vec![] },
            Topology::Torus { dims: vec![0, 8] },
            Topology::Mesh { dims: vec![1 << 16, 1 << 16] },
            Topology::Hypercube { dimension: 64 },
            Topology::Hypercube { dimension: 20 },
            Topology::Torus { dims: vec![4; 10] },
            Topology::Ring { cells: 0 },
            Topology::FatTree { leaves: 0, parents: vec![1] },
            Topology::FatTree { leaves: 4, parents: vec![] },
            Topology::FatTree { leaves: 4, parents: vec![1, 0] },
            Topology::FatTree { leaves: 4, parents: vec![1; 40] },
            Topology::FatTree { leaves: 4, parents: vec![u32::MAX] },
            Topology::FatTree { leaves: 1 << 20, parents: vec![4] },
            Topology::Cluster { nodes: 0, cells_per_node: 4 },
            Topology::Cluster { nodes: 4, cells_per_node: 0 },
            Topology::Cluster { nodes: 1 << 20, cells_per_node: 1 << 20 },
            Topology::Cluster { nodes: u32::MAX, cells_per_node: u32::MAX },
            Topology::Graph { cells: 2, switches: 0, links: vec![(0, 2)] },
            Topology::Graph { cells: 2, switches: 0, links: vec![(1, 1)] },
            Topology::Graph { cells: 2, switches: u32::MAX, links: vec![] },
        ] {
            assert!(bad.graph().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_first_coordinate_varies_fastest() {
        let torus = Topology::Torus { dims: vec![8, 4] };
        assert_eq!(torus.coordinates(13), Some(vec![5, 1]));
    }
}
