//! The types that readers produce: mesh, graph, matrix, decomposition, list of connections.
//!
//! All numbers are dense and start at 0. Lists of lists are in compressed row form: row `i` of a list
//! with row starts `first` and entries `items` is `items[first[i]..first[i + 1]]`, so `first` has one
//! entry more than there are rows. A mesh with a million nodes is a few arrays of `u32`.
//!
//! Constructors check the shape (ascending row starts, numbers in range, equal lengths of related
//! arrays, counts within [`limits`]), so later stages index without checks. They do not check the
//! geometry: an exchange does not depend on degenerate or overlapping elements. An element may have
//! a node twice (collapsed bricks are common); the node counts once where nodes are shared.

pub mod assembly;
pub mod element_type;
mod exchange;
mod graph;

use conset_ir::convert::index;
use conset_ir::{ShapeError, limits};

pub use assembly::{Assembled, Assembly, ElementOrigin, Group, Inventory, TypeCount, Unused};
pub use element_type::{ElementType, Shape};
pub use exchange::{ConnectionList, Decomposition, SharedLists};
pub use graph::Graph;

/// A finite element mesh: nodes, and elements as lists of node numbers.
///
/// ```
/// use conset_mesh::Mesh;
///
/// // Two triangles that share the edge between nodes 1 and 2.
/// let mesh = Mesh::new(2, 4, vec![], vec![0, 3, 6], vec![0, 1, 2, 1, 3, 2])?;
/// assert_eq!(mesh.element_count(), 2);
/// assert_eq!(mesh.element(1), [1, 3, 2]);
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    dimension: u8,
    node_count: usize,
    coordinates: Vec<[f64; 3]>,
    element_first: Vec<u32>,
    element_nodes: Vec<u32>,
    node_ids: Vec<u64>,
    element_weights: Option<Vec<u32>>,
    weights_per_element: usize,
    parts: Vec<u32>,
    part_count: usize,
}

impl Mesh {
    /// A mesh of `node_count` nodes whose element `e` has the nodes
    /// `element_nodes[element_first[e]..element_first[e + 1]]`.
    ///
    /// `dimension` is that of the elements (2 for triangles in space), 0 if it is unknown. Together with
    /// the number of nodes it determines the type of an element: dimension 2 and 4 nodes is a
    /// quadrilateral, dimension 3 and 4 nodes a tetrahedron. `coordinates` has one entry per node, or
    /// is empty if the file has no coordinates.
    ///
    /// # Errors
    /// Row starts that do not match the nodes, an element without nodes or with more than
    /// [`limits::ELEMENT_NODES`], a node out of range, a coordinate that is not finite.
    pub fn new(
        dimension: u8,
        node_count: usize,
        coordinates: Vec<[f64; 3]>,
        element_first: Vec<u32>,
        element_nodes: Vec<u32>,
    ) -> Result<Self, ShapeError> {
        if dimension > 3 {
            return Err(ShapeError::new("dimension", format!("{dimension}, expected 0 to 3")));
        }
        check_count("nodes", node_count, limits::NODES)?;
        if !coordinates.is_empty() && coordinates.len() != node_count {
            return Err(ShapeError::new(
                "coordinates",
                format!("{} for {node_count} nodes", coordinates.len()),
            ));
        }
        if let Some(node) = coordinates.iter().position(|p| !p.iter().all(|x| x.is_finite())) {
            return Err(ShapeError::new(format!("coordinates[{node}]"), "not a finite number"));
        }
        check_rows("elements", &element_first, element_nodes.len(), limits::ELEMENTS)?;
        check_range("elements", &element_first, &element_nodes, node_count)?;
        for (e, ends) in element_first.windows(2).enumerate() {
            let count = index(ends[1] - ends[0]);
            if count == 0 || count > limits::ELEMENT_NODES {
                return Err(ShapeError::new(
                    format!("elements[{e}]"),
                    format!("{count} nodes, expected 1 to {}", limits::ELEMENT_NODES),
                ));
            }
        }
        Ok(Self {
            dimension,
            node_count,
            coordinates,
            element_first,
            element_nodes,
            node_ids: Vec::new(),
            element_weights: None,
            weights_per_element: 1,
            parts: Vec::new(),
            part_count: 0,
        })
    }

    /// Adds the file's own id of each node, if these are not 1, 2, 3 and so on (or 0, 1, 2 in formats
    /// that count from 0).
    ///
    /// # Errors
    /// The number of ids is not the number of nodes.
    pub fn with_node_ids(mut self, ids: Vec<u64>) -> Result<Self, ShapeError> {
        if ids.len() != self.node_count {
            return Err(ShapeError::new(
                "node_ids",
                format!("{} for {} nodes", ids.len(), self.node_count),
            ));
        }
        self.node_ids = ids;
        Ok(self)
    }

    /// Adds `per_element` weights to each element, in element order. A partition balances each of the
    /// weights separately.
    ///
    /// # Errors
    /// The number of weights is not `per_element` (at least 1) for each element.
    pub fn with_element_weights(
        mut self,
        weights: Vec<u32>,
        per_element: usize,
    ) -> Result<Self, ShapeError> {
        check_weights("element_weights", &weights, per_element, self.element_count())?;
        self.element_weights = Some(weights);
        self.weights_per_element = per_element;
        Ok(self)
    }

    /// Adds the part of each element, as given by the file; parts are `0..part_count`.
    ///
    /// # Errors
    /// The number of entries is not the number of elements, a part is out of range, or there are more
    /// parts than [`limits::PARTS`].
    pub fn with_parts(mut self, parts: Vec<u32>, part_count: usize) -> Result<Self, ShapeError> {
        check_count("parts", part_count, limits::PARTS)?;
        if parts.len() != self.element_count() {
            return Err(ShapeError::new(
                "parts",
                format!("{} for {} elements", parts.len(), self.element_count()),
            ));
        }
        if let Some(e) = parts.iter().position(|&p| index(p) >= part_count) {
            return Err(ShapeError::new(
                format!("parts[{e}]"),
                format!("part {} of {part_count}", parts[e]),
            ));
        }
        self.parts = parts;
        self.part_count = part_count;
        Ok(self)
    }

    /// The dimension of the elements, 1 to 3; 0 for points and if it is unknown.
    pub fn dimension(&self) -> u8 {
        self.dimension
    }

    /// Number of nodes, including those that no element uses.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// Number of elements.
    pub fn element_count(&self) -> usize {
        self.element_first.len() - 1
    }

    /// The coordinates of each node; empty if the file has none. In plane meshes the third coordinate
    /// is 0.
    pub fn coordinates(&self) -> &[[f64; 3]] {
        &self.coordinates
    }

    /// The start of each element's nodes in [`Mesh::element_nodes`]; one entry more than elements.
    pub fn element_first(&self) -> &[u32] {
        &self.element_first
    }

    /// The nodes of all elements, in element order.
    pub fn element_nodes(&self) -> &[u32] {
        &self.element_nodes
    }

    /// The nodes of one element.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub fn element(&self, element: usize) -> &[u32] {
        row(&self.element_first, &self.element_nodes, element)
    }

    /// The elements in order.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        (0..self.element_count()).map(|e| self.element(e))
    }

    /// The file's own id of each node; empty if they are numbered in order.
    pub fn node_ids(&self) -> &[u64] {
        &self.node_ids
    }

    /// [`Mesh::weights_per_element`] weights for each element, if they have weights.
    pub fn element_weights(&self) -> Option<&[u32]> {
        self.element_weights.as_deref()
    }

    /// Number of weights that an element has, at least 1.
    pub fn weights_per_element(&self) -> usize {
        self.weights_per_element
    }

    /// The part of each element as given by the file; empty if it gives none.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// Number of parts given by the file; 0 if it gives none.
    pub fn part_count(&self) -> usize {
        self.part_count
    }
}

/// The sparsity pattern of a matrix: row `i` needs the values of its columns. Communication does not
/// depend on the values of the entries, which are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    column_count: usize,
    first: Vec<u32>,
    columns: Vec<u32>,
}

impl Matrix {
    /// A matrix whose row `i` has entries in the columns `columns[first[i]..first[i + 1]]`,
    /// ascending.
    ///
    /// # Errors
    /// Row starts that do not match, a column out of range, columns of a row that are not strictly
    /// ascending.
    pub fn new(
        column_count: usize,
        first: Vec<u32>,
        columns: Vec<u32>,
    ) -> Result<Self, ShapeError> {
        check_count("columns", column_count, limits::NODES)?;
        check_rows("rows", &first, columns.len(), limits::NODES)?;
        check_range("rows", &first, &columns, column_count)?;
        for i in 0..first.len() - 1 {
            if !row(&first, &columns, i).is_sorted_by(|a, b| a < b) {
                return Err(ShapeError::new(format!("rows[{i}]"), "columns do not ascend"));
            }
        }
        Ok(Self { column_count, first, columns })
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.column_count
    }

    /// The start of each row's columns; one entry more than rows.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// The columns of all entries, in row order.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The columns of one row, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn columns_of(&self, row_number: usize) -> &[u32] {
        row(&self.first, &self.columns, row_number)
    }
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A mesh; a partition distributes its elements.
    Mesh(Mesh),
    /// A graph; a partition distributes its vertices.
    Graph(Graph),
    /// A matrix; a partition distributes its rows, and its columns in the same way.
    Matrix(Matrix),
    /// A partitioned mesh with the lists of its exchange.
    Decomposition(Decomposition),
    /// The connections between parts; there is nothing to distribute.
    Connections(ConnectionList),
}

/// Row `i` of a list of lists in compressed row form.
#[inline]
pub(crate) fn row<'a>(first: &[u32], items: &'a [u32], i: usize) -> &'a [u32] {
    &items[index(first[i])..index(first[i + 1])]
}

fn check_count(place: &str, count: usize, limit: usize) -> Result<(), ShapeError> {
    if count > limit {
        return Err(ShapeError::new(place, format!("{count}; the limit is {limit}")));
    }
    Ok(())
}

fn check_length(place: &str, length: usize, expected: usize) -> Result<(), ShapeError> {
    if length != expected {
        return Err(ShapeError::new(place, format!("{length} entries, expected {expected}")));
    }
    Ok(())
}

fn check_weights(
    place: &str,
    weights: &[u32],
    per_item: usize,
    items: usize,
) -> Result<(), ShapeError> {
    if per_item == 0 {
        return Err(ShapeError::new(place, "0 weights per item, expected at least 1"));
    }
    check_length(place, weights.len(), items.saturating_mul(per_item))
}

/// Checks row starts: they must ascend from 0 to the number of entries, which METIS counts in 31 bits.
fn check_rows(place: &str, first: &[u32], items: usize, limit: usize) -> Result<(), ShapeError> {
    check_count(place, first.len().saturating_sub(1), limit)?;
    check_count(place, items, limits::NODES)?;
    let ends = (first.first().copied(), first.last().map(|&end| index(end)));
    if ends != (Some(0), Some(items)) || !first.is_sorted() {
        return Err(ShapeError::new(
            place,
            format!("row starts do not ascend from 0 to the {items} entries"),
        ));
    }
    Ok(())
}

fn check_range(place: &str, first: &[u32], items: &[u32], count: usize) -> Result<(), ShapeError> {
    if let Some(at) = items.iter().position(|&item| index(item) >= count) {
        let number = first.partition_point(|&start| index(start) <= at) - 1;
        return Err(ShapeError::new(
            format!("{place}[{number}]"),
            format!("number {} is not below {count}", items[at]),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_meshes_are_rejected() {
        let mesh = |first: &[u32], nodes: &[u32]| {
            Mesh::new(2, 4, Vec::new(), first.to_vec(), nodes.to_vec())
        };
        let good = mesh(&[0, 3, 6], &[0, 1, 2, 1, 2, 3]).unwrap();
        assert_eq!(good.element(1), [1, 2, 3]);
        assert_eq!(good.elements().len(), 2);
        assert!(mesh(&[0], &[]).is_ok(), "no elements");
        for (first, nodes) in [
            (&[][..], &[][..]),
            (&[0, 3], &[0, 1]),
            (&[1, 3], &[0, 1, 2]),
            (&[0, 3, 2, 4], &[0, 1, 2, 3]),
            (&[0, 3], &[0, 1, 4]),
            (&[0, 3, 3], &[0, 1, 2]),
        ] {
            assert!(mesh(first, nodes).is_err(), "{first:?} {nodes:?}");
        }
        let error = mesh(&[0, 2, 4], &[0, 1, 2, 9]).unwrap_err();
        assert_eq!(error.place, "elements[1]");
        assert!(Mesh::new(2, 1, vec![[f64::NAN, 0.0, 0.0]], vec![0], vec![]).is_err());
        assert!(good.clone().with_parts(vec![0, 2], 2).is_err());
        assert!(good.clone().with_parts(vec![0], 2).is_err());
        assert!(good.with_node_ids(vec![7]).is_err());
    }

    #[test]
    fn invalid_graphs_matrices_and_decompositions_are_rejected() {
        assert!(Graph::new(vec![0, 1, 2], vec![1, 2], false).is_err());
        let graph = Graph::new(vec![0, 1, 2], vec![1, 0], false).unwrap();
        assert!(graph.clone().with_edge_weights(vec![1]).is_err());
        assert!(graph.clone().with_vertex_weights(vec![1, 2, 3], 2).is_err());
        assert!(graph.clone().with_vertex_weights(vec![], 0).is_err());
        assert!(graph.with_vertex_sizes(vec![1, 2, 3]).is_err());
        assert!(Matrix::new(2, vec![0, 2], vec![1, 0]).is_err(), "descending");
        assert!(Matrix::new(2, vec![0, 2], vec![1, 1]).is_err(), "twice");
        assert!(Matrix::new(2, vec![0, 2], vec![0, 1]).is_ok(), "rectangular");
        let mesh = Mesh::new(1, 2, Vec::new(), vec![0, 2], vec![0, 1]).unwrap();
        let shared = SharedLists { pairs: vec![], first: vec![0], nodes: vec![] };
        let lists = (vec![0, 2], vec![0, 1]);
        let no_parts = Decomposition::new(mesh.clone(), lists.0.clone(), lists.1.clone(), shared);
        assert!(no_parts.is_err());
        let mesh = mesh.with_parts(vec![0], 1).unwrap();
        let own = SharedLists { pairs: vec![(0, 0)], first: vec![0, 1], nodes: vec![1] };
        assert!(Decomposition::new(mesh, lists.0, lists.1, own).is_err());
    }
}
