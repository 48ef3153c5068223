//! Inputs that define the exchange of their parts: decompositions and lists of connections.

use conset_ir::convert::index;
use conset_ir::{ShapeError, limits};

use super::{Mesh, check_count, check_length, check_range, check_rows, row};

/// Lists of shared nodes, one for each ordered pair of parts that exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLists {
    /// `(source, target)`, strictly ascending.
    pub pairs: Vec<(u32, u32)>,
    /// The start of each pair's nodes; one entry more than pairs.
    pub first: Vec<u32>,
    /// Global node numbers, in the order of the words sent.
    pub nodes: Vec<u32>,
}

impl SharedLists {
    /// The nodes of pair number `pair`, in the order of the words sent.
    ///
    /// # Panics
    /// If there is no such pair.
    pub fn of(&self, pair: usize) -> &[u32] {
        row(&self.first, &self.nodes, pair)
    }
}

/// A partitioned mesh with the lists of nodes that its parts exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    mesh: Mesh,
    node_first: Vec<u32>,
    nodes: Vec<u32>,
    shared: SharedLists,
}

impl Decomposition {
    /// A decomposition of `mesh`, which must have parts. Part `p` holds the
    /// nodes `nodes[node_first[p]..node_first[p + 1]]`.
    ///
    /// # Errors
    /// A mesh without parts, row starts that do not match, a node or part out of range, pairs that are
    /// not strictly ascending, a pair of a part with itself.
    pub fn new(
        mesh: Mesh,
        node_first: Vec<u32>,
        nodes: Vec<u32>,
        shared: SharedLists,
    ) -> Result<Self, ShapeError> {
        let parts = mesh.part_count();
        check_rows("parts", &node_first, nodes.len(), limits::PARTS)?;
        check_length("parts", node_first.len() - 1, parts)?;
        check_range("parts", &node_first, &nodes, mesh.node_count())?;
        check_rows("shared", &shared.first, shared.nodes.len(), limits::CONNECTIONS)?;
        check_length("shared", shared.first.len() - 1, shared.pairs.len())?;
        check_range("shared", &shared.first, &shared.nodes, mesh.node_count())?;
        for (i, &(source, target)) in shared.pairs.iter().enumerate() {
            let ascends = i == 0 || shared.pairs[i - 1] < (source, target);
            if index(source) >= parts || index(target) >= parts || source == target || !ascends {
                return Err(ShapeError::new(
                    format!("shared[{i}]"),
                    format!("({source}, {target}), expected ascending pairs of {parts} parts"),
                ));
            }
        }
        Ok(Self { mesh, node_first, nodes, shared })
    }

    /// The whole mesh, with the part of each element.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.mesh.part_count()
    }

    /// The nodes that a part holds, in the file's order.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn nodes_of(&self, part: usize) -> &[u32] {
        row(&self.node_first, &self.nodes, part)
    }

    /// The nodes that each ordered pair of parts exchanges, as in the file.
    pub fn shared(&self) -> &SharedLists {
        &self.shared
    }
}

/// Connections between parts, without a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionList {
    part_count: usize,
    entries: Vec<(u32, u32, u32)>,
}

impl ConnectionList {
    /// Connections `(source, target, words)` between `part_count` parts. They are sorted by source and
    /// target; repeated pairs keep their order. A part may send to itself.
    ///
    /// # Errors
    /// A part out of range, 0 words or more than [`limits::WORDS`], too many parts or entries.
    pub fn new(part_count: usize, mut entries: Vec<(u32, u32, u32)>) -> Result<Self, ShapeError> {
        check_count("parts", part_count, limits::PARTS)?;
        check_count("connections", entries.len(), limits::CONNECTIONS)?;
        for (i, &(source, target, words)) in entries.iter().enumerate() {
            if index(source.max(target)) >= part_count || words == 0 || words > limits::WORDS {
                return Err(ShapeError::new(
                    format!("connections[{i}]"),
                    format!("{words} words from part {source} to {target} of {part_count}"),
                ));
            }
        }
        entries.sort_by_key(|&(source, target, _)| (source, target));
        Ok(Self { part_count, entries })
    }

    /// Number of parts; some may have no connection.
    pub fn part_count(&self) -> usize {
        self.part_count
    }

    /// `(source, target, words)`, sorted by source and target.
    pub fn entries(&self) -> &[(u32, u32, u32)] {
        &self.entries
    }
}
