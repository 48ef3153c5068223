//! The graph of items to be partitioned: undirected, without loops or repeated edges.
//!
//! * *Mesh*: two elements are neighbours if they share a face, that is, as many nodes as their
//!   dimension (the dual graph). If the dimension is unknown, the largest number of nodes that two
//!   elements share is used, at most 3.
//! * *Graph*: the graph itself. Each entry of a directed graph counts in both directions, and its edge
//!   weights are dropped, because they may be asymmetric.
//! * *Matrix*: two rows are neighbours if one has an entry in the other's column.
//!
//! The work for a mesh is limited for any input: the nodes with the most elements are not searched
//! (two elements that share a face also share one of the other nodes), and for each element at most
//! [`SEARCH_LIMIT`] elements are compared and [`NEIGHBOUR_LIMIT`] neighbours stored. Real meshes are
//! far below both limits; a file of a million equal elements is not.

use conset_ir::Lists;
use conset_ir::convert::{index, to_u32};

use crate::model::{Graph, Matrix, Mesh, Source};

/// Elements that are compared with one element.
const SEARCH_LIMIT: usize = 512;
/// Neighbours stored for an element, among those with a larger number.
const NEIGHBOUR_LIMIT: usize = 32;

/// Items and their neighbours, each edge in the rows of both ends.
pub(crate) struct ItemGraph {
    pub(crate) first: Vec<u32>,
    pub(crate) neighbours: Vec<u32>,
    /// A weight for each entry of `neighbours`.
    pub(crate) edge_weights: Option<Vec<u32>>,
    /// The weights of all items, in item order, and the number of weights per item.
    pub(crate) weights: Option<(Vec<u32>, usize)>,
}

impl ItemGraph {
    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.first.len() - 1
    }

    pub(crate) fn neighbours_of(&self, item: usize) -> &[u32] {
        crate::model::row(&self.first, &self.neighbours, item)
    }

    fn without_weights(first: Vec<u32>, neighbours: Vec<u32>) -> Self {
        Self { first, neighbours, edge_weights: None, weights: None }
    }
}

/// The graph of the items of `source`; a list of connections has no items.
pub(crate) fn item_graph(source: &Source) -> ItemGraph {
    match source {
        Source::Mesh(mesh) => mesh_graph(mesh),
        Source::Decomposition(decomposition) => mesh_graph(decomposition.mesh()),
        Source::Graph(graph) => vertex_graph(graph),
        Source::Matrix(matrix) => row_graph(matrix),
        Source::Connections(_) => ItemGraph::without_weights(vec![0], Vec::new()),
    }
}

fn vertex_graph(graph: &Graph) -> ItemGraph {
    let weights = graph.vertex_weights().map(|w| (w.to_vec(), graph.weights_per_vertex()));
    if graph.is_directed() {
        let symmetric = symmetrised(graph.first(), graph.neighbours());
        return ItemGraph { weights, ..symmetric };
    }
    ItemGraph {
        first: graph.first().to_vec(),
        neighbours: graph.neighbours().to_vec(),
        edge_weights: graph.edge_weights().map(<[u32]>::to_vec),
        weights,
    }
}

/// The graph of the rows of a matrix, which must be square.
fn row_graph(matrix: &Matrix) -> ItemGraph {
    symmetrised(matrix.first(), matrix.columns())
}

/// The graph with an edge for each entry of a list of lists, without loops.
fn symmetrised(first: &[u32], items: &[u32]) -> ItemGraph {
    let count = first.len() - 1;
    let mut pairs = Vec::with_capacity(items.len());
    for row in 0..to_u32(count) {
        for &other in crate::model::row(first, items, index(row)) {
            if other != row {
                pairs.push((other.min(row), other.max(row)));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    from_edges(count, &pairs)
}

/// The graph with the given edges, each once and as `(smaller, larger)`. Its rows ascend if the pairs
/// do.
fn from_edges(count: usize, pairs: &[(u32, u32)]) -> ItemGraph {
    let mut first = vec![0u32; count + 1];
    for &(a, b) in pairs {
        first[index(a) + 1] += 1;
        first[index(b) + 1] += 1;
    }
    for i in 0..count {
        first[i + 1] += first[i];
    }
    let mut next = first.clone();
    let mut neighbours = vec![0u32; pairs.len() * 2];
    let mut put = |from: u32, to: u32| {
        neighbours[index(next[index(from)])] = to;
        next[index(from)] += 1;
    };
    for &(a, b) in pairs {
        put(b, a);
    }
    for &(a, b) in pairs {
        put(a, b);
    }
    ItemGraph::without_weights(first, neighbours)
}

fn mesh_graph(mesh: &Mesh) -> ItemGraph {
    let elements_of = node_elements(mesh);
    let common = match mesh.dimension() {
        0 => most_shared(mesh, &elements_of),
        dimension => usize::from(dimension),
    };
    let mut pairs = Vec::new();
    let mut search = NeighbourSearch::new(mesh);
    for element in 0..to_u32(mesh.element_count()) {
        let start = pairs.len();
        search.for_each_later(mesh, &elements_of, element, common, |other, shared| {
            if shared >= common && pairs.len() - start < NEIGHBOUR_LIMIT {
                pairs.push((element, other));
            }
        });
        pairs[start..].sort_unstable();
    }
    drop(elements_of);
    let graph = from_edges(mesh.element_count(), &pairs);
    let weights = mesh.element_weights().map(|w| (w.to_vec(), mesh.weights_per_element()));
    ItemGraph { weights, ..graph }
}

/// The elements of each node, ascending.
fn node_elements(mesh: &Mesh) -> Lists {
    let elements = (0..).zip(mesh.elements());
    Lists::new(
        mesh.node_count(),
        elements.flat_map(|(element, nodes)| nodes.iter().map(move |&node| (node, element))),
    )
}

/// The largest number of nodes that one of the first thousand elements shares with another.
fn most_shared(mesh: &Mesh, elements_of: &Lists) -> usize {
    let mut search = NeighbourSearch::new(mesh);
    let mut most = 1;
    for element in 0..to_u32(mesh.element_count().min(1000)) {
        let own = mesh.element(index(element)).len();
        search.for_each_later(mesh, elements_of, element, 1, |other, shared| {
            // Equal elements share all nodes, which says nothing about faces.
            if shared < own.max(mesh.element(index(other)).len()) {
                most = most.max(shared);
            }
        });
    }
    most.min(3)
}

/// Scratch memory for the search for the neighbours of each element.
struct NeighbourSearch {
    /// The last element that had each node.
    node_of: Vec<u32>,
    /// The last element that each element was compared with.
    compared_with: Vec<u32>,
    /// The nodes of the present element, those with the fewest elements first.
    nodes: Vec<u32>,
}

impl NeighbourSearch {
    fn new(mesh: &Mesh) -> Self {
        Self {
            node_of: vec![u32::MAX; mesh.node_count()],
            compared_with: vec![u32::MAX; mesh.element_count()],
            nodes: Vec::new(),
        }
    }

    /// Calls `found(other, shared nodes)` for all elements after `element` that may share `common`
    /// nodes with it.
    fn for_each_later(
        &mut self,
        mesh: &Mesh,
        elements_of: &Lists,
        element: u32,
        common: usize,
        mut found: impl FnMut(u32, usize),
    ) {
        self.nodes.clear();
        for &node in mesh.element(index(element)) {
            if self.node_of[index(node)] != element {
                self.node_of[index(node)] = element;
                self.nodes.push(node);
            }
        }
        if self.nodes.len() < common {
            return;
        }
        // An element that shares `common` of these nodes shares one of any `len - common + 1`.
        self.nodes.sort_by_key(|&node| elements_of.of(node).len());
        self.nodes.truncate(self.nodes.len() - common + 1);
        let mut searched = 0;
        for &node in &self.nodes {
            let elements = elements_of.of(node);
            let later = elements.partition_point(|&other| other <= element);
            for &other in &elements[later..] {
                if self.compared_with[index(other)] == element {
                    continue;
                }
                self.compared_with[index(other)] = element;
                let nodes = mesh.element(index(other));
                found(other, count_shared(nodes, &self.node_of, element));
                searched += 1;
                if searched == SEARCH_LIMIT {
                    return;
                }
            }
        }
    }
}

/// The number of different nodes of an element that are marked as nodes of `element`.
fn count_shared(nodes: &[u32], node_of: &[u32], element: u32) -> usize {
    let shared = |node: u32| node_of[index(node)] == element;
    (0..nodes.len()).filter(|&i| shared(nodes[i]) && !nodes[..i].contains(&nodes[i])).count()
}
