//! Graphs: adjacency lists with the weights that a partition balances.

use conset_ir::{ShapeError, limits};

use super::{check_length, check_range, check_rows, check_weights, row};

/// A graph as adjacency lists. Entry `v` of row `u` says that `u` needs the value of `v`.
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
    /// `directed` says that an entry need not have its reverse; where it is false, whoever makes
    /// the graph has checked that each has.
    ///
    /// # Errors
    /// Starts that do not fit the neighbours, or a neighbour out of range.
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
    /// Not one per entry.
    pub fn with_edge_weights(mut self, weights: Vec<u32>) -> Result<Self, ShapeError> {
        check_length("edge_weights", weights.len(), self.neighbours.len())?;
        self.edge_weights = Some(weights);
        Ok(self)
    }

    /// Adds `per_vertex` weights to each vertex, one vertex behind the other. A partition
    /// balances each of them on its own.
    ///
    /// # Errors
    /// Not `per_vertex` (at least 1) for each vertex.
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

    /// Adds the number of words that each vertex's value has; without it each has one.
    ///
    /// # Errors
    /// Not one per vertex.
    pub fn with_vertex_sizes(mut self, sizes: Vec<u32>) -> Result<Self, ShapeError> {
        check_length("vertex_sizes", sizes.len(), self.vertex_count())?;
        self.vertex_sizes = Some(sizes);
        Ok(self)
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Where each vertex's neighbours start; one entry more than vertices.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// The neighbours of all vertices, one vertex behind the other.
    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// The neighbours of one vertex.
    #[inline]
    pub fn neighbours_of(&self, vertex: usize) -> &[u32] {
        row(&self.first, &self.neighbours, vertex)
    }

    /// Whether an entry may be without its reverse.
    pub fn directed(&self) -> bool {
        self.directed
    }

    /// A weight for each entry of [`Graph::neighbours`].
    pub fn edge_weights(&self) -> Option<&[u32]> {
        self.edge_weights.as_deref()
    }

    /// [`Graph::weights_per_vertex`] weights for each vertex.
    pub fn vertex_weights(&self) -> Option<&[u32]> {
        self.vertex_weights.as_deref()
    }

    /// Number of weights that a vertex has, at least 1.
    pub fn weights_per_vertex(&self) -> usize {
        self.weights_per_vertex
    }

    /// Words of each vertex's value.
    pub fn vertex_sizes(&self) -> Option<&[u32]> {
        self.vertex_sizes.as_deref()
    }
}
