//! The graph of items that a partition cuts: undirected, without loops or repetitions.
//!
//! * *Mesh*: elements are neighbours that share a face, which is to say as many nodes as the
//!   elements have dimensions. Where a file does not say the dimension it is taken from the most
//!   nodes that two elements share, at most 3.
//! * *Graph*: as it is; of a directed one each entry counts both ways, and its edge weights are
//!   dropped, since they need not agree.
//! * *Matrix*: rows are neighbours where either has an entry in the other's column.
//!
//! Work on a mesh is bounded whatever it looks like: the nodes that most elements share are not
//! searched (two elements that share a face also share one of the others), and of an element no
//! more than [`SEARCHED`] fellows are looked at and [`KEPT`] kept. Real meshes are far below both;
//! a file of a million equal elements is not.

use crate::model::{Graph, Matrix, Mesh, Source};

/// Elements looked at as neighbours of one.
const SEARCHED: usize = 512;
/// Neighbours of an element kept, among those with a larger number.
const KEPT: usize = 32;

/// Items and their neighbours, each edge in the rows of both ends.
pub(crate) struct ItemGraph {
    pub(crate) first: Vec<u32>,
    pub(crate) neighbours: Vec<u32>,
    /// One for each entry of `neighbours`.
    pub(crate) edge_weights: Option<Vec<u32>>,
    /// Weights of items, item behind item, and how many each has.
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

/// The graph of the items of `source`. Connections have no items.
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
    if graph.directed() {
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

/// The matrix is square, which [`crate::partition`] has checked.
fn row_graph(matrix: &Matrix) -> ItemGraph {
    symmetrised(matrix.first(), matrix.columns())
}

/// Rows named by rows, in both directions, without loops.
fn symmetrised(first: &[u32], items: &[u32]) -> ItemGraph {
    let count = first.len() - 1;
    let mut pairs = Vec::with_capacity(items.len());
    for row in 0..count {
        for &other in crate::model::row(first, items, row) {
            if other as usize != row {
                pairs.push((other.min(row as u32), other.max(row as u32)));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    both_ways(count, &pairs)
}

/// The graph with the given edges, each once and as `(smaller, larger)`. Rows come out ascending
/// if the pairs do.
fn both_ways(count: usize, pairs: &[(u32, u32)]) -> ItemGraph {
    let mut first = vec![0u32; count + 1];
    for &(a, b) in pairs {
        first[a as usize + 1] += 1;
        first[b as usize + 1] += 1;
    }
    for i in 0..count {
        first[i + 1] += first[i];
    }
    let mut next = first.clone();
    let mut neighbours = vec![0u32; pairs.len() * 2];
    let mut put = |from: u32, to: u32| {
        neighbours[next[from as usize] as usize] = to;
        next[from as usize] += 1;
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
    let around = NodeElements::new(mesh);
    let common = match mesh.dimension() {
        0 => around.most_shared(mesh),
        dimension => usize::from(dimension),
    };
    let mut pairs = Vec::new();
    let mut search = Search::new(mesh);
    for element in 0..mesh.element_count() {
        let start = pairs.len();
        search.for_each_later(mesh, &around, element, common, |other, shared| {
            if shared >= common && pairs.len() - start < KEPT {
                pairs.push((element as u32, other));
            }
        });
        pairs[start..].sort_unstable();
    }
    drop(around);
    let graph = both_ways(mesh.element_count(), &pairs);
    let weights = mesh.element_weights().map(|w| (w.to_vec(), mesh.weights_per_element()));
    ItemGraph { weights, ..graph }
}

/// For each node the elements around it, ascending.
struct NodeElements {
    first: Vec<u32>,
    elements: Vec<u32>,
}

impl NodeElements {
    fn new(mesh: &Mesh) -> Self {
        let mut first = vec![0u32; mesh.node_count() + 1];
        for &node in mesh.element_nodes() {
            first[node as usize + 1] += 1;
        }
        for node in 0..mesh.node_count() {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut elements = vec![0u32; mesh.element_nodes().len()];
        for (element, nodes) in mesh.elements().enumerate() {
            for &node in nodes {
                elements[next[node as usize] as usize] = element as u32;
                next[node as usize] += 1;
            }
        }
        Self { first, elements }
    }

    fn of(&self, node: u32) -> &[u32] {
        crate::model::row(&self.first, &self.elements, node as usize)
    }

    /// The most nodes that an element and another share, looking at the first thousand.
    fn most_shared(&self, mesh: &Mesh) -> usize {
        let mut search = Search::new(mesh);
        let mut most = 1;
        for element in 0..mesh.element_count().min(1000) {
            let own = mesh.element(element).len();
            search.for_each_later(mesh, self, element, 1, |other, shared| {
                // Equal elements share all and say nothing about faces.
                if shared < own.max(mesh.element(other as usize).len()) {
                    most = most.max(shared);
                }
            });
        }
        most.min(3)
    }
}

/// Scratch memory for looking at the neighbours of one element after the other.
struct Search {
    /// The element whose node this is.
    node_of: Vec<u32>,
    /// The element that this one was last looked at for.
    seen_for: Vec<u32>,
    /// Nodes of the element, those with the fewest elements first.
    nodes: Vec<u32>,
}

impl Search {
    fn new(mesh: &Mesh) -> Self {
        Self {
            node_of: vec![u32::MAX; mesh.node_count()],
            seen_for: vec![u32::MAX; mesh.element_count()],
            nodes: Vec::new(),
        }
    }

    /// Calls `found(other, shared nodes)` for elements after `element` that may share `common`
    /// nodes with it.
    fn for_each_later(
        &mut self,
        mesh: &Mesh,
        around: &NodeElements,
        element: usize,
        common: usize,
        mut found: impl FnMut(u32, usize),
    ) {
        let me = element as u32;
        self.nodes.clear();
        for &node in mesh.element(element) {
            if self.node_of[node as usize] != me {
                self.node_of[node as usize] = me;
                self.nodes.push(node);
            }
        }
        if self.nodes.len() < common {
            return;
        }
        // An element that shares `common` of these nodes shares one of any `len - common + 1`.
        self.nodes.sort_by_key(|&node| around.of(node).len());
        self.nodes.truncate(self.nodes.len() - common + 1);
        let mut searched = 0;
        for &node in &self.nodes {
            let elements = around.of(node);
            let later = elements.partition_point(|&other| other <= me);
            for &other in &elements[later..] {
                if self.seen_for[other as usize] == me {
                    continue;
                }
                self.seen_for[other as usize] = me;
                let nodes = mesh.element(other as usize);
                found(other, count_shared(nodes, &self.node_of, me));
                searched += 1;
                if searched == SEARCHED {
                    return;
                }
            }
        }
    }
}

/// Nodes of an element that are marked as `me`'s, each counted once.
fn count_shared(nodes: &[u32], node_of: &[u32], me: u32) -> usize {
    let shared = |node: u32| node_of[node as usize] == me;
    (0..nodes.len()).filter(|&i| shared(nodes[i]) && !nodes[..i].contains(&nodes[i])).count()
}
