//! The halo exchange between the parts of a distributed mesh, graph or matrix.
//!
//! * *Mesh*: elements are distributed, and every part holds the nodes of its elements. A node that
//!   several parts hold has a partial value in each; after the exchange each must have the sum. So
//!   each part sends one word per shared node to each part with which it shares nodes (the assembly
//!   step of a finite element solver). The lists of a pair are the same in both directions.
//! * *Graph*, *matrix*: vertices or rows are distributed, each in one part. A part needs the value of
//!   every vertex of another part that is a neighbour of one of its own vertices (of every column in
//!   which one of its rows has an entry); the owner sends it once. If the pattern is not symmetric,
//!   neither is the exchange. A vertex with several words is in a list that many times.
//! * *Decomposition*: the file's lists of shared nodes, if the partition is the file's own; otherwise
//!   as for its mesh.
//! * *Connections*: the connections themselves; there are no nodes.
//!
//! The cells of the resulting set are part numbers; placement assigns parts to the cells of a
//! machine. Connections are sorted by source and target, and the nodes of a list ascend (except in
//! the lists of a decomposition).
//!
//! Time and memory are proportional to the size of the mesh plus the number of words exchanged,
//! except for the sorting of each part's words.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, Connection, ConnectionSet, Lists, NodeLists, ShapeError, limits};

use crate::model::{ConnectionList, Decomposition, Mesh, SharedLists, Source, row};
use crate::partition::{self, Partition};

/// The halo exchange of a distributed input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halo {
    /// One connection for each ordered pair of parts that exchange words (lists of connections may
    /// repeat a pair); cells are part numbers. The set has node lists if nodes are known.
    pub set: ConnectionSet,
    /// The items and nodes of each part.
    pub parts: PartMembers,
    /// Sizes, with minima and maxima.
    pub summary: HaloSummary,
}

/// The items (elements, vertices, rows) and the nodes of each part. Vertices and rows are their own
/// nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMembers {
    items: Lists,
    node_first: Vec<u32>,
    nodes: Vec<u32>,
}

impl PartMembers {
    /// Number of parts.
    pub fn len(&self) -> usize {
        self.node_first.len() - 1
    }

    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of a part, ascending.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn items_of(&self, part: usize) -> &[u32] {
        self.items.of(to_u32(part))
    }

    /// The nodes that a part uses, ascending: all nodes of its elements, or its own vertices or rows
    /// and those that it receives. A decomposition keeps the file's order.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn nodes_of(&self, part: usize) -> &[u32] {
        row(&self.node_first, &self.nodes, part)
    }
}

/// The minimum and maximum of a quantity over all parts or connections; both 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinMax {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl MinMax {
    fn of(values: impl Iterator<Item = u64> + Clone) -> Self {
        Self { min: values.clone().min().unwrap_or(0), max: values.max().unwrap_or(0) }
    }
}

/// Sizes of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HaloSummary {
    /// Number of parts, including empty ones.
    pub parts: usize,
    /// Number of elements, vertices or rows of a part.
    pub items: MinMax,
    /// Number of nodes that a part uses.
    pub nodes: MinMax,
    /// Number of nodes that more than one part uses.
    pub shared_nodes: usize,
    /// Number of connections.
    pub connections: usize,
    /// Number of words of all connections.
    pub words: u64,
    /// Number of words of a connection.
    pub connection_words: MinMax,
    /// Number of words that a part sends.
    pub words_sent: MinMax,
    /// Number of words that a part receives.
    pub words_received: MinMax,
    /// The largest number of connections that one part sends, or that one part receives.
    pub degree: usize,
}

/// The halo exchange of `source` distributed by `partition`, as a set called `name`.
///
/// ```
/// use conset_mesh::{Mesh, Partition, Source, halo};
///
/// let mesh = Mesh::new(2, 4, vec![], vec![0, 3, 6], vec![0, 1, 2, 1, 3, 2])?;
/// let halo = halo(&Source::Mesh(mesh), &Partition::new(2, vec![0, 1])?, "shared")?;
/// // Each triangle is a part; each part sends the values of nodes 1 and 2 to the other.
/// assert_eq!((halo.set.len(), halo.summary.words), (2, 4));
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
///
/// # Errors
/// A partition whose number of items is not that of `source`, a matrix that is not square, an
/// invalid name, more connections or words than the limits.
pub fn halo(source: &Source, partition: &Partition, name: &str) -> Result<Halo, ShapeError> {
    let items = partition::item_count(source);
    if partition.part_of().len() != items {
        return Err(ShapeError::new(
            "partition",
            format!("a partition of {} items for {items} items", partition.part_of().len()),
        ));
    }
    match source {
        Source::Mesh(mesh) => of_mesh(mesh, partition, name),
        Source::Graph(graph) => {
            let sizes = graph.vertex_sizes();
            of_needs(graph.first(), graph.neighbours(), sizes, partition, name)
        }
        Source::Matrix(matrix) if matrix.row_count() != matrix.column_count() => {
            Err(ShapeError::new("matrix", "not square, so its columns have no owner"))
        }
        Source::Matrix(matrix) => of_needs(matrix.first(), matrix.columns(), None, partition, name),
        Source::Decomposition(decomposition) => {
            if partition::stated(source).as_ref() == Some(partition) {
                of_decomposition(decomposition, partition, name)
            } else {
                of_mesh(decomposition.mesh(), partition, name)
            }
        }
        Source::Connections(list) => of_connections(list, partition, name),
    }
}

fn of_mesh(mesh: &Mesh, partition: &Partition, name: &str) -> Result<Halo, ShapeError> {
    let items = members(partition);
    let (node_first, nodes) = part_nodes(mesh, &items);
    let holders = holders(mesh.node_count(), &node_first, &nodes);
    let words = (0..holders.rows())
        .map(|node| to_u64(holders.of(node).len()))
        .map(|parts| parts * parts.saturating_sub(1))
        .sum();
    check_words(words)?;
    let mut lists = ListBuilder::default();
    let mut keys: Vec<u64> = Vec::new();
    for part in 0..to_u32(partition.part_count()) {
        keys.clear();
        for &node in row(&node_first, &nodes, index(part)) {
            for &other in holders.of(node) {
                if other != part {
                    keys.push(key(other, node));
                }
            }
        }
        keys.sort_unstable();
        lists.add(&keys, |other| (part, other))?;
    }
    let parts = PartMembers { items, node_first, nodes };
    finish(lists.finish(), parts, mesh.node_count(), name)
}

/// The exchange of a graph or matrix: the entries of row `u` are the vertices whose values `u` needs.
fn of_needs(
    first: &[u32],
    items: &[u32],
    sizes: Option<&[u32]>,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    let part_of = partition.part_of();
    let members = members(partition);
    let mut needed_by = vec![u32::MAX; part_of.len()];
    let mut lists = ListBuilder::default();
    let (mut node_first, mut nodes) = (vec![0], Vec::with_capacity(part_of.len()));
    let mut keys: Vec<u64> = Vec::new();
    for part in 0..to_u32(partition.part_count()) {
        keys.clear();
        let own = members.of(part);
        for &u in own {
            for &v in row(first, items, index(u)) {
                let owner = part_of[index(v)];
                if owner != part && needed_by[index(v)] != part {
                    needed_by[index(v)] = part;
                    keys.push(key(owner, v));
                }
            }
        }
        let start = nodes.len();
        nodes.extend_from_slice(own);
        nodes.extend(keys.iter().map(|&key| node_of(key)));
        nodes[start..].sort_unstable();
        check_words(to_u64(nodes.len()))?;
        node_first.push(to_u32(nodes.len()));
        if let Some(sizes) = sizes {
            repeat_by_size(&mut keys, sizes)?;
        }
        keys.sort_unstable();
        lists.add(&keys, |owner| (owner, part))?;
    }
    let parts = PartMembers { items: members, node_first, nodes };
    finish(lists.finish(), parts, part_of.len(), name)
}

/// Repeats each vertex in its list as many times as it has words.
fn repeat_by_size(keys: &mut Vec<u64>, sizes: &[u32]) -> Result<(), ShapeError> {
    check_words(keys.iter().map(|&key| u64::from(sizes[index(node_of(key))])).sum())?;
    *keys = keys
        .iter()
        .flat_map(|&key| std::iter::repeat_n(key, index(sizes[index(node_of(key))])))
        .collect();
    Ok(())
}

fn of_decomposition(
    decomposition: &Decomposition,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    let items = members(partition);
    let mut node_first = vec![0u32];
    let mut nodes = Vec::new();
    for part in 0..decomposition.part_count() {
        nodes.extend_from_slice(decomposition.nodes_of(part));
        node_first.push(to_u32(nodes.len()));
    }
    let parts = PartMembers { items, node_first, nodes };
    finish(decomposition.shared().clone(), parts, decomposition.mesh().node_count(), name)
}

fn of_connections(
    list: &ConnectionList,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    if partition.part_count() != list.part_count() {
        return Err(ShapeError::new(
            "partition",
            format!(
                "a partition into {} parts for connections between {}",
                partition.part_count(),
                list.part_count()
            ),
        ));
    }
    let connections = list
        .entries()
        .iter()
        .map(|&(source, target, words)| Connection::new(CellId(source), CellId(target), words))
        .collect();
    let set = ConnectionSet::new(name, connections)?;
    let parts = PartMembers {
        items: members(partition),
        node_first: vec![0; list.part_count() + 1],
        nodes: Vec::new(),
    };
    let summary = summarise(&set, &parts, 0);
    Ok(Halo { set, parts, summary })
}

/// Assembles the set, the parts and the summary.
fn finish(
    lists: SharedLists,
    parts: PartMembers,
    node_count: usize,
    name: &str,
) -> Result<Halo, ShapeError> {
    let connections = lists
        .pairs
        .iter()
        .enumerate()
        .map(|(i, &(source, target))| {
            let words = lists.first[i + 1] - lists.first[i];
            Connection::new(CellId(source), CellId(target), words)
        })
        .collect();
    let node_lists = NodeLists::from_lists((0..lists.pairs.len()).map(|i| lists.of(i)));
    drop(lists);
    let set = ConnectionSet::new(name, connections)?.with_nodes(node_lists)?;
    let summary = summarise(&set, &parts, node_count);
    Ok(Halo { set, parts, summary })
}

fn summarise(set: &ConnectionSet, parts: &PartMembers, node_count: usize) -> HaloSummary {
    let count = parts.len();
    let (mut sent, mut received) = (vec![0u64; count], vec![0u64; count]);
    let (mut leaving, mut arriving) = (vec![0usize; count], vec![0usize; count]);
    for connection in set.connections() {
        let (source, target) = (connection.source.index(), connection.target.index());
        sent[source] += u64::from(connection.words);
        received[target] += u64::from(connection.words);
        leaving[source] += 1;
        arriving[target] += 1;
    }
    let mut holders = vec![0u8; node_count];
    for &node in &parts.nodes {
        holders[index(node)] = holders[index(node)].saturating_add(1);
    }
    let part_items = (0..count).map(|part| to_u64(parts.items_of(part).len()));
    let part_nodes = (0..count).map(|part| to_u64(parts.nodes_of(part).len()));
    HaloSummary {
        parts: count,
        items: MinMax::of(part_items),
        nodes: MinMax::of(part_nodes),
        shared_nodes: holders.iter().filter(|&&h| h > 1).count(),
        connections: set.len(),
        words: set.words(),
        connection_words: MinMax::of(set.connections().iter().map(|c| u64::from(c.words))),
        words_sent: MinMax::of(sent.iter().copied()),
        words_received: MinMax::of(received.iter().copied()),
        degree: leaving.iter().chain(&arriving).copied().max().unwrap_or(0),
    }
}

/// A sort key of a part and a node: sorting groups the nodes of each part and orders them.
fn key(part: u32, node: u32) -> u64 {
    u64::from(part) << 32 | u64::from(node)
}

/// The part of a key.
fn part_of(key: u64) -> u32 {
    to_u32(key >> 32)
}

/// The node of a key.
fn node_of(key: u64) -> u32 {
    to_u32(key & 0xffff_ffff)
}

fn check_words(words: u64) -> Result<(), ShapeError> {
    if words > to_u64(limits::NODES) {
        return Err(ShapeError::new("words", format!("{words}; the limit is {}", limits::NODES)));
    }
    Ok(())
}

/// The items of each part, ascending.
fn members(partition: &Partition) -> Lists {
    Lists::new(partition.part_count(), partition.part_of().iter().copied().zip(0..))
}

/// The nodes of each part's elements, ascending: row starts and nodes.
fn part_nodes(mesh: &Mesh, items: &Lists) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32];
    let mut nodes = Vec::new();
    let mut held_by = vec![u32::MAX; mesh.node_count()];
    for part in 0..items.rows() {
        let start = nodes.len();
        for &element in items.of(part) {
            for &node in mesh.element(index(element)) {
                if held_by[index(node)] != part {
                    held_by[index(node)] = part;
                    nodes.push(node);
                }
            }
        }
        nodes[start..].sort_unstable();
        first.push(to_u32(nodes.len()));
    }
    (first, nodes)
}

/// The parts that hold each node, ascending.
fn holders(node_count: usize, node_first: &[u32], nodes: &[u32]) -> Lists {
    let parts = (0..).zip(node_first.windows(2));
    let pairs = parts.flat_map(|(part, ends)| {
        nodes[index(ends[0])..index(ends[1])].iter().map(move |&node| (node, part))
    });
    Lists::new(node_count, pairs)
}

/// Collects lists and sorts them by their pairs.
#[derive(Default)]
struct ListBuilder {
    /// Source, target, start and end in `nodes`.
    lists: Vec<(u32, u32, u32, u32)>,
    nodes: Vec<u32>,
}

impl ListBuilder {
    /// Adds one list for each part in the sorted keys; `pair` returns its source and target.
    fn add(&mut self, keys: &[u64], pair: impl Fn(u32) -> (u32, u32)) -> Result<(), ShapeError> {
        check_words(to_u64(self.nodes.len()) + to_u64(keys.len()))?;
        for list in keys.chunk_by(|&a, &b| part_of(a) == part_of(b)) {
            let (source, target) = pair(part_of(list[0]));
            let start = to_u32(self.nodes.len());
            self.nodes.extend(list.iter().map(|&key| node_of(key)));
            self.lists.push((source, target, start, to_u32(self.nodes.len())));
        }
        if self.lists.len() > limits::CONNECTIONS {
            return Err(ShapeError::new(
                "connections",
                format!("more than {} pairs of parts", limits::CONNECTIONS),
            ));
        }
        Ok(())
    }

    fn finish(mut self) -> SharedLists {
        let mut lists = SharedLists {
            pairs: Vec::with_capacity(self.lists.len()),
            first: vec![0],
            nodes: Vec::with_capacity(self.nodes.len()),
        };
        self.lists.sort_unstable();
        for (source, target, start, end) in self.lists {
            lists.pairs.push((source, target));
            lists.nodes.extend_from_slice(&self.nodes[index(start)..index(end)]);
            lists.first.push(to_u32(lists.nodes.len()));
        }
        lists
    }
}
