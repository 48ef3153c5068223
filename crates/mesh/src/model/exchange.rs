//! Inputs that say themselves what their parts exchange: decompositions and lists of connections.

use conset_ir::{ShapeError, limits};

use super::{Mesh, check_count, check_length, check_range, check_rows, row};

/// Lists of shared nodes, one for each ordered pair of parts that exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLists {
    /// `(source, target)`, strictly ascending.
    pub pairs: Vec<(u32, u32)>,
    /// Where each pair's nodes start; one entry more than pairs.
    pub first: Vec<u32>,
    /// Global node numbers, in the order in which the words travel.
    pub nodes: Vec<u32>,
}

impl SharedLists {
    /// The nodes behind pair `pair`, in the order in which their words travel.
    pub fn of(&self, pair: usize) -> &[u32] {
        row(&self.first, &self.nodes, pair)
    }
}

/// A mesh that comes already cut into parts, with the lists of what the parts exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    mesh: Mesh,
    node_first: Vec<u32>,
    nodes: Vec<u32>,
    shared: SharedLists,
}

impl Decomposition {
    /// A decomposition of `mesh` (which states the part of each element) where part `p` holds the
    /// nodes `nodes[node_first[p]..node_first[p + 1]]`.
    ///
    /// # Errors
    /// A mesh without parts, starts that do not fit, a node or part out of range, pairs that do
    /// not ascend, a pair of a part with itself.
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
            if source as usize >= parts || target as usize >= parts || source == target || !ascends
            {
                return Err(ShapeError::new(
                    format!("shared[{i}]"),
                    format!("({source}, {target}), expected ascending pairs of {parts} parts"),
                ));
            }
        }
        Ok(Self { mesh, node_first, nodes, shared })
    }

    /// The whole mesh, put together again; it states the part of each element.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.mesh.part_count()
    }

    /// The nodes that a part holds, in the file's order.
    pub fn nodes_of(&self, part: usize) -> &[u32] {
        row(&self.node_first, &self.nodes, part)
    }

    /// What each ordered pair of parts exchanges, as in the file.
    pub fn shared(&self) -> &SharedLists {
        &self.shared
    }
}

/// Who sends how many words to whom, without a mesh behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionList {
    part_count: usize,
    entries: Vec<(u32, u32, u32)>,
}

impl ConnectionList {
    /// Connections `(source, target, words)` between `part_count` parts; kept sorted by source
    /// and target, repeated pairs in their order. A part may send to itself.
    ///
    /// # Errors
    /// A part out of range, 0 words or more than [`limits::WORDS`], too many parts or entries.
    pub fn new(part_count: usize, mut entries: Vec<(u32, u32, u32)>) -> Result<Self, ShapeError> {
        check_count("parts", part_count, limits::PARTS)?;
        check_count("connections", entries.len(), limits::CONNECTIONS)?;
        for (i, &(source, target, words)) in entries.iter().enumerate() {
            if source.max(target) as usize >= part_count || words == 0 || words > limits::WORDS {
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
