//! METIS graphs and meshes (METIS manual, "Graph file", "Mesh file"), and connection lists.
//!
//! These files have one line for each vertex or element, so an empty line is a vertex without
//! neighbours. Lines that start with `%` are comments. Numbers count from 1.
//!
//! * A *graph* starts with `vertices edges [fmt [ncon]]`. The digits of `fmt` declare vertex sizes,
//!   vertex weights (`ncon` each) and edge weights. A graph is undirected: each edge is in the lines
//!   of both its ends, with the same weight. Loops, repeated edges, edges without their reverse and
//!   edge weights of 0 are errors.
//! * A *connection list* has the same syntax with another meaning: the line of a part has the parts
//!   that it sends to, and the edge weights (or 1) are numbers of words. It may be asymmetric, repeat
//!   a pair, and contain the part itself. Its number of edges may be the number of entries or, as in
//!   METIS, half of it. Vertex sizes and weights are ignored.
//! * A *mesh* starts with `elements [ncon]`; a line has the element's weights, then its nodes. METIS
//!   4 has an element type in the place of `ncon`; an ambiguous file is rejected. If the node
//!   numbers are sparse, nodes are numbered by rank.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{InputError, Lists, Result, ShapeError, limits};

use super::cursor::{Cursor, MAX_INT, show};
use super::numbering::NodeNumbering;
use crate::model::{ConnectionList, Graph, Mesh};

/// The largest number of weights of a vertex or element.
const MAX_WEIGHTS: usize = 64;

/// The first line of a graph.
struct GraphHeader {
    vertices: usize,
    edges: u64,
    /// The position of the number of edges.
    edges_at: usize,
    sizes: bool,
    vertex_weights: usize,
    edge_weights: bool,
}

fn graph_header(cursor: &mut Cursor<'_>) -> Result<GraphHeader> {
    cursor.skip_blank_and_comment_lines(b'%');
    let vertices = cursor.count("the number of vertices", limits::NODES)?;
    let edges = cursor.integer("the number of edges", to_u64(limits::NODES))?;
    let edges_at = cursor.last();
    let mut header = GraphHeader {
        vertices,
        edges,
        edges_at,
        sizes: false,
        vertex_weights: 0,
        edge_weights: false,
    };
    if !cursor.at_line_end() {
        let fmt = cursor.token("fmt")?;
        if fmt.len() > 3 || !fmt.iter().all(|b| matches!(b, b'0' | b'1')) {
            return Err(cursor.error(format!(
                "`{}` is not a format; expected up to three digits 0 or 1: vertex sizes, vertex \
                 weights, edge weights",
                show(fmt)
            )));
        }
        let digit = |place: usize| fmt.len() > place && fmt[fmt.len() - 1 - place] == b'1';
        header.sizes = digit(2);
        header.vertex_weights = usize::from(digit(1));
        header.edge_weights = digit(0);
        if !cursor.at_line_end() {
            let count = cursor.count("the number of weights of a vertex", MAX_WEIGHTS)?;
            if count == 0 || header.vertex_weights == 0 {
                return Err(cursor.error(format!(
                    "{count} weights per vertex, but the format declares that vertices have {}",
                    if header.vertex_weights == 0 { "none" } else { "some" }
                )));
            }
            header.vertex_weights = count;
        }
    }
    cursor.end_line("vertices, edges, format and number of weights")?;
    Ok(header)
}

/// The lines of a graph file.
#[derive(Default)]
struct GraphRows {
    first: Vec<u32>,
    neighbours: Vec<u32>,
    sizes: Vec<u32>,
    vertex_weights: Vec<u32>,
    edge_weights: Vec<u32>,
}

/// Reads the lines after the header. `reject` gets each entry `(vertex, neighbour)` and returns the
/// reason if the entry is invalid.
fn graph_rows(
    cursor: &mut Cursor<'_>,
    header: &GraphHeader,
    mut reject: impl FnMut(u32, u32) -> Option<&'static str>,
) -> Result<GraphRows> {
    let mut rows = GraphRows::default();
    rows.first.reserve(cursor.capacity(to_u64(header.vertices), 1) + 1);
    rows.neighbours.reserve(cursor.capacity(header.edges * 2, 2));
    rows.first.push(0);
    for vertex in 0..to_u32(header.vertices) {
        start_row(cursor, index(vertex), header.vertices, "vertices")?;
        if header.sizes {
            rows.sizes.push(weight(cursor, "the size of a vertex")?);
        }
        for _ in 0..header.vertex_weights {
            rows.vertex_weights.push(weight(cursor, "a weight of a vertex")?);
        }
        while !cursor.at_line_end() {
            let number = cursor.number("a neighbour", header.vertices)?;
            if number == 0 {
                return Err(cursor.error("vertices count from 1"));
            }
            let neighbour = number - 1;
            if let Some(wrong) = reject(vertex, neighbour) {
                return Err(cursor.error(format!("vertex {number} {wrong}")));
            }
            rows.neighbours.push(neighbour);
            if header.edge_weights {
                if cursor.at_line_end() {
                    return Err(cursor.error(format!("no weight follows neighbour {number}")));
                }
                rows.edge_weights.push(weight(cursor, "the weight of an edge")?);
                if rows.edge_weights.last() == Some(&0) {
                    return Err(cursor.error("the weight of an edge is at least 1"));
                }
            }
        }
        cursor.next_line();
        if rows.neighbours.len() > limits::NODES {
            return Err(cursor.error("more entries than fit 31 bits"));
        }
        rows.first.push(to_u32(rows.neighbours.len()));
    }
    end_rows(cursor, header.vertices, "vertices")?;
    Ok(rows)
}

/// Moves to the line of row `row`.
fn start_row(cursor: &mut Cursor<'_>, row: usize, rows: usize, what: &str) -> Result<()> {
    cursor.skip_comment_lines(b'%');
    if cursor.at_end() {
        let message = format!("the file ends after {row} of {rows} {what}");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    Ok(())
}

/// Checks that only comments and empty lines follow the last row.
fn end_rows(cursor: &mut Cursor<'_>, rows: usize, what: &str) -> Result<()> {
    cursor.skip_blank_and_comment_lines(b'%');
    if !cursor.at_end() {
        let message =
            format!("the file has more than the {rows} {what} declared in the first line");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    Ok(())
}

/// A weight or size on the same line.
fn weight(cursor: &mut Cursor<'_>, what: &str) -> Result<u32> {
    if cursor.at_line_end() {
        return Err(cursor.error_at(cursor.offset(), format!("the line ends before {what}")));
    }
    cursor.integer(what, MAX_INT).map(to_u32)
}

/// Reads an undirected graph.
pub(super) fn read_graph(file: &str, bytes: &[u8]) -> Result<Graph> {
    let mut cursor = Cursor::new(file, bytes);
    let header = graph_header(&mut cursor)?;
    // The last vertex that has each one as a neighbour.
    let mut listed_by = vec![u32::MAX; cursor.capacity(to_u64(header.vertices), 1)];
    let rows = graph_rows(&mut cursor, &header, |vertex, neighbour| {
        if vertex == neighbour {
            return Some("is a neighbour of itself");
        }
        // The file may have fewer vertices than it declares; that error is found later.
        let listed = listed_by.get_mut(index(neighbour))?;
        let again = *listed == vertex;
        *listed = vertex;
        again.then_some("occurs twice in this line")
    })?;
    check_reverse(&mut cursor, &header, &rows)?;
    if to_u64(rows.neighbours.len()) != header.edges * 2 {
        return Err(cursor.error_at(
            header.edges_at,
            format!(
                "{} edges are declared, but the lines have {} entries, which is {} edges",
                header.edges,
                rows.neighbours.len(),
                rows.neighbours.len() / 2
            ),
        ));
    }
    build_graph(rows, &header).map_err(|error| error.in_file(file))
}

fn build_graph(rows: GraphRows, header: &GraphHeader) -> Result<Graph, ShapeError> {
    let mut graph = Graph::new(rows.first, rows.neighbours, false)?;
    if header.edge_weights {
        graph = graph.with_edge_weights(rows.edge_weights)?;
    }
    if header.vertex_weights > 0 {
        graph = graph.with_vertex_weights(rows.vertex_weights, header.vertex_weights)?;
    }
    if header.sizes {
        graph = graph.with_vertex_sizes(rows.sizes)?;
    }
    Ok(graph)
}

/// Entries with one kind of error: their number, and the first one as `(vertex, entry)`.
#[derive(Default)]
struct Mismatches {
    count: usize,
    first: Option<(usize, u32)>,
}

impl Mismatches {
    fn record(&mut self, vertex: usize, entry: u32) {
        self.count += 1;
        self.first.get_or_insert((vertex, entry));
    }
}

/// Checks that each entry has a reverse entry with the same weight.
fn check_reverse(cursor: &mut Cursor<'_>, header: &GraphHeader, rows: &GraphRows) -> Result<()> {
    let vertices = header.vertices;
    let sources = sources(vertices, &rows.first);
    let reverse = Lists::new(vertices, rows.neighbours.iter().copied().zip(0..));
    let weight = |entry: u32| rows.edge_weights.get(index(entry));
    // For each vertex, its entry for the present vertex.
    let mut entry_of = vec![(u32::MAX, 0u32); vertices];
    let (mut no_reverse, mut other_weight) = (Mismatches::default(), Mismatches::default());
    for vertex in 0..to_u32(vertices) {
        for &entry in reverse.of(vertex) {
            entry_of[index(sources[index(entry)])] = (vertex, entry);
        }
        let vertex_index = index(vertex);
        for entry in rows.first[vertex_index]..rows.first[vertex_index + 1] {
            let (listed, reverse) = entry_of[index(rows.neighbours[index(entry)])];
            if listed != vertex {
                no_reverse.record(vertex_index, entry);
            } else if weight(entry) != weight(reverse) {
                other_weight.record(vertex_index, entry);
            }
        }
    }
    let wrong = if no_reverse.count > 0 { &no_reverse } else { &other_weight };
    let Some((vertex, entry)) = wrong.first else { return Ok(()) };
    let place = locate(cursor, header, vertex, entry - rows.first[vertex])?;
    let neighbour = rows.neighbours[index(entry)] + 1;
    let (vertex, count) = (vertex + 1, wrong.count);
    let message = if no_reverse.count > 0 {
        format!(
            "vertex {vertex} lists {neighbour} as a neighbour, but {neighbour} does not list {vertex} \
             ({count} entries in total have no reverse); a METIS graph is undirected"
        )
    } else {
        format!(
            "the edge from {vertex} to {neighbour} has another weight in the line of {neighbour} \
             ({count} entries in total); a METIS graph is undirected"
        )
    };
    Err(cursor.error_at(place, message).help(
        "if these are connections (who sends how many words to whom), read the file with \
         `<format> graph-connections`; otherwise list each edge in the lines of both its ends",
    ))
}

/// The vertex of each entry.
fn sources(vertices: usize, first: &[u32]) -> Vec<u32> {
    let mut sources = Vec::with_capacity(index(first[vertices]));
    for (vertex, ends) in (0..).zip(first.windows(2)) {
        sources.resize(index(ends[1]), vertex);
    }
    sources
}

/// The position of entry `entry` of a vertex's line. It is found by reading the file again, so that
/// no positions are stored while a correct file is read.
fn locate(
    cursor: &mut Cursor<'_>,
    header: &GraphHeader,
    vertex: usize,
    entry: u32,
) -> Result<usize> {
    cursor.seek(0);
    cursor.skip_blank_and_comment_lines(b'%');
    for _ in 0..=vertex {
        cursor.next_line();
        cursor.skip_comment_lines(b'%');
    }
    let before = usize::from(header.sizes) + header.vertex_weights;
    let per_entry = 1 + usize::from(header.edge_weights);
    for _ in 0..=before + index(entry) * per_entry {
        cursor.token("an entry")?;
    }
    Ok(cursor.last())
}

/// Reads a list of connections.
pub(super) fn read_connections(file: &str, bytes: &[u8]) -> Result<ConnectionList> {
    let mut cursor = Cursor::new(file, bytes);
    let header = graph_header(&mut cursor)?;
    let rows = graph_rows(&mut cursor, &header, |_, _| None)?;
    let entries = rows.neighbours.len();
    if to_u64(entries) != header.edges && to_u64(entries) != header.edges * 2 {
        return Err(cursor.error_at(
            header.edges_at,
            format!(
                "{} edges are declared, but the lines have {entries} entries; expected the \
                 same number or twice as many",
                header.edges
            ),
        ));
    }
    let connections = sources(header.vertices, &rows.first)
        .into_iter()
        .zip(rows.neighbours)
        .enumerate()
        .map(|(entry, (source, target))| {
            let words = rows.edge_weights.get(entry).copied().unwrap_or(1);
            (source, target, words)
        })
        .collect();
    ConnectionList::new(header.vertices, connections).map_err(|error| error.in_file(file))
}

/// Reads a mesh.
pub(super) fn read_mesh(file: &str, bytes: &[u8]) -> Result<Mesh> {
    let mut cursor = Cursor::new(file, bytes);
    cursor.skip_blank_and_comment_lines(b'%');
    if cursor.peek_token().starts_with(b"MeshVersionFormatted") {
        return Err(cursor
            .error_at(cursor.offset(), "this is a Medit mesh, not a METIS mesh")
            .help("convert it to Gmsh's format with Gmsh or meshio"));
    }
    let count = cursor.count("the number of elements", limits::ELEMENTS)?;
    let mut weights_per_element = 0;
    if !cursor.at_line_end() {
        weights_per_element = cursor.count("the number of weights", MAX_WEIGHTS)?;
    }
    let weights_at = cursor.last();
    cursor.end_line("the number of elements and the number of weights")?;
    let mut first = Vec::with_capacity(cursor.capacity(to_u64(count), 2) + 1);
    first.push(0);
    let mut nodes: Vec<u32> = Vec::new();
    let mut weights = Vec::new();
    let mut shortest = usize::MAX;
    let mut longest = 0;
    for element in 0..count {
        start_row(&mut cursor, element, count, "elements")?;
        for _ in 0..weights_per_element {
            weights.push(weight(&mut cursor, "a weight of the element")?);
        }
        let start = nodes.len();
        while !cursor.at_line_end() {
            let node = cursor.number("a node of the element", limits::NODES)?;
            if node == 0 {
                return Err(cursor.error("nodes count from 1"));
            }
            nodes.push(node - 1);
        }
        let length = nodes.len() - start;
        if length == 0 || length > limits::ELEMENT_NODES || nodes.len() > limits::NODES {
            return Err(cursor.error_at(
                cursor.offset(),
                format!("an element of {length} nodes; expected 1 to {}", limits::ELEMENT_NODES),
            ));
        }
        shortest = shortest.min(length);
        longest = longest.max(length);
        first.push(to_u32(nodes.len()));
        cursor.next_line();
    }
    end_rows(&mut cursor, count, "elements")?;
    if count == 0 {
        return Err(cursor.error_at(cursor.offset(), "the mesh has no elements"));
    }
    // METIS 4: type 1 is triangles, 2 tetrahedra, 3 bricks. METIS 5 would take the type as the number
    // of weights, so that each element has as many nodes fewer.
    let as_metis_4 = [(1, 3), (2, 4), (3, 8)];
    if shortest == longest
        && as_metis_4.contains(&(weights_per_element, shortest + weights_per_element))
    {
        return Err(ambiguous(&cursor, weights_at, weights_per_element, shortest));
    }
    let (node_count, ids) = renumber_if_sparse(&mut nodes);
    let build = || {
        let mut mesh = Mesh::new(0, node_count, Vec::new(), first, nodes)?;
        if !ids.is_empty() {
            mesh = mesh.with_node_ids(ids)?;
        }
        if weights_per_element > 0 {
            mesh = mesh.with_element_weights(weights, weights_per_element)?;
        }
        Ok(mesh)
    };
    build().map_err(|error: ShapeError| error.in_file(file))
}

fn ambiguous(cursor: &Cursor<'_>, at: usize, weights: usize, nodes: usize) -> InputError {
    cursor
        .error_at(
            at,
            format!(
                "in METIS 4 this {weights} is an element type, and elements have {} nodes; in METIS 5 \
                 it is the number of weights, and elements have {nodes} nodes",
                nodes + weights
            ),
        )
        .help(format!(
            "if it is a METIS 4 file, delete this {weights}; if the elements do have weights, \
             write them as a graph or a Gmsh file"
        ))
}

/// The number of nodes, given the nodes of all elements (from 0). If most numbers are unused, they are
/// replaced by ranks, so that one large number cannot cause arrays of its size; the ids returned are
/// then the numbers in the file, from 1.
pub(super) fn renumber_if_sparse(nodes: &mut [u32]) -> (usize, Vec<u64>) {
    let node_count = nodes.iter().max().map_or(0, |&node| index(node) + 1);
    if node_count <= 4 * nodes.len() + 1024 {
        return (node_count, Vec::new());
    }
    let mut ids: Vec<u64> = nodes.iter().map(|&node| u64::from(node) + 1).collect();
    ids.sort_unstable();
    ids.dedup();
    let numbering = NodeNumbering::new(ids);
    for node in nodes.iter_mut() {
        *node = numbering.rank(u64::from(*node) + 1).expect("every node was collected");
    }
    (numbering.len(), numbering.into_ids())
}
