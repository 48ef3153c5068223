//! What an input file can describe: a mesh, a graph, a matrix, a decomposition, connections.
//!
//! All numbers are dense and start at 0, all lists of lists are flat: row `i` of a list with
//! starts `first` and entries `items` is `items[first[i]..first[i + 1]]`, so `first` has one entry
//! more than there are rows. A million-node mesh is a few arrays of `u32`.
//!
//! Constructors check shape (starts ascending and closed, numbers in range, one length where
//! arrays go together, counts within [`limits`]), so later stages index without asking. They do
//! not judge geometry: degenerate or overlapping elements are the mesh generator's business, and
//! what an exchange moves does not depend on them. An element may name a node twice (collapsed
//! bricks are common practice); it counts once wherever nodes are shared.

pub mod assembly;
pub mod element_type;
mod exchange;
mod graph;

use conset_ir::{ShapeError, limits};

pub use assembly::{Assembled, Assembly, ElementOrigin, Group, Inventory, TypeCount, Unused};
pub use element_type::{ElementType, Shape};
pub use exchange::{ConnectionList, Decomposition, SharedLists};
pub use graph::Graph;

/// A finite element mesh: nodes, and elements as lists of node numbers.
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
    /// `dimension` is the elements' own (2 for triangles in space), 0 where the file does not say.
    /// Together with the number of nodes it tells the kind of an element: 2 and 4 is a
    /// quadrilateral, 3 and 4 a tetrahedron. `coordinates` has one entry per node, or none where
    /// the file has no coordinates.
    ///
    /// # Errors
    /// Starts that do not fit the nodes, an element without nodes or with more than
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
            let count = (ends[1] - ends[0]) as usize;
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

    /// Adds the file's own name of each node, where these are not simply 1, 2, 3 and so on (or
    /// 0, 1, 2 in formats that count from 0).
    ///
    /// # Errors
    /// Not one per node.
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

    /// Adds `per_element` weights to each element, one element behind the other. A partition
    /// balances each of them on its own.
    ///
    /// # Errors
    /// Not `per_element` (at least 1) for each element.
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

    /// Adds the part of each element, as stated in the file; parts are `0..part_count`.
    ///
    /// # Errors
    /// Not one per element, a part out of range, more parts than [`limits::PARTS`].
    pub fn with_parts(mut self, parts: Vec<u32>, part_count: usize) -> Result<Self, ShapeError> {
        check_count("parts", part_count, limits::PARTS)?;
        if parts.len() != self.element_count() {
            return Err(ShapeError::new(
                "parts",
                format!("{} for {} elements", parts.len(), self.element_count()),
            ));
        }
        if let Some(e) = parts.iter().position(|&p| p as usize >= part_count) {
            return Err(ShapeError::new(
                format!("parts[{e}]"),
                format!("part {} of {part_count}", parts[e]),
            ));
        }
        self.parts = parts;
        self.part_count = part_count;
        Ok(self)
    }

    /// The elements' own dimension, 1 to 3; 0 for points and where the file does not say.
    pub fn dimension(&self) -> u8 {
        self.dimension
    }

    /// Number of nodes; those that no element uses count too.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// Number of elements.
    pub fn element_count(&self) -> usize {
        self.element_first.len() - 1
    }

    /// One point per node; empty where the file has none. Plane meshes have 0 in the third place.
    pub fn coordinates(&self) -> &[[f64; 3]] {
        &self.coordinates
    }

    /// Where each element's nodes start in [`Mesh::element_nodes`]; one entry more than elements.
    pub fn element_first(&self) -> &[u32] {
        &self.element_first
    }

    /// The nodes of all elements, one element behind the other.
    pub fn element_nodes(&self) -> &[u32] {
        &self.element_nodes
    }

    /// The nodes of one element.
    #[inline]
    pub fn element(&self, element: usize) -> &[u32] {
        row(&self.element_first, &self.element_nodes, element)
    }

    /// The elements in order.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        (0..self.element_count()).map(|e| self.element(e))
    }

    /// The file's own name of each node; empty where they are numbered in order.
    pub fn node_ids(&self) -> &[u64] {
        &self.node_ids
    }

    /// [`Mesh::weights_per_element`] weights for each element.
    pub fn element_weights(&self) -> Option<&[u32]> {
        self.element_weights.as_deref()
    }

    /// Number of weights that an element has, at least 1.
    pub fn weights_per_element(&self) -> usize {
        self.weights_per_element
    }

    /// The part of each element as stated in the file; empty where it states none.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// Number of parts stated in the file, 0 where it states none.
    pub fn part_count(&self) -> usize {
        self.part_count
    }
}

/// The pattern of a sparse matrix; row `i` needs the values of its columns. Its values, if the
/// file has any, play no part in communication and are dropped.
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
    /// Starts that do not fit, a column out of range, columns of a row not strictly ascending.
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

    /// Where each row's columns start; one entry more than rows.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// The columns of all entries, row behind row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The columns of one row, ascending.
    #[inline]
    pub fn columns_of(&self, row_number: usize) -> &[u32] {
        row(&self.first, &self.columns, row_number)
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A mesh; its elements are distributed over the parts.
    Mesh(Mesh),
    /// A graph; its vertices are distributed over the parts.
    Graph(Graph),
    /// A matrix; its rows are distributed over the parts, and its columns the same way.
    Matrix(Matrix),
    /// A mesh cut into parts by somebody else.
    Decomposition(Decomposition),
    /// The parts' exchange itself; there is nothing left to distribute.
    Connections(ConnectionList),
}

/// Row `i` of a flat list of lists.
#[inline]
pub(crate) fn row<'a>(first: &[u32], items: &'a [u32], i: usize) -> &'a [u32] {
    &items[first[i] as usize..first[i + 1] as usize]
}

fn check_count(place: &str, count: usize, limit: usize) -> Result<(), ShapeError> {
    if count > limit {
        return Err(ShapeError::new(place, format!("{count}, at most {limit}")));
    }
    Ok(())
}

fn check_length(place: &str, length: usize, wanted: usize) -> Result<(), ShapeError> {
    if length != wanted {
        return Err(ShapeError::new(place, format!("{length} entries, expected {wanted}")));
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
        return Err(ShapeError::new(place, "0 weights for each, expected at least 1"));
    }
    check_length(place, weights.len(), items.saturating_mul(per_item))
}

/// Checks the starts of a flat list: from 0, not descending, closed by the number of items, which
/// METIS counts in 31 bits.
fn check_rows(place: &str, first: &[u32], items: usize, limit: usize) -> Result<(), ShapeError> {
    check_count(place, first.len().saturating_sub(1), limit)?;
    check_count(place, items, limits::NODES)?;
    let ends = (first.first().copied(), first.last().map(|&end| end as usize));
    if ends != (Some(0), Some(items)) || !first.is_sorted() {
        return Err(ShapeError::new(
            place,
            format!("row starts do not ascend from 0 to the {items} entries"),
        ));
    }
    Ok(())
}

fn check_range(place: &str, first: &[u32], items: &[u32], count: usize) -> Result<(), ShapeError> {
    if let Some(at) = items.iter().position(|&item| item as usize >= count) {
        let number = first.partition_point(|&start| start as usize <= at) - 1;
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
    fn meshes_that_do_not_fit_are_refused() {
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
    fn graphs_matrices_and_decompositions_that_do_not_fit_are_refused() {
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
