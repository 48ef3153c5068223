//! What the parts of a distributed mesh, graph or matrix must tell each other: the supergraph.
//!
//! * *Mesh*: elements are distributed, and every part holds the nodes of its elements. A node
//!   held by several parts has a partial value in each; after the exchange each must have the
//!   sum. So each part sends to each part with which it shares nodes one word per shared node
//!   (the assembly step of a finite element solver). The lists of a pair are the same both ways.
//! * *Graph*, *matrix*: vertices or rows are distributed, each in one part. A part needs the
//!   value of every vertex that one of its own names (every column in which one of its rows has
//!   an entry) and that another part has; the owner sends it, once. Where the pattern is not
//!   symmetric neither is the exchange. A vertex of several words stands in a list that many
//!   times.
//! * *Decomposition*: the lists of shared nodes as the file has them, if the partition is the
//!   file's own; else as for its mesh.
//! * *Connections*: as they are; nothing is known of nodes.
//!
//! Cells of the resulting set are part numbers; which cell of a machine a part goes to is for
//! placement. Connections are sorted by source and target, the nodes of a list ascend (but for a
//! decomposition's own lists).
//!
//! Time and memory are proportional to the mesh plus the words exchanged, but for sorting each
//! part's words.

use conset_ir::{CellId, Connection, ConnectionSet, NodeLists, ShapeError, limits};

use crate::model::{ConnectionList, Decomposition, Mesh, SharedLists, Source, row};
use crate::partition::{self, Partition};

/// The exchange of a distributed input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halo {
    /// One connection for each ordered pair of parts that exchange (lists of connections may
    /// repeat a pair); cells are part numbers. Node lists are attached where nodes are known.
    pub set: ConnectionSet,
    /// What each part has.
    pub parts: Parts,
    /// Sizes and extremes.
    pub summary: HaloSummary,
}

/// What each part has: items (elements, vertices, rows) and nodes (of the mesh; vertices and
/// rows are their own nodes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    item_first: Vec<u32>,
    items: Vec<u32>,
    node_first: Vec<u32>,
    nodes: Vec<u32>,
}

impl Parts {
    /// Number of parts.
    pub fn len(&self) -> usize {
        self.item_first.len() - 1
    }

    /// Whether there is no part.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of a part, ascending.
    pub fn items_of(&self, part: usize) -> &[u32] {
        row(&self.item_first, &self.items, part)
    }

    /// The nodes that a part works with, ascending: all nodes of its elements, or its own
    /// vertices or rows and those that it receives. A decomposition keeps the file's order.
    pub fn nodes_of(&self, part: usize) -> &[u32] {
        row(&self.node_first, &self.nodes, part)
    }
}

/// The smallest and the largest of something, over parts or connections; 0 and 0 of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

impl Extremes {
    fn of(values: impl Iterator<Item = u64> + Clone) -> Self {
        Self { min: values.clone().min().unwrap_or(0), max: values.max().unwrap_or(0) }
    }
}

/// Sizes of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HaloSummary {
    /// Parts, empty ones included.
    pub parts: usize,
    /// Elements, vertices or rows of a part.
    pub items: Extremes,
    /// Nodes that a part works with.
    pub nodes: Extremes,
    /// Nodes that more than one part works with.
    pub shared_nodes: usize,
    /// Connections (messages).
    pub connections: usize,
    /// Words of all connections.
    pub words: u64,
    /// Words of one connection.
    pub connection_words: Extremes,
    /// Words that a part sends.
    pub words_sent: Extremes,
    /// Words that a part receives.
    pub words_received: Extremes,
    /// The most connections that leave one part, or that arrive at one.
    pub degree: usize,
}

/// The exchange of `source` distributed by `partition`, as a set called `name`.
///
/// # Errors
/// A partition that has not as many items as `source`, a matrix that is not square, a name that
/// is none, more connections or words than can be counted.
pub fn halo(source: &Source, partition: &Partition, name: &str) -> Result<Halo, ShapeError> {
    let items = partition::item_count(source);
    if partition.part_of().len() != items {
        return Err(ShapeError::new(
            "partition",
            format!("parts of {} items for {items}", partition.part_of().len()),
        ));
    }
    match source {
        Source::Mesh(mesh) => of_mesh(mesh, partition, name),
        Source::Graph(graph) => {
            let sizes = graph.vertex_sizes();
            of_needs(graph.first(), graph.neighbours(), sizes, partition, name)
        }
        Source::Matrix(matrix) if matrix.row_count() != matrix.column_count() => {
            Err(ShapeError::new("matrix", "it is not square, so its columns have no owner"))
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
    let (item_first, items) = members(partition);
    let (node_first, nodes) = part_nodes(mesh, &item_first, &items);
    let (holder_first, holders) = holders(mesh.node_count(), &node_first, &nodes);
    let words = holder_first
        .windows(2)
        .map(|ends| u64::from(ends[1] - ends[0]))
        .map(|parts| parts * parts.saturating_sub(1))
        .sum();
    check_words(words)?;
    let mut lists = ListBuilder::default();
    let mut keys: Vec<u64> = Vec::new();
    for part in 0..partition.part_count() {
        keys.clear();
        for &node in row(&node_first, &nodes, part) {
            for &other in row(&holder_first, &holders, node as usize) {
                if other as usize != part {
                    keys.push(key(other, node));
                }
            }
        }
        keys.sort_unstable();
        lists.add(&keys, |other| (part as u32, other))?;
    }
    let parts = Parts { item_first, items, node_first, nodes };
    finish(lists.finish(), parts, mesh.node_count(), name)
}

/// `items` of row `u` are the vertices whose values `u` needs.
fn of_needs(
    first: &[u32],
    items: &[u32],
    sizes: Option<&[u32]>,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    let part_of = partition.part_of();
    let (item_first, members) = members(partition);
    let mut needed_by = vec![u32::MAX; part_of.len()];
    let mut lists = ListBuilder::default();
    let mut parts = Parts {
        item_first: Vec::new(),
        items: Vec::new(),
        node_first: vec![0],
        nodes: Vec::with_capacity(part_of.len()),
    };
    let mut keys: Vec<u64> = Vec::new();
    for part in 0..partition.part_count() as u32 {
        keys.clear();
        let own = row(&item_first, &members, part as usize);
        for &u in own {
            for &v in row(first, items, u as usize) {
                let owner = part_of[v as usize];
                if owner != part && needed_by[v as usize] != part {
                    needed_by[v as usize] = part;
                    keys.push(key(owner, v));
                }
            }
        }
        let start = parts.nodes.len();
        parts.nodes.extend_from_slice(own);
        parts.nodes.extend(keys.iter().map(|&key| key as u32));
        parts.nodes[start..].sort_unstable();
        check_words(parts.nodes.len() as u64)?;
        parts.node_first.push(parts.nodes.len() as u32);
        if let Some(sizes) = sizes {
            repeat_by_size(&mut keys, sizes)?;
        }
        keys.sort_unstable();
        lists.add(&keys, |owner| (owner, part))?;
    }
    parts.item_first = item_first;
    parts.items = members;
    finish(lists.finish(), parts, part_of.len(), name)
}

/// A vertex of so many words stands in its list so many times.
fn repeat_by_size(keys: &mut Vec<u64>, sizes: &[u32]) -> Result<(), ShapeError> {
    check_words(keys.iter().map(|&key| u64::from(sizes[key as u32 as usize])).sum())?;
    *keys = keys
        .iter()
        .flat_map(|&key| std::iter::repeat_n(key, sizes[key as u32 as usize] as usize))
        .collect();
    Ok(())
}

fn of_decomposition(
    decomposition: &Decomposition,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    let (item_first, items) = members(partition);
    let mut node_first = vec![0u32];
    let mut nodes = Vec::new();
    for part in 0..decomposition.part_count() {
        nodes.extend_from_slice(decomposition.nodes_of(part));
        node_first.push(nodes.len() as u32);
    }
    let parts = Parts { item_first, items, node_first, nodes };
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
            format!("{} parts for {}", partition.part_count(), list.part_count()),
        ));
    }
    let connections = list
        .entries()
        .iter()
        .map(|&(source, target, words)| Connection::new(CellId(source), CellId(target), words))
        .collect();
    let set = ConnectionSet::new(name, connections)?;
    let none = vec![0; list.part_count() + 1];
    let parts =
        Parts { item_first: none.clone(), items: Vec::new(), node_first: none, nodes: Vec::new() };
    let summary = summarise(&set, &parts, 0);
    Ok(Halo { set, parts, summary })
}

/// Puts set, parts and summary together.
fn finish(
    lists: SharedLists,
    parts: Parts,
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

fn summarise(set: &ConnectionSet, parts: &Parts, node_count: usize) -> HaloSummary {
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
        holders[node as usize] = holders[node as usize].saturating_add(1);
    }
    let lengths = |first: &[u32]| {
        let ends: Vec<u64> = first.windows(2).map(|w| u64::from(w[1] - w[0])).collect();
        Extremes::of(ends.iter().copied())
    };
    HaloSummary {
        parts: count,
        items: lengths(&parts.item_first),
        nodes: lengths(&parts.node_first),
        shared_nodes: holders.iter().filter(|&&h| h > 1).count(),
        connections: set.len(),
        words: set.words(),
        connection_words: Extremes::of(set.connections().iter().map(|c| u64::from(c.words))),
        words_sent: Extremes::of(sent.iter().copied()),
        words_received: Extremes::of(received.iter().copied()),
        degree: leaving.iter().chain(&arriving).copied().max().unwrap_or(0),
    }
}

/// Part first, node second, so that sorting groups a part's nodes and orders them.
fn key(part: u32, node: u32) -> u64 {
    u64::from(part) << 32 | u64::from(node)
}

fn check_words(words: u64) -> Result<(), ShapeError> {
    if words > limits::NODES as u64 {
        return Err(ShapeError::new("words", format!("{words}, at most {}", limits::NODES)));
    }
    Ok(())
}

/// The items of each part, ascending.
fn members(partition: &Partition) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; partition.part_count() + 1];
    for &part in partition.part_of() {
        first[part as usize + 1] += 1;
    }
    for part in 0..partition.part_count() {
        first[part + 1] += first[part];
    }
    let mut next = first.clone();
    let mut items = vec![0u32; partition.part_of().len()];
    for (item, &part) in partition.part_of().iter().enumerate() {
        items[next[part as usize] as usize] = item as u32;
        next[part as usize] += 1;
    }
    (first, items)
}

/// The nodes of each part's elements, ascending.
fn part_nodes(mesh: &Mesh, item_first: &[u32], items: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32];
    let mut nodes = Vec::new();
    let mut held_by = vec![u32::MAX; mesh.node_count()];
    for part in 0..item_first.len() - 1 {
        let start = nodes.len();
        for &element in row(item_first, items, part) {
            for &node in mesh.element(element as usize) {
                if held_by[node as usize] != part as u32 {
                    held_by[node as usize] = part as u32;
                    nodes.push(node);
                }
            }
        }
        nodes[start..].sort_unstable();
        first.push(nodes.len() as u32);
    }
    (first, nodes)
}

/// The parts that hold each node, ascending.
fn holders(node_count: usize, node_first: &[u32], nodes: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; node_count + 1];
    for &node in nodes {
        first[node as usize + 1] += 1;
    }
    for node in 0..node_count {
        first[node + 1] += first[node];
    }
    let mut next = first.clone();
    let mut parts = vec![0u32; nodes.len()];
    for part in 0..node_first.len() - 1 {
        for &node in row(node_first, nodes, part) {
            parts[next[node as usize] as usize] = part as u32;
            next[node as usize] += 1;
        }
    }
    (first, parts)
}

/// Collects lists and puts them in the order of their pairs.
#[derive(Default)]
struct ListBuilder {
    /// Source, target, and where the nodes are.
    lists: Vec<(u32, u32, u32, u32)>,
    nodes: Vec<u32>,
}

impl ListBuilder {
    /// Adds one list for each part among the sorted keys; `pair` says from which part to which.
    fn add(&mut self, keys: &[u64], pair: impl Fn(u32) -> (u32, u32)) -> Result<(), ShapeError> {
        check_words(self.nodes.len() as u64 + keys.len() as u64)?;
        for list in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let (source, target) = pair((list[0] >> 32) as u32);
            let start = self.nodes.len() as u32;
            self.nodes.extend(list.iter().map(|&key| key as u32));
            self.lists.push((source, target, start, self.nodes.len() as u32));
        }
        if self.lists.len() > limits::CONNECTIONS {
            return Err(ShapeError::new(
                "connections",
                format!("more than {} pairs of parts exchange", limits::CONNECTIONS),
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
            lists.nodes.extend_from_slice(&self.nodes[start as usize..end as usize]);
            lists.first.push(lists.nodes.len() as u32);
        }
        lists
    }
}
