//! Elements that share faces or edges, found one element at a time.
//!
//! Two elements share a face if they have at least three corners in common in three dimensions, two
//! in two and one in one; they share an edge if they have two in common, or one in one dimension.
//! Between elements of different dimension the lower one counts. In a mesh whose elements meet in
//! whole faces, edges and corners this is what the words say; it does not depend on the order of the
//! corners. Corners are the first nodes of an element, and all nodes of polygons and polyhedra.

use conset_ir::convert::{index, to_u32};
use conset_ir::{Lists, ShapeError};

use crate::model::{ElementType, Mesh, Shape};

/// Comparisons of two elements in one search. Real meshes need some hundred for each element; a file
/// in which most elements have most others as neighbours is refused.
const COMPARISONS: u64 = 1 << 32;

/// Finds the neighbours of elements.
pub(super) struct ElementNeighbours<'a> {
    mesh: &'a Mesh,
    /// Dimension and number of corners of each element.
    shapes: Vec<(u8, u16)>,
    elements_of: Lists,
    faces: bool,
    /// The last search whose element had each node.
    marked: Vec<u32>,
    /// The last search that compared each element.
    compared: Vec<u32>,
    /// Number of the present search, from 1.
    search: u32,
    corners: Vec<u32>,
    /// The lowest dimension of an element.
    least_dimension: u8,
    comparisons: u64,
}

impl<'a> ElementNeighbours<'a> {
    /// Neighbours over faces, or else over edges. `types` has the types of all elements or is empty.
    ///
    /// # Errors
    /// An element whose shape is not known, or one of a spline.
    pub(super) fn new(
        mesh: &'a Mesh,
        types: &[ElementType],
        faces: bool,
    ) -> Result<Self, ShapeError> {
        let mut shapes = Vec::with_capacity(mesh.element_count());
        for (element, nodes) in mesh.elements().enumerate() {
            let guessed = || ElementType::of_dimension(mesh.dimension(), nodes.len());
            let known = types.get(element).copied().or_else(guessed).ok_or_else(|| {
                ShapeError::new(
                    "<halo>",
                    format!(
                        "the shape of element {element} with {} nodes is not known, so its faces \
                         are not either; use <halo> nodes or rows",
                        nodes.len()
                    ),
                )
            })?;
            if known.is_spline() {
                let message = format!(
                    "element {element} is a {known}, whose nodes are not its corners, so its faces \
                     are not known; use <halo> nodes or rows"
                );
                return Err(ShapeError::new("<halo>", message));
            }
            let corners = match known.shape() {
                Shape::Polygon | Shape::Polyhedron | Shape::Point => nodes.len(),
                shape => shape.corner_count().min(nodes.len()),
            };
            shapes.push((known.dimension(), u16::try_from(corners).unwrap_or(u16::MAX)));
        }
        let least_dimension = shapes.iter().map(|shape| shape.0).min().unwrap_or(0);
        let corners = (0u32..).zip(mesh.elements().zip(&shapes));
        let pairs = corners.flat_map(|(element, (nodes, &(_, corners)))| {
            nodes[..usize::from(corners)].iter().map(move |&node| (node, element))
        });
        let elements_of = Lists::new(mesh.node_count(), pairs);
        Ok(Self {
            mesh,
            shapes,
            elements_of,
            faces,
            marked: vec![0; mesh.node_count()],
            compared: vec![0; mesh.element_count()],
            search: 0,
            corners: Vec::new(),
            least_dimension,
            comparisons: 0,
        })
    }

    /// Adds the neighbours of an element to `found`.
    ///
    /// # Errors
    /// Too many comparisons.
    pub(super) fn of(&mut self, element: u32, found: &mut Vec<u32>) -> Result<(), ShapeError> {
        self.next_search();
        let search = self.search;
        let (dimension, corners) = self.shapes[index(element)];
        self.corners.clear();
        for &node in &self.mesh.element(index(element))[..usize::from(corners)] {
            if self.marked[index(node)] != search {
                self.marked[index(node)] = search;
                self.corners.push(node);
            }
        }
        // An element with `fewest` of these corners has one of any `len - fewest + 1`, so those
        // with the most elements need no search.
        let fewest = self.needed(dimension.min(self.least_dimension));
        self.corners.sort_unstable_by_key(|&node| self.elements_of.of(node).len());
        self.corners.truncate((self.corners.len() + 1).saturating_sub(fewest));
        for &node in &self.corners {
            for &other in self.elements_of.of(node) {
                if other == element || self.compared[index(other)] == search {
                    continue;
                }
                self.compared[index(other)] = search;
                self.comparisons += 1;
                let (other_dimension, other_corners) = self.shapes[index(other)];
                let needed = self.needed(dimension.min(other_dimension));
                let nodes = &self.mesh.element(index(other))[..usize::from(other_corners)];
                let shared = |at: &usize| {
                    self.marked[index(nodes[*at])] == search && !nodes[..*at].contains(&nodes[*at])
                };
                if (0..nodes.len()).filter(shared).take(needed).count() == needed {
                    found.push(other);
                }
            }
            if self.comparisons > COMPARISONS {
                return Err(ShapeError::new(
                    "<halo>",
                    "too many elements around the same nodes to find which of them share faces",
                ));
            }
        }
        Ok(())
    }

    /// Numbers the next search, so that the marks of others do not count.
    fn next_search(&mut self) {
        if self.search == u32::MAX {
            self.marked.fill(0);
            self.compared.fill(0);
            self.search = 0;
        }
        self.search += 1;
    }

    /// Corners that two neighbours have in common, where the lower dimension is `dimension`.
    fn needed(&self, dimension: u8) -> usize {
        usize::from(if self.faces { dimension.max(1) } else { dimension.clamp(1, 2) })
    }
}

/// Finds the nodes that have an element in common with a node.
pub(super) struct NodeNeighbours<'a> {
    mesh: &'a Mesh,
    elements_of: Lists,
}

impl<'a> NodeNeighbours<'a> {
    pub(super) fn new(mesh: &'a Mesh) -> Self {
        let elements = (0u32..).zip(mesh.elements());
        let pairs =
            elements.flat_map(|(element, nodes)| nodes.iter().map(move |&node| (node, element)));
        Self { mesh, elements_of: Lists::new(mesh.node_count(), pairs) }
    }

    /// The owner of each node: the lowest part with an element that has it; `u32::MAX` if none has.
    pub(super) fn owners(&self, part_of: &[u32]) -> Vec<u32> {
        let lowest = |node: u32| self.elements_of.of(node).iter().map(|&e| part_of[index(e)]).min();
        (0..to_u32(self.mesh.node_count())).map(|node| lowest(node).unwrap_or(u32::MAX)).collect()
    }

    /// Adds the neighbours of a node to `found`, perhaps repeatedly, and the node itself.
    pub(super) fn of(&self, node: u32, found: &mut Vec<u32>) {
        for &element in self.elements_of.of(node) {
            found.extend_from_slice(self.mesh.element(index(element)));
        }
    }
}
