//! The triangles of a nodal graph.
//!
//! Archives of test graphs often keep of a triangle mesh only its nodal graph: the nodes, and an
//! edge between two that share a triangle. Where every edge lies in one or two cycles of three
//! (on the rim in one, inside in two), these cycles are the triangles, and the mesh is known
//! again but for its coordinates. Where an edge lies in none or in more than two, a three-cycle
//! may be a hole or a cut through the mesh, nothing tells which, and the graph is refused.
//!
//! Finding the cycles takes O(edges * sqrt(edges)) at worst: of each edge the end with fewer
//! neighbours is searched.

use conset_ir::ShapeError;

use crate::model::{Graph, Mesh};

/// The mesh whose nodal graph this is; its triangles ascend, and so do the nodes of each.
///
/// # Errors
/// A directed graph, an edge of a vertex with itself, or an edge that is not in one or two
/// three-cycles; vertices are named as in a METIS file, from 1.
pub fn from_graph(graph: &Graph) -> Result<Mesh, ShapeError> {
    if graph.directed() {
        return Err(ShapeError::new("graph", "the nodal graph of a mesh is undirected"));
    }
    let vertices = graph.vertex_count();
    let rank = |v: usize| (graph.neighbours_of(v).len(), v);
    let mut triangles: Vec<[u32; 3]> = Vec::new();
    // The vertex that last marked each one as its neighbour.
    let mut marked_by = vec![u32::MAX; vertices];
    for u in 0..vertices {
        for &v in graph.neighbours_of(u) {
            marked_by[v as usize] = u as u32;
        }
        if marked_by[u] == u as u32 {
            return Err(ShapeError::new(edge(u, u), "an edge of a vertex with itself"));
        }
        for &v in graph.neighbours_of(u) {
            if rank(v as usize) > rank(u) {
                continue;
            }
            let cycles = graph
                .neighbours_of(v as usize)
                .iter()
                .filter(|&&w| marked_by[w as usize] == u as u32);
            let mut count = 0;
            for &w in cycles {
                count += 1;
                // Of its three edges, only the one opposite the last corner notes a triangle.
                if rank(w as usize) < rank(v as usize) && count <= 2 {
                    let mut corners = [u as u32, v, w];
                    corners.sort_unstable();
                    triangles.push(corners);
                }
            }
            if !(1..=2).contains(&count) {
                return Err(ShapeError::new(
                    edge(u, v as usize),
                    format!(
                        "it lies in {count} three-cycles; an edge of a triangle mesh in 1 or 2"
                    ),
                ));
            }
        }
    }
    triangles.sort_unstable();
    let first = (0..=triangles.len() as u32).map(|t| 3 * t).collect();
    Mesh::new(2, vertices, Vec::new(), first, triangles.into_flattened())
}

fn edge(u: usize, v: usize) -> String {
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
    fn a_strip_gives_its_triangles_and_lone_vertices_stay() {
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
