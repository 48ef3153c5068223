//! Graphs: adjacency lists, with weights for partitioning.

use conset_ir::{ShapeError, limits};

use super::{check_length, check_range, check_rows, check_weights, row};

/// A graph as adjacency lists. An entry `v` in row `u` means that `u` needs the value of `v`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    first: Vec<u32>,
    neighbours: Vec<u32>,
    directed: bool,
    edge_weights: Option<Vec<u32>>,
    vertex_weights: Option<Vec<u32>>,
    weights_per_vertex: usize,
    vertex_sizes: Option<Vec<u32>>,
}

impl Graph {
    /// A graph whose vertex `v` has the neighbours `neighbours[first[v]..first[v + 1]]`.
    /// `directed` means that an entry need not have a reverse entry; if it is false, the caller has
    /// checked that each has one.
    ///
    /// # Errors
    /// Row starts that do not match the neighbours, or a neighbour out of range.
    pub fn new(first: Vec<u32>, neighbours: Vec<u32>, directed: bool) -> Result<Self, ShapeError> {
        check_rows("vertices", &first, neighbours.len(), limits::NODES)?;
        check_range("vertices", &first, &neighbours, first.len() - 1)?;
        Ok(Self {
            first,
            neighbours,
            directed,
            edge_weights: None,
            vertex_weights: None,
            weights_per_vertex: 1,
            vertex_sizes: None,
        })
    }

    /// Adds a weight to each entry of [`Graph::neighbours`].
    ///
    /// # Errors
    /// The number of weights is not the number of entries.
    pub fn with_edge_weights(mut self, weights: Vec<u32>) -> Result<Self, ShapeError> {
        check_length("edge_weights", weights.len(), self.neighbours.len())?;
        self.edge_weights = Some(weights);
        Ok(self)
    }

    /// Adds `per_vertex` weights to each vertex, in vertex order. A partition balances each of the
    /// weights separately.
    ///
    /// # Errors
    /// The number of weights is not `per_vertex` (at least 1) for each vertex.
    pub fn with_vertex_weights(
        mut self,
        weights: Vec<u32>,
        per_vertex: usize,
    ) -> Result<Self, ShapeError> {
        check_weights("vertex_weights", &weights, per_vertex, self.vertex_count())?;
        self.vertex_weights = Some(weights);
        self.weights_per_vertex = per_vertex;
        Ok(self)
    }

    /// Adds the number of words of each vertex's value; the default is one.
    ///
    /// # Errors
    /// The number of sizes is not the number of vertices.
    pub fn with_vertex_sizes(mut self, sizes: Vec<u32>) -> Result<Self, ShapeError> {
        check_length("vertex_sizes", sizes.len(), self.vertex_count())?;
        self.vertex_sizes = Some(sizes);
        Ok(self)
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.first.len() - 1
    }

    /// The start of each vertex's neighbours; one entry more than vertices.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// The neighbours of all vertices, in vertex order.
    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// The neighbours of one vertex.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn neighbours_of(&self, vertex: usize) -> &[u32] {
        row(&self.first, &self.neighbours, vertex)
    }

    /// Whether entries need not have a reverse entry.
    pub fn is_directed(&self) -> bool {
        self.directed
    }

    /// A weight for each entry of [`Graph::neighbours`], if edges have weights.
    pub fn edge_weights(&self) -> Option<&[u32]> {
        self.edge_weights.as_deref()
    }

    /// [`Graph::weights_per_vertex`] weights for each vertex, if vertices have weights.
    pub fn vertex_weights(&self) -> Option<&[u32]> {
        self.vertex_weights.as_deref()
    }

    /// Number of weights that a vertex has, at least 1.
    pub fn weights_per_vertex(&self) -> usize {
        self.weights_per_vertex
    }

    /// The number of words of each vertex's value, if given.
    pub fn vertex_sizes(&self) -> Option<&[u32]> {
        self.vertex_sizes.as_deref()
    }
}
