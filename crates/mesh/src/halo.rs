//! The halo exchange between the parts of a distributed mesh, graph or matrix.
//!
//! * [`HaloKind::Nodes`], of meshes: elements are distributed, and every part holds the nodes of its
//!   elements. A node that several parts hold has a partial value in each; after the exchange each
//!   must have the sum. So each part sends one word per shared node to each part with which it shares
//!   nodes (the assembly step of a finite element solver). The lists of a pair are the same in both
//!   directions. A decomposition has the file's lists of shared nodes, if the partition is the file's
//!   own.
//! * [`HaloKind::Rows`], of graphs and matrices: vertices or rows are distributed, each in one part. A
//!   part needs the value of every vertex of another part that is a neighbour of one of its own
//!   vertices (of every column in which one of its rows has an entry); the owner sends it once. If
//!   the pattern is not symmetric, neither is the exchange.
//! * [`HaloKind::Rows`], of meshes: as for the graph of nodes that have an element in common. The owner
//!   of a node is the lowest part that holds it.
//! * [`HaloKind::Faces`] and [`HaloKind::Edges`], of meshes: a part needs the value of every element of
//!   another part that shares a face (an edge) with one of its own elements (module `neighbours`
//!   says which do); the owner sends it once. The nodes of the lists are elements.
//! * *Connections*: the connections themselves; there are no nodes.
//!
//! Except for `Nodes`, a halo can have several layers: with N layers a part needs what is at most N
//! steps from what it owns. A node, element or row with several words is in a list that many times.
//!
//! The cells of the resulting set are part numbers; placement assigns parts to the cells of a
//! machine. Connections are sorted by source and target, and the nodes of a list ascend (except in
//! the lists of a decomposition).
//!
//! Time and memory are proportional to the size of the mesh plus the number of words exchanged,
//! except for the sorting of each part's words.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, Connection, ConnectionSet, Lists, NodeLists, ShapeError, limits};

mod kind;
mod neighbours;

pub use kind::{HaloKind, HaloOptions, WordsPerNode, read_words};

use crate::model::{ConnectionList, Decomposition, Mesh, SharedLists, Source, row};
use crate::partition::{self, Partition};
use neighbours::{ElementNeighbours, NodeNeighbours};

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

    /// The nodes that a part uses, ascending: all nodes of its elements, or its own vertices, rows,
    /// nodes or elements (as the halo exchanges) and those that it receives. A decomposition keeps the
    /// file's order.
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
    halo_with(source, partition, name, &HaloOptions::default())
}

/// [`halo()`] of another kind, with several layers, or with several words per node.
///
/// ```
/// use conset_mesh::halo::{HaloKind, HaloOptions, halo_with};
/// use conset_mesh::{Mesh, Partition, Source};
///
/// let mesh = Mesh::new(2, 4, vec![], vec![0, 3, 6], vec![0, 1, 2, 1, 3, 2])?;
/// let options = HaloOptions::default().kind(HaloKind::Faces);
/// let parts = Partition::new(2, vec![0, 1])?;
/// let halo = halo_with(&Source::Mesh(mesh), &parts, "elements", &options)?;
/// // Each triangle needs the value of the other, with which it shares an edge.
/// assert_eq!((halo.set.len(), halo.summary.words), (2, 2));
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
///
/// # Errors
/// As [`halo()`]; a kind, layers or words that the input cannot have (the place is the option of the
/// command line), elements of unknown shape, node words that are not one number for each.
pub fn halo_with(
    source: &Source,
    partition: &Partition,
    name: &str,
    options: &HaloOptions<'_>,
) -> Result<Halo, ShapeError> {
    let items = partition::item_count(source);
    if partition.part_of().len() != items {
        return Err(ShapeError::new(
            "partition",
            format!("a partition of {} items for {items} items", partition.part_of().len()),
        ));
    }
    let kind = options.kind_for(source)?.unwrap_or(HaloKind::Rows);
    let words = options.words.unwrap_or(WordsPerNode::Each(1));
    let mesh = match source {
        Source::Mesh(mesh) => mesh,
        Source::Decomposition(decomposition) => {
            if kind == HaloKind::Nodes && partition::stated(source).as_ref() == Some(partition) {
                return of_decomposition(decomposition, partition, words, name);
            }
            decomposition.mesh()
        }
        Source::Graph(graph) => {
            let words = graph.vertex_sizes().map_or(words, WordsPerNode::Of);
            let rows = (graph.first(), graph.neighbours());
            return of_rows(rows, words, options.layers, partition, name);
        }
        Source::Matrix(matrix) if matrix.row_count() != matrix.column_count() => {
            return Err(ShapeError::new("matrix", "not square, so its columns have no owner"));
        }
        Source::Matrix(matrix) => {
            let rows = (matrix.first(), matrix.columns());
            return of_rows(rows, words, options.layers, partition, name);
        }
        Source::Connections(list) => return of_connections(list, partition, name),
    };
    match kind {
        HaloKind::Nodes => of_mesh(mesh, partition, words, name),
        HaloKind::Faces | HaloKind::Edges => of_elements(mesh, partition, kind, options, name),
        HaloKind::Rows => of_node_rows(mesh, partition, options, name),
    }
}

fn of_mesh(
    mesh: &Mesh,
    partition: &Partition,
    words: WordsPerNode<'_>,
    name: &str,
) -> Result<Halo, ShapeError> {
    words.check(mesh.node_count())?;
    let items = members(partition);
    let (node_first, nodes) = part_nodes(mesh, &items);
    let holders = holders(mesh.node_count(), &node_first, &nodes);
    let total = (0..holders.rows())
        .map(|node| to_u64(holders.of(node).len()))
        .map(|parts| parts * parts.saturating_sub(1))
        .sum();
    check_words(total)?;
    let mut lists = ListBuilder::new(words);
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

/// Values of elements, for those that share faces or edges with them.
fn of_elements(
    mesh: &Mesh,
    partition: &Partition,
    kind: HaloKind,
    options: &HaloOptions<'_>,
    name: &str,
) -> Result<Halo, ShapeError> {
    let faces = kind == HaloKind::Faces;
    let mut neighbours = ElementNeighbours::new(mesh, options.types, faces)?;
    let items = members(partition);
    let needs = Needs {
        owner: partition.part_of(),
        own: &items,
        layers: options.layers,
        words: options.words.unwrap_or(WordsPerNode::Each(1)),
    };
    let (lists, node_first, nodes) = needs.lists(|element, found| neighbours.of(element, found))?;
    finish(lists, PartMembers { items, node_first, nodes }, mesh.element_count(), name)
}

/// Values of nodes that have one owner each, for the rows of nodes with a common element.
fn of_node_rows(
    mesh: &Mesh,
    partition: &Partition,
    options: &HaloOptions<'_>,
    name: &str,
) -> Result<Halo, ShapeError> {
    let neighbours = NodeNeighbours::new(mesh);
    let owner = neighbours.owners(partition.part_of());
    let owned = owner.iter().copied().zip(0..).filter(|&(part, _)| part != u32::MAX);
    let needs = Needs {
        owner: &owner,
        own: &Lists::new(partition.part_count(), owned),
        layers: options.layers,
        words: options.words.unwrap_or(WordsPerNode::Each(1)),
    };
    let (lists, node_first, nodes) = needs.lists(|node, found| {
        neighbours.of(node, found);
        Ok(())
    })?;
    let parts = PartMembers { items: members(partition), node_first, nodes };
    finish(lists, parts, mesh.node_count(), name)
}

/// The exchange of a graph or matrix: the entries of row `u` are the vertices whose values `u` needs.
fn of_rows(
    (first, entries): (&[u32], &[u32]),
    words: WordsPerNode<'_>,
    layers: u32,
    partition: &Partition,
    name: &str,
) -> Result<Halo, ShapeError> {
    let items = members(partition);
    let needs = Needs { owner: partition.part_of(), own: &items, layers, words };
    let (lists, node_first, nodes) = needs.lists(|u, found| {
        found.extend_from_slice(row(first, entries, index(u)));
        Ok(())
    })?;
    finish(lists, PartMembers { items, node_first, nodes }, partition.part_of().len(), name)
}

/// Who owns what, and how far the needs of an owner reach.
struct Needs<'a> {
    owner: &'a [u32],
    /// What each part owns.
    own: &'a Lists,
    layers: u32,
    words: WordsPerNode<'a>,
}

impl Needs<'_> {
    /// What each owner sends to each part, and the rows of what each part has: its own, and what it
    /// receives. `needs` adds what one item needs to a list, perhaps repeatedly.
    fn lists(
        &self,
        mut needs: impl FnMut(u32, &mut Vec<u32>) -> Result<(), ShapeError>,
    ) -> Result<(SharedLists, Vec<u32>, Vec<u32>), ShapeError> {
        self.words.check(self.owner.len())?;
        let mut lists = ListBuilder::new(self.words);
        let (mut node_first, mut nodes) = (vec![0], Vec::with_capacity(self.owner.len()));
        let mut needed_by = vec![u32::MAX; self.owner.len()];
        let mut keys: Vec<u64> = Vec::new();
        let (mut layer, mut next, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for part in 0..self.own.rows() {
            keys.clear();
            layer.clear();
            layer.extend_from_slice(self.own.of(part));
            for _ in 0..self.layers {
                for &u in &layer {
                    found.clear();
                    needs(u, &mut found)?;
                    for &v in &found {
                        let owner = self.owner[index(v)];
                        if owner != part && needed_by[index(v)] != part {
                            needed_by[index(v)] = part;
                            keys.push(key(owner, v));
                            next.push(v);
                        }
                    }
                }
                // The next layer is what this one has found; own items were looked at already.
                std::mem::swap(&mut layer, &mut next);
                next.clear();
                if layer.is_empty() {
                    break;
                }
            }
            let start = nodes.len();
            nodes.extend_from_slice(self.own.of(part));
            nodes.extend(keys.iter().map(|&key| node_of(key)));
            nodes[start..].sort_unstable();
            check_words(to_u64(nodes.len()))?;
            node_first.push(to_u32(nodes.len()));
            keys.sort_unstable();
            lists.add(&keys, |owner| (owner, part))?;
        }
        Ok((lists.finish(), node_first, nodes))
    }
}

fn of_decomposition(
    decomposition: &Decomposition,
    partition: &Partition,
    words: WordsPerNode<'_>,
    name: &str,
) -> Result<Halo, ShapeError> {
    words.check(decomposition.mesh().node_count())?;
    let items = members(partition);
    let mut node_first = vec![0u32];
    let mut nodes = Vec::new();
    for part in 0..decomposition.part_count() {
        nodes.extend_from_slice(decomposition.nodes_of(part));
        node_first.push(to_u32(nodes.len()));
    }
    let parts = PartMembers { items, node_first, nodes };
    let shared = decomposition.shared();
    let lists = match words {
        WordsPerNode::Each(1) => shared.clone(),
        words => {
            let mut lists = ListBuilder::new(words);
            for (pair, &ends) in shared.pairs.iter().enumerate() {
                lists.add_list(ends, shared.of(pair).iter().copied())?;
            }
            lists.finish()
        }
    };
    finish(lists, parts, decomposition.mesh().node_count(), name)
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

/// Collects lists, with each node as often as it has words, and sorts them by their pairs.
struct ListBuilder<'a> {
    words: WordsPerNode<'a>,
    /// Source, target, start and end in `nodes`.
    lists: Vec<(u32, u32, u32, u32)>,
    nodes: Vec<u32>,
}

impl<'a> ListBuilder<'a> {
    fn new(words: WordsPerNode<'a>) -> Self {
        Self { words, lists: Vec::new(), nodes: Vec::new() }
    }

    /// Adds one list for each part in the sorted keys; `pair` returns its source and target.
    fn add(&mut self, keys: &[u64], pair: impl Fn(u32) -> (u32, u32)) -> Result<(), ShapeError> {
        for list in keys.chunk_by(|&a, &b| part_of(a) == part_of(b)) {
            self.add_list(pair(part_of(list[0])), list.iter().map(|&key| node_of(key)))?;
        }
        Ok(())
    }

    /// Adds one list, unless its nodes have no words.
    fn add_list(
        &mut self,
        (source, target): (u32, u32),
        nodes: impl Iterator<Item = u32> + Clone,
    ) -> Result<(), ShapeError> {
        let words: u64 = nodes.clone().map(|node| u64::from(self.words.of(node))).sum();
        check_words(to_u64(self.nodes.len()) + words)?;
        if words == 0 {
            return Ok(());
        }
        if words > limits::WORDS.into() {
            let message = format!("{words} from part {source} to part {target}");
            return Err(ShapeError::new(
                "words",
                format!("{message}; the limit is {}", limits::WORDS),
            ));
        }
        let start = to_u32(self.nodes.len());
        let repeated = |node| std::iter::repeat_n(node, index(self.words.of(node)));
        self.nodes.extend(nodes.flat_map(repeated));
        self.lists.push((source, target, start, to_u32(self.nodes.len())));
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
