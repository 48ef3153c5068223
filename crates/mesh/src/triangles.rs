//! Reconstruction of a triangle mesh from its nodal graph.
//!
//! Archives of test graphs often contain only the nodal graph of a triangle mesh: the nodes, and an
//! edge between two nodes of the same triangle. If every edge is in one three-cycle (on the boundary)
//! or two (inside), these cycles are the triangles, and the mesh is determined except for its
//! coordinates. If an edge is in none or in more than two, a three-cycle may be a hole in the mesh;
//! the graph is ambiguous and is rejected.
//!
//! Finding the cycles takes O(edges * sqrt(edges)) time: for each edge the end with fewer neighbours
//! is searched.

use conset_ir::ShapeError;
use conset_ir::convert::{index, to_u32};

use crate::model::{Graph, Mesh};

/// The triangle mesh with this nodal graph. The triangles ascend, and so do the nodes of each.
///
/// # Errors
/// A directed graph, an edge of a vertex with itself, or an edge that is not in one or two
/// three-cycles. Errors count vertices from 1, as METIS files do.
pub fn from_graph(graph: &Graph) -> Result<Mesh, ShapeError> {
    if graph.is_directed() {
        return Err(ShapeError::new("graph", "the nodal graph of a mesh is undirected"));
    }
    let vertices = graph.vertex_count();
    let rank = |v: u32| (graph.neighbours_of(index(v)).len(), v);
    let mut triangles: Vec<[u32; 3]> = Vec::new();
    // The last vertex that has each one as a neighbour.
    let mut marked_by = vec![u32::MAX; vertices];
    for u in 0..to_u32(vertices) {
        for &v in graph.neighbours_of(index(u)) {
            marked_by[index(v)] = u;
        }
        if marked_by[index(u)] == u {
            return Err(ShapeError::new(edge(u, u), "an edge of a vertex with itself"));
        }
        for &v in graph.neighbours_of(index(u)) {
            if rank(v) > rank(u) {
                continue;
            }
            let neighbours = graph.neighbours_of(index(v)).iter();
            let cycles = neighbours.filter(|&&w| marked_by[index(w)] == u);
            let mut count = 0;
            for &w in cycles {
                count += 1;
                // Each triangle is recorded at one of its three edges, the one opposite the corner of
                // the lowest rank.
                if rank(w) < rank(v) && count <= 2 {
                    let mut corners = [u, v, w];
                    corners.sort_unstable();
                    triangles.push(corners);
                }
            }
            if !(1..=2).contains(&count) {
                return Err(ShapeError::new(
                    edge(u, v),
                    format!(
                        "it is in {count} three-cycles; an edge of a triangle mesh is in 1 or 2"
                    ),
                ));
            }
        }
    }
    triangles.sort_unstable();
    let first = (0..=to_u32(triangles.len())).map(|t| 3 * t).collect();
    Mesh::new(2, vertices, Vec::new(), first, triangles.into_flattened())
}

fn edge(u: u32, v: u32) -> String {
    format!("edge between vertices {} and {}", u.min(v) + 1, u.max(v) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(lists: &[&[u32]]) -> Graph {
        let mut first = vec![0];
        for list in lists {
            first.push(first[first.len() - 1] + list.len() as u32);
        }
        Graph::new(first, lists.concat(), false).unwrap()
    }

    #[test]
    fn a_strip_gives_its_triangles_and_keeps_isolated_vertices() {
        let strip = graph(&[&[1, 2], &[0, 2, 3], &[0, 1, 3], &[1, 2], &[]]);
        let mesh = from_graph(&strip).unwrap();
        assert_eq!(mesh.elements().collect::<Vec<_>>(), [[0, 1, 2], [1, 2, 3]]);
        assert_eq!((mesh.dimension(), mesh.node_count()), (2, 5));
    }

    #[test]
    fn a_closed_surface_is_a_mesh() {
        let tetrahedron = graph(&[&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]]);
        assert_eq!(from_graph(&tetrahedron).unwrap().element_count(), 4);
    }

    #[test]
    fn edges_in_no_or_many_cycles_are_named() {
        let path = graph(&[&[1], &[0]]);
        let error = from_graph(&path).unwrap_err();
        assert_eq!(error.place, "edge between vertices 1 and 2");
        // Three triangles on the edge 0-1.
        let book = graph(&[&[1, 2, 3, 4], &[0, 2, 3, 4], &[0, 1], &[0, 1], &[0, 1]]);
        let error = from_graph(&book).unwrap_err();
        assert!(error.message.contains("3 three-cycles"), "{error}");
        assert!(from_graph(&graph(&[&[0]])).is_err());
    }
}
